/* Calls of every kind without memory and with callers that have had enough: each allocation fails in
 * turn, each poll cancels in turn. The failure is named, nothing is lost. */
#include "calls.h"
#include "par.h"
#include "starve.h"

enum { CALLS = (int)(sizeof all_calls / sizeof all_calls[0]) };

/* ---- Memory ---- */

typedef struct one_call {
  stage *s;
  const named_call *c;
} one_call;

static rpo_status try_call(void *context, rpo_error *err) {
  const one_call *const one = context;
  return one->c->call(one->s, NULL, err);
}

static void without_memory(void) {
  for (int kind = 0; kind < STAGES; kind++) {
    stage s;
    stage_start(&s, kind);
    for (int i = 0; i < CALLS; i++) {
      one_call one = {&s, &all_calls[i]};
      if (!call_fits(one.c, kind)) continue;
      mini_context("stage %d, %s", kind, one.c->name);
      until_it_succeeds(try_call, &one);
    }
    stage_end(&s);
  }
}

/* ---- Cancelling ---- */

typedef struct caller {
  int64_t asked, cancel_at; /* 0: never */
  double cancelled;         /* when */
} caller;

static int32_t ask(void *user, int64_t done, int64_t total) {
  caller *const c = user;
  CHECK(done >= 0 && done <= total);
  if (++c->asked != c->cancel_at) return 0;
  c->cancelled = rpo_now();
  return 1;
}

/* Calls without a control, and those that ask for progress only when rounds are long. */
static int may_be_short(const char *name) {
  static const char *const names[] = {
      "rpo_forest_importances", "rpo_forest_pick", "rpo_forest_save",  "rpo_forest_load",
      "rpo_forest_parse",       "rpo_forest_tree", "rpo_boost_forest", "rpo_boost_scores"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(name, names[i]) == 0) return 1;
  }
  return 0;
}

static void cancel_each(stage *s, const named_call *c, int32_t threads) {
  caller who = {0, 0, 0.0};
  rpo_control control = threads_of(threads);
  rpo_error err;
  int64_t const live = rpo_mem_live;
  control.progress = ask;
  control.user = &who;
  CHECK_OK(c->call(s, &control, &err), &err);
  int64_t const polls = who.asked;
  CHECK(polls > 0 || may_be_short(c->name));
  int64_t const step = 1 + polls / (threads > 1 ? 8 : 60);
  for (int64_t n = 1; n <= polls; n += step) {
    memset(&err, 0, sizeof err);
    who.asked = 0;
    who.cancel_at = n;
    mini_context("%s, stage %d, %d threads, poll %lld of %lld", c->name, s->kind, (int)threads,
                 (long long)n, (long long)polls);
    rpo_status const status = c->call(s, &control, &err);
    if (threads > 1 && status == RPO_OK) continue; /* the others were done before it was asked */
    CHECK_EQUAL(status, RPO_ECANCELED);
    CHECK_EQUAL(err.code, RPO_ECANCELED);
    CHECK(strstr(err.message, "cancel") != NULL);
    CHECK_EQUAL(rpo_mem_live, live);
  }
}

static void cancelled_at_each_poll(void) {
  rpo_poll_seconds = 0.0;
  for (int kind = 0; kind < STAGES; kind++) {
    stage s;
    stage_start(&s, kind);
    for (int i = 0; i < CALLS; i++) {
      if (!call_fits(&all_calls[i], kind)) continue;
      mini_context("%s, stage %d", all_calls[i].name, kind);
      cancel_each(&s, &all_calls[i], 1);
      cancel_each(&s, &all_calls[i], 2);
    }
    stage_end(&s);
  }
  rpo_poll_seconds = 0.05;
}

int main(void) {
  RUN(without_memory);
  RUN(cancelled_at_each_poll);
  (void)remove("test_calls.rpo");
  mini_context("%s", "");
  CHECK_EQUAL(rpo_mem_live, 0);
  return mini_done("calls");
}
