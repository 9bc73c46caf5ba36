#include "vmath.h"

#include <math.h>
#include <string.h>

/* log(x) = e log 2 + log(m), m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s), s = (m-1)/(m+1), by its
 * series: the first term left out, s^25 / 25, is below 2^-66 of the sum. */
double rpo_log(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int64_t exponent = (int64_t)(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  double const f = m - 1.0;
  double const s = f / (m + 1.0);
  double const z = s * s;
  double tail = 0.0;
  for (int k = 23; k >= 3; k -= 2) tail = tail * z + 2.0 / (double)k;
  tail *= z * s;
  /* 2 s = f - s f, which keeps the bits that the division lost. */
  double const e = (double)exponent;
  double const low = e * 1.9082149292705877e-10 + (tail - s * f);
  return e * 0.6931471803691238 + (f + low);
}

/* 2^n e^r, |r| <= log(2) / 2, by the series. */
double rpo_exp(double x) {
  if (x > 709.0) x = 709.0;
  if (x < -708.0) return 0.0;
  if (x != x) return x;
  double const n = floor(x * 1.4426950408889634 + 0.5);
  double const r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
  double sum = 1.0;
  for (int k = 14; k >= 1; k--) sum = 1.0 + sum * r / (double)k;
  return ldexp(sum, (int)n);
}

static double ratio(double r, const double numerator[8], const double denominator[8]) {
  double a = numerator[7], b = denominator[7];
  for (int i = 6; i >= 0; i--) {
    a = a * r + numerator[i];
    b = b * r + denominator[i];
  }
  return a / b;
}

double rpo_normal_quantile(double p) {
  /* clang-format off */
  static const double a[8] = {3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3,
                              1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                              3.3430575583588128105e4, 2.5090809287301226727e3};
  static const double b[8] = {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
                              5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
                              2.8729085735721942674e4, 5.2264952788528545610e3};
  static const double c[8] = {1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
                              3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double d[8] = {1.0, 2.05319162663775882187, 1.67638483018380384940,
                              6.89767334985100004550e-1, 1.48103976427480074590e-1,
                              1.51986665636164571966e-2, 5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
  static const double e[8] = {6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
                              2.96560571828504891230e-1, 2.65321895265761230930e-2,
                              1.24266094738807843860e-3, 2.71155556874348757815e-5,
                              2.01033439929228813265e-7};
  static const double f[8] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                              1.48753612908506148525e-2, 7.86869131145613259100e-4,
                              1.84631831751005468180e-5, 1.42151175831644588870e-7,
                              2.04426310338993978564e-15};
  /* clang-format on */
  double const q = p - 0.5;
  if (fabs(q) <= 0.425) return q * ratio(0.180625 - q * q, a, b);
  double const r = sqrt(-rpo_log(q < 0.0 ? p : 1.0 - p));
  double const x = r <= 5.0 ? ratio(r - 1.6, c, d) : ratio(r - 5.0, e, f);
  return q < 0.0 ? -x : x;
}

double rpo_normal(uint32_t word) { return rpo_normal_quantile(((double)word + 0.5) * 0x1p-32); }
