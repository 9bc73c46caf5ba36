/* Losses over rows of float32 scores, in plain loops that vectorise. */

/* e^x for |x| <= 87 (of others, of the nearer end), within 1.3e-7 (1 + |x|): no more than an error in
 * the last place of a float32 score x makes. 2^t = 2^n 2^r, |r| <= 1/2, by a polynomial; adding and
 * subtracting 1.5 * 2^23 rounds t to n and leaves it in the last bits, from where it goes to the
 * exponent. */
static inline float exp_of(float x) {
  x = x > -87.0f ? x : -87.0f;
  x = x < 87.0f ? x : 87.0f;
  float const t = x * 1.44269504f;
  float const n = t + 12582912.0f;
  float const r = t - (n - 12582912.0f);
  float p = 0.0013264727f;
  p = p * r + 0.009671513f;
  p = p * r + 0.055507336f;
  p = p * r + 0.24022242f;
  p = p * r + 0.693147f;
  p = p * r + 1.0f;
  uint32_t bits, shift;
  memcpy(&bits, &p, sizeof bits);
  memcpy(&shift, &n, sizeof shift);
  bits += shift << 23;
  memcpy(&p, &bits, sizeof p);
  return p;
}

/* With e = e^-F, p = 1 / (1 + e) and 1 - p = e p: neither is lost. */
static void logistic_rows(int64_t n, const float *restrict f, const float *restrict y,
                          float *restrict g, float *restrict h) {
  if (h == NULL) {
    for (int64_t i = 0; i < n; i++) g[i] = y[i] - 1.0f / (1.0f + exp_of(-f[i]));
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    float const e = exp_of(-f[i]), p = 1.0f / (1.0f + e);
    g[i] = y[i] - p;
    h[i] = p * (e * p);
  }
}

static void exponential_rows(int64_t n, const float *restrict f, const float *restrict y,
                             float *restrict g, float *restrict h) {
  for (int64_t i = 0; i < n; i++) {
    float const half = y[i] - 0.5f; /* s / 2 */
    float const x = -half * f[i];
    float const e = exp_of(x);
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

enum { LOSS_LANES = 16, LOSS_TERMS = 64, LOSS_BLOCK = LOSS_LANES * LOSS_TERMS };

/* Sixteen running sums and products. */
static void add_lanes(const float *x, int64_t n, float *lane) {
  for (int i = 0; i < LOSS_LANES; i++) lane[i] = 0.0f;
  int64_t j = 0;
  for (; j + LOSS_LANES <= n; j += LOSS_LANES) {
    for (int i = 0; i < LOSS_LANES; i++) lane[i] += x[j + i];
  }
  for (int i = 0; j < n; j++, i++) lane[i] += x[j];
}

static void multiply_lanes(const float *x, int64_t n, float *lane) {
  for (int i = 0; i < LOSS_LANES; i++) lane[i] = 1.0f;
  int64_t j = 0;
  for (; j + LOSS_LANES <= n; j += LOSS_LANES) {
    for (int i = 0; i < LOSS_LANES; i++) lane[i] *= x[j + i];
  }
  for (int i = 0; j < n; j++, i++) lane[i] *= x[j];
}

/* sum log(1 + e^-|F|) + max(F, 0) - yF; the logarithm is taken of products of up to 64 terms, each
 * at most 2, and of eight of these. */
static double logistic_value(int64_t d, const float *f, const float *y) {
  double sum = 0.0;
  for (int64_t from = 0; from < d; from += LOSS_BLOCK) {
    int64_t const n = d - from < LOSS_BLOCK ? d - from : LOSS_BLOCK;
    float curved[LOSS_BLOCK], linear[LOSS_BLOCK], lane[LOSS_LANES];
    for (int64_t j = 0; j < n; j++) {
      float const x = f[from + j];
      curved[j] = 1.0f + exp_of(-fabsf(x));
      linear[j] = (x > 0.0f ? x : 0.0f) - y[from + j] * x;
    }
    add_lanes(linear, n, lane);
    for (int i = 0; i < LOSS_LANES; i++) sum += (double)lane[i];
    multiply_lanes(curved, n, lane);
    for (int i = 0; i < LOSS_LANES; i += 8) {
      double all = 1.0;
      for (int k = i; k < i + 8; k++) all *= (double)lane[k];
      sum += rpo_log(all);
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
        sum += (double)exp_of(x);
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
