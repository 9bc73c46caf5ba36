/* Reading forests: predictions, paths, weights, ratios, all summed by hand. Neighbour: test_oob.c. */
#include "forest.h"
#include "kinds.h"
#include "mem.h"
#include "model.h"
#include "readout.h"

static void readouts_agree_with_the_trees(void) {
  dice d = {9};
  int forms[2][2] = {{0, 0}, {0, 0}}; /* rows or not, dense or sparse */
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
        forms[rpo_forest_has_rows(f)][f->value_start != NULL]++;
        rpo_forest_free(f);
        table_free(&other);
        problem_free(&p);
      }
    }
  }
  mini_context("%s", "");
  CHECK(forms[0][0] > 0 && forms[0][1] > 0 && forms[1][0] > 0 && forms[1][1] > 0);
}

/* Features that take 32 bits in trees that take 16, and trees that take 32 with 16 bits of features. */
static void wide_indices(void) {
  enum { N = 60, WIDE = 70000, MANY = 40000 };
  dice d = {14};
  problem p = problem_new(table_new(N, WIDE), table_random(&d, N, 2, 0, 0.0, 0.0));
  for (int64_t i = 0; i < N; i++) p.x.v[i * WIDE + WIDE - 1 - dice_below(&d, 30)] = dice_real(&d);
  problem_set(&p, RPO_OPT_N_TREES, 2);
  for (p.sparse_x = 0; p.sparse_x < 2; p.sparse_x++) {
    rpo_forest *const f = problem_forest(&p, 1);
    mini_context("wide, sparse %d", p.sparse_x);
    CHECK(f->feature.type == RPO_TYPE_I32 && f->left.type == RPO_TYPE_I16);
    check_readout(&p, f, &p.x, p.sparse_x, 1);
    rpo_forest_free(f);
  }
  problem_free(&p);
  problem q = problem_new(table_random(&d, MANY, 1, 0, 0.0, 0.0), table_new(MANY, 1));
  for (int64_t i = 0; i < MANY; i++) q.y.v[i] = dice_real(&d);
  for (q.sparse_x = 0; q.sparse_x < 2; q.sparse_x++) {
    rpo_forest *const f = problem_forest(&q, 1);
    rpo_matrix const X = problem_x(&q);
    double *const out = mini_room(MANY, 8);
    mini_context("many, sparse %d", q.sparse_x);
    CHECK(f->feature.type == RPO_TYPE_U16 && f->left.type == RPO_TYPE_I32);
    CHECK_EQUAL(rpo_forest_predict(f, &X, NULL, out, NULL), RPO_OK);
    for (int64_t i = 0; i < MANY; i++) CHECK(out[i] == q.y.v[i]); /* each row its own leaf */
    free(out);
    rpo_forest_free(f);
  }
  problem_free(&q);
}

/* Entries of a sparse row count whatever their order; ones, other numbers, negative ones and missing
 * ones; features beyond the first word of bits. */
static void sparse_rows_in_any_order(void) {
  enum { N = 150, P = 150 };
  dice d = {17};
  for (int kind = 0; kind < 3; kind++) {
    table const x = kind == 0 ? table_binary(&d, N, P, 0.1)
                              : table_random(&d, N, P, 0, 0.9, kind == 2 ? 0.05 : 0.0);
    problem p = problem_new(x, table_random(&d, N, 2, 0, 0.0, 0.0));
    problem_set(&p, RPO_OPT_N_TREES, 6);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 12);
    p.sparse_x = 1;
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_matrix const X = table_compressed(&p.x, RPO_CSR), D = table_dense(&p.x);
    double expected[2 * N], got[2 * N];
    mini_context("kind %d", kind);
    CHECK_EQUAL(rpo_forest_predict(f, &D, NULL, expected, NULL), RPO_OK);
    CHECK_EQUAL(rpo_forest_predict(f, &X, NULL, got, NULL), RPO_OK);
    CHECK(memcmp(expected, got, sizeof got) == 0);
    for (int64_t i = 0; i < N; i++) {
      for (int32_t a = p.x.start[i], b = p.x.start[i + 1] - 1; a < b; a++, b--) {
        int32_t const index = p.x.index[a];
        double const value = p.x.stored[a];
        p.x.index[a] = p.x.index[b];
        p.x.stored[a] = p.x.stored[b];
        p.x.index[b] = index;
        p.x.stored[b] = value;
      }
    }
    CHECK_EQUAL(rpo_forest_predict(f, &X, NULL, got, NULL), RPO_OK);
    CHECK(memcmp(expected, got, sizeof got) == 0);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* The form that takes fewest bytes is chosen, and the same trees in either form weigh the same. */
static void forms_of_the_same_trees(void) {
  enum { N = 400 };
  dice d = {15};
  for (int k = 0; k < 6; k++) {
    problem p = random_problem(&d, k % 2 == 0 ? X_REAL : X_LEVELS, Y_FEW, N, 5, 0.0);
    problem_set(&p, RPO_OPT_N_TREES, 20);
    problem_set(&p, RPO_OPT_SEED, 3 + k);
    problem_set(&p, RPO_OPT_FIRST_TREE, k);
    problem_set(&p, RPO_OPT_MAX_DEPTH, 5);
    problem_set(&p, RPO_OPT_BOOTSTRAP, k % 2);
    if (k >= 2) random_weights(&d, &p, k == 4);
    if (k == 5) problem_set(&p, RPO_OPT_MAX_SAMPLES, 300);
    rpo_matrix const X = problem_x(&p);
    weight_matrix w[3];
    double bytes[3];
    mini_context("case %d", k);
    for (int form = 0; form < 3; form++) { /* dense table, sparse table, rows */
      table_free(&p.labels);
      p.labels = form == 0   ? table_random(&d, N, 1, 0, 0.0, 0.0)
                 : form == 1 ? table_binary(&d, N, 3000, 0.00002)
                             : table_random(&d, N, 2000, 0, 0.5, 0.0);
      p.sparse_y = form == 1;
      rpo_leaf_rows *again = NULL;
      rpo_error err;
      rpo_forest *const f = problem_forest(&p, 1);
      CHECK_EQUAL(rpo_forest_has_rows(f), form == 2);
      CHECK_EQUAL(f->value_start != NULL, form == 1);
      CHECK_OK(rpo_leaf_rows_new(f, &X, p.weight, NULL, &again, &err), &err);
      w[form] = weights_read(f, form == 2 ? NULL : again, &X, NULL);
      bytes[form] = (double)rpo_forest_bytes(f);
      rpo_leaf_rows_free(again);
      rpo_forest_free(f);
    }
    CHECK(weights_equal(&w[0], &w[1]));
    CHECK(weights_equal(&w[0], &w[2]));
    CHECK(bytes[1] < bytes[2]);
    for (int form = 0; form < 3; form++) weights_free(&w[form]);
    problem_free(&p);
  }
}

/* What was not the forest's training data is refused, by name. */
static void other_leaf_rows_are_refused(void) {
  enum { N = 80 };
  dice d = {16};
  problem p = random_problem(&d, X_REAL, Y_FEW, N, 4, 0.0);
  problem_set(&p, RPO_OPT_N_TREES, 3);
  random_weights(&d, &p, 0);
  rpo_forest *const f = problem_forest(&p, 1);
  rpo_matrix X = problem_x(&p);
  rpo_leaf_rows *s = NULL;
  rpo_error err;
  double bad[N];
  int64_t indptr[N + 1];
  memcpy(bad, p.weight, sizeof bad);
  bad[3] += 0.5;
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, bad, NULL, &s, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "X and weight are not those of the fit") != NULL);
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, NULL, NULL, &s, &err), RPO_EINVAL);
  bad[3] = -1.0;
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, bad, NULL, &s, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "weight must be finite") != NULL);
  bad[3] = 1e51;
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, bad, NULL, &s, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "weight must be 1e+50 at most, found 1e+51") != NULL);
  for (int64_t i = 0; i < N; i++) bad[i] = 5e-324;
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, bad, NULL, &s, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "less than 1e-50") != NULL);
  memcpy(bad, p.weight, sizeof bad);
  double const kept = p.x.v[0];
  for (int64_t j = 0; j < 4; j++) p.x.v[j] = p.x.v[4 * (N / 2) + j] + (j == 0 ? 5.0 : 0.0);
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, p.weight, NULL, &s, &err), RPO_EINVAL);
  p.x.v[0] = kept;
  X.rows = N - 1;
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, p.weight, NULL, &s, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "X has 79 rows, the forest was fitted to 80") != NULL);
  CHECK_EQUAL(rpo_leaf_rows_new(f, NULL, p.weight, NULL, &s, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_leaf_rows_new(NULL, &X, p.weight, NULL, &s, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_leaf_rows_new(f, &X, p.weight, NULL, NULL, NULL), RPO_EINVAL);
  CHECK(s == NULL);
  rpo_forest_free(f);
  problem_free(&p);

  problem q = random_problem(&d, X_REAL, Y_FEW, N, 4, 0.0),
          r = random_problem(&d, X_REAL, Y_FEW, N, 4, 0.0);
  problem_set(&q, RPO_OPT_MAX_DEPTH, 3);
  problem_set(&r, RPO_OPT_MAX_DEPTH, 2);
  rpo_forest *const a = problem_forest(&q, 1), *const b = problem_forest(&r, 1);
  rpo_matrix const XQ = problem_x(&q);
  CHECK_OK(rpo_leaf_rows_new(a, &XQ, NULL, NULL, &s, &err), &err);
  CHECK_EQUAL(rpo_forest_weights(b, s, &XQ, NULL, indptr, NULL, NULL, &err), RPO_EINVAL);
  CHECK(strstr(err.message, "another forest") != NULL);
  rpo_leaf_rows_free(s);
  rpo_leaf_rows_free(NULL);
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&q);
  problem_free(&r);
}

/* Means of the training rows of each leaf, whichever readout was chosen. */
/* What the first call counted is not what the second is given. */
static void other_counts_are_refused(void) {
  enum { N = 60 };
  dice d = {19};
  problem p = random_problem(&d, X_REAL, Y_LABELS, N, 4, 0.0);
  rpo_forest *const f = problem_forest(&p, 1);
  rpo_matrix const X = problem_x(&p);
  rpo_leaf_rows *s = NULL;
  rpo_error err;
  int64_t indptr[2][N + 1];
  CHECK_OK(rpo_leaf_rows_new(f, &X, NULL, NULL, &s, &err), &err);
  CHECK_OK(rpo_forest_paths(f, &X, NULL, NULL, indptr[0], NULL, &err), &err);
  CHECK_OK(rpo_forest_weights(f, s, &X, NULL, indptr[1], NULL, NULL, &err), &err);
  for (int which = 0; which < 2; which++) {
    int64_t *const at = indptr[which];
    int64_t *const columns = mini_room(at[N], 8);
    double *const values = mini_room(at[N], 8);
    for (int slip = 0; slip < 4; slip++) {
      at[0] += slip == 1;
      at[N / 2] += slip == 2;
      at[N] -= slip == 3 ? 2 * (at[N] - at[N - 1]) : 0;
      rpo_status const status = which == 0
                                    ? rpo_forest_paths(f, &X, NULL, NULL, at, columns, &err)
                                    : rpo_forest_weights(f, s, &X, NULL, at, columns, values, &err);
      CHECK_EQUAL(status, slip == 0 ? RPO_OK : RPO_EINVAL);
      CHECK(slip == 0 || strstr(err.message, "indptr must be that of the first call") != NULL);
      at[0] -= slip == 1;
      at[N / 2] -= slip == 2;
    }
    free(columns);
    free(values);
  }
  rpo_leaf_rows_free(s);
  rpo_forest_free(f);
  problem_free(&p);
}

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
    rpo_matrix const X = problem_x(&p), Y = problem_y(&p);
    CHECK_EQUAL(rpo_forest_importances_on(f, &X, &Y, p.weight, NULL, got, NULL), RPO_OK);
    for (int j = 0; j < 5; j++) CHECK_NEAR(got[j], expected[j], 1e-5); /* kept in floats */
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* A relabelled tree: the structure of its sample, the means of all rows; labelled twice, the same.
 * Codes of each width, bins, missing values, random cuts; rows of many entries, shallow trees. */
static void relabelled_by_hand(void) {
  enum { FEW = 60, WIDE = 24, CASES = 30 };
  static const struct { /* codes of two and of four bytes; rows whose few codes are looked up */
    int64_t rows, cols, levels, depth;
    double zero, missing;
  } wide[CASES - WIDE] = {{300, 4, 0, 0, 0.0, 0.0},     {70000, 4, 0, 9, 0.0, 0.0},
                          {4000, 4, 0, 0, 0.85, 0.0},   {360000, 4, 0, 9, 0.81, 0.0},
                          {400, 100, 5, 2, 0.85, 0.02}, {400, 100, 0, 2, 0.82, 0.02}};
  dice d = {14};
  for (int k = 0; k < CASES; k++) {
    int64_t const N = k < WIDE ? FEW : wide[k - WIDE].rows;
    problem p =
        random_problem(&d, k % X_KINDS, k < WIDE ? k % Y_KINDS : Y_FEW, N, 4, k >= 8 ? 0.1 : 0.0);
    if (k >= WIDE) {
      int const w = k - WIDE;
      table_free(&p.x);
      p.x = table_random(&d, N, wide[w].cols, wide[w].levels, wide[w].zero, wide[w].missing);
      p.sparse_x = wide[w].zero > 0.0;
      problem_set(&p, RPO_OPT_MAX_DEPTH, (double)wide[w].depth);
    }
    int64_t const cols = p.y.cols;
    if (k % 3 == 1) random_weights(&d, &p, 0);
    if (k < WIDE && k % 2 == 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    if (k >= 12 && k < 20) p.max_bins = 5;
    problem_set(&p, RPO_OPT_RANDOM_CUT, k % 8 >= 4);
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    rpo_forest *const f = problem_forest(&p, 1);
    mini_context("case %d", k);
    rpo_forest *const full = problem_relabelled(&p, f, 2);
    rpo_forest *const again = problem_relabelled(&p, full, 1);
    CHECK(forests_equal(full, again));
    flat_tree t = tree_read(f, 0), u = tree_read(full, 0);
    double *const sum = mini_room(t.nodes * cols, 8), *const weight = mini_room(t.nodes, 8);
    CHECK_EQUAL(t.nodes, u.nodes);
    for (int64_t i = 0; i < N; i++) {
      int64_t const node = tree_walk(&t, p.x.v + i * p.x.cols);
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
  RUN(wide_indices);
  RUN(sparse_rows_in_any_order);
  RUN(forms_of_the_same_trees);
  RUN(other_leaf_rows_are_refused);
  RUN(other_counts_are_refused);
  RUN(values_are_means_of_rows);
  RUN(importances_by_hand);
  RUN(relabelled_by_hand);
  RUN(ratio_by_hand);
  return mini_done("readout");
}
