/* Losses of scores F against outputs y, a sum over outputs but for softmax: value, negative gradient,
 * curvature, and the constant that minimises each (boosting paper, Table 1).
 *
 *   squared      1/2 (y - F)^2
 *   absolute     |y - F|
 *   huber        1/2 r^2 where |r| <= delta, else delta (|r| - delta / 2); r = y - F
 *   logistic     log(1 + e^(-sF)),  s = 2y - 1: F is the log-odds, p = 1 / (1 + e^-F)
 *   exponential  e^(-sF/2): F is the log-odds again
 *   softmax      log sum_c e^(F_c) - F_y */
#ifndef RPO_LOSS_H
#define RPO_LOSS_H
#include "status.h"

/* Scores of some rows, row after row, `stride` apart, and the same of y. `g` gets the negative
 * gradient, `h` (NULL: not wanted) the curvature: of huber that of the parabola which lies above it
 * and touches at F, of softmax the diagonal times d / (d - 1). */
typedef void (*rpo_loss_fn)(int32_t loss, int64_t rows, int64_t d, int64_t stride, const float *f,
                            const float *y, const float *delta, float *g, float *h);
/* The losses of one row's outputs, added up. */
typedef double (*rpo_value_fn)(int32_t loss, int64_t d, const float *f, const float *y,
                               const float *delta);

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
