/* Ways through boosting besides the usual one: without scores (boost_low.c), and with the caller's own
 * learner (boost_learner.c). Bits for any number of threads, refusals, and what happens without memory. */
#include "mem.h"
#include "problem.h"

enum { ROWS = 70, OUTPUTS = 256, ROUNDS = 4 };

static problem sparse_problem(int64_t rows) {
  dice d = {17};
  table const x = table_random(&d, rows, 5, 9, 0.0, 0.05);
  problem p = problem_new(x, table_random(&d, rows, OUTPUTS, 3, 0.97, 0.0));
  p.sparse_y = 1;
  p.projection.kind = RPO_PROJECT_GAUSSIAN;
  p.projection.components = 1;
  problem_set(&p, RPO_OPT_LOSS, RPO_LOSS_SQUARED);
  problem_set(&p, RPO_OPT_LEAF, RPO_LEAF_MEAN);
  problem_set(&p, RPO_OPT_RELABEL, 0);
  problem_set(&p, RPO_OPT_MAX_DEPTH, 4);
  problem_set(&p, RPO_OPT_SUBSAMPLE, 0.8);
  problem_set(&p, RPO_OPT_TRAIN_LOSS, 1);
  return p;
}

typedef struct run {
  problem *p;
  rpo_features *features;
  uint8_t watched[2000];
  rpo_control control;
} run;

static run run_new(problem *p) {
  run r = {p, NULL, {0}, threads_of(1)};
  rpo_matrix const X = problem_x(p);
  rpo_error err;
  CHECK_OK(rpo_features_new(&X, 256, NULL, &r.features, &err), &err);
  for (int64_t i = 0; i < p->x.rows; i += 7) r.watched[i] = 1;
  return r;
}

static rpo_status run_begin(run *r, rpo_boost **out, rpo_error *err) {
  rpo_matrix const Y = problem_y(r->p);
  rpo_boost_data data;
  rpo_options *options = NULL;
  memset(&data, 0, sizeof data);
  data.Y = &Y;
  data.watched = r->watched;
  rpo_status status = problem_options(r->p, &options, err);
  if (status == RPO_OK) {
    status = rpo_boost_new(options, r->features, &data, &r->p->projection, &r->control, out, err);
  }
  rpo_options_free(options);
  return status;
}

/* What a round gives the caller, and a learner that predicts X's first column. */
static rpo_status learn(run *r, rpo_boost *boost, rpo_error *err) {
  int32_t rows[2000];
  double z[2000];
  float v[2000], step[OUTPUTS];
  int64_t count = 0;
  rpo_status const status = rpo_boost_project(boost, &r->control, rows, &count, z, err);
  if (status != RPO_OK) return status;
  CHECK(count > 0 && count < r->p->x.rows);
  for (int64_t i = 0; i < count; i++) CHECK(isfinite(z[i]) && !r->watched[rows[i]]);
  for (int64_t i = 0; i < r->p->x.rows; i++) {
    double const x = r->p->x.v[i * r->p->x.cols];
    v[i] = isnan(x) ? 0.5f : (float)x;
  }
  return rpo_boost_add(boost, v, 1, &r->control, step, err);
}

/* ---- Bits ---- */

static void same_scores(int learns, int64_t rows) {
  problem p = sparse_problem(rows);
  run r = run_new(&p);
  int64_t const size = rows * OUTPUTS;
  float *const first = mini_room(size, 4), *const out = mini_room(size, 4);
  int32_t *const all = mini_room(rows, 4);
  double losses[2][2 * (ROUNDS + 1)];
  for (int64_t i = 0; i < rows; i++) all[i] = (int32_t)i;
  for (int32_t threads = 1; threads <= 3; threads++) {
    rpo_boost *boost = NULL;
    rpo_error err;
    r.control = threads_of(threads);
    CHECK_OK(run_begin(&r, &boost, &err), &err);
    for (int i = 0; i < ROUNDS && learns; i++) CHECK_OK(learn(&r, boost, &err), &err);
    if (!learns) CHECK_OK(rpo_boost_run(boost, ROUNDS, &r.control, &err), &err);
    CHECK_EQUAL(rpo_boost_rounds(boost), ROUNDS);
    float *const to = threads == 1 ? first : out;
    double *const loss = losses[threads > 1];
    CHECK_OK(rpo_boost_scores(boost, all, rows, &r.control, to, &err), &err);
    CHECK_OK(rpo_boost_losses(boost, loss, loss + ROUNDS + 1, &err), &err);
    for (int i = 0; i < ROUNDS; i++) {
      CHECK(loss[i] > 0.0 && loss[ROUNDS + 1 + i] > 0.0);
    }
    CHECK(memcmp(first, to, (size_t)size * 4) == 0);
    CHECK(memcmp(losses[0], loss, sizeof losses[0]) == 0 || isnan(loss[ROUNDS]));
    rpo_boost_free(boost);
  }
  free(first);
  free(out);
  free(all);
  rpo_features_free(r.features);
  problem_free(&p);
}

/* Scores of the same rows, asked for again and again, and of others in between. */
static void asked_again(void) {
  problem p = sparse_problem(ROWS);
  run r = run_new(&p);
  int32_t rows[ROWS];
  float *const often = mini_room(ROWS * OUTPUTS, 4), *const once = mini_room(ROWS * OUTPUTS, 4);
  rpo_boost *a = NULL, *b = NULL;
  rpo_error err;
  for (int32_t i = 0; i < ROWS; i++) rows[i] = (i * 3) % ROWS;
  CHECK_OK(run_begin(&r, &a, &err), &err);
  for (int step = 0; step < 9; step++) {
    int64_t const count = step == 5 ? 7 : ROWS - 1;
    if (step % 3 > 0) CHECK_OK(rpo_boost_run(a, step, &r.control, &err), &err);
    CHECK_OK(rpo_boost_scores(a, rows + step / 7, count, &r.control, often, &err), &err);
    CHECK_OK(run_begin(&r, &b, &err), &err);
    CHECK_OK(rpo_boost_run(b, rpo_boost_rounds(a), &r.control, &err), &err);
    CHECK_OK(rpo_boost_scores(b, rows + step / 7, count, &r.control, once, &err), &err);
    mini_context("step %d", step);
    CHECK(memcmp(often, once, (size_t)(count * OUTPUTS) * 4) == 0);
    rpo_boost_free(b);
  }
  rpo_boost_free(a);
  free(often);
  free(once);
  rpo_features_free(r.features);
  problem_free(&p);
}

static void bits(void) {
  mini_context("without scores");
  same_scores(0, ROWS);
  same_scores(0, 2000);
  mini_context("the caller's learner");
  same_scores(1, ROWS);
}

/* ---- Steps found by searching: no other step along a round's tree has less loss ---- */

enum { SEEN = 300, LABELS = 12 };

static double loss_of(int32_t loss, double f, double y) {
  double const s = 2.0 * y - 1.0;
  return loss == RPO_LOSS_LOGISTIC ? log1p(exp(-s * f)) : exp(-0.5 * s * f);
}

/* Of one output, with so much of the last step. */
static double loss_at(int32_t loss, const table *y, const table *w, const float *before,
                      const float *after, int64_t j, double share) {
  double sum = 0.0;
  for (int64_t i = j; i < SEEN * LABELS; i += LABELS) {
    double const f = (double)before[i] + share * ((double)after[i] - (double)before[i]);
    sum += (w == NULL ? 1.0 : w->v[i]) * loss_of(loss, f, y->v[i]);
  }
  return sum;
}

/* All rows in every round, whole steps, leaves that are means. */
static rpo_boost *stepping(const rpo_features *features, const rpo_boost_data *data, int32_t loss,
                           int relabel) {
  static const rpo_projection one = {RPO_PROJECT_GAUSSIAN, 0, 1, 1.0, 0, 0, NULL};
  option_value const said[] = {{RPO_OPT_LOSS, loss},       {RPO_OPT_LEAF, RPO_LEAF_MEAN},
                               {RPO_OPT_RELABEL, relabel}, {RPO_OPT_LEARNING_RATE, 1.0},
                               {RPO_OPT_SUBSAMPLE, 1.0},   {RPO_OPT_MAX_DEPTH, 3},
                               {RPO_OPT_L2, 0.0}};
  rpo_options *options = NULL;
  rpo_boost *boost = NULL;
  rpo_error err;
  CHECK_OK(rpo_options_new(&options, &err), &err);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    CHECK_OK(rpo_options_set(options, (int32_t)said[i].id, said[i].value, &err), &err);
  CHECK_OK(rpo_boost_new(options, features, data, &one, NULL, &boost, &err), &err);
  rpo_options_free(options);
  return boost;
}

static void check_rounds(rpo_boost *boost, int32_t loss, const table *y, const table *w) {
  float *const before = mini_room(SEEN * LABELS, 4), *const after = mini_room(SEEN * LABELS, 4);
  int32_t rows[SEEN];
  rpo_error err;
  for (int32_t i = 0; i < SEEN; i++) rows[i] = i;
  for (int round = 0; round < 3; round++) {
    double fallen = 0.0;
    CHECK_OK(rpo_boost_scores(boost, rows, SEEN, NULL, before, &err), &err);
    CHECK_OK(rpo_boost_run(boost, 1, NULL, &err), &err);
    CHECK_OK(rpo_boost_scores(boost, rows, SEEN, NULL, after, &err), &err);
    for (int64_t j = 0; j < LABELS; j++) {
      double const found = loss_at(loss, y, w, before, after, j, 1.0);
      double const was = loss_at(loss, y, w, before, after, j, 0.0);
      CHECK(found <= was + 1e-4);
      CHECK(found <= loss_at(loss, y, w, before, after, j, 0.9) + 1e-4);
      CHECK(found <= loss_at(loss, y, w, before, after, j, 1.1) + 1e-4);
      fallen += was - found;
    }
    CHECK(fallen > 1.0); /* there were steps */
  }
  free(before);
  free(after);
}

static void check_steps(int32_t loss, int relabel, int sparse, int weighed) {
  dice d = {29};
  table x = table_random(&d, SEEN, 5, 9, 0.0, 0.0);
  table y = table_new(SEEN, LABELS), w = table_new(SEEN, LABELS);
  for (int64_t i = 0; i < SEEN * LABELS; i++) { /* from rare to usual */
    y.v[i] = (int64_t)dice_below(&d, 100) < 1 + 6 * (i % LABELS) + 30 * (x.v[i / LABELS * 5] > 0.0);
    w.v[i] = 0.5 * (double)dice_below(&d, 4);
  }
  rpo_matrix const X = table_dense(&x), W = table_dense(&w);
  rpo_matrix const Y = sparse ? table_compressed(&y, RPO_CSR) : table_dense(&y);
  rpo_boost_data const data = {&Y, NULL, weighed ? &W : NULL, NULL, NULL, NULL, NULL};
  rpo_features *features = NULL;
  rpo_error err;
  mini_context("loss %d, relabel %d, sparse %d, weighed %d", loss, relabel, sparse, weighed);
  CHECK_OK(rpo_features_new(&X, 256, NULL, &features, &err), &err);
  rpo_boost *const boost = stepping(features, &data, loss, relabel);
  check_rounds(boost, loss, &y, weighed ? &w : NULL);
  rpo_boost_free(boost);
  rpo_features_free(features);
  table_free(&x);
  table_free(&y);
  table_free(&w);
}

static void no_other_step_has_less_loss(void) {
  for (int k = 0; k < 16; k++) {
    check_steps(k & 1 ? RPO_LOSS_LOGISTIC : RPO_LOSS_EXPONENTIAL, k >> 1 & 1, k >> 2 & 1,
                k >> 3 & 1);
  }
}

/* ---- More values and leaves than 8 bits count, or 16 ---- */

enum { LOOK = 60 };

/* Two rounds; X's second column orders the rows, the first is noise. */
static rpo_boost *boost_of_values(const rpo_features *features, const rpo_matrix *Y, int alone,
                                  double rate) {
  rpo_boost_data data = {Y, NULL, NULL, NULL, NULL, NULL, NULL};
  rpo_projection const one = {RPO_PROJECT_GAUSSIAN, 0, 1, 1.0, 0, 0, NULL};
  rpo_options *options = NULL;
  rpo_boost *boost = NULL;
  rpo_error err;
  CHECK_OK(rpo_options_new(&options, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_LOSS, RPO_LOSS_SQUARED, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_LEAF, RPO_LEAF_MEAN, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_RELABEL, alone, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_LEARNING_RATE, rate, &err), &err);
  CHECK_OK(rpo_boost_new(options, features, &data, alone ? NULL : &one, NULL, &boost, &err), &err);
  CHECK_OK(rpo_boost_run(boost, 2, NULL, &err), &err);
  rpo_options_free(options);
  return boost;
}

/* What the model says of the first rows is what the fit saw. */
static void check_scores(rpo_boost *boost, const rpo_matrix *X, int64_t d, float *scores) {
  int32_t rows[LOOK];
  double *const out = mini_room(LOOK * d, 8);
  rpo_matrix some = *X;
  rpo_forest *forest = NULL;
  rpo_error err;
  some.rows = LOOK;
  for (int32_t i = 0; i < LOOK; i++) rows[i] = i;
  CHECK_OK(rpo_boost_scores(boost, rows, LOOK, NULL, scores, &err), &err);
  CHECK_OK(rpo_boost_forest(boost, 2, &forest, &err), &err);
  CHECK_OK(rpo_forest_predict(forest, &some, NULL, out, &err), &err);
  for (int64_t i = 0; i < LOOK * d; i++) CHECK_NEAR(out[i], (double)scores[i], 1e-5);
  rpo_forest_free(forest);
  free(out);
}

/* Fully grown on rows that differ, with a rate of 1, one output is met at once. */
static void many_codes(int64_t n) {
  dice d = {8};
  table x = table_random(&d, n, 2, 2, 0.0, 0.0), y = table_random(&d, n, 1, 0, 0.0, 0.0);
  for (int64_t i = 0; i < n; i++) x.v[2 * i + 1] = (double)(i * 7919 % n);
  rpo_matrix const X = table_dense(&x), Y = table_dense(&y);
  rpo_features *features = NULL;
  float scores[LOOK];
  mini_context("%lld values", (long long)n);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &features, NULL), RPO_OK);
  rpo_boost *const boost = boost_of_values(features, &Y, 1, 1.0);
  check_scores(boost, &X, 1, scores);
  for (int64_t i = 0; i < LOOK; i++) CHECK_NEAR((double)scores[i], y.v[i], 1e-5);
  rpo_boost_free(boost);
  rpo_features_free(features);
  table_free(&x);
  table_free(&y);
}

/* Without scores: a leaf's number has 8, 16 or 32 bits; outputs are ones or numbers. */
static void many_leaves(int64_t n, int ones) {
  dice d = {9};
  table x = table_random(&d, n, 2, 2, 0.0, 0.0), value = table_random(&d, n, 1, 0, 0.0, 0.0);
  int32_t *const start = mini_room(n + 1, 4), *const index = mini_room(n, 4);
  float *const scores = mini_room(LOOK * OUTPUTS, 4);
  for (int64_t i = 0; i < n; i++) {
    x.v[2 * i + 1] = (double)(i * 7919 % n);
    start[i + 1] = (int32_t)i + 1;
    index[i] = (int32_t)(dice_next(&d) % OUTPUTS);
  }
  rpo_matrix const X = table_dense(&x);
  rpo_matrix const Y = {n, OUTPUTS, RPO_CSR, RPO_F64, RPO_I32, 0, ones ? NULL : value.v,
                        0, 0,       start,   index};
  rpo_features *features = NULL;
  mini_context("%lld leaves, ones %d", (long long)n, ones);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &features, NULL), RPO_OK);
  rpo_boost *const boost = boost_of_values(features, &Y, 0, 0.5);
  check_scores(boost, &X, OUTPUTS, scores);
  rpo_boost_free(boost);
  rpo_features_free(features);
  table_free(&x);
  table_free(&value);
  free(start);
  free(index);
  free(scores);
}

static void sizes(void) {
  static const int64_t rows[] = {200, 600, 66000};
  for (int k = 0; k < 3; k++) {
    many_codes(rows[k]);
    many_leaves(rows[k], 0);
    many_leaves(rows[k], 1);
  }
}

/* ---- Memory ---- */

typedef struct attempt {
  run *r;
  int learns;
  rpo_boost *boost; /* begun already; NULL: of its own */
} attempt;

static rpo_status try_run(const attempt *a, rpo_error *err) {
  rpo_boost *boost = a->boost;
  rpo_status status = boost == NULL ? run_begin(a->r, &boost, err) : RPO_OK;
  if (status == RPO_OK) {
    status = a->learns ? learn(a->r, boost, err) : rpo_boost_run(boost, 1, NULL, err);
  }
  if (status == RPO_OK && a->boost == NULL) {
    int32_t const rows[2] = {3, 1};
    float out[2 * OUTPUTS];
    status = rpo_boost_scores(boost, rows, 2, NULL, out, err);
  }
  if (a->boost == NULL) rpo_boost_free(boost);
  return status;
}

static void until_it_succeeds(const attempt *a) {
  int64_t const live = rpo_mem_live;
  for (int64_t n = 0; n < 2000; n++) {
    rpo_error err;
    memset(&err, 0, sizeof err);
    rpo_mem_fail_after = n;
    rpo_status const status = try_run(a, &err);
    rpo_mem_fail_after = -1;
    if (status == RPO_OK) {
      CHECK(n > 3);
      return;
    }
    CHECK_EQUAL(status, RPO_ENOMEM);
    CHECK(strlen(err.message) > 0);
    if (a->boost == NULL) CHECK_EQUAL(rpo_mem_live, live);
  }
  CHECK(0);
}

static void memory(void) {
  int64_t const live = rpo_mem_live;
  problem p = sparse_problem(ROWS);
  run r = run_new(&p);
  for (int learns = 0; learns < 2; learns++) {
    attempt const a = {&r, learns, NULL};
    mini_context("memory, learns %d", learns);
    until_it_succeeds(&a);
  }
  /* A round that failed can be run again, to the same model. */
  rpo_boost *boost[2] = {NULL, NULL};
  rpo_forest *forest[2] = {NULL, NULL};
  rpo_error err;
  for (int k = 0; k < 2; k++) CHECK_OK(run_begin(&r, &boost[k], &err), &err);
  for (int i = 0; i < ROUNDS; i++) {
    attempt const again = {&r, 0, boost[1]};
    until_it_succeeds(&again);
  }
  CHECK_OK(rpo_boost_run(boost[0], ROUNDS, NULL, &err), &err);
  for (int k = 0; k < 2; k++) {
    CHECK_OK(rpo_boost_forest(boost[k], ROUNDS, &forest[k], &err), &err);
    rpo_boost_free(boost[k]);
  }
  CHECK(forests_equal(forest[0], forest[1]));
  for (int k = 0; k < 2; k++) rpo_forest_free(forest[k]);
  rpo_features_free(r.features);
  problem_free(&p);
  CHECK_EQUAL(rpo_mem_live, live);
}

/* ---- Refusals ---- */

static void refusals(void) {
  problem p = sparse_problem(ROWS);
  run r = run_new(&p);
  rpo_boost *boost = NULL;
  rpo_forest *forest = NULL;
  rpo_error err;
  int32_t rows[ROWS];
  double z[ROWS];
  float v[ROWS] = {0.0f}, step[OUTPUTS];
  int64_t count;
  CHECK_OK(run_begin(&r, &boost, &err), &err);
  CHECK_EQUAL(rpo_boost_add(boost, v, 1, NULL, step, &err), RPO_EINVAL); /* nothing projected */
  CHECK_EQUAL(rpo_boost_project(boost, NULL, rows, NULL, z, &err), RPO_EINVAL);
  CHECK_OK(rpo_boost_project(boost, NULL, rows, &count, z, &err), &err);
  CHECK_EQUAL(rpo_boost_add(boost, v, 2, NULL, step, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "columns must be 1 or 256, got 2") != NULL);
  v[5] = NAN;
  CHECK_EQUAL(rpo_boost_add(boost, v, 1, NULL, step, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "v must be finite") != NULL);
  v[5] = 0.0f;
  CHECK_OK(rpo_boost_add(boost, v, 1, NULL, step, &err), &err);
  for (int j = 0; j < OUTPUTS; j++) CHECK(step[j] == 0.0f); /* along nothing */
  CHECK_EQUAL(rpo_boost_add(boost, v, 1, NULL, step, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_run(boost, 1, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_forest(boost, 1, &forest, &err), RPO_EINVAL);
  rpo_boost_free(boost);
  boost = NULL;
  CHECK_OK(run_begin(&r, &boost, &err), &err);
  CHECK_OK(rpo_boost_run(boost, 1, NULL, &err), &err);
  CHECK_EQUAL(rpo_boost_project(boost, NULL, rows, &count, z, &err), RPO_EINVAL);
  CHECK(rpo_boost_start(NULL) == NULL && rpo_boost_start(boost) != NULL);
  rpo_boost_free(boost);
  boost = NULL;
  problem_set(&p, RPO_OPT_RELABEL, 1);
  CHECK_OK(run_begin(&r, &boost, &err), &err);
  CHECK_EQUAL(rpo_boost_project(boost, NULL, rows, &count, z, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "relabel must be 0") != NULL);
  rpo_boost_free(boost);
  rpo_features_free(r.features);
  problem_free(&p);
}

int main(void) {
  RUN(no_other_step_has_less_loss);
  RUN(bits);
  RUN(asked_again);
  RUN(sizes);
  RUN(memory);
  RUN(refusals);
  return mini_done("boost_ways");
}
