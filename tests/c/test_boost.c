/* Boosting through the public functions: what they refuse, what failures and cancelling leave behind,
 * runs that are taken up again, and that models say what runs say. */
#include "boost.h"
#include "kinds.h"
#include "par.h"
#include "starve.h"

/* ---- Runs of every kind ---- */

enum {
  DEFAULT,
  ALL_OUTPUTS,
  RANK_ONE,
  RANK_ONE_NEWTON,
  SKETCH_TOP,
  SKETCH_NORM,
  MATRIX,
  MEAN_LEAVES,
  ABSOLUTE,
  ABSOLUTE_MEAN,
  HUBER,
  EXPONENTIAL,
  CLASSES,
  CLASSES_MEAN,
  CLASSES_RANK_ONE,
  ENTRIES,
  WATCHED,
  SPARSE_X,
  OWN_LOSS,
  BEST_FIRST,
  HALF,
  KINDS
};

enum { ROWS = 60, OUTPUTS = 20, ROUNDS = 3 };

typedef struct trial {
  int kind;
  table x, y;
  double weight[ROWS], entry[ROWS * OUTPUTS], matrix[2 * OUTPUTS], start[OUTPUTS];
  uint8_t watched[ROWS];
  rpo_features *features;
  rpo_options *options;
  rpo_projection projection;
  rpo_matrix Y, W;
  rpo_boost_data data;
  int64_t calls, stop;  /* of the own loss; 0: never */
  rpo_boost *reference; /* a run to compare with */
} trial;

/* Squared loss, by a callback. */
static int32_t own_loss(void *user, int64_t count, const int32_t *row, const float *f, float *g,
                        float *h) {
  trial *const t = user;
  if (++t->calls == t->stop) return 1;
  for (int64_t i = 0; i < count; i++) {
    for (int64_t j = 0; j < t->y.cols; j++) {
      int64_t const at = i * t->y.cols + j;
      g[at] = (float)t->y.v[row[i] * t->y.cols + j] - f[at];
      if (h != NULL) h[at] = 1.0f;
    }
  }
  return 0;
}

static void set(trial *t, rpo_option id, double value) {
  rpo_error err;
  CHECK_OK(rpo_options_set(t->options, (int32_t)id, value, &err), &err);
}

static int32_t loss_of(int kind) {
  switch (kind) {
    case ABSOLUTE:
    case ABSOLUTE_MEAN: return RPO_LOSS_ABSOLUTE;
    case HUBER: return RPO_LOSS_HUBER;
    case EXPONENTIAL: return RPO_LOSS_EXPONENTIAL;
    case CLASSES:
    case CLASSES_MEAN:
    case CLASSES_RANK_ONE: return RPO_LOSS_SOFTMAX;
    case OWN_LOSS: return RPO_LOSS_CUSTOM;
    case ENTRIES:
    case WATCHED:
    case BEST_FIRST: return RPO_LOSS_SQUARED;
    default: return RPO_LOSS_LOGISTIC;
  }
}

static void set_projection(trial *t) {
  rpo_projection *const p = &t->projection;
  int const rank_one =
      t->kind == RANK_ONE || t->kind == RANK_ONE_NEWTON || t->kind == CLASSES_RANK_ONE;
  p->kind = t->kind == ALL_OUTPUTS   ? RPO_PROJECT_NONE
            : t->kind == SKETCH_TOP  ? RPO_PROJECT_TOP
            : t->kind == SKETCH_NORM ? RPO_PROJECT_NORM_SAMPLING
            : t->kind == MATRIX      ? RPO_PROJECT_MATRIX
                                     : RPO_PROJECT_GAUSSIAN;
  p->components = rank_one ? 1 : 2;
  p->matrix = t->kind == MATRIX ? t->matrix : NULL;
  set(t, RPO_OPT_RELABEL, !rank_one);
}

static void trial_start(trial *t, int kind) {
  dice d = {40 + (uint64_t)kind};
  rpo_error err;
  memset(t, 0, sizeof *t);
  t->kind = kind;
  int const binary = loss_of(kind) >= RPO_LOSS_LOGISTIC && loss_of(kind) <= RPO_LOSS_SOFTMAX;
  t->x =
      kind == SPARSE_X ? random_x(&d, X_SPARSE, ROWS, 6, 0.1) : random_x(&d, X_REAL, ROWS, 6, 0.05);
  t->y =
      binary ? table_binary(&d, ROWS, OUTPUTS, 0.2) : table_random(&d, ROWS, OUTPUTS, 0, 0.3, 0.0);
  if (loss_of(kind) == RPO_LOSS_SOFTMAX) {
    memset(t->y.v, 0, ROWS * OUTPUTS * sizeof(double));
    for (int64_t i = 0; i < ROWS; i++) t->y.v[i * OUTPUTS + dice_below(&d, OUTPUTS)] = 1.0;
  }
  for (int i = 0; i < ROWS; i++) t->weight[i] = (double)dice_below(&d, 3);
  for (int i = 0; i < ROWS * OUTPUTS; i++) t->entry[i] = (double)dice_below(&d, 3);
  for (int i = 0; i < 2 * OUTPUTS; i++) t->matrix[i] = dice_real(&d) - 0.5;
  for (int i = 0; i < ROWS; i++) t->watched[i] = i % 4 == 0;
  CHECK_OK(rpo_options_new(&t->options, &err), &err);
  set(t, RPO_OPT_LOSS, loss_of(kind));
  set(t, RPO_OPT_MAX_DEPTH, 4);
  set(t, RPO_OPT_SUBSAMPLE, 0.7);
  set(t, RPO_OPT_L2, 0.5);
  set(t, RPO_OPT_TRAIN_LOSS, 1);
  set(t, RPO_OPT_LEAF,
      kind == MEAN_LEAVES || kind == ABSOLUTE_MEAN || kind == CLASSES_MEAN || kind == RANK_ONE);
  set(t, RPO_OPT_HALF, kind == HALF || kind == CLASSES);
  if (kind == BEST_FIRST) set(t, RPO_OPT_MAX_LEAF_NODES, 5);
  if (kind == MATRIX) set(t, RPO_OPT_MAX_FEATURES, 2);
  set_projection(t);
  rpo_matrix const X = kind == SPARSE_X ? table_compressed(&t->x, RPO_CSR) : table_dense(&t->x);
  CHECK_OK(rpo_features_new(&X, kind % 2 == 0 ? 0 : 8, NULL, &t->features, &err), &err);
  t->Y = kind % 3 == 0 ? table_dense(&t->y) : table_compressed(&t->y, RPO_CSR);
  t->W = table_dense(&t->y);
  t->W.data = t->entry;
  t->data.Y = &t->Y;
  if (kind == WATCHED || kind == HUBER) t->data.weight = t->weight;
  if (kind == ENTRIES) t->data.entry_weight = &t->W;
  if (kind == WATCHED || kind == CLASSES || kind == DEFAULT) t->data.watched = t->watched;
  if (kind == MATRIX) t->data.start = t->start;
  if (kind == OWN_LOSS) t->data.loss = own_loss;
  t->data.user = t;
}

static void trial_end(trial *t) {
  rpo_features_free(t->features);
  rpo_options_free(t->options);
  table_free(&t->x);
  table_free(&t->y);
}

static rpo_status begin(const trial *t, const rpo_control *control, rpo_boost **out,
                        rpo_error *err) {
  return rpo_boost_new(t->options, t->features, &t->data, &t->projection, control, out, err);
}

static rpo_boost *run(const trial *t, int64_t rounds, int32_t threads) {
  rpo_control const control = threads_of(threads);
  rpo_boost *b = NULL;
  rpo_error err;
  CHECK_OK(begin(t, &control, &b, &err), &err);
  if (rounds > 0) CHECK_OK(rpo_boost_run(b, rounds, &control, &err), &err);
  CHECK_EQUAL(rpo_boost_rounds(b), rounds);
  return b;
}

static rpo_forest *model_of(const rpo_boost *b) {
  rpo_forest *f = NULL;
  rpo_error err;
  CHECK_OK(rpo_boost_forest(b, rpo_boost_rounds(b), &f, &err), &err);
  return f;
}

/* Whether two runs know the same: model, scores and losses. */
static int runs_equal(rpo_boost *a, rpo_boost *b) {
  float x[ROWS * OUTPUTS], y[ROWS * OUTPUTS];
  double loss[4][ROUNDS + 21];
  int32_t all[ROWS];
  rpo_forest *const f = model_of(a), *const g = model_of(b);
  int same = forests_equal(f, g);
  for (int32_t i = 0; i < ROWS; i++) all[i] = i;
  CHECK_EQUAL(rpo_boost_scores(a, all, ROWS, NULL, x, NULL), RPO_OK);
  CHECK_EQUAL(rpo_boost_scores(b, all, ROWS, NULL, y, NULL), RPO_OK);
  CHECK_EQUAL(rpo_boost_losses(a, loss[0], loss[1], NULL), RPO_OK);
  CHECK_EQUAL(rpo_boost_losses(b, loss[2], loss[3], NULL), RPO_OK);
  same = same && memcmp(x, y, sizeof x) == 0;
  for (int64_t r = 0; r <= rpo_boost_rounds(a) && r <= rpo_boost_rounds(b); r++) {
    for (int k = 0; k < 2; k++) {
      same = same && (loss[k][r] == loss[k + 2][r] || (isnan(loss[k][r]) && isnan(loss[k + 2][r])));
    }
  }
  rpo_forest_free(f);
  rpo_forest_free(g);
  return same;
}

/* ---- Gradients that are not written down, beside those that are ---- */

/* Weights of entries, all of them 1, ask for the long way; one component, one in three rows watched,
 * some weigh nothing. The models are the same to the bit. */
static void ways_agree(void) {
  static const int kinds[] = {DEFAULT, EXPONENTIAL, HUBER, ABSOLUTE, BEST_FIRST, HALF, SPARSE_X};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (int newton = 0; newton < 2; newton++) {
      trial t;
      float scores[2][ROWS * OUTPUTS];
      int32_t all[ROWS];
      trial_start(&t, kinds[k]);
      set(&t, RPO_OPT_LEAF, newton ? RPO_LEAF_NEWTON : RPO_LEAF_MEAN);
      t.projection.components = 1;
      t.data.watched = t.watched;
      t.data.weight = t.weight;
      for (int i = 0; i < ROWS * OUTPUTS; i++) t.entry[i] = 1.0;
      for (int32_t i = 0; i < ROWS; i++) all[i] = i;
      mini_context("kind %d, newton %d", kinds[k], newton);
      rpo_boost *const a = run(&t, 8, 2);
      t.data.entry_weight = &t.W;
      rpo_boost *const b = run(&t, 8, 1);
      rpo_forest *const f = model_of(a), *const g = model_of(b);
      CHECK(forests_equal(f, g));
      CHECK_EQUAL(rpo_boost_scores(a, all, ROWS, NULL, scores[0], NULL), RPO_OK);
      CHECK_EQUAL(rpo_boost_scores(b, all, ROWS, NULL, scores[1], NULL), RPO_OK);
      CHECK(memcmp(scores[0], scores[1], sizeof scores[0]) == 0);
      rpo_forest_free(f);
      rpo_forest_free(g);
      rpo_boost_free(a);
      rpo_boost_free(b);
      trial_end(&t);
    }
  }
}

/* ---- What models say ---- */

/* What a run says of a row is what its model predicts: to the bit where scores are kept as they are, to
 * rounding where their exponentials are, and of softmax the logarithms of probabilities. */
static int says_row(int32_t loss, const double *predicted, const float *said) {
  int const kept = loss == RPO_LOSS_LOGISTIC || loss == RPO_LOSS_EXPONENTIAL;
  double sum = 0.0;
  for (int j = 0; j < OUTPUTS; j++) sum += exp(predicted[j]);
  int same = 1;
  for (int j = 0; j < OUTPUTS; j++) {
    double const truth = loss == RPO_LOSS_SOFTMAX ? predicted[j] - log(sum) : predicted[j];
    double const off = fabs((double)said[j] - truth);
    same = same && isfinite(predicted[j]) &&
           off <= (kept || loss == RPO_LOSS_SOFTMAX ? 2e-6 * (1 + fabs(truth)) : 0.0);
  }
  return same;
}

static void models_say_what_runs_say(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    trial t;
    float scores[ROWS * OUTPUTS], staged[ROWS * OUTPUTS];
    double out[ROWS * OUTPUTS];
    int32_t all[ROWS];
    rpo_error err;
    trial_start(&t, kind);
    mini_context("kind %d", kind);
    rpo_boost *const b = run(&t, ROUNDS, 1), *const c = run(&t, ROUNDS, 3);
    CHECK(runs_equal(b, c));
    rpo_forest *const f = model_of(b);
    rpo_matrix const X = table_dense(&t.x);
    for (int32_t i = 0; i < ROWS; i++) all[i] = i;
    CHECK_OK(rpo_boost_scores(b, all, ROWS, NULL, scores, &err), &err);
    CHECK_OK(rpo_forest_predict(f, &X, NULL, out, &err), &err);
    for (int i = 0; i < ROWS; i++) {
      CHECK(says_row(loss_of(kind), out + i * OUTPUTS, scores + i * OUTPUTS));
    }
    for (int i = 0; i < ROWS * OUTPUTS; i++) {
      staged[i] = (float)rpo_forest_start(f)[i % OUTPUTS];
    }
    CHECK_OK(rpo_forest_add_trees(f, &X, 0, 1, NULL, staged, &err), &err);
    CHECK_OK(rpo_forest_add_trees(f, &X, 1, 1, NULL, staged, &err), &err);
    CHECK_OK(rpo_forest_add_trees(f, &X, 1, ROUNDS, NULL, staged, &err), &err);
    for (int i = 0; i < ROWS * OUTPUTS; i++) CHECK((double)staged[i] == out[i]);
    CHECK_EQUAL(rpo_forest_add_trees(f, &X, 2, 1, NULL, staged, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_forest_add_trees(f, &X, 0, ROUNDS + 1, NULL, staged, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_forest_add_trees(f, &X, -1, 1, NULL, staged, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_forest_is_boosted(f), 1);
    CHECK_EQUAL(rpo_forest_trees(f), ROUNDS);
    CHECK_EQUAL(rpo_forest_rows(f), ROWS);
    rpo_forest_free(f);
    rpo_boost_free(b);
    rpo_boost_free(c);
    trial_end(&t);
  }
}

/* Round by round as at once; a model and its run again, with more threads than it began with. */
static void runs_go_on(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    trial t;
    rpo_error err;
    rpo_control const control = threads_of(4);
    trial_start(&t, kind);
    mini_context("kind %d", kind);
    rpo_boost *const whole = run(&t, ROUNDS + 20, 1), *const part = run(&t, 0, 1);
    for (int i = 0; i < ROUNDS; i++) CHECK_OK(rpo_boost_run(part, 1, NULL, &err), &err);
    rpo_forest *const f = model_of(part);
    rpo_boost *const again = run(&t, 0, 1);
    CHECK_OK(rpo_boost_resume(again, f, &control, &err), &err);
    CHECK_EQUAL(rpo_boost_rounds(again), ROUNDS);
    double train[ROUNDS + 1], before[ROUNDS + 1], after[ROUNDS + 1];
    CHECK_OK(rpo_boost_losses(part, NULL, before, &err), &err);
    CHECK_OK(rpo_boost_losses(again, train, after, &err), &err);
    for (int r = 0; r <= ROUNDS; r++) {
      CHECK(isnan(train[r]));
      CHECK(before[r] == after[r] || (isnan(before[r]) && isnan(after[r])));
    }
    CHECK_OK(rpo_boost_run(again, 20, &control, &err), &err);
    CHECK_OK(rpo_boost_run(part, 20, &control, &err), &err);
    CHECK(runs_equal(whole, part));
    rpo_forest *const x = model_of(whole), *const y = model_of(again);
    CHECK(forests_equal(x, y));
    rpo_forest_free(x);
    rpo_forest_free(y);
    rpo_forest_free(f);
    rpo_boost_free(whole);
    rpo_boost_free(part);
    rpo_boost_free(again);
    trial_end(&t);
  }
}

/* ---- Single targets ---- */

enum { SINGLES = 3 };

typedef struct singles {
  trial t;
  rpo_matrix Y[SINGLES];
  rpo_boost *boost[SINGLES];
  int64_t rounds[SINGLES];
} singles;

static void singles_start(singles *s, int half) {
  rpo_error err;
  trial_start(&s->t, DEFAULT);
  s->t.projection.kind = RPO_PROJECT_NONE;
  for (int j = 0; j < SINGLES; j++) {
    set(&s->t, RPO_OPT_HALF, half == 2 ? j % 2 : half);
    s->Y[j] = table_dense(&s->t.y);
    s->Y[j].cols = 1;
    s->Y[j].data = s->t.y.v + j;
    s->t.data.Y = &s->Y[j];
    s->boost[j] = NULL;
    s->rounds[j] = 1 + 2 * j;
    CHECK_OK(begin(&s->t, NULL, &s->boost[j], &err), &err);
    CHECK_OK(rpo_boost_run(s->boost[j], 6, NULL, &err), &err);
  }
}

static void singles_end(singles *s) {
  for (int j = 0; j < SINGLES; j++) rpo_boost_free(s->boost[j]);
  trial_end(&s->t);
}

static rpo_status join(const singles *s, int64_t n, rpo_forest **out, rpo_error *err) {
  return rpo_boost_join((const rpo_boost *const *)s->boost, n, s->rounds, out, err);
}

static void joined_models_are_their_parts(void) {
  for (int half = 0; half < 3; half++) {
    singles s;
    rpo_forest *f = NULL;
    rpo_error err;
    double out[ROWS * SINGLES], own[ROWS];
    singles_start(&s, half);
    mini_context("half %d", half);
    rpo_matrix const X = table_dense(&s.t.x);
    CHECK_OK(join(&s, SINGLES, &f, &err), &err);
    CHECK_EQUAL(rpo_forest_trees(f), 1 + 3 + 5);
    CHECK_OK(rpo_forest_predict(f, &X, NULL, out, &err), &err);
    for (int j = 0; j < SINGLES; j++) {
      rpo_forest *g = NULL;
      CHECK_OK(rpo_boost_forest(s.boost[j], s.rounds[j], &g, &err), &err);
      CHECK_OK(rpo_forest_predict(g, &X, NULL, own, &err), &err);
      for (int i = 0; i < ROWS; i++) CHECK(own[i] == out[i * SINGLES + j]);
      rpo_forest_free(g);
    }
    rpo_forest_free(f);
    f = NULL;
    CHECK_EQUAL(join(&s, 0, &f, &err), RPO_EINVAL);
    s.rounds[1] = 7;
    CHECK_EQUAL(join(&s, SINGLES, &f, &err), RPO_EINVAL);
    CHECK(strstr(err.message, "rounds") != NULL);
    CHECK_EQUAL(rpo_boost_join(NULL, 1, s.rounds, &f, &err), RPO_EINVAL);
    rpo_boost *const wide = run(&s.t, 0, 1);
    const rpo_boost *mixed[2] = {s.boost[0], NULL};
    CHECK_EQUAL(rpo_boost_join(mixed, 2, s.rounds, &f, &err), RPO_EINVAL);
    CHECK(f == NULL);
    rpo_boost_free(wide);
    singles_end(&s);
  }
}

/* ---- Refusals ---- */

static void refuse(trial *t, const char *word) {
  rpo_boost *b = NULL;
  rpo_error err;
  mini_context("%s", word);
  CHECK_EQUAL(begin(t, NULL, &b, &err), RPO_EINVAL);
  CHECK(strstr(err.message, word) != NULL || !fprintf(stderr, "%s\n", err.message));
  CHECK(b == NULL);
}

static int32_t bad_loss(void *user, int64_t count, const int32_t *row, const float *f, float *g,
                        float *h) {
  const float *const numbers = user; /* of gradient and curvature */
  (void)row;
  (void)f;
  for (int64_t i = 0; i < count * OUTPUTS; i++) {
    g[i] = numbers[0];
    if (h != NULL) h[i] = numbers[1];
  }
  return 0;
}

static void numbers_of_a_loss_are_refused(void) {
  float numbers[4][2] = {{NAN, 1.0f}, {1e31f, 1.0f}, {1.0f, INFINITY}, {1.0f, NAN}};
  for (int k = 0; k < 4; k++) {
    trial t;
    rpo_boost *b = NULL;
    rpo_error err;
    trial_start(&t, OWN_LOSS);
    set(&t, RPO_OPT_LEAF, RPO_LEAF_NEWTON);
    t.data.loss = bad_loss;
    t.data.user = numbers[k];
    CHECK_OK(begin(&t, NULL, &b, &err), &err);
    CHECK_EQUAL(rpo_boost_run(b, 1, NULL, &err), RPO_EINVAL);
    CHECK(strstr(err.message, k < 2 ? "loss: the gradient must be finite"
                                    : "loss: the curvature must be finite") != NULL);
    CHECK_EQUAL(rpo_boost_rounds(b), 0);
    rpo_boost_free(b);
    trial_end(&t);
  }
}

static void bad_data_is_refused(void) {
  trial t;
  rpo_boost *b = NULL;
  rpo_error err;
  trial_start(&t, DEFAULT);
  CHECK_EQUAL(rpo_boost_new(NULL, t.features, &t.data, NULL, NULL, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_new(t.options, NULL, &t.data, NULL, NULL, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_new(t.options, t.features, NULL, NULL, NULL, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_new(t.options, t.features, &t.data, NULL, NULL, NULL, &err), RPO_EINVAL);
  rpo_matrix const good = t.Y;
  t.Y.rows--;
  refuse(&t, "rows");
  t.Y = good;
  t.Y.cols = 0;
  refuse(&t, "column");
  t.Y = table_compressed(&t.y, RPO_CSC);
  refuse(&t, "CSC");
  t.Y = good;
  double const kept = t.y.v[5];
  t.y.v[5] = 0.5;
  refuse(&t, "zeros and ones");
  t.y.v[5] = NAN;
  refuse(&t, "Y");
  set(&t, RPO_OPT_LOSS, RPO_LOSS_SQUARED);
  t.y.v[5] = 1e21;
  refuse(&t, "Y must be of size");
  t.Y = table_compressed(&t.y, RPO_CSR);
  refuse(&t, "Y must be of size");
  t.Y = good;
  t.y.v[5] = kept;
  set(&t, RPO_OPT_LOSS, RPO_LOSS_SOFTMAX);
  refuse(&t, "one class");
  set(&t, RPO_OPT_LOSS, RPO_LOSS_CUSTOM);
  refuse(&t, "callback");
  set(&t, RPO_OPT_LOSS, RPO_LOSS_LOGISTIC);
  t.data.loss = own_loss;
  refuse(&t, "callback");
  t.data.loss = NULL;
  t.data.weight = t.weight;
  static const double bad_weights[] = {-1.0, NAN, INFINITY, 1e16};
  for (int k = 0; k < 4; k++) {
    t.weight[1] = bad_weights[k];
    refuse(&t, "weight must be");
  }
  for (int i = 0; i < ROWS; i++) t.weight[i] = t.watched[i]; /* only watched ones weigh */
  refuse(&t, "no training row");
  for (int i = 0; i < ROWS; i++) t.weight[i] = 1e-30;
  refuse(&t, "together weigh");
  t.data.weight = NULL;
  t.data.entry_weight = &t.W;
  t.entry[3] = -1.0;
  refuse(&t, "entry_weight must be");
  t.entry[3] = NAN;
  refuse(&t, "entry_weight");
  t.entry[3] = 1.0;
  t.W.cols--;
  refuse(&t, "entry_weight");
  t.W.cols++;
  t.data.entry_weight = NULL;
  t.data.start = t.start;
  static const double bad_starts[] = {INFINITY, NAN, 1e39, -1e38};
  for (int k = 0; k < 4; k++) {
    t.start[2] = bad_starts[k];
    refuse(&t, "start must be of size 80 at most");
  }
  trial_end(&t);
  trial_start(&t, BEST_FIRST);
  t.data.start = t.start;
  for (int k = 0; k < 4; k++) {
    t.start[2] = bad_starts[k];
    refuse(&t, "start must be of size 1e+20 at most");
  }
  trial_end(&t);
  trial_start(&t, MATRIX); /* beyond single precision in the sums */
  t.matrix[1] = -1e10;
  refuse(&t, "matrix must be of size 1e9");
  trial_end(&t);
  trial_start(&t, DEFAULT);
  t.projection.kind = RPO_PROJECT_RADEMACHER;
  t.projection.sparsity = 1e20;
  refuse(&t, "sparsity must be at most 1e18");
  trial_end(&t);
  trial_start(&t, CLASSES);
  t.data.entry_weight = &t.W;
  refuse(&t, "softmax");
  trial_end(&t);
}

static void bad_projections_are_refused(void) {
  trial t;
  trial_start(&t, DEFAULT);
  t.projection.components = 0;
  refuse(&t, "component");
  t.projection.kind = RPO_PROJECT_TOP;
  refuse(&t, "n_components");
  t.projection.components = OUTPUTS + 1;
  refuse(&t, "n_components");
  t.projection.kind = 99;
  refuse(&t, "kind");
  t.projection.kind = RPO_PROJECT_GAUSSIAN;
  t.projection.components = 2;
  set(&t, RPO_OPT_RELABEL, 0);
  refuse(&t, "n_components must be 1");
  t.projection.kind = RPO_PROJECT_NONE;
  refuse(&t, "relabel");
  trial_end(&t);
}

static void bad_calls_are_refused(void) {
  trial t, other;
  rpo_error err;
  rpo_forest *f = NULL;
  float out[OUTPUTS];
  int32_t row = 0;
  trial_start(&t, DEFAULT);
  trial_start(&other, RANK_ONE);
  rpo_boost *const b = run(&t, 2, 1), *const fresh = run(&t, 0, 1), *const one = run(&other, 2, 1);
  CHECK_EQUAL(rpo_boost_run(NULL, 1, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_run(b, -1, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_run(b, 0, NULL, &err), RPO_OK);
  CHECK_EQUAL(rpo_boost_rounds(NULL), 0);
  CHECK_EQUAL(rpo_boost_losses(NULL, NULL, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_losses(b, NULL, NULL, &err), RPO_OK);
  CHECK_EQUAL(rpo_boost_scores(NULL, &row, 1, NULL, out, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_scores(b, NULL, 1, NULL, out, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_scores(b, &row, 1, NULL, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_scores(b, &row, -1, NULL, out, &err), RPO_EINVAL);
  row = ROWS;
  CHECK_EQUAL(rpo_boost_scores(b, &row, 1, NULL, out, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "60") != NULL);
  row = -1;
  CHECK_EQUAL(rpo_boost_scores(b, &row, 1, NULL, out, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_forest(NULL, 1, &f, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_forest(b, 1, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_forest(b, 0, &f, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_forest(b, 3, &f, &err), RPO_EINVAL);
  CHECK(f == NULL && strstr(err.message, "rounds") != NULL);
  CHECK_OK(rpo_boost_forest(b, 1, &f, &err), &err);
  CHECK_EQUAL(rpo_boost_resume(NULL, f, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_resume(fresh, NULL, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_resume(b, f, NULL, &err), RPO_EINVAL); /* has begun */
  rpo_forest *const rank_one = model_of(one);
  CHECK_EQUAL(rpo_boost_resume(fresh, rank_one, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_boost_rounds(fresh), 0);
  problem p = random_problem(&(dice){3}, X_REAL, Y_FEW, ROWS, 6, 0.0);
  rpo_forest *const means = problem_forest(&p, 1);
  CHECK_EQUAL(rpo_boost_resume(fresh, means, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_is_boosted(means), 0);
  CHECK(rpo_forest_start(means) == NULL && rpo_forest_start(NULL) == NULL);
  CHECK_EQUAL(rpo_forest_is_boosted(NULL), 0);
  rpo_boost_free(NULL);
  rpo_forest_free(means);
  rpo_forest_free(rank_one);
  rpo_forest_free(f);
  problem_free(&p);
  rpo_boost_free(b);
  rpo_boost_free(fresh);
  rpo_boost_free(one);
  trial_end(&t);
  trial_end(&other);
}

/* What reads means of training rows refuses sums. */
static void functions_of_means_refuse(void) {
  for (int kind = 0; kind < KINDS; kind += kind == DEFAULT ? RANK_ONE : KINDS) {
    trial t;
    rpo_error err;
    double out[ROWS * OUTPUTS + ROWS * 3];
    int64_t whole[ROWS + 1], rows[ROWS];
    rpo_leaf_rows *leaf_rows = NULL;
    rpo_forest *made = NULL;
    trial_start(&t, kind);
    rpo_boost *const b = run(&t, 2, 1);
    rpo_forest *const f = model_of(b);
    const rpo_forest *const forests[1] = {f};
    rpo_matrix const X = table_dense(&t.x), Y = table_dense(&t.y);
    int64_t const pick[2] = {0, 0};
    for (int64_t i = 0; i < ROWS; i++) rows[i] = i;
    rpo_status const status[] = {
        rpo_forest_predict_oob(f, &X, NULL, NULL, NULL, out, whole, &err),
        rpo_forest_agreement(f, &X, &Y, rows, NULL, NULL, out, &err),
        rpo_forest_relabel(f, t.features, &Y, NULL, NULL, &made, &err),
        rpo_forest_weights(f, NULL, &X, NULL, whole, NULL, NULL, &err),
        rpo_leaf_rows_new(f, &X, NULL, NULL, &leaf_rows, &err),
        rpo_forest_importances_on(f, &X, &Y, NULL, NULL, out, &err),
        rpo_forest_tree_values(f, 0, out, &err),
        rpo_forest_pick(forests, 1, pick, 1, &made, &err),
    };
    for (size_t k = 0; k < sizeof status / sizeof *status; k++) {
      mini_context("kind %d, function %d", kind, (int)k);
      CHECK_EQUAL(status[k], RPO_EINVAL);
      CHECK(strstr(err.message, "boosted") != NULL);
    }
    CHECK(made == NULL && leaf_rows == NULL);
    rpo_forest_free(f);
    rpo_boost_free(b);
    trial_end(&t);
  }
}

/* ---- Without memory ---- */

static rpo_boost *const untouched = (rpo_boost *)(void *)&untouched;

static rpo_status try_new(void *context, rpo_error *err) {
  rpo_boost *b = untouched;
  rpo_status const status = begin(context, NULL, &b, err);
  if (status == RPO_OK) rpo_boost_free(b);
  if (status != RPO_OK) CHECK(b == untouched);
  return status;
}

/* Runs out of memory in a round, goes on with memory again: as if nothing had happened. */
static rpo_status try_run(void *context, rpo_error *err) {
  trial *const t = context;
  int64_t const after = rpo_mem_fail_after;
  rpo_mem_fail_after = -1;
  int64_t const rounds = t->kind == ALL_OUTPUTS ? ROUNDS + 15 : ROUNDS; /* more need more room */
  rpo_boost *const b = run(t, rounds - 2, 1);
  rpo_mem_fail_after = after;
  rpo_status const status = rpo_boost_run(b, 1, NULL, err);
  rpo_mem_fail_after = -1;
  int64_t const left = rounds - rpo_boost_rounds(b);
  CHECK_EQUAL(rpo_boost_run(b, left, NULL, NULL), RPO_OK);
  if (status == RPO_OK) {
    CHECK(runs_equal(b, t->reference));
  } else { /* losses of the round may be unknown */
    rpo_forest *const f = model_of(b), *const g = model_of(t->reference);
    CHECK(forests_equal(f, g));
    rpo_forest_free(f);
    rpo_forest_free(g);
  }
  rpo_boost_free(b);
  return status;
}

static rpo_status try_forest(void *context, rpo_error *err) {
  rpo_forest *f = (rpo_forest *)(void *)&untouched;
  rpo_status const status = rpo_boost_forest(context, ROUNDS, &f, err);
  if (status == RPO_OK) rpo_forest_free(f);
  if (status != RPO_OK) CHECK((void *)f == &untouched);
  return status;
}

static rpo_status try_join(void *context, rpo_error *err) {
  rpo_forest *f = (rpo_forest *)(void *)&untouched;
  rpo_status const status = join(context, SINGLES, &f, err);
  if (status == RPO_OK) rpo_forest_free(f);
  if (status != RPO_OK) CHECK((void *)f == &untouched);
  return status;
}

typedef struct resumption {
  trial *t;
  rpo_boost *run;
  const rpo_forest *forest;
} resumption;

/* A run that failed to take a model over is where it was. */
static rpo_status try_resume(void *context, rpo_error *err) {
  const resumption *const r = context;
  int64_t const after = rpo_mem_fail_after;
  rpo_mem_fail_after = -1;
  rpo_boost *const b = run(r->t, 0, 1);
  rpo_mem_fail_after = after;
  rpo_status const status = rpo_boost_resume(b, r->forest, NULL, err);
  rpo_mem_fail_after = -1;
  if (status != RPO_OK) {
    CHECK_EQUAL(rpo_boost_rounds(b), 0);
    CHECK_EQUAL(rpo_boost_run(b, ROUNDS, NULL, NULL), RPO_OK);
    CHECK(runs_equal(b, r->run));
  }
  rpo_boost_free(b);
  return status;
}

static void without_memory(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    trial t;
    trial_start(&t, kind);
    mini_context("new, kind %d", kind);
    until_it_succeeds(try_new, &t);
    mini_context("run, kind %d", kind);
    t.reference = run(&t, t.kind == ALL_OUTPUTS ? ROUNDS + 15 : ROUNDS, 1);
    until_it_succeeds(try_run, &t);
    rpo_boost_free(t.reference);
    rpo_boost *const b = run(&t, ROUNDS, 1);
    mini_context("forest, kind %d", kind);
    until_it_succeeds(try_forest, b);
    rpo_forest *const f = model_of(b);
    resumption r = {&t, b, f};
    mini_context("resume, kind %d", kind);
    until_it_succeeds(try_resume, &r);
    rpo_forest_free(f);
    rpo_boost_free(b);
    trial_end(&t);
  }
  singles s;
  singles_start(&s, 0);
  mini_context("%s", "join");
  until_it_succeeds(try_join, &s);
  singles_end(&s);
}

/* ---- Cancelling ---- */

/* A loss that stops the run at its n-th call, for every n. */
static void a_loss_cancels(void) {
  trial t;
  trial_start(&t, OWN_LOSS);
  rpo_boost *const reference = run(&t, ROUNDS, 1);
  for (int64_t n = 1;; n++) {
    rpo_boost *const b = run(&t, 0, 1);
    rpo_error err;
    t.calls = 0;
    t.stop = n;
    mini_context("call %lld", (long long)n);
    rpo_status const status = rpo_boost_run(b, ROUNDS, NULL, &err);
    t.stop = 0;
    if (status != RPO_OK) {
      CHECK_EQUAL(status, RPO_ECANCELED);
      CHECK(rpo_boost_rounds(b) < ROUNDS);
      CHECK_EQUAL(rpo_boost_run(b, ROUNDS - rpo_boost_rounds(b), NULL, &err), RPO_OK);
    }
    CHECK(runs_equal(b, reference));
    rpo_boost_free(b);
    if (status == RPO_OK) break;
    CHECK(n < 10000);
  }
  rpo_boost_free(reference);
  trial_end(&t);
}

static int32_t stop_at(void *user, int64_t done, int64_t total) {
  int64_t *const left = user;
  CHECK(done >= 0 && done <= total);
  return (*left)-- <= 0;
}

/* Rounds that took long are cancelled within, wherever they ask. */
static void progress_cancels(void) {
  rpo_poll_seconds = 0.0;
  for (int kind = 0; kind < KINDS; kind++) {
    trial t;
    trial_start(&t, kind);
    rpo_boost *const reference = run(&t, ROUNDS, 1);
    int canceled = 1;
    for (int64_t n = 0; canceled; n += 1 + n / 16) {
      rpo_boost *const b = run(&t, 0, 1);
      rpo_error err;
      int64_t left = n;
      rpo_control const control = {1, 0, stop_at, &left, NULL};
      mini_context("kind %d, poll %lld", kind, (long long)n);
      canceled = 0;
      while (rpo_boost_rounds(b) < ROUNDS) {
        b->last_seconds = 1.0; /* as if rounds were long: asked for progress within */
        rpo_status const status = rpo_boost_run(b, 1, &control, &err);
        CHECK(status == RPO_OK || status == RPO_ECANCELED);
        if (status == RPO_OK) continue;
        canceled = 1;
        left = INT64_MAX;
      }
      CHECK(canceled || n > ROUNDS);
      CHECK(runs_equal(b, reference));
      rpo_boost_free(b);
    }
    rpo_boost_free(reference);
    trial_end(&t);
  }
  rpo_poll_seconds = 0.05;
}

int main(void) {
  RUN(ways_agree);
  RUN(models_say_what_runs_say);
  RUN(runs_go_on);
  RUN(joined_models_are_their_parts);
  RUN(bad_data_is_refused);
  RUN(numbers_of_a_loss_are_refused);
  RUN(bad_projections_are_refused);
  RUN(bad_calls_are_refused);
  RUN(functions_of_means_refuse);
  RUN(without_memory);
  RUN(a_loss_cancels);
  RUN(progress_cancels);
  mini_context("%s", "");
  CHECK_EQUAL(rpo_mem_live, 0);
  return mini_done("boost");
}
