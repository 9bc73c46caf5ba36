/* Class weights from bootstrap samples, against the definition taken literally. */
#include "balance.h"

#include "forest.h"
#include "kinds.h"

/* The product over outputs of draws / (classes present * frequency), each counted anew. */
static double literal_weight(const table *y, int64_t kind, const double *counts, int64_t row) {
  double draws = 0.0, weight = 1.0;
  for (int64_t i = 0; i < y->rows; i++) draws += counts[i];
  int64_t classes = 0;
  for (int64_t j = 0; j < y->cols; j++) {
    double same = 0.0, ones = 0.0;
    for (int64_t i = 0; i < y->rows; i++) {
      ones += y->v[i * y->cols + j] * counts[i];
      same += y->v[i * y->cols + j] == y->v[row * y->cols + j] ? counts[i] : 0.0;
    }
    classes += ones > 0.0;
    if (kind == RPO_BALANCE_LABELS) weight *= draws / ((same < draws ? 2.0 : 1.0) * same);
    if (kind == RPO_BALANCE_CLASSES && y->v[row * y->cols + j] == 1.0) weight = draws / ones;
  }
  return kind == RPO_BALANCE_LABELS ? weight : weight / (double)classes;
}

static rpo_labels labels_of(table *y) {
  rpo_labels labels;
  rpo_error err;
  rpo_matrix const Y = table_compressed(y, RPO_CSR);
  CHECK_OK(rpo_labels_new(&Y, &labels, &err), &err);
  return labels;
}

static void weights_are_the_definition(void) {
  dice d = {41};
  for (int k = 0; k < 60; k++) {
    int64_t const kind = k % 2 ? RPO_BALANCE_LABELS : RPO_BALANCE_CLASSES;
    int64_t const n = 1 + dice_below(&d, 30);
    table y = kind == RPO_BALANCE_LABELS
                  ? table_binary(&d, n, 1 + dice_below(&d, 9), 0.2 * (double)(k % 6))
                  : random_y(&d, Y_ONE_CLASS, n);
    rpo_labels labels = labels_of(&y);
    double *const counts = mini_room(n, 8), *const weight = mini_room(n, 8);
    double *const room = mini_room(y.cols, 8);
    rpo_bootstrap((uint64_t)k, 0, 1 + dice_below(&d, 2 * n), NULL, n, counts);
    memcpy(weight, counts, (size_t)n * sizeof *weight);
    mini_context("case %d", k);
    CHECK_EQUAL(rpo_balance_check(&labels, kind, NULL), RPO_OK);
    rpo_balance_sample(&labels, kind, room, weight);
    for (int64_t i = 0; i < n; i++) {
      double const literal =
          counts[i] > 0.0 ? counts[i] * literal_weight(&y, kind, counts, i) : 0.0;
      CHECK_NEAR(weight[i], literal, 1e-12 * literal);
    }
    free(counts);
    free(weight);
    free(room);
    rpo_labels_release(&labels);
    table_free(&y);
  }
}

/* 4000 labels: the products are about 2^-4000, their ratios are kept. */
static void products_stay_in_range(void) {
  enum { D = 4000 };
  table y = table_new(3, D);
  for (int64_t j = 0; j < D; j++) y.v[j % 2 * D + j] = 1.0; /* rows 0 and 1 share the labels */
  y.v[1] = 1.0;                                             /* one label more for row 0 */
  rpo_labels labels = labels_of(&y);
  double *const room = mini_room(D, 8);
  double weight[3] = {1.0, 1.0, 2.0};
  rpo_balance_sample(&labels, RPO_BALANCE_LABELS, room, weight);
  /* Of 4 draws a label's 1 weighs 2, its 0 weighs 2/3; label 1, in two draws, 1 either way. */
  CHECK(weight[0] >= 0.25 && weight[0] <= 4.0);
  CHECK_NEAR(weight[1] / weight[0], 1.0 / 3.0, 1e-9);
  CHECK(weight[2] == 0.0 || weight[2] < 1e-300); /* 3^-2000 of the others */
  free(room);
  rpo_labels_release(&labels);
  table_free(&y);
}

/* Tree t of a balanced forest is tree t grown on the weights of its sample. */
static void trees_grow_on_these_weights(void) {
  dice d = {42};
  for (int k = 0; k < 8; k++) {
    int64_t const kind = k % 2 ? RPO_BALANCE_LABELS : RPO_BALANCE_CLASSES, n = 150;
    problem p = random_problem(&d, k / 2, k % 2 ? Y_LABELS : Y_ONE_CLASS, n, 6, 0.0);
    problem_set(&p, RPO_OPT_N_TREES, 5);
    problem_set(&p, RPO_OPT_SEED, 9);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 3);
    problem_set(&p, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF, 0.02);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    problem_set(&p, RPO_OPT_BALANCE, (double)kind);
    rpo_forest *const forest = problem_forest(&p, 2), *const serial = problem_forest(&p, 1);
    CHECK(forests_equal(forest, serial));
    rpo_labels labels = labels_of(&p.y);
    double *const room = mini_room(p.y.cols, 8);
    p.weight = mini_room(n, 8);
    problem_set(&p, RPO_OPT_N_TREES, 1);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 0);
    for (int64_t t = 0; t < 5; t++) {
      rpo_bootstrap(9, (uint64_t)t, n, NULL, n, p.weight);
      rpo_balance_sample(&labels, kind, room, p.weight);
      problem_set(&p, RPO_OPT_FIRST_TREE, (double)t);
      rpo_forest *const alone = problem_forest(&p, 1);
      flat_tree a = tree_read(forest, t), b = tree_read(alone, 0);
      mini_context("case %d, tree %lld", k, (long long)t);
      if (CHECK_EQUAL(a.nodes, b.nodes)) {
        size_t const bytes = (size_t)a.nodes * 8;
        CHECK(memcmp(a.a.feature, b.a.feature, bytes) == 0);
        CHECK(memcmp(a.a.threshold, b.a.threshold, bytes) == 0);
        CHECK(memcmp(a.a.weight, b.a.weight, bytes) == 0);
        for (int64_t i = 0; i < a.nodes * p.y.cols; i++) CHECK_NEAR(a.value[i], b.value[i], 1e-12);
      }
      tree_free(&a);
      tree_free(&b);
      rpo_forest_free(alone);
    }
    free(room);
    rpo_labels_release(&labels);
    rpo_forest_free(forest);
    rpo_forest_free(serial);
    problem_free(&p);
  }
}

static void other_labels_are_refused(void) {
  dice d = {43};
  for (int k = 0; k < 3; k++) {
    problem p = random_problem(&d, X_REAL, k == 1 ? Y_SPARSE_REAL : Y_LABELS, 30, 3, 0.0);
    rpo_forest *forest = NULL;
    rpo_error err;
    p.sparse_y = k > 0; /* dense, real, several classes a row */
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    problem_set(&p, RPO_OPT_BALANCE, k == 2 ? RPO_BALANCE_CLASSES : RPO_BALANCE_LABELS);
    mini_context("case %d", k);
    CHECK_EQUAL(problem_fit(&p, NULL, NULL, &forest, &err), RPO_EINVAL);
    CHECK(strstr(err.message, "balance") != NULL);
    CHECK(forest == NULL);
    problem_free(&p);
  }
}

int main(void) {
  RUN(weights_are_the_definition);
  RUN(products_stay_in_range);
  RUN(trees_grow_on_these_weights);
  RUN(other_labels_are_refused);
  return mini_done("balance");
}
