/* The best cuts of features of few values where every row has one class: all cuts of several features
 * in one walk over the rows, which lie class after class, their codes in half a byte each.
 *
 * Every cut has a lane. A row adds its weight to the lanes of the cuts that it lies to the right of: of
 * a feature, one load from a ramp at its code (loop_looks.h: of four features at once). When a class ends
 * its counts are S_j of all cuts, which enter |S|^2, S.T and w (loop_sums.h) side by side. Nothing is
 * listed or sorted. Sums are of 16 bits while they fit, then of 32, exact since none exceeds |T|^2.
 *
 * Single precision then tells which cuts may be the best; only of these are scores made, as everywhere
 * else. The sums of the best cut are the totals of the two sides: where all features are of few values,
 * growth is lean and sums no labels. */
#if HAVE_LANES && (defined(__clang__) || __GNUC__ >= 9) /* which convert lanes */
#define HAVE_CUT_LANES 1
#else
#define HAVE_CUT_LANES 0
#endif

/* Sums of lanes are whole numbers of 31 bits. */
static inline int sums_fit_lanes(const rpo_grower *g, const rpo_frame *frame) {
  return g->light && frame->square < 2147483648.0;
}

static inline int has_few_values(const rpo_grower *g, int32_t feature) {
  return rpo_bins(g->f, feature) <= RPO_CUTS;
}

static inline int has_packed_codes(const rpo_grower *g, int32_t feature) {
  return g->o.by_class != NULL && has_few_values(g, feature);
}

#if HAVE_CUT_LANES

enum {
  BATCH = 16,         /* features walked together */
  AHEAD = 24,         /* rows fetched ahead */
  MOST_COUNTED = 255, /* of a class, in 8 bits */
  LANES = BATCH * RPO_CUTS,
};

/* The cut before code t is in lane RPO_CUTS - t of its feature. */
typedef uint8_t counts8 __attribute__((vector_size(RPO_CUTS), may_alias, aligned(1)));
typedef uint16_t counts16 __attribute__((vector_size(2 * RPO_CUTS)));
typedef uint32_t counts32 __attribute__((vector_size(4 * RPO_CUTS), may_alias));

/* By weight: from place c on, the weight for each cut that code c is to the right of. */
#define ZEROS 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define RAMP(w) {ZEROS, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w}
static const uint8_t ramps[RPO_LIGHT + 1][2 * RPO_CUTS] __attribute__((aligned(64))) = {
    RAMP(0), RAMP(1), RAMP(2),  RAMP(3),  RAMP(4),  RAMP(5),  RAMP(6),  RAMP(7),
    RAMP(8), RAMP(9), RAMP(10), RAMP(11), RAMP(12), RAMP(13), RAMP(14), RAMP(15)};

typedef struct cut_sums { /* by feature */
  counts32 square[BATCH], dot[BATCH], weight[BATCH];
} cut_sums;

/* What is not yet in the sums above. */
typedef struct short_sums {
  counts16 square[BATCH], dot[BATCH], weight[BATCH];
} short_sums;

ALWAYS_INLINE void clear(int n, short_sums *sums) {
  counts16 const none = {0};
  for (int c = 0; c < n; c++) sums->square[c] = sums->dot[c] = sums->weight[c] = none;
}

/* To sums that hold nothing, unless some were added before. */
ALWAYS_INLINE void flush(int n, const short_sums *from, int before, cut_sums *to) {
  counts32 const none = {0};
  for (int c = 0; c < n && !before; c++) to->square[c] = to->dot[c] = to->weight[c] = none;
  for (int c = 0; c < n; c++) {
    to->square[c] += __builtin_convertvector(from->square[c], counts32);
    to->dot[c] += __builtin_convertvector(from->dot[c], counts32);
    to->weight[c] += __builtin_convertvector(from->weight[c], counts32);
  }
}

/* By feature, a bit each lane: the cuts whose scores are above a limit; and, a bit each feature, whether
 * there is any cut. */
typedef struct promise {
  uint32_t above[BATCH];
  uint32_t differ;
} promise;

typedef struct class_walk {
  const rpo_grower *g;
  const rpo_by_class *sorted;
  const int32_t *rows;       /* of the node */
  const int32_t *row_weight; /* NULL: all rows weigh 1 */
  int64_t node, next;        /* rows, and which is the next */
  int32_t end;               /* the first row behind the class */
} class_walk;

ALWAYS_INLINE int32_t end_of_class(const class_walk *a, int32_t row) {
  return a->sorted->class_end[a->g->t->index[row]];
}

ALWAYS_INLINE int goes_on(const class_walk *a) {
  return a->next < a->node && a->rows[a->next] < a->end;
}

ALWAYS_INLINE uint32_t weight_of(const class_walk *a, int32_t row) {
  return a->row_weight == NULL ? 1 : (uint32_t)a->row_weight[row];
}

/* For the codes of a row that comes later. */
ALWAYS_INLINE void ask_ahead(const class_walk *a) {
  int64_t const later = a->next + AHEAD < a->node ? a->next + AHEAD : a->node - 1;
  RPO_PREFETCH(a->sorted->packed + a->rows[later] * a->sorted->stride);
}

/* Counts rows of one class, as many as weigh at most MOST_COUNTED together: each adds its weight to all
 * cuts that it is to the right of. */
ALWAYS_INLINE uint32_t count_some(int n, const int32_t *feature, class_walk *a, counts8 *count) {
  uint32_t total = 0;
  for (int c = 0; c < n; c++) count[c] = (counts8){0};
  for (; goes_on(a); a->next++) {
    int32_t const row = a->rows[a->next];
    uint32_t const w = weight_of(a, row);
    const uint8_t *const own = a->sorted->packed + row * a->sorted->stride;
    if (total + w > MOST_COUNTED) break;
    total += w;
    ask_ahead(a);
    for (int c = 0; c < n; c++) {
      count[c] += *(const counts8 *)&ramps[w][rpo_packed_code(own, feature[c])];
    }
  }
  return total;
}

/* A class whose counts or squares need more bits. */
ALWAYS_INLINE void walk_large_class(int n, const int32_t *feature, class_walk *a, counts8 *count,
                                    uint32_t total, cut_sums *sums) {
  counts32 all[BATCH];
  for (int c = 0; c < n; c++) all[c] = __builtin_convertvector(count[c], counts32);
  while (goes_on(a)) {
    total += count_some(n, feature, a, count);
    for (int c = 0; c < n; c++) all[c] += __builtin_convertvector(count[c], counts32);
  }
  for (int c = 0; c < n; c++) {
    sums->square[c] += all[c] * all[c];
    sums->dot[c] += all[c] * total;
    sums->weight[c] += all[c];
  }
}

ALWAYS_INLINE void walk_of(int n, const int32_t *feature, class_walk *a, cut_sums *sums) {
  short_sums recent;
  uint32_t room = UINT16_MAX; /* by which sums of 16 bits may still grow */
  int flushed = 0;            /* 1: sums of 32 bits hold something */
  clear(n, &recent);
  while (a->next < a->node) {
    counts8 count[BATCH];
    a->end = end_of_class(a, a->rows[a->next]);
    uint32_t const total = count_some(n, feature, a, count);
    int const is_large = goes_on(a);
    if (is_large || room < total * total) {
      flush(n, &recent, flushed, sums);
      clear(n, &recent);
      room = UINT16_MAX;
      flushed = 1;
    }
    if (is_large) {
      walk_large_class(n, feature, a, count, total, sums);
      continue;
    }
    room -= total * total;
    for (int c = 0; c < n; c++) {
      counts16 const s = __builtin_convertvector(count[c], counts16);
      recent.square[c] += s * s;
      recent.dot[c] += s * (uint16_t)total;
      recent.weight[c] += s;
    }
  }
  flush(n, &recent, flushed, sums);
}

#include "loop_looks.h"

static void walk_classes(const rpo_grower *g, const int32_t *rows, int64_t node, int weighted,
                         const int32_t *features, int n, cut_sums *sums) {
  int32_t feature[BATCH];
  class_walk a;
  a.g = g;
  a.sorted = g->o.by_class;
  a.rows = rows;
  a.row_weight = weighted ? g->whole_weight : NULL;
  a.node = node;
  a.next = 0;
  for (int c = 0; c < BATCH; c++) feature[c] = features[c < n ? c : 0];
#if LOOKS_UP
  if (may_look_up(g)) {
    walk_looking_up(n, feature, &a, sums);
    return;
  }
#endif
  switch ((n + 3) / 4) {
    case 1: walk_of(4, feature, &a, sums); break;
    case 2: walk_of(8, feature, &a, sums); break;
    case 3: walk_of(12, feature, &a, sums); break;
    default: walk_of(16, feature, &a, sums); break;
  }
}

/* Scores in single precision, of terms that are exact but for that: with A and B the squares of the two
 * sides, (A (W - w) + B w) / (w (W - w)). 0 where a side is empty. */
static void score_roughly(const rpo_frame *frame, const cut_sums *sums, int lanes_used,
                          float *restrict score) {
  const uint32_t *const square = (const uint32_t *)sums->square;
  const uint32_t *const dot = (const uint32_t *)sums->dot;
  const uint32_t *const weight = (const uint32_t *)sums->weight;
  uint32_t const all = (uint32_t)frame->weight, all_square = (uint32_t)frame->square;
  for (int l = 0; l < lanes_used; l++) {
    float const a = (float)(int32_t)square[l];
    float const b = (float)(int32_t)(all_square - 2 * dot[l] + square[l]);
    float const w = (float)(int32_t)weight[l], v = (float)(int32_t)(all - weight[l]);
    float const below = w * v;
    score[l] = (a * v + b * w) / (below > 0.0f ? below : 1.0f);
  }
}

/* The largest of scores; they are not negative, and so in the order of their bits. */
ALWAYS_INLINE float most_of(const float *score, int lanes_used) {
  int32_t bits[LANES], most = 0;
  float found;
  memcpy(bits, score, (size_t)lanes_used * sizeof *bits);
  for (int l = 0; l < lanes_used; l++) most = bits[l] > most ? bits[l] : most;
  memcpy(&found, &most, sizeof found);
  return found;
}

#if !LOOKS_UP /* there by lanes: loop_looks.h */
/* Which cuts of a feature are above the limit is asked only where one is: of a few in a node. */
static void find_above(const float *score, int n, float limit, promise *out) {
  out->differ = 0;
  for (int c = 0; c < n; c++, score += RPO_CUTS) {
    float const most = most_of(score, RPO_CUTS);
    out->differ |= (uint32_t)(most > 0.0f) << c;
    out->above[c] = 0;
    if (!(most > limit)) continue;
    for (int l = 0; l < RPO_CUTS; l++) out->above[c] |= (uint32_t)(score[l] > limit) << l;
  }
}
#endif

/* Which cuts may be the best. When every cut is allowed, only those of the best score matter, and those
 * that look the same in single precision. */
static void find_promising(const rpo_grower *g, const rpo_frame *frame, const cut_sums *sums, int n,
                           double best, promise *out) {
  int const all_allowed = g->o.min_leaf <= 1 && !(g->min_leaf_weight > 0.0);
  float score[LANES], limit = best > 0.0 ? (float)best : 0.0f;
  score_roughly(frame, sums, n * RPO_CUTS, score);
  float const most = most_of(score, n * RPO_CUTS);
  if (all_allowed && most > limit) limit = most;
  find_above(score, n, limit * (1.0f - 0x1p-16f), out);
}

/* One feature's sums. */
typedef struct feature_sums {
  const uint32_t *square, *dot, *weight;
  const uint32_t *rows; /* NULL: not asked for */
} feature_sums;

/* The cut before code t, if the node has the code. */
static void try_lane(rpo_grower *g, const rpo_frame *frame, const feature_sums *sums, int64_t node,
                     int32_t feature, int l, best_split *best) {
  uint32_t const weight = sums->weight[l], beyond = l > 1 ? sums->weight[l - 1] : 0;
  side_sums const s = {(double)sums->square[l], (double)sums->dot[l], (double)weight,
                       sums->rows == NULL ? 1 : sums->rows[l]};
  if (weight == beyond || !side_allowed(g, frame, node, &s)) return;
  if (!beats(frame, &s, &best->score)) return;
  best->right = s;
  best->feature = feature;
  best->missing_left = -1;
  best->above = RPO_CUTS - l;
  best->below = best->above - 1; /* down to a code that the node has */
  while (l + 1 < RPO_CUTS && sums->weight[l + 1] == weight) {
    l++;
    best->below--;
  }
}

/* In the order of best_cut: from the low end to the rest, then from the high end, or, where no row has
 * the rest, all from the low end. */
static void try_lanes(rpo_grower *g, const rpo_frame *frame, const feature_sums *sums, int64_t node,
                      int32_t feature, uint32_t cuts, best_split *best) {
  int32_t const rest = g->f->rest[feature];
  int high = 1; /* lanes below are of cuts behind the rest */
  if (rest >= 0) {
    int const l = RPO_CUTS - rest; /* of the cut before the rest */
    uint32_t const from = rest > 0 ? sums->weight[l] : (uint32_t)frame->weight;
    uint32_t const beyond = l > 1 ? sums->weight[l - 1] : 0;
    high = from != beyond ? l : 1;
  }
  for (uint32_t left = cuts >> high << high; left != 0;) {
    int const l = 31 - __builtin_clz(left);
    left ^= 1u << l;
    try_lane(g, frame, sums, node, feature, l, best);
  }
  for (uint32_t left = cuts & ((1u << high) - 2u); left != 0; left &= left - 1) {
    try_lane(g, frame, sums, node, feature, __builtin_ctz(left), best);
  }
}

static int try_feature_of(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                          int32_t feature, uint64_t path, best_split *best);

/* As search_dense, with the features of few values walked together. */
static void search_classes(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                           uint64_t path, best_split *best) {
  drawer d = {rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0), 0, (int32_t)g->f->cols};
  int64_t usable = 0;
  while (draw_more(g, &d, usable)) {
    int32_t drawn[BATCH], few_valued[BATCH];
    cut_sums by_weight, by_rows;
    promise found;
    int n = 0, n_few = 0;
    while (n < BATCH && draw_more(g, &d, usable + n)) {
      int32_t const feature = draw_feature(g, &d);
      int const varies = !frame->constant[feature]; /* who knows: no branch */
      drawn[n] = few_valued[n_few] = feature;
      n += varies;
      n_few += varies & has_few_values(g, feature);
    }
    if (n_few > 0) walk_classes(g, rows, node, 1, few_valued, n_few, &by_weight);
    int const counts_rows = n_few > 0 && g->o.min_leaf > 1;
    if (counts_rows) walk_classes(g, rows, node, 0, few_valued, n_few, &by_rows);
    find_promising(g, frame, &by_weight, n_few, best->score, &found);
    for (int c = 0, next = 0; c < n; c++) {
      int constant;
      if (has_few_values(g, drawn[c])) {
        feature_sums const sums = {(const uint32_t *)&by_weight.square[next],
                                   (const uint32_t *)&by_weight.dot[next],
                                   (const uint32_t *)&by_weight.weight[next],
                                   counts_rows ? (const uint32_t *)&by_rows.weight[next] : NULL};
        constant = !(found.differ >> next & 1u);
        if (found.above[next] != 0) {
          try_lanes(g, frame, &sums, node, drawn[c], found.above[next], best);
        }
        next++;
      } else {
        constant = try_feature_of(g, frame, rows, node, drawn[c], path, best);
      }
      frame->constant[drawn[c]] = (uint8_t)constant;
      usable += !constant;
    }
    g->work += n * node;
    if (rpo_grower_poll(g)) break;
  }
  undo_draws(g, &d);
}
#else
#define LOOKS_UP 0
static void search_classes(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                           uint64_t path, best_split *best) {
  (void)g, (void)frame, (void)rows, (void)node, (void)path, (void)best;
}
#endif
