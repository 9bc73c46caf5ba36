/* The same trees with every training row in their leaves: L = S Y with S of all rows, not of each
 * tree's sample. Splits stay those found on the sample. */
#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"
#include "readout.h"
#include "sums.h"

typedef struct relabel {
  rpo_reading r; /* first: what rpo_read_blocks hands to its tasks */
  const rpo_model *m;
  const double *weight; /* by row; NULL: ones */
  int32_t *leaf;        /* trees x rows */
  rpo_tree *tree;
  double **row_weight;
} relabel;

/* Rows of positive weight into their leaves, in order. */
static rpo_status place_rows(const relabel *a, const int32_t *leaf, rpo_tree *t, double *row_weight,
                             rpo_error *err) {
  int64_t const n = a->m->rows;
  memset(t->leaf_start, 0, (size_t)(t->n_leaves + 1) * sizeof *t->leaf_start);
  memset(t->leaf_weight, 0, (size_t)t->n_leaves * sizeof *t->leaf_weight);
  for (int64_t i = 0; i < n; i++) {
    double const w = a->weight == NULL ? 1.0 : a->weight[i];
    t->leaf_start[leaf[i] + 1] += w > 0.0;
    t->leaf_weight[leaf[i]] += w;
  }
  for (int64_t l = 0; l < t->n_leaves; l++) {
    if (t->leaf_start[l + 1] == 0) {
      return rpo_fail(err, RPO_EINVAL, "X is not the one of the fit: no row ends in leaf %lld",
                      (long long)l);
    }
    t->leaf_start[l + 1] += t->leaf_start[l];
  }
  t->n_rows = t->leaf_start[t->n_leaves];
  for (int64_t i = n - 1; i >= 0; i--) { /* from the back: leaf_start[l + 1] falls to its start */
    if (a->weight != NULL && !(a->weight[i] > 0.0)) continue;
    int32_t const at = --t->leaf_start[leaf[i] + 1];
    t->rows[at] = (int32_t)i;
    if (row_weight != NULL) row_weight[at] = a->weight[i];
  }
  for (int64_t l = 0; l < t->n_leaves; l++) t->leaf_start[l] = t->leaf_start[l + 1];
  t->leaf_start[t->n_leaves] = (int32_t)t->n_rows;
  return RPO_OK;
}

static rpo_status relabel_tree(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  relabel *const a = context;
  rpo_tree *const t = &a->tree[task];
  int ones = 1;
  (void)thread;
  (void)job;
  RPO_TRY(rpo_model_tree(a->m, task, t, &a->row_weight[task], err));
  rpo_delete(a->row_weight[task]);
  rpo_delete(t->rows);
  a->row_weight[task] = NULL;
  t->rows = rpo_new(a->m->rows, 4);
  for (int64_t i = 0; a->weight != NULL && i < a->m->rows; i++) ones &= a->weight[i] == 1.0;
  if (!ones) a->row_weight[task] = rpo_new(a->m->rows, 8);
  if (t->sample_weight == NULL) {
    t->sample_weight = t->leaf_weight;
    t->leaf_weight = rpo_new(t->n_leaves, 8);
  }
  if (t->rows == NULL || t->leaf_weight == NULL || (!ones && a->row_weight[task] == NULL)) {
    return rpo_fail_memory(err, "a tree");
  }
  return place_rows(a, a->leaf + task * a->m->rows, t, a->row_weight[task], err);
}

static rpo_status check_relabel(const rpo_model *m, const rpo_matrix *X, const rpo_matrix *labels,
                                const double *weight, rpo_error *err) {
  RPO_TRY(rpo_matrix_check(labels, "labels", err));
  RPO_TRY(rpo_matrix_check_values(labels, "labels", 0, err));
  if (labels->format == RPO_CSC) {
    return rpo_fail(err, RPO_EINVAL, "labels must be dense or CSR, not CSC");
  }
  if (X->rows != m->rows || labels->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL,
                    "X has %lld rows, labels have %lld, the forest was fitted to %lld",
                    (long long)X->rows, (long long)labels->rows, (long long)m->rows);
  }
  if (labels->cols != m->columns) {
    return rpo_fail(err, RPO_EINVAL, "labels have %lld columns, the forest's leaves hold %lld",
                    (long long)labels->cols, (long long)m->columns);
  }
  return rpo_weight_check(weight, m->rows, err);
}

rpo_status rpo_forest_relabel(const rpo_forest *m, const rpo_matrix *X, const rpo_matrix *labels,
                              const double *weight, const rpo_control *control, rpo_forest **out,
                              rpo_error *err) {
  relabel a;
  rpo_labels held;
  rpo_status status;
  memset(&a, 0, sizeof a);
  memset(&held, 0, sizeof held);
  RPO_TRY(rpo_reading_start(&a.r, m, X, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "relabelling", err));
  RPO_TRY(rpo_model_check(m, err));
  RPO_TRY(check_relabel(m, X, labels, weight, err));
  a.m = m;
  a.weight = weight;
  a.leaf = m->rows > INT64_MAX / m->trees ? NULL : rpo_new(m->rows * m->trees, 4);
  a.tree = rpo_new_zero(m->trees, (int64_t)sizeof *a.tree);
  a.row_weight = rpo_new_zero(m->trees, (int64_t)sizeof *a.row_weight);
  if (a.leaf == NULL || a.tree == NULL || a.row_weight == NULL) {
    status = rpo_fail_memory(err, "the leaves");
    goto done;
  }
  RPO_GOTO(rpo_labels_new(labels, &held, err));
  RPO_GOTO(rpo_all_leaves(&a.r, control, a.leaf, err));
  RPO_GOTO(rpo_run(control, m->trees, relabel_tree, &a, err));
  rpo_model_parts const parts = {
      m->trees, m->inputs,   m->outputs,
      m->rows,  m->ratio,    !m->ratio && held.start != NULL && held.value == NULL,
      a.tree,   m->sampling, (const double *const *)a.row_weight,
      &held,    NULL,        m->ratio ? m->fallback.data : NULL,
      NULL};
  RPO_GOTO(rpo_model_pack(&parts, control, out, err));
done:
  for (int64_t t = 0; a.tree != NULL && t < m->trees; t++) rpo_tree_release(&a.tree[t]);
  for (int64_t t = 0; a.row_weight != NULL && t < m->trees; t++) rpo_delete(a.row_weight[t]);
  rpo_delete(a.leaf);
  rpo_delete(a.tree);
  rpo_delete(a.row_weight);
  rpo_labels_release(&held);
  return status;
}
