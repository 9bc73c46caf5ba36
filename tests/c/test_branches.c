/* Trees that several threads grow from histograms, branch by branch, and rows that wait for their steps:
 * the same bits as without either, without memory, and when cancelled. */
#include "boost.h"
#include "problem.h"
#include "starve.h"

enum { KINDS = 6 };

/* ---- Growing ---- */

typedef struct ground { /* what a tree is grown on */
  table x, z;
  double *weight;
  rpo_features *features;
  rpo_grow_options options;
  int64_t m;
  int32_t *rows;
} ground;

/* Frequent features split little off: the tree is a long trunk with branches. */
static table skewed(dice *d, int64_t rows, int64_t cols, int64_t levels) {
  table t = table_new(rows, cols);
  for (int64_t i = 0; i < rows * cols; i++) {
    double const chance = 0.6 / (double)(1 + i % cols);
    if (dice_real(d) < chance) t.v[i] = levels == 1 ? 1.0 : (double)(1 + dice_below(d, levels));
  }
  return t;
}

static void ground_start(ground *g, int kind) {
  dice d = {100 + (uint64_t)kind};
  rpo_error err;
  int const sparse = kind < 3, counted = kind % 2;
  int64_t const rows = sparse ? 24000 : 4000; /* too few are not worth branches */
  memset(g, 0, sizeof *g);
  g->x = sparse ? skewed(&d, rows, 60, kind == 1 ? 5 : 1) : table_random(&d, rows, 20, 0, 0.2, 0.1);
  g->m = kind == 2 || kind == 4 ? 3 : 1;
  g->z = table_random(&d, rows, g->m, 0, 0.0, 0.0);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < 4; j++) {
      double const x = g->x.v[i * g->x.cols + j];
      g->z.v[i * g->m] += isnan(x) ? 0.0 : x * (double)(j + 1);
    }
  }
  g->weight = mini_room(rows, 8);
  for (int64_t i = 0; i < rows; i++) g->weight[i] = counted ? 0.5 + dice_real(&d) : 1.0;
  rpo_matrix const X = sparse ? table_compressed(&g->x, RPO_CSR) : table_dense(&g->x);
  CHECK_OK(rpo_features_new(&X, 64, NULL, &g->features, &err), &err);
  CHECK(g->features->sparse == sparse);
  g->options.seed = 7;
  g->options.max_depth = kind == 5 ? INT64_MAX : 7;
  g->options.min_split = 2;
  g->options.min_leaf = kind == 5 ? 5 : 1;
  g->options.max_features = kind == 3 ? 6 : g->x.cols;
  g->options.min_decrease = 0.0;
  g->rows = mini_room(rows, 4);
  for (int64_t i = 0; i < rows; i++) g->rows[i] = (int32_t)i;
}

static void ground_end(ground *g) {
  rpo_features_free(g->features);
  table_free(&g->x);
  table_free(&g->z);
  free(g->weight);
  free(g->rows);
}

static rpo_status ground_hist(const ground *g, rpo_hist **out, rpo_error *err) {
  int const counted = g->weight[0] != 1.0;
  rpo_status const status = rpo_hist_new(g->features, &g->options, g->m, counted, out, err);
  if (status != RPO_OK) return status;
  rpo_hist_units(*out, 2.0, 32.0);
  rpo_hist_put(*out, g->rows, g->x.rows, g->weight, g->z.v, g->m);
  return RPO_OK;
}

static rpo_status grow(const ground *g, rpo_hist *h, const rpo_control *control, rpo_tree *out,
                       rpo_error *err) {
  return rpo_hist_run(h, g->rows, g->x.rows, g->weight, 3, control, out, err);
}

static void check_same(const rpo_tree *a, const rpo_tree *b) {
  size_t const inner = (size_t)a->n_inner, leaves = (size_t)a->n_leaves;
  CHECK_EQUAL(a->n_inner, b->n_inner);
  CHECK_EQUAL(a->n_rows, b->n_rows);
  if (a->n_inner != b->n_inner || a->n_rows != b->n_rows) return;
  CHECK(memcmp(a->feature, b->feature, 4 * inner) == 0);
  CHECK(memcmp(a->left, b->left, 4 * inner) == 0);
  CHECK(memcmp(a->right, b->right, 4 * inner) == 0);
  CHECK(memcmp(a->threshold, b->threshold, 8 * inner) == 0);
  CHECK(memcmp(a->missing_left, b->missing_left, inner) == 0);
  CHECK(memcmp(a->impurity, b->impurity, 4 * inner) == 0);
  CHECK(memcmp(a->leaf_impurity, b->leaf_impurity, 4 * leaves) == 0);
  CHECK(memcmp(a->leaf_weight, b->leaf_weight, 8 * leaves) == 0);
  CHECK(memcmp(a->leaf_start, b->leaf_start, 4 * (leaves + 1)) == 0);
  CHECK(memcmp(a->rows, b->rows, 4 * (size_t)a->n_rows) == 0);
}

/* More threads, fewer again, more: a run's scratch is its own, whatever it was before. */
static void same_trees(void) {
  static int32_t const threads[] = {1, 2, 3, 8, 2, 1, 8};
  for (int kind = 0; kind < KINDS; kind++) {
    ground g;
    rpo_hist *h = NULL;
    rpo_tree first;
    rpo_error err;
    ground_start(&g, kind);
    CHECK_OK(ground_hist(&g, &h, &err), &err);
    for (int i = 0; i < 7; i++) {
      rpo_control const control = threads_of(threads[i]);
      rpo_tree t;
      mini_context("kind %d, %d threads", kind, (int)threads[i]);
      CHECK_OK(grow(&g, h, &control, i == 0 ? &first : &t, &err), &err);
      CHECK((rpo_threads(&control, INT32_MAX) > 1) == (h->branches.made > 0));
      if (i == 0) continue;
      CHECK(first.n_inner > 15);
      check_same(&first, &t);
      rpo_tree_release(&t);
    }
    rpo_tree_release(&first);
    rpo_hist_free(h);
    ground_end(&g);
  }
}

/* Slots go to branches and come back: memory does not grow with the trees. */
static void slots_come_back(void) {
  ground g;
  rpo_hist *h = NULL;
  rpo_error err;
  rpo_control const control = threads_of(3);
  ground_start(&g, 0);
  CHECK_OK(ground_hist(&g, &h, &err), &err);
  int64_t held = 0;
  for (int i = 0; i < 200; i++) {
    rpo_tree t;
    CHECK_OK(grow(&g, h, &control, &t, &err), &err);
    rpo_tree_release(&t);
    if (i == 99) held = rpo_mem_live;
  }
  CHECK(rpo_mem_live <= held + 16); /* who grows which branch is the threads' affair */
  rpo_hist_free(h);
  ground_end(&g);
}

static rpo_status starved(void *context, rpo_error *err) {
  const ground *const g = context;
  rpo_control const control = threads_of(3);
  rpo_hist *h = NULL;
  rpo_tree t;
  rpo_status status = ground_hist(g, &h, err);
  if (status == RPO_OK) status = grow(g, h, &control, &t, err);
  if (status == RPO_OK) rpo_tree_release(&t);
  rpo_hist_free(h);
  return status;
}

static void without_memory(void) {
  ground g;
  ground_start(&g, 0);
  mini_context("branches");
  until_it_succeeds(starved, &g);
  ground_end(&g);
}

static int32_t stop_later(void *user, int64_t done, int64_t total) {
  int64_t *const left = user;
  (void)done;
  (void)total;
  return --*left < 0;
}

/* Stopped after every number of polls; the same scratch grows the same tree after. */
static void cancelled(void) {
  ground g;
  rpo_hist *h = NULL;
  rpo_tree first, t;
  rpo_error err;
  int64_t stops = 0;
  ground_start(&g, 1);
  CHECK_OK(ground_hist(&g, &h, &err), &err);
  CHECK_OK(grow(&g, h, NULL, &first, &err), &err);
  rpo_poll_seconds = 0.0;
  for (int64_t polls = 0;; polls++) {
    int64_t left = polls;
    rpo_control const control = {3, 0, stop_later, &left, NULL};
    rpo_status const status = grow(&g, h, &control, &t, &err);
    CHECK(status == RPO_OK || status == RPO_ECANCELED);
    if (status == RPO_OK) break;
    stops++;
  }
  rpo_poll_seconds = 0.05;
  CHECK(stops > 5);
  check_same(&first, &t);
  rpo_tree_release(&first);
  rpo_tree_release(&t);
  rpo_hist_free(h);
  ground_end(&g);
}

/* ---- Waiting ---- */

enum { ROWS = 4200, OUTPUTS = 21, ROUNDS = 12 }; /* enough for passes of several threads */

static rpo_boost *boost_of(problem *p, rpo_features *features, const rpo_control *control) {
  rpo_matrix const Y = problem_y(p);
  rpo_boost_data data;
  rpo_options *options = NULL;
  rpo_boost *b = NULL;
  rpo_error err;
  uint8_t watched[ROWS] = {0};
  for (int i = 0; i < ROWS; i += 9) watched[i] = 1;
  memset(&data, 0, sizeof data);
  data.Y = &Y;
  data.watched = watched;
  CHECK_OK(problem_options(p, &options, &err), &err);
  CHECK_OK(rpo_boost_new(options, features, &data, &p->projection, control, &b, &err), &err);
  rpo_options_free(options);
  return b;
}

static int64_t rows_behind(const rpo_boost *b) {
  int64_t count = 0;
  for (int64_t i = 0; i < ROWS; i++) {
    int64_t const behind = b->rounds - b->settled[i];
    CHECK(behind >= 0 && behind <= b->late);
    count += behind > 1;
  }
  return count;
}

/* At once, and with every row's scores read after every round, which leaves none behind. */
static void rows_wait(void) {
  static int32_t const losses[] = {RPO_LOSS_SQUARED,  RPO_LOSS_ABSOLUTE,    RPO_LOSS_HUBER,
                                   RPO_LOSS_LOGISTIC, RPO_LOSS_EXPONENTIAL, RPO_LOSS_SOFTMAX};
  dice d = {5};
  int32_t all[ROWS];
  float *const at_once = mini_room(ROWS * OUTPUTS, 4), *const by_round =
                                                           mini_room(ROWS * OUTPUTS, 4);
  for (int32_t i = 0; i < ROWS; i++) all[i] = i;
  for (int k = 0; k < 6; k++) {
    for (int32_t threads = 1; threads <= 3; threads += 2) {
      table y = table_binary(&d, ROWS, OUTPUTS, 0.2);
      for (int64_t i = 0; i < ROWS && losses[k] == RPO_LOSS_SOFTMAX; i++) {
        for (int64_t j = 0; j < OUTPUTS; j++) y.v[i * OUTPUTS + j] = j == i % OUTPUTS;
      }
      problem p = problem_new(table_random(&d, ROWS, 6, 9, 0.1, 0.05), y);
      rpo_control const control = threads_of(threads);
      rpo_features *features = NULL;
      rpo_error err;
      double loss[2][2 * (ROUNDS + 1)];
      p.sparse_y = losses[k] >= RPO_LOSS_LOGISTIC;
      p.projection.kind = RPO_PROJECT_GAUSSIAN;
      p.projection.components = 1;
      problem_set(&p, RPO_OPT_LOSS, losses[k]);
      problem_set(&p, RPO_OPT_LEAF, RPO_LEAF_NEWTON);
      problem_set(&p, RPO_OPT_RELABEL, 1);
      problem_set(&p, RPO_OPT_MAX_DEPTH, 3);
      problem_set(&p, RPO_OPT_SUBSAMPLE, 0.3);
      problem_set(&p, RPO_OPT_TRAIN_LOSS, 1);
      rpo_matrix const X = problem_x(&p);
      mini_context("loss %d, %d threads", (int)losses[k], (int)threads);
      CHECK_OK(rpo_features_new(&X, 256, NULL, &features, &err), &err);
      rpo_boost *const a = boost_of(&p, features, &control), *const b =
                                                                 boost_of(&p, features, NULL);
      CHECK_EQUAL(a->late, RPO_LATE);
      CHECK_OK(rpo_boost_run(a, ROUNDS, &control, &err), &err);
      CHECK(rows_behind(a) > ROWS / 10);
      for (int r = 0; r < ROUNDS; r++) {
        CHECK_OK(rpo_boost_run(b, 1, NULL, &err), &err);
        CHECK_OK(rpo_boost_scores(b, all, ROWS, NULL, by_round, &err), &err);
        CHECK_EQUAL(rows_behind(b), 0);
      }
      CHECK_OK(rpo_boost_scores(a, all, ROWS, &control, at_once, &err), &err);
      CHECK(memcmp(at_once, by_round, (size_t)(ROWS * OUTPUTS) * 4) == 0);
      CHECK_OK(rpo_boost_losses(a, loss[0], loss[0] + ROUNDS + 1, &err), &err);
      CHECK_OK(rpo_boost_losses(b, loss[1], loss[1] + ROUNDS + 1, &err), &err);
      for (int r = 0; r < ROUNDS; r++) {
        CHECK(loss[0][r] == loss[1][r]);
        CHECK(loss[0][ROUNDS + 1 + r] == loss[1][ROUNDS + 1 + r]);
      }
      rpo_boost_free(a);
      rpo_boost_free(b);
      rpo_features_free(features);
      problem_free(&p);
    }
  }
  free(at_once);
  free(by_round);
}

int main(void) {
  RUN(same_trees);
  RUN(slots_come_back);
  RUN(without_memory);
  RUN(cancelled);
  RUN(rows_wait);
  return mini_done("branches");
}
