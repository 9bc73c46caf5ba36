/* Trees from the inside: nodes that rows reach, flat arrays, values. */
#include <string.h>

#include "mem.h"
#include "readout.h"
#include "sums.h"

/* ---- Numbers ----
 * Nodes are numbered in preorder, inner nodes and leaves together; a model numbers each alone, in the
 * same order. Node i of the inner ones, numbered k, has k - i leaves before it: below it the first is
 * leaf k - i. Its left child has the number k + 1. A right child r has r - i - 1 inner nodes and one
 * leaf more left of it, hence k + 2 (r - i); a right leaf l has, by leaves, k + 2 (l - (k - i)). */

static inline int64_t right_number(int64_t i, int64_t k, int64_t right) {
  return k + 2 * (right >= 0 ? right - i : ~right - (k - i));
}

#define NUMBER(type)                                                       \
  do {                                                                     \
    const type *const left = (const type *)m->left.data + first;           \
    const type *const right = (const type *)m->right.data + first;         \
    for (int64_t i = 0; i < count; i++) {                                  \
      int64_t const k = inner[i], r = right[i], l = left[i];               \
      *(l >= 0 ? inner + l : leaf + ~l) = (uint32_t)(k + 1);               \
      *(r >= 0 ? inner + r : leaf + ~r) = (uint32_t)right_number(i, k, r); \
    }                                                                      \
  } while (0)

static void number_nodes(const rpo_forest *m, int64_t tree, uint32_t *inner, uint32_t *leaf) {
  int64_t const first = m->inner_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  *(count > 0 ? inner : leaf) = 0;
  if (m->left.type == RPO_TYPE_I16) { /* as right */
    NUMBER(int16_t);
  } else {
    NUMBER(int32_t);
  }
}

/* ---- Where rows go ---- */

typedef struct apply {
  rpo_reading r;  /* first: what rpo_read_blocks hands to its tasks */
  uint32_t *leaf; /* number of each leaf, within its tree */
  int64_t *out;
} apply;

static rpo_status number_tree(void *context, int64_t tree, int thread, rpo_job *job,
                              rpo_error *err) {
  apply *const a = context;
  const rpo_forest *const m = a->r.m;
  uint32_t *const inner = rpo_new(m->inner_start[tree + 1] - m->inner_start[tree], 4);
  (void)thread;
  (void)job;
  if (inner == NULL) return rpo_fail_memory(err, "nodes");
  number_nodes(m, tree, inner, a->leaf + m->leaf_start[tree]);
  rpo_delete(inner);
  return RPO_OK;
}

static rpo_status apply_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  apply *const a = context;
  const rpo_forest *const m = a->r.m;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(&a->r, task, thread, job, &first, &rows, err));
  const rpo_scratch *const s = &a->r.scratch[thread];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t t = 0; t < m->trees; t++) {
      int64_t const leaf = s->leaf[t * a->r.block + i];
      a->out[(first + i) * m->trees + t] = a->leaf[m->leaf_start[t] + leaf];
    }
  }
  return RPO_OK;
}

rpo_status rpo_forest_apply(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                            int64_t *out, rpo_error *err) {
  apply a;
  RPO_TRY(rpo_reading_start(&a.r, m, X, out, err));
  RPO_TRY(rpo_model_check(m, err));
  a.out = out;
  a.leaf = rpo_new(m->leaf_start[m->trees], 4);
  if (a.leaf == NULL) return rpo_fail_memory(err, "nodes");
  rpo_status status = rpo_run(control, m->trees, number_tree, &a, err);
  if (status == RPO_OK) status = rpo_read_blocks(&a.r, control, apply_block, err);
  rpo_delete(a.leaf);
  return status;
}

/* The numbers on the way to a leaf, which itself says where it lies; NULL: only counted. */
static int64_t walk_to(const rpo_forest *m, int64_t tree, int64_t leaf, int64_t *out) {
  int64_t const first = m->inner_start[tree], offset = first + m->leaf_start[tree];
  int64_t node = m->inner_start[tree + 1] > first ? 0 : -1;
  int64_t number = 0, count = 0;
  for (;; count++) {
    if (out != NULL) out[count] = offset + number;
    if (node < 0) return count + 1;
    int64_t const right = rpo_array_whole(&m->right, first + node);
    int64_t const first_right = right >= 0 ? number + right - 2 * node : ~right; /* a leaf */
    int const go = leaf >= first_right;
    number = go ? right_number(node, number, right) : number + 1;
    node = go ? right : rpo_array_whole(&m->left, first + node);
  }
}

rpo_status rpo_counts_check(const int64_t *indptr, int64_t rows, rpo_error *err) {
  int good = indptr[0] == 0;
  for (int64_t i = 0; i < rows; i++) good &= indptr[i] <= indptr[i + 1];
  if (good) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL,
                  "indptr must be that of the first call: it does not rise from 0");
}

rpo_status rpo_count_check(const int64_t *indptr, int64_t row, int64_t count, rpo_error *err) {
  if (indptr[row + 1] - indptr[row] == count) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL,
                  "indptr must be that of the first call, of the same X: row %lld has %lld entries",
                  (long long)row, (long long)count);
}

static rpo_status paths_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  const rpo_scratch *const s = &r->scratch[thread];
  for (int64_t i = 0; i < rows; i++) {
    int64_t count = 0;
    for (int64_t t = 0; t < m->trees; t++) {
      count += walk_to(m, t, s->leaf[t * r->block + i], NULL);
    }
    if (r->columns == NULL) {
      r->indptr[first + i + 1] = count;
      continue;
    }
    RPO_TRY(rpo_count_check(r->indptr, first + i, count, err));
    int64_t *out = r->columns + r->indptr[first + i];
    for (int64_t t = 0; t < m->trees; t++) {
      out += walk_to(m, t, s->leaf[t * r->block + i], out);
    }
  }
  return RPO_OK;
}

rpo_status rpo_forest_paths(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                            int64_t *node_start, int64_t *indptr, int64_t *columns,
                            rpo_error *err) {
  rpo_reading r;
  RPO_TRY(rpo_reading_start(&r, m, X, indptr, err));
  RPO_TRY(rpo_model_check(m, err));
  if (columns != NULL) RPO_TRY(rpo_counts_check(indptr, X->rows, err));
  r.indptr = indptr;
  r.columns = columns;
  RPO_TRY(rpo_read_blocks(&r, control, paths_block, err));
  if (columns == NULL) rpo_add_up(indptr, X->rows);
  for (int64_t t = 0; node_start != NULL && t <= m->trees; t++) {
    node_start[t] = m->inner_start[t] + m->leaf_start[t];
  }
  return RPO_OK;
}

/* ---- One tree ---- */

int64_t rpo_forest_tree_nodes(const rpo_forest *m, int64_t tree) {
  if (m == NULL || tree < 0 || tree >= m->trees) return -1;
  return 2 * (m->inner_start[tree + 1] - m->inner_start[tree]) + 1;
}

static rpo_status check_tree(const rpo_forest *m, int64_t tree, const void *out, rpo_error *err) {
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  if (tree < 0 || tree >= m->trees) {
    return rpo_fail(err, RPO_EINVAL, "tree must be between 0 and %lld, got %lld",
                    (long long)(m->trees - 1), (long long)tree);
  }
  return rpo_model_check(m, err);
}

static void set_i64(int64_t *a, int64_t i, int64_t v) {
  if (a != NULL) a[i] = v;
}

static void set_f64(double *a, int64_t i, double v) {
  if (a != NULL) a[i] = v;
}

rpo_status rpo_forest_tree(const rpo_forest *m, int64_t tree, const rpo_tree_arrays *a,
                           rpo_error *err) {
  uint32_t *leaf = NULL, *inner = NULL;
  int64_t *samples = NULL;
  double *weight = NULL;
  RPO_TRY(check_tree(m, tree, a, err));
  int64_t const first = m->inner_start[tree], first_leaf = m->leaf_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  leaf = rpo_new(count + 1, 4);
  inner = rpo_new(count, 4);
  samples = rpo_new(2 * count + 1, 8);
  weight = rpo_new(2 * count + 1, 8);
  rpo_status status = RPO_OK;
  if (leaf == NULL || inner == NULL || samples == NULL || weight == NULL) {
    status = rpo_fail_memory(err, "a tree");
    goto done;
  }
  number_nodes(m, tree, inner, leaf);
  for (int64_t l = 0; l <= count; l++) {
    int64_t const i = leaf[l];
    samples[i] = rpo_leaf_size(m, tree, l);
    weight[i] = rpo_array_number(&m->leaf_weight, first_leaf + l);
    set_i64(a->left, i, -1);
    set_i64(a->right, i, -1);
    set_i64(a->feature, i, -2);
    set_f64(a->threshold, i, -2.0);
    set_f64(a->impurity, i, rpo_array_number(&m->leaf_impurity, first_leaf + l));
    if (a->missing_left != NULL) a->missing_left[i] = 0;
  }
  for (int64_t n = count - 1; n >= 0; n--) {
    int64_t const i = inner[n];
    int64_t const left = rpo_array_whole(&m->left, first + n);
    int64_t const right = rpo_array_whole(&m->right, first + n);
    int64_t const child[2] = {left >= 0 ? inner[left] : leaf[~left],
                              right >= 0 ? inner[right] : leaf[~right]};
    samples[i] = samples[child[0]] + samples[child[1]];
    weight[i] = weight[child[0]] + weight[child[1]];
    set_i64(a->left, i, child[0]);
    set_i64(a->right, i, child[1]);
    set_i64(a->feature, i, rpo_array_whole(&m->feature, first + n));
    set_f64(a->threshold, i, rpo_array_number(&m->threshold, first + n));
    set_f64(a->impurity, i, rpo_array_number(&m->impurity, first + n));
    if (a->missing_left != NULL) a->missing_left[i] = m->flags[first + n] & RPO_MISSING_LEFT;
  }
  for (int64_t i = 0; i <= 2 * count; i++) {
    set_i64(a->n_samples, i, samples[i]);
    set_f64(a->weight, i, weight[i]);
  }
done:
  rpo_delete(leaf);
  rpo_delete(inner);
  rpo_delete(samples);
  rpo_delete(weight);
  return status;
}

void rpo_leaf_means(const rpo_forest *m, int64_t tree, int64_t leaf, double *sum) {
  int64_t pick = m->leaf_start[tree] + leaf;
  double share = 1.0;
  if (!rpo_has_rows(m)) {
    rpo_add_values(m, &pick, &share, 1, sum);
    return;
  }
  double const unit = 1.0 / rpo_array_number(&m->leaf_weight, pick);
  int64_t const end = rpo_leaf_begin(m, &m->s, tree, leaf + 1);
  for (int64_t i = rpo_leaf_begin(m, &m->s, tree, leaf); i < end; i++) {
    pick = rpo_array_whole(&m->s.row, i);
    share = unit * (m->s.weight.data == NULL ? 1.0 : rpo_array_number(&m->s.weight, i));
    rpo_add_values(m, &pick, &share, 1, sum);
  }
}

rpo_status rpo_forest_tree_values(const rpo_forest *m, int64_t tree, double *out, rpo_error *err) {
  RPO_TRY(check_tree(m, tree, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "values of nodes", err));
  int64_t const first = m->inner_start[tree], first_leaf = m->leaf_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  uint32_t *const leaf = rpo_new(count + 1, 4), *const inner = rpo_new(count, 4);
  double *const weight = rpo_new(2 * count + 1, 8);
  double *const sum = rpo_new((2 * count + 1) * m->columns, 8); /* means, by node */
  rpo_status status = RPO_OK;
  if (leaf == NULL || inner == NULL || weight == NULL || sum == NULL) {
    status = rpo_fail_memory(err, "a tree");
    goto done;
  }
  number_nodes(m, tree, inner, leaf);
  memset(sum, 0, (size_t)((2 * count + 1) * m->columns) * sizeof *sum);
  for (int64_t l = 0; l <= count; l++) {
    weight[leaf[l]] = rpo_array_number(&m->leaf_weight, first_leaf + l);
    rpo_leaf_means(m, tree, l, sum + leaf[l] * m->columns);
  }
  for (int64_t n = count - 1; n >= 0; n--) {
    int64_t const left = rpo_array_whole(&m->left, first + n);
    int64_t const right = rpo_array_whole(&m->right, first + n);
    int64_t const a = left >= 0 ? inner[left] : leaf[~left];
    int64_t const b = right >= 0 ? inner[right] : leaf[~right];
    weight[inner[n]] = weight[a] + weight[b];
    for (int64_t j = 0; j < m->columns; j++) {
      sum[inner[n] * m->columns + j] =
          (weight[a] * sum[a * m->columns + j] + weight[b] * sum[b * m->columns + j]) /
          weight[inner[n]];
    }
  }
  for (int64_t i = 0; i <= 2 * count; i++)
    rpo_finish_row(m, sum + i * m->columns, 1, out + i * m->outputs);
done:
  rpo_delete(leaf);
  rpo_delete(inner);
  rpo_delete(weight);
  rpo_delete(sum);
  return status;
}
