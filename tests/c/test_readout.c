/* Reading forests: predictions, paths, weights, out-of-bag, ratios, all summed by hand. */
#include "forest.h"
#include "kinds.h"
#include "mem.h"
#include "readout.h"

static void readouts_agree_with_the_trees(void) {
  dice d = {9};
  for (int x = 0; x < X_KINDS; x++) {
    for (int y = 0; y < Y_KINDS; y++) {
      for (int k = 0; k < 4; k++) {
        problem p = random_problem(&d, x, y, 60, 5, x < X_BINARY ? 0.05 : 0.0);
        /* other rows, some with values missing in columns where the fit saw none */
        table other = random_x(&d, x, 700 - 150 * k, 5, 0.2);
        problem_set(&p, RPO_OPT_N_TREES, 4);
        problem_set(&p, RPO_OPT_MAX_FEATURES, 2);
        if (k % 2 == 1) problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
        if (k == 2) random_weights(&d, &p, 0);
        if (k == 3) problem_set(&p, RPO_OPT_MAX_DEPTH, 2); /* few leaves: a leaf table */
        rpo_forest *const f = problem_forest(&p, 1);
        mini_context("x kind %d, y kind %d, case %d", x, y, k);
        check_readout(&p, f, &other, k % 2, 1 + k);
        check_readout(&p, f, &p.x, p.sparse_x, 2);
        check_weights(&p, f, 1 + k);
        rpo_forest_free(f);
        table_free(&other);
        problem_free(&p);
      }
    }
  }
}

/* Means of the training rows of each leaf, whichever readout was chosen. */
static void values_are_means_of_rows(void) {
  dice d = {10};
  int tables = 0;
  for (int k = 0; k < 20; k++) {
    problem p = random_problem(&d, k % X_KINDS, k % Y_KINDS, 50, 4, 0.0);
    int64_t const cols = p.y.cols;
    if (k % 3 == 1) random_weights(&d, &p, 0);
    if (k % 2 == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    rpo_forest *const f = problem_forest(&p, 1);
    flat_tree t = tree_read(f, 0);
    double *const mean = mini_room(t.nodes * cols, 8), *const weight = mini_room(t.nodes, 8);
    int64_t *const rows = mini_room(t.nodes, 8);
    mini_context("case %d", k);
    tables += !rpo_forest_has_rows(f);
    for (int64_t i = 0; i < 50; i++) {
      double const w = p.weight == NULL ? 1.0 : p.weight[i];
      int64_t node = 0;
      for (;;) {
        weight[node] += w;
        rows[node] += w > 0.0;
        for (int64_t j = 0; j < cols; j++) mean[node * cols + j] += w * p.y.v[i * cols + j];
        if (t.a.left[node] < 0) break;
        node = tree_goes_left(&t, node, p.x.v + i * 4) ? t.a.left[node] : t.a.right[node];
      }
    }
    for (int64_t i = 0; i < t.nodes; i++) {
      CHECK_EQUAL(t.a.n_samples[i], rows[i]);
      for (int64_t j = 0; j < cols; j++) {
        CHECK_NEAR(t.value[i * cols + j], mean[i * cols + j] / weight[i], 1e-12);
      }
    }
    CHECK_EQUAL(t.a.n_samples[0], rows[0]); /* the leaves' rows partition the root's */
    free(mean);
    free(weight);
    free(rows);
    tree_free(&t);
    rpo_forest_free(f);
    problem_free(&p);
  }
  mini_context("%s", "");
  CHECK(tables > 0 && tables < 20); /* both readouts were met */
}

/* Importances: the weighted decreases by feature, a tree's summing to 1. */
static void importances_by_hand(void) {
  dice d = {11};
  for (int k = 0; k < 8; k++) {
    problem p = random_problem(&d, k % X_KINDS, k % Y_KINDS, 80, 5, 0.0);
    problem_set(&p, RPO_OPT_N_TREES, 3);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 2);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    rpo_forest *const f = problem_forest(&p, 1);
    double got[5], expected[5] = {0.0}, sum = 0.0;
    mini_context("case %d", k);
    CHECK_EQUAL(rpo_forest_importances(f, got, NULL), RPO_OK);
    for (int64_t tree = 0; tree < 3; tree++) {
      flat_tree t = tree_read(f, tree);
      double own[5] = {0.0}, total = 0.0;
      for (int64_t i = 0; i < t.nodes; i++) {
        int64_t const l = t.a.left[i], r = t.a.right[i];
        if (l < 0) continue;
        double const gain = t.a.weight[i] * t.a.impurity[i] - t.a.weight[l] * t.a.impurity[l] -
                            t.a.weight[r] * t.a.impurity[r];
        own[t.a.feature[i]] += gain;
        total += gain;
      }
      for (int j = 0; j < 5 && total > 0.0; j++) expected[j] += own[j] / total / 3.0;
      tree_free(&t);
    }
    for (int j = 0; j < 5; j++) {
      CHECK_NEAR(got[j], expected[j], 1e-9);
      sum += got[j];
    }
    CHECK_NEAR(sum, 1.0, 1e-12);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* A relabelled tree: the structure of its sample, the means of all rows; labelled twice, the same. */
static void relabelled_by_hand(void) {
  enum { N = 60 };
  dice d = {14};
  for (int k = 0; k < 8; k++) {
    problem p = random_problem(&d, k % X_KINDS, k % Y_KINDS, N, 4, 0.0);
    int64_t const cols = p.y.cols;
    if (k % 3 == 1) random_weights(&d, &p, 0);
    if (k % 2 == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_matrix const X = problem_x(&p), Y = problem_y(&p);
    rpo_control const control = threads_of(2);
    rpo_forest *full = NULL, *again = NULL;
    rpo_error err;
    mini_context("case %d", k);
    CHECK_OK(rpo_forest_relabel(f, &X, &Y, p.weight, &control, &full, &err), &err);
    CHECK_OK(rpo_forest_relabel(full, &X, &Y, p.weight, NULL, &again, &err), &err);
    CHECK(forests_equal(full, again));
    flat_tree t = tree_read(f, 0), u = tree_read(full, 0);
    double *const sum = mini_room(t.nodes * cols, 8), *const weight = mini_room(t.nodes, 8);
    CHECK_EQUAL(t.nodes, u.nodes);
    for (int64_t i = 0; i < N; i++) {
      int64_t const node = tree_walk(&t, p.x.v + i * 4);
      double const w = p.weight == NULL ? 1.0 : p.weight[i];
      weight[node] += w;
      for (int64_t j = 0; j < cols; j++) sum[node * cols + j] += w * p.y.v[i * cols + j];
    }
    for (int64_t i = 0; i < t.nodes; i++) {
      CHECK_EQUAL(t.a.left[i], u.a.left[i]);
      CHECK(t.a.threshold[i] == u.a.threshold[i] && t.a.impurity[i] == u.a.impurity[i]);
      if (t.a.left[i] >= 0) continue;
      CHECK_NEAR(u.a.weight[i], weight[i], 1e-9);
      for (int64_t j = 0; j < cols; j++) {
        CHECK_NEAR(u.value[i * cols + j], sum[i * cols + j] / weight[i], 1e-9);
      }
    }
    tree_free(&t);
    tree_free(&u);
    free(sum);
    free(weight);
    rpo_forest_free(f);
    rpo_forest_free(full);
    rpo_forest_free(again);
    problem_free(&p);
  }
}

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

/* Ratios of pooled sums, the fallback where the denominator is zero. */
static void ratio_by_hand(void) {
  enum { N = 60, D = 4 };
  dice d = {13};
  for (int k = 0; k < 4; k++) {
    problem p = random_problem(&d, X_LEVELS, k < 2 ? Y_REAL : Y_LABELS, N, 3, 0.0);
    table labels = table_new(N, 2 * D);
    for (int64_t i = 0; i < N; i++) {
      for (int j = 0; j < D; j++) {
        double const seen = dice_real(&d) < (j == 0 ? 0.05 : 0.7) ? 1.0 : 0.0;
        labels.v[i * 2 * D + j] = seen * dice_real(&d);
        labels.v[i * 2 * D + D + j] = seen;
      }
    }
    p.labels = labels;
    p.fallback = mini_room(D, 8);
    for (int j = 0; j < D; j++) p.fallback[j] = 100.0 + j;
    problem_set(&p, RPO_OPT_LABEL_RATIO, 1);
    problem_set(&p, RPO_OPT_N_TREES, 3);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    problem_set(&p, RPO_OPT_SEED, 3);
    if (k % 2 == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_matrix const X = problem_x(&p);
    double *const out = mini_room(N * D, 8);
    double *const sum = mini_room(N * 2 * D, 8);
    int fallbacks = 0;
    mini_context("case %d", k);
    CHECK_EQUAL(rpo_forest_outputs(f), D);
    CHECK_EQUAL(rpo_forest_predict(f, &X, NULL, out, NULL), RPO_OK);
    for (int64_t tree = 0; tree < 3; tree++) {
      flat_tree t = tree_read(f, tree);
      double drawn[N];
      rpo_bootstrap(3, (uint64_t)tree, N, NULL, N, drawn);
      for (int64_t i = 0; i < N; i++) {
        int64_t const node = tree_walk(&t, p.x.v + i * 3);
        for (int64_t r = 0; r < N; r++) {
          if (tree_walk(&t, p.x.v + r * 3) != node) continue;
          for (int j = 0; j < 2 * D; j++) {
            sum[i * 2 * D + j] += drawn[r] * labels.v[r * 2 * D + j] / t.a.weight[node];
          }
        }
      }
      tree_free(&t);
    }
    for (int64_t i = 0; i < N * D; i++) {
      double const above = sum[i / D * 2 * D + i % D], below = sum[i / D * 2 * D + D + i % D];
      fallbacks += below == 0.0;
      CHECK_NEAR(out[i], below > 0.0 ? above / below : p.fallback[i % D], 1e-12);
    }
    if (k % 2 == 0) CHECK(fallbacks > 0);
    free(out);
    free(sum);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

int main(void) {
  RUN(readouts_agree_with_the_trees);
  RUN(values_are_means_of_rows);
  RUN(importances_by_hand);
  RUN(relabelled_by_hand);
  RUN(out_of_bag_by_hand);
  RUN(ratio_by_hand);
  return mini_done("readout");
}
