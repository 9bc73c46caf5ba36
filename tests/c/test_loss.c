/* Losses: values against long doubles, gradients and curvatures against differences of values, the
 * sums that passes use against loops, and medians against a search. */
#include "data.h"
#include "kernels.h"
#include "loss.h"

enum { LOSSES = RPO_LOSS_SOFTMAX + 1 };

/* ---- One output, in long double ---- */

static long double entry(int loss, long double f, long double y, long double delta) {
  long double const s = 2 * y - 1, r = fabsl(y - f);
  switch (loss) {
    case RPO_LOSS_SQUARED: return r * r / 2;
    case RPO_LOSS_ABSOLUTE: return r;
    case RPO_LOSS_HUBER: return r <= delta ? r * r / 2 : delta * (r - delta / 2);
    case RPO_LOSS_LOGISTIC: return -s * f > 0 ? -s * f + log1pl(expl(s * f)) : log1pl(expl(-s * f));
    default: return expl(-s * f / 2);
  }
}

static long double softmax(int64_t d, const double *f, const float *y) {
  long double most = f[0], sum = 0, own = 0;
  for (int64_t j = 1; j < d; j++) most = f[j] > (double)most ? f[j] : most;
  for (int64_t j = 0; j < d; j++) {
    sum += expl(f[j] - most);
    own += (long double)y[j] * (f[j] - most);
  }
  return logl(sum) - own;
}

static int is_binary(int loss) { return loss >= RPO_LOSS_LOGISTIC; }

static double random_y(dice *d, int loss) {
  return is_binary(loss) ? (double)dice_below(d, 2) : (double)(float)(4 * dice_real(d) - 2);
}

static void entries_are_right(void) {
  dice d = {1};
  for (int loss = 0; loss < RPO_LOSS_SOFTMAX; loss++) {
    for (int i = 0; i < 20000; i++) {
      double const scale = i % 3 == 0 ? 60.0 : 3.0;
      double const f = scale * (2 * dice_real(&d) - 1), y = random_y(&d, loss);
      double const truth = (double)entry(loss, f, y, 0.75L);
      mini_context("loss %d, f %g, y %g", loss, f, y);
      CHECK_NEAR(rpo_loss_entry(loss, f, y, 0.75), truth, 1e-14 * (1 + fabs(truth)));
    }
  }
}

/* ---- Rows of all widths and paddings ---- */

typedef struct rows {
  int64_t n, d, stride;
  float *f, *kept, *y, *g, *h, *delta;
} rows;

static rows rows_new(dice *d, int loss, int64_t n, int64_t width, int64_t stride, double scale) {
  rows r = {n, width, stride, NULL, NULL, NULL, NULL, NULL, NULL};
  r.f = mini_room(n * stride, 4);
  r.kept = mini_room(n * stride, 4);
  r.y = mini_room(n * stride, 4);
  r.g = mini_room(n * stride, 4);
  r.h = mini_room(n * stride, 4);
  r.delta = mini_room(stride, 4);
  for (int64_t j = 0; j < width; j++) r.delta[j] = (float)(0.2 + dice_real(d));
  for (int64_t i = 0; i < n; i++) {
    int64_t const own = dice_below(d, width);
    for (int64_t j = 0; j < width; j++) {
      r.f[i * stride + j] = (float)(scale * (2 * dice_real(d) - 1));
      r.y[i * stride + j] = loss == RPO_LOSS_SOFTMAX ? (float)(j == own) : (float)random_y(d, loss);
    }
    memcpy(r.kept + i * stride, r.f + i * stride, (size_t)stride * 4);
    rpo_kernels_pick()->keep_scores(loss, width, stride, r.kept + i * stride);
  }
  return r;
}

static void rows_free(rows *r) {
  free(r->f);
  free(r->kept);
  free(r->y);
  free(r->g);
  free(r->h);
  free(r->delta);
}

/* The loss of row i when output j's score changes by t. */
static double moved(const rows *r, int loss, int64_t i, int64_t j, double t) {
  const float *const f = r->f + i * r->stride, *const y = r->y + i * r->stride;
  if (loss != RPO_LOSS_SOFTMAX) {
    return (double)entry(loss, (long double)f[j] + t, y[j], r->delta[j]);
  }
  double *const at = mini_room(r->d, 8);
  for (int64_t k = 0; k < r->d; k++) at[k] = (double)f[k] + (k == j ? t : 0.0);
  double const value = (double)softmax(r->d, at, y);
  free(at);
  return value;
}

static void check_entry(const rows *r, int loss, int64_t i, int64_t j) {
  double const step = 1e-4, at = moved(r, loss, i, j, 0.0);
  double const up = moved(r, loss, i, j, step), down = moved(r, loss, i, j, -step);
  double const slope = (up - down) / (2 * step), bend = (up - 2 * at + down) / (step * step);
  double const g = (double)r->g[i * r->stride + j], h = (double)r->h[i * r->stride + j];
  double const y = (double)r->y[i * r->stride + j], f = (double)r->f[i * r->stride + j];
  double const delta = (double)r->delta[j], size = fabs(y - f);
  if (loss == RPO_LOSS_ABSOLUTE && size < 2 * step) return;
  CHECK_NEAR(g, -slope, 2e-4 * (1 + fabs(slope)));
  if (loss == RPO_LOSS_ABSOLUTE || loss == RPO_LOSS_SQUARED) {
    CHECK(h == 1.0);
  } else if (loss == RPO_LOSS_HUBER) { /* of the parabola above that touches here */
    CHECK_NEAR(h, size > delta ? delta / size : 1.0, 1e-6);
    for (double t = -6.0; t < 6.0; t += 0.37) {
      CHECK(moved(r, loss, i, j, t) <= at - g * t + 0.5 * h * t * t + 1e-5);
    }
  } else {
    double const wide = loss == RPO_LOSS_SOFTMAX ? (double)r->d / (double)(r->d - 1) : 1.0;
    CHECK_NEAR(h, wide * bend, 2e-3 * (1 + fabs(bend)));
  }
}

static void gradients_are_slopes(void) {
  static const int64_t widths[][2] = {{1, 1},   {2, 2},   {3, 4},    {5, 8},
                                      {16, 16}, {33, 48}, {100, 112}};
  dice d = {2};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
      if (loss == RPO_LOSS_SOFTMAX && widths[k][0] < 2) continue;
      rows r = rows_new(&d, loss, 7, widths[k][0], widths[k][1], 3.0);
      float *const alone = mini_room(r.n * r.stride, 4);
      const rpo_kernels *const kernels = rpo_kernels_pick();
      kernels->loss(loss, r.n, r.d, r.stride, r.kept, r.y, r.delta, r.g, r.h);
      kernels->loss(loss, r.n, r.d, r.stride, r.kept, r.y, r.delta, alone, NULL);
      for (int64_t i = 0; i < r.n; i++) {
        for (int64_t j = 0; j < r.d; j++) {
          mini_context("loss %d, %lld outputs, row %lld, output %lld", loss, (long long)r.d,
                       (long long)i, (long long)j);
          check_entry(&r, loss, i, j);
          CHECK(alone[i * r.stride + j] == r.g[i * r.stride + j]);
        }
      }
      free(alone);
      rows_free(&r);
    }
  }
}

/* Sums over a row, of any width: logarithms are taken of products there. */
static void values_of_rows(void) {
  static const int64_t widths[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 1000, 1023, 1024, 1025, 5000};
  dice d = {3};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
      for (int wide = 0; wide < 2; wide++) {
        rows r = rows_new(&d, loss, 1, widths[k], widths[k], wide ? 40.0 : 2.0);
        long double sum = 0.0L, size = 0.0L;
        double *const f = mini_room(r.d, 8);
        for (int64_t j = 0; j < r.d; j++) f[j] = (double)r.f[j];
        for (int64_t j = 0; j < r.d && loss != RPO_LOSS_SOFTMAX; j++) {
          long double const own = entry(loss, r.f[j], r.y[j], r.delta[j]);
          long double const factor = loss == RPO_LOSS_EXPONENTIAL ? own : 1.0L; /* of e's error */
          sum += own;
          size += factor * fabsl((long double)r.f[j]);
        }
        if (loss == RPO_LOSS_SOFTMAX) sum = softmax(r.d, f, r.y);
        mini_context("loss %d, %lld outputs", loss, (long long)r.d);
        double const value = rpo_kernels_pick()->loss_value(loss, r.d, r.kept, r.y, r.delta);
        CHECK_NEAR(value, (double)sum, 3e-7 * (double)(fabsl(sum) + size + 1.0L));
        free(f);
        rows_free(&r);
      }
    }
  }
}

/* However large the scores: numbers, of the right sign, and 1 - p not lost. */
static void far_scores(void) {
  static const float far[] = {20.0f, 60.0f, 88.0f, 100.0f, 200.0f, 1e4f, 1e30f};
  for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      for (int loss = RPO_LOSS_LOGISTIC; loss < LOSSES; loss++) {
        float f[2] = {(float)sign * far[k], 0.0f};
        float const y[2] = {1.0f, 0.0f};
        float const delta[2] = {1.0f, 1.0f};
        float g[2], h[2];
        mini_context("loss %d, f %g", loss, (double)f[0]);
        rpo_kernels_pick()->keep_scores(loss, 2, 2, f);
        rpo_kernels_pick()->loss(loss, 1, 2, 2, f, y, delta, g, h);
        double const value = rpo_kernels_pick()->loss_value(loss, 2, f, y, delta);
        CHECK(isfinite(value) && value >= 0.0);
        CHECK(isfinite(g[0]) && g[0] >= 0.0f && isfinite(h[0]) && h[0] >= 0.0f);
        if (loss != RPO_LOSS_EXPONENTIAL && sign < 0) CHECK_NEAR((double)g[0], 1.0, 1e-6);
        if (loss == RPO_LOSS_LOGISTIC && far[k] <= 80.0f) {
          double const truth = exp(-(double)far[k]);
          CHECK_NEAR((double)h[0], truth, 1e-5 * truth);
          if (sign > 0) CHECK((double)g[0] <= 1e-7);
        }
      }
    }
  }
}

/* ---- What is kept ---- */

/* Scores that took steps are those that were kept with the steps added, of softmax but for a constant. */
static void steps_add_up(void) {
  static const int64_t widths[][2] = {{1, 1}, {2, 2}, {5, 8}, {33, 48}};
  const rpo_kernels *const k = rpo_kernels_pick();
  dice d = {6};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      int64_t const width = widths[w][0], stride = widths[w][1];
      if (loss == RPO_LOSS_SOFTMAX && width < 2) continue;
      rows r = rows_new(&d, loss, 1, width, stride, 5.0);
      double truth[48], most = -INFINITY, sum = 0.0;
      float step[48] = {0};
      for (int64_t j = 0; j < width; j++) truth[j] = (double)r.f[j];
      for (int i = 0; i < 200; i++) {
        for (int64_t j = 0; j < width; j++) {
          step[j] = (float)(0.4 * dice_real(&d) - 0.2);
          truth[j] += (double)step[j];
        }
        k->keep_steps(loss, width, stride, step);
        k->take_steps(loss, width, stride, r.kept, step);
      }
      k->tell_scores(loss, width, r.kept);
      for (int64_t j = 0; j < width; j++) most = truth[j] > most ? truth[j] : most;
      for (int64_t j = 0; j < width; j++) sum += exp(truth[j] - most);
      mini_context("loss %d, %lld outputs", loss, (long long)width);
      for (int64_t j = 0; j < width; j++) {
        double const apart = loss == RPO_LOSS_SOFTMAX ? most + log(sum) : 0.0;
        CHECK_NEAR((double)r.kept[j], truth[j] - apart, 2e-5 * (1 + fabs(truth[j])));
      }
      rows_free(&r);
    }
  }
}

/* However far scores go they stay within what is kept, and come back. */
static void kept_are_numbers(void) {
  const rpo_kernels *const k = rpo_kernels_pick();
  for (int loss = RPO_LOSS_LOGISTIC; loss < LOSSES; loss++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      float const most = loss == RPO_LOSS_EXPONENTIAL ? 0x1p60f : 0x1p120f;
      float f[16] = {0};
      for (int i = 0; i < 60; i++) {
        float step[16] = {(float)sign * (i < 40 ? 30.0f : 1e30f)};
        k->keep_steps(loss, 16, 16, step);
        if (i == 0) k->keep_scores(loss, 16, 16, f);
        k->take_steps(loss, 16, 16, f, step);
        for (int j = 0; j < 16; j++) CHECK(f[j] >= 1.0f / most && f[j] <= most);
      }
      float back[16] = {(float)-sign * 50.0f};
      k->keep_steps(loss, 16, 16, back);
      for (int i = 0; i < 4; i++) k->take_steps(loss, 16, 16, f, back);
      k->tell_scores(loss, 16, f);
      mini_context("loss %d, sign %d", loss, sign);
      CHECK((f[0] - f[1]) * (float)sign < -10.0f);
    }
  }
}

/* One row after the other, as from gradients that are written down. */
static void sums_of_losses(void) {
  static const int64_t widths[] = {9, 16, 40, 983};
  dice d = {7};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
      int64_t const stride = (widths[w] + RPO_LINE - 1) / RPO_LINE * RPO_LINE;
      rows r = rows_new(&d, loss, 3, widths[w], stride, 3.0);
      const rpo_kernels *const k = rpo_kernels_pick();
      float *const g = mini_room(stride, 4), *const h = mini_room(stride, 4);
      float *const g_sum = mini_room(stride, 4), *const h_sum = mini_room(stride, 4);
      k->loss(loss, r.n, r.d, stride, r.kept, r.y, r.delta, r.g, r.h);
      for (int64_t i = 0; i < r.n; i++) {
        float const weight = (float)(1.5 * dice_real(&d));
        k->sum_loss(loss, r.d, stride, weight, r.kept + i * stride, r.y + i * stride, r.delta,
                    r.kept, g, h);
        k->sum_row(weight, r.g + i * stride, stride, g_sum);
        k->sum_row(weight, r.h + i * stride, stride, h_sum);
      }
      mini_context("loss %d, %lld outputs", loss, (long long)r.d);
      CHECK(memcmp(g, g_sum, (size_t)r.d * 4) == 0 && memcmp(h, h_sum, (size_t)r.d * 4) == 0);
      free(g);
      free(h);
      free(g_sum);
      free(h_sum);
      rows_free(&r);
    }
  }
}

/* As step, gradient and projection one after the other. */
static void projections_of_losses(void) {
  static const int64_t widths[] = {9, 16, 40, 983};
  const rpo_kernels *const k = rpo_kernels_pick();
  dice d = {8};
  for (int loss = 0; loss < LOSSES; loss++) {
    for (size_t w = 0; w < 2 * sizeof widths / sizeof *widths; w++) {
      int64_t const stride = (widths[w / 2] + RPO_LINE - 1) / RPO_LINE * RPO_LINE;
      int const moves = w % 2 && loss != RPO_LOSS_SOFTMAX;
      rows r = rows_new(&d, loss, 1, widths[w / 2], stride, 3.0);
      float *const axis = mini_room(stride, 4), *const step = mini_room(stride, 4);
      float *const f = mini_room(stride, 4);
      double truth;
      for (int64_t j = 0; j < r.d; j++) {
        axis[j] = (float)(2 * dice_real(&d) - 1);
        step[j] = (float)(2 * dice_real(&d) - 1);
      }
      memcpy(f, r.kept, (size_t)stride * 4);
      k->keep_steps(loss, r.d, stride, step);
      if (moves) k->take_steps(loss, r.d, stride, r.kept, step);
      k->loss(loss, 1, r.d, stride, r.kept, r.y, r.delta, r.g, NULL);
      k->project_row(axis, 1, stride, r.g, &truth);
      rpo_row_pass const pass = {f, moves ? step : NULL, r.y, r.delta, axis, f};
      mini_context("loss %d, %lld outputs", loss, (long long)r.d);
      CHECK(k->project_loss(loss, r.d, stride, &pass) == truth);
      CHECK(memcmp(f, r.kept, (size_t)stride * 4) == 0);
      free(axis);
      free(step);
      free(f);
      rows_free(&r);
    }
  }
}

/* ---- Rows of numbers ---- */

static void sums_of_rows(void) {
  static const int64_t sizes[] = {1, 2, 4, 8, 16, 48, 112};
  dice d = {4};
  const rpo_kernels *const k = rpo_kernels_pick();
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int64_t const n = sizes[s];
    float *const a = mini_room(n, 4), *const b = mini_room(n, 4), *const sum = mini_room(n, 4);
    float *const phi = mini_room(3 * n, 4);
    double z[3];
    for (int64_t j = 0; j < n; j++) {
      a[j] = (float)(dice_real(&d) - 0.5);
      b[j] = (float)(dice_real(&d) - 0.5);
      for (int c = 0; c < 3; c++) phi[c * n + j] = (float)(dice_real(&d) - 0.5);
    }
    mini_context("%lld numbers", (long long)n);
    k->take_steps(RPO_LOSS_SQUARED, n, n, sum, a);
    k->sum_row(2.5f, b, n, sum);
    for (int64_t j = 0; j < n; j++) CHECK(sum[j] == a[j] + 2.5f * b[j]);
    memset(sum, 0, (size_t)n * 4);
    k->sum_product(2.5f, a, b, n, sum);
    for (int64_t j = 0; j < n; j++) CHECK(sum[j] == 2.5f * a[j] * b[j]);
    k->project_row(phi, 3, n, a, z);
    for (int c = 0; c < 3; c++) {
      double truth = 0.0;
      for (int64_t j = 0; j < n; j++) truth += (double)phi[c * n + j] * (double)a[j];
      CHECK_NEAR(z[c], truth, 1e-5);
    }
    free(a);
    free(b);
    free(sum);
    free(phi);
  }
}

/* ---- Quantiles ---- */

/* The loss that the quantile q minimises. */
static double tilted(const double *v, const double *w, int64_t n, double q, double at) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) {
    sum += w[i] * (v[i] > at ? q * (v[i] - at) : (1 - q) * (at - v[i]));
  }
  return sum;
}

static void quantiles(void) {
  dice d = {5};
  double v[40], w[40], sorted[40], moved_weight[40];
  for (int round = 0; round < 4000; round++) {
    int64_t const n = 1 + dice_below(&d, 40);
    double const q = round % 2 == 0 ? 0.5 : 0.05 + 0.9 * dice_real(&d);
    double total = 0.0, best = INFINITY;
    for (int64_t i = 0; i < n; i++) {
      v[i] = round % 3 == 0 ? (double)dice_below(&d, 5) : dice_real(&d);
      w[i] = round % 5 < 2 ? (double)dice_below(&d, 3) : round % 5 < 4 ? 1.0 : dice_real(&d);
      total += w[i];
    }
    memcpy(sorted, v, sizeof v);
    memcpy(moved_weight, w, sizeof w);
    double const found = q == 0.5 ? rpo_weighted_median(sorted, moved_weight, n)
                                  : rpo_weighted_quantile(sorted, moved_weight, n, q);
    for (int64_t i = 0; i < n; i++) best = fmin(best, tilted(v, w, n, q, v[i]));
    mini_context("round %d, %lld values, q %g", round, (long long)n, q);
    if (total > 0.0) CHECK(tilted(v, w, n, q, found) <= best + 1e-12 * (1 + best));
    if (total == 0.0) CHECK(found == 0.0);
    for (int64_t i = 1; i < n; i++) CHECK(sorted[i - 1] <= sorted[i]);
  }
  double four[4] = {4.0, 1.0, 3.0, 2.0}, one[4] = {1.0, 1.0, 1.0, 1.0};
  CHECK(rpo_weighted_median(four, one, 4) == 2.5); /* the middle, as medians are */
}

int main(void) {
  RUN(entries_are_right);
  RUN(gradients_are_slopes);
  RUN(values_of_rows);
  RUN(far_scores);
  RUN(steps_add_up);
  RUN(kept_are_numbers);
  RUN(sums_of_losses);
  RUN(projections_of_losses);
  RUN(sums_of_rows);
  RUN(quantiles);
  return mini_done("loss");
}
