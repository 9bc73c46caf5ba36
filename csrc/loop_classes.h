/* The best cuts of features of few values where every row has one class: all cuts of several features
 * in one walk over the rows, which lie class after class.
 *
 * A row of code c lies on the outer side of every cut between c and the feature's `rest`. Lane t is one
 * such side: rows of codes <= t below the rest, >= t above it. Within a class the lanes count weights;
 * when the class ends its counts S_j enter |S|^2, S.T and w (loop_sums.h) of all cuts at once. Nothing
 * is listed, sorted or wiped. The sums are exact in 32 bits since none exceeds |T|^2. */
#if HAVE_LANES

enum { BATCH = 16, AHEAD = 8 }; /* features walked together; rows fetched ahead */

typedef uint32_t cuts __attribute__((vector_size(4 * RPO_CUTS), may_alias));

typedef struct cut_sums {
  cuts count; /* of the class at hand */
  cuts square, dot, weight;
  cuts rows; /* on the side; kept when leaves have a least size */
} cut_sums;

static inline void end_class(cut_sums *sums, int n, uint32_t total) {
  for (int c = 0; c < n; c++) {
    cut_sums *const a = &sums[c];
    cuts const s = a->count;
    a->square += s * s;
    a->dot += s * total;
    a->weight += s;
    a->count = s ^ s;
  }
}

ALWAYS_INLINE void walk_classes(int count_rows, const rpo_grower *g, const int32_t *rows,
                                int64_t node, const int32_t *features, int n, cut_sums *sums) {
  const rpo_features *const f = g->f;
  const uint8_t *const codes = f->row_codes;
  const cuts *beyond[BATCH];
  int64_t offset[BATCH];
  memset(sums, 0, (size_t)n * sizeof *sums);
  for (int c = 0; c < n; c++) {
    offset[c] = features[c];
    beyond[c] = (const cuts *)(const void *)g->lanes + (f->rest[features[c]] + 1) * RPO_CUTS;
  }
  int32_t class = g->t->index[rows[0]];
  uint32_t total = 0;
  for (int64_t i = 0; i < node; i++) {
    int32_t const row = rows[i];
    if (g->t->index[row] != class) {
      end_class(sums, n, total);
      class = g->t->index[row];
      total = 0;
    }
    uint32_t const w = (uint32_t)g->whole_weight[row];
    const uint8_t *const own = codes + row * f->cols;
    total += w;
    if (i + AHEAD < node) {
      const uint8_t *const next = codes + rows[i + AHEAD] * f->cols;
      __builtin_prefetch(next);
      __builtin_prefetch(next + f->cols - 1);
    }
    for (int c = 0; c < n; c++) {
      cuts const in = beyond[c][own[offset[c]]];
      sums[c].count += in & w;
      if (count_rows) sums[c].rows -= in;
    }
  }
  end_class(sums, n, total);
}

/* The cut beyond lane t, and the codes of the node on either side of it: `present`, one bit each. */
static void try_lane(rpo_grower *g, const rpo_frame *frame, const cut_sums *a, int64_t node,
                     int32_t feature, uint32_t present, int32_t t, int is_left, best_split *best) {
  side_sums const s = {(double)a->square[t], (double)a->dot[t], (double)a->weight[t],
                       g->o.min_leaf > 1 ? a->rows[t] : 1};
  if (!(s.weight < frame->weight) || !side_allowed(g, frame, node, &s)) return;
  double const score = split_score(frame, &s);
  if (!(score > best->score)) return;
  best->score = score;
  best->feature = feature;
  best->missing_left = -1;
  if (is_left) {
    best->below = t;
    best->above = __builtin_ctz(present >> (t + 1)) + t + 1;
  } else {
    best->above = t;
    best->below = 31 - __builtin_clz(present & (((uint32_t)1 << t) - 1u));
  }
}

/* In the order of best_cut: from the low end to the rest, then from the high end, or, where no row has
 * the rest, all from the low end. Returns 1 when the feature is constant in the node. */
static int try_cuts(rpo_grower *g, const rpo_frame *frame, const cut_sums *a, int64_t node,
                    int32_t feature, best_split *best) {
  int32_t const rest = g->f->rest[feature];
  uint32_t weight[RPO_CUTS + 2]; /* of lane t at t + 1: a code is present where lanes differ */
  uint32_t low = 0, high = 0;
  memcpy(weight + 1, &a->weight, sizeof a->weight);
  weight[0] = weight[RPO_CUTS + 1] = 0;
  for (int32_t t = 0; t < RPO_CUTS; t++) {
    low |= (uint32_t)(weight[t + 1] > weight[t]) << t;
    high |= (uint32_t)(weight[t + 1] > weight[t + 2]) << t;
  }
  uint32_t const below_rest = rest > 0 ? ((uint32_t)1 << rest) - 1u : 0u;
  low &= below_rest;
  high &= ~below_rest;
  uint32_t const outer = (rest > 0 ? weight[rest] : 0u) + weight[rest + 2];
  int const has_rest = (double)outer < frame->weight;
  uint32_t const present = low | high | (has_rest ? (uint32_t)1 << rest : 0u);
  if ((present & (present - 1u)) == 0) return 1;
  for (; low != 0; low &= low - 1u) {
    try_lane(g, frame, a, node, feature, present, __builtin_ctz(low), 1, best);
  }
  while (high != 0) {
    int32_t const t = has_rest ? 31 - __builtin_clz(high) : __builtin_ctz(high);
    try_lane(g, frame, a, node, feature, present, t, 0, best);
    high &= ~((uint32_t)1 << t);
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
