/* The best cut of one feature, from the node's rows listed with their codes.
 *
 * A list holds (code << 32 | row) of every row of the node whose code is not the feature's `rest`.
 * The rest is never walked: cuts below it are scored from the low end, cuts above it from the high
 * end, one side at a time. A dense column without a common value has an empty rest: one long low end. */

typedef struct best_split {
  double score;
  double threshold;     /* random cuts: the value drawn */
  int32_t feature;      /* -1: none yet */
  int32_t below, above; /* the codes the cut lies between */
  int64_t side_rows;    /* sparse: rows in g->best_rows, one whole side */
  int side_left;        /* 1: they go left */
  int missing_left;     /* -1: no missing value in the node */
  side_sums right;      /* what goes right; good only where growth is lean */
} best_split;

static best_split no_split(void) {
  best_split const none = {-INFINITY, 0.0, -1, 0, 0, 0, 0, -1, {0.0, 0.0, 0.0, 0}};
  return none;
}

typedef struct row_list {
  uint64_t *keys;
  int64_t count;   /* listed rows, missing ones included */
  int64_t missing; /* of these */
  int64_t node;    /* rows in the node */
  int32_t feature, rest, bins;
} row_list;

static inline int32_t key_row(uint64_t key) { return (int32_t)(uint32_t)key; }
static inline int32_t key_code(uint64_t key) { return (int32_t)(key >> 32); }
static inline uint64_t make_key(int32_t code, int32_t row) {
  return (uint64_t)(uint32_t)code << 32 | (uint32_t)row;
}

static void sort_few(uint64_t *keys, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    uint64_t const key = keys[i];
    int64_t j = i;
    for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
    keys[j] = key;
  }
}

/* By code, digit after digit; rows of one code keep their order. Returns where the result lies. */
static uint64_t *sort_by_code(uint64_t *keys, uint64_t *spare, int64_t count, int32_t codes) {
  if (count <= 24) {
    sort_few(keys, count);
    return keys;
  }
  int const bits = count > 4096 ? 11 : 8;
  uint32_t const mask = (1u << bits) - 1u;
  for (int shift = 0; codes >> shift > 0; shift += bits) {
    int32_t place[1 << 11];
    uint32_t const highest = (uint32_t)(codes >> shift);
    uint32_t const digits = (highest < mask ? highest : mask) + 1u;
    memset(place, 0, digits * sizeof *place);
    for (int64_t i = 0; i < count; i++) place[(uint32_t)(keys[i] >> 32) >> shift & mask]++;
    int32_t sum = 0;
    for (uint32_t d = 0; d < digits; d++) {
      int32_t const here = place[d];
      place[d] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < count; i++) {
      spare[place[(uint32_t)(keys[i] >> 32) >> shift & mask]++] = keys[i];
    }
    uint64_t *const swap = keys;
    keys = spare;
    spare = swap;
  }
  return keys;
}

static inline int side_allowed(const rpo_grower *g, const rpo_frame *frame, int64_t node,
                               const side_sums *s) {
  return s->rows >= g->o.min_leaf && node - s->rows >= g->o.min_leaf &&
         s->weight >= g->min_leaf_weight && frame->weight - s->weight >= g->min_leaf_weight;
}

/* Whether a side beats the best so far; if so it becomes it, its rows to be saved by the caller. */
ALWAYS_INLINE int side_wins(int kind, rpo_grower *g, const rpo_frame *frame, const row_list *l,
                            side *a, best_split *best) {
  side_weigh(kind, a);
  if (!side_allowed(g, frame, l->node, &a->s)) return 0;
  side_close(kind, g, frame, a);
  if (!beats(frame, &a->s, &best->score)) return 0;
  best->feature = l->feature;
  return 1;
}

ALWAYS_INLINE void side_clear(int kind, rpo_grower *g, const uint64_t *keys, int64_t count,
                              int step) {
  if (is_sums(kind) || kind == RPO_KIND_GRAM) return;
  if (8 * count > g->t->width) { /* as many entries as there are sums: wipe them all */
    size_t const bytes = kind == RPO_KIND_REAL ? sizeof *g->side : sizeof *g->side_whole;
    memset(kind == RPO_KIND_REAL ? (void *)g->side : (void *)g->side_whole, 0,
           (size_t)g->t->width * bytes);
    return;
  }
  for (int64_t i = 0; i < count; i++) side_clear_row(kind, g, key_row(keys[step * i]));
}

/* Sparse features only: dense rows are told apart by their codes. */
static void save_rows(rpo_grower *g, const uint64_t *keys, int64_t count, int step,
                      best_split *best) {
  if (!g->f->sparse) return;
  for (int64_t i = 0; i < count; i++) g->best_rows[best->side_rows++] = key_row(keys[step * i]);
}

static const uint64_t *missing_keys(const row_list *l) { return l->keys + (l->count - l->missing); }

/* Cuts of one end: keys from the outermost inwards; `rest` is the code behind the last, -1 when
 * nothing is. The first `carried` missing rows are on this side too. Returns where the best cut lies:
 * so many keys are on the side, 0 when none is better than what there was. */
ALWAYS_INLINE int64_t scan_kind(int kind, rpo_grower *g, const rpo_frame *frame, const row_list *l,
                                const uint64_t *keys, int64_t count, int step, int32_t rest,
                                int64_t carried, best_split *best) {
  const uint64_t *const missing = missing_keys(l);
  int64_t won = 0;
  side a;
  side_begin(kind, g, &a);
  for (int64_t i = 0; i < carried; i++) side_add(kind, g, frame, key_row(missing[i]), &a);
  for (int64_t i = 0; i < count; i++) {
    uint64_t const key = keys[step * i];
    side_add(kind, g, frame, key_row(key), &a);
    int32_t const next = i + 1 < count ? key_code(keys[step * (i + 1)]) : rest;
    if (next == key_code(key) || next < 0) continue;
    if (side_wins(kind, g, frame, l, &a, best)) won = i + 1;
  }
  side_clear(kind, g, missing, carried, 1);
  side_clear(kind, g, keys, count, step);
  return won;
}

static void scan_end(rpo_grower *g, const rpo_frame *frame, const row_list *l, const uint64_t *keys,
                     int64_t count, int step, int32_t rest, int with_missing, best_split *best) {
  int64_t const carried = with_missing ? l->missing : 0;
  int64_t won = 0;
  FOR_KIND(g, won = scan_kind(kind, g, frame, l, keys, count, step, rest, carried, best))
  if (won == 0) return;
  int32_t const last = key_code(keys[step * (won - 1)]);
  int32_t const next = won < count ? key_code(keys[step * won]) : rest;
  best->below = step > 0 ? last : next;
  best->above = step > 0 ? next : last;
  best->side_left = step > 0;
  best->missing_left = l->missing == 0 ? -1 : (step > 0) == with_missing;
  best->side_rows = 0;
  save_rows(g, keys, won, step, best);
  save_rows(g, missing_keys(l), carried, 1, best);
}

/* One side as a whole: the first `count` keys. */
ALWAYS_INLINE int try_kind(int kind, rpo_grower *g, const rpo_frame *frame, const row_list *l,
                           const uint64_t *keys, int64_t count, best_split *best) {
  side a;
  side_begin(kind, g, &a);
  for (int64_t i = 0; i < count; i++) side_add(kind, g, frame, key_row(keys[i]), &a);
  int const won = side_wins(kind, g, frame, l, &a, best);
  side_clear(kind, g, keys, count, 1);
  return won;
}

static int try_side(rpo_grower *g, const rpo_frame *frame, const row_list *l, const uint64_t *keys,
                    int64_t count, best_split *best) {
  int won = 0;
  if (count == 0 || count == l->node) return 0;
  FOR_KIND(g, won = try_kind(kind, g, frame, l, keys, count, best))
  if (!won) return 0;
  best->side_rows = 0;
  save_rows(g, keys, count, 1, best);
  return 1;
}

/* All values on the left, the missing ones on the right. */
static void scan_missing(rpo_grower *g, const rpo_frame *frame, const row_list *l,
                         best_split *best) {
  if (!try_side(g, frame, l, missing_keys(l), l->missing, best)) return;
  best->below = l->bins - 1;
  best->above = l->bins;
  best->side_left = 0;
  best->missing_left = 0;
}

/* First key whose code is at least `code`. */
static int64_t lower_key(const uint64_t *keys, int64_t count, int32_t code) {
  int64_t a = 0;
  while (count > 0) {
    int64_t const half = count / 2;
    if (key_code(keys[a + half]) < code) {
      a += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return a;
}

/* Returns 1 when the feature is constant in the node. */
static int best_cut(rpo_grower *g, const rpo_frame *frame, row_list *l, best_split *best) {
  if (!g->f->binary) l->keys = sort_by_code(l->keys, g->keys2, l->count, l->bins);
  int64_t const values = lower_key(l->keys, l->count, l->bins);
  int const has_rest = l->count < l->node;
  l->missing = l->count - values;
  if (!has_rest && key_code(l->keys[0]) == key_code(l->keys[l->count - 1])) return 1;
  int64_t const low = has_rest ? lower_key(l->keys, values, l->rest) : values;
  int32_t const rest = has_rest ? l->rest : -1;
  for (int with_missing = 0; with_missing <= (l->missing > 0); with_missing++) {
    scan_end(g, frame, l, l->keys, low, 1, rest, with_missing, best);
    if (values > low) {
      scan_end(g, frame, l, l->keys + values - 1, values - low, -1, rest, with_missing, best);
    }
  }
  if (l->missing > 0) scan_missing(g, frame, l, best);
  return 0;
}

/* A value uniform between the smallest and the largest of two codes, the last left out. */
static double draw_cut(const rpo_grower *g, int32_t feature, int32_t first, int32_t last,
                       uint64_t path) {
  const rpo_features *const f = g->f;
  double const low = f->low[f->bin_start[feature] + first];
  double const high = f->high[f->bin_start[feature] + last];
  double cut = low + rpo_hash_uniform(g->o.seed, path, (uint64_t)feature) * (high - low);
  if (f->single) cut = (double)(float)cut;
  if (!(cut < f->low[f->bin_start[feature] + last])) cut = f->high[f->bin_start[feature] + first];
  return cut;
}

/* The last code wholly at or below the cut. A cut inside a bin moves to the bin's edge: training rows
 * and later ones must agree on their side. */
static int32_t code_below(const rpo_grower *g, int32_t feature, int32_t first, int32_t last,
                          double *cut) {
  const double *const low = g->f->low + g->f->bin_start[feature];
  const double *const high = g->f->high + g->f->bin_start[feature];
  int32_t below = first, count = last - first; /* the answer is in below .. below + count - 1 */
  while (count > 1) {
    int32_t const half = count / 2;
    below += high[below + half] <= *cut ? half : 0;
    count -= half;
  }
  if (*cut < high[below]) *cut = high[below];
  if (!(*cut < low[below + 1])) *cut = rpo_cut_between(g->f, feature, below, below + 1);
  return below;
}

/* Where a binary feature is cut: between its two values. */
static void cut_binary(const rpo_grower *g, uint64_t path, best_split *best) {
  best->below = 0;
  best->above = 1;
  if (!g->o.random_cut) return;
  best->threshold = draw_cut(g, best->feature, 0, 1, path);
  if (!g->f->exact) (void)code_below(g, best->feature, 0, 1, &best->threshold);
}

/* The same among the rows of a small node, whose values are few: many reads at once instead of a
 * chain of them. Exact values, none missing. */
static int32_t code_below_rows(const rpo_grower *g, const row_list *l, int32_t first, double cut) {
  const double *const value = g->f->high + g->f->bin_start[l->feature];
  int32_t below = first;
  if (l->count < l->node && l->rest > below && value[l->rest] <= cut) below = l->rest;
  for (int64_t i = 0; i < l->count; i++) {
    int32_t const code = key_code(l->keys[i]);
    below = code > below && value[code] <= cut ? code : below;
  }
  return below;
}

/* Smallest and largest code of the listed rows that are not missing, widened by the rest. */
static void code_range(row_list *l, int32_t *first, int32_t *last) {
  uint64_t const none = make_key(l->bins, 0);
  uint64_t least = UINT64_MAX, most = 0;
  int64_t missing = 0;
  for (int64_t i = 0; i < l->count; i++) {
    uint64_t const key = l->keys[i];
    int const value = key < none;
    missing += !value;
    least = key < least ? key : least;
    most = value && key > most ? key : most;
  }
  int const any = missing < l->count;
  int const has_rest = l->count < l->node;
  l->missing = missing;
  *first = any ? key_code(least) : INT32_MAX;
  *last = any ? key_code(most) : -1;
  if (has_rest && l->rest < *first) *first = l->rest;
  if (has_rest && l->rest > *last) *last = l->rest;
}

/* Extra-trees: one cut, uniform in value between the smallest and the largest of the node. Missing
 * rows go to a random side. The side with fewer rows, or that the rest is not on, is scored. */
static int random_cut(rpo_grower *g, const rpo_frame *frame, row_list *l, uint64_t path,
                      best_split *best) {
  int32_t first, last;
  int const has_rest = l->count < l->node;
  code_range(l, &first, &last);
  if (last < 0 || (first == last && l->missing == 0)) return 1;
  int const missing_left =
      l->missing > 0 && first < last && /* else all rows would go left */
      rpo_hash_uniform(g->o.seed, path, (uint64_t)l->feature + ((uint64_t)1 << 32)) < 0.5;
  double cut = INFINITY;
  int32_t below = last;
  if (first < last) {
    cut = draw_cut(g, l->feature, first, last, path);
    below = l->node <= 32 && g->f->exact && l->missing == 0
                ? code_below_rows(g, l, first, cut)
                : code_below(g, l->feature, first, last, &cut);
  }
  uint64_t const border = make_key(below + 1, 0), none = make_key(l->bins, 0);
  int64_t left = 0, right = 0;
  for (int64_t i = 0; i < l->count; i++) { /* left rows to keys2, right ones to the front of keys */
    uint64_t const key = l->keys[i];
    int const goes_left = key < border || (key >= none && missing_left);
    g->keys2[left] = key;
    l->keys[right] = key;
    left += goes_left;
    right += !goes_left;
  }
  int const side_left = has_rest ? l->rest > below : left <= right;
  if (try_side(g, frame, l, side_left ? g->keys2 : l->keys, side_left ? left : right, best)) {
    best->threshold = cut;
    best->below = below;
    best->above = -1;
    best->side_left = side_left;
    best->missing_left = l->missing > 0 ? missing_left : -1;
  }
  return 0;
}

static int try_feature(rpo_grower *g, const rpo_frame *frame, row_list *l, uint64_t path,
                       best_split *best) {
  g->work += l->count;
  if (l->count == 0) return 1;
  if (g->o.random_cut) return random_cut(g, frame, l, path, best);
  return best_cut(g, frame, l, best);
}

static double threshold_of(const rpo_grower *g, const best_split *best) {
  if (g->o.random_cut) return best->threshold;
  return rpo_cut_between(g->f, best->feature, best->below, best->above);
}
