/* Every split is the best there is: a brute-force splitter looks at all cuts of all features. */
#include "forest.h"
#include "kinds.h"

/* ---- The brute-force splitter ---- */

typedef struct oracle {
  problem *p;
  const flat_tree *t;
  const double *weight; /* by row, of the tree; 0: not in it */
  int32_t **codes;      /* by column */
  int64_t *bins;
  double total, min_leaf_weight;
  int64_t min_leaf, min_split, max_depth;
} oracle;

/* Weight times impurity (the sum over outputs of the variances), two passes for accuracy. */
static double scatter(const oracle *o, const int64_t *rows, int64_t count) {
  int64_t const d = o->p->y.cols;
  double weight = 0.0, sum = 0.0;
  for (int64_t i = 0; i < count; i++) weight += o->weight[rows[i]];
  for (int64_t j = 0; j < d; j++) {
    double mean = 0.0;
    for (int64_t i = 0; i < count; i++) mean += o->weight[rows[i]] * o->p->y.v[rows[i] * d + j];
    mean /= weight;
    for (int64_t i = 0; i < count; i++) {
      double const off = o->p->y.v[rows[i] * d + j] - mean;
      sum += o->weight[rows[i]] * off * off;
    }
  }
  return sum;
}

static double weight_of(const oracle *o, const int64_t *rows, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++) sum += o->weight[rows[i]];
  return sum;
}

/* Splits rows by code <= cut, the missing to `missing_left`; returns how many are left. */
static int64_t split_by_code(const oracle *o, const int64_t *rows, int64_t count, int64_t col,
                             int64_t cut, int missing_left, int64_t *out) {
  int64_t left = 0, right = count;
  for (int64_t i = 0; i < count; i++) {
    int32_t const code = o->codes[col][rows[i]];
    int const goes_left = code == o->bins[col] ? missing_left : code <= cut;
    out[goes_left ? left++ : --right] = rows[i];
  }
  return left;
}

static int allowed(const oracle *o, const int64_t *rows, int64_t left, int64_t count) {
  double const slack = 1e-12 * o->total;
  return left > 0 && left < count && left >= o->min_leaf && count - left >= o->min_leaf &&
         weight_of(o, rows, left) >= o->min_leaf_weight - slack &&
         weight_of(o, rows + left, count - left) >= o->min_leaf_weight - slack;
}

/* Least scatter left over by any cut of any feature; infinite when there is none. */
static double least_scatter(const oracle *o, const int64_t *rows, int64_t count, int64_t *scratch) {
  double least = INFINITY;
  for (int64_t j = 0; j < o->p->x.cols; j++) {
    for (int64_t cut = 0; cut < o->bins[j]; cut++) { /* the last: values against missing */
      for (int missing_left = 0; missing_left < 2; missing_left++) {
        int64_t const left = split_by_code(o, rows, count, j, cut, missing_left, scratch);
        if (!allowed(o, scratch, left, count)) continue;
        double const here = scatter(o, scratch, left) + scatter(o, scratch + left, count - left);
        least = here < least ? here : least;
      }
    }
  }
  return least;
}

static int all_equal(const oracle *o, const int64_t *rows, int64_t count) {
  int64_t const d = o->p->y.cols;
  for (int64_t i = 1; i < count; i++) {
    if (memcmp(o->p->y.v + rows[i] * d, o->p->y.v + rows[0] * d, (size_t)d * 8) != 0) return 0;
  }
  return 1;
}

/* A leaf must have a reason to be one. */
static void check_leaf(const oracle *o, const int64_t *rows, int64_t count, int64_t depth,
                       int64_t *scratch) {
  if (all_equal(o, rows, count) || depth >= o->max_depth || count < o->min_split ||
      count < 2 * o->min_leaf) {
    return;
  }
  CHECK(least_scatter(o, rows, count, scratch) == INFINITY);
}

/* The cut lies midway between the values it parts; infinite when only missing ones go right. */
static void check_threshold(const oracle *o, int64_t node, const int64_t *rows, int64_t left,
                            int64_t count) {
  int64_t const feature = o->t->a.feature[node];
  double const cut = o->t->a.threshold[node];
  double below = -INFINITY, above = INFINITY;
  for (int64_t i = 0; i < count; i++) {
    double const v = o->p->x.v[rows[i] * o->p->x.cols + feature];
    if (isnan(v)) continue;
    if (i < left) {
      below = v > below ? v : below;
    } else {
      above = v < above ? v : above;
    }
  }
  CHECK(below <= cut && (cut < above || above == INFINITY));
  if (o->p->max_bins == 0 && above < INFINITY && below > -INFINITY) {
    CHECK_NEAR(cut, below / 2 + above / 2, 1e-12 * (fabs(below) + fabs(above)));
  }
}

static void check_node(const oracle *o, int64_t node, int64_t *rows, int64_t count, int64_t depth,
                       int64_t *scratch) {
  const flat_tree *const t = o->t;
  double const whole = scatter(o, rows, count), weight = weight_of(o, rows, count);
  CHECK_EQUAL(t->a.n_samples[node], count);
  CHECK_NEAR(t->a.weight[node], weight, 1e-12 * o->total);
  /* impurities are kept in single precision */
  CHECK_NEAR(t->a.impurity[node], whole / weight, 1e-6 * whole / weight + 1e-9);
  if (t->a.left[node] < 0) {
    check_leaf(o, rows, count, depth, scratch);
    return;
  }
  int64_t left = 0, right = count;
  for (int64_t i = 0; i < count; i++) {
    int const side = tree_goes_left(t, node, o->p->x.v + rows[i] * o->p->x.cols);
    scratch[side ? left++ : --right] = rows[i];
  }
  if (!CHECK(left > 0 && left < count)) return;
  memcpy(rows, scratch, (size_t)count * sizeof *rows);
  CHECK(allowed(o, rows, left, count));
  CHECK(depth < o->max_depth && count >= o->min_split);
  check_threshold(o, node, rows, left, count);
  double const got = scatter(o, rows, left) + scatter(o, rows + left, count - left);
  CHECK_NEAR(got, least_scatter(o, rows, count, scratch), 1e-9 * (1.0 + whole));
  check_node(o, t->a.left[node], rows, left, depth + 1, scratch);
  check_node(o, t->a.right[node], rows + left, count - left, depth + 1, scratch);
}

/* Every split of every tree of the problem is the best one. */
static void check_splits(problem *p) {
  rpo_features *features = NULL;
  rpo_forest *forest = NULL;
  rpo_error err;
  int64_t const n = p->x.rows;
  if (!CHECK_OK(problem_fit(p, NULL, &features, &forest, &err), &err)) return;
  double *const weight = mini_room(n, 8);
  int64_t *const rows = mini_room(n, 8), *const scratch = mini_room(n, 8);
  double const limit = problem_get(p, RPO_OPT_MAX_DEPTH, 0);
  oracle o = {p,
              NULL,
              weight,
              mini_room(p->x.cols, sizeof *o.codes),
              mini_room(p->x.cols, 8),
              0.0,
              0.0,
              (int64_t)problem_get(p, RPO_OPT_MIN_SAMPLES_LEAF, 1),
              (int64_t)problem_get(p, RPO_OPT_MIN_SAMPLES_SPLIT, 2),
              limit > 0 ? (int64_t)limit : INT64_MAX};
  for (int64_t j = 0; j < p->x.cols; j++) {
    o.codes[j] = mini_room(n, 4);
    o.bins[j] = rpo_features_bins(features, j);
    CHECK_EQUAL(rpo_features_codes(features, j, o.codes[j], NULL), RPO_OK);
  }
  for (int64_t tree = 0; tree < rpo_forest_trees(forest); tree++) {
    flat_tree t = tree_read(forest, tree);
    int64_t count = 0;
    o.total = 0.0;
    if (problem_get(p, RPO_OPT_BOOTSTRAP, 0) > 0) {
      rpo_bootstrap((uint64_t)problem_get(p, RPO_OPT_SEED, 0), (uint64_t)tree, n, NULL, n, weight);
    } else {
      for (int64_t i = 0; i < n; i++) weight[i] = p->weight == NULL ? 1.0 : p->weight[i];
    }
    for (int64_t i = 0; i < n; i++) {
      o.total += weight[i];
      if (weight[i] > 0.0) rows[count++] = i;
    }
    o.min_leaf_weight = problem_get(p, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF, 0) * o.total;
    o.t = &t;
    check_node(&o, 0, rows, count, 0, scratch);
    tree_free(&t);
  }
  for (int64_t j = 0; j < p->x.cols; j++) free(o.codes[j]);
  free(o.codes);
  free(o.bins);
  free(weight);
  free(rows);
  free(scratch);
  rpo_features_free(features);
  rpo_forest_free(forest);
}

static void splits_are_best(void) {
  dice d = {1};
  for (int x = 0; x < X_KINDS; x++) {
    for (int y = 0; y < Y_KINDS; y++) {
      for (int k = 0; k < 6; k++) {
        double const missing = k == 2 || k == 4 ? 0.15 : 0.0;
        problem p =
            random_problem(&d, x, y, 20 + dice_below(&d, 25), 1 + dice_below(&d, 6), missing);
        if (k == 1) random_weights(&d, &p, 1);
        if (k == 3 || k == 4) random_weights(&d, &p, 0);
        if (k == 3) problem_set(&p, RPO_OPT_MIN_SAMPLES_LEAF, 3);
        if (k == 4) problem_set(&p, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF, 0.1);
        if (k == 5) {
          problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
          problem_set(&p, RPO_OPT_N_TREES, 3);
        }
        mini_context("x kind %d, y kind %d, case %d", x, y, k);
        check_splits(&p);
        problem_free(&p);
      }
    }
  }
}

/* More rows than a block of 64, so that the general and the block search both run. */
static void splits_are_best_in_large_nodes(void) {
  dice d = {2};
  for (int x = 0; x < X_KINDS; x++) {
    for (int y = 0; y < Y_KINDS; y++) {
      double const missing = x < X_BINARY && y != Y_WIDE ? 0.05 : 0.0;
      problem p = random_problem(&d, x, y, 150, x >= X_SPARSE ? 8 : 3, missing);
      if (y % 2 == 1) random_weights(&d, &p, 0);
      if (x == X_REAL) problem_set(&p, RPO_OPT_MIN_SAMPLES_SPLIT, 20);
      mini_context("x kind %d, y kind %d", x, y);
      check_splits(&p);
      problem_free(&p);
    }
  }
}

static void splits_of_bins_are_best(void) {
  dice d = {3};
  for (int k = 0; k < 12; k++) {
    problem p = random_problem(&d, k % X_KINDS, k % Y_KINDS, 60, 4, 0.03);
    p.max_bins = 2 + k;
    mini_context("case %d", k);
    check_splits(&p);
    problem_free(&p);
  }
}

static void limits_are_kept(void) {
  dice d = {4};
  for (int x = 0; x < X_KINDS; x++) {
    for (int64_t depth = 1; depth < 5; depth++) {
      problem p = random_problem(&d, x, x % Y_KINDS, 90, 5, 0.0);
      problem_set(&p, RPO_OPT_MAX_DEPTH, (double)depth);
      problem_set(&p, RPO_OPT_MIN_SAMPLES_SPLIT, 7);
      problem_set(&p, RPO_OPT_MIN_SAMPLES_LEAF, 2);
      mini_context("x kind %d, depth %lld", x, (long long)depth);
      check_splits(&p);
      problem_free(&p);
    }
  }
}

/* y + 10^6 grows the same tree as y: the sums are centred. */
static void large_offsets_change_nothing(void) {
  dice d = {5};
  problem p = random_problem(&d, X_REAL, Y_REAL, 120, 4, 0.0);
  for (int64_t i = 0; i < p.y.rows * p.y.cols; i++) p.y.v[i] = floor(p.y.v[i] * 64.0) / 64.0;
  rpo_forest *const a = problem_forest(&p, 1);
  for (int64_t i = 0; i < p.y.rows * p.y.cols; i++) p.y.v[i] += 1048576.0;
  rpo_forest *const b = problem_forest(&p, 1);
  flat_tree s = tree_read(a, 0), t = tree_read(b, 0);
  if (CHECK_EQUAL(s.nodes, t.nodes)) {
    CHECK(memcmp(s.a.feature, t.a.feature, (size_t)s.nodes * 8) == 0);
    CHECK(memcmp(s.a.threshold, t.a.threshold, (size_t)s.nodes * 8) == 0);
    CHECK(memcmp(s.a.impurity, t.a.impurity, (size_t)s.nodes * 8) == 0);
  }
  tree_free(&s);
  tree_free(&t);
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&p);
}

/* Weight 2 is a row twice. */
static void weights_are_copies(void) {
  dice d = {6};
  for (int y = 0; y < Y_KINDS; y++) {
    problem p = random_problem(&d, X_LEVELS, y, 50, 4, 0.05);
    table x2 = table_new(100, 4), y2 = table_new(100, p.y.cols);
    for (int k = 0; k < 2; k++) {
      memcpy(x2.v + k * 200, p.x.v, 200 * 8);
      memcpy(y2.v + k * 50 * p.y.cols, p.y.v, (size_t)(50 * p.y.cols) * 8);
    }
    problem q = problem_new(x2, y2);
    q.sparse_y = p.sparse_y;
    p.weight = mini_room(50, 8);
    for (int i = 0; i < 50; i++) p.weight[i] = 2.0;
    rpo_forest *const a = problem_forest(&p, 1), *const b = problem_forest(&q, 1);
    flat_tree s = tree_read(a, 0), t = tree_read(b, 0);
    mini_context("y kind %d", y);
    int const exact = y != Y_REAL && y != Y_WIDE && y != Y_SPARSE_REAL;
    if (exact && CHECK_EQUAL(s.nodes, t.nodes)) {
      CHECK(memcmp(s.a.feature, t.a.feature, (size_t)s.nodes * 8) == 0);
      CHECK(memcmp(s.a.threshold, t.a.threshold, (size_t)s.nodes * 8) == 0);
    }
    tree_free(&s);
    tree_free(&t);
    rpo_forest_free(a);
    rpo_forest_free(b);
    problem_free(&p);
    problem_free(&q);
  }
}

/* The order of a row's entries is the caller's affair (rpo.h asks for distinct ones only). */
static void unsorted_labels_grow_the_same_tree(void) {
  dice d = {7};
  problem p = random_problem(&d, X_REAL, Y_LABELS, 120, 2, 0.0);
  for (int64_t i = 0; i < 120 * 24; i++) p.y.v[i] = i % 24 % 8 == i / 24 % 8; /* 8 kinds of row */
  rpo_forest *const a = problem_forest(&p, 1);
  rpo_forest *b = NULL;
  rpo_options *options = NULL;
  rpo_features *f = NULL;
  rpo_matrix const X = problem_x(&p), Y = problem_y(&p);
  for (int64_t i = 0; i < 120; i += 5) { /* turn some rows of every kind round */
    for (int32_t e = p.y.start[i], last = p.y.start[i + 1] - 1; e < last; e++, last--) {
      int32_t const swap = p.y.index[e];
      p.y.index[e] = p.y.index[last];
      p.y.index[last] = swap;
    }
  }
  CHECK_EQUAL(problem_options(&p, &options, NULL), RPO_OK);
  CHECK_EQUAL(rpo_features_new(&X, 0, NULL, &f, NULL), RPO_OK);
  CHECK_EQUAL(rpo_forest_fit(options, f, &Y, NULL, NULL, NULL, NULL, NULL, &b, NULL), RPO_OK);
  CHECK_EQUAL(rpo_forest_tree_nodes(a, 0), rpo_forest_tree_nodes(b, 0));
  rpo_options_free(options);
  rpo_features_free(f);
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&p);
}

/* A node of equal rows is a leaf even when no feature is constant in it. */
static void pure_nodes_are_leaves(void) {
  dice d = {8};
  for (int y = 0; y < Y_KINDS; y++) {
    for (int x = 0; x < X_KINDS; x++) {
      problem p = random_problem(&d, x, y, 100, 3, 0.0);
      for (int64_t i = 1; i < 100; i++) memcpy(p.y.v + i * p.y.cols, p.y.v, (size_t)p.y.cols * 8);
      rpo_forest *const f = problem_forest(&p, 1);
      mini_context("x kind %d, y kind %d", x, y);
      CHECK_EQUAL(rpo_forest_tree_nodes(f, 0), 1);
      rpo_forest_free(f);
      problem_free(&p);
    }
  }
}

int main(void) {
  RUN(splits_are_best);
  RUN(splits_are_best_in_large_nodes);
  RUN(splits_of_bins_are_best);
  RUN(limits_are_kept);
  RUN(large_offsets_change_nothing);
  RUN(weights_are_copies);
  RUN(unsorted_labels_grow_the_same_tree);
  RUN(pure_nodes_are_leaves);
  return mini_done("split");
}
