/* Weights of training rows in predictions, A S; and S made again where a forest keeps L instead. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forest.h"
#include "mem.h"
#include "readout.h"
#include "sums.h"

/* ---- A S ---- */

static int ascending(const void *a, const void *b) {
  int64_t const x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static rpo_status weights_block(void *context, int64_t task, int thread, rpo_job *job,
                                rpo_error *err) {
  rpo_reading *const r = context;
  rpo_scratch *const s = &r->scratch[thread];
  double const trees = (double)r->m->trees;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t found;
    RPO_TRY(rpo_keep_on(job, thread, err));
    RPO_TRY(rpo_rows_check(r, s, i, err));
    (void)rpo_collect_rows(r, s, i, NULL, &found);
    if (r->columns == NULL) {
      r->indptr[first + i + 1] = found;
      rpo_take_weights(s, found);
      continue;
    }
    RPO_TRY(rpo_count_check(r->indptr, first + i, found, err));
    int64_t const at = r->indptr[first + i];
    qsort(s->pick, (size_t)found, sizeof *s->pick, ascending);
    rpo_take_weights(s, found);
    for (int64_t e = 0; e < found; e++) {
      r->columns[at + e] = s->pick[e];
      r->out[at + e] = s->share[e] / trees;
    }
  }
  return RPO_OK;
}

void rpo_add_up(int64_t *indptr, int64_t rows) {
  indptr[0] = 0;
  for (int64_t i = 0; i < rows; i++) indptr[i + 1] += indptr[i];
}

/* S made again is of this forest when its leaves have the rows that the forest's have. */
static int rows_fit(const rpo_forest *m, const rpo_leaf_rows *s) {
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
    if (t >= s->trees || leaves != s->leaf_start[t + 1] - s->leaf_start[t]) return 0;
  }
  return m->trees == s->trees && m->rows == s->rows;
}

rpo_status rpo_forest_weights(const rpo_forest *m, const rpo_leaf_rows *leaf_rows,
                              const rpo_matrix *X, const rpo_control *control, int64_t *indptr,
                              int64_t *columns, double *values, rpo_error *err) {
  rpo_reading r;
  RPO_TRY(rpo_reading_start(&r, m, X, indptr, err));
  RPO_TRY(rpo_refuse_boosted(m, "weights of training rows", err));
  if (leaf_rows != NULL) r.s = leaf_rows;
  if (r.s == NULL) {
    return rpo_fail(err, RPO_EINVAL,
                    "leaf_rows is NULL and the forest keeps its leaves as a table of values, not "
                    "as training rows: make them with rpo_leaf_rows_new");
  }
  if (leaf_rows != NULL && !rows_fit(m, leaf_rows)) {
    return rpo_fail(err, RPO_EINVAL, "leaf_rows were made for another forest");
  }
  if ((columns == NULL) != (values == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "columns and values must both be given or both be NULL");
  }
  if (columns != NULL) RPO_TRY(rpo_counts_check(indptr, X->rows, err));
  r.indptr = indptr;
  r.columns = columns;
  r.out = values;
  RPO_TRY(rpo_read_blocks(&r, control, weights_block, err));
  if (columns == NULL) rpo_add_up(indptr, X->rows);
  return RPO_OK;
}

/* ---- S made again ---- */

void rpo_leaf_rows_free(rpo_leaf_rows *s) {
  if (s == NULL) return;
  for (int i = 0; i < 5; i++) rpo_delete(s->owned[i]);
  rpo_delete(s);
}

/* Room for as many rows as the forest's leaves had, and where each leaf's begin. */
static rpo_status leaf_rows_room(const rpo_forest *m, rpo_leaf_rows **out, rpo_error *err) {
  rpo_leaf_rows *const s = rpo_new_zero(1, (int64_t)sizeof *s);
  if (s == NULL) return rpo_fail_memory(err, "the training rows of leaves");
  int64_t *const tree_start = s->owned[0] = rpo_new(m->trees + 1, 8);
  int64_t *const leaf_start = s->owned[1] = rpo_new(m->trees + 1, 8);
  int32_t *const start = s->owned[4] = rpo_new(rpo_leaves(m) + m->trees, 4);
  int64_t total = 0;
  if (tree_start == NULL || leaf_start == NULL || start == NULL) goto starved;
  for (int64_t t = 0; t <= m->trees; t++) {
    tree_start[t] = total;
    leaf_start[t] = m->leaf_start[t];
    if (t == m->trees) break;
    int32_t *const own = start + m->leaf_start[t] + t;
    int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
    own[0] = 0;
    for (int64_t l = 0; l < leaves; l++) own[l + 1] = own[l] + (int32_t)rpo_leaf_size(m, t, l);
    total += own[leaves];
  }
  s->owned[2] = rpo_new(total, 4);
  s->owned[3] = rpo_new(total, 8);
  if (s->owned[2] == NULL || s->owned[3] == NULL) goto starved;
  rpo_array const row = {s->owned[2], total, RPO_TYPE_I32};
  rpo_array const weight = {s->owned[3], total, RPO_TYPE_F64};
  rpo_array const starts = {start, rpo_leaves(m) + m->trees, RPO_TYPE_I32};
  s->rows = m->rows;
  s->trees = m->trees;
  s->tree_start = tree_start;
  s->leaf_start = leaf_start;
  s->row = row;
  s->weight = weight;
  s->start = starts;
  *out = s;
  return RPO_OK;
starved:
  rpo_leaf_rows_free(s);
  return rpo_fail_memory(err, "the training rows of leaves");
}

/* Puts the rows of positive weight behind each other in their leaves, in order. */
static rpo_status fill_tree(const rpo_forest *m, int64_t t, const int32_t *leaf,
                            const double *weight, rpo_leaf_rows *s, uint32_t *used, double *sum,
                            rpo_error *err) {
  int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
  memset(used, 0, (size_t)leaves * sizeof *used);
  memset(sum, 0, (size_t)leaves * sizeof *sum);
  for (int64_t i = 0; i < m->rows; i++) {
    int64_t const l = leaf[i];
    int64_t const at = rpo_leaf_begin(m, s, t, l) + used[l];
    if (!(weight[i] > 0.0)) continue;
    if (at == rpo_leaf_begin(m, s, t, l + 1)) {
      return rpo_fail(err, RPO_EINVAL,
                      "X and weight are not those of the fit: leaf %lld of tree %lld gets more "
                      "than its %lld rows",
                      (long long)l, (long long)t, (long long)used[l]);
    }
    ((int32_t *)s->owned[2])[at] = (int32_t)i;
    ((double *)s->owned[3])[at] = weight[i];
    used[l]++;
    sum[l] += weight[i];
  }
  for (int64_t l = 0; l < leaves; l++) {
    int64_t const there = rpo_leaf_size(m, t, l);
    double const total = rpo_array_number(&m->leaf_weight, m->leaf_start[t] + l);
    if (used[l] != there || !(fabs(sum[l] - total) <= 1e-9 * total)) {
      return rpo_fail(err, RPO_EINVAL,
                      "X and weight are not those of the fit: leaf %lld of tree %lld gets %lld "
                      "rows of total weight %g, not %lld of %g",
                      (long long)l, (long long)t, (long long)used[l], sum[l], (long long)there,
                      total);
    }
  }
  return RPO_OK;
}

typedef struct again {
  const rpo_forest *m;
  const double *weight;
  double *sums;
  int32_t *leaf; /* trees x rows */
  rpo_leaf_rows *s;
} again;

static rpo_status rows_of_tree(void *context, int64_t t, int thread, rpo_job *job, rpo_error *err) {
  static const int64_t all[3] = {0, 0, 0}; /* leaves hold all rows: no draws */
  const again *const a = context;
  const rpo_forest *const m = a->m;
  int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
  double *const in_tree = rpo_new(m->rows, 8), *const sum = rpo_new(leaves, 8);
  uint32_t *const used = rpo_new(leaves, 4);
  rpo_status status;
  if (in_tree == NULL || sum == NULL || used == NULL) {
    status = rpo_fail_memory(err, "the training rows of leaves");
    goto done;
  }
  RPO_GOTO(rpo_sample_weights(m->sample_weight.data != NULL ? all : m->sampling + 3 * t, a->weight,
                              a->sums, m->rows, in_tree, job, thread, err));
  RPO_GOTO(fill_tree(m, t, a->leaf + t * m->rows, in_tree, a->s, used, sum, err));
done:
  rpo_delete(in_tree);
  rpo_delete(sum);
  rpo_delete(used);
  return status;
}

rpo_status rpo_leaf_rows_new(const rpo_forest *m, const rpo_matrix *X, const double *weight,
                             const rpo_control *control, rpo_leaf_rows **out, rpo_error *err) {
  rpo_reading r;
  again a = {m, weight, NULL, NULL, NULL};
  rpo_status status;
  RPO_TRY(rpo_reading_start(&r, m, X, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "rows of leaves", err));
  RPO_TRY(rpo_model_check(m, err));
  if (X->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld rows, the forest was fitted to %lld",
                    (long long)X->rows, (long long)m->rows);
  }
  RPO_TRY(rpo_weight_check(weight, m->rows, err));
  RPO_GOTO(leaf_rows_room(m, &a.s, err));
  RPO_GOTO(rpo_weight_sums(weight, m->rows, &a.sums, err));
  a.leaf = m->rows > INT64_MAX / m->trees ? NULL : rpo_new(m->rows * m->trees, 4);
  if (a.leaf == NULL) {
    status = rpo_fail_memory(err, "the training rows of leaves");
    goto done;
  }
  RPO_GOTO(rpo_all_leaves(&r, control, a.leaf, err));
  RPO_GOTO(rpo_run(control, m->trees, rows_of_tree, &a, err));
  *out = a.s;
  a.s = NULL;
done:
  rpo_leaf_rows_free(a.s);
  rpo_delete(a.sums);
  rpo_delete(a.leaf);
  return status;
}
