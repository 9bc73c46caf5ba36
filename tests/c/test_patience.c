/* How long a caller waits who wants to stop: the longest stretch of work between two polls, in seconds
 * of the processor's time, of every long call on problems of some size. And what a thousand fits that
 * were stopped leave behind. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "memory.h"
#include "par.h"
#include "problem.h"
#include "mem.h"

enum { ROWS = 20000, COLUMNS = 10, OUTPUTS = 60 };

static double work_time(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The longest wait ---- */

typedef struct stopwatch {
  double began, last, longest;
  int64_t polls;
} stopwatch;

static void look(stopwatch *w) {
  double const now = work_time();
  if (now - w->last > w->longest) w->longest = now - w->last;
  w->last = now;
}

static int32_t polled(void *user, int64_t done, int64_t total) {
  stopwatch *const w = user;
  (void)done;
  (void)total;
  w->polls++;
  look(w);
  return 0;
}

static stopwatch clock_of;

static rpo_control start_clock(void) {
  rpo_control const c = {1, 0, polled, &clock_of, NULL};
  memset(&clock_of, 0, sizeof clock_of);
  clock_of.began = clock_of.last = work_time();
  return c;
}

static void stop_clock(const char *name) {
  look(&clock_of);
  mini_context("%s", name);
  printf("%-28s %7.3f s, %8lld polls, longest wait %6.3f s\n", name, clock_of.last - clock_of.began,
         (long long)clock_of.polls, clock_of.longest);
  CHECK(clock_of.longest < 0.2 || !MEMORY_IS_TOLD); /* sanitizers take their time */
}

#define TIMED(name, call)                      \
  do {                                         \
    rpo_control const control = start_clock(); \
    CHECK_OK(call, &err);                      \
    stop_clock(name);                          \
  } while (0)

typedef struct large {
  table x, y;
  rpo_matrix X, Y;
  rpo_options *options;
  rpo_features *features;
  double *real;
  int64_t *whole, *rows;
} large;

static void set(const large *l, rpo_option id, double value) {
  CHECK_EQUAL(rpo_options_set(l->options, (int32_t)id, value, NULL), RPO_OK);
}

static void read_forest(large *l, const rpo_forest *f) {
  rpo_error err;
  TIMED("predict", rpo_forest_predict(f, &l->X, &control, l->real, &err));
  TIMED("predict_topk", rpo_forest_predict_topk(f, &l->X, 5, &control, l->whole, l->real, &err));
  TIMED("apply", rpo_forest_apply(f, &l->X, &control, l->whole, &err));
  TIMED("paths", rpo_forest_paths(f, &l->X, &control, NULL, l->whole, NULL, &err));
}

static void wait_for_forests(large *l) {
  rpo_projection p = {RPO_PROJECT_GAUSSIAN, 1, 50, 1.0, 0, 0, NULL};
  rpo_forest *f = NULL, *other = NULL;
  rpo_leaf_rows *rows = NULL;
  rpo_error err;
  set(l, RPO_OPT_N_TREES, 3);
  set(l, RPO_OPT_BOOTSTRAP, 1);
  TIMED("features_new", rpo_features_new(&l->X, 0, &control, &l->features, &err));
  TIMED("projection_apply", rpo_projection_apply(&p, &l->Y, &control, l->real, &err));
  TIMED("forest_fit",
        rpo_forest_fit(l->options, l->features, &l->Y, NULL, NULL, NULL, NULL, &control, &f, &err));
  rpo_forest_free(f);
  f = NULL;
  TIMED("forest_fit, projected",
        rpo_forest_fit(l->options, l->features, &l->Y, NULL, NULL, NULL, &p, &control, &f, &err));
  read_forest(l, f);
  TIMED("predict_oob", rpo_forest_predict_oob(f, &l->X, NULL, NULL, &control, l->real, NULL, &err));
  TIMED("agreement", rpo_forest_agreement(f, &l->X, &l->Y, l->rows, NULL, &control, l->real, &err));
  TIMED("leaf_rows_new", rpo_leaf_rows_new(f, &l->X, NULL, &control, &rows, &err));
  TIMED("weights", rpo_forest_weights(f, rows, &l->X, &control, l->whole, NULL, NULL, &err));
  TIMED("importances_on",
        rpo_forest_importances_on(f, &l->X, &l->Y, NULL, &control, l->real, &err));
  TIMED("relabel", rpo_forest_relabel(f, l->features, &l->Y, NULL, &control, &other, &err));
  rpo_leaf_rows_free(rows);
  rpo_forest_free(other);
  rpo_forest_free(f);
}

static void wait_for_draws(large *l) { /* a sample larger than the rows */
  rpo_forest *f = NULL;
  rpo_error err;
  set(l, RPO_OPT_N_TREES, 1);
  set(l, RPO_OPT_MAX_SAMPLES, 1e8);
  set(l, RPO_OPT_MAX_DEPTH, 1);
  TIMED("forest_fit, many draws",
        rpo_forest_fit(l->options, l->features, &l->Y, NULL, NULL, NULL, NULL, &control, &f, &err));
  rpo_forest_free(f);
  set(l, RPO_OPT_MAX_SAMPLES, 0);
}

static void wait_for_boosting(large *l) {
  rpo_boost_data data;
  rpo_error err;
  memset(&data, 0, sizeof data);
  data.Y = &l->Y;
  set(l, RPO_OPT_MAX_DEPTH, 4);
  for (int i = 0; i < 2; i++) {
    rpo_boost *b = NULL;
    rpo_forest *f = NULL;
    set(l, RPO_OPT_LEAF, i == 0 ? RPO_LEAF_NEWTON : RPO_LEAF_MEAN);
    TIMED("boost_new", rpo_boost_new(l->options, l->features, &data, NULL, &control, &b, &err));
    TIMED("boost_run", rpo_boost_run(b, 3, &control, &err));
    CHECK_OK(rpo_boost_forest(b, rpo_boost_rounds(b), &f, &err), &err);
    if (i == 0) read_forest(l, f);
    rpo_forest_free(f);
    rpo_boost_free(b);
  }
}

static void wait_for_deep_boosting(large *l) { /* thousands of splits, each a job of its own */
  rpo_projection const p = {RPO_PROJECT_GAUSSIAN, 0, 1, 1.0, 0, 0, NULL};
  rpo_boost_data data;
  rpo_boost *b = NULL;
  rpo_error err;
  memset(&data, 0, sizeof data);
  data.Y = &l->Y;
  set(l, RPO_OPT_MAX_DEPTH, 1e9);
  CHECK_OK(rpo_boost_new(l->options, l->features, &data, &p, NULL, &b, &err), &err);
  TIMED("boost_run, deep", rpo_boost_run(b, 1, &control, &err));
  rpo_boost_free(b);
}

static void waits(void) {
  large l;
  dice d = {77};
  memset(&l, 0, sizeof l);
  l.x = table_random(&d, ROWS, COLUMNS, 0, 0.0, 0.01);
  l.y = table_random(&d, ROWS, OUTPUTS, 0, 0.0, 0.0);
  l.X = table_dense(&l.x);
  l.Y = table_dense(&l.y);
  l.real = mini_room(ROWS * OUTPUTS, 8);
  l.whole = mini_room(ROWS * 5, 8);
  l.rows = mini_room(ROWS, 8);
  for (int64_t i = 0; i < ROWS; i++) l.rows[i] = i;
  CHECK_EQUAL(rpo_options_new(&l.options, NULL), RPO_OK);
  rpo_poll_seconds = 0.0; /* each poll asks */
  wait_for_forests(&l);
  wait_for_draws(&l);
  wait_for_boosting(&l);
  wait_for_deep_boosting(&l);
  rpo_poll_seconds = 0.05;
  rpo_features_free(l.features);
  rpo_options_free(l.options);
  table_free(&l.x);
  table_free(&l.y);
  free(l.real);
  free(l.whole);
  free(l.rows);
}

/* ---- A thousand fits ---- */

static int32_t stop_later(void *user, int64_t done, int64_t total) {
  int64_t *const left = user;
  (void)done;
  (void)total;
  return --*left < 0;
}

static rpo_status boost_some(problem *p, const rpo_control *control, rpo_error *err) {
  rpo_matrix const X = problem_x(p), Y = problem_y(p);
  rpo_boost_data data;
  rpo_features *features = NULL;
  rpo_options *options = NULL;
  rpo_boost *b = NULL;
  memset(&data, 0, sizeof data);
  data.Y = &Y;
  rpo_status status = problem_options(p, &options, err);
  if (status == RPO_OK) status = rpo_features_new(&X, 0, control, &features, err);
  if (status == RPO_OK) status = rpo_boost_new(options, features, &data, NULL, control, &b, err);
  if (status == RPO_OK) status = rpo_boost_run(b, 3, control, err);
  rpo_boost_free(b);
  rpo_features_free(features);
  rpo_options_free(options);
  return status;
}

static void a_thousand_fits(void) {
  enum { FITS = 1000, WARM = 100 };
  dice d = {5};
  problem p =
      problem_new(table_random(&d, 600, 5, 0, 0.0, 0.0), table_random(&d, 600, 30, 0, 0.0, 0.0));
  int64_t const live = rpo_mem_live;
  int64_t cancelled = 0, held = 0;
  problem_set(&p, RPO_OPT_N_TREES, 4);
  rpo_poll_seconds = 0.0;
  for (int64_t i = 0; cancelled < FITS + WARM; i++) {
    int64_t left = dice_below(&d, 12);
    rpo_control const control = {i % 10 == 9 ? 2 : 1, 0, stop_later, &left, NULL};
    rpo_forest *f = NULL;
    rpo_error err;
    if (cancelled == WARM) held = memory_held();
    rpo_status const status =
        i % 3 == 0 ? boost_some(&p, &control, &err) : problem_fit(&p, &control, NULL, &f, &err);
    CHECK(status == RPO_OK || status == RPO_ECANCELED);
    cancelled += status == RPO_ECANCELED;
    rpo_forest_free(f);
    CHECK_EQUAL(rpo_mem_live, live);
  }
  rpo_poll_seconds = 0.05;
  int64_t const more = memory_held() - held;
  printf("after %d cancelled fits memory grew by %lld bytes\n", FITS, (long long)more);
  CHECK(more < 1 << 20);
  problem_free(&p);
}

int main(void) {
  RUN(waits);
  RUN(a_thousand_fits);
  return mini_done("patience");
}
