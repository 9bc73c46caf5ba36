/* Options of growth: limits, pruning, random cuts, the drawing of features. */
#include "kinds.h"
#include "readout.h"

/* ---- Options of growth ---- */

static int64_t leaves_of(const flat_tree *t) { return (t->nodes + 1) / 2; }

/* Gain of a node's split: weight x impurity, less the children's. */
static double gain_of(const flat_tree *t, int64_t i) {
  int64_t const l = t->a.left[i], r = t->a.right[i];
  return t->a.weight[i] * t->a.impurity[i] - t->a.weight[l] * t->a.impurity[l] -
         t->a.weight[r] * t->a.impurity[r];
}

/* Best first: the leaves are counted, and the impurity left never rises with one more of them. */
static void best_first_keeps_its_limit(void) {
  dice d = {17};
  for (int x = 0; x < X_KINDS; x++) {
    problem p = random_problem(&d, x, x % Y_KINDS, 120, 8, 0.0);
    problem full = p;
    rpo_forest *const all = problem_forest(&full, 1);
    flat_tree deep = tree_read(all, 0);
    p = full;
    double last = -1.0;
    for (int64_t most = 2; most < 40; most++) {
      problem_set(&p, RPO_OPT_MAX_LEAF_NODES, (double)most);
      rpo_forest *const f = problem_forest(&p, 1);
      flat_tree t = tree_read(f, 0);
      double left_over = 0.0;
      mini_context("x kind %d, %lld leaves", x, (long long)most);
      CHECK_EQUAL(leaves_of(&t), most < leaves_of(&deep) ? most : leaves_of(&deep));
      for (int64_t i = 0; i < t.nodes; i++) {
        if (t.a.left[i] < 0) left_over += t.a.weight[i] * t.a.impurity[i];
        if (t.a.left[i] >= 0) CHECK(gain_of(&t, i) > -1e-4);
      }
      if (last >= 0.0) CHECK(left_over <= last * (1.0 + 1e-6) + 1e-6);
      last = left_over;
      tree_free(&t);
      rpo_forest_free(f);
    }
    tree_free(&deep);
    rpo_forest_free(all);
    problem_free(&p);
  }
}

/* Grown best first without a limit that bites, the tree is the depth-first one: splits are keyed by
 * path, not by the order of growth. */
static void orders_of_growth_agree(void) {
  dice d = {18};
  for (int x = 0; x < 2; x++) {
    problem p = random_problem(&d, x, Y_FEW, 100, 6, 0.02);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 2);
    rpo_forest *const a = problem_forest(&p, 1);
    problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 1000);
    rpo_forest *const b = problem_forest(&p, 1);
    flat_tree s = tree_read(a, 0), t = tree_read(b, 0);
    mini_context("x kind %d", x);
    if (CHECK_EQUAL(s.nodes, t.nodes)) {
      CHECK(memcmp(s.a.feature, t.a.feature, (size_t)s.nodes * 8) == 0);
      CHECK(memcmp(s.a.threshold, t.a.threshold, (size_t)s.nodes * 8) == 0);
      CHECK(memcmp(s.a.left, t.a.left, (size_t)s.nodes * 8) == 0);
    }
    tree_free(&s);
    tree_free(&t);
    rpo_forest_free(a);
    rpo_forest_free(b);
    problem_free(&p);
  }
}

static void min_impurity_decrease_is_kept(void) {
  dice d = {19};
  problem p = random_problem(&d, X_REAL, Y_REAL, 150, 4, 0.0);
  int64_t last = INT64_MAX;
  for (double least = 0.001; least < 0.5; least *= 2.0) {
    problem_set(&p, RPO_OPT_MIN_IMPURITY_DECREASE, least);
    rpo_forest *const f = problem_forest(&p, 1);
    flat_tree t = tree_read(f, 0);
    mini_context("least decrease %g", least);
    for (int64_t i = 0; i < t.nodes; i++) {
      if (t.a.left[i] >= 0) CHECK(gain_of(&t, i) / t.a.weight[0] >= least * (1.0 - 1e-4) - 1e-6);
    }
    CHECK(t.nodes <= last);
    last = t.nodes;
    tree_free(&t);
    rpo_forest_free(f);
  }
  problem_free(&p);
}

/* The impurity scale multiplies what is reported and compared, not the tree. */
static void impurity_scale_scales(void) {
  dice d = {20};
  problem p = random_problem(&d, X_REAL, Y_REAL, 100, 4, 0.0);
  problem_set(&p, RPO_OPT_MIN_IMPURITY_DECREASE, 0.04);
  rpo_forest *const a = problem_forest(&p, 1);
  problem_set(&p, RPO_OPT_IMPURITY_SCALE, 0.25);
  problem_set(&p, RPO_OPT_MIN_IMPURITY_DECREASE, 0.01);
  rpo_forest *const b = problem_forest(&p, 1);
  flat_tree s = tree_read(a, 0), t = tree_read(b, 0);
  CHECK(s.nodes > 1);
  if (CHECK_EQUAL(s.nodes, t.nodes)) {
    for (int64_t i = 0; i < s.nodes; i++) CHECK(s.a.impurity[i] == 4.0 * t.a.impurity[i]);
    CHECK(memcmp(s.a.threshold, t.a.threshold, (size_t)s.nodes * 8) == 0);
  }
  tree_free(&s);
  tree_free(&t);
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&p);
}

/* ---- Pruning ---- */

typedef struct branch {
  double risk;
  int64_t leaves;
} branch;

static branch branch_of(const flat_tree *t, const uint8_t *leaf, int64_t i) {
  branch b = {t->a.impurity[i] * t->a.weight[i] / t->a.weight[0], 1};
  if (t->a.left[i] < 0 || leaf[i]) return b;
  branch const l = branch_of(t, leaf, t->a.left[i]), r = branch_of(t, leaf, t->a.right[i]);
  b.risk = l.risk + r.risk;
  b.leaves = l.leaves + r.leaves;
  return b;
}

static int reached(const flat_tree *t, const uint8_t *leaf, int64_t from, int64_t node) {
  if (from == node) return 1;
  if (t->a.left[from] < 0 || leaf[from]) return 0;
  return reached(t, leaf, t->a.left[from], node) || reached(t, leaf, t->a.right[from], node);
}

/* The weakest link, again and again, from scratch every time. */
static void prune_by_hand(const flat_tree *t, double alpha, uint8_t *leaf) {
  for (;;) {
    int64_t weakest = -1;
    double least = INFINITY;
    for (int64_t i = 0; i < t->nodes; i++) {
      if (t->a.left[i] < 0 || leaf[i] || !reached(t, leaf, 0, i)) continue;
      branch const below = branch_of(t, leaf, i);
      double const own = t->a.impurity[i] * t->a.weight[i] / t->a.weight[0];
      double const cost = (own - below.risk) / (double)(below.leaves - 1);
      if (cost < least) {
        least = cost;
        weakest = i;
      }
    }
    if (weakest < 0 || least > alpha) return;
    leaf[weakest] = 1;
  }
}

/* The pruned tree and the full one cut by hand, walked side by side. */
static void check_pruned(const flat_tree *full, const uint8_t *leaf, int64_t i, const flat_tree *t,
                         int64_t j) {
  CHECK_EQUAL(t->a.n_samples[j], full->a.n_samples[i]);
  CHECK_NEAR(t->a.weight[j], full->a.weight[i], 1e-9);
  CHECK(t->a.impurity[j] == full->a.impurity[i]);
  int const is_leaf = full->a.left[i] < 0 || leaf[i];
  if (!CHECK((t->a.left[j] < 0) == is_leaf) || is_leaf) return;
  CHECK_EQUAL(t->a.feature[j], full->a.feature[i]);
  CHECK(t->a.threshold[j] == full->a.threshold[i]);
  check_pruned(full, leaf, full->a.left[i], t, t->a.left[j]);
  check_pruned(full, leaf, full->a.right[i], t, t->a.right[j]);
}

/* Splits the best open node of the full tree, until there are `most` leaves; what is left open, and
 * all that was never reached, are leaves. */
static void best_first_by_hand(const flat_tree *t, int64_t most, uint8_t *leaf) {
  memset(leaf, 1, (size_t)t->nodes);
  for (int64_t leaves = 1; leaves < most; leaves++) {
    int64_t best = -1;
    for (int64_t i = 0; i < t->nodes; i++) {
      if (t->a.left[i] < 0 || !leaf[i] || !reached(t, leaf, 0, i)) continue;
      if (best < 0 || gain_of(t, i) > gain_of(t, best)) best = i;
    }
    if (best < 0) return;
    leaf[best] = 0;
  }
}

static void best_first_takes_the_best(void) {
  dice d = {32};
  for (int k = 0; k < 4; k++) {
    problem p = random_problem(&d, k % 2 == 0 ? X_REAL : X_SPARSE, Y_REAL, 80, 6, 0.0);
    problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 1000); /* ties between features fall as they do below */
    rpo_forest *const all = problem_forest(&p, 1);
    flat_tree full = tree_read(all, 0);
    uint8_t *const leaf = mini_room(full.nodes, 1);
    for (int64_t most = 2; most < 14; most++) {
      problem_set(&p, RPO_OPT_MAX_LEAF_NODES, (double)most);
      rpo_forest *const f = problem_forest(&p, 1);
      flat_tree t = tree_read(f, 0);
      mini_context("case %d, %lld leaves", k, (long long)most);
      best_first_by_hand(&full, most, leaf);
      check_pruned(&full, leaf, 0, &t, 0);
      tree_free(&t);
      rpo_forest_free(f);
    }
    free(leaf);
    tree_free(&full);
    rpo_forest_free(all);
    problem_free(&p);
  }
}

static void pruning_by_hand(void) {
  static const double alpha[] = {1e-5, 0.003, 0.01, 0.02, 0.05, 0.2, 10.0};
  dice d = {21};
  for (int k = 0; k < 5; k++) {
    problem p = random_problem(&d, k % X_KINDS, Y_REAL, 70, 5, 0.0);
    if (k == 1) random_weights(&d, &p, 0);
    rpo_forest *const all = problem_forest(&p, 1);
    flat_tree full = tree_read(all, 0);
    uint8_t *const leaf = mini_room(full.nodes, 1);
    for (int a = 0; a < 7; a++) {
      problem_set(&p, RPO_OPT_CCP_ALPHA, alpha[a]);
      rpo_forest *const f = problem_forest(&p, 1);
      flat_tree t = tree_read(f, 0);
      mini_context("case %d, alpha %g", k, alpha[a]);
      memset(leaf, 0, (size_t)full.nodes);
      prune_by_hand(&full, alpha[a], leaf);
      check_pruned(&full, leaf, 0, &t, 0);
      check_readout(&p, f, &p.x, p.sparse_x, 1);
      check_weights(&p, f, 1);
      if (alpha[a] > 1.0) CHECK_EQUAL(t.nodes, 1);
      tree_free(&t);
      rpo_forest_free(f);
    }
    free(leaf);
    tree_free(&full);
    rpo_forest_free(all);
    problem_free(&p);
  }
}

/* ---- Extra-trees ---- */

/* Every cut is inside the range of its node, and both sides get rows. */
static void check_random_cuts(const problem *p, const flat_tree *t, int64_t node, int64_t *rows,
                              int64_t count, double *spread, int64_t *cuts) {
  CHECK_EQUAL(t->a.n_samples[node], count);
  if (t->a.left[node] < 0) return;
  double low = INFINITY, high = -INFINITY;
  int64_t left = 0;
  int missing = 0;
  for (int64_t i = 0; i < count; i++) {
    double const v = p->x.v[rows[i] * p->x.cols + t->a.feature[node]];
    missing |= isnan(v);
    low = v < low ? v : low;
    high = v > high ? v : high;
    if (tree_goes_left(t, node, p->x.v + rows[i] * p->x.cols)) {
      int64_t const row = rows[i];
      rows[i] = rows[left];
      rows[left++] = row;
    }
  }
  CHECK(left > 0 && left < count);
  double const cut = t->a.threshold[node];
  CHECK(low <= cut && (cut < high || (missing && cut == INFINITY)));
  if (low < high && cut < high) {
    *spread += (cut - low) / (high - low);
    (*cuts)++;
  }
  check_random_cuts(p, t, t->a.left[node], rows, left, spread, cuts);
  check_random_cuts(p, t, t->a.right[node], rows + left, count - left, spread, cuts);
}

static void random_cuts_are_in_range(void) {
  dice d = {22};
  for (int k = 0; k < 24; k++) {
    int const x = k % X_KINDS;
    problem p = random_problem(&d, x, k % Y_KINDS, 150, 6, k % 3 == 0 && x < X_BINARY ? 0.05 : 0.0);
    int64_t rows[150], cuts = 0;
    double spread = 0.0;
    problem_set(&p, RPO_OPT_RANDOM_CUT, 1);
    problem_set(&p, RPO_OPT_N_TREES, 10);
    problem_set(&p, RPO_OPT_MAX_FEATURES, 1);
    if (k >= 12) p.max_bins = k < 18 ? 4 : 2;
    if (k >= 18) { /* one-sided: with two bins a sparse column is 0 or not */
      for (int64_t i = 0; i < 150 * 6; i++)
        p.x.v[i] = k % 2 == 0 ? -fabs(p.x.v[i]) : fabs(p.x.v[i]);
    }
    rpo_forest *const f = problem_forest(&p, 1);
    mini_context("case %d", k);
    for (int64_t tree = 0; tree < 10; tree++) {
      flat_tree t = tree_read(f, tree);
      for (int i = 0; i < 150; i++) rows[i] = i;
      check_random_cuts(&p, &t, 0, rows, 150, &spread, &cuts);
      tree_free(&t);
    }
    /* one feature drawn and no choice made: real values are cut anywhere, half-way on average */
    if (x == X_REAL && k < 12)
      CHECK_NEAR(spread / (double)cuts, 0.5, 5.0 * 0.289 / sqrt((double)cuts));
    check_readout(&p, f, &p.x, p.sparse_x, 1);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* ---- Drawing features ---- */

/* With one feature drawn of p alike, each is as likely at the root. */
static void features_are_drawn_evenly(void) {
  enum { P = 8, TREES = 4000 };
  dice d = {23};
  for (int x = 0; x < X_KINDS; x++) {
    for (int n = 40; n < 130; n += 80) { /* with and without blocks */
      problem p = problem_new(table_new(n, P), table_random(&d, n, 1, 0, 0.0, 0.0));
      table const column = random_x(&d, x, n, 1, 0.0);
      int64_t count[P] = {0};
      for (int64_t i = 0; i < n * P; i++) p.x.v[i] = column.v[i / P]; /* P times the same column */
      free(column.v);
      p.x.v[0] = p.x.v[0] == 0.0 ? 1.0 : p.x.v[0];
      for (int j = 1; j < P; j++) p.x.v[j] = p.x.v[0];
      p.sparse_x = x >= X_SPARSE;
      problem_set(&p, RPO_OPT_MAX_FEATURES, 1);
      problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
      problem_set(&p, RPO_OPT_N_TREES, TREES);
      rpo_forest *const f = problem_forest(&p, 1);
      for (int64_t t = 0; t < TREES; t++) {
        int64_t feature[3] = {-2, -2, -2};
        rpo_tree_arrays a = {NULL, NULL, feature, NULL, NULL, NULL, NULL, NULL};
        CHECK_EQUAL(rpo_forest_tree_nodes(f, t), 3);
        CHECK_EQUAL(rpo_forest_tree(f, t, &a, NULL), RPO_OK);
        if (feature[0] >= 0) count[feature[0]]++;
      }
      mini_context("x kind %d, %d rows", x, n);
      for (int j = 0; j < P; j++) {
        CHECK_NEAR((double)count[j], (double)TREES / P, 5.0 * sqrt((double)TREES / P));
      }
      rpo_forest_free(f);
      problem_free(&p);
    }
  }
}

/* k of P features drawn, one of them much better, the others alike: it is used with chance k / P,
 * in large nodes and in blocks of sparse rows, where the draw is hypergeometric. */
static void the_best_feature_is_seen_k_times_of_p(void) {
  enum { P = 12, TREES = 3000 };
  for (int n = 50; n < 130; n += 70) {
    for (int sparse = 0; sparse < 2; sparse++) {
      for (int k = 1; k <= P; k += 4) {
        problem p = problem_new(table_new(n, P), table_new(n, 1));
        int64_t used = 0;
        for (int i = 0; i < n; i++) {
          int const fill = sparse ? 10 : 2; /* one row in `fill` is 1 */
          p.y.v[i] = i % fill == 0;
          p.x.v[i * P] = i % fill == 0;
          for (int j = 1; j < P; j++) p.x.v[i * P + j] = i % fill == 1 && i / fill % 2 == 0;
        }
        problem_set(&p, RPO_OPT_MAX_FEATURES, k);
        problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
        problem_set(&p, RPO_OPT_N_TREES, TREES);
        rpo_forest *const f = problem_forest(&p, 1);
        for (int64_t t = 0; t < TREES; t++) {
          int64_t feature[3] = {-2, -2, -2};
          rpo_tree_arrays a = {NULL, NULL, feature, NULL, NULL, NULL, NULL, NULL};
          CHECK_EQUAL(rpo_forest_tree(f, t, &a, NULL), RPO_OK);
          used += feature[0] == 0;
        }
        double const share = (double)k / P;
        mini_context("%d rows, sparse %d, k = %d", n, sparse, k);
        CHECK_NEAR((double)used / TREES, share, 5.0 * sqrt(share * (1.0 - share) / TREES));
        rpo_forest_free(f);
        problem_free(&p);
      }
    }
  }
}

int main(void) {
  RUN(best_first_keeps_its_limit);
  RUN(orders_of_growth_agree);
  RUN(min_impurity_decrease_is_kept);
  RUN(impurity_scale_scales);
  RUN(best_first_takes_the_best);
  RUN(pruning_by_hand);
  RUN(random_cuts_are_in_range);
  RUN(features_are_drawn_evenly);
  RUN(the_best_feature_is_seen_k_times_of_p);
  return mini_done("growth");
}
