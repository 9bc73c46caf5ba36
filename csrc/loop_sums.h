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

/* ---- One side: begin, add rows, (score), clear ---- */

static inline void side_begin(rpo_grower *g, side_sums *s) {
  memset(s, 0, sizeof *s);
  if (g->t->z != NULL) memset(g->side, 0, (size_t)g->t->stride * sizeof(double));
}

static inline void side_add_whole(const rpo_grower *g, const rpo_frame *frame, int32_t row,
                                  side_sums *s) {
  const rpo_target *const t = g->t;
  int32_t *restrict sum = g->side_whole;
  const int32_t *restrict total = frame->whole;
  int64_t const w = g->whole_weight[row];
  int64_t twice = 0, dots = 0;
  for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
    int32_t const j = t->index[e];
    twice += sum[j];
    dots += total[j];
    sum[j] += (int32_t)w;
  }
  s->square += (double)(w * (2 * twice + w * (t->start[row + 1] - t->start[row])));
  s->dot += (double)(w * dots);
  s->weight += (double)w;
  s->rows++;
}

static inline void side_add_real(const rpo_grower *g, const rpo_frame *frame, int32_t row,
                                 side_sums *s) {
  const rpo_target *const t = g->t;
  double const w = g->weight[row];
  for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
    int32_t const j = t->index[e];
    double const v = t->value == NULL ? w : w * t->value[e];
    s->square += (2.0 * g->side[j] + v) * v;
    s->dot += frame->sum[j] * v;
    g->side[j] += v;
  }
  s->weight += w;
  s->rows++;
}

static inline void side_add(const rpo_grower *g, const rpo_frame *frame, int32_t row,
                            side_sums *s) {
  if (g->t->z != NULL) {
    double const w = g->weight[row];
    add_scaled(g->side, w, g->t->z + (int64_t)row * g->t->stride, g->t->stride);
    s->weight += w;
    s->rows++;
  } else if (g->whole) {
    side_add_whole(g, frame, row, s);
  } else {
    side_add_real(g, frame, row, s);
  }
}

/* Sums keep |S|^2 and S.T for the moment they are asked for; labels have them already. */
static inline void side_close(const rpo_grower *g, const rpo_frame *frame, side_sums *s) {
  if (g->t->z == NULL) return;
  s->square = dot(g->side, g->side, g->t->stride);
  s->dot = dot(g->side, frame->sum, g->t->stride);
}

static inline void side_clear_row(rpo_grower *g, int32_t row) {
  const rpo_target *const t = g->t;
  if (g->whole) {
    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) g->side_whole[t->index[e]] = 0;
  } else {
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

static void frame_add(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count,
                      int sign) {
  for (int64_t i = 0; i < count; i++) frame_add_row(g, frame, rows[i], sign);
  if (g->t->z != NULL) frame->square = dot(frame->sum, frame->sum, g->t->stride);
}

/* Leaves the frame empty: its sums exactly zero, whatever rounding left behind. */
static void frame_clear(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count) {
  const rpo_target *const t = g->t;
  if (t->z != NULL) {
    memset(frame->sum, 0, (size_t)t->stride * sizeof(double));
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
  double const scatter = frame->norm - frame->square / frame->weight;
  if (scatter > 1e-9 * frame->norm) return scatter / frame->weight;
  for (int64_t i = 1; i < count; i++) {
    if (!rows_equal(g->t, rows[0], rows[i])) return (scatter > 0.0 ? scatter : 0.0) / frame->weight;
  }
  return -1.0; /* pure */
}
