/* Adding rows to one side of a split, and to a node's totals: the two kinds of target.
 *
 * The score of a split needs only one side: with S the sums of the side and T those of the node,
 *   |S|^2 / w + |T - S|^2 / (W - w),   |T - S|^2 = |T|^2 - 2 S.T + |S|^2,
 * to be maximised (eq. (1) with the variance of eq. (2); the terms that all splits share left out). */

typedef struct side_sums {
  double square; /* |S|^2 */
  double dot;    /* S.T */
  double weight;
  int64_t rows;
} side_sums;

static inline double split_score(const rpo_frame *frame, const side_sums *s) {
  double const other = frame->square - 2.0 * s->dot + s->square;
  return s->square / s->weight + other / (frame->weight - s->weight);
}

/* Whether a side's score is above the best so far, which it then becomes. Most are not: products tell,
 * with room for rounding, and spare them the divisions. Where products leave the range of numbers,
 * nothing is told. */
static inline int beats(const rpo_frame *frame, const side_sums *s, double *best) {
  double const other = frame->square - 2.0 * s->dot + s->square;
  double const left = frame->weight - s->weight;
  double const both = s->weight * left, bound = *best * (1.0 - 1e-9) * both;
  if (both > 1e-290 && bound > 1e-290 && s->square * left + other * s->weight < bound) return 0;
  double const score = split_score(frame, s);
  if (!(score > *best)) return 0;
  *best = score;
  return 1;
}

/* a.b over padded rows: eight running sums, added in a fixed order. */
static inline double dot(const double *restrict a, const double *restrict b, int64_t stride) {
  if (stride < 8) {
    double sum = 0.0;
    for (int64_t c = 0; c < stride; c++) sum += a[c] * b[c];
    return sum;
  }
  double lane[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (int64_t c = 0; c < stride; c += 8) {
    for (int i = 0; i < 8; i++) lane[i] += a[c + i] * b[c + i];
  }
  for (int i = 0; i < 4; i++) lane[i] += lane[i + 4];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static inline void add_scaled(double *restrict sum, double w, const double *restrict z,
                              int64_t stride) {
  for (int64_t c = 0; c < stride; c++) sum[c] += w * z[c];
}

/* ---- One side: begin, add rows, close, clear ----
 *
 * Written once for every kind of target; `kind` is a constant wherever these are inlined, so that each
 * kind gets a loop of its own with the width of its rows known. */

#if defined(__GNUC__) && !defined(RPO_COUNTED)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else /* also where branches are counted: each once, and not once for each constant */
#define ALWAYS_INLINE static inline
#endif

/* clang-format off */
/* Expands `call`, which uses the constant `kind`, for the kind of the target at hand. */
#define FOR_KIND(g, call)                                       \
  switch ((g)->kind) {                                          \
    case RPO_KIND_SUMS_1: { enum { kind = RPO_KIND_SUMS_1 }; call; break; }   \
    case RPO_KIND_SUMS_2: { enum { kind = RPO_KIND_SUMS_2 }; call; break; }   \
    case RPO_KIND_SUMS_4: { enum { kind = RPO_KIND_SUMS_4 }; call; break; }   \
    case RPO_KIND_SUMS_8: { enum { kind = RPO_KIND_SUMS_8 }; call; break; }   \
    case RPO_KIND_SUMS_16: { enum { kind = RPO_KIND_SUMS_16 }; call; break; } \
    case RPO_KIND_GRAM: { enum { kind = RPO_KIND_GRAM }; call; break; }       \
    case RPO_KIND_CLASSES: { enum { kind = RPO_KIND_CLASSES }; call; break; } \
    case RPO_KIND_WHOLE: { enum { kind = RPO_KIND_WHOLE }; call; break; }     \
    case RPO_KIND_REAL: { enum { kind = RPO_KIND_REAL }; call; break; }       \
    default: { enum { kind = RPO_KIND_SUMS }; call; break; }                  \
  }
/* clang-format on */

/* Eight doubles as one value, added and multiplied lane by lane: compilers keep these in registers,
 * where they take an array of eight apart. */
#if defined(__GNUC__)
#define HAVE_LANES 1
typedef double lanes __attribute__((vector_size(64), may_alias));

/* The lanes' sum, in the order of dot(). */
ALWAYS_INLINE double lanes_sum(const lanes *v) {
  double const a = (*v)[0] + (*v)[4], b = (*v)[1] + (*v)[5];
  double const c = (*v)[2] + (*v)[6], d = (*v)[3] + (*v)[7];
  return (a + c) + (b + d);
}
#else
#define HAVE_LANES 0
#endif

typedef struct side {
  side_sums s;
  double *restrict sum; /* local where the width is known, else g->side */
  double local[16];
#if HAVE_LANES
  lanes wide[2]; /* rows of 8 and 16 */
#endif
  int64_t square, dot, weight; /* of whole labels, until side_weigh */
} side;

ALWAYS_INLINE int64_t width_of(int kind, const rpo_grower *g) {
  switch (kind) {
    case RPO_KIND_SUMS_1: return 1;
    case RPO_KIND_SUMS_2: return 2;
    case RPO_KIND_SUMS_4: return 4;
    case RPO_KIND_SUMS_8: return 8;
    case RPO_KIND_SUMS_16: return 16;
    default: return g->t->stride;
  }
}

ALWAYS_INLINE int is_sums(int kind) { return kind <= RPO_KIND_SUMS; }

ALWAYS_INLINE int is_wide(int kind) {
  return HAVE_LANES && (kind == RPO_KIND_SUMS_8 || kind == RPO_KIND_SUMS_16);
}

/* sum += w z */
ALWAYS_INLINE void side_add_sums(int kind, const rpo_grower *g, double w, int32_t row, side *a) {
  const double *const z = g->t->z + (int64_t)row * width_of(kind, g);
#if HAVE_LANES
  if (is_wide(kind)) { /* rows begin on 64 bytes */
    a->wide[0] += w * ((const lanes *)(const void *)z)[0];
    if (kind == RPO_KIND_SUMS_16) a->wide[1] += w * ((const lanes *)(const void *)z)[1];
    return;
  }
#endif
  add_scaled(a->sum, w, z, width_of(kind, g));
}

/* sum += w row, of as many columns as a small node has rows. */
ALWAYS_INLINE void gram_add(double *restrict sum, double w, const double *restrict row,
                            int64_t stride) {
  for (int64_t c = 0; c < stride; c += 8) {
    for (int i = 0; i < 8; i++) sum[c + i] += w * row[c + i];
  }
}

ALWAYS_INLINE void side_begin(int kind, rpo_grower *g, side *a) {
  memset(&a->s, 0, sizeof a->s);
  a->square = a->dot = a->weight = 0;
  a->sum = kind < RPO_KIND_SUMS ? a->local : g->side;
#if HAVE_LANES
  if (is_wide(kind)) {
    lanes const zero = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    a->wide[0] = a->wide[1] = zero;
    return;
  }
#endif
  if (is_sums(kind)) {
    for (int64_t c = 0; c < width_of(kind, g); c++) a->sum[c] = 0.0;
  }
  if (kind == RPO_KIND_GRAM) memset(a->sum, 0, (size_t)g->gram_stride * sizeof *a->sum);
}

ALWAYS_INLINE void side_add(int kind, const rpo_grower *g, const rpo_frame *frame, int32_t row,
                            side *a) {
  const rpo_target *const t = g->t;
  a->s.rows++;
  if (is_sums(kind)) {
    double const w = g->weight[row];
    side_add_sums(kind, g, w, row, a);
    a->s.weight += w;
  } else if (kind == RPO_KIND_GRAM) {
    double const w = g->weight[row];
    int32_t const i = g->position[row];
    const double *const products = g->gram + i * g->gram_stride;
    a->s.square += w * (2.0 * a->sum[i] + w * products[i]);
    a->s.dot += w * g->gram_dot[i];
    a->s.weight += w;
    gram_add(a->sum, w, products, g->gram_stride);
  } else if (kind == RPO_KIND_CLASSES) {
    int64_t const w = g->whole_weight[row];
    int32_t const j = t->index[row];
    a->square += w * (2 * g->side_whole[j] + w);
    a->dot += w * frame->whole[j];
    a->weight += w;
    g->side_whole[j] += (int32_t)w;
  } else if (kind == RPO_KIND_WHOLE) {
    int32_t *restrict sum = g->side_whole;
    const int32_t *restrict total = frame->whole;
    int64_t const w = g->whole_weight[row], first = t->start[row], end = t->start[row + 1];
    int64_t twice = 0, dots = 0;
    for (int64_t e = first; e < end; e++) {
      int32_t const j = t->index[e];
      twice += sum[j];
      dots += total[j];
      sum[j] += (int32_t)w;
    }
    a->square += w * (2 * twice + w * (end - first));
    a->dot += w * dots;
    a->weight += w;
  } else {
    double const w = g->weight[row];
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
      int32_t const j = t->index[e];
      double const v = t->value == NULL ? w : w * t->value[e];
      a->s.square += (2.0 * g->side[j] + v) * v;
      a->s.dot += frame->sum[j] * v;
      g->side[j] += v;
    }
    a->s.weight += w;
  }
}

/* Makes s.weight good: whole labels are summed in integers. */
ALWAYS_INLINE void side_weigh(int kind, side *a) {
  if (kind != RPO_KIND_CLASSES && kind != RPO_KIND_WHOLE) return;
  a->s.square = (double)a->square;
  a->s.dot = (double)a->dot;
  a->s.weight = (double)a->weight;
}

/* After side_weigh: sums work out |S|^2 and S.T when they are asked for; labels have them already. */
ALWAYS_INLINE void side_close(int kind, const rpo_grower *g, const rpo_frame *frame, side *a) {
  if (!is_sums(kind)) return;
#if HAVE_LANES
  if (is_wide(kind)) {
    const lanes *const total = (const lanes *)(const void *)frame->sum;
    lanes square = a->wide[0] * a->wide[0], product = a->wide[0] * total[0];
    if (kind == RPO_KIND_SUMS_16) {
      square += a->wide[1] * a->wide[1];
      product += a->wide[1] * total[1];
    }
    a->s.square = lanes_sum(&square);
    a->s.dot = lanes_sum(&product);
    return;
  }
#endif
  a->s.square = dot(a->sum, a->sum, width_of(kind, g));
  a->s.dot = dot(a->sum, frame->sum, width_of(kind, g));
}

ALWAYS_INLINE void side_clear_row(int kind, rpo_grower *g, int32_t row) {
  const rpo_target *const t = g->t;
  if (kind == RPO_KIND_CLASSES) {
    g->side_whole[t->index[row]] = 0;
  } else if (kind == RPO_KIND_WHOLE) {
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) g->side_whole[t->index[e]] = 0;
  } else if (kind == RPO_KIND_REAL) {
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) g->side[t->index[e]] = 0.0;
  }
}

/* ---- A node's totals ---- */

static inline void frame_add_row(rpo_grower *g, rpo_frame *frame, int32_t row, int sign) {
  const rpo_target *const t = g->t;
  double const w = sign * g->weight[row];
  if (t->z != NULL) {
    add_scaled(frame->sum, w, t->z + (int64_t)row * t->stride, t->stride);
  } else if (g->whole) {
    int64_t const v = sign * g->whole_weight[row];
    int64_t change = 0;
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
      int32_t *const sum = &frame->whole[t->index[e]];
      change += (2 * (int64_t)*sum + v) * v;
      *sum += (int32_t)v;
    }
    frame->square += (double)change;
  } else {
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
      double const v = t->value == NULL ? w : w * t->value[e];
      double *const sum = &frame->sum[t->index[e]];
      frame->square += (2.0 * *sum + v) * v;
      *sum += v;
    }
  }
  frame->norm += w * t->norm[row];
  frame->weight += w;
}

/* One class a row: all in integers. */
static void frame_add_classes(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count,
                              int sign) {
  const int32_t *const class = g->t->index;
  int32_t *const sum = frame->whole;
  int64_t change = 0, weight = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t const w = sign * g->whole_weight[rows[i]], before = sum[class[rows[i]]];
    change += (2 * before + w) * w;
    weight += w;
    sum[class[rows[i]]] = (int32_t)(before + w);
  }
  frame->square += (double)change;
  frame->norm += (double)weight;
  frame->weight += (double)weight;
}

static void frame_add(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count,
                      int sign) {
  if (g->kind == RPO_KIND_CLASSES) {
    frame_add_classes(g, frame, rows, count, sign);
    return;
  }
  for (int64_t i = 0; i < count; i++) frame_add_row(g, frame, rows[i], sign);
  if (g->t->z != NULL) frame->square = dot(frame->sum, frame->sum, g->t->stride);
}

/* Leaves the frame empty: its sums exactly zero, whatever rounding left behind. */
static void frame_clear(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count) {
  const rpo_target *const t = g->t;
  if (t->z != NULL) {
    memset(frame->sum, 0, (size_t)t->stride * sizeof(double));
  } else if (g->kind == RPO_KIND_CLASSES) {
    for (int64_t i = 0; i < count; i++) frame->whole[t->index[rows[i]]] = 0;
  } else {
    for (int64_t i = 0; i < count; i++) {
      for (int64_t e = t->start[rows[i]]; e < t->start[rows[i] + 1]; e++) {
        if (g->whole) {
          frame->whole[t->index[e]] = 0;
        } else {
          frame->sum[t->index[e]] = 0.0;
        }
      }
    }
  }
  frame->square = frame->norm = frame->weight = 0.0;
}

static inline int rows_equal(const rpo_target *t, int32_t a, int32_t b) {
  if (t->z != NULL) {
    const double *const x = t->z + (int64_t)a * t->stride;
    const double *const y = t->z + (int64_t)b * t->stride;
    for (int64_t c = 0; c < t->width; c++) {
      if (x[c] != y[c]) return 0;
    }
    return 1;
  }
  int64_t const n = t->start[a + 1] - t->start[a];
  if (n != t->start[b + 1] - t->start[b]) return 0;
  for (int64_t e = 0; e < n; e++) {
    if (t->index[t->start[a] + e] != t->index[t->start[b] + e]) return 0;
    if (t->value != NULL && t->value[t->start[a] + e] != t->value[t->start[b] + e]) return 0;
  }
  return 1;
}

/* Sum of variances of the node; exactly 0 when all rows are equal. */
static double frame_impurity(const rpo_grower *g, const rpo_frame *frame, const int32_t *rows,
                             int64_t count) {
  if (g->kind == RPO_KIND_CLASSES && frame->square == frame->weight * frame->weight) return -1.0;
  double const scatter = frame->norm - frame->square / frame->weight;
  if (scatter > 1e-9 * frame->norm) return scatter / frame->weight;
  for (int64_t i = 1; i < count; i++) {
    if (!rows_equal(g->t, rows[0], rows[i])) return (scatter > 0.0 ? scatter : 0.0) / frame->weight;
  }
  return -1.0; /* pure */
}
