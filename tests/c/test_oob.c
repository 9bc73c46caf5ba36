/* Out-of-bag predictions, by the trees and their bootstrap samples, drawn again here. */
#include "forest.h"
#include "kinds.h"
#include "mem.h"

/* Out of bag: the trees whose bootstrap left the row out, redrawn here. */
static void out_of_bag_by_hand(void) {
  enum { N = 70, TREES = 7 };
  dice d = {12};
  for (int k = 0; k < 6; k++) {
    problem p = random_problem(&d, k % X_KINDS, k % Y_KINDS, N, 4, 0.0);
    int64_t const cols = p.y.cols, draws = k < 3 ? N : 20;
    if (k % 2 == 1) random_weights(&d, &p, 0);
    problem_set(&p, RPO_OPT_N_TREES, TREES);
    problem_set(&p, RPO_OPT_SEED, 17 + k);
    problem_set(&p, RPO_OPT_FIRST_TREE, k);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    if (k >= 3) problem_set(&p, RPO_OPT_MAX_SAMPLES, (double)draws);
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_matrix const X = problem_x(&p);
    rpo_control const control = threads_of(2);
    double *const out = mini_room(N * cols, 8), *const expected = mini_room(N * cols, 8);
    int64_t counts[N], left_out[N] = {0};
    double drawn[N], *sums = NULL;
    rpo_error err;
    mini_context("case %d", k);
    CHECK_OK(rpo_forest_predict_oob(f, &X, NULL, p.weight, &control, out, counts, &err), &err);
    CHECK_EQUAL(rpo_weight_sums(p.weight, N, &sums, NULL), RPO_OK);
    for (int64_t tree = 0; tree < TREES; tree++) {
      flat_tree t = tree_read(f, tree);
      double total = 0.0;
      rpo_bootstrap((uint64_t)(17 + k), (uint64_t)(k + tree), draws, sums, N, drawn);
      for (int64_t i = 0; i < N; i++) {
        total += drawn[i];
        if (p.weight != NULL && p.weight[i] == 0.0) CHECK(drawn[i] == 0.0);
        if (drawn[i] > 0.0) continue;
        left_out[i]++;
        int64_t const node = tree_walk(&t, p.x.v + i * 4);
        for (int64_t j = 0; j < cols; j++) expected[i * cols + j] += t.value[node * cols + j];
      }
      CHECK(total == (double)draws);
      CHECK_NEAR(t.a.weight[0], total, 1e-9);
      tree_free(&t);
    }
    for (int64_t i = 0; i < N; i++) {
      CHECK_EQUAL(counts[i], left_out[i]);
      for (int64_t j = 0; j < cols; j++) {
        double const got = out[i * cols + j];
        if (left_out[i] == 0) {
          CHECK(isnan(got));
        } else {
          CHECK_NEAR(got, expected[i * cols + j] / (double)left_out[i], 1e-12);
        }
      }
    }
    rpo_delete(sums);
    free(out);
    free(expected);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* ---- Where leaves hold all rows: the others of the leaf ---- */

enum { ROWS = 50, GROWN = 5 };

static problem relabelled_problem(dice *d, int k) {
  problem p = random_problem(d, k % X_KINDS, k % Y_KINDS, ROWS, 4, 0.0);
  if (k % 3 == 1) random_weights(d, &p, 0);
  if (k % 2 == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
  problem_set(&p, RPO_OPT_N_TREES, GROWN);
  problem_set(&p, RPO_OPT_SEED, 17);
  problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
  return p;
}

static double weight_of(const problem *p, int64_t row) {
  return p->weight == NULL ? 1.0 : p->weight[row];
}

/* Adds, to rows out of the tree's bag, the mean of the other rows in their leaf, where there are any. */
static void add_tree(const problem *p, const flat_tree *t, const double *drawn, double *expected,
                     int64_t *count) {
  int64_t const d = p->y.cols;
  int64_t node[ROWS];
  for (int64_t i = 0; i < ROWS; i++) node[i] = tree_walk(t, p->x.v + i * p->x.cols);
  for (int64_t i = 0; i < ROWS; i++) {
    double weight = 0.0;
    if (drawn[i] > 0.0) continue;
    for (int64_t k = 0; k < ROWS; k++)
      weight += k != i && node[k] == node[i] ? weight_of(p, k) : 0.0;
    if (weight == 0.0) continue;
    count[i]++;
    for (int64_t k = 0; k < ROWS; k++) {
      if (k == i || node[k] != node[i]) continue;
      for (int64_t j = 0; j < d; j++) {
        expected[i * d + j] += weight_of(p, k) / weight * p->y.v[k * d + j];
      }
    }
  }
}

static void check_others(problem *p, const rpo_forest *full, int k) {
  int64_t const d = p->y.cols;
  rpo_matrix const X = problem_x(p), Y = problem_y(p);
  rpo_control const control = threads_of(1 + k % 2);
  double *const out = mini_room(ROWS * d, 8), *const expected = mini_room(ROWS * d, 8);
  int64_t counts[ROWS], count[ROWS] = {0};
  double drawn[ROWS], *sums = NULL;
  rpo_error err;
  CHECK_OK(rpo_forest_predict_oob(full, &X, &Y, p->weight, &control, out, counts, &err), &err);
  CHECK_EQUAL(rpo_weight_sums(p->weight, ROWS, &sums, NULL), RPO_OK);
  for (int64_t tree = 0; tree < GROWN; tree++) {
    flat_tree t = tree_read(full, tree);
    rpo_bootstrap(17, (uint64_t)tree, ROWS, sums, ROWS, drawn);
    add_tree(p, &t, drawn, expected, count);
    tree_free(&t);
  }
  for (int64_t i = 0; i < ROWS; i++) {
    CHECK_EQUAL(counts[i], count[i]);
    for (int64_t j = 0; j < d && count[i] > 0; j++) {
      CHECK_NEAR(out[i * d + j], expected[i * d + j] / (double)count[i], 1e-9);
    }
  }
  rpo_delete(sums);
  free(out);
  free(expected);
}

static void refuse(const problem *p, const rpo_forest *full, const rpo_matrix *X,
                   const rpo_matrix *labels, const char *reason) {
  int64_t const d = p->y.cols;
  double *const out = mini_room(ROWS * d, 8);
  int64_t counts[ROWS];
  rpo_error err;
  CHECK_EQUAL(rpo_forest_predict_oob(full, X, labels, p->weight, NULL, out, counts, &err),
              RPO_EINVAL);
  CHECK(strstr(err.message, reason) != NULL);
  free(out);
}

static void check_refusals(problem *p, const rpo_forest *full) {
  rpo_matrix const X = problem_x(p), Y = problem_y(p);
  rpo_matrix less = X, other = Y;
  refuse(p, full, &X, NULL, "labels is NULL");
  less.rows--;
  refuse(p, full, &less, &Y, "the forest was fitted to 50");
  other.rows--;
  refuse(p, full, &X, &other, "labels must be");
  if (Y.format == RPO_DENSE) {
    table bad = table_new(ROWS, p->y.cols);
    bad.v[3] = NAN;
    rpo_matrix const missing = table_dense(&bad),
                     narrow = {ROWS, 1, RPO_DENSE, RPO_F64, 0, 0, bad.v, 1, 1, NULL, NULL};
    refuse(p, full, &X, &missing, "labels");
    if (p->y.cols > 1) refuse(p, full, &X, &narrow, "labels must be");
    table_free(&bad);
  } else {
    rpo_matrix const by_column = table_compressed(&p->y, RPO_CSC);
    refuse(p, full, &X, &by_column, "labels must be");
  }
}

static void the_others_of_a_leaf(void) {
  dice d = {31};
  for (int k = 0; k < 20; k++) {
    problem p = relabelled_problem(&d, k);
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_forest *const full = problem_relabelled(&p, f, 1);
    mini_context("case %d", k);
    check_others(&p, full, k);
    check_refusals(&p, full);
    rpo_forest_free(f);
    rpo_forest_free(full);
    problem_free(&p);
  }
}

int main(void) {
  RUN(out_of_bag_by_hand);
  RUN(the_others_of_a_leaf);
  return mini_done("oob");
}
