/* Importances of features: the decreases of impurity that their splits made, as kept with the nodes, or
 * made again on outputs that the trees were not grown on (those behind a projection). */
#include <math.h>
#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"
#include "readout.h"
#include "sums.h"
#include "target.h"

/* Decreases by inner node to importances by feature: a tree's sum to 1, and so do all. */
static rpo_status add_up(const rpo_forest *m, const double *gain, double *out, rpo_error *err) {
  double *const own = rpo_new(m->inputs, 8);
  if (own == NULL) return rpo_fail_memory(err, "importances");
  memset(out, 0, (size_t)m->inputs * sizeof *out);
  for (int64_t t = 0; t < m->trees; t++) {
    double total = 0.0;
    memset(own, 0, (size_t)m->inputs * sizeof *own);
    for (int64_t n = m->inner_start[t + 1] - 1; n >= m->inner_start[t]; n--) {
      own[rpo_array_whole(&m->feature, n)] += gain[n];
      total += gain[n];
    }
    for (int64_t j = 0; j < m->inputs && total > 0.0; j++) out[j] += own[j] / total;
  }
  double sum = 0.0;
  for (int64_t j = 0; j < m->inputs; j++) sum += out[j];
  for (int64_t j = 0; j < m->inputs && sum > 0.0; j++) out[j] /= sum;
  rpo_delete(own);
  return RPO_OK;
}

/* Weight of the leaves in the samples their trees were grown on. */
static const rpo_array *grown_weight(const rpo_forest *m) {
  return m->sample_weight.data != NULL ? &m->sample_weight : &m->leaf_weight;
}

/* ---- As kept ---- */

static void gains_kept(const rpo_forest *m, int64_t t, double *weight, double *gain) {
  int64_t const first = m->inner_start[t];
  for (int64_t n = m->inner_start[t + 1] - first - 1; n >= 0; n--) {
    double below = 0.0;
    weight[n] = 0.0;
    for (int c = 0; c < 2; c++) {
      int64_t const child = rpo_array_whole(c == 0 ? &m->left : &m->right, first + n);
      int64_t const leaf = m->leaf_start[t] + ~child;
      double const w = child >= 0 ? weight[child] : rpo_array_number(grown_weight(m), leaf);
      weight[n] += w;
      below += w * (child >= 0 ? rpo_array_number(&m->impurity, first + child)
                               : rpo_array_number(&m->leaf_impurity, leaf));
    }
    gain[n] = weight[n] * rpo_array_number(&m->impurity, first + n) - below;
  }
}

rpo_status rpo_forest_importances(const rpo_forest *m, double *out, rpo_error *err) {
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  RPO_TRY(rpo_model_check(m, err));
  int64_t const inner = m->inner_start[m->trees];
  double *const weight = rpo_new(inner, 8), *const gain = rpo_new(inner, 8);
  rpo_status status;
  if (weight == NULL || gain == NULL) {
    status = rpo_fail_memory(err, "importances");
  } else {
    for (int64_t t = 0; t < m->trees; t++) {
      gains_kept(m, t, weight + m->inner_start[t], gain + m->inner_start[t]);
    }
    status = add_up(m, gain, out, err);
  }
  rpo_delete(weight);
  rpo_delete(gain);
  return status;
}

/* ---- On other outputs ----
 * A split into L and R decreases the sum of squared deviations by |S_L|^2 / W_L + |S_R|^2 / W_R -
 * |S|^2 / W, with S the weighted sum of the rows' outputs. A node's rows are those of a range of
 * leaves. Its S is that of the child with more rows and, row by row, the other's: a row is added
 * log n times. */

typedef struct task_data {
  double *weight;      /* by row, in the tree's sample */
  int32_t *rows;       /* leaf after leaf */
  int64_t *start;      /* by leaf, one more: in rows */
  int64_t *end, *leaf; /* by inner node: its last inner node + 1, its first leaf */
  int32_t *parent, *leaf_parent;
  double *share, *leaf_share; /* |S|^2 / W */
  double *sum;                /* S by output, zero between chains */
} task_data;

typedef struct importances {
  rpo_reading r;
  rpo_target y;
  const double *weight;
  double *sums;     /* of weight, to draw by */
  int32_t *leaf_of; /* trees x rows */
  double *gain;     /* by inner node */
} importances;

static void task_release(task_data *k) {
  rpo_delete(k->weight);
  rpo_delete(k->rows);
  rpo_delete(k->start);
  rpo_delete(k->end);
  rpo_delete(k->leaf);
  rpo_delete(k->parent);
  rpo_delete(k->leaf_parent);
  rpo_delete(k->share);
  rpo_delete(k->leaf_share);
  rpo_delete(k->sum);
}

static rpo_status task_room(const importances *a, int64_t inner, task_data *k, rpo_error *err) {
  int64_t const n = a->r.m->rows, width = a->y.z != NULL ? a->y.stride : a->y.width;
  memset(k, 0, sizeof *k);
  k->weight = rpo_new(n, 8);
  k->rows = rpo_new(n, 4);
  k->start = rpo_new_zero(inner + 2, 8);
  k->end = rpo_new(inner, 8);
  k->leaf = rpo_new(inner, 8);
  k->parent = rpo_new(inner, 4);
  k->leaf_parent = rpo_new(inner + 1, 4);
  k->share = rpo_new(inner, 8);
  k->leaf_share = rpo_new(inner + 1, 8);
  k->sum = rpo_new_zero(width, 8);
  if (k->weight == NULL || k->rows == NULL || k->start == NULL || k->end == NULL ||
      k->leaf == NULL || k->parent == NULL || k->leaf_parent == NULL || k->share == NULL ||
      k->leaf_share == NULL || k->sum == NULL) {
    return rpo_fail_memory(err, "importances");
  }
  return RPO_OK;
}

/* Rows of the tree's sample into their leaves, whose weights must be those of the fit. */
static rpo_status place_rows(const importances *a, int64_t tree, task_data *k, rpo_job *job,
                             int thread, rpo_error *err) {
  const rpo_forest *const m = a->r.m;
  const int32_t *const leaf_of = a->leaf_of + tree * m->rows;
  int64_t const leaves = m->leaf_start[tree + 1] - m->leaf_start[tree];
  double *const total = k->leaf_share; /* for now */
  RPO_TRY(rpo_sample_weights(m->sampling + 3 * tree, a->weight, a->sums, m->rows, k->weight, job,
                             thread, err));
  memset(total, 0, (size_t)leaves * sizeof *total);
  for (int64_t i = 0; i < m->rows; i++) {
    k->start[leaf_of[i] + 1] += k->weight[i] > 0.0;
    total[leaf_of[i]] += k->weight[i];
  }
  for (int64_t l = 0; l < leaves; l++) {
    double const there = rpo_array_number(grown_weight(m), m->leaf_start[tree] + l);
    if (!(fabs(total[l] - there) <= 1e-9 * there)) {
      return rpo_fail(err, RPO_EINVAL,
                      "X and weight are not those of the fit: leaf %lld of tree %lld gets rows of "
                      "total weight %g, not %g",
                      (long long)l, (long long)tree, total[l], there);
    }
    k->start[l + 1] += k->start[l];
  }
  int64_t const count = k->start[leaves];
  for (int64_t i = m->rows - 1; i >= 0; i--) { /* start[l + 1] falls to the start of leaf l */
    if (k->weight[i] > 0.0) k->rows[--k->start[leaf_of[i] + 1]] = (int32_t)i;
  }
  for (int64_t l = 0; l < leaves; l++) k->start[l] = k->start[l + 1];
  k->start[leaves] = count;
  return RPO_OK;
}

/* Below node i are the inner nodes i + 1 .. end[i] and as many leaves and one, from leaf[i] on. */
static void find_ranges(const rpo_forest *m, int64_t tree, task_data *k) {
  int64_t const first = m->inner_start[tree], inner = m->inner_start[tree + 1] - first;
  if (inner == 0) {
    k->leaf_parent[0] = -1;
    return;
  }
  k->end[0] = inner;
  k->leaf[0] = 0;
  k->parent[0] = -1;
  for (int64_t i = 0; i < inner; i++) {
    int64_t const left = rpo_array_whole(&m->left, first + i);
    int64_t const right = rpo_array_whole(&m->right, first + i);
    *(left >= 0 ? k->parent + left : k->leaf_parent + ~left) = (int32_t)i;
    *(right >= 0 ? k->parent + right : k->leaf_parent + ~right) = (int32_t)i;
    if (left >= 0) {
      k->end[left] = right >= 0 ? right : k->end[i];
      k->leaf[left] = k->leaf[i];
    }
    if (right >= 0) {
      k->end[right] = k->end[i];
      k->leaf[right] = k->leaf[i] + right - i;
    }
  }
}

/* What a chain from a leaf upwards has summed up. */
typedef struct chain {
  int64_t first, end;    /* leaves */
  double weight, square; /* W, |S|^2 (of labels) */
} chain;

static void add_row(const rpo_target *y, int64_t row, double w, double *sum, chain *c) {
  c->weight += w;
  if (y->z != NULL) {
    for (int64_t j = 0; j < y->width; j++) sum[j] += w * y->z[row * y->stride + j];
    return;
  }
  for (int64_t e = y->start[row]; e < y->start[row + 1]; e++) {
    double const v = w * (y->value == NULL ? 1.0 : y->value[e]);
    c->square += v * (2.0 * sum[y->index[e]] + v);
    sum[y->index[e]] += v;
  }
}

/* The rows of leaves first .. end. */
static void add_rows(const rpo_target *y, task_data *k, int64_t first, int64_t end, chain *c) {
  for (int64_t at = k->start[first]; at < k->start[end]; at++) {
    add_row(y, k->rows[at], k->weight[k->rows[at]], k->sum, c);
  }
}

static double share_of(const rpo_target *y, const task_data *k, const chain *c) {
  double square = c->square;
  for (int64_t j = 0; y->z != NULL && j < y->width; j++) square += k->sum[j] * k->sum[j];
  return square / c->weight;
}

static void wipe(const rpo_target *y, task_data *k, const chain *c) {
  if (y->z != NULL) {
    memset(k->sum, 0, (size_t)y->width * sizeof *k->sum);
    return;
  }
  for (int64_t at = k->start[c->first]; at < k->start[c->end]; at++) {
    int64_t const row = k->rows[at];
    for (int64_t e = y->start[row]; e < y->start[row + 1]; e++) k->sum[y->index[e]] = 0.0;
  }
}

/* From a leaf to its parent, and on, as long as this is the child with more rows. */
static void climb(const rpo_target *y, task_data *k, int64_t leaf) {
  chain c = {leaf, leaf + 1, 0.0, 0.0};
  add_rows(y, k, leaf, leaf + 1, &c);
  k->leaf_share[leaf] = share_of(y, k, &c);
  for (int64_t i = k->leaf_parent[leaf]; i >= 0; i = k->parent[i]) {
    int64_t const first = k->leaf[i], end = first + k->end[i] - i + 1;
    int const left = c.first == first; /* else the right child */
    int64_t const other = left ? c.end : first, other_end = left ? end : c.first;
    int64_t const mine = k->start[c.end] - k->start[c.first];
    int64_t const more = k->start[other_end] - k->start[other];
    if (more > mine || (more == mine && !left)) break;
    add_rows(y, k, other, other_end, &c);
    c.first = first;
    c.end = end;
    k->share[i] = share_of(y, k, &c);
  }
  wipe(y, k, &c);
}

static rpo_status gains_on(void *context, int64_t tree, int thread, rpo_job *job, rpo_error *err) {
  importances *const a = context;
  const rpo_forest *const m = a->r.m;
  int64_t const first = m->inner_start[tree], inner = m->inner_start[tree + 1] - first;
  task_data k;
  rpo_status status;
  RPO_GOTO(task_room(a, inner, &k, err));
  RPO_GOTO(place_rows(a, tree, &k, job, thread, err));
  find_ranges(m, tree, &k);
  for (int64_t l = 0; l <= inner; l++) {
    if (l % 64 == 0) RPO_GOTO(rpo_keep_on(job, thread, err));
    climb(&a->y, &k, l);
  }
  for (int64_t i = 0; i < inner; i++) {
    int64_t const left = rpo_array_whole(&m->left, first + i);
    int64_t const right = rpo_array_whole(&m->right, first + i);
    a->gain[first + i] = (left >= 0 ? k.share[left] : k.leaf_share[~left]) +
                         (right >= 0 ? k.share[right] : k.leaf_share[~right]) - k.share[i];
  }
done:
  task_release(&k);
  return status;
}

static rpo_status check_on(const rpo_forest *m, const rpo_matrix *X, const rpo_matrix *target,
                           const double *weight, rpo_error *err) {
  RPO_TRY(rpo_matrix_check(target, "target", err));
  RPO_TRY(rpo_matrix_check_values(target, "target", 0, err));
  if (target->format == RPO_CSC) {
    return rpo_fail(err, RPO_EINVAL, "target must be dense or CSR, not CSC");
  }
  if (X->rows != m->rows || target->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL,
                    "X has %lld rows, target has %lld, the forest was fitted to %lld",
                    (long long)X->rows, (long long)target->rows, (long long)m->rows);
  }
  return rpo_weight_check(weight, m->rows, err);
}

rpo_status rpo_forest_importances_on(const rpo_forest *m, const rpo_matrix *X,
                                     const rpo_matrix *target, const double *weight,
                                     const rpo_control *control, double *out, rpo_error *err) {
  importances a;
  rpo_status status;
  memset(&a, 0, sizeof a);
  RPO_TRY(rpo_reading_start(&a.r, m, X, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "importances on other outputs", err));
  RPO_TRY(rpo_model_check(m, err));
  RPO_TRY(check_on(m, X, target, weight, err));
  a.weight = weight;
  a.leaf_of = m->rows > INT64_MAX / m->trees ? NULL : rpo_new(m->rows * m->trees, 4);
  a.gain = rpo_new(m->inner_start[m->trees], 8);
  if (a.leaf_of == NULL || a.gain == NULL) {
    status = rpo_fail_memory(err, "importances");
    goto done;
  }
  RPO_GOTO(rpo_target_new(target, 1, &a.y, err));
  RPO_GOTO(rpo_weight_sums(weight, m->rows, &a.sums, err));
  RPO_GOTO(rpo_all_leaves(&a.r, control, a.leaf_of, err));
  RPO_GOTO(rpo_run(control, m->trees, gains_on, &a, err));
  RPO_GOTO(add_up(m, a.gain, out, err));
done:
  rpo_target_release(&a.y);
  rpo_delete(a.sums);
  rpo_delete(a.leaf_of);
  rpo_delete(a.gain);
  return status;
}
