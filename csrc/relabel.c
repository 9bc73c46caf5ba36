/* The same trees with every training row in their leaves: L = S Y with S of all rows, not of each
 * tree's sample. Splits stay those found on the sample. */
#include <string.h>

#include "array.h"
#include "forest.h"
#include "guide.h"
#include "mem.h"
#include "readout.h"
#include "sums.h"

#define ROWS_BETWEEN_POLLS 1024

/* What one thread reuses from tree to tree. */
typedef struct worker {
  int32_t *leaf;                /* by row */
  int32_t *others, *other_leaf; /* rows that the model does not have in the tree's leaves */
  void *room;                   /* see guide.h */
} worker;

typedef struct relabel {
  const rpo_model *m;
  const rpo_features *features;
  const double *weight; /* by row; NULL: ones */
  worker *worker;
  rpo_tree *tree;
  double **row_weight;
} relabel;

static rpo_status worker_start(const relabel *a, worker *w, rpo_error *err) {
  if (w->leaf != NULL) return RPO_OK;
  w->others = rpo_new(a->m->rows, 4);
  w->other_leaf = rpo_new(a->m->rows, 4);
  RPO_TRY(rpo_guide_room(a->features, &w->room, err));
  if (w->others == NULL || w->other_leaf == NULL || (w->leaf = rpo_new(a->m->rows, 4)) == NULL) {
    return rpo_fail_memory(err, "a tree");
  }
  return RPO_OK;
}

/* Each row's leaf: where the tree has it, else where it goes. */
static rpo_status find_leaves(const relabel *a, const rpo_tree *t, rpo_job *job, int thread,
                              rpo_error *err) {
  worker *const w = &a->worker[thread];
  rpo_guide *guide;
  rpo_status status = RPO_OK;
  int64_t others = 0;
  for (int64_t i = 0; i < a->m->rows; i++) w->leaf[i] = -1;
  for (int64_t l = 0; l < t->n_leaves && rpo_has_rows(a->m); l++) {
    for (int32_t e = t->leaf_start[l]; e < t->leaf_start[l + 1]; e++) {
      w->leaf[t->rows[e]] = (int32_t)l;
    }
  }
  for (int64_t i = 0; i < a->m->rows; i++) {
    w->others[others] = (int32_t)i;
    others += w->leaf[i] < 0;
  }
  RPO_TRY(rpo_guide_new(a->features, t, &guide, err));
  for (int64_t i = 0; i < others && status == RPO_OK; i += ROWS_BETWEEN_POLLS) {
    int64_t const n = others - i < ROWS_BETWEEN_POLLS ? others - i : ROWS_BETWEEN_POLLS;
    rpo_guide_leaves(guide, w->room, w->others + i, n, w->other_leaf + i);
    status = rpo_keep_on(job, thread, err);
  }
  rpo_guide_free(guide);
  RPO_TRY(status);
  for (int64_t i = 0; i < others; i++) w->leaf[w->others[i]] = w->other_leaf[i];
  return RPO_OK;
}

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
      return rpo_fail(err, RPO_EINVAL,
                      "features or weight are not those of the fit: no row ends in leaf %lld",
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
  worker *const w = &a->worker[thread];
  RPO_TRY(worker_start(a, w, err));
  RPO_TRY(rpo_model_tree(a->m, task, t, &a->row_weight[task], err));
  RPO_TRY(find_leaves(a, t, job, thread, err));
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
  return place_rows(a, w->leaf, t, a->row_weight[task], err);
}

static rpo_status check_relabel(const rpo_model *m, const rpo_features *features,
                                const rpo_matrix *labels, const double *weight, rpo_error *err) {
  RPO_TRY(rpo_matrix_check(labels, "labels", err));
  RPO_TRY(rpo_matrix_check_values(labels, "labels", 0, err));
  if (labels->format == RPO_CSC) {
    return rpo_fail(err, RPO_EINVAL, "labels must be dense or CSR, not CSC");
  }
  if (features->rows != m->rows || labels->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL,
                    "features have %lld rows, labels have %lld, the forest was fitted to %lld",
                    (long long)features->rows, (long long)labels->rows, (long long)m->rows);
  }
  if (features->cols != m->inputs) {
    return rpo_fail(err, RPO_EINVAL, "features have %lld columns, the forest was fitted to %lld",
                    (long long)features->cols, (long long)m->inputs);
  }
  if (labels->cols != m->columns) {
    return rpo_fail(err, RPO_EINVAL, "labels have %lld columns, the forest's leaves hold %lld",
                    (long long)labels->cols, (long long)m->columns);
  }
  return rpo_weight_check(weight, m->rows, err);
}

rpo_status rpo_forest_relabel(const rpo_forest *m, const rpo_features *features,
                              const rpo_matrix *labels, const double *weight,
                              const rpo_control *control, rpo_forest **out, rpo_error *err) {
  relabel a;
  rpo_labels held;
  rpo_status status;
  memset(&a, 0, sizeof a);
  memset(&held, 0, sizeof held);
  if (m == NULL || features == NULL || out == NULL) {
    return rpo_fail(err, RPO_EINVAL, "forest, features or out is NULL");
  }
  RPO_TRY(rpo_refuse_boosted(m, "relabelling", err));
  RPO_TRY(rpo_model_check(m, err));
  RPO_TRY(check_relabel(m, features, labels, weight, err));
  int const threads = rpo_threads(control, m->trees);
  a.m = m;
  a.features = features;
  a.weight = weight;
  a.worker = rpo_new_zero(threads, (int64_t)sizeof *a.worker);
  a.tree = rpo_new_zero(m->trees, (int64_t)sizeof *a.tree);
  a.row_weight = rpo_new_zero(m->trees, (int64_t)sizeof *a.row_weight);
  if (a.worker == NULL || a.tree == NULL || a.row_weight == NULL) {
    status = rpo_fail_memory(err, "the leaves");
    goto done;
  }
  RPO_GOTO(rpo_labels_new(labels, &held, err));
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
  for (int t = 0; a.worker != NULL && t < threads; t++) {
    rpo_delete(a.worker[t].leaf);
    rpo_delete(a.worker[t].others);
    rpo_delete(a.worker[t].other_leaf);
    rpo_delete(a.worker[t].room);
  }
  rpo_delete(a.worker);
  rpo_delete(a.tree);
  rpo_delete(a.row_weight);
  rpo_labels_release(&held);
  return status;
}
