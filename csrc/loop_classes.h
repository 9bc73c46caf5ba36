/* The best cuts of features of few values where every row has one class: all cuts of several features
 * in one walk over the rows, which lie class after class.
 *
 * Within a class each feature counts its rows' weights by code. When the class ends, the sums of the
 * counts from code t on are what the class has on the right side of the cut before t: S_j of all cuts,
 * which enter |S|^2, S.T and w (loop_sums.h) side by side, a cut a lane. Nothing is listed or sorted.
 * The sums are exact in 32 bits since none exceeds |T|^2. */
#if HAVE_LANES

enum { BATCH = 16, AHEAD = 8 }; /* features walked together; rows fetched ahead */

typedef uint32_t cuts __attribute__((vector_size(4 * RPO_CUTS), may_alias));

/* Lane t: lane t + n of `a`, or 0; `zero` is at hand. */
#if defined(__clang__)
#define LANES_FROM(a, ...) __builtin_shufflevector(a, zero, __VA_ARGS__)
#else
#define LANES_FROM(a, ...) __builtin_shuffle(a, zero, (cuts){__VA_ARGS__})
#endif

/* Lane t becomes the sum of lanes t, t + 1, ... */
ALWAYS_INLINE void sum_from(cuts *v) {
  cuts const zero = {0};
  cuts a = *v;
  a += LANES_FROM(a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  a += LANES_FROM(a, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
  a += LANES_FROM(a, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
  a += LANES_FROM(a, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
  *v = a;
}

typedef struct cut_sums {
  cuts count; /* of the class at hand, by code */
  cuts square, dot, weight;
  cuts rows; /* by code; kept when leaves have a least size */
} cut_sums;

ALWAYS_INLINE void end_class(cut_sums *sums, int n, uint32_t total) {
  for (int c = 0; c < n; c++) {
    cut_sums *const a = &sums[c];
    cuts s = a->count;
    sum_from(&s);
    a->square += s * s;
    a->dot += s * total;
    a->weight += s;
    a->count ^= a->count;
  }
}

ALWAYS_INLINE void walk_classes(int count_rows, const rpo_grower *g, const int32_t *rows,
                                int64_t node, const int32_t *features, int n, cut_sums *sums) {
  const rpo_features *const f = g->f;
  const uint8_t *const codes = f->row_codes;
  const int32_t *const class = g->t->index;
  int64_t offset[BATCH];
  memset(sums, 0, (size_t)n * sizeof *sums);
  for (int c = 0; c < n; c++) offset[c] = features[c];
  for (int64_t i = 0; i < node;) {
    int32_t const at = class[rows[i]];
    uint32_t total = 0;
    for (; i < node && class[rows[i]] == at; i++) {
      uint32_t const w = (uint32_t)g->whole_weight[rows[i]];
      const uint8_t *const own = codes + rows[i] * f->cols;
      if (i + AHEAD < node) {
        const uint8_t *const next = codes + rows[i + AHEAD] * f->cols;
        __builtin_prefetch(next);
        __builtin_prefetch(next + f->cols - 1);
      }
      total += w;
      for (int c = 0; c < n; c++) {
        uint32_t const code = own[offset[c]];
        ((uint32_t *)&sums[c].count)[code] += w;
        if (count_rows) ((uint32_t *)&sums[c].rows)[code]++;
      }
    }
    end_class(sums, n, total);
  }
  for (int c = 0; count_rows && c < n; c++) sum_from(&sums[c].rows);
}

/* The cut between the code before t in the node and t. */
static void try_lane(rpo_grower *g, const rpo_frame *frame, const cut_sums *a, int64_t node,
                     int32_t feature, uint32_t present, int32_t t, best_split *best) {
  side_sums const s = {(double)a->square[t], (double)a->dot[t], (double)a->weight[t],
                       g->o.min_leaf > 1 ? a->rows[t] : 1};
  if (!side_allowed(g, frame, node, &s)) return;
  double const score = split_score(frame, &s);
  if (!(score > best->score)) return;
  best->score = score;
  best->feature = feature;
  best->missing_left = -1;
  best->above = t;
  best->below = 31 - __builtin_clz(present & (((uint32_t)1 << t) - 1u));
}

/* In the order of best_cut: from the low end to the rest, then from the high end, or, where no row has
 * the rest, all from the low end. Returns 1 when the feature is constant in the node. */
static int try_cuts(rpo_grower *g, const rpo_frame *frame, const cut_sums *a, int64_t node,
                    int32_t feature, best_split *best) {
  int32_t const rest = g->f->rest[feature];
  uint32_t weight[RPO_CUTS + 1]; /* a code is present where neighbours differ */
  uint32_t present = 0;
  memcpy(weight, &a->weight, sizeof a->weight);
  weight[RPO_CUTS] = 0;
  for (int32_t t = 0; t < RPO_CUTS; t++) present |= (uint32_t)(weight[t] != weight[t + 1]) << t;
  uint32_t const above = present & (present - 1u); /* all but the lowest: a cut before each */
  if (above == 0) return 1;
  int const has_rest = rest >= 0 && (present >> rest & 1u) != 0;
  uint32_t const to_rest = has_rest ? ((uint32_t)2 << rest) - 1u : UINT32_MAX;
  for (uint32_t left = above & to_rest; left != 0; left &= left - 1u) {
    try_lane(g, frame, a, node, feature, present, __builtin_ctz(left), best);
  }
  for (uint32_t left = above & ~to_rest; left != 0;) {
    int32_t const t = 31 - __builtin_clz(left);
    try_lane(g, frame, a, node, feature, present, t, best);
    left ^= (uint32_t)1 << t;
  }
  return 0;
}

static int has_few_values(const rpo_grower *g, int32_t feature) {
  return rpo_bins(g->f, feature) <= RPO_CUTS;
}

static int try_feature_of(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                          int32_t feature, uint64_t path, best_split *best);

/* As search_dense, with the features of few values walked together. */
static void search_classes(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                           uint64_t path, best_split *best) {
  drawer d = {rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0), 0, (int32_t)g->f->cols};
  int64_t usable = 0;
  while (draw_more(g, &d, usable)) {
    int32_t drawn[BATCH], few[BATCH];
    cut_sums sums[BATCH];
    int n = 0, n_few = 0;
    while (n < BATCH && draw_more(g, &d, usable + n)) {
      int32_t const feature = draw_feature(g, &d);
      if (frame->constant[feature]) continue;
      drawn[n++] = feature;
      if (has_few_values(g, feature)) few[n_few++] = feature;
    }
    if (n_few > 0 && g->o.min_leaf > 1) {
      walk_classes(1, g, rows, node, few, n_few, sums);
    } else if (n_few > 0) {
      walk_classes(0, g, rows, node, few, n_few, sums);
    }
    for (int c = 0, next = 0; c < n; c++) {
      int const constant = has_few_values(g, drawn[c])
                               ? try_cuts(g, frame, &sums[next++], node, drawn[c], best)
                               : try_feature_of(g, frame, rows, node, drawn[c], path, best);
      frame->constant[drawn[c]] = (uint8_t)constant;
      usable += !constant;
    }
    g->work += n * node;
    if (rpo_grower_poll(g)) break;
  }
  undo_draws(g, &d);
}
#else
static void search_classes(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                           uint64_t path, best_split *best) {
  (void)g, (void)frame, (void)rows, (void)node, (void)path, (void)best;
}
#endif
