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

/* log x for x > 0 and normal, within 1e-7 (1 + |log x|): x = 2^k m, m from sqrt(1/2) to sqrt(2), and
 * log m = 2 atanh(s), s = (m - 1) / (m + 1), by its series. */
static inline float log_of(float x) {
  uint32_t const root = 0x3F3504F3u; /* sqrt(1/2) */
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits += 0x40000000u - root;
  float const k = (float)((int32_t)(bits >> 23) - 128);
  bits = (bits & 0x007FFFFFu) + root;
  memcpy(&x, &bits, sizeof x);
  float const s = (x - 1.0f) / (x + 1.0f), z = s * s;
  float const tail = z * (0.6666667f + z * (0.4f + z * (0.2857143f + z * 0.2222222f)));
  return k * 0.693359375f + (k * -2.12194440e-4f + (2.0f * s + s * tail));
}

static float largest_of(int64_t d, const float *f) {
  float most = f[0];
  for (int64_t j = 1; j < d; j++) most = f[j] > most ? f[j] : most;
  return most;
}

enum { LOSS_TERMS = 64, LOSS_BLOCK = RPO_LINE * LOSS_TERMS };

/* Sixteen running sums and products. */
static void add_lanes(const float *x, int64_t n, float *lane) {
  for (int i = 0; i < RPO_LINE; i++) lane[i] = 0.0f;
  int64_t j = 0;
  for (; j + RPO_LINE <= n; j += RPO_LINE) {
    for (int i = 0; i < RPO_LINE; i++) lane[i] += x[j + i];
  }
  for (int i = 0; j < n; j++, i++) lane[i] += x[j];
}

static void multiply_lanes(const float *x, int64_t n, float *lane) {
  for (int i = 0; i < RPO_LINE; i++) lane[i] = 1.0f;
  int64_t j = 0;
  for (; j + RPO_LINE <= n; j += RPO_LINE) {
    for (int i = 0; i < RPO_LINE; i++) lane[i] *= x[j + i];
  }
  for (int i = 0; j < n; j++, i++) lane[i] *= x[j];
}

/* ---- What is kept of scores (loss.h) ---- */

#define KEPT_LEAST 0x1p-120f
#define KEPT_MOST 0x1p120f
#define STEP_LEAST 0x1p-94f /* of softmax: times the largest p, at least 2^-31, still a number */

/* Of numbers that are not negative, which lie in the order of their bits: of whole numbers the larger
 * one is an instruction, of floats it is not, for what it does to NaN. */
static inline float within(float e, float least, float most) {
  uint32_t bits, low, high;
  memcpy(&bits, &e, sizeof bits);
  memcpy(&low, &least, sizeof low);
  memcpy(&high, &most, sizeof high);
  bits = bits > low ? bits : low;
  bits = bits < high ? bits : high;
  memcpy(&e, &bits, sizeof e);
  return e;
}

/* Of the exponential loss this is its gradient, too, and sums of them are to stay numbers. */
static inline float kept_within(int32_t loss, float e) {
  return loss == RPO_LOSS_EXPONENTIAL ? within(e, 0x1p-60f, 0x1p60f)
                                      : within(e, KEPT_LEAST, KEPT_MOST);
}

static inline int is_multiplied(int32_t loss) {
  return loss == RPO_LOSS_LOGISTIC || loss == RPO_LOSS_EXPONENTIAL;
}

/* Probabilities of a row: they add up to 1. */
static void normalise(int64_t d, float *p) {
  float lane[RPO_LINE];
  double sum = 0.0;
  add_lanes(p, d, lane);
  for (int i = 0; i < RPO_LINE; i++) sum += (double)lane[i];
  float const unit = (float)(1.0 / sum);
  for (int64_t j = 0; j < d; j++) p[j] = within(p[j] * unit, KEPT_LEAST, 1.0f);
}

/* Of softmax, e^v over the largest one's, from `least` on. */
static void keep(int32_t loss, int64_t d, int64_t n, float least, float *v) {
  if (is_multiplied(loss)) {
    float const slope = loss == RPO_LOSS_LOGISTIC ? -1.0f : -0.5f;
    for (int64_t j = 0; j < n; j++) v[j] = kept_within(loss, exp_of(slope * v[j]));
  } else if (loss == RPO_LOSS_SOFTMAX) {
    float const most = largest_of(d, v);
    for (int64_t j = 0; j < d; j++) v[j] = within(exp_of(v[j] - most), least, 1.0f);
  }
}

static void keep_steps(int32_t loss, int64_t d, int64_t n, float *v) {
  keep(loss, d, n, STEP_LEAST, v);
}

static void keep_scores(int32_t loss, int64_t d, int64_t n, float *f) {
  keep(loss, d, n, KEPT_LEAST, f);
  if (loss == RPO_LOSS_SOFTMAX) normalise(d, f);
}

static void tell_scores(int32_t loss, int64_t n, float *f) {
  if (is_multiplied(loss)) {
    float const slope = loss == RPO_LOSS_LOGISTIC ? -1.0f : -2.0f;
    for (int64_t j = 0; j < n; j++) f[j] = slope * log_of(f[j]);
  } else if (loss == RPO_LOSS_SOFTMAX) {
    for (int64_t j = 0; j < n; j++) f[j] = log_of(f[j]);
  }
}

/* Of any loss but softmax. */
ALWAYS_INLINE float taken(int32_t loss, float f, float v) {
  return is_multiplied(loss) ? kept_within(loss, f * v) : f + v;
}

static inline void take_part(int32_t loss, int64_t n, float *restrict f, const float *restrict v) {
  if (is_multiplied(loss)) {
    for (int64_t j = 0; j < n; j++) f[j] = kept_within(loss, f[j] * v[j]);
  } else {
    for (int64_t j = 0; j < n; j++) f[j] += v[j];
  }
}

static void take_steps(int32_t loss, int64_t d, int64_t n, float *restrict f,
                       const float *restrict v) {
  if (loss == RPO_LOSS_SOFTMAX) {
    for (int64_t j = 0; j < d; j++) f[j] *= v[j];
    normalise(d, f);
  } else {
    take_part(loss, n, f, v);
  }
}

/* ---- Negative gradients and curvatures ---- */

typedef struct slopes {
  float g, h;
} slopes;

/* Of what is kept of a score; about: huber's delta, d / (d - 1) of softmax. `loss` is a constant where
 * this is inlined. */
ALWAYS_INLINE slopes slopes_of(int32_t loss, float f, float y, float about) {
  slopes s = {y - f, 1.0f};
  if (loss == RPO_LOSS_LOGISTIC) { /* 1 - p = f p: neither is lost */
    float const p = 1.0f / (1.0f + f);
    s.g = y - p;
    s.h = p * (f * p);
  } else if (loss == RPO_LOSS_EXPONENTIAL) {
    float const e = y > 0.5f ? f : 1.0f / f;
    s.g = (y - 0.5f) * e;
    s.h = 0.25f * e;
  } else if (loss == RPO_LOSS_SOFTMAX) {
    s.h = about * f * (1.0f - f);
  } else if (loss == RPO_LOSS_ABSOLUTE) {
    s.g = (float)(y > f) - (float)(y < f);
  } else if (loss == RPO_LOSS_HUBER) {
    float const size = fabsf(s.g);
    s.h = size > about ? about / size : 1.0f;
    s.g *= s.h;
  }
  return s;
}

ALWAYS_INLINE void slopes_of_row(int32_t loss, int64_t n, const float *restrict f,
                                 const float *restrict y, const float *restrict delta, float wide,
                                 float *restrict g, float *restrict h) {
  if (h == NULL) {
    for (int64_t j = 0; j < n; j++) {
      g[j] = slopes_of(loss, f[j], y[j], loss == RPO_LOSS_HUBER ? delta[j] : wide).g;
    }
    return;
  }
  for (int64_t j = 0; j < n; j++) {
    slopes const s = slopes_of(loss, f[j], y[j], loss == RPO_LOSS_HUBER ? delta[j] : wide);
    g[j] = s.g;
    h[j] = s.h;
  }
}

/* Long rows are gone through part by part, asking for the same part of what comes next: by one long
 * row at a time memory would be waited for, and then stand idle. */
enum { ROW_PART = 8 * RPO_LINE };

static inline int64_t part_of(int64_t n, int64_t from) {
  return n - from < ROW_PART ? n - from : ROW_PART;
}

static inline void ask_for(const float *x, int64_t n) {
  for (int64_t j = 0; j < n; j += RPO_LINE) RPO_PREFETCH_MANY(x + j);
}

ALWAYS_INLINE void add_slopes_of_row(int32_t loss, int64_t n, float w, const float *restrict f,
                                     const float *restrict y, const float *restrict delta,
                                     float wide, const float *next, float *restrict g,
                                     float *restrict h) {
  for (int64_t i = 0; i < n; i += ROW_PART) {
    int64_t const end = i + part_of(n, i);
    ask_for(next + i, end - i);
    for (int64_t j = i; j < end; j++) {
      slopes const s = slopes_of(loss, f[j], y[j], loss == RPO_LOSS_HUBER ? delta[j] : wide);
      g[j] += w * s.g;
      h[j] += w * s.h;
    }
  }
}

/* Gradients of a part of a row that takes a step in on the way. */
ALWAYS_INLINE void move_part(int32_t loss, int64_t n, float *restrict f, const float *restrict v,
                             const float *restrict y, const float *restrict delta, float wide,
                             float *restrict g) {
  for (int64_t j = 0; j < n; j++) {
    f[j] = taken(loss, f[j], v[j]);
    g[j] = slopes_of(loss, f[j], y[j], loss == RPO_LOSS_HUBER ? delta[j] : wide).g;
  }
}

ALWAYS_INLINE double project_slopes_of_row(int32_t loss, int64_t n, const rpo_row_pass *r,
                                           float wide) {
  float g[ROW_PART], lane[RPO_LINE];
  double sum = 0.0;
  for (int k = 0; k < RPO_LINE; k++) lane[k] = 0.0f;
  for (int64_t i = 0; i < n; i += ROW_PART) {
    int64_t const part = part_of(n, i);
    const float *const axis = r->axis + i, *const delta = r->delta == NULL ? NULL : r->delta + i;
    ask_for(r->next + i, part);
    if (r->step != NULL) {
      move_part(loss, part, r->f + i, r->step + i, r->y + i, delta, wide, g);
    } else {
      slopes_of_row(loss, part, r->f + i, r->y + i, delta, wide, g, NULL);
    }
    for (int64_t j = 0; j < part; j += RPO_LINE) {
      for (int k = 0; k < RPO_LINE; k++) lane[k] += axis[j + k] * g[j + k];
    }
  }
  for (int k = 0; k < RPO_LINE; k++) sum += (double)lane[k];
  return sum;
}

static float wide_of(int64_t d) { return d > 1 ? (float)d / (float)(d - 1) : 1.0f; }

#define EACH_LOSS(loss, DO)                                     \
  switch (loss) {                                               \
    case RPO_LOSS_LOGISTIC: DO(RPO_LOSS_LOGISTIC); break;       \
    case RPO_LOSS_EXPONENTIAL: DO(RPO_LOSS_EXPONENTIAL); break; \
    case RPO_LOSS_SOFTMAX: DO(RPO_LOSS_SOFTMAX); break;         \
    case RPO_LOSS_ABSOLUTE: DO(RPO_LOSS_ABSOLUTE); break;       \
    case RPO_LOSS_HUBER: DO(RPO_LOSS_HUBER); break;             \
    default: DO(RPO_LOSS_SQUARED);                              \
  }

/* Rows lie side by side, and are one but for delta. */
static void loss_rows(int32_t loss, int64_t rows, int64_t d, int64_t stride, const float *f,
                      const float *y, const float *delta, float *g, float *h) {
  int64_t const n = loss == RPO_LOSS_HUBER ? stride : rows * stride;
  float const wide = wide_of(d);
  for (int64_t i = 0; i < rows * stride; i += n) {
#define SLOPES(name) \
  slopes_of_row(name, n, f + i, y + i, delta, wide, g + i, h == NULL ? NULL : h + i)
    EACH_LOSS(loss, SLOPES)
#undef SLOPES
  }
}

static void sum_loss(int32_t loss, int64_t d, int64_t stride, float w, const float *f,
                     const float *y, const float *delta, const float *next, float *g, float *h) {
  float const wide = wide_of(d);
#define ADD_SLOPES(name) add_slopes_of_row(name, stride, w, f, y, delta, wide, next, g, h)
  EACH_LOSS(loss, ADD_SLOPES)
#undef ADD_SLOPES
}

static double project_loss(int32_t loss, int64_t d, int64_t stride, const rpo_row_pass *row) {
  float const wide = wide_of(d);
#define PROJECT_SLOPES(name) return project_slopes_of_row(name, stride, row, wide)
  EACH_LOSS(loss, PROJECT_SLOPES)
#undef PROJECT_SLOPES
}

/* ---- Values ---- */

/* The logarithm of a product of up to LOSS_BLOCK numbers >= 1: exponents are added, and mantissas
 * multiplied, 64 and then eight of these. */
static double log_of_product(const float *x, int64_t n) {
  float mantissa[LOSS_BLOCK], lane[RPO_LINE];
  int64_t exponents = 0;
  double sum = 0.0;
  for (int64_t j = 0; j < n; j++) {
    uint32_t bits;
    memcpy(&bits, x + j, sizeof bits);
    exponents += (int64_t)(bits >> 23) - 127;
    bits = (bits & 0x007FFFFFu) | 0x3F800000u;
    memcpy(mantissa + j, &bits, sizeof bits);
  }
  multiply_lanes(mantissa, n, lane);
  for (int i = 0; i < RPO_LINE; i += 8) {
    double all = 1.0;
    for (int k = i; k < i + 8; k++) all *= (double)lane[k];
    sum += rpo_log(all);
  }
  return sum + (double)exponents * 0.6931471805599453;
}

/* sum log(1 + e^-sF). */
static double logistic_value(int64_t d, const float *e, const float *y) {
  double sum = 0.0;
  for (int64_t from = 0; from < d; from += LOSS_BLOCK) {
    int64_t const n = d - from < LOSS_BLOCK ? d - from : LOSS_BLOCK;
    float term[LOSS_BLOCK];
    for (int64_t j = 0; j < n; j++) {
      float const own = e[from + j];
      term[j] = 1.0f + (y[from + j] > 0.5f ? own : 1.0f / own);
    }
    sum += log_of_product(term, n);
  }
  return sum;
}

/* -log p of the own class, by what the others have: p near 1 is known to single precision only. */
static double softmax_value(int64_t d, const float *p, const float *y) {
  float lane[2][RPO_LINE] = {{0.0f}, {0.0f}};
  double own = 0.0, others = 0.0;
  int64_t j = 0;
  for (; j + RPO_LINE <= d; j += RPO_LINE) {
    for (int i = 0; i < RPO_LINE; i++) {
      lane[0][i] += y[j + i] * p[j + i];
      lane[1][i] += (1.0f - y[j + i]) * p[j + i];
    }
  }
  for (int i = 0; j < d; j++, i++) {
    lane[0][i] += y[j] * p[j];
    lane[1][i] += (1.0f - y[j]) * p[j];
  }
  for (int i = 0; i < RPO_LINE; i++) {
    own += (double)lane[0][i];
    others += (double)lane[1][i];
  }
  return rpo_log(1.0 + others / own);
}

static double loss_value(int32_t loss, int64_t d, const float *f, const float *y,
                         const float *delta) {
  double sum = 0.0;
  switch (loss) {
    case RPO_LOSS_LOGISTIC: return logistic_value(d, f, y);
    case RPO_LOSS_SOFTMAX: return softmax_value(d, f, y);
    case RPO_LOSS_EXPONENTIAL:
      for (int64_t j = 0; j < d; j++) {
        sum += (double)(y[j] > 0.5f ? f[j] : 1.0f / f[j]);
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

/* ---- Leaves ---- */

static int64_t newton_values(int64_t d, const rpo_newton *how, const double *restrict g,
                             const double *restrict h, float *restrict value) {
  double const rate = how->rate, l2 = how->l2, least = how->min_gain, longest = how->longest;
  int64_t unsafe = 0; /* as wide as what is compared: the loop vectorises */
  for (int64_t j = 0; j < d; j++) {
    double const below = h[j] + l2, tried = below > 0.0 ? rate * g[j] / below : 0.0;
    double const step = 0.5 * g[j] * g[j] / below >= least ? tried : 0.0;
    unsafe += fabs(step) <= longest ? 0 : 1;
    unsafe += h[j] * step * step * RPO_BEND <= g[j] * step ? 0 : 1;
    value[j] = (float)step;
  }
  return unsafe;
}

/* ---- Rows ---- */

/* z = Phi g: sixteen running sums, added in a fixed order. */
static void project_row(const float *phi, int64_t m, int64_t stride, const float *g, double *z) {
  for (int64_t c = 0; c < m; c++) {
    const float *const axis = phi + c * stride;
    float lane[RPO_LINE];
    double sum = 0.0;
    for (int i = 0; i < RPO_LINE; i++) lane[i] = 0.0f;
    int64_t j = 0;
    for (; j + RPO_LINE <= stride; j += RPO_LINE) {
      for (int i = 0; i < RPO_LINE; i++) lane[i] += axis[j + i] * g[j + i];
    }
    for (int i = 0; j < stride; j++, i++) lane[i] += axis[j] * g[j];
    for (int i = 0; i < RPO_LINE; i++) sum += (double)lane[i];
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
