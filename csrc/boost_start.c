/* Before the first round: the constant scores of least loss. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "loss.h"
#include "mem.h"
#include "vmath.h"

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
      ones[b->y_index[e]] += rpo_boost_weight(b, i, b->y_index[e]);
    }
    for (int64_t j = 0; b->entry_weight != NULL && j < b->d; j++)
      all[j] += rpo_boost_weight(b, i, j);
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
        sum[b->y_index[e]] += rpo_boost_weight(b, i, b->y_index[e]) * y;
      }
    } else {
      for (int64_t j = 0; j < b->d; j++) {
        sum[j] += rpo_boost_weight(b, i, j) * (double)b->y_value[i * b->stride + j];
      }
    }
    for (int64_t j = 0; b->entry_weight != NULL && j < b->d; j++)
      all[j] += rpo_boost_weight(b, i, j);
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
    value[n] = rpo_boost_y(b, i, j);
    weight[n++] = rpo_boost_weight(b, i, j);
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
      double const w = rpo_boost_weight(b, i, j), r = rpo_boost_y(b, i, j) - at,
                   most = (double)b->delta[j];
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
