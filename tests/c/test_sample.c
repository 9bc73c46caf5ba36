/* The rows that a round sees and the others behind them; what they add, made by several threads. */
#include "boost.h"
#include "par.h"
#include "problem.h"

enum { ROWS = 4000 };

static double weight_of(int kind, int64_t row) {
  if (kind == 0) return 1.0;
  if (kind == 1) return 0.0;
  return row % 3 == 0 ? 0.0 : 0.5 + (double)(row % 5);
}

/* How many rows are drawn, ascending; behind them, ascending, are the others, so that each is there
 * once; those of weight 0 are never drawn. */
static int64_t check_parts(double subsample, const double *weight, int64_t n, int32_t *row) {
  int64_t const count = rpo_boost_sample(5, 2, subsample, weight, n, row);
  int64_t drawable = 0, drawn = 0, other = 0;
  for (int64_t i = 0; i < n; i++) drawable += weight[i] > 0.0;
  CHECK(count <= drawable && (count > 0 || drawable == 0));
  if (subsample >= 1.0) CHECK_EQUAL(count, drawable);
  for (int64_t i = 0; i < n; i++) {
    int const is_drawn = drawn < count && row[drawn] == i;
    drawn += is_drawn;
    if (is_drawn) {
      CHECK(weight[i] > 0.0);
    } else {
      CHECK(count + other < n && row[count + other] == i);
      other++;
    }
  }
  CHECK_EQUAL(drawn, count);
  CHECK_EQUAL(drawn + other, n);
  return count;
}

static void parts(void) {
  static int64_t const sizes[] = {1, 2, 3, 8, 129, ROWS};
  static double const shares[] = {0.0, 1e-9, 0.1, 0.7, 1.0};
  static double weight[ROWS];
  static int32_t row[ROWS];
  for (int kind = 0; kind < 3; kind++) {
    for (int64_t i = 0; i < ROWS; i++) weight[i] = weight_of(kind, i);
    for (int s = 0; s < 6; s++) {
      for (int share = 0; share < 5; share++) {
        mini_context("weights %d, %d rows, %g", kind, (int)sizes[s], shares[share]);
        int64_t const count = check_parts(shares[share], weight, sizes[s], row);
        if (sizes[s] < ROWS || kind != 0 || share < 2) continue;
        double const by = 4.0 * sqrt(shares[share] * (1.0 - shares[share]) / ROWS) + 1e-12;
        CHECK_NEAR((double)count / ROWS, shares[share], by);
      }
    }
  }
}

/* A row is drawn by its own number: neither other rows nor their weights change that. */
static void rows_for_themselves(void) {
  static double weight[ROWS];
  static int32_t all[ROWS], some[ROWS];
  for (int64_t i = 0; i < ROWS; i++) weight[i] = 1.0;
  int64_t const many = rpo_boost_sample(5, 2, 0.3, weight, ROWS, all);
  int64_t const few = rpo_boost_sample(5, 2, 0.3, weight, ROWS / 2, some);
  CHECK(few > 0 && few < many && memcmp(all, some, (size_t)few * sizeof *all) == 0);
  CHECK(all[few] >= ROWS / 2);
  for (int64_t i = 0; i < ROWS; i += 2) weight[i] = 0.0;
  int64_t const odd = rpo_boost_sample(5, 2, 0.3, weight, ROWS, some);
  int64_t next = 0;
  for (int64_t i = 0; i < many; i++) {
    if (all[i] % 2 == 0) continue;
    CHECK(next < odd && some[next] == all[i]);
    next++;
  }
  CHECK_EQUAL(next, odd);
  CHECK_EQUAL(rpo_boost_sample(5, 2, 0.3, NULL, 4, some), 0);
  CHECK_EQUAL(rpo_boost_sample(5, 2, 0.3, weight, 4, NULL), 0);
}

/* Another round, or another seed, draws other rows. */
static void rounds_differ(void) {
  static double weight[ROWS];
  static int32_t first[ROWS], second[ROWS];
  for (int64_t i = 0; i < ROWS; i++) weight[i] = 1.0;
  for (int other = 0; other < 2; other++) {
    rpo_boost_sample(5, 2, 0.5, weight, ROWS, first);
    rpo_boost_sample(5 + (other == 0), 2 + (other == 1), 0.5, weight, ROWS, second);
    CHECK(memcmp(first, second, 1000 * sizeof *first) != 0);
  }
}

/* ---- Rounds of many rows ---- */

enum { MANY = 9000, OUTPUTS = 17, ROUNDS = 3, CASES = 6 };

typedef struct large {
  problem p;
  rpo_features *features;
  double matrix[2 * OUTPUTS], weight[MANY];
  int is_weighted;
} large;

static void large_start(large *l, int number) {
  static int32_t const kinds[CASES] = {RPO_PROJECT_GAUSSIAN, RPO_PROJECT_MATRIX,
                                       RPO_PROJECT_TOP,      RPO_PROJECT_NORM_SAMPLING,
                                       RPO_PROJECT_NONE,     RPO_PROJECT_GAUSSIAN};
  dice d = {5};
  rpo_error err;
  memset(l, 0, sizeof *l);
  l->p = problem_new(table_random(&d, MANY, 6, 9, 0.1, 0.05),
                     table_random(&d, MANY, OUTPUTS, 0, 0.0, 0.0));
  for (int i = 0; i < 2 * OUTPUTS; i++) l->matrix[i] = dice_real(&d) - 0.5;
  for (int i = 0; i < MANY; i++) l->weight[i] = dice_real(&d) < 0.1 ? 0.0 : dice_real(&d);
  l->is_weighted = number % 2;
  l->p.projection.kind = kinds[number];
  l->p.projection.components = number == 5 ? 1 : 2;
  l->p.projection.matrix = kinds[number] == RPO_PROJECT_MATRIX ? l->matrix : NULL;
  problem_set(&l->p, RPO_OPT_LOSS, RPO_LOSS_SQUARED);
  problem_set(&l->p, RPO_OPT_RELABEL, 1);
  problem_set(&l->p, RPO_OPT_MAX_DEPTH, 3);
  problem_set(&l->p, RPO_OPT_SUBSAMPLE, 0.7);
  rpo_matrix const X = problem_x(&l->p);
  CHECK_OK(rpo_features_new(&X, 256, NULL, &l->features, &err), &err);
}

static void large_end(large *l) {
  rpo_features_free(l->features);
  problem_free(&l->p);
}

static rpo_boost *large_begin(large *l, const rpo_control *control) {
  rpo_matrix const Y = problem_y(&l->p);
  rpo_options *options = NULL;
  rpo_boost *boost = NULL;
  rpo_boost_data data;
  rpo_error err;
  memset(&data, 0, sizeof data);
  data.Y = &Y;
  data.weight = l->is_weighted ? l->weight : NULL;
  CHECK_OK(problem_options(&l->p, &options, &err), &err);
  CHECK_OK(rpo_boost_new(options, l->features, &data, &l->p.projection, control, &boost, &err),
           &err);
  rpo_options_free(options);
  return boost;
}

static float *scores_of(rpo_boost *boost) {
  static int32_t all[MANY];
  float *const scores = mini_room(MANY * OUTPUTS, 4);
  rpo_error err;
  for (int i = 0; i < MANY; i++) all[i] = i;
  CHECK_EQUAL(rpo_boost_rounds(boost), ROUNDS);
  CHECK_OK(rpo_boost_scores(boost, all, MANY, NULL, scores, &err), &err);
  return scores;
}

/* Stops once so many polls were left; then it never does. */
static int32_t stop_at(void *user, int64_t done, int64_t total) {
  int64_t *const left = user;
  CHECK(done >= 0 && done <= total);
  return (*left)-- == 0;
}

/* The same scores by any threads, and by runs that were stopped within a round. */
static void blocks_of_rows(void) {
  rpo_poll_seconds = 0.0;
  for (int number = 0; number < CASES; number++) {
    large l;
    rpo_error err;
    rpo_control control = threads_of(1);
    large_start(&l, number);
    rpo_boost *boost = large_begin(&l, &control);
    CHECK_OK(rpo_boost_run(boost, ROUNDS, &control, &err), &err);
    float *const expected = scores_of(boost);
    rpo_boost_free(boost);
    for (int64_t polls = 0; polls < 40; polls = 2 * polls + 1) {
      int64_t left = polls;
      mini_context("case %d, poll %d", number, (int)polls);
      control = threads_of(3);
      control.progress = stop_at;
      control.user = &left;
      boost = large_begin(&l, NULL);
      for (int calls = 0; rpo_boost_rounds(boost) < ROUNDS; calls++) {
        boost->last_seconds = 1.0; /* as if rounds were long: asked for progress within */
        rpo_status const status = rpo_boost_run(boost, 1, &control, &err);
        CHECK(status == RPO_OK || (status == RPO_ECANCELED && left < 0));
        if (!CHECK(calls <= ROUNDS)) break;
      }
      CHECK(left < 0);
      float *const found = scores_of(boost);
      CHECK(memcmp(expected, found, MANY * OUTPUTS * sizeof *found) == 0);
      free(found);
      rpo_boost_free(boost);
    }
    free(expected);
    large_end(&l);
  }
  rpo_poll_seconds = 0.05;
}

/* Without projection, gradients wait where histograms take them up: beside Y and scores, both in single
 * precision, nothing else is of all rows and outputs. */
static void arrays_of_all_outputs(void) {
  large l;
  large_start(&l, 4);
  rpo_mem_asked = 0;
  rpo_boost *const boost = large_begin(&l, NULL);
  int64_t const padded = boost->stride, row = 2 * 4 * padded + 8 * boost->z_apart;
  CHECK(padded >= OUTPUTS && boost->z_apart > OUTPUTS);
  CHECK(rpo_mem_asked < MANY * (row + 64) + 100000);
  rpo_boost_free(boost);
  large_end(&l);
}

int main(void) {
  RUN(arrays_of_all_outputs);
  RUN(blocks_of_rows);
  RUN(parts);
  RUN(rows_for_themselves);
  RUN(rounds_differ);
  return mini_done("sample");
}
