/* The loop: statistics, split, partition. Depth first, the larger child goes on in its parent's
 * totals, from which the smaller child's are subtracted: a node costs its drawn features and the
 * smaller child, whatever its own size. */

/* Also notes the node's impurity. */
static int node_is_leaf(rpo_grower *g, const rpo_frame *frame, int32_t id, const int32_t *rows,
                        int64_t n, int64_t depth) {
  rpo_node *const node = &g->nodes[id];
  double const impurity = frame_impurity(g, frame, rows, n);
  node->impurity = impurity < 0.0 ? 0.0 : impurity;
  return impurity < 0.0 || depth >= g->o.max_depth || n < g->o.min_split || n < 2 * g->o.min_leaf ||
         frame->weight < 2.0 * g->min_leaf_weight;
}

static double split_gain(const rpo_grower *g, const rpo_frame *frame, const best_split *best) {
  return (best->score - frame->square / frame->weight) / g->total_weight;
}

static int split_pays(const rpo_grower *g, const rpo_frame *frame, const best_split *best) {
  if (best->feature < 0) return 0;
  return split_gain(g, frame, best) + 2.220446049250313e-16 >= g->o.min_decrease;
}

static void make_inner(rpo_grower *g, int32_t id, const best_split *best, int64_t n_left,
                       int64_t n_right) {
  rpo_node *const node = &g->nodes[id];
  node->feature = best->feature;
  node->threshold = threshold_of(g, best);
  /* Values missing later, though not here, follow the majority. */
  node->missing_left = (uint8_t)(best->missing_left >= 0 ? best->missing_left : n_left > n_right);
}

#include "loop_block.h"
#include "loop_gram.h"

/* Of one class a row, the totals that are looked at. |T|^2 of either side follows from the sums of the cut:
 * where all features have them, labels need not be summed (loop_classes.h). */
typedef struct class_totals {
  double square, weight;
} class_totals;

static void take_totals(rpo_frame *frame, const class_totals *known) {
  frame->square = known->square;
  frame->weight = frame->norm = known->weight;
}

static void divide_totals(const rpo_frame *frame, const side_sums *right, class_totals sides[2]) {
  sides[0].square = frame->square - 2.0 * right->dot + right->square;
  sides[0].weight = frame->weight - right->weight;
  sides[1].square = right->square;
  sides[1].weight = right->weight;
}

/* Once the root's totals are known. Best first, children wait: their parents' totals are gone. */
static int may_be_lean(const rpo_grower *g, const rpo_frame *root) {
  return g->o.by_class && g->o.by_class->all_few && sums_fit_lanes(g, root);
}

/* Grows node `id` in the frame of `level`; `constant`: the parent's known constant features; `known`: in
 * lean growth the node's totals, of all nodes but the root. */
static rpo_status grow_deep(rpo_grower *g, int level, int32_t id, int64_t depth, uint64_t path,
                            const uint8_t *constant, const class_totals *known) {
  rpo_frame *const frame = rpo_grower_frame(g, level);
  if (frame == NULL) return rpo_fail_memory(g->err, "a tree");
  int32_t const first = g->nodes[id].start, last = g->nodes[id].end;
  int32_t start = first, end = last;
  rpo_status status = RPO_OK;
  if (known != NULL) {
    take_totals(frame, known);
  } else {
    frame_add(g, frame, g->samples + start, end - start, 1);
  }
  if (level == 0) g->lean = may_be_lean(g, frame);
  int const block_only = g->f->sparse && end - start <= RPO_BLOCK;
  if (!block_only && may_count(g, frame)) status = rpo_grower_counts(g, frame);
  if (!block_only) listed_add(g, frame, g->samples + start, end - start, 1);
  if (constant != NULL) memcpy(frame->constant, constant, (size_t)g->f->cols);
  while (status == RPO_OK) {
    int32_t const n = end - start;
    best_split best;
    if (rpo_grower_poll(g)) {
      status = RPO_ECANCELED;
      break;
    }
    if (g->f->sparse && n <= (frame->counted ? RPO_BLOCK_COUNTED : RPO_BLOCK)) {
      frame->counted = 0;
      if (!block_only) listed_add(g, frame, g->samples + start, n, -1);
      status = grow_block(g, level, id, depth, path);
      break;
    }
    if (may_gram(g, n)) {
      status = grow_gram(g, level, id, depth, path);
      break;
    }
    int const leaf = node_is_leaf(g, frame, id, g->samples + start, n, depth);
    if (!leaf) search(g, frame, start, n, path, &best);
    if (leaf || !split_pays(g, frame, &best)) {
      frame->counted = 0;
      listed_add(g, frame, g->samples + start, n, -1);
      break;
    }
    int32_t const middle = partition(g, start, end, &best);
    int32_t const begin[3] = {start, middle, end};
    int const small = middle - start <= end - middle ? 0 : 1;
    int32_t ids[2];
    make_inner(g, id, &best, middle - start, end - middle);
    for (int c = 0; c < 2 && status == RPO_OK; c++) {
      status = rpo_grower_node(g, id, c, begin[c], begin[c + 1], &ids[c]);
    }
    if (status != RPO_OK) break;
    int32_t const small_rows = begin[small + 1] - begin[small];
    int32_t const *const moved = g->samples + begin[small];
    class_totals sides[2];
    if (g->lean) {
      divide_totals(frame, &best.right, sides);
      take_totals(frame, &sides[1 - small]);
    } else {
      frame_add(g, frame, moved, small_rows, -1);
      listed_add(g, frame, moved, small_rows, -1);
    }
    if (small_rows > 1) {
      status = grow_deep(g, level + 1, ids[small], depth + 1, rpo_path(path, small),
                         g->f->sparse ? NULL : frame->constant, g->lean ? &sides[small] : NULL);
    }
    if (status != RPO_OK) break;
    id = ids[1 - small];
    start = begin[1 - small];
    end = begin[2 - small];
    depth++;
    path = rpo_path(path, 1 - small);
  }
  frame_clear(g, frame, g->samples + first, known == NULL ? last - first : 0); /* of sums, if any */
  return status;
}

/* ---- Best first ---- */

static int before(const rpo_waiting *a, const rpo_waiting *b) {
  return a->gain > b->gain || (a->gain == b->gain && a->node < b->node);
}

static void heap_push(rpo_grower *g, int64_t *count, rpo_waiting item) {
  int64_t i = (*count)++;
  while (i > 0 && before(&item, &g->heap[(i - 1) / 2])) {
    g->heap[i] = g->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  g->heap[i] = item;
}

static rpo_waiting heap_pop(rpo_grower *g, int64_t *count) {
  rpo_waiting const top = g->heap[0];
  rpo_waiting const item = g->heap[--*count];
  int64_t i = 0;
  for (int64_t child = 1; child < *count; child = 2 * i + 1) {
    if (child + 1 < *count && before(&g->heap[child + 1], &g->heap[child])) child++;
    if (!before(&g->heap[child], &item)) break;
    g->heap[i] = g->heap[child];
    i = child;
  }
  g->heap[i] = item;
  return top;
}

/* Finds the split of a node and, when there is one, queues it. */
static rpo_status consider(rpo_grower *g, int64_t *count, int32_t id, int32_t depth,
                           uint64_t path) {
  rpo_frame *const frame = rpo_grower_frame(g, 0);
  if (frame == NULL) return rpo_fail_memory(g->err, "a tree");
  int32_t const start = g->nodes[id].start, end = g->nodes[id].end, n = end - start;
  int32_t *const rows = g->samples + start;
  best_split best;
  frame_add(g, frame, rows, n, 1);
  listed_add(g, frame, rows, n, 1);
  if (!g->f->sparse) memset(frame->constant, 0, (size_t)g->f->cols);
  int const leaf = node_is_leaf(g, frame, id, rows, n, depth);
  if (!leaf) search(g, frame, start, n, path, &best);
  if (!leaf && split_pays(g, frame, &best)) {
    rpo_waiting item;
    memset(&item, 0, sizeof item);
    item.path = path;
    item.gain = split_gain(g, frame, &best);
    item.node = id;
    item.depth = depth;
    item.middle = partition(g, start, end, &best);
    item.feature = best.feature;
    item.threshold = threshold_of(g, &best);
    item.missing_left =
        (uint8_t)(best.missing_left >= 0 ? best.missing_left : 2 * (item.middle - start) > n);
    heap_push(g, count, item);
  }
  frame_clear(g, frame, rows, n);
  listed_add(g, frame, rows, n, -1);
  return rpo_grower_poll(g) ? RPO_ECANCELED : RPO_OK;
}

static rpo_status grow_best_first(rpo_grower *g, int32_t root, uint64_t path) {
  int64_t waiting = 0, leaves = 1;
  RPO_TRY(consider(g, &waiting, root, 0, path));
  while (waiting > 0 && leaves < g->o.max_leaves) {
    rpo_waiting const item = heap_pop(g, &waiting);
    rpo_node *const node = &g->nodes[item.node];
    int32_t const begin[3] = {node->start, item.middle, node->end};
    node->feature = item.feature;
    node->threshold = item.threshold;
    node->missing_left = item.missing_left;
    leaves++;
    for (int c = 0; c < 2; c++) {
      int32_t id;
      RPO_TRY(rpo_grower_node(g, item.node, c, begin[c], begin[c + 1], &id));
      RPO_TRY(consider(g, &waiting, id, item.depth + 1, rpo_path(item.path, c)));
    }
  }
  return RPO_OK;
}

static rpo_status grow(rpo_grower *g, int64_t rows, uint64_t path) {
  int32_t root;
  RPO_TRY(rpo_grower_node(g, -1, 0, 0, (int32_t)rows, &root));
  if (g->o.max_leaves > 0) return grow_best_first(g, root, path);
  rpo_frame *const frame = rpo_grower_frame(g, 0);
  if (frame == NULL) return rpo_fail_memory(g->err, "a tree");
  if (!g->f->sparse) memset(frame->constant, 0, (size_t)g->f->cols);
  return grow_deep(g, 0, root, 0, path, NULL, NULL);
}
