/* Small nodes of sums of many columns. Where a node has fewer rows than its target has columns, sums of
 * columns are the long way round: all that the score asks of a side S is |S|^2 and S.T, and
 *   |S + w z|^2 = |S|^2 + 2 w S.z + w^2 |z|^2.
 * So the rows' products z_i.z_j may stand for the rows. They are worked out once for a node and
 * everything beneath it: there row i is the vector of its products, whose width is the node's rows. */
#if HAVE_LANES

static inline int64_t gram_stride(int64_t n) { return (n + 7) / 8 * 8; }

/* A product costs as much as a row's part in a split of one feature; a row has n / 2 of them. */
static int may_gram(const rpo_grower *g, int64_t n) {
  return g->kind == RPO_KIND_SUMS && !g->f->sparse && n <= RPO_GRAM_ROWS && n <= g->t->stride &&
         n <= 8 * g->o.max_features;
}

static void gram_fill(const rpo_grower *g, const int32_t *rows, int64_t n, double *gram) {
  enum { AT_ONCE = 4 };
  int64_t const stride = gram_stride(n), count = g->t->stride / 8;
  for (int64_t i = 0; i < n; i++) {
    const lanes *const a = (const lanes *)(const void *)(g->t->z + rows[i] * g->t->stride);
    for (int64_t j = i; j < n; j += AT_ONCE) {
      const lanes *b[AT_ONCE];
      lanes sum[AT_ONCE];
      memset(sum, 0, sizeof sum);
      for (int64_t k = 0; k < AT_ONCE; k++) {
        int32_t const row = rows[j + k < n ? j + k : n - 1];
        b[k] = (const lanes *)(const void *)(g->t->z + row * g->t->stride);
      }
      for (int64_t c = 0; c < count; c++) {
        for (int k = 0; k < AT_ONCE; k++) sum[k] += a[c] * b[k][c];
      }
      for (int64_t k = 0; k < AT_ONCE && j + k < n; k++) {
        gram[i * stride + j + k] = gram[(j + k) * stride + i] = lanes_sum(&sum[k]);
      }
    }
    for (int64_t j = n; j < stride; j++) gram[i * stride + j] = 0.0;
    if (rpo_poll(g->job, g->thread)) return; /* gram_grow will know */
  }
}

/* The products among some of the rows, `to` in place or behind. Their places are where they were. */
static void gram_take(rpo_grower *g, const double *from, int64_t n, const int32_t *rows,
                      int64_t count, double *to) {
  int64_t const stride = gram_stride(n), own = gram_stride(count);
  for (int64_t i = 0; i < count; i++) g->scratch[i] = g->position[rows[i]];
  for (int64_t i = 0; i < count; i++) {
    const double *const row = from + g->scratch[i] * stride;
    for (int64_t j = 0; j < count; j++) to[i * own + j] = row[g->scratch[j]];
    for (int64_t j = count; j < own; j++) to[i * own + j] = 0.0;
  }
}

/* Rows are known by their places from here on; by row: its product with the node's total. */
static void gram_enter(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t n,
                       const double *gram) {
  int64_t const stride = gram_stride(n);
  g->gram = gram;
  g->gram_stride = stride;
  memset(g->gram_dot, 0, (size_t)stride * sizeof *g->gram_dot);
  frame->square = frame->norm = frame->weight = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double const w = g->weight[rows[i]];
    g->position[rows[i]] = (int32_t)i;
    gram_add(g->gram_dot, w, gram + i * stride, stride);
    frame->norm += w * gram[i * stride + i];
    frame->weight += w;
  }
  for (int64_t i = 0; i < n; i++) frame->square += g->weight[rows[i]] * g->gram_dot[i];
}

/* As grow_deep. `gram`: the products of the node's rows, with room behind them. */
static rpo_status gram_grow(rpo_grower *g, int level, int32_t id, int64_t depth, uint64_t path,
                            double *gram) {
  rpo_frame *const frame = &g->frames[level];
  int32_t start = g->nodes[id].start, end = g->nodes[id].end;
  rpo_status status = RPO_OK;
  while (status == RPO_OK) {
    int32_t const n = end - start;
    int32_t *const rows = g->samples + start;
    best_split best;
    if (rpo_grower_poll(g)) {
      status = RPO_ECANCELED;
      break;
    }
    gram_enter(g, frame, rows, n, gram);
    if (node_is_leaf(g, frame, id, rows, n, depth)) break;
    search(g, frame, start, n, path, &best);
    if (!split_pays(g, frame, &best)) break;
    int32_t const middle = partition(g, start, end, &best);
    int32_t const begin[3] = {start, middle, end};
    int const small = middle - start <= end - middle ? 0 : 1;
    int32_t ids[2];
    make_inner(g, id, &best, middle - start, end - middle);
    for (int c = 0; c < 2 && status == RPO_OK; c++) {
      status = rpo_grower_node(g, id, c, begin[c], begin[c + 1], &ids[c]);
    }
    int32_t const small_rows = begin[small + 1] - begin[small];
    if (status == RPO_OK && small_rows > 1) {
      rpo_frame *const next = rpo_grower_frame(g, level + 1);
      double *const behind = gram + n * gram_stride(n);
      if (next == NULL) return rpo_fail_memory(g->err, "a tree");
      memcpy(next->constant, frame->constant, (size_t)g->f->cols);
      gram_take(g, gram, n, g->samples + begin[small], small_rows, behind);
      status = gram_grow(g, level + 1, ids[small], depth + 1, rpo_path(path, small), behind);
    }
    if (status != RPO_OK) break;
    id = ids[1 - small];
    start = begin[1 - small];
    end = begin[2 - small];
    gram_take(g, gram, n, g->samples + start, end - start, gram);
    depth++;
    path = rpo_path(path, 1 - small);
  }
  frame->square = frame->norm = frame->weight = 0.0;
  return status;
}

static rpo_status grow_gram(rpo_grower *g, int level, int32_t id, int64_t depth, uint64_t path) {
  const rpo_node *const node = &g->nodes[id];
  int64_t const n = node->end - node->start;
  gram_fill(g, g->samples + node->start, n, g->gram_room);
  g->work += n * n;
  g->kind = RPO_KIND_GRAM;
  rpo_status const status = gram_grow(g, level, id, depth, path, g->gram_room);
  g->kind = RPO_KIND_SUMS;
  return status;
}
#else
static int may_gram(const rpo_grower *g, int64_t n) {
  (void)g, (void)n;
  return 0;
}
static rpo_status grow_gram(rpo_grower *g, int level, int32_t id, int64_t depth, uint64_t path) {
  (void)g, (void)level, (void)id, (void)depth, (void)path;
  return RPO_OK;
}
#endif
