/* Splits of sums of many columns: all drawn features together, a panel of columns at a time. A row's
 * panel comes into a near cache once for all of them, and the sums of a side stay in registers.
 *
 * Of best cuts, a feature's rows are put in the order of their codes. When row i joins the side S,
 *   |S + v|^2 = |S|^2 + 2 S.v + |v|^2,   v = w z,
 * where only S.v depends on the order: it is added up over the panels, row by row. Of random cuts, S
 * itself is what is asked for. */
#if HAVE_LANES

enum { ORDERS = 64, SIDES = 16 };   /* features of a batch, of best cuts and of random ones */
enum { PANEL = 8, WIDE_AHEAD = 8 }; /* lanes of a panel; rows fetched ahead */
enum { WIDE_NEAR = 1536 };          /* rows whose widest panel stays in a near cache */

/* Expands `call`, which uses the constant `count`, over the panels of a row, at most `widest` lanes. */
#define FOR_PANELS(g, widest, call)                          \
  do {                                                       \
    int64_t const all_ = (g)->t->stride / 8;                 \
    int64_t first = 0;                                       \
    for (; (widest) >= 8 && first + 8 <= all_; first += 8) { \
      enum { count = 8 };                                    \
      call;                                                  \
    }                                                        \
    for (; first + 4 <= all_; first += 4) {                  \
      enum { count = 4 };                                    \
      call;                                                  \
    }                                                        \
    for (; first < all_; first++) {                          \
      enum { count = 1 };                                    \
      call;                                                  \
    }                                                        \
  } while (0)

ALWAYS_INLINE const lanes *panel_of(const rpo_grower *g, int32_t row, int64_t first) {
  return (const lanes *)(const void *)(g->t->z + row * g->t->stride) + first;
}

ALWAYS_INLINE void fetch_panel(int count, const rpo_grower *g, const int32_t *rows, int64_t i,
                               int64_t node, int64_t first) {
  if (i >= node) return;
  for (int c = 0; c < count; c++) __builtin_prefetch(panel_of(g, rows[i], first) + c);
}

/* ---- Best cuts ---- */

/* Of one feature: the places of rows in the node in the order of their codes, ~place where the next row
 * has another code. */
typedef struct wide_order {
  int32_t feature;
  int32_t *place;
  double *cross; /* S.v when the row joins */
} wide_order;

static inline int32_t ordered(int32_t entry) { return entry < 0 ? ~entry : entry; }

/* Returns 1 when the feature is constant in the node. */
static int put_in_order(rpo_grower *g, const int32_t *rows, int64_t node, wide_order *o) {
  row_list l = new_list(g, o->feature, node, g->keys);
  l.rest = -1; /* nothing is left out */
  gather_dense(g, rows, &l);
  const uint64_t *const keys = sort_by_code(l.keys, g->keys2, node, l.bins);
  if (key_code(keys[0]) == key_code(keys[node - 1])) return 1;
  for (int64_t i = 0; i < node; i++) {
    int32_t const place = g->position[key_row(keys[i])];
    int const ends = i + 1 < node && key_code(keys[i]) != key_code(keys[i + 1]);
    o->place[i] = ends ? ~place : place;
    o->cross[i] = 0.0;
  }
  return 0;
}

/* A panel of w z of the node's rows, one behind the other. */
ALWAYS_INLINE void fill_panel(int count, const rpo_grower *g, int64_t first, const int32_t *rows,
                              int64_t node) {
  lanes *const panel = (lanes *)(void *)g->wide_panel;
  for (int64_t i = 0; i < node; i++) {
    fetch_panel(count, g, rows, i + WIDE_AHEAD, node, first);
    const lanes *const z = panel_of(g, rows[i], first);
    double const w = g->weight[rows[i]];
    for (int c = 0; c < count; c++) panel[i * count + c] = w * z[c];
  }
}

ALWAYS_INLINE void cross_panel(int count, const rpo_grower *g, int64_t node, wide_order *o) {
  const lanes *const panel = (const lanes *)(const void *)g->wide_panel;
  lanes sum[PANEL];
  memset(sum, 0, sizeof sum);
  for (int64_t i = 0; i + 1 < node; i++) {
    const lanes *const v = panel + (int64_t)ordered(o->place[i]) * count;
    lanes cross = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (int c = 0; c < count; c++) {
      cross += sum[c] * v[c];
      sum[c] += v[c];
    }
    o->cross[i] += lanes_sum(&cross);
  }
}

ALWAYS_INLINE void cross_panels(int count, const rpo_grower *g, int64_t first, const int32_t *rows,
                                int64_t node, wide_order *o, int n) {
  fill_panel(count, g, first, rows, node);
  for (int k = 0; k < n; k++) cross_panel(count, g, node, &o[k]);
}

static void try_order(rpo_grower *g, const rpo_frame *frame, const int32_t *rows, int64_t node,
                      const wide_order *o, best_split *best) {
  const rpo_features *const f = g->f;
  side_sums s = {0.0, 0.0, 0.0, 0};
  int64_t won = 0;
  for (int64_t i = 0; i + 1 < node; i++) {
    int32_t const row = rows[ordered(o->place[i])];
    double const w = g->weight[row];
    s.square += 2.0 * o->cross[i] + w * w * g->t->norm[row];
    s.dot += g->wide_dot[row];
    s.weight += w;
    s.rows++;
    if (o->place[i] >= 0 || !side_allowed(g, frame, node, &s)) continue;
    if (!beats(frame, &s, &best->score)) continue;
    won = i + 1;
  }
  if (won == 0) return;
  int64_t const last = rows[ordered(o->place[won - 1])], next = rows[ordered(o->place[won])];
  best->feature = o->feature;
  best->below = rpo_code_at(f->row_codes, f->width, last * f->cols + o->feature);
  best->above = rpo_code_at(f->row_codes, f->width, next * f->cols + o->feature);
  best->side_left = 1;
  best->missing_left = -1;
}

static void try_orders(rpo_grower *g, const rpo_frame *frame, const int32_t *rows, int64_t node,
                       wide_order *o, int n, best_split *best) {
  int64_t const widest = node <= WIDE_NEAR ? PANEL : PANEL / 2;
  FOR_PANELS(g, widest, {
    cross_panels(count, g, first, rows, node, o, n);
    if (rpo_poll(g->job, g->thread)) return;
  });
  for (int c = 0; c < n; c++) try_order(g, frame, rows, node, &o[c], best);
}

/* ---- Random cuts ---- */

/* One side of a feature's cut: that with fewer rows. */
typedef struct wide_side {
  int32_t feature;
  drawn_cut cut;
  side_sums s;
} wide_side;

/* Returns 1 when the feature is constant in the node. Side `c` is a bit of what scratch has by row. */
static int mark_side(rpo_grower *g, const int32_t *rows, int64_t node, uint64_t path, int c,
                     wide_side *a) {
  uint8_t *const left = (uint8_t *)g->best_rows;
  if (mark_left(g, rows, node, a->feature, path, left, &a->cut)) return 1;
  int const fewer = fewer_on_left(left, node);
  memset(&a->s, 0, sizeof a->s);
  for (int64_t i = 0; i < node; i++) {
    int const in = left[i] == fewer;
    g->scratch[i] = (c == 0 ? 0 : g->scratch[i]) | in << c;
    a->s.weight += in * g->weight[rows[i]];
    a->s.rows += in;
  }
  return 0;
}

ALWAYS_INLINE void side_panel(int count, const rpo_grower *g, const rpo_frame *frame, int64_t first,
                              const int32_t *rows, int64_t node, int n, wide_side *a) {
  lanes sum[SIDES][PANEL];
  memset(sum, 0, (size_t)n * sizeof sum[0]);
  for (int64_t i = 0; i < node; i++) {
    fetch_panel(count, g, rows, i + WIDE_AHEAD, node, first);
    const lanes *const z = panel_of(g, rows[i], first);
    double const w = g->weight[rows[i]];
    lanes v[PANEL];
    for (int c = 0; c < count; c++) v[c] = w * z[c];
    for (uint32_t in = (uint32_t)g->scratch[i]; in != 0; in &= in - 1u) {
      lanes *const own = sum[__builtin_ctz(in)];
      for (int c = 0; c < count; c++) own[c] += v[c];
    }
  }
  const lanes *const total = (const lanes *)(const void *)frame->sum + first;
  for (int k = 0; k < n; k++) {
    lanes square = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, product = square;
    for (int c = 0; c < count; c++) {
      square += sum[k][c] * sum[k][c];
      product += sum[k][c] * total[c];
    }
    a[k].s.square += lanes_sum(&square);
    a[k].s.dot += lanes_sum(&product);
  }
}

static void try_sides(rpo_grower *g, const rpo_frame *frame, const int32_t *rows, int64_t node,
                      wide_side *a, int n, best_split *best) {
  FOR_PANELS(g, PANEL, {
    side_panel(count, g, frame, first, rows, node, n, a);
    if (rpo_poll(g->job, g->thread)) return;
  });
  for (int c = 0; c < n; c++) {
    if (!side_allowed(g, frame, node, &a[c].s) || !beats(frame, &a[c].s, &best->score)) continue;
    take_cut(a[c].feature, &a[c].cut, best);
  }
}

/* ---- Both ---- */

/* Panels of more rows would take too much memory a thread. */
static int searches_wide(const rpo_grower *g, int64_t node) {
  return g->kind == RPO_KIND_SUMS && !g->f->has_missing && node <= RPO_WIDE_ROWS;
}

static void search_wide(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                        uint64_t path, best_split *best) {
  drawer d = {rpo_rng_new(g->o.seed, RPO_DRAW_NODE, path, 0), 0, (int32_t)g->f->cols};
  int64_t const fit = RPO_WIDE_ORDERED / node;
  int const most = g->o.random_cut ? SIDES : (fit < ORDERS ? (int)fit : ORDERS);
  int64_t usable = 0;
  for (int64_t i = 0; i < node && !g->o.random_cut; i++) {
    g->position[rows[i]] = (int32_t)i;
    g->wide_dot[rows[i]] =
        g->weight[rows[i]] * dot(g->t->z + rows[i] * g->t->stride, frame->sum, g->t->stride);
  }
  while (draw_more(g, &d, usable)) {
    wide_order order[ORDERS];
    wide_side sides[SIDES];
    int n = 0;
    while (n < most && draw_more(g, &d, usable + n)) {
      int32_t const feature = draw_feature(g, &d);
      if (frame->constant[feature]) continue;
      int constant;
      if (g->o.random_cut) {
        sides[n].feature = feature;
        constant = mark_side(g, rows, node, path, n, &sides[n]);
      } else {
        wide_order const o = {feature, g->wide_place + n * node, g->wide_cross + n * node};
        order[n] = o;
        constant = put_in_order(g, rows, node, &order[n]);
      }
      frame->constant[feature] = (uint8_t)constant;
      n += !constant;
    }
    if (n > 0 && g->o.random_cut) {
      try_sides(g, frame, rows, node, sides, n, best);
    } else if (n > 0) {
      try_orders(g, frame, rows, node, order, n, best);
    }
    usable += n;
    g->work += n * node;
    if (rpo_grower_poll(g)) break;
  }
  undo_draws(g, &d);
}
#else
static int searches_wide(const rpo_grower *g, int64_t node) {
  (void)g, (void)node;
  return 0;
}
static void search_wide(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t node,
                        uint64_t path, best_split *best) {
  (void)g, (void)frame, (void)rows, (void)node, (void)path, (void)best;
}
#endif
