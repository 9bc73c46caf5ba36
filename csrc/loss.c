#include "loss.h"

#include <math.h>

#include "vmath.h"

double rpo_loss_entry(int32_t loss, double f, double y, double delta) {
  double const r = fabs(y - f);
  double const s = 2.0 * y - 1.0;
  switch (loss) {
    case RPO_LOSS_ABSOLUTE: return r;
    case RPO_LOSS_HUBER: return r <= delta ? 0.5 * r * r : delta * (r - 0.5 * delta);
    case RPO_LOSS_LOGISTIC: return rpo_log(1.0 + rpo_exp(-fabs(f))) + (f > 0.0 ? f : 0.0) - y * f;
    case RPO_LOSS_EXPONENTIAL: return rpo_exp(-0.5 * s * f);
    default: return 0.5 * r * r;
  }
}

/* Values ascending, their weights with them: heapsort, since there is no room for more. */
static void sift(double *value, double *weight, int64_t from, int64_t n) {
  double const v = value[from], w = weight[from];
  int64_t i = from;
  for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    if (child + 1 < n && value[child + 1] > value[child]) child++;
    if (!(value[child] > v)) break;
    value[i] = value[child];
    weight[i] = weight[child];
    i = child;
  }
  value[i] = v;
  weight[i] = w;
}

static void sort_pairs(double *value, double *weight, int64_t n) {
  for (int64_t i = n / 2 - 1; i >= 0; i--) sift(value, weight, i, n);
  for (int64_t end = n - 1; end > 0; end--) {
    double const v = value[0], w = weight[0];
    value[0] = value[end];
    weight[0] = weight[end];
    value[end] = v;
    weight[end] = w;
    sift(value, weight, 0, end);
  }
}

double rpo_weighted_quantile(double *value, double *weight, int64_t n, double q) {
  double total = 0.0, sum = 0.0;
  sort_pairs(value, weight, n);
  for (int64_t i = 0; i < n; i++) total += weight[i];
  if (!(total > 0.0)) return 0.0;
  double const goal = q * total;
  int64_t i = 0;
  while (i < n - 1 && sum + weight[i] < goal) sum += weight[i++];
  if (sum + weight[i] > goal) return value[i];
  int64_t next =
      i + 1; /* goal reached exactly: up to the next value of any weight all are as good */
  while (next < n && !(weight[next] > 0.0)) next++;
  return next < n ? 0.5 * (value[i] + value[next]) : value[i];
}

double rpo_weighted_median(double *value, double *weight, int64_t n) {
  return rpo_weighted_quantile(value, weight, n, 0.5);
}
