/* Losses of scores F against outputs y, a sum over outputs but for softmax: value, negative gradient,
 * curvature, and the constant that minimises each (boosting paper, Table 1).
 *
 *   squared      1/2 (y - F)^2
 *   absolute     |y - F|
 *   huber        1/2 r^2 where |r| <= delta, else delta (|r| - delta / 2); r = y - F
 *   logistic     log(1 + e^(-sF)),  s = 2y - 1: F is the log-odds, p = 1 / (1 + e^-F)
 *   exponential  e^(-sF/2): F is the log-odds again
 *   softmax      log sum_c e^(F_c) - F_y
 *
 * Of scores whose loss is of exponentials, what a run keeps are these: a step multiplies them, and
 * passes over all scores take no exponential. Of steps, in the same way, factors.
 *
 *   logistic     e^-F, the odds against the label
 *   exponential  e^(-F/2)
 *   softmax      p_c = e^(F_c) / sum e^F
 *   others       F
 *
 * Kept within 2^-120 and 2^120 (2^-60 and 2^60): scores of size 83.18 and more, and logarithms of p below
 * -83.18, count as that. On the right side of y gradients are zero to any precision there. */
#ifndef RPO_LOSS_H
#define RPO_LOSS_H
#include "status.h"

#define RPO_LINE 16 /* floats that are worked on together */

/* What is kept of some rows' scores, row after row, `stride` apart, and the same of y. `g` gets the negative
 * gradient, `h` (NULL: not wanted) the curvature: of huber that of the parabola which lies above it
 * and touches at F, of softmax the diagonal times d / (d - 1). */
typedef void (*rpo_loss_fn)(int32_t loss, int64_t rows, int64_t d, int64_t stride, const float *f,
                            const float *y, const float *delta, float *g, float *h);
/* Adds w times gradients and curvatures of one row, of whole lines, to sums g and h, and asks for
 * the lines of the row that comes `next` (or any that may be read) on the way. */
typedef void (*rpo_sum_loss_fn)(int32_t loss, int64_t d, int64_t stride, float w, const float *f,
                                const float *y, const float *delta, const float *next, float *g,
                                float *h);
/* One row of whole lines on its way through the first pass: f takes the step in, and its gradient is
 * projected on one axis, while parts of the row that comes `next` (or any that may be read) are asked for. */
typedef struct rpo_row_pass {
  float *f;          /* what is kept of the scores */
  const float *step; /* what is kept of a step; NULL: none, as always of softmax */
  const float *y, *delta, *axis;
  const float *next;
} rpo_row_pass;
typedef double (*rpo_project_loss_fn)(int32_t loss, int64_t d, int64_t stride,
                                      const rpo_row_pass *row);
/* The losses of one row's outputs, added up. */
typedef double (*rpo_value_fn)(int32_t loss, int64_t d, const float *f, const float *y,
                               const float *delta);

/* Newton steps of sums g and h of a leaf: rate g / (h + l2), or 0 where that gains less than min_gain or
 * there is no curvature. Returns how often the step is longer than `longest`, or the loss might rise
 * (boost_leaf.c: safe_step), by the bound e^t - t - 1 <= RPO_BEND t^2, t <= 1. */
#define RPO_BEND 0.71828182845904524
typedef struct rpo_newton {
  double rate, l2, min_gain, longest;
} rpo_newton;
typedef int64_t (*rpo_newton_fn)(int64_t d, const rpo_newton *how, const double *g, const double *h,
                                 float *value);

/* The loss of one output. */
double rpo_loss_entry(int32_t loss, double f, double y, double delta);
/* True when outputs are zeros and ones. */
static inline int rpo_loss_is_binary(int32_t loss) {
  return loss == RPO_LOSS_LOGISTIC || loss == RPO_LOSS_EXPONENTIAL || loss == RPO_LOSS_SOFTMAX;
}
/* Sorts values, their weights with them, and returns the smallest at which half the weight is
 * reached; the middle between two where it is exactly. */
double rpo_weighted_median(double *value, double *weight, int64_t n);
/* The weighted quantile q of values (sorted by this). */
double rpo_weighted_quantile(double *value, double *weight, int64_t n, double q);
#endif
