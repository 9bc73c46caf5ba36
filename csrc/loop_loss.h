/* Losses over rows of float32 scores, in plain loops that vectorise. */

/* e^x for x <= 88, within 1e-7 (0 below -87): 2^n e^r, |r| <= log(2) / 2, by a polynomial. Adding and
 * subtracting 1.5 * 2^23 rounds to a whole number. */
static inline float exp_of(float x) {
  x = x > -90.0f ? x : -90.0f; /* that the exponent below is a number */
  float const n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  float const r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 0.001381459878757596f;
  p = p * r + 0.008368716575205326f;
  p = p * r + 0.04166838899254799f;
  p = p * r + 0.1666652113199234f;
  p = p * r + 0.4999999403953552f;
  p = (p * r) * r + r + 1.0f;
  int32_t const exponent = (int32_t)n + 127;
  int32_t const bits = (exponent > 0 ? exponent : 0) * (1 << 23);
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

static inline float clip_of(float x, float most) { return x < most ? x : most; }

/* With e = e^-|F| <= 1 nothing overflows, and neither p nor 1 - p is lost. */
static inline float sigmoid_of(float f, float *other) {
  float const e = exp_of(-fabsf(f));
  float const q = 1.0f / (1.0f + e);
  float const s = e * q;
  *other = f < 0.0f ? q : s;
  return f < 0.0f ? s : q;
}

static void logistic_rows(int64_t n, const float *restrict f, const float *restrict y,
                          float *restrict g, float *restrict h) {
  if (h == NULL) {
    for (int64_t i = 0; i < n; i++) {
      float other;
      g[i] = y[i] - sigmoid_of(f[i], &other);
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    float other;
    float const p = sigmoid_of(f[i], &other);
    g[i] = y[i] - p;
    h[i] = p * other;
  }
}

static void exponential_rows(int64_t n, const float *restrict f, const float *restrict y,
                             float *restrict g, float *restrict h) {
  for (int64_t i = 0; i < n; i++) {
    float const half = y[i] - 0.5f; /* s / 2 */
    float const x = -half * f[i];
    float const e = exp_of(clip_of(x, 80.0f));
    g[i] = half * e;
    if (h != NULL) h[i] = 0.25f * e;
  }
}

static void huber_row(int64_t n, const float *restrict f, const float *restrict y,
                      const float *restrict delta, float *restrict g, float *restrict h) {
  for (int64_t j = 0; j < n; j++) {
    float const r = y[j] - f[j], size = fabsf(r), most = delta[j];
    float const ratio = size > most ? most / size : 1.0f;
    g[j] = r * ratio;
    if (h != NULL) h[j] = ratio;
  }
}

static float largest_of(int64_t d, const float *f) {
  float most = f[0];
  for (int64_t j = 1; j < d; j++) most = f[j] > most ? f[j] : most;
  return most;
}

static void softmax_row(int64_t d, const float *restrict f, const float *restrict y,
                        float *restrict g, float *restrict h) {
  float const most = largest_of(d, f);
  double sum = 0.0;
  for (int64_t j = 0; j < d; j++) g[j] = exp_of(f[j] - most);
  for (int64_t j = 0; j < d; j++) sum += (double)g[j];
  float const unit = (float)(1.0 / sum);
  float const wide = d > 1 ? (float)d / (float)(d - 1) : 1.0f;
  for (int64_t j = 0; j < d; j++) {
    float const p = g[j] * unit;
    g[j] = y[j] - p;
    if (h != NULL) h[j] = wide * p * (1.0f - p);
  }
}

static void loss_rows(int32_t loss, int64_t rows, int64_t d, int64_t stride, const float *f,
                      const float *y, const float *delta, float *g, float *h) {
  int64_t const n = rows * stride;
  switch (loss) {
    case RPO_LOSS_LOGISTIC: logistic_rows(n, f, y, g, h); break;
    case RPO_LOSS_EXPONENTIAL: exponential_rows(n, f, y, g, h); break;
    case RPO_LOSS_HUBER:
      for (int64_t i = 0; i < n; i += stride) {
        huber_row(d, f + i, y + i, delta, g + i, h == NULL ? NULL : h + i);
      }
      break;
    case RPO_LOSS_SOFTMAX:
      for (int64_t i = 0; i < n; i += stride) {
        softmax_row(d, f + i, y + i, g + i, h == NULL ? NULL : h + i);
      }
      break;
    case RPO_LOSS_ABSOLUTE:
      for (int64_t i = 0; i < n; i++) g[i] = (float)(y[i] > f[i]) - (float)(y[i] < f[i]);
      for (int64_t i = 0; i < n && h != NULL; i++) h[i] = 1.0f;
      break;
    default:
      for (int64_t i = 0; i < n; i++) g[i] = y[i] - f[i];
      for (int64_t i = 0; i < n && h != NULL; i++) h[i] = 1.0f;
  }
}

enum { LOSS_LANES = 16, LOSS_TERMS = 64 };

/* sum log(1 + e^-|F|) + max(F, 0) - yF; the logarithm is taken of products of up to 64 terms. */
static double logistic_value(int64_t d, const float *f, const float *y) {
  double sum = 0.0;
  for (int64_t from = 0; from < d; from += LOSS_LANES * LOSS_TERMS) {
    int64_t const to = from + LOSS_LANES * LOSS_TERMS < d ? from + LOSS_LANES * LOSS_TERMS : d;
    float product[LOSS_LANES], linear[LOSS_LANES];
    for (int i = 0; i < LOSS_LANES; i++) {
      product[i] = 1.0f;
      linear[i] = 0.0f;
    }
    int64_t j = from;
    for (; j + LOSS_LANES <= to; j += LOSS_LANES) {
      for (int i = 0; i < LOSS_LANES; i++) {
        float const x = f[j + i];
        product[i] *= 1.0f + exp_of(-fabsf(x));
        linear[i] += (x > 0.0f ? x : 0.0f) - y[j + i] * x;
      }
    }
    for (int i = 0; j < to; j++, i++) {
      float const x = f[j];
      product[i] *= 1.0f + exp_of(-fabsf(x));
      linear[i] += (x > 0.0f ? x : 0.0f) - y[j] * x;
    }
    double all = 1.0;
    for (int i = 0; i < LOSS_LANES; i++) {
      sum += (double)linear[i];
      all *= (double)product[i]; /* below 2^(16 * 64) */
      if (i % 8 == 7) {
        sum += rpo_log(all);
        all = 1.0;
      }
    }
  }
  return sum;
}

static double softmax_value(int64_t d, const float *f, const float *y) {
  float const most = largest_of(d, f);
  double sum = 0.0, own = 0.0;
  for (int64_t j = 0; j < d; j++) {
    sum += (double)exp_of(f[j] - most);
    own += (double)(y[j] * (f[j] - most));
  }
  return rpo_log(sum) - own;
}

static double loss_value(int32_t loss, int64_t d, const float *f, const float *y,
                         const float *delta) {
  double sum = 0.0;
  switch (loss) {
    case RPO_LOSS_LOGISTIC: return logistic_value(d, f, y);
    case RPO_LOSS_SOFTMAX: return softmax_value(d, f, y);
    case RPO_LOSS_EXPONENTIAL:
      for (int64_t j = 0; j < d; j++) {
        float const x = (0.5f - y[j]) * f[j];
        sum += (double)exp_of(clip_of(x, 80.0f));
      }
      return sum;
    case RPO_LOSS_ABSOLUTE:
      for (int64_t j = 0; j < d; j++) sum += fabs((double)y[j] - (double)f[j]);
      return sum;
    case RPO_LOSS_HUBER:
      for (int64_t j = 0; j < d; j++) {
        double const r = fabs((double)y[j] - (double)f[j]), most = (double)delta[j];
        sum += r <= most ? 0.5 * r * r : most * (r - 0.5 * most);
      }
      return sum;
    default:
      for (int64_t j = 0; j < d; j++) {
        double const r = (double)y[j] - (double)f[j];
        sum += 0.5 * r * r;
      }
      return sum;
  }
}

/* ---- Rows ---- */

static void add_row(float *restrict f, const float *restrict v, int64_t n) {
  for (int64_t j = 0; j < n; j++) f[j] += v[j];
}

/* z = Phi g: sixteen running sums, added in a fixed order. */
static void project_row(const float *phi, int64_t m, int64_t stride, const float *g, double *z) {
  for (int64_t c = 0; c < m; c++) {
    const float *const axis = phi + c * stride;
    float lane[LOSS_LANES];
    double sum = 0.0;
    for (int i = 0; i < LOSS_LANES; i++) lane[i] = 0.0f;
    int64_t j = 0;
    for (; j + LOSS_LANES <= stride; j += LOSS_LANES) {
      for (int i = 0; i < LOSS_LANES; i++) lane[i] += axis[j + i] * g[j + i];
    }
    for (int i = 0; j < stride; j++, i++) lane[i] += axis[j] * g[j];
    for (int i = 0; i < LOSS_LANES; i++) sum += (double)lane[i];
    z[c] = sum;
  }
}

static void sum_row(float w, const float *restrict g, int64_t n, float *restrict sum) {
  for (int64_t j = 0; j < n; j++) sum[j] += w * g[j];
}

static void sum_product(float w, const float *restrict g, const float *restrict v, int64_t n,
                        float *restrict sum) {
  for (int64_t j = 0; j < n; j++) sum[j] += w * g[j] * v[j];
}
