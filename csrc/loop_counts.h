/* Large nodes of sparse binary features and whole labels: a table of counts, feature by label, says
 * what every feature's listed rows sum to. It follows the node down its chain of larger children, a
 * row that leaves taking its labels from its features: a candidate then costs one pass over the
 * labels, however many rows list it.
 *
 * The last count of a feature is the weight of its rows. Counts have 16 bits, sums of their products
 * 32: the table is kept where neither can overflow. */

static int may_count(const rpo_grower *g, const rpo_frame *frame) {
  return g->count_stride > 0 && frame->weight < 32768.0 &&
         frame->square + frame->weight * frame->weight < 2147483648.0;
}

static void count_row(rpo_grower *g, rpo_frame *frame, int32_t row, int32_t sign) {
  const rpo_features *const f = g->f;
  const int32_t *const label = g->t->index + g->t->start[row];
  int64_t const labels = g->t->start[row + 1] - g->t->start[row], stride = g->count_stride;
  int16_t const w = (int16_t)(sign * g->whole_weight[row]);
  for (int64_t e = f->row_start[row]; e < f->row_start[row + 1]; e++) {
    int16_t *const count = frame->counts + f->row_cols[e] * stride;
    frame->listed[f->row_cols[e]] += sign;
    count[stride - 1] += w;
    for (int64_t k = 0; k < labels; k++) count[label[k]] += w;
  }
}

/* Adds rows, `sign` times, to the columns' lists and to the table when there is one. */
static void listed_add(rpo_grower *g, rpo_frame *frame, const int32_t *rows, int64_t count,
                       int32_t sign) {
  const rpo_features *const f = g->f;
  if (!f->sparse) return;
  for (int64_t i = 0; i < count; i++) {
    if (frame->counted) {
      count_row(g, frame, rows[i], sign);
      continue;
    }
    for (int64_t e = f->row_start[rows[i]]; e < f->row_start[rows[i] + 1]; e++) {
      frame->listed[f->row_cols[e]] += sign;
    }
  }
}

/* The sums of a feature's listed rows. */
static side_sums counted_side(const rpo_grower *g, const rpo_frame *frame, const int16_t *total,
                              int32_t feature) {
  int64_t const stride = g->count_stride;
  const int16_t *const count = frame->counts + feature * stride;
  int32_t const weight = count[stride - 1];
  int32_t square = 0, dot = 0;
  for (int64_t j = 0; j < stride; j++) {
    square += count[j] * count[j];
    dot += count[j] * total[j];
  }
  side_sums const s = {(double)(square - weight * weight), (double)dot, (double)weight,
                       frame->listed[feature]};
  return s;
}

/* As search_sparse. */
static void search_counts(rpo_grower *g, rpo_frame *frame, int32_t start, int64_t node,
                          uint64_t path, best_split *best) {
  int16_t *const total = g->count_total;
  int64_t const candidates = draw_candidates(g, frame, node, path);
  for (int64_t j = 0; j < g->t->width; j++) total[j] = (int16_t)frame->whole[j];
  for (int64_t i = 0; i < candidates; i++) {
    side_sums const s = counted_side(g, frame, total, g->drawn[i]);
    if (!side_allowed(g, frame, node, &s) || !beats(frame, &s, &best->score)) continue;
    best->feature = g->drawn[i];
  }
  g->work += candidates * g->count_stride / 16;
  if (best->feature < 0) return;
  row_list l = new_list(g, best->feature, node, g->keys);
  list_by_column(g, start, node, &l);
  save_rows(g, l.keys, l.count, 1, best);
  best->side_left = l.rest == 1;
  cut_binary(g, path, best);
}
