/* Absolute loss: leaves and steps are medians. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "loss.h"
#include "mem.h"

typedef struct medians {
  rpo_boost *b;
  const rpo_boost_tree *t;
  float *step;
} medians;

/* A leaf moves by the median of its residuals. */
static rpo_status median_leaf(void *context, int64_t leaf, int thread, rpo_job *job,
                              rpo_error *err) {
  const medians *const m = context;
  const rpo_boost *const b = m->b;
  const rpo_tree *const tree = &m->t->tree;
  int64_t const first = tree->leaf_start[leaf], n = tree->leaf_start[leaf + 1] - first;
  float *const row = b->table + leaf * b->stride;
  double *const value = rpo_new(2 * n, 8);
  (void)thread;
  if (value == NULL) return rpo_fail_memory(err, "the leaves");
  double *const weight = value + n;
  for (int64_t j = 0; j < b->stride; j++) row[j] = 0.0f;
  for (int64_t j = 0; j < b->d && !rpo_stopped(job); j++) {
    for (int64_t i = 0; i < n; i++) {
      int64_t const at = tree->rows[first + i];
      value[i] = rpo_boost_y(b, at, j) - (double)b->kept[at * b->stride + j];
      weight[i] = rpo_boost_weight(b, at, j);
    }
    row[j] = (float)(b->rate * rpo_weighted_median(value, weight, n));
  }
  rpo_delete(value);
  return RPO_OK;
}

rpo_status rpo_boost_median_leaves(rpo_boost *b, const rpo_boost_tree *t,
                                   const rpo_control *control, rpo_error *err) {
  medians m = {b, t, NULL};
  return rpo_run(control, t->tree.n_leaves, median_leaf, &m, err);
}

/* |r - rho v| = |v| |r / v - rho|: a median weighted by |v|. */
static rpo_status median_column(void *context, int64_t j, int thread, rpo_job *job,
                                rpo_error *err) {
  const medians *const m = context;
  const rpo_boost *const b = m->b;
  const rpo_tree *const tree = &m->t->tree;
  double *const value = rpo_new(2 * tree->n_rows, 8);
  int64_t n = 0;
  (void)thread;
  (void)job;
  if (value == NULL) return rpo_fail_memory(err, "the step");
  double *const weight = value + tree->n_rows;
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    double const v = (double)b->table[l * b->stride + j];
    for (int64_t i = tree->leaf_start[l]; v != 0.0 && i < tree->leaf_start[l + 1]; i++) {
      int64_t const at = tree->rows[i];
      value[n] = (rpo_boost_y(b, at, j) - (double)b->kept[at * b->stride + j]) / v;
      weight[n++] = fabs(v) * rpo_boost_weight(b, at, j);
    }
  }
  m->step[j] = n > 0 ? (float)rpo_weighted_median(value, weight, n) : 0.0f;
  rpo_delete(value);
  return RPO_OK;
}

rpo_status rpo_boost_median_step(rpo_boost *b, const rpo_boost_tree *t, float *step,
                                 const rpo_control *control, rpo_error *err) {
  medians m = {b, t, step};
  memset(step, 0, (size_t)b->stride * sizeof *step);
  return rpo_run(control, b->d, median_column, &m, err);
}
