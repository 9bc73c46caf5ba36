/* Eight threads fit, save, load and predict at random, for as long as told: test_soak [SECONDS]. Every
 * model has the bytes, every prediction the bits, of a run alone; memory stays where it was. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "kinds.h"
#include "memory.h"

enum { THREADS = 8, PROBLEMS = 8, ROWS = 90 };

/* A problem with what a run alone makes of it: nothing here changes while the threads run. */
typedef struct sample {
  problem p;
  rpo_matrix X, Y;
  int boosted;
  rpo_forest *forest;
  double *prediction; /* rows x outputs */
} sample;

static sample samples[PROBLEMS];
static double until; /* seconds */
static int64_t runs[THREADS], faults[THREADS];

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rpo_forest *fit(const sample *s, int32_t threads) {
  rpo_control const control = threads_of(threads);
  rpo_boost_data data;
  rpo_options *options = NULL;
  rpo_features *features = NULL;
  rpo_boost *boost = NULL;
  rpo_forest *out = NULL;
  memset(&data, 0, sizeof data);
  data.Y = &s->Y;
  rpo_status status = problem_options(&s->p, &options, NULL);
  if (status == RPO_OK) status = rpo_features_new(&s->X, 0, &control, &features, NULL);
  if (status == RPO_OK && !s->boosted) {
    status = rpo_forest_fit(options, features, &s->Y, NULL, NULL, s->p.weight, &s->p.projection,
                            &control, &out, NULL);
  } else if (status == RPO_OK) {
    status = rpo_boost_new(options, features, &data, &s->p.projection, &control, &boost, NULL);
    if (status == RPO_OK) status = rpo_boost_run(boost, 5, &control, NULL);
    if (status == RPO_OK) status = rpo_boost_forest(boost, 5, &out, NULL);
  }
  rpo_boost_free(boost);
  rpo_features_free(features);
  rpo_options_free(options);
  return out;
}

/* ---- What a thread does ---- */

/* As forests_equal, which counts checks and is for one thread. */
static int same_bytes(const rpo_forest *a, const rpo_forest *b) {
  int64_t const size = rpo_forest_bytes(a);
  if (a == NULL || size != rpo_forest_bytes(b)) return 0;
  char *const x = mini_room(size, 1), *const y = mini_room(size, 1);
  int const read = rpo_forest_dump(a, x, NULL) == RPO_OK && rpo_forest_dump(b, y, NULL) == RPO_OK;
  int const same = read && memcmp(x, y, (size_t)size) == 0;
  free(x);
  free(y);
  return same;
}

static int64_t check_fit(const sample *s, int32_t threads) {
  rpo_forest *const f = fit(s, threads);
  int const same = same_bytes(f, s->forest);
  rpo_forest_free(f);
  return !same;
}

static int64_t check_predict(const sample *s, const rpo_forest *f, int32_t threads) {
  rpo_control const control = threads_of(threads);
  int64_t const size = s->X.rows * rpo_forest_outputs(f);
  double *const out = mini_room(size, 8);
  rpo_status const status = rpo_forest_predict(f, &s->X, &control, out, NULL);
  int const same = status == RPO_OK && memcmp(out, s->prediction, (size_t)size * 8) == 0;
  free(out);
  return !same;
}

static int64_t check_file(const sample *s, int thread) {
  char path[64];
  rpo_forest *f = NULL;
  (void)snprintf(path, sizeof path, "test_soak_%d.rpo", thread);
  if (rpo_forest_save(s->forest, path, NULL, 0, NULL) != RPO_OK) return 1;
  if (rpo_forest_load(path, &f, NULL) != RPO_OK) return 1;
  int64_t const wrong = !same_bytes(f, s->forest) || check_predict(s, f, 1);
  rpo_forest_free(f);
  return wrong;
}

static void *work(void *number) {
  int64_t const thread = *(const int64_t *)number;
  dice d = {900 + (uint64_t)thread};
  do {
    const sample *const s = &samples[dice_below(&d, PROBLEMS)];
    int32_t const threads = dice_below(&d, 8) == 0 ? 2 : 1;
    switch (dice_below(&d, 4)) {
      case 0: faults[thread] += check_fit(s, threads); break;
      case 1: faults[thread] += check_file(s, (int)thread); break;
      default: faults[thread] += check_predict(s, s->forest, threads);
    }
    runs[thread]++;
  } while (now() < until);
  return NULL;
}

static void run_threads(double seconds) {
  pthread_t id[THREADS];
  int64_t number[THREADS];
  until = now() + seconds;
  for (int i = 0; i < THREADS; i++) {
    number[i] = i;
    CHECK(pthread_create(&id[i], NULL, work, &number[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(id[i], NULL) == 0);
}

/* ---- Samples ---- */

static void sample_start(sample *s, int number) {
  dice d = {50 + (uint64_t)number};
  s->p = random_problem(&d, number % X_KINDS, (number * 3 + 1) % Y_KINDS, ROWS, 6, 0.05);
  s->boosted = number >= PROBLEMS / 2;
  s->X = problem_x(&s->p);
  s->Y = problem_y(&s->p);
  problem_set(&s->p, RPO_OPT_N_TREES, 4);
  problem_set(&s->p, RPO_OPT_BOOTSTRAP, number % 2);
  if (s->boosted) {
    problem_set(&s->p, RPO_OPT_MAX_DEPTH, 4);
    problem_set(&s->p, RPO_OPT_SUBSAMPLE, 0.7);
    problem_set(&s->p, RPO_OPT_RELABEL, number % 2);
  }
  if (number % 2 == 0) {
    s->p.projection.kind = RPO_PROJECT_GAUSSIAN;
    s->p.projection.components = s->boosted ? 1 : 3;
  }
  s->forest = fit(s, 1);
  if (!CHECK(s->forest != NULL)) exit(mini_done("soak"));
  s->prediction = mini_room(s->X.rows * rpo_forest_outputs(s->forest), 8);
  CHECK_EQUAL(rpo_forest_predict(s->forest, &s->X, NULL, s->prediction, NULL), RPO_OK);
}

int main(int count, char **argument) {
  double const seconds = count > 1 ? strtod(argument[1], NULL) : 5.0;
  int64_t total = 0;
  for (int i = 0; i < PROBLEMS; i++) sample_start(&samples[i], i);
  run_threads(seconds / 5.0); /* thread stacks and pools are there */
  int64_t const held = memory_held();
  run_threads(seconds);
  int64_t const more = memory_held() - held;
  for (int i = 0; i < THREADS; i++) {
    char path[64];
    CHECK_EQUAL(faults[i], 0);
    total += runs[i];
    (void)snprintf(path, sizeof path, "test_soak_%d.rpo", i);
    (void)remove(path);
  }
  printf("%lld calls of %d threads in %.0f s; memory grew by %lld bytes\n", (long long)total,
         THREADS, seconds, (long long)more);
  CHECK(more < 8 << 20);
  for (int i = 0; i < PROBLEMS; i++) {
    rpo_forest_free(samples[i].forest);
    free(samples[i].prediction);
    problem_free(&samples[i].p);
  }
  return mini_done("soak");
}
