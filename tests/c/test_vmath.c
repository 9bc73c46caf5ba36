/* The library's own logarithm, exponential and normal numbers. */
#include <float.h>

#include "mini.h"
#include "rng.h"
#include "vmath.h"

/* Distance of `got` from the true value, in units in the last place of the true value. */
static double ulps(double got, long double truth) {
  int exponent;
  (void)frexp((double)truth, &exponent);
  return (double)(fabsl((long double)got - truth) / ldexpl(1.0L, exponent - DBL_MANT_DIG));
}

static double log_error(double x) { return ulps(rpo_log(x), logl((long double)x)); }

static void log_is_close(void) {
  if (LDBL_MANT_DIG <= DBL_MANT_DIG) return; /* nothing better to compare with */
  rpo_rng rng = rpo_rng_new(1, RPO_DRAW_TEST, 0, 0);
  double worst = 0.0, at = 0.0;
  for (int i = 0; i < 1000000; i++) {
    int const exponent = (int)rpo_below(&rng, 2044) - 1021;
    double const x = ldexp(1.0 + rpo_uniform(&rng), exponent);
    double const error = log_error(x);
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  for (int i = 0; i < 500000; i++) { /* near 1 the logarithm is small and bits get lost */
    double const x = 1.0 + (rpo_uniform(&rng) - 0.5) * ldexp(1.0, -(int)rpo_below(&rng, 50));
    double const error = x == 1.0 ? 0.0 : log_error(x);
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  mini_context("worst %g ulp at %.17g", worst, at);
  CHECK(worst <= 2.0);
}

static void log_at_corners(void) {
  CHECK(rpo_log(1.0) == 0.0);
  CHECK_NEAR(rpo_log(2.0), 0.69314718055994530942, 1e-16);
  CHECK(log_error(DBL_MIN) <= 2.0);
  CHECK(log_error(DBL_MAX) <= 2.0);
  CHECK(log_error(1.0 - DBL_EPSILON / 2) <= 2.0);
  CHECK(log_error(1.0 + DBL_EPSILON) <= 2.0);
  CHECK(log_error(sqrt(2.0)) <= 2.0);
  CHECK(log_error(nextafter(sqrt(2.0), 2.0)) <= 2.0);
}

static double exp_error(double x) { return ulps(rpo_exp(x), expl((long double)x)); }

static void exp_is_close(void) {
  if (LDBL_MANT_DIG <= DBL_MANT_DIG) return;
  rpo_rng rng = rpo_rng_new(3, RPO_DRAW_TEST, 0, 0);
  double worst = 0.0, at = 0.0;
  for (int i = 0; i < 1000000; i++) {
    double const u = 2.0 * rpo_uniform(&rng) - 1.0;
    double const x = i % 2 == 0 ? 708.0 * u : u * ldexp(1.0, -(int)rpo_below(&rng, 30));
    double const error = exp_error(x);
    if (error > worst) {
      worst = error;
      at = x;
    }
  }
  mini_context("worst %g ulp at %.17g", worst, at);
  CHECK(worst <= 2.0);
}

static void exp_at_corners(void) {
  CHECK(rpo_exp(0.0) == 1.0);
  CHECK(rpo_exp(-0.0) == 1.0);
  CHECK(exp_error(1.0) <= 2.0);
  CHECK(exp_error(709.0) <= 2.0);
  CHECK(exp_error(-708.0) <= 2.0);
  CHECK(rpo_exp(-1e300) == 0.0);
  CHECK(rpo_exp(-INFINITY) == 0.0);
  CHECK(isnan(rpo_exp((double)NAN)));
  CHECK(rpo_exp(1e300) == rpo_exp(709.0)); /* never infinite */
  for (double x = -20.0; x < 20.0; x += 0x1p-7) CHECK(rpo_exp(x) < rpo_exp(x + 0x1p-7));
}

/* Values from tables (Wichura 1988) and scipy.special.ndtri. */
static void quantile_known_values(void) {
  static const struct {
    double p, x;
  } cases[] = {{0.5, 0.0},
               {0.75, 0.67448975019608174320},
               {0.9, 1.2815515655446004},
               {0.975, 1.9599639845400542355},
               {0.999, 3.0902323061678135415},
               {0.001, -3.0902323061678135415},
               {1e-5, -4.2648907939228246285},
               {1e-10, -6.3613409024040562047},
               {1e-20, -9.2623400897984075736},
               {1e-100, -21.273453560965322}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mini_context("p = %g", cases[i].p);
    CHECK_NEAR(rpo_normal_quantile(cases[i].p), cases[i].x, 2e-15 * fabs(cases[i].x) + 1e-16);
  }
}

/* The error function of libm turns quantiles back into probabilities. */
static void quantile_inverts_the_distribution(void) {
  for (int i = 1; i < 4000; i++) {
    double const p = i / 4000.0;
    double const x = rpo_normal_quantile(p);
    double const back = 0.5 * erfc(-x / sqrt(2.0));
    mini_context("p = %g", p);
    CHECK_NEAR(back, p, 4e-16 * (1.0 + fabs(x)));
  }
  for (int k = 10; k < 300; k += 7) {
    double const p = pow(10.0, -k);
    double const x = rpo_normal_quantile(p);
    mini_context("p = 1e-%d", k);
    CHECK_NEAR(0.5 * erfc(-x / sqrt(2.0)) / p, 1.0, 1e-13 * x * x);
  }
}

static void quantile_is_symmetric_and_rises(void) {
  double last = -INFINITY;
  for (int i = 1; i < 4096; i++) {
    double const p = i / 4096.0; /* 1 - p is exact */
    double const x = rpo_normal_quantile(p);
    CHECK(x == -rpo_normal_quantile(1.0 - p));
    CHECK(x > last);
    last = x;
  }
}

static void normal_moments(void) {
  enum { DRAWS = 1000000 };
  rpo_rng rng = rpo_rng_new(2, RPO_DRAW_TEST, 0, 0);
  double power[4] = {0.0, 0.0, 0.0, 0.0};
  static const double mean[4] = {0.0, 1.0, 0.0, 3.0}, variance[4] = {1.0, 2.0, 15.0, 96.0};
  for (int i = 0; i < DRAWS; i++) {
    double const x = rpo_normal(rpo_next(&rng));
    double y = 1.0;
    for (int k = 0; k < 4; k++) power[k] += y *= x;
  }
  for (int k = 0; k < 4; k++) {
    mini_context("moment %d", k + 1);
    CHECK_NEAR(power[k] / DRAWS, mean[k], 5.0 * sqrt(variance[k] / DRAWS));
  }
}

static void normal_of_extreme_words(void) {
  CHECK(rpo_normal(0) == -rpo_normal(0xffffffffu));
  CHECK(rpo_normal(0) < -6.2 && rpo_normal(0) > -6.5);
  CHECK(rpo_normal(0x7fffffffu) == -rpo_normal(0x80000000u));
  CHECK(rpo_normal(0x7fffffffu) < 0.0);
}

int main(void) {
  RUN(log_is_close);
  RUN(log_at_corners);
  RUN(exp_is_close);
  RUN(exp_at_corners);
  RUN(quantile_known_values);
  RUN(quantile_inverts_the_distribution);
  RUN(quantile_is_symmetric_and_rises);
  RUN(normal_moments);
  RUN(normal_of_extreme_words);
  return mini_done("vmath");
}
