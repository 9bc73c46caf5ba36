/* A training problem: tables, how they are handed over, options. A fitted tree as flat arrays. */
#ifndef PROBLEM_H
#define PROBLEM_H
#include "data.h"

typedef struct option_value {
  rpo_option id;
  double value;
} option_value;

typedef struct problem {
  table x, y, labels; /* labels.v NULL: none of their own */
  int sparse_x, sparse_y;
  int32_t max_bins;
  double *weight;   /* NULL: ones */
  double *fallback; /* with the option label_ratio */
  rpo_projection projection;
  option_value option[12];
  int options;
} problem;

static inline void problem_set(problem *p, rpo_option id, double value) {
  for (int i = 0; i < p->options; i++) {
    if (p->option[i].id != id) continue;
    p->option[i].value = value;
    return;
  }
  p->option[p->options].id = id;
  p->option[p->options++].value = value;
}

static inline double problem_get(const problem *p, rpo_option id, double otherwise) {
  for (int i = 0; i < p->options; i++) {
    if (p->option[i].id == id) return p->option[i].value;
  }
  return otherwise;
}

/* Takes the tables over. One tree unless an option says otherwise. */
static inline problem problem_new(table x, table y) {
  problem p;
  memset(&p, 0, sizeof p);
  p.x = x;
  p.y = y;
  problem_set(&p, RPO_OPT_N_TREES, 1);
  return p;
}

static inline void problem_free(problem *p) {
  table_free(&p->x);
  table_free(&p->y);
  table_free(&p->labels);
  free(p->weight);
  free(p->fallback);
  memset(p, 0, sizeof *p);
}

static inline rpo_matrix problem_x(problem *p) {
  return p->sparse_x ? table_compressed(&p->x, RPO_CSR) : table_dense(&p->x);
}
static inline rpo_matrix problem_y(problem *p) {
  return p->sparse_y ? table_compressed(&p->y, RPO_CSR) : table_dense(&p->y);
}

static inline rpo_status problem_options(const problem *p, rpo_options **out, rpo_error *err) {
  rpo_options *options = NULL;
  rpo_status status = rpo_options_new(&options, err);
  for (int i = 0; i < p->options && status == RPO_OK; i++) {
    status = rpo_options_set(options, (int32_t)p->option[i].id, p->option[i].value, err);
  }
  if (status == RPO_OK) {
    *out = options;
  } else {
    rpo_options_free(options);
  }
  return status;
}

/* Fits; the features are handed back when asked for. */
static inline rpo_status problem_fit(problem *p, const rpo_control *control,
                                     rpo_features **features, rpo_forest **forest, rpo_error *err) {
  rpo_matrix const X = problem_x(p), Y = problem_y(p);
  rpo_matrix L = Y;
  rpo_options *options = NULL;
  rpo_features *f = NULL;
  if (p->labels.v != NULL) {
    L = p->sparse_y ? table_compressed(&p->labels, RPO_CSR) : table_dense(&p->labels);
  }
  rpo_status status = problem_options(p, &options, err);
  if (status == RPO_OK) status = rpo_features_new(&X, p->max_bins, control, &f, err);
  if (status == RPO_OK) {
    status = rpo_forest_fit(options, f, &Y, p->labels.v == NULL ? NULL : &L, p->fallback, p->weight,
                            &p->projection, control, forest, err);
  }
  rpo_options_free(options);
  if (features != NULL && status == RPO_OK) {
    *features = f;
  } else {
    rpo_features_free(f);
  }
  return status;
}

static inline rpo_forest *problem_forest(problem *p, int32_t threads) {
  rpo_control const control = threads_of(threads);
  rpo_forest *forest = NULL;
  rpo_error err;
  CHECK_OK(problem_fit(p, &control, NULL, &forest, &err), &err);
  return forest;
}

/* Puts all of the problem's rows into a forest's leaves. */
static inline rpo_forest *problem_relabelled(problem *p, const rpo_forest *f, int32_t threads) {
  rpo_control const control = threads_of(threads);
  rpo_matrix const X = problem_x(p), Y = problem_y(p);
  rpo_features *features = NULL;
  rpo_forest *all = NULL;
  rpo_error err;
  CHECK_OK(rpo_features_new(&X, p->max_bins, NULL, &features, &err), &err);
  CHECK_OK(rpo_forest_relabel(f, features, &Y, p->weight, &control, &all, &err), &err);
  rpo_features_free(features);
  return all;
}

/* The bytes of a model, and whether two models have the same. */
static inline unsigned char *forest_bytes(const rpo_forest *forest) {
  unsigned char *const block = mini_room(rpo_forest_bytes(forest), 1);
  CHECK_EQUAL(rpo_forest_dump(forest, block, NULL), RPO_OK);
  return block;
}

static inline int forests_equal(const rpo_forest *a, const rpo_forest *b) {
  if (a == NULL || b == NULL || rpo_forest_bytes(a) != rpo_forest_bytes(b)) return 0;
  unsigned char *const x = forest_bytes(a), *const y = forest_bytes(b);
  int const same = memcmp(x, y, (size_t)rpo_forest_bytes(a)) == 0;
  free(x);
  free(y);
  return same;
}

/* ---- A tree ---- */

typedef struct flat_tree {
  int64_t nodes;
  rpo_tree_arrays a;
  double *value; /* nodes x outputs */
} flat_tree;

static inline flat_tree tree_read(const rpo_forest *forest, int64_t tree) {
  flat_tree t;
  rpo_error err;
  memset(&t, 0, sizeof t);
  t.nodes = rpo_forest_tree_nodes(forest, tree);
  t.a.left = mini_room(t.nodes, 8);
  t.a.right = mini_room(t.nodes, 8);
  t.a.feature = mini_room(t.nodes, 8);
  t.a.threshold = mini_room(t.nodes, 8);
  t.a.impurity = mini_room(t.nodes, 8);
  t.a.n_samples = mini_room(t.nodes, 8);
  t.a.weight = mini_room(t.nodes, 8);
  t.a.missing_left = mini_room(t.nodes, 1);
  t.value = mini_room(t.nodes * rpo_forest_outputs(forest), 8);
  CHECK_OK(rpo_forest_tree(forest, tree, &t.a, &err), &err);
  CHECK_OK(rpo_forest_tree_values(forest, tree, t.value, &err), &err);
  return t;
}

static inline void tree_free(flat_tree *t) {
  free(t->a.left);
  free(t->a.right);
  free(t->a.feature);
  free(t->a.threshold);
  free(t->a.impurity);
  free(t->a.n_samples);
  free(t->a.weight);
  free(t->a.missing_left);
  free(t->value);
}

static inline int tree_goes_left(const flat_tree *t, int64_t node, const double *row) {
  double const v = row[t->a.feature[node]];
  return isnan(v) ? t->a.missing_left[node] : v <= t->a.threshold[node];
}

static inline int64_t tree_walk(const flat_tree *t, const double *row) {
  int64_t node = 0;
  while (t->a.left[node] >= 0) {
    node = tree_goes_left(t, node, row) ? t->a.left[node] : t->a.right[node];
  }
  return node;
}

#endif
