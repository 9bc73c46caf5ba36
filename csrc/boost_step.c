/* The step along what a tree says (Algorithms 2 and 4, line 6; 3, line 7): for every output the rho
 * that minimises sum_i w l(y, F + rho v), all outputs in one pass over the rows for each try. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "loss.h"
#include "mem.h"
#include "vmath.h"

#define TRIES 24
#define FARTHEST \
  30.0 /* scores change by no more: where both derivatives vanish, nothing is gained */

/* One output's search: the derivative -D of a convex function is negative at `low`, positive at
 * `high`, both on the side of zero on which the loss falls. */
typedef struct line {
  double at, low, high; /* high: INFINITY until known */
  double slope;         /* D at 0, made positive */
  double far;           /* largest step */
  int done;
} line;

static void start_line(line *l, double slope, double curvature, double reach) {
  memset(l, 0, sizeof *l);
  l->slope = slope;
  l->high = INFINITY;
  l->far = reach > 0.0 ? FARTHEST / reach : 0.0;
  l->done = !(slope > 0.0) || !(l->far > 0.0);
  if (l->done) return;
  l->at = curvature > 0.0 ? slope / curvature : 1.0;
  if (!(l->at < l->far)) l->at = l->far;
}

/* Takes what was found at l->at, chooses the next try: Newton's where it stays in the bracket. */
static void go_on(line *l, double slope, double curvature) {
  if (l->done) return;
  if (fabs(slope) <= 1e-5 * l->slope) {
    l->low = l->at;
    l->done = 1;
    return;
  }
  if (slope > 0.0) {
    l->low = l->at;
  } else {
    l->high = l->at;
  }
  if (l->low >= l->far || (isfinite(l->high) && l->high - l->low <= 1e-6 * l->high)) {
    l->done = 1;
    return;
  }
  double next = curvature > 0.0 ? l->at + slope / curvature : INFINITY;
  if (!(next > l->low && next < l->high)) {
    next = isfinite(l->high) ? 0.5 * (l->low + l->high) : 2.0 * l->at;
  }
  l->at = next < l->far ? next : l->far;
}

/* One Newton step that cannot raise the loss: of logistic and exponential losses the curvature along
 * the way stays below e^t (e^(t/2)) times what it is here, t the largest change of a score; of softmax
 * (see joint_share) below e^2t times 2 sum p (1 - p) v^2. */
static double one_step(const rpo_boost *b, double slope, double curvature, double reach) {
  double const below = curvature + b->l2;
  if (!(slope > 0.0) || !(below > 0.0)) return 0.0;
  double step = slope / below;
  double const slow = b->loss == RPO_LOSS_LOGISTIC      ? 1.0
                      : b->loss == RPO_LOSS_EXPONENTIAL ? 2.0
                      : b->loss == RPO_LOSS_SOFTMAX     ? 0.5
                                                        : 0.0;
  if (b->loss == RPO_LOSS_SOFTMAX) curvature *= 2.0 * (double)(b->d - 1) / (double)b->d;
  for (int i = 0; slow > 0.0 && i < 60; i++) {
    double const t = b->rate * step * reach / slow;
    double const bend = t < 1e-3 ? 0.5 * (1.0 + t) : (rpo_exp(t) - t - 1.0) / (t * t);
    if (t <= 30.0 && curvature * b->rate * step * bend <= slope) break;
    step *= 0.5;
  }
  return step;
}

typedef struct sums {
  double *slope, *curvature; /* by output; softmax: all in the first */
} sums;

static rpo_status evaluate(rpo_boost *b, const rpo_tree *tree, const float *step, sums *s,
                           const rpo_control *control, rpo_error *err) {
  RPO_TRY(rpo_boost_sum(b, tree->rows, RPO_SUM_STEP, step, control, err));
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 0, 0, b->n_chunks, s->slope);
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 1, 0, b->n_chunks, s->curvature);
  for (int64_t j = 1; b->loss == RPO_LOSS_SOFTMAX && j < b->d; j++) {
    s->slope[0] += s->slope[j];
    s->curvature[0] += s->curvature[j];
  }
  return RPO_OK;
}

/* By output, the largest |v| of a leaf. */
static void find_reach(const rpo_boost *b, int64_t leaves, double *reach) {
  memset(reach, 0, (size_t)b->d * sizeof *reach);
  for (int64_t l = 0; l < leaves; l++) {
    for (int64_t j = 0; j < b->d; j++) {
      double const v = fabs((double)b->table[l * b->stride + j]);
      int64_t const at = b->loss == RPO_LOSS_SOFTMAX ? 0 : j;
      reach[at] = v > reach[at] ? v : reach[at];
    }
  }
}

static void put_steps(const rpo_boost *b, const line *lines, const double *sign, int final,
                      float *step) {
  for (int64_t j = 0; j < b->d; j++) {
    int64_t const at = b->loss == RPO_LOSS_SOFTMAX ? 0 : j;
    step[j] = (float)(sign[at] * (final || lines[at].done ? lines[at].low : lines[at].at));
  }
}

static rpo_status search_lines(rpo_boost *b, const rpo_tree *tree, line *lines, double *sign,
                               sums *s, double *reach, float *step, const rpo_control *control,
                               rpo_error *err) {
  int64_t const n = b->loss == RPO_LOSS_SOFTMAX ? 1 : b->d;
  int64_t open = 0;
  memset(step, 0, (size_t)b->stride * sizeof *step);
  find_reach(b, tree->n_leaves, reach);
  RPO_TRY(evaluate(b, tree, step, s, control, err));
  for (int64_t j = 0; j < n; j++) {
    sign[j] = s->slope[j] < 0.0 ? -1.0 : 1.0;
    if (b->leaf == RPO_LEAF_NEWTON) {
      lines[j].low = one_step(b, fabs(s->slope[j]), s->curvature[j], reach[j]);
      lines[j].done = 1;
      continue;
    }
    start_line(&lines[j], fabs(s->slope[j]), s->curvature[j], reach[j]);
    if (b->loss == RPO_LOSS_SQUARED) { /* exact */
      lines[j].low = s->curvature[j] > 0.0 ? fabs(s->slope[j]) / s->curvature[j] : 0.0;
      lines[j].done = 1;
    }
    open += !lines[j].done;
  }
  for (int i = 0; i < TRIES && open > 0; i++) {
    put_steps(b, lines, sign, 0, step);
    RPO_TRY(evaluate(b, tree, step, s, control, err));
    open = 0;
    for (int64_t j = 0; j < n; j++) {
      go_on(&lines[j], sign[j] * s->slope[j], s->curvature[j]);
      open += !lines[j].done;
    }
  }
  put_steps(b, lines, sign, 1, step);
  return RPO_OK;
}

/* Softmax scores that all move alike change nothing: a component is given to each class by its own
 * Newton step first, and one step is searched along that. The table's columns are multiplied. */
static rpo_status aim_classes(rpo_boost *b, const rpo_tree *tree, double *aim, double *curvature,
                              float *step, const rpo_control *control, rpo_error *err) {
  memset(step, 0, (size_t)b->stride * sizeof *step);
  RPO_TRY(rpo_boost_sum(b, tree->rows, RPO_SUM_STEP, step, control, err));
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 0, 0, b->n_chunks, aim);
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 1, 0, b->n_chunks, curvature);
  for (int64_t j = 0; j < b->d; j++) {
    double const below = curvature[j] + b->l2;
    aim[j] = below > 0.0 ? (double)(float)(aim[j] / below) : 0.0;
    for (int64_t l = 0; l < tree->n_leaves; l++) b->table[l * b->stride + j] *= (float)aim[j];
  }
  return RPO_OK;
}

rpo_status rpo_boost_step(rpo_boost *b, const rpo_boost_tree *t, float *step,
                          const rpo_control *control, rpo_error *err) {
  int const means = t->tree.leaf_weight != NULL; /* else what the caller's learner says */
  if (b->loss == RPO_LOSS_SQUARED && b->relabel && b->entry_weight == NULL && means) {
    for (int64_t j = 0; j < b->d; j++) step[j] = 1.0f; /* means of leaves are the minimum */
    return RPO_OK;
  }
  if (b->loss == RPO_LOSS_ABSOLUTE) return rpo_boost_median_step(b, t, step, control, err);
  double *const room = rpo_new_zero(5 * b->d, 8);
  double *const aim = room == NULL ? NULL : room + 4 * b->d;
  int const aims = b->loss == RPO_LOSS_SOFTMAX && !b->relabel;
  line *const lines = rpo_new_zero(b->d, (int64_t)sizeof *lines);
  rpo_status status;
  if (room == NULL || lines == NULL) {
    status = rpo_fail_memory(err, "the step");
  } else {
    sums s = {room, room + b->d};
    status = aims ? aim_classes(b, &t->tree, aim, room, step, control, err) : RPO_OK;
    if (status == RPO_OK) {
      status = search_lines(b, &t->tree, lines, room + 2 * b->d, &s, room + 3 * b->d, step, control,
                            err);
    }
    for (int64_t j = 0; aims && j < b->d; j++) step[j] *= (float)aim[j];
  }
  rpo_delete(room);
  rpo_delete(lines);
  return status;
}

/* ---- Absolute loss: medians ---- */

static double y_at(const rpo_boost *b, int64_t row, int64_t j) {
  if (b->y_start == NULL) return (double)b->y_value[row * b->stride + j];
  int64_t low = b->y_start[row], end = b->y_start[row + 1];
  while (low < end) {
    int64_t const middle = low + (end - low) / 2;
    if (b->y_index[middle] < j) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  if (low == b->y_start[row + 1] || b->y_index[low] != j) return 0.0;
  return b->y_value == NULL ? 1.0 : (double)b->y_value[low];
}

static double weight_at(const rpo_boost *b, int64_t row, int64_t j) {
  double const w = b->weight[row];
  return b->entry_weight == NULL ? w : w * (double)b->entry_weight[row * b->stride + j];
}

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
      value[i] = y_at(b, at, j) - (double)b->score[at * b->stride + j];
      weight[i] = weight_at(b, at, j);
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
      value[n] = (y_at(b, at, j) - (double)b->score[at * b->stride + j]) / v;
      weight[n++] = fabs(v) * weight_at(b, at, j);
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

/* ---- Before the first round ---- */

/* Of outputs with one value only, scores stay finite: half a row is imagined on each side. */
static double log_odds(double ones, double zeros) {
  double const total = ones + zeros;
  if (!(ones > 0.0) || !(zeros > 0.0)) {
    ones += 0.5 * total / (total + 1.0);
    zeros += 0.5 * total / (total + 1.0);
  }
  return rpo_log(ones / zeros);
}

static void binary_constants(rpo_boost *b, double *ones, double *all) {
  double total = 0.0;
  memset(ones, 0, (size_t)b->d * sizeof *ones);
  memset(all, 0, (size_t)b->d * sizeof *all);
  for (int64_t i = 0; i < b->n; i++) {
    total += b->weight[i];
    for (int64_t e = b->y_start[i]; b->weight[i] > 0.0 && e < b->y_start[i + 1]; e++) {
      ones[b->y_index[e]] += weight_at(b, i, b->y_index[e]);
    }
    for (int64_t j = 0; b->entry_weight != NULL && j < b->d; j++) all[j] += weight_at(b, i, j);
  }
  for (int64_t j = 0; j < b->d; j++) {
    double const weight = b->entry_weight == NULL ? total : all[j];
    if (b->loss == RPO_LOSS_SOFTMAX) {
      b->start[j] = rpo_log((ones[j] > 0.0 ? ones[j] : 0.5 * total / (total + 1.0)) / total);
    } else {
      b->start[j] = weight > 0.0 ? log_odds(ones[j], weight - ones[j]) : 0.0;
    }
  }
}

/* Sums over y first: rows of sparse y need no zeros. */
static void mean_constants(rpo_boost *b, double *sum, double *all) {
  double total = 0.0;
  memset(sum, 0, (size_t)b->d * sizeof *sum);
  memset(all, 0, (size_t)b->d * sizeof *all);
  for (int64_t i = 0; i < b->n; i++) {
    if (!(b->weight[i] > 0.0)) continue;
    total += b->weight[i];
    if (b->y_start != NULL) {
      for (int64_t e = b->y_start[i]; e < b->y_start[i + 1]; e++) {
        double const y = b->y_value == NULL ? 1.0 : (double)b->y_value[e];
        sum[b->y_index[e]] += weight_at(b, i, b->y_index[e]) * y;
      }
    } else {
      for (int64_t j = 0; j < b->d; j++) {
        sum[j] += weight_at(b, i, j) * (double)b->y_value[i * b->stride + j];
      }
    }
    for (int64_t j = 0; b->entry_weight != NULL && j < b->d; j++) all[j] += weight_at(b, i, j);
  }
  for (int64_t j = 0; j < b->d; j++) {
    double const weight = b->entry_weight == NULL ? total : all[j];
    b->start[j] = weight > 0.0 ? sum[j] / weight : 0.0;
  }
}

/* The median of each output, and huber's delta: a quantile of the distances from it. The constant of
 * huber's loss is found from there, by steps on the parabola above it. */
typedef struct constants {
  rpo_boost *b;
  double quantile;
  double *room; /* by thread: 2 n */
} constants;

static rpo_status median_constant(void *context, int64_t j, int thread, rpo_job *job,
                                  rpo_error *err) {
  const constants *const k = context;
  rpo_boost *const b = k->b;
  double *const value = k->room + thread * 2 * b->n, *const weight = value + b->n;
  int64_t n = 0;
  (void)job;
  (void)err;
  for (int64_t i = 0; i < b->n; i++) {
    if (!(b->weight[i] > 0.0)) continue;
    value[n] = y_at(b, i, j);
    weight[n++] = weight_at(b, i, j);
  }
  double at = rpo_weighted_median(value, weight, n);
  b->start[j] = at;
  if (b->loss != RPO_LOSS_HUBER) return RPO_OK;
  for (int64_t i = 0; i < n; i++) value[i] = fabs(value[i] - at);
  double const delta = rpo_weighted_quantile(value, weight, n, k->quantile);
  b->delta[j] = delta > 0.0 ? (float)delta : 1.0f;
  for (int step = 0; step < 100; step++) {
    double g = 0.0, h = 0.0;
    for (int64_t i = 0; i < b->n; i++) {
      double const w = weight_at(b, i, j), r = y_at(b, i, j) - at, most = (double)b->delta[j];
      double const ratio = fabs(r) > most ? most / fabs(r) : 1.0;
      g += w * r * ratio;
      h += w * ratio;
    }
    if (!(h > 0.0) || fabs(g / h) <= 1e-12 * (fabs(at) + (double)b->delta[j])) break;
    at += g / h;
  }
  b->start[j] = at;
  return RPO_OK;
}

rpo_status rpo_boost_constants(rpo_boost *b, double quantile, const rpo_control *control,
                               rpo_error *err) {
  int const by_median = b->loss == RPO_LOSS_ABSOLUTE || b->loss == RPO_LOSS_HUBER;
  int64_t const n = b->n > b->d || by_median ? b->n : b->d;
  int const threads = by_median ? rpo_threads(control, b->d) : 1;
  double *const room = n > INT64_MAX / 16 / threads ? NULL : rpo_new(2 * n * threads, 8);
  rpo_status status = RPO_OK;
  if (room == NULL) return rpo_fail_memory(err, "boosting");
  if (by_median) {
    constants k = {b, quantile, room};
    status = rpo_run(control, b->d, median_constant, &k, err);
  } else if (rpo_loss_is_binary(b->loss)) {
    binary_constants(b, room, room + n);
  } else {
    mean_constants(b, room, room + n);
  }
  rpo_delete(room);
  return status;
}
