/* The split of a node of any size: features drawn, their rows listed, the best cut kept. */

/* Features without replacement: a permutation drawn as far as asked, then undone, so that what a node
 * draws depends on its path only. */
typedef struct drawer {
  rpo_rng rng;
  int32_t count, features;
} drawer;

ALWAYS_INLINE int32_t draw_feature(rpo_grower *g, drawer *d) {
  int32_t const i = d->count++;
  if (g->o.max_features >= d->features) return i;
  int32_t const j = i + (int32_t)rpo_below(&d->rng, (uint32_t)(d->features - i));
  int32_t const feature = g->permutation[j];
  g->permutation[j] = g->permutation[i];
  g->permutation[i] = feature;
  g->swaps[i] = j;
  return feature;
}

static void undo_draws(rpo_grower *g, const drawer *d) {
  if (g->o.max_features >= d->features) return;
  for (int32_t i = d->count - 1; i >= 0; i--) {
    int32_t const feature = g->permutation[i];
    g->permutation[i] = g->permutation[g->swaps[i]];
    g->permutation[g->swaps[i]] = feature;
  }
}

/* scikit-learn's rule: max_features draws, and more until one is not constant. The paper's reading:
 * until max_features are not constant. */
static int draw_more(const rpo_grower *g, const drawer *d, int64_t usable) {
  if (d->count == d->features) return 0;
  if (g->o.draw_non_constant) return usable < g->o.max_features;
  return d->count < g->o.max_features || usable == 0;
}

static row_list new_list(const rpo_grower *g, int32_t feature, int64_t node, uint64_t *keys) {
  row_list const l = {keys, 0, 0, node, feature, g->f->rest[feature], rpo_bins(g->f, feature)};
  return l;
}

/* Codes of a small node are read row after row, where they stay in the second cache from feature to
 * feature and node to node; those of a large one column after column. */
static inline int reads_rows(const rpo_features *f, int64_t node) {
  return node * f->cols * f->width <= 1 << 19;
}

#include "loop_classes.h"

#define GATHER(type)                                           \
  do {                                                         \
    const type *const code = (const type *)codes;              \
    for (int64_t i = 0; i < l->node; i++) {                    \
      int32_t const c = (int32_t)code[first + rows[i] * step]; \
      l->keys[count] = make_key(c, rows[i]);                   \
      count += c != l->rest;                                   \
    }                                                          \
  } while (0)

static void gather_dense(const rpo_grower *g, const int32_t *rows, row_list *l) {
  const rpo_features *const f = g->f;
  int const small = reads_rows(f, l->node);
  const void *const codes = small ? f->row_codes : f->codes;
  int64_t const first = small ? l->feature : (int64_t)l->feature * f->rows;
  int64_t const step = small ? f->cols : 1;
  int64_t count = 0;
  if (f->width == 1) {
    GATHER(uint8_t);
  } else if (f->width == 2) {
    GATHER(uint16_t);
  } else {
    GATHER(int32_t);
  }
  l->count = count;
}

static inline int32_t code_of_row(const rpo_grower *g, int32_t row, int32_t feature) {
  const rpo_by_class *const sorted = g->o.by_class;
  if (has_packed_codes(g, feature)) {
    return rpo_packed_code(sorted->packed + row * sorted->stride, feature);
  }
  return rpo_code_at(g->f->row_codes, g->f->width, row * g->f->cols + feature);
}

/* Two rows: any feature that tells them apart does it equally well. */
static int try_pair(rpo_grower *g, const rpo_frame *frame, const int32_t *rows, int32_t feature,
                    uint64_t path, best_split *best) {
  const rpo_features *const f = g->f;
  int32_t const a = code_of_row(g, rows[0], feature), b = code_of_row(g, rows[1], feature);
  int32_t const bins = rpo_bins(f, feature);
  if (a == b) return 0;
  if (g->lean) { /* the two are of different classes */
    double const w = g->weight[rows[a < b]];
    side_sums const right = {w * w, w * w, w, 1};
    best->right = right;
  }
  best->score = frame->norm; /* each side alone: |w y|^2 / w */
  best->feature = feature;
  best->below = a < b ? a : b;
  best->above = a < b ? b : a;
  best->side_left = 1;
  best->missing_left = best->above == bins ? 0 : -1;
  if (best->above == bins) best->below = bins - 1;
  if (best->above == bins) {
    best->threshold = INFINITY;
  } else {
    best->threshold = draw_cut(g, feature, best->below, best->above, path);
    if (!f->exact) (void)code_below(g, feature, best->below, best->above, &best->threshold);
  }
  return 1;
}

/* Whether a node of two rows may be split at all, and how is a matter of taste. */
static int is_free_pair(const rpo_grower *g, int64_t node) {
  return node == 2 && g->o.min_leaf == 1 && g->min_leaf_weight == 0.0;
}

enum { BY_VALUE = -1 }; /* a best cut's `below` where values were compared, not codes */

/* ---- Random cuts of dense features ----
 *
 * One pass over the codes, or over the values where they are at hand, marks the rows that go left. */

typedef struct drawn_cut {
  double threshold;
  int32_t below; /* or BY_VALUE */
} drawn_cut;

static void take_cut(int32_t feature, const drawn_cut *cut, best_split *best) {
  best->feature = feature;
  best->threshold = cut->threshold;
  best->below = cut->below;
  best->above = -1;
  best->side_left = 1;
  best->missing_left = -1;
}

#define MARK_VALUES(type)                                                  \
  do {                                                                     \
    type *const own = (type *)(void *)g->keys2;                            \
    const type *const values = (const type *)g->o.values + feature;        \
    type least = (type)INFINITY, most = -(type)INFINITY;                   \
    for (int64_t i = 0; i < node; i++) {                                   \
      type const v = values[rows[i] * g->f->cols];                         \
      own[i] = v;                                                          \
      least = v < least ? v : least;                                       \
      most = v > most ? v : most;                                          \
    }                                                                      \
    if (least == most) return 1;                                           \
    double const u = rpo_hash_uniform(g->o.seed, path, (uint64_t)feature); \
    type at = (type)((double)least + u * ((double)most - (double)least));  \
    if (!(at < most)) at = least;                                          \
    for (int64_t i = 0; i < node; i++) left[i] = own[i] <= at;             \
    cut->threshold = (double)at;                                           \
    cut->below = BY_VALUE;                                                 \
    return 0;                                                              \
  } while (0)

#define RANGE(type)                                       \
  do {                                                    \
    const type *const code = (const type *)codes + first; \
    for (int64_t i = 0; i < node; i++) {                  \
      int32_t const c = (int32_t)code[rows[i] * step];    \
      own[i] = c;                                         \
      least = c < least ? c : least;                      \
      most = c > most ? c : most;                         \
    }                                                     \
  } while (0)

static int mark_codes(const rpo_grower *g, const int32_t *rows, int64_t node, int32_t feature,
                      uint64_t path, uint8_t *left, drawn_cut *cut) {
  const rpo_features *const f = g->f;
  int const small = reads_rows(f, node);
  const void *const codes = small ? f->row_codes : f->codes;
  int64_t const first = small ? feature : (int64_t)feature * f->rows;
  int64_t const step = small ? f->cols : 1;
  int32_t *const own = (int32_t *)(void *)g->keys2;
  int32_t least = INT32_MAX, most = -1;
  if (f->width == 1) {
    RANGE(uint8_t);
  } else if (f->width == 2) {
    RANGE(uint16_t);
  } else {
    RANGE(int32_t);
  }
  if (least == most) return 1;
  cut->threshold = draw_cut(g, feature, least, most, path);
  cut->below = code_below(g, feature, least, most, &cut->threshold);
  for (int64_t i = 0; i < node; i++) left[i] = own[i] <= cut->below;
  return 0;
}

/* Draws a cut and marks, by row of the node, who is left of it. Returns 1 when the feature is constant
 * in the node. */
static int mark_left(const rpo_grower *g, const int32_t *rows, int64_t node, int32_t feature,
                     uint64_t path, uint8_t *left, drawn_cut *cut) {
  if (g->o.values == NULL || !reads_rows(g->f, node)) {
    return mark_codes(g, rows, node, feature, path, left, cut);
  }
  if (g->f->single) MARK_VALUES(float);
  MARK_VALUES(double);
}

static int fewer_on_left(const uint8_t *left, int64_t node) {
  int64_t count = 0;
  for (int64_t i = 0; i < node; i++) count += left[i];
  return 2 * count <= node;
}

/* Of sums, rows of the right side count nothing, and no list is made. */
ALWAYS_INLINE double score_left(int kind, rpo_grower *g, const rpo_frame *frame,
                                const int32_t *rows, const uint8_t *left, int64_t node) {
  side a;
  side_begin(kind, g, &a);
  for (int64_t i = 0; i < node; i++) {
    double const w = g->weight[rows[i]] * (double)left[i]; /* without a branch */
    side_add_sums(kind, g, w, rows[i], &a);
    a.s.weight += w;
    a.s.rows += left[i];
  }
  if (!side_allowed(g, frame, node, &a.s)) return -INFINITY;
  side_close(kind, g, frame, &a);
  return split_score(frame, &a.s);
}

/* Of labels and products, the side with fewer rows is listed. */
static int try_fewer(rpo_grower *g, const rpo_frame *frame, const int32_t *rows,
                     const uint8_t *left, int64_t node, int32_t feature, best_split *best) {
  row_list l = new_list(g, feature, node, g->keys);
  int const fewer = fewer_on_left(left, node);
  for (int64_t i = 0; i < node; i++) {
    l.keys[l.count] = make_key(0, rows[i]);
    l.count += left[i] == fewer;
  }
  return try_side(g, frame, &l, l.keys, l.count, best);
}

static int try_random(rpo_grower *g, const rpo_frame *frame, const int32_t *rows, int64_t node,
                      int32_t feature, uint64_t path, best_split *best) {
  uint8_t *const left = (uint8_t *)g->best_rows;
  drawn_cut cut;
  if (mark_left(g, rows, node, feature, path, left, &cut)) return 1;
  if (!is_sums(g->kind)) {
    if (try_fewer(g, frame, rows, left, node, feature, best)) take_cut(feature, &cut, best);
    return 0;
  }
  double score = -INFINITY;
  FOR_KIND(g, if (is_sums(kind)) score = score_left(kind, g, frame, rows, left, node))
  if (!(score > best->score)) return 0;
  best->score = score;
  take_cut(feature, &cut, best);
  return 0;
}

static int try_feature_of(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                          int32_t feature, uint64_t path, best_split *best) {
  row_list l = new_list(g, feature, node, g->keys);
  gather_dense(g, rows, &l);
  return try_feature(g, frame, &l, path, best);
}

static void search_dense(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                         uint64_t path, best_split *best) {
  drawer d = {rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0), 0, (int32_t)g->f->cols};
  int const pair = is_free_pair(g, node);
  int const is_random = g->o.random_cut && !g->f->has_missing;
  int64_t usable = 0;
  while (draw_more(g, &d, usable)) {
    int32_t const feature = draw_feature(g, &d);
    if (frame->constant[feature]) continue;
    if (pair) {
      if (try_pair(g, frame, rows, feature, path, best)) break;
      continue;
    }
    int constant;
    g->work += node;
    if (is_random) {
      constant = try_random(g, frame, rows, node, feature, path, best);
    } else {
      constant = try_feature_of(g, frame, rows, node, feature, path, best);
    }
    if (constant) {
      frame->constant[feature] = 1;
    } else {
      usable++;
    }
    if (rpo_grower_poll(g)) break;
  }
  undo_draws(g, &d);
}

/* ---- Sparse features: lists of several candidates at once ---- */

static inline int32_t listed_code(const rpo_grower *g, const void *codes, int32_t feature,
                                  int64_t e) {
  return codes == NULL ? 1 - g->f->rest[feature] : rpo_code_at(codes, g->f->width, e);
}

/* A column's rows, those of the node kept: written first, counted after, so that nothing branches. */
static void list_by_column(rpo_grower *g, int32_t start, int64_t node, row_list *l) {
  const rpo_features *const f = g->f;
  int64_t const end = f->col_start[l->feature + 1];
  uint64_t *const keys = g->keys2;
  int64_t count = 0;
  for (int64_t e = f->col_start[l->feature]; e < end; e++) {
    int32_t const row = f->col_rows[e];
    keys[count] = make_key(listed_code(g, f->col_codes, l->feature, e), row);
    count += (uint32_t)(g->position[row] - start) < (uint32_t)node;
  }
  memcpy(l->keys, keys, (size_t)count * sizeof *keys);
  l->count = count;
}

static void list_by_row(rpo_grower *g, const int32_t *rows, int64_t node, row_list *lists,
                        int64_t n_lists) {
  const rpo_features *const f = g->f;
  for (int64_t i = 0; i < n_lists; i++) g->slot[lists[i].feature] = (int32_t)i + 1;
  for (int64_t i = 0; i < node; i++) {
    for (int64_t e = f->row_start[rows[i]]; e < f->row_start[rows[i] + 1]; e++) {
      int32_t const slot = g->slot[f->row_cols[e]];
      if (slot == 0) continue;
      row_list *const l = &lists[slot - 1];
      l->keys[l->count++] = make_key(listed_code(g, f->row_codes, l->feature, e), rows[i]);
    }
  }
  for (int64_t i = 0; i < n_lists; i++) g->slot[lists[i].feature] = 0;
}

/* Draws candidates that may split the node; columns without or with only listed rows are known. */
static int64_t draw_candidates(rpo_grower *g, const rpo_frame *frame, int64_t node, uint64_t path) {
  drawer d = {rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0), 0, (int32_t)g->f->cols};
  int64_t usable = 0;
  while (draw_more(g, &d, usable)) {
    int32_t const feature = draw_feature(g, &d);
    int32_t const listed = frame->listed[feature];
    if (listed == 0 || (listed == node && g->f->binary)) continue;
    g->drawn[usable++] = feature;
  }
  undo_draws(g, &d);
  return usable;
}

enum { LISTS = 64 };

static void search_sparse(rpo_grower *g, rpo_frame *frame, int32_t start, int64_t node,
                          uint64_t path, best_split *best) {
  const rpo_features *const f = g->f;
  const int32_t *const rows = g->samples + start;
  int64_t const candidates = draw_candidates(g, frame, node, path);
  double const row_cost = (double)node * (double)f->row_start[f->rows] / (double)f->rows;
  for (int64_t i = 0; i < candidates;) {
    row_list lists[LISTS];
    int64_t n = 0, room = 0, column_cost = 0;
    for (; n < LISTS && i < candidates; n++, i++) {
      int32_t const feature = g->drawn[i];
      if (n > 0 && room + frame->listed[feature] > g->key_room) break;
      lists[n] = new_list(g, feature, node, g->keys + room);
      room += frame->listed[feature];
      column_cost += f->col_start[feature + 1] - f->col_start[feature];
    }
    if ((double)column_cost < row_cost) {
      for (int64_t c = 0; c < n; c++) list_by_column(g, start, node, &lists[c]);
      g->work += column_cost;
    } else {
      list_by_row(g, rows, node, lists, n);
      g->work += (int64_t)row_cost;
    }
    for (int64_t c = 0; c < n; c++) (void)try_feature(g, frame, &lists[c], path, best);
    if (rpo_grower_poll(g)) break;
  }
}

#include "loop_counts.h"
#include "loop_wide.h"

static void search(rpo_grower *g, rpo_frame *frame, int32_t start, int64_t node, uint64_t path,
                   best_split *best) {
  *best = no_split();
  if (frame->counted) {
    search_counts(g, frame, start, node, path, best);
  } else if (g->f->sparse) {
    search_sparse(g, frame, start, node, path, best);
  } else if (g->o.by_class && sums_fit_lanes(g, frame) && !is_free_pair(g, node)) {
    search_classes(g, frame, g->samples + start, node, path, best);
  } else if (searches_wide(g, node) && !is_free_pair(g, node)) {
    search_wide(g, frame, g->samples + start, node, path, best);
  } else {
    search_dense(g, frame, g->samples + start, node, path, best);
  }
}

/* Rows of the left side to the front of the node; returns where the right begins.
 *
 * Sparse features: the saved side's rows change places with others, at a cost that does not grow with
 * the node. Dense ones: by code; rows keep their order, so that large nodes read columns from top to
 * bottom. */
static int32_t partition_sparse(rpo_grower *g, int32_t start, int32_t end, const best_split *best) {
  int32_t const count = (int32_t)best->side_rows;
  int32_t const to = best->side_left ? start : end - count;
  for (int32_t i = 0; i < count; i++) {
    int32_t const place = best->side_left ? to + i : end - 1 - i;
    int32_t const row = g->best_rows[i];
    int32_t const from = g->position[row];
    int32_t const other = g->samples[place];
    g->samples[from] = other;
    g->position[other] = from;
    g->samples[place] = row;
    g->position[row] = place;
  }
  return best->side_left ? start + count : to;
}

#define DIVIDE(type, table, row_step, goes_left)           \
  do {                                                     \
    const type *const own = (const type *)(table) + first; \
    for (int32_t i = start; i < end; i++) {                \
      int32_t const row = g->samples[i];                   \
      type const v = own[row * (row_step)];                \
      int const to_left = (goes_left);                     \
      g->samples[left] = row;                              \
      g->scratch[right] = row;                             \
      left += to_left;                                     \
      right += !to_left;                                   \
    }                                                      \
  } while (0)

static int32_t partition_dense(rpo_grower *g, int32_t start, int32_t end, const best_split *best) {
  const rpo_features *const f = g->f;
  int const small = reads_rows(f, end - start);
  const void *const codes = small ? f->row_codes : f->codes;
  int64_t const step = small || best->below == BY_VALUE ? f->cols : 1;
  int64_t const first = step > 1 ? best->feature : (int64_t)best->feature * f->rows;
  int32_t const below = best->below;
  int32_t const joins = best->missing_left == 1 ? rpo_bins(f, best->feature) : -1;
  int32_t left = start, right = 0;
  if (below == BY_VALUE && f->single) {
    DIVIDE(float, g->o.values, step, (double)v <= best->threshold);
  } else if (below == BY_VALUE) {
    DIVIDE(double, g->o.values, step, v <= best->threshold);
  } else if (f->width == 1) {
    DIVIDE(uint8_t, codes, step, v <= below || v == joins);
  } else if (f->width == 2) {
    DIVIDE(uint16_t, codes, step, v <= below || v == joins);
  } else {
    DIVIDE(int32_t, codes, step, v <= below || v == joins);
  }
  memcpy(g->samples + left, g->scratch, (size_t)right * sizeof *g->samples);
  return left;
}

/* The same by packed codes, where rows lie class after class. */
static int32_t partition_packed(rpo_grower *g, int32_t start, int32_t end, const best_split *best) {
#if LOOKS_UP
  if (offsets_fit(g)) return divide_by_lanes(g, start, end, best->feature, best->below);
#endif
  int64_t const stride = g->o.by_class->stride;
  int32_t const first = best->feature >> 1, shift = 4 * (best->feature & 1);
  int32_t left = start, right = 0;
  DIVIDE(uint8_t, g->o.by_class->packed, stride, (v >> shift & 15) <= best->below);
  memcpy(g->samples + left, g->scratch, (size_t)right * sizeof *g->samples);
  return left;
}

static int32_t partition(rpo_grower *g, int32_t start, int32_t end, const best_split *best) {
  if (g->f->sparse) return partition_sparse(g, start, end, best);
  if (has_packed_codes(g, best->feature)) {
    return partition_packed(g, start, end, best);
  }
  return partition_dense(g, start, end, best);
}
