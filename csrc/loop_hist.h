/* Histograms: a node's sums by code, and the best cut of a feature. */

/* What rows add to a dense feature's slots. */
#define ADD_CODES(type, width)                                                 \
  do {                                                                         \
    const type *const code = (const type *)h->f->codes + feature * h->f->rows; \
    for (int64_t i = 0; i < n; i++) {                                          \
      const double *const from = h->stat + (int64_t)rows[i] * (width);         \
      double *const to = sums + (int64_t)code[rows[i]] * (width);              \
      for (int64_t c = 0; c < (width); c++) to[c] += from[c];                  \
    }                                                                          \
  } while (0)

#define ADD_CODES_OF(type)        \
  do {                            \
    if (h->stride == 2) {         \
      ADD_CODES(type, 2);         \
    } else if (h->stride == 4) {  \
      ADD_CODES(type, 4);         \
    } else if (h->stride == 8) {  \
      ADD_CODES(type, 8);         \
    } else {                      \
      ADD_CODES(type, h->stride); \
    }                             \
  } while (0)

static void hist_feature(const rpo_hist *h, int64_t feature, const int32_t *rows, int64_t n,
                         double *sums) {
  if (h->f->width == 1) {
    ADD_CODES_OF(uint8_t);
  } else if (h->f->width == 2) {
    ADD_CODES_OF(uint16_t);
  } else {
    ADD_CODES_OF(int32_t);
  }
}

/* What rows add to the listed slots of all sparse features. */
ALWAYS_INLINE void hist_rows_of(const rpo_hist *h, const int32_t *rows, int64_t n, double *sums,
                                int64_t stride) {
  const rpo_features *const f = h->f;
  for (int64_t i = 0; i < n; i++) {
    const double *const from = h->stat + (int64_t)rows[i] * stride;
    int64_t const end = f->row_start[rows[i] + 1];
    for (int64_t e = f->row_start[rows[i]]; e < end; e++) {
      int64_t const col = f->row_cols[e];
      int64_t const slot =
          f->binary ? col : h->offset[col] + rpo_code_at(f->row_codes, f->width, e);
      double *const to = sums + slot * stride;
      for (int64_t c = 0; c < stride; c++) to[c] += from[c];
    }
  }
}

static void hist_rows(const rpo_hist *h, const int32_t *rows, int64_t n, double *sums) {
  switch (h->stride) {
    case 2: hist_rows_of(h, rows, n, sums, 2); break;
    case 4: hist_rows_of(h, rows, n, sums, 4); break;
    case 8: hist_rows_of(h, rows, n, sums, 8); break;
    default: hist_rows_of(h, rows, n, sums, h->stride); break;
  }
}

/* Few sums stay in registers. */
ALWAYS_INLINE void hist_total_of(const rpo_hist *h, const int32_t *rows, int64_t n,
                                 double *restrict total, int64_t stride) {
  for (int64_t c = 0; c < stride; c++) total[c] = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double *restrict const from = h->stat + (int64_t)rows[i] * stride;
    for (int64_t c = 0; c < stride; c++) total[c] += from[c];
  }
}

static void hist_total(const rpo_hist *h, const int32_t *rows, int64_t n, double *total) {
  switch (h->stride) {
    case 2: hist_total_of(h, rows, n, total, 2); break;
    case 4: hist_total_of(h, rows, n, total, 4); break;
    case 8: hist_total_of(h, rows, n, total, 8); break;
    default: hist_total_of(h, rows, n, total, h->stride); break;
  }
}

/* |S|^2 / w + |T - S|^2 / (W - w), eq. (1) and (2) without the terms that all splits share. */
ALWAYS_INLINE double hist_score(const double *left, const double *total, int64_t m) {
  double const w = left[0], other = total[0] - left[0];
  double a = 0.0, b = 0.0;
  for (int64_t c = 1; c <= m; c++) {
    double const rest = total[c] - left[c];
    a += left[c] * left[c];
    b += rest * rest;
  }
  return (a * other + b * w) / (w * other);
}

static inline int hist_allowed(const rpo_hist *h, const double *left, const double *total) {
  int64_t const rows = h->counted ? h->m + 1 : 0;
  double const least = (double)h->o.min_leaf, lightest = h->min_leaf_weight;
  return left[rows] >= least && total[rows] - left[rows] >= least && left[0] > 0.0 &&
         total[0] > left[0] && left[0] >= lightest && total[0] - left[0] >= lightest;
}

/* Codes from low to high; a cut lies before each code that has rows. `left` starts with the missing
 * rows or with nothing. */
ALWAYS_INLINE void hist_scan_of(const rpo_hist *h, const double *sums, int32_t bins,
                                const double *total, double *left, int8_t missing_left, int64_t m,
                                int64_t stride, rpo_cut *cut) {
  int32_t last = -1;
  int64_t const rows = h->counted ? h->m + 1 : 0;
  for (int32_t b = 0; b < bins; b++) {
    const double *const here = sums + b * stride;
    if (here[rows] == 0.0) continue;
    if (last >= 0 && hist_allowed(h, left, total)) {
      double const score = hist_score(left, total, m);
      if (score > cut->score) {
        cut->score = score;
        cut->below = last;
        cut->above = b;
        cut->missing_left = missing_left;
      }
    }
    for (int64_t c = 0; c < stride; c++) left[c] += here[c];
    last = b;
  }
  /* All values left, all missing ones right. */
  if (missing_left == 0 && last >= 0 && hist_allowed(h, left, total)) {
    double const score = hist_score(left, total, m);
    if (score > cut->score) {
      cut->score = score;
      cut->below = last;
      cut->above = bins;
      cut->missing_left = 0;
    }
  }
}

/* One component, rows of weight 1: a cut's gain over the node is (s W - S w)^2 / (w (W - w) W), compared
 * with the best without dividing. */
typedef struct single_scan {
  double w, s, least, all, sum; /* of the left side; of the node */
  double above, below;          /* the best gain, as a fraction */
  int32_t last, cut_below, cut_above;
} single_scan;

ALWAYS_INLINE void single_start(const rpo_hist *h, const double *total, const double *left,
                                single_scan *a) {
  double const rows = (double)h->o.min_leaf;
  a->w = left[0];
  a->s = left[1];
  a->least = rows > h->min_leaf_weight ? rows : h->min_leaf_weight;
  a->all = total[0];
  a->sum = total[1];
  a->above = -1.0;
  a->below = 1.0;
  a->last = a->cut_below = a->cut_above = -1;
}

ALWAYS_INLINE void single_try(single_scan *a, int32_t next) {
  double const gain = a->s * a->all - a->sum * a->w, other = a->all - a->w;
  double const above = gain * gain, below = a->w * other;
  int const wins = (a->w >= a->least) & (other >= a->least) & (above * a->below > a->above * below);
  if (wins) {
    a->above = above;
    a->below = below;
    a->cut_below = a->last;
    a->cut_above = next;
  }
}

ALWAYS_INLINE void single_end(const single_scan *a, int8_t missing_left, rpo_cut *cut) {
  if (a->above < 0.0) return;
  double const score = (a->sum * a->sum + a->above / a->below) / a->all;
  if (!(score > cut->score)) return;
  cut->score = score;
  cut->below = a->cut_below;
  cut->above = a->cut_above;
  cut->missing_left = missing_left;
}

static void hist_scan_single(const rpo_hist *h, const double *sums, int32_t bins,
                             const double *total, const double *left, int8_t missing_left,
                             rpo_cut *cut) {
  single_scan a;
  single_start(h, total, left, &a);
  for (int32_t b = 0; b < bins; b++) {
    if (sums[2 * b] == 0.0) continue;
    if (a.last >= 0) single_try(&a, b);
    a.w += sums[2 * b];
    a.s += sums[2 * b + 1];
    a.last = b;
  }
  if (missing_left == 0 && a.last >= 0) single_try(&a, bins);
  single_end(&a, missing_left, cut);
}

static void hist_scan(const rpo_hist *h, const double *sums, int32_t bins, const double *total,
                      double *left, int8_t missing_left, rpo_cut *cut) {
  if (h->stride == 2) {
    hist_scan_single(h, sums, bins, total, left, missing_left, cut);
  } else {
    hist_scan_of(h, sums, bins, total, left, missing_left, h->m, h->stride, cut);
  }
}

/* The best cut of a feature from its slots; `own` has room for 2 stride numbers. Returns 1 when the
 * node's rows differ in it. */
static int hist_cut(const rpo_hist *h, int64_t feature, double *sums, const double *total,
                    double *own, rpo_cut *cut) {
  const rpo_features *const f = h->f;
  int32_t const bins = rpo_bins(f, feature), rest = f->rest[feature];
  int64_t const stride = h->stride, rows = h->counted ? h->m + 1 : 0;
  double *const left = own, *const other = own + stride;
  cut->score = -INFINITY;
  cut->feature = (int32_t)feature;
  if (f->sparse && f->binary) { /* one slot: the listed rows */
    if (bins < 2 || sums[rows] == 0.0 || sums[rows] == total[rows]) return 0;
    for (int64_t c = 0; c < stride; c++) left[c] = rest == 0 ? total[c] - sums[c] : sums[c];
    if (hist_allowed(h, left, total)) {
      cut->score = hist_score(left, total, h->m);
      cut->below = 0;
      cut->above = 1;
      cut->missing_left = -1;
    }
    return 1;
  }
  if (f->sparse) { /* what is not listed has the code `rest` */
    double *const zero = sums + rest * stride;
    int64_t const slots = h->offset[feature + 1] - h->offset[feature];
    for (int64_t c = 0; c < stride; c++) other[c] = total[c];
    for (int64_t b = 0; b < slots; b++) {
      for (int64_t c = 0; c < stride && b != rest; c++) other[c] -= sums[b * stride + c];
    }
    for (int64_t c = 0; c < stride; c++) zero[c] = other[c];
  }
  const double *const missing = sums + bins * stride;
  int const some = f->has_missing && missing[rows] > 0.0;
  int32_t filled = some;
  for (int32_t b = 0; b < bins && filled < 2; b++) filled += sums[b * stride + rows] > 0.0;
  if (filled < 2) return 0;
  memset(left, 0, (size_t)stride * sizeof *left);
  hist_scan(h, sums, bins, total, left, some ? 0 : -1, cut);
  if (some) {
    memcpy(left, missing, (size_t)stride * sizeof *left);
    hist_scan(h, sums, bins, total, left, 1, cut);
  }
  return 1;
}

/* One sparse feature of a node from the rows that list it, those of the node being marked. `own`: 2
 * stride numbers, then the widest feature's slots, zero; left zero again. */
ALWAYS_INLINE void add_listed(const rpo_hist *h, int64_t feature, const uint8_t *mark, double *sums,
                              int64_t stride) {
  const rpo_features *const f = h->f;
  for (int64_t e = f->col_start[feature]; e < f->col_start[feature + 1]; e++) {
    int64_t const row = f->col_rows[e];
    if (!mark[row]) continue;
    const double *const from = h->stat + row * stride;
    double *const to = sums + (f->binary ? 0 : rpo_code_at(f->col_codes, f->width, e)) * stride;
    for (int64_t c = 0; c < stride; c++) to[c] += from[c];
  }
}

static int hist_listed(const rpo_hist *h, int64_t feature, const uint8_t *mark, const double *total,
                       double *own, rpo_cut *cut) {
  int64_t const slots = h->offset[feature + 1] - h->offset[feature];
  double *const sums = own + 2 * h->stride;
  add_listed(h, feature, mark, sums, h->stride);
  int const usable = hist_cut(h, feature, sums, total, own, cut);
  memset(sums, 0, (size_t)(slots * h->stride) * sizeof *sums);
  return usable;
}

/* ---- One dense feature of a node, from its rows: slots touched are marked, so that a small node does
 * not pay for slots it has no rows in ---- */

/* As hist_scan, over the marked codes below `bins`. */
ALWAYS_INLINE void scan_marked_of(const rpo_hist *h, const double *sums, const uint64_t *mark,
                                  int32_t bins, const double *total, double *left,
                                  int8_t missing_left, int64_t m, int64_t stride, rpo_cut *cut) {
  int32_t last = -1;
  for (int32_t word = 0; word * 64 < bins; word++) {
    for (uint64_t bits = mark[word]; bits != 0; bits &= bits - 1) {
      int32_t const b = word * 64 + lowest_bit(bits);
      if (b >= bins) break;
      const double *const here = sums + b * stride;
      if (last >= 0 && hist_allowed(h, left, total)) {
        double const score = hist_score(left, total, m);
        if (score > cut->score) {
          cut->score = score;
          cut->below = last;
          cut->above = b;
          cut->missing_left = missing_left;
        }
      }
      for (int64_t c = 0; c < stride; c++) left[c] += here[c];
      last = b;
    }
  }
  if (missing_left == 0 && last >= 0 && hist_allowed(h, left, total)) {
    double const score = hist_score(left, total, m);
    if (score > cut->score) {
      cut->score = score;
      cut->below = last;
      cut->above = bins;
      cut->missing_left = 0;
    }
  }
}

static void scan_marked_single(const rpo_hist *h, const double *sums, const uint64_t *mark,
                               int32_t bins, const double *total, const double *left,
                               int8_t missing_left, rpo_cut *cut) {
  single_scan a;
  single_start(h, total, left, &a);
  for (int32_t word = 0; word * 64 < bins; word++) {
    for (uint64_t bits = mark[word]; bits != 0; bits &= bits - 1) {
      int32_t const b = word * 64 + lowest_bit(bits);
      if (b >= bins) break;
      if (a.last >= 0) single_try(&a, b);
      a.w += sums[2 * b];
      a.s += sums[2 * b + 1];
      a.last = b;
    }
  }
  if (missing_left == 0 && a.last >= 0) single_try(&a, bins);
  single_end(&a, missing_left, cut);
}

static void scan_marked(const rpo_hist *h, const double *sums, const uint64_t *mark, int32_t bins,
                        const double *total, double *left, int8_t missing_left, rpo_cut *cut) {
  if (h->stride == 2) {
    scan_marked_single(h, sums, mark, bins, total, left, missing_left, cut);
  } else {
    scan_marked_of(h, sums, mark, bins, total, left, missing_left, h->m, h->stride, cut);
  }
}

/* What rows add lies side by side where it is narrow: `beside`. */
#define ADD_MARKED(type, width, row_at)                                        \
  do {                                                                         \
    const type *const code = (const type *)h->f->codes + feature * h->f->rows; \
    for (int64_t i = 0; i < n; i++) {                                          \
      int64_t const k = (int64_t)code[rows[i]];                                \
      const double *const from = (row_at);                                     \
      double *const to = sums + k * (width);                                   \
      for (int64_t c = 0; c < (width); c++) to[c] += from[c];                  \
      mark[k >> 6] |= (uint64_t)1 << (k & 63);                                 \
    }                                                                          \
  } while (0)

#if HAVE_LANES
typedef double pair __attribute__((vector_size(16), may_alias));
#define ADD_MARKED_PAIRS(type)                                                 \
  do {                                                                         \
    const type *const code = (const type *)h->f->codes + feature * h->f->rows; \
    const pair *const from = (const pair *)(const void *)beside;               \
    pair *const to = (pair *)(void *)sums;                                     \
    for (int64_t i = 0; i < n; i++) {                                          \
      int64_t const k = (int64_t)code[rows[i]];                                \
      to[k] += from[i];                                                        \
      mark[k >> 6] |= (uint64_t)1 << (k & 63);                                 \
    }                                                                          \
  } while (0)
#else
#define ADD_MARKED_PAIRS(type) ADD_MARKED(type, 2, beside + i * 2)
#endif

#define ADD_MARKED_OF(type)                                                \
  do {                                                                     \
    if (h->stride == 2) {                                                  \
      ADD_MARKED_PAIRS(type);                                              \
    } else if (h->stride == 4) {                                           \
      ADD_MARKED(type, 4, beside + i * 4);                                 \
    } else {                                                               \
      ADD_MARKED(type, h->stride, h->stat + (int64_t)rows[i] * h->stride); \
    }                                                                      \
  } while (0)

/* `own`: 2 stride numbers, then the widest feature's slots, zero, then a mark for each, zero; left zero
 * again. */
static int hist_direct(const rpo_hist *h, int64_t feature, int32_t start, int32_t end,
                       const double *total, double *own, rpo_cut *cut) {
  int64_t const stride = h->stride, n = end - start;
  const int32_t *const rows = h->samples + start;
  const double *const beside = h->beside == NULL ? NULL : h->beside + start * stride;
  int32_t const bins = rpo_bins(h->f, feature);
  double *const left = own, *const sums = own + 2 * stride;
  uint64_t *const mark = (uint64_t *)(void *)(sums + h->widest * stride);
  int64_t const words = (bins + h->f->has_missing + 63) / 64;
  int64_t marked = 0;
  if (h->f->width == 1) {
    ADD_MARKED_OF(uint8_t);
  } else if (h->f->width == 2) {
    ADD_MARKED_OF(uint16_t);
  } else {
    ADD_MARKED_OF(int32_t);
  }
  for (int64_t w = 0; w < words; w++) marked += rpo_bits(mark[w]);
  cut->score = -INFINITY;
  cut->feature = (int32_t)feature;
  if (marked > 1) {
    int const some = h->f->has_missing && (mark[bins >> 6] >> (bins & 63) & 1);
    for (int64_t c = 0; c < stride; c++) left[c] = 0.0;
    scan_marked(h, sums, mark, bins, total, left, some ? 0 : -1, cut);
    if (some) {
      for (int64_t c = 0; c < stride; c++) left[c] = sums[bins * stride + c];
      scan_marked(h, sums, mark, bins, total, left, 1, cut);
    }
  }
  if (stride != 2 || 4 * marked > bins) {
    memset(sums, 0, (size_t)((bins + h->f->has_missing) * stride) * sizeof *sums);
  } else {
    for (int64_t w = 0; w < words; w++) {
      for (uint64_t bits = mark[w]; bits != 0; bits &= bits - 1) {
        double *const sum = sums + (w * 64 + lowest_bit(bits)) * 2;
        sum[0] = sum[1] = 0.0;
      }
    }
  }
  for (int64_t w = 0; w < words; w++) mark[w] = 0;
  return marked > 1;
}
