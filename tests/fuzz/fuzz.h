/* What the fuzzed programs share: bytes that become choices, and what every call must keep to. */
#ifndef FUZZ_H
#define FUZZ_H
#include "../c/data.h"
#include "mem.h"
#include "par.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Choices: byte after byte; behind the last one all are 0, the ordinary case ---- */

typedef struct source {
  const uint8_t *at, *end;
} source;

static inline int64_t choose(source *s, int64_t below) {
  return s->at == s->end || below < 2 ? 0 : *s->at++ % below;
}

/* True for one byte value in so many. */
static inline int rarely(source *s, int one_in) { return choose(s, one_in) == one_in - 1; }

static inline dice choose_dice(source *s) {
  dice d = {(uint64_t)choose(s, 256) * 77 + 5};
  return d;
}

/* ---- What must hold ---- */

#define MUST(condition)                                                              \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                       \
    }                                                                                \
  } while (0)

/* What a run allows calls to fail with, apart from refusals. */
typedef struct limits {
  int starved;      /* allocations fail */
  int64_t patience; /* the callback cancels when it is asked so often by a call; 0: never */
  int64_t asked;
  int hook;    /* so may another */
  int damaged; /* the model's contents were not looked at when it was opened */
} limits;

/* A failure says why, in a sentence; so does its code. */
static inline int fine(rpo_status status, const rpo_error *err, limits *l) {
  l->asked = 0;
  if (status == RPO_OK) return 1;
  MUST(err->code == (int32_t)status);
  if (getenv("FUZZ_TALKS") != NULL) fprintf(stderr, "%d: %s\n", (int)status, err->message);
  MUST(err->message[0] != 0 && memchr(err->message, 0, sizeof err->message) != NULL);
  MUST(status == RPO_EINVAL || status == RPO_EFORMAT || (status == RPO_ENOMEM && l->starved) ||
       (status == RPO_ECANCELED && (l->patience > 0 || l->hook)));
  return 0;
}

static inline int32_t patience(void *user, int64_t done, int64_t total) {
  limits *const l = user;
  MUST(done >= 0 && done <= total);
  return l->patience > 0 && ++l->asked >= l->patience;
}

/* ---- Output arrays: of exactly the length told, so that the address sanitizer sees a step beyond ---- */

static inline void *exactly(int64_t count, int64_t size) {
  void *const block = malloc((size_t)(count * size));
  MUST(block != NULL || count * size == 0);
  return block;
}

#endif
