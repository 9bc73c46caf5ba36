/* Forests whole: the same bits however grown, corners, refusals, cancelling, fits side by side. */
#include <pthread.h>

#include "kinds.h"
#include "par.h"
#include "readout.h"

/* ---- The same bits ---- */

static void threads_change_nothing(void) {
  static const int32_t threads[] = {2, 3, 8};
  dice d = {14};
  for (int x = 0; x < X_KINDS; x++) {
    for (int y = 0; y < Y_KINDS; y++) {
      problem p = random_problem(&d, x, y, 150, 12, x < X_BINARY ? 0.03 : 0.0);
      problem_set(&p, RPO_OPT_N_TREES, 9);
      problem_set(&p, RPO_OPT_MAX_FEATURES, 3);
      problem_set(&p, RPO_OPT_BOOTSTRAP, y % 2);
      problem_set(&p, RPO_OPT_RANDOM_CUT, y == Y_FEW);
      if (y == Y_SPARSE_REAL) problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 12);
      if (y == Y_LABELS) {
        p.projection.kind = x % 2 ? RPO_PROJECT_GAUSSIAN : RPO_PROJECT_SUBSAMPLE;
        p.projection.components = 5;
      }
      rpo_forest *const one = problem_forest(&p, 1);
      rpo_matrix const X = problem_x(&p);
      double *const a = mini_room(150 * p.y.cols, 8), *const b = mini_room(150 * p.y.cols, 8);
      CHECK_EQUAL(rpo_forest_predict(one, &X, NULL, a, NULL), RPO_OK);
      for (int k = 0; k < 3; k++) {
        rpo_forest *const more = problem_forest(&p, threads[k]);
        rpo_control const control = threads_of(threads[k]);
        mini_context("x kind %d, y kind %d, %d threads", x, y, threads[k]);
        CHECK(forests_equal(one, more));
        CHECK_EQUAL(rpo_forest_predict(one, &X, &control, b, NULL), RPO_OK);
        CHECK(memcmp(a, b, (size_t)(150 * p.y.cols) * 8) == 0);
        rpo_forest_free(more);
      }
      free(a);
      free(b);
      rpo_forest_free(one);
      problem_free(&p);
    }
  }
}

/* Trees a .. b of a seed are the same whoever grows them, one job or several. */
static void first_tree_continues_a_forest(void) {
  dice d = {15};
  problem p = random_problem(&d, X_REAL, Y_LABELS, 80, 6, 0.0);
  problem_set(&p, RPO_OPT_N_TREES, 6);
  problem_set(&p, RPO_OPT_MAX_FEATURES, 2);
  problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
  p.projection.kind = RPO_PROJECT_GAUSSIAN;
  p.projection.components = 3;
  rpo_forest *const whole = problem_forest(&p, 2);
  problem_set(&p, RPO_OPT_N_TREES, 2);
  rpo_forest *part[3], *joined = NULL;
  int64_t pick[12];
  for (int k = 0; k < 3; k++) {
    problem_set(&p, RPO_OPT_FIRST_TREE, 2 * k);
    part[k] = problem_forest(&p, 1);
  }
  for (int i = 0; i < 6; i++) {
    pick[2 * i] = i / 2;
    pick[2 * i + 1] = i % 2;
  }
  rpo_error err;
  CHECK_OK(rpo_forest_pick((const rpo_forest *const *)part, 3, pick, 6, &joined, &err), &err);
  CHECK(forests_equal(whole, joined));
  for (int k = 0; k < 3; k++) rpo_forest_free(part[k]);
  rpo_forest_free(whole);
  rpo_forest_free(joined);
  problem_free(&p);
}

/* The container of X and Y does not matter. */
static void containers_grow_the_same_forest(void) {
  dice d = {16};
  for (int x = 0; x < X_KINDS; x++) {
    problem p = random_problem(&d, x, Y_FEW, 90, 7, 0.0);
    problem_set(&p, RPO_OPT_N_TREES, 3);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 3);
    p.sparse_x = 0;
    rpo_forest *const a = problem_forest(&p, 1);
    p.sparse_x = 1;
    rpo_forest *const b = problem_forest(&p, 1);
    mini_context("x kind %d", x);
    CHECK(forests_equal(a, b));
    rpo_forest_free(a);
    rpo_forest_free(b);
    problem_free(&p);
  }
}

/* ---- Corners ---- */

static void corners(void) {
  static const int64_t sizes[][3] = {{1, 1, 1},  {1, 3, 2},  {2, 1, 1},  {3, 1, 20},
                                     {64, 2, 1}, {65, 2, 1}, {128, 1, 3}};
  dice d = {24};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    for (int k = 0; k < 16; k++) {
      int64_t const n = sizes[s][0], cols = sizes[s][1], outs = sizes[s][2];
      table const x = k % 4 == 0 ? table_new(n, cols)
                                 : table_random(&d, n, cols, 3, k % 4 == 1 ? 0.95 : 0.0,
                                                k % 4 == 3 ? 0.5 : 0.0);
      table const y =
          k / 8 == 0 ? table_binary(&d, n, outs, 0.3) : table_random(&d, n, outs, 0, 0.0, 0.0);
      problem p = problem_new(x, y);
      p.sparse_x = k % 2;
      p.sparse_y = k % 3 == 0;
      if (k % 5 == 0) problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
      if (k % 5 == 1) problem_set(&p, RPO_OPT_RANDOM_CUT, 1);
      if (k % 5 == 2) problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 3);
      if (k % 5 == 3) problem_set(&p, RPO_OPT_MAX_FEATURES, 1);
      rpo_forest *const f = problem_forest(&p, 1);
      mini_context("%lld x %lld -> %lld, case %d", (long long)n, (long long)cols, (long long)outs,
                   k);
      if (k % 4 == 0) CHECK_EQUAL(rpo_forest_tree_nodes(f, 0), 1); /* X is constant */
      check_readout(&p, f, &p.x, p.sparse_x, 1);
      check_weights(&p, f, 1);
      rpo_forest_free(f);
      problem_free(&p);
    }
  }
}

/* No label at all: one leaf that predicts zeros. */
static void empty_labels(void) {
  dice d = {25};
  for (int kind = RPO_PROJECT_NONE; kind <= RPO_PROJECT_SUBSAMPLE_REPLACED; kind++) {
    problem p = problem_new(table_random(&d, 30, 3, 0, 0.0, 0.0), table_new(30, 40));
    p.sparse_y = 1;
    p.projection.kind = kind;
    p.projection.components = 4;
    p.projection.sparsity = 3.0;
    rpo_forest *const f = problem_forest(&p, 1);
    double out[40];
    table first = table_new(1, 3);
    rpo_matrix const X = table_dense(&first);
    mini_context("projection %d", kind);
    CHECK_EQUAL(rpo_forest_tree_nodes(f, 0), 1);
    CHECK_EQUAL(rpo_forest_predict(f, &X, NULL, out, NULL), RPO_OK);
    for (int j = 0; j < 40; j++) CHECK(out[j] == 0.0);
    table_free(&first);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* The identity as projection is no projection. */
static void identity_projection_changes_nothing(void) {
  dice d = {26};
  problem p = random_problem(&d, X_REAL, Y_REAL, 80, 5, 0.0);
  double identity[81] = {0.0};
  for (int j = 0; j < 9; j++) identity[10 * j] = 1.0;
  problem_set(&p, RPO_OPT_N_TREES, 3);
  problem_set(&p, RPO_OPT_MAX_FEATURES, 2);
  rpo_forest *const a = problem_forest(&p, 1);
  p.projection.kind = RPO_PROJECT_MATRIX;
  p.projection.components = 9;
  p.projection.matrix = identity;
  rpo_forest *const b = problem_forest(&p, 1);
  CHECK(forests_equal(a, b));
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&p);
}

/* A projection for each tree is the library's draw of that stream; a shared one is stream 0. */
static void projections_are_the_ones_drawn(void) {
  dice d = {27};
  for (int shared = 0; shared < 2; shared++) {
    problem p = random_problem(&d, X_REAL, Y_LABELS, 100, 5, 0.0);
    problem_set(&p, RPO_OPT_SEED, 99);
    problem_set(&p, RPO_OPT_FIRST_TREE, 3);
    p.projection.kind = RPO_PROJECT_GAUSSIAN;
    p.projection.components = 4;
    p.projection.shared = shared;
    rpo_forest *const a = problem_forest(&p, 1);
    double phi[4 * 24];
    p.projection.seed = 99;
    p.projection.stream = shared ? 0 : 3;
    CHECK_EQUAL(rpo_projection_draw(&p.projection, 24, phi, NULL), RPO_OK);
    p.projection.kind = RPO_PROJECT_MATRIX;
    p.projection.matrix = phi;
    rpo_forest *const b = problem_forest(&p, 1);
    mini_context("shared %d", shared);
    CHECK(forests_equal(a, b));
    rpo_forest_free(a);
    rpo_forest_free(b);
    problem_free(&p);
  }
}

/* ---- Refusals, cancelling, several fits at once ---- */

static void bad_arguments_are_refused(void) {
  dice d = {28};
  problem p = random_problem(&d, X_REAL, Y_FEW, 20, 3, 0.0);
  rpo_options *options = NULL;
  rpo_features *f = NULL;
  rpo_forest *forest = NULL;
  rpo_matrix X = table_dense(&p.x), Y = table_dense(&p.y), Z = Y;
  double weight[20] = {0.0}, out[60];
  int64_t nodes[60], index[60];
  rpo_error err;
  CHECK_EQUAL(problem_options(&p, &options, NULL), RPO_OK);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &f, NULL), RPO_OK);
#define REFUSED(word, call)                   \
  do {                                        \
    memset(&err, 0, sizeof err);              \
    CHECK_EQUAL((call), RPO_EINVAL);          \
    CHECK_EQUAL(err.code, RPO_EINVAL);        \
    CHECK(strstr(err.message, word) != NULL); \
  } while (0)
#define FIT(target, labels, w, pr, to) \
  rpo_forest_fit(options, f, target, labels, NULL, w, pr, NULL, to, &err)
  REFUSED("out", FIT(&Y, NULL, NULL, NULL, NULL));
  REFUSED("target", FIT(NULL, NULL, NULL, NULL, &forest));
  REFUSED("weight", FIT(&Y, NULL, weight, NULL, &forest));
  weight[3] = -1.0;
  REFUSED("weight", FIT(&Y, NULL, weight, NULL, &forest));
  weight[3] = NAN;
  REFUSED("weight", FIT(&Y, NULL, weight, NULL, &forest));
  weight[3] = INFINITY;
  REFUSED("weight", FIT(&Y, NULL, weight, NULL, &forest));
  Z.rows = 19;
  REFUSED("target", FIT(&Z, NULL, NULL, NULL, &forest));
  REFUSED("labels", FIT(&Y, &Z, NULL, NULL, &forest));
  rpo_projection projection;
  memset(&projection, 0, sizeof projection);
  projection.kind = RPO_PROJECT_GAUSSIAN;
  REFUSED("n_components", FIT(&Y, NULL, NULL, &projection, &forest));
  p.y.v[5] = NAN;
  REFUSED("target", FIT(&Y, NULL, NULL, NULL, &forest));
  p.y.v[5] = 0.0;
  rpo_matrix const csc = table_compressed(&p.y, RPO_CSC);
  REFUSED("CSC", FIT(&csc, NULL, NULL, NULL, &forest));
  CHECK(forest == NULL);
  CHECK_OK(FIT(&Y, NULL, NULL, NULL, &forest), &err);
  X.cols = 2;
  REFUSED("columns", rpo_forest_predict(forest, &X, NULL, out, &err));
  X.cols = 3;
  REFUSED("out", rpo_forest_predict(forest, &X, NULL, NULL, &err));
  REFUSED("k must", rpo_forest_predict_topk(forest, &X, 0, NULL, index, out, &err));
  REFUSED("k must", rpo_forest_predict_topk(forest, &X, 3, NULL, index, out, &err));
  REFUSED("bootstrap", rpo_forest_predict_oob(forest, &X, NULL, NULL, NULL, out, nodes, &err));
  p.x.v[4] = INFINITY;
  REFUSED("finite", rpo_forest_apply(forest, &X, NULL, nodes, &err));
  REFUSED("tree", rpo_forest_tree_values(forest, 1, out, &err));
  CHECK_EQUAL(rpo_forest_tree_nodes(forest, 1), -1);
  CHECK_EQUAL(rpo_forest_tree_nodes(NULL, 0), -1);
  REFUSED("forest", rpo_forest_importances(NULL, out, &err));
  p.x.v[4] = 0.5;
  REFUSED("target", rpo_forest_importances_on(forest, &X, NULL, NULL, NULL, out, &err));
  REFUSED("not those of the fit", rpo_forest_importances_on(forest, &X, &Y, NULL, NULL, out, &err));
  rpo_options_set(options, RPO_OPT_LABEL_RATIO, 1, NULL);
  rpo_forest *other = NULL;
  REFUSED("label_ratio", FIT(&Y, NULL, NULL, NULL, &other));
  rpo_forest_free(forest);
  rpo_forest_free(NULL);
  rpo_features_free(f);
  rpo_options_free(options);
  problem_free(&p);
}

typedef struct watch {
  pthread_t caller;
  int64_t calls, last, total;
  double stopped;
  int stop;
} watch;

static int32_t watching(void *user, int64_t done, int64_t total) {
  watch *const w = user;
  CHECK(pthread_equal(w->caller, pthread_self()));
  CHECK(done >= w->last && done <= total && total > 0);
  w->calls++;
  w->last = done;
  w->total = total;
  if (w->stop) w->stopped = rpo_now();
  return w->stop;
}

static void progress_cancels(void) {
  dice d = {29};
  problem p = problem_new(table_random(&d, 20000, 40, 0, 0.0, 0.0),
                          table_random(&d, 20000, 8, 0, 0.0, 0.0));
  rpo_features *f = NULL;
  rpo_options *options = NULL;
  rpo_matrix const X = table_dense(&p.x), Y = table_dense(&p.y);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &f, NULL), RPO_OK);
  problem_set(&p, RPO_OPT_N_TREES, 500);
  CHECK_EQUAL(problem_options(&p, &options, NULL), RPO_OK);
  for (int32_t threads = 1; threads < 4; threads++) {
    watch w = {pthread_self(), 0, 0, 0, 0.0, 1};
    rpo_control control = threads_of(threads);
    rpo_forest *forest = NULL;
    rpo_error err;
    memset(&err, 0, sizeof err);
    control.progress = watching;
    control.user = &w;
    mini_context("%d threads", threads);
    CHECK_EQUAL(rpo_forest_fit(options, f, &Y, NULL, NULL, NULL, NULL, &control, &forest, &err),
                RPO_ECANCELED);
    CHECK(rpo_now() - w.stopped < 2.0); /* 0.2 s on a free machine */
    CHECK_EQUAL(err.code, RPO_ECANCELED);
    CHECK(strstr(err.message, "cancel") != NULL);
    CHECK(forest == NULL);
    CHECK(w.calls >= 1 && w.total == 500);
  }
  rpo_options_free(options);
  rpo_features_free(f);
  problem_free(&p);
}

static void progress_reports(void) {
  dice d = {30};
  problem p =
      problem_new(table_random(&d, 3000, 9, 0, 0.0, 0.0), table_random(&d, 3000, 4, 0, 0.0, 0.0));
  problem_set(&p, RPO_OPT_N_TREES, 24);
  rpo_forest *const quiet = problem_forest(&p, 1);
  rpo_poll_seconds = 0.0; /* however fast the machine */
  for (int32_t threads = 1; threads < 3; threads++) {
    watch w = {pthread_self(), 0, 0, 0, 0.0, 0};
    rpo_control control = threads_of(threads);
    rpo_features *f = NULL;
    rpo_forest *forest = NULL;
    rpo_options *options = NULL;
    rpo_matrix const X = table_dense(&p.x), Y = table_dense(&p.y);
    CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &f, NULL), RPO_OK);
    CHECK_EQUAL(problem_options(&p, &options, NULL), RPO_OK);
    control.progress = watching;
    control.user = &w;
    CHECK_EQUAL(rpo_forest_fit(options, f, &Y, NULL, NULL, NULL, NULL, &control, &forest, NULL),
                RPO_OK);
    mini_context("%d threads", threads);
    CHECK(w.calls > 0);
    CHECK(forests_equal(quiet, forest)); /* being watched changes nothing */
    rpo_options_free(options);
    rpo_features_free(f);
    rpo_forest_free(forest);
  }
  rpo_poll_seconds = 0.05;
  rpo_forest_free(quiet);
  problem_free(&p);
}

typedef struct one_fit {
  problem p;
  const rpo_features *shared;
  rpo_forest *forest;
  rpo_status status;
} one_fit;

static void *fit_in_thread(void *user) {
  one_fit *const one = user;
  rpo_control const control = threads_of(2);
  rpo_matrix const Y = problem_y(&one->p);
  rpo_options *options = NULL;
  one->status = problem_options(&one->p, &options, NULL);
  if (one->status == RPO_OK) {
    one->status = rpo_forest_fit(options, one->shared, &Y, NULL, NULL, NULL, NULL, &control,
                                 &one->forest, NULL);
  }
  rpo_options_free(options);
  return NULL;
}

/* Two fits from two threads, on the same features. */
static void fits_run_side_by_side(void) {
  dice d = {31};
  one_fit one[2];
  rpo_features *f = NULL;
  pthread_t thread[2];
  memset(one, 0, sizeof one);
  for (int k = 0; k < 2; k++) {
    one[k].p = random_problem(&d, X_SPARSE, k == 0 ? Y_LABELS : Y_REAL, 300, 20, 0.0);
    problem_set(&one[k].p, RPO_OPT_N_TREES, 20);
    problem_set(&one[k].p, RPO_OPT_MAX_FEATURES, 4);
  }
  memcpy(one[1].p.x.v, one[0].p.x.v, 300 * 20 * 8);
  rpo_matrix const X = problem_x(&one[0].p);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &f, NULL), RPO_OK);
  for (int k = 0; k < 2; k++) {
    one[k].shared = f;
    CHECK_EQUAL(pthread_create(&thread[k], NULL, fit_in_thread, &one[k]), 0);
  }
  for (int k = 0; k < 2; k++) CHECK_EQUAL(pthread_join(thread[k], NULL), 0);
  for (int k = 0; k < 2; k++) {
    rpo_forest *const alone = problem_forest(&one[k].p, 1);
    CHECK_EQUAL(one[k].status, RPO_OK);
    CHECK(forests_equal(alone, one[k].forest));
    rpo_forest_free(alone);
    rpo_forest_free(one[k].forest);
    problem_free(&one[k].p);
  }
  rpo_features_free(f);
}

typedef struct one_reader {
  const rpo_forest *forest;
  const rpo_matrix *X;
  double *out;    /* predictions, then out-of-bag predictions, then the best scores */
  int64_t *whole; /* leaves, then the best outputs */
  double importance[12];
  int failed;
} one_reader;

static void *read_in_thread(void *user) {
  one_reader *const r = user;
  const rpo_forest *const f = r->forest;
  rpo_control const control = threads_of(2);
  int64_t const n = r->X->rows, d = rpo_forest_outputs(f);
  double *const oob = r->out + n * d, *const best = oob + n * d;
  int64_t *const labels = r->whole + n * rpo_forest_trees(f);
  int64_t counts[200];
  for (int repeat = 0; repeat < 20; repeat++) {
    r->failed += rpo_forest_predict(f, r->X, &control, r->out, NULL) != RPO_OK;
    r->failed += rpo_forest_predict_oob(f, r->X, NULL, NULL, &control, oob, counts, NULL) != RPO_OK;
    r->failed += rpo_forest_apply(f, r->X, &control, r->whole, NULL) != RPO_OK;
    r->failed += rpo_forest_predict_topk(f, r->X, 2, &control, labels, best, NULL) != RPO_OK;
    r->failed += rpo_forest_importances(f, r->importance, NULL) != RPO_OK;
  }
  return NULL;
}

/* Three threads read one forest at a time, each with two of the library's own. */
static void readers_share_a_forest(void) {
  enum { N = 200, TREES = 9, READERS = 3 };
  for (int k = 0; k < 2; k++) { /* rows form, table form */
    dice d = {32};
    problem p = random_problem(&d, X_REAL, k == 0 ? Y_LABELS : Y_REAL, N, 12, 0.02);
    int64_t const reals = N * (2 * p.y.cols + 2), wholes = N * (TREES + 2);
    problem_set(&p, RPO_OPT_N_TREES, TREES);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 4);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    if (k == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    rpo_forest *const forest = problem_forest(&p, 2);
    rpo_matrix const X = problem_x(&p);
    CHECK_EQUAL(rpo_forest_has_rows(forest), k == 0);
    one_reader r[READERS];
    pthread_t thread[READERS];
    memset(r, 0, sizeof r);
    for (int i = 0; i < READERS; i++) {
      r[i].forest = forest;
      r[i].X = &X;
      r[i].out = mini_room(reals, 8);
      r[i].whole = mini_room(wholes, 8);
      CHECK_EQUAL(pthread_create(&thread[i], NULL, read_in_thread, &r[i]), 0);
    }
    for (int i = 0; i < READERS; i++) CHECK_EQUAL(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < READERS; i++) {
      CHECK_EQUAL(r[i].failed, 0);
      CHECK(memcmp(r[i].out, r[0].out, (size_t)reals * 8) == 0);
      CHECK(memcmp(r[i].whole, r[0].whole, (size_t)wholes * 8) == 0);
      CHECK(memcmp(r[i].importance, r[0].importance, sizeof r[0].importance) == 0);
    }
    for (int i = 0; i < READERS; i++) {
      free(r[i].out);
      free(r[i].whole);
    }
    rpo_forest_free(forest);
    problem_free(&p);
  }
}

int main(void) {
  RUN(threads_change_nothing);
  RUN(first_tree_continues_a_forest);
  RUN(containers_grow_the_same_forest);
  RUN(corners);
  RUN(empty_labels);
  RUN(identity_projection_changes_nothing);
  RUN(projections_are_the_ones_drawn);
  RUN(bad_arguments_are_refused);
  RUN(progress_cancels);
  RUN(progress_reports);
  RUN(fits_run_side_by_side);
  RUN(readers_share_a_forest);
  return mini_done("forest");
}
