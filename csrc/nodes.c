/* Trees from the inside: nodes that rows reach, flat arrays, values, importances. */
#include <string.h>

#include "mem.h"
#include "readout.h"

/* Preorder numbers over inner nodes and leaves together. Children follow their parent, the whole left
 * branch before the right: node i has seen i inner nodes and the leaves left of it. */
static rpo_status number_nodes(const rpo_forest *m, int64_t tree, int64_t *inner, int64_t *leaf,
                               rpo_error *err) {
  int64_t const first = m->inner_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  int64_t *const stack = rpo_new(count + 2, 8);
  if (stack == NULL) return rpo_fail_memory(err, "a tree");
  int64_t depth = 0, next = 0;
  stack[depth++] = count > 0 ? 0 : -1;
  while (depth > 0) {
    int64_t const node = stack[--depth];
    if (node < 0) {
      leaf[~node] = next++;
      continue;
    }
    inner[node] = next++;
    stack[depth++] = rpo_array_whole(&m->right, first + node);
    stack[depth++] = rpo_array_whole(&m->left, first + node);
  }
  rpo_delete(stack);
  return RPO_OK;
}

/* Numbers of all trees' leaves (and inner nodes, unless NULL), each tree from 0. */
static rpo_status number_all(const rpo_forest *m, int64_t **leaf, int64_t **inner, rpo_error *err) {
  int64_t *const leaves = rpo_new(m->leaf_start[m->trees], 8);
  int64_t *const inners = rpo_new(m->inner_start[m->trees], 8);
  rpo_status status = leaves == NULL || inners == NULL ? rpo_fail_memory(err, "nodes") : RPO_OK;
  for (int64_t t = 0; t < m->trees && status == RPO_OK; t++) {
    status = number_nodes(m, t, inners + m->inner_start[t], leaves + m->leaf_start[t], err);
  }
  if (status != RPO_OK) {
    rpo_delete(leaves);
    rpo_delete(inners);
    return status;
  }
  *leaf = leaves;
  *inner = inners;
  return RPO_OK;
}

static rpo_status apply_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  const rpo_scratch *const s = &r->scratch[thread];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t t = 0; t < m->trees; t++) {
      r->nodes[(first + i) * m->trees + t] =
          r->node_of_leaf[m->leaf_start[t] + s->leaf[t * r->block + i]];
    }
  }
  return RPO_OK;
}

rpo_status rpo_forest_apply(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                            int64_t *out, rpo_error *err) {
  rpo_reading r;
  int64_t *leaf = NULL, *inner = NULL;
  RPO_TRY(rpo_reading_start(&r, m, X, out, err));
  RPO_TRY(number_all(m, &leaf, &inner, err));
  r.nodes = out;
  r.node_of_leaf = leaf;
  rpo_status const status = rpo_read_blocks(&r, control, apply_block, err);
  rpo_delete(leaf);
  rpo_delete(inner);
  return status;
}

/* Leaves are known; the way there is the chain of parents. */
typedef struct paths {
  rpo_reading r;
  const int64_t *leaf, *inner;
  int32_t *leaf_parent, *inner_parent; /* over all trees; -1: root */
} paths;

static rpo_status paths_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  paths *const p = context;
  rpo_reading *const r = &p->r;
  const rpo_forest *const m = r->m;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  const rpo_scratch *const s = &r->scratch[thread];
  for (int64_t i = 0; i < rows; i++) {
    int64_t at = r->columns == NULL ? 0 : r->indptr[first + i];
    int64_t const begin = at;
    for (int64_t t = 0; t < m->trees; t++) {
      int64_t const leaf = m->leaf_start[t] + s->leaf[t * r->block + i];
      int64_t const node_start = m->inner_start[t] + m->leaf_start[t];
      int64_t depth = 1;
      for (int64_t n = p->leaf_parent[leaf]; n >= 0; n = p->inner_parent[m->inner_start[t] + n])
        depth++;
      if (r->columns != NULL) {
        int64_t to = at + depth;
        r->columns[--to] = node_start + p->leaf[leaf];
        for (int64_t n = p->leaf_parent[leaf]; n >= 0; n = p->inner_parent[m->inner_start[t] + n]) {
          r->columns[--to] = node_start + p->inner[m->inner_start[t] + n];
        }
      }
      at += depth;
    }
    if (r->columns == NULL) r->indptr[first + i + 1] = at - begin;
  }
  return RPO_OK;
}

static void find_parents(const rpo_forest *m, int32_t *leaf_parent, int32_t *inner_parent) {
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const first = m->inner_start[t], count = m->inner_start[t + 1] - first;
    if (count == 0) leaf_parent[m->leaf_start[t]] = -1;
    if (count > 0) inner_parent[first] = -1;
    for (int64_t i = 0; i < count; i++) {
      int64_t const child[2] = {rpo_array_whole(&m->left, first + i),
                                rpo_array_whole(&m->right, first + i)};
      for (int c = 0; c < 2; c++) {
        if (child[c] >= 0) {
          inner_parent[first + child[c]] = (int32_t)i;
        } else {
          leaf_parent[m->leaf_start[t] + ~child[c]] = (int32_t)i;
        }
      }
    }
  }
}

rpo_status rpo_forest_paths(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                            int64_t *node_start, int64_t *indptr, int64_t *columns,
                            rpo_error *err) {
  paths p;
  int64_t *leaf = NULL, *inner = NULL;
  rpo_status status;
  memset(&p, 0, sizeof p);
  RPO_TRY(rpo_reading_start(&p.r, m, X, indptr, err));
  RPO_TRY(number_all(m, &leaf, &inner, err));
  p.leaf = leaf;
  p.inner = inner;
  p.leaf_parent = rpo_new(m->leaf_start[m->trees], 4);
  p.inner_parent = rpo_new(m->inner_start[m->trees], 4);
  if (p.leaf_parent == NULL || p.inner_parent == NULL) {
    status = rpo_fail_memory(err, "nodes");
    goto done;
  }
  find_parents(m, p.leaf_parent, p.inner_parent);
  p.r.indptr = indptr;
  p.r.columns = columns;
  RPO_GOTO(rpo_read_blocks(&p.r, control, paths_block, err));
  if (columns == NULL) rpo_add_up(indptr, X->rows);
  for (int64_t t = 0; node_start != NULL && t <= m->trees; t++) {
    node_start[t] = m->inner_start[t] + m->leaf_start[t];
  }
done:
  rpo_delete(leaf);
  rpo_delete(inner);
  rpo_delete(p.leaf_parent);
  rpo_delete(p.inner_parent);
  return status;
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
  return RPO_OK;
}

static void set_i64(int64_t *a, int64_t i, int64_t v) {
  if (a != NULL) a[i] = v;
}

static void set_f64(double *a, int64_t i, double v) {
  if (a != NULL) a[i] = v;
}

rpo_status rpo_forest_tree(const rpo_forest *m, int64_t tree, const rpo_tree_arrays *a,
                           rpo_error *err) {
  int64_t *leaf = NULL, *inner = NULL, *samples = NULL;
  double *weight = NULL;
  RPO_TRY(check_tree(m, tree, a, err));
  int64_t const first = m->inner_start[tree], first_leaf = m->leaf_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  leaf = rpo_new(count + 1, 8);
  inner = rpo_new(count, 8);
  samples = rpo_new(2 * count + 1, 8);
  weight = rpo_new(2 * count + 1, 8);
  rpo_status status;
  if (leaf == NULL || inner == NULL || samples == NULL || weight == NULL) {
    status = rpo_fail_memory(err, "a tree");
    goto done;
  }
  RPO_GOTO(number_nodes(m, tree, inner, leaf, err));
  for (int64_t l = 0; l <= count; l++) {
    int64_t const i = leaf[l];
    samples[i] = rpo_array_whole(&m->leaf_rows, first_leaf + l);
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

/* sum += the mean labels of a leaf. */
static void add_leaf(const rpo_forest *m, int64_t tree, int64_t leaf, double *sum) {
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
  int64_t const first = m->inner_start[tree], first_leaf = m->leaf_start[tree];
  int64_t const count = m->inner_start[tree + 1] - first;
  int64_t *const leaf = rpo_new(count + 1, 8), *const inner = rpo_new(count, 8);
  double *const weight = rpo_new(2 * count + 1, 8);
  double *const sum = rpo_new((2 * count + 1) * m->columns, 8); /* means, by node */
  rpo_status status;
  if (leaf == NULL || inner == NULL || weight == NULL || sum == NULL) {
    status = rpo_fail_memory(err, "a tree");
    goto done;
  }
  RPO_GOTO(number_nodes(m, tree, inner, leaf, err));
  memset(sum, 0, (size_t)((2 * count + 1) * m->columns) * sizeof *sum);
  for (int64_t l = 0; l <= count; l++) {
    weight[leaf[l]] = rpo_array_number(&m->leaf_weight, first_leaf + l);
    add_leaf(m, tree, l, sum + leaf[l] * m->columns);
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

/* Weighted decrease of impurity by feature, in the sample each tree was grown on; a tree's decreases
 * sum to 1. */
rpo_status rpo_forest_importances(const rpo_forest *m, double *out, rpo_error *err) {
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  int64_t most = 0;
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const inner = m->inner_start[t + 1] - m->inner_start[t];
    most = inner > most ? inner : most;
  }
  const rpo_array *const grown = m->sample_weight.data ? &m->sample_weight : &m->leaf_weight;
  double *const weight = rpo_new(most, 8), *const own = rpo_new(m->inputs, 8);
  if (weight == NULL || own == NULL) {
    rpo_delete(weight);
    rpo_delete(own);
    return rpo_fail_memory(err, "importances");
  }
  memset(out, 0, (size_t)m->inputs * sizeof *out);
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const first = m->inner_start[t];
    double total = 0.0;
    memset(own, 0, (size_t)m->inputs * sizeof *own);
    for (int64_t n = m->inner_start[t + 1] - first - 1; n >= 0; n--) {
      double below = 0.0;
      weight[n] = 0.0;
      for (int c = 0; c < 2; c++) {
        int64_t const child = rpo_array_whole(c == 0 ? &m->left : &m->right, first + n);
        int64_t const leaf = m->leaf_start[t] + ~child;
        double const w = child >= 0 ? weight[child] : rpo_array_number(grown, leaf);
        weight[n] += w;
        below += w * (child >= 0 ? rpo_array_number(&m->impurity, first + child)
                                 : rpo_array_number(&m->leaf_impurity, leaf));
      }
      double const gain = weight[n] * rpo_array_number(&m->impurity, first + n) - below;
      own[rpo_array_whole(&m->feature, first + n)] += gain;
      total += gain;
    }
    for (int64_t j = 0; j < m->inputs && total > 0.0; j++) out[j] += own[j] / total;
  }
  double sum = 0.0;
  for (int64_t j = 0; j < m->inputs; j++) sum += out[j];
  for (int64_t j = 0; j < m->inputs && sum > 0.0; j++) out[j] /= sum;
  rpo_delete(weight);
  rpo_delete(own);
  return RPO_OK;
}
