/* Small nodes of sparse features, up to 64 rows: everything below them is grown from one table of
 * (feature, which of the rows list it), a bit a row. A child's constant features drop out by two
 * operations each; no row is walked again. */

typedef struct block {
  int32_t rows[RPO_BLOCK];
  int32_t start; /* of the block in samples */
} block;

static inline int bit_count(uint64_t x) {
#if defined(__GNUC__)
  return __builtin_popcountll(x);
#else
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  return (int)(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
#endif
}

static inline int lowest_bit(uint64_t x) {
#if defined(__GNUC__)
  return __builtin_ctzll(x);
#else
  return bit_count((x & (0 - x)) - 1);
#endif
}

static int64_t block_rows(const block *b, uint64_t mask, int32_t *rows) {
  int64_t n = 0;
  for (uint64_t left = mask; left != 0; left &= left - 1) rows[n++] = b->rows[lowest_bit(left)];
  return n;
}

static int32_t entry_code(const rpo_grower *g, const rpo_entry *entry, int bit) {
  if (entry->codes < 0) return 1 - g->f->rest[entry->feature];
  uint64_t const before = entry->rows & (((uint64_t)1 << bit) - 1);
  return g->block_codes[entry->codes + bit_count(before)];
}

static int entry_varies(const rpo_grower *g, const rpo_entry *entry, uint64_t mask) {
  uint64_t const listed = entry->rows & mask;
  if (listed == 0) return 0;
  if (listed != mask) return 1;
  if (entry->codes < 0) return 0;
  int32_t const code = entry_code(g, entry, lowest_bit(listed));
  for (uint64_t left = listed & (listed - 1); left != 0; left &= left - 1) {
    if (entry_code(g, entry, lowest_bit(left)) != code) return 1;
  }
  return 0;
}

/* Where a node finds its entries: all that vary within it are among entries[from .. end). Those of a
 * parent are `shared`: to be read and left alone. */
typedef struct entry_range {
  int64_t from, end;
  int shared;
} entry_range;

/* Leaves only entries that vary within `mask`; of a parent's it makes a copy behind them. */
static void keep_varying(rpo_grower *g, entry_range *r, uint64_t mask) {
  rpo_entry *const entries = g->entries;
  int64_t const first = r->shared ? r->end : r->from;
  int64_t to = first;
  if (g->f->binary) {
    for (int64_t i = r->from; i < r->end; i++) {
      rpo_entry const entry = entries[i];
      uint64_t const listed = entry.rows & mask;
      entries[to] = entry;
      to += (listed != 0) & (listed != mask);
    }
  } else {
    for (int64_t i = r->from; i < r->end; i++) {
      rpo_entry const entry = entries[i];
      if (entry_varies(g, &entry, mask)) entries[to++] = entry;
    }
  }
  r->from = first;
  r->end = to;
  r->shared = 0;
}

enum { PAIR_TRIES = 12 };

/* Two rows: every feature that tells them apart does it equally well. One such entry, each as likely;
 * -1 when a few tries find none, or when there is nothing to draw since all features are tried. */
static int64_t draw_for_pair(const rpo_grower *g, const entry_range *r, uint64_t mask,
                             rpo_rng *rng) {
  if (r->end == r->from || g->o.max_features >= g->f->cols) return -1;
  for (int tries = 0; tries < PAIR_TRIES; tries++) {
    int64_t const i = r->from + rpo_below(rng, (uint32_t)(r->end - r->from));
    if (entry_varies(g, &g->entries[i], mask)) return i;
  }
  return -1;
}

/* Moves a random choice of the entries [from, from + n) to the front: those that are among the
 * max_features drawn of all features (hypergeometric), one at least. Returns how many. */
static int64_t draw_entries(rpo_grower *g, int64_t from, int64_t n, rpo_rng *rng) {
  int64_t const p = g->f->cols, k = g->o.max_features;
  rpo_entry *const entries = g->entries + from;
  int64_t hits = 0;
  if (k >= p) return n;
  if (g->o.draw_non_constant) {
    hits = k < n ? k : n;
  } else if ((double)k * (double)n > 30.0 * (double)p) {
    for (int64_t i = 0; i < n; i++) { /* many: decide one by one */
      if (rpo_uniform(rng) * (double)(p - i) >= (double)(k - hits)) continue;
      rpo_entry const entry = entries[i];
      entries[i] = entries[hits];
      entries[hits++] = entry;
    }
    return hits > 0 ? hits : 1;
  } else {
    double const u = rpo_uniform(rng);
    hits = k > p - n ? k - (p - n) : 0;
    double chance = g->no_hit[n], sum = chance;
    while (u >= sum && hits < k && hits < n) { /* P(h + 1) from P(h) */
      chance *= (double)(k - hits) * (double)(n - hits) /
                ((double)(hits + 1) * (double)(p - n - k + hits + 1));
      hits++;
      sum += chance;
    }
    if (hits == 0) hits = 1;
  }
  for (int64_t i = 0; i < hits; i++) {
    int64_t const j = i + rpo_below(rng, (uint32_t)(n - i));
    rpo_entry const entry = entries[j];
    entries[j] = entries[i];
    entries[i] = entry;
  }
  return hits;
}

/* What a row adds to a side on its own, by bit: its part of S.T, its square, its weight. */
typedef struct row_terms {
  double dot[RPO_BLOCK], square[RPO_BLOCK], weight[RPO_BLOCK];
} row_terms;

ALWAYS_INLINE void fill_terms(int kind, rpo_grower *g, const block *b, const rpo_frame *frame,
                              uint64_t mask, row_terms *terms) {
  for (uint64_t left = mask; left != 0; left &= left - 1) {
    int const bit = lowest_bit(left);
    side a;
    side_begin(kind, g, &a);
    side_add(kind, g, frame, b->rows[bit], &a);
    side_weigh(kind, &a);
    side_close(kind, g, frame, &a);
    side_clear_row(kind, g, b->rows[bit]);
    terms->dot[bit] = a.s.dot;
    terms->square[bit] = a.s.square;
    terms->weight[bit] = a.s.weight;
  }
}

/* The split that a binary feature makes, scored by its smaller side; with `terms`, rows on their own
 * and parts of S.T are looked up. Returns whether it is the best so far. */
ALWAYS_INLINE int try_bits(int kind, rpo_grower *g, const block *b, const rpo_frame *frame,
                           uint64_t bits, int64_t node, const row_terms *terms, double *best) {
  side a;
  if (terms != NULL && (bits & (bits - 1)) == 0) {
    int const bit = lowest_bit(bits);
    a.s.square = terms->square[bit];
    a.s.dot = terms->dot[bit];
    a.s.weight = terms->weight[bit];
    a.s.rows = 1;
  } else {
    side_begin(kind, g, &a);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      side_add(kind, g, frame, b->rows[lowest_bit(left)], &a);
    }
    side_weigh(kind, &a);
    side_close(kind, g, frame, &a);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      side_clear_row(kind, g, b->rows[lowest_bit(left)]);
    }
  }
  return side_allowed(g, frame, node, &a.s) && beats(frame, &a.s, best);
}

/* Binary features: a candidate is a set of bits. Returns the rows of one side of the best. */
static uint64_t search_bits(rpo_grower *g, const block *b, const rpo_frame *frame, uint64_t mask,
                            int64_t from, int64_t hits, uint64_t path, best_split *best) {
  int64_t const node = bit_count(mask);
  row_terms terms;
  int const use_terms = hits >= node;
  uint64_t chosen = 0;
  if (use_terms) FOR_KIND(g, fill_terms(kind, g, b, frame, mask, &terms))
  for (int64_t i = from; i < from + hits; i++) {
    uint64_t const listed = g->entries[i].rows & mask;
    uint64_t const bits = 2 * bit_count(listed) <= node ? listed : mask ^ listed;
    int won = 0;
    FOR_KIND(g,
             won = try_bits(kind, g, b, frame, bits, node, use_terms ? &terms : NULL, &best->score))
    if (!won) continue;
    best->feature = g->entries[i].feature;
    best->side_left = (bits == listed) == (g->f->rest[best->feature] == 1);
    chosen = bits;
  }
  g->work += node * hits;
  if (best->feature >= 0) cut_binary(g, path, best);
  return chosen;
}

/* The best split of the rows in `mask` by entries of the range; returns the rows of one side. */
static uint64_t block_search(rpo_grower *g, const block *b, const rpo_frame *frame, uint64_t mask,
                             entry_range *r, uint64_t path, best_split *best) {
  rpo_rng rng = rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0);
  int64_t from = bit_count(mask) == 2 ? draw_for_pair(g, r, mask, &rng) : -1;
  int64_t hits = 1;
  *best = no_split();
  if (from < 0) {
    keep_varying(g, r, mask);
    if (r->end == r->from) return 0;
    from = r->from;
    hits = draw_entries(g, from, r->end - from, &rng);
  }
  if (g->f->binary) return search_bits(g, b, frame, mask, from, hits, path, best);
  for (int64_t i = from; i < from + hits; i++) {
    const rpo_entry *const entry = &g->entries[i];
    row_list l = new_list(g, entry->feature, bit_count(mask), g->keys);
    for (uint64_t left = entry->rows & mask; left != 0; left &= left - 1) {
      int const bit = lowest_bit(left);
      l.keys[l.count++] = make_key(entry_code(g, entry, bit), b->rows[bit]);
    }
    (void)try_feature(g, frame, &l, path, best);
  }
  uint64_t chosen = 0;
  for (int64_t i = 0; i < best->side_rows; i++) {
    chosen |= (uint64_t)1 << (g->position[g->best_rows[i]] - b->start);
  }
  return chosen;
}

static rpo_status grow_in_block(rpo_grower *g, const block *b, int level, uint64_t mask,
                                entry_range r, int32_t id, int32_t start, int64_t depth,
                                uint64_t path);

/* The smaller child: its own totals, its own entries behind those of the parent. */
static rpo_status grow_small_child(rpo_grower *g, const block *b, int level, uint64_t mask,
                                   entry_range r, int32_t id, int32_t start, int64_t depth,
                                   uint64_t path) {
  int32_t rows[RPO_BLOCK];
  int64_t const n = block_rows(b, mask, rows);
  if (n == 1) {
    g->samples[start] = rows[0];
    return RPO_OK;
  }
  rpo_frame *const frame = rpo_grower_frame(g, level);
  if (frame == NULL) return rpo_fail_memory(g->err, "a tree");
  RPO_TRY(rpo_grower_entry_room(g, r.end + (r.end - r.from), 0));
  r.shared = 1;
  frame_add(g, frame, rows, n, 1);
  rpo_status const status = grow_in_block(g, b, level, mask, r, id, start, depth, path);
  frame_clear(g, frame, rows, n);
  return status;
}

static rpo_status grow_in_block(rpo_grower *g, const block *b, int level, uint64_t mask,
                                entry_range r, int32_t id, int32_t start, int64_t depth,
                                uint64_t path) {
  rpo_frame *const frame = &g->frames[level];
  for (;;) {
    int32_t rows[RPO_BLOCK];
    best_split best;
    int32_t const n = (int32_t)block_rows(b, mask, rows);
    int const leaf = node_is_leaf(g, frame, id, rows, n, depth);
    uint64_t const chosen = leaf ? 0 : block_search(g, b, frame, mask, &r, path, &best);
    if (leaf || !split_pays(g, frame, &best)) {
      memcpy(g->samples + start, rows, (size_t)n * sizeof *rows);
      return RPO_OK;
    }
    uint64_t const child[2] = {best.side_left ? chosen : mask & ~chosen,
                               best.side_left ? mask & ~chosen : chosen};
    int32_t const n_left = bit_count(child[0]);
    int32_t const begin[3] = {start, start + n_left, start + n};
    int const small = 2 * n_left <= n ? 0 : 1;
    int32_t ids[2];
    make_inner(g, id, &best, n_left, n - n_left);
    for (int c = 0; c < 2; c++) {
      RPO_TRY(rpo_grower_node(g, id, c, begin[c], begin[c + 1], &ids[c]));
    }
    RPO_TRY(grow_small_child(g, b, level + 1, child[small], r, ids[small], begin[small], depth + 1,
                             rpo_path(path, small)));
    int64_t const gone = block_rows(b, child[small], rows);
    frame_add(g, frame, rows, gone, -1);
    mask = child[1 - small];
    id = ids[1 - small];
    start = begin[1 - small];
    depth++;
    path = rpo_path(path, 1 - small);
  }
}

/* Fills the table of the block's entries; returns how many, -1 without memory. */
static int64_t fill_entries(rpo_grower *g, const block *b, int64_t n) {
  const rpo_features *const f = g->f;
  int64_t listed = 0, count = 0, codes = 0;
  for (int64_t i = 0; i < n; i++) listed += f->row_start[b->rows[i] + 1] - f->row_start[b->rows[i]];
  if (rpo_grower_entry_room(g, listed, listed) != RPO_OK) return -1;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t e = f->row_start[b->rows[i]]; e < f->row_start[b->rows[i] + 1]; e++) {
      int32_t const feature = f->row_cols[e];
      rpo_entry const first = {0, feature, -1};
      g->entries[count] = first;
      count += g->bits[feature] == 0;
      g->bits[feature] |= (uint64_t)1 << i;
    }
  }
  for (int64_t i = 0; i < count; i++) {
    rpo_entry *const entry = &g->entries[i];
    entry->rows = g->bits[entry->feature];
    g->bits[entry->feature] = 0;
    if (f->binary) continue;
    entry->codes = (int32_t)codes;
    codes += bit_count(entry->rows);
    g->slot[entry->feature] = entry->codes;
  }
  if (f->binary) return count;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t e = f->row_start[b->rows[i]]; e < f->row_start[b->rows[i] + 1]; e++) {
      g->block_codes[g->slot[f->row_cols[e]]++] = rpo_code_at(f->row_codes, f->width, e);
    }
  }
  for (int64_t i = 0; i < count; i++) g->slot[g->entries[i].feature] = 0;
  return count;
}

/* Grows node `id`, whose totals are in the frame of `level`. */
static rpo_status grow_block(rpo_grower *g, int level, int32_t id, int64_t depth, uint64_t path) {
  block b;
  int32_t const start = g->nodes[id].start;
  int64_t const n = g->nodes[id].end - start;
  b.start = start;
  memcpy(b.rows, g->samples + start, (size_t)n * sizeof *b.rows);
  uint64_t const mask = n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
  int64_t const count = fill_entries(g, &b, n);
  if (count < 0) return rpo_fail_memory(g->err, "a tree");
  entry_range const r = {0, count, 0};
  g->work += 100 * n;
  return grow_in_block(g, &b, level, mask, r, id, start, depth, path);
}
