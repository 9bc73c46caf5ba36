#include "grower.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "mem.h"
#include "rng.h"

void rpo_tree_release(rpo_tree *t) {
  static const rpo_tree none;
  if (memcmp(t, &none, sizeof none) == 0) return; /* of millions not begun no page is written to */
  rpo_delete(t->feature);
  rpo_delete(t->left);
  rpo_delete(t->right);
  rpo_delete(t->threshold);
  rpo_delete(t->missing_left);
  rpo_delete(t->impurity);
  rpo_delete(t->leaf_impurity);
  rpo_delete(t->leaf_weight);
  rpo_delete(t->sample_weight);
  rpo_delete(t->leaf_start);
  rpo_delete(t->rows);
  memset(t, 0, sizeof *t);
}

/* While k <= p - N the fewest hits are 0 and P(0 of N + 1) = P(0 of N) (p - k - N) / (p - N). Beyond,
 * all u = p - N unwanted features are drawn: P = C(k, u) / C(p, u). */
void rpo_fill_no_hit(int64_t p, int64_t k, double *no_hit) {
  double chance = 1.0;
  for (int64_t n = 0; n <= p - k; n++) {
    no_hit[n] = chance;
    chance *= (double)(p - k - n) / (double)(p - n);
  }
  chance = 1.0;
  for (int64_t unwanted = 0; unwanted < k; unwanted++) {
    no_hit[p - unwanted] = chance;
    chance *= (double)(k - unwanted) / (double)(p - unwanted);
  }
}

static void wide_release(rpo_grower *g) {
  rpo_delete(g->wide_place);
  rpo_delete(g->wide_cross);
  rpo_delete(g->wide_panel);
  rpo_delete(g->wide_dot);
  rpo_delete(g->gram_room);
  rpo_delete(g->gram_dot);
}

void rpo_grower_free(rpo_grower *g) {
  if (g == NULL) return;
  for (int level = 0; level < RPO_FRAMES; level++) {
    rpo_delete(g->frames[level].sum);
    rpo_delete(g->frames[level].whole);
    rpo_delete(g->frames[level].listed);
    rpo_delete(g->frames[level].counts);
    rpo_delete(g->frames[level].constant);
  }
  rpo_delete(g->whole_weight);
  rpo_delete(g->nodes);
  rpo_delete(g->samples);
  rpo_delete(g->position);
  rpo_delete(g->scratch);
  rpo_delete(g->side);
  rpo_delete(g->side_whole);
  rpo_delete(g->count_total);
  rpo_delete(g->permutation);
  rpo_delete(g->swaps);
  rpo_delete(g->drawn);
  rpo_delete(g->no_hit);
  rpo_delete(g->keys);
  rpo_delete(g->keys2);
  rpo_delete(g->slot);
  rpo_delete(g->best_rows);
  rpo_delete(g->bits);
  rpo_delete(g->entries);
  rpo_delete(g->block_codes);
  rpo_delete(g->heap);
  wide_release(g);
  rpo_delete(g);
}

rpo_status rpo_grower_new(const rpo_features *f, const rpo_grow_options *options, rpo_grower **out,
                          rpo_error *err) {
  rpo_grower *const g = rpo_new_zero(1, (int64_t)sizeof *g);
  if (g == NULL) return rpo_fail_memory(err, "a tree");
  g->f = f;
  g->o = *options;
  g->key_room = f->sparse && f->rows < 65536 ? 65536 : f->rows;
  g->whole_weight = rpo_new(f->rows, 4);
  g->samples = rpo_new(f->rows, 4);
  g->position = rpo_new(f->rows, 4);
  g->scratch = rpo_new(f->rows + RPO_WRITE_BEYOND, 4);
  g->permutation = rpo_new(f->cols, 4);
  g->swaps = rpo_new(f->cols, 4);
  g->drawn = rpo_new(f->cols, 4);
  g->no_hit = rpo_new(f->cols + 1, 8);
  g->keys = rpo_new(g->key_room + 1, 8);
  g->keys2 = rpo_new(f->rows + 1, 8);
  g->slot = rpo_new_zero(f->cols, 4);
  g->best_rows = rpo_new(f->rows, 4);
  g->bits = rpo_new_zero(f->cols, 8);
  if (g->whole_weight == NULL || g->samples == NULL || g->position == NULL || g->scratch == NULL ||
      g->permutation == NULL || g->swaps == NULL || g->drawn == NULL || g->no_hit == NULL ||
      g->keys == NULL || g->keys2 == NULL || g->slot == NULL || g->best_rows == NULL ||
      g->bits == NULL) {
    rpo_grower_free(g);
    return rpo_fail_memory(err, "a tree");
  }
  for (int64_t j = 0; j < f->cols; j++) g->permutation[j] = (int32_t)j;
  rpo_fill_no_hit(f->cols, options->max_features, g->no_hit);
  *out = g;
  return RPO_OK;
}

rpo_frame *rpo_grower_frame(rpo_grower *g, int level) {
  if (level >= RPO_FRAMES) return NULL;
  rpo_frame *const frame = &g->frames[level];
  if (g->f->sparse && frame->listed == NULL) {
    frame->listed = rpo_new_zero(g->f->cols, 4);
    if (frame->listed == NULL) return NULL;
  }
  if (!g->f->sparse && frame->constant == NULL) {
    frame->constant = rpo_new_zero(g->f->cols, 1);
    if (frame->constant == NULL) return NULL;
  }
  if (g->whole && frame->whole == NULL) frame->whole = rpo_new_zero(g->frame_width, 4);
  if (!g->whole && frame->sum == NULL) frame->sum = rpo_new_zero(g->frame_width, 8);
  return (g->whole ? (void *)frame->whole : (void *)frame->sum) == NULL ? NULL : frame;
}

rpo_status rpo_grower_counts(rpo_grower *g, rpo_frame *frame) {
  int64_t const bytes = g->f->cols * g->count_stride * (int64_t)sizeof *frame->counts;
  if (frame->counts == NULL) frame->counts = rpo_new(bytes, 1);
  if (frame->counts == NULL) return rpo_fail_memory(g->err, "a tree");
  memset(frame->counts, 0, (size_t)bytes);
  frame->counted = 1;
  return RPO_OK;
}

rpo_status rpo_grower_node(rpo_grower *g, int32_t parent, int side, int32_t start, int32_t end,
                           int32_t *id) {
  if (g->n_nodes == g->node_room) {
    int64_t const room = g->node_room == 0 ? 256 : 2 * g->node_room;
    rpo_node *const nodes = rpo_grow(g->nodes, g->n_nodes, room, (int64_t)sizeof *nodes);
    if (nodes == NULL) return rpo_fail_memory(g->err, "a tree");
    g->nodes = nodes;
    g->node_room = room;
  }
  rpo_node const node = {0.0, 0.0, parent, {-1, -1}, -1, start, end, 0};
  *id = (int32_t)g->n_nodes++;
  g->nodes[*id] = node;
  if (parent >= 0) g->nodes[parent].child[side] = *id;
  return RPO_OK;
}

rpo_status rpo_grower_entry_room(rpo_grower *g, int64_t entries, int64_t codes) {
  if (entries > g->entry_room) {
    rpo_entry *const larger =
        rpo_grow(g->entries, g->entry_room, 2 * entries, (int64_t)sizeof *larger);
    if (larger == NULL) return rpo_fail_memory(g->err, "a tree");
    g->entries = larger;
    g->entry_room = 2 * entries;
  }
  if (codes > g->block_code_room && !g->f->binary) {
    int32_t *const larger = rpo_grow(g->block_codes, g->block_code_room, 2 * codes, 4);
    if (larger == NULL) return rpo_fail_memory(g->err, "a tree");
    g->block_codes = larger;
    g->block_code_room = 2 * codes;
  }
  return RPO_OK;
}

static int kind_of(const rpo_target *t, int whole) {
  if (t->z != NULL) {
    switch (t->stride) {
      case 1: return RPO_KIND_SUMS_1;
      case 2: return RPO_KIND_SUMS_2;
      case 4: return RPO_KIND_SUMS_4;
      case 8: return RPO_KIND_SUMS_8;
      case 16: return RPO_KIND_SUMS_16;
      default: return RPO_KIND_SUMS;
    }
  }
  if (!whole || t->value != NULL) return RPO_KIND_REAL;
  return rpo_target_is_classes(t) ? RPO_KIND_CLASSES : RPO_KIND_WHOLE;
}

/* Tables pay where a row lists few features for those that are drawn: what leaves a node costs a row's
 * features, what it saves the walk of the drawn ones. They have to stay in a near cache. */
static int64_t count_stride(const rpo_grower *g, const rpo_target *t) {
  const rpo_features *const f = g->f;
  int64_t const stride = (t->width + 32) / 32 * 32;
  int const fits = stride <= RPO_COUNTS / f->cols;
  if (!f->sparse || !f->binary || !fits) return 0;
  return f->row_start[f->rows] <= 2 * g->o.max_features * f->rows ? stride : 0;
}

/* For sums of many columns: some features' rows in order, a panel of 64 columns, and the products of a small
 * node's rows, of a child's behind its parent's: no more than 1 + 1/4 + 1/16 ... times the first. */
static rpo_status fit_wide(rpo_grower *g, rpo_error *err) {
  int64_t const rows = g->f->rows < RPO_WIDE_ROWS ? g->f->rows : RPO_WIDE_ROWS;
  int64_t const ordered = 64 * rows < RPO_WIDE_ORDERED ? 64 * rows : RPO_WIDE_ORDERED;
  if (g->kind != RPO_KIND_SUMS || g->f->sparse || g->gram_room != NULL) return RPO_OK;
  if (!g->o.random_cut) {
    g->wide_place = rpo_new(ordered, 4);
    g->wide_cross = rpo_new(ordered, 8);
    g->wide_panel = rpo_new(64 * rows, 8);
    g->wide_dot = rpo_new(g->f->rows, 8);
    if (g->wide_place == NULL || g->wide_cross == NULL || g->wide_panel == NULL ||
        g->wide_dot == NULL) {
      return rpo_fail_memory(err, "a tree");
    }
  }
  g->gram_dot = rpo_new(RPO_GRAM_ROWS, 8);
  g->gram_room = rpo_new(RPO_GRAM_ROWS * RPO_GRAM_ROWS / 2 * 3, 8);
  return g->gram_dot == NULL || g->gram_room == NULL ? rpo_fail_memory(err, "a tree") : RPO_OK;
}

/* Room for the target's sums, kept while the target's shape stays. */
static rpo_status fit_target(rpo_grower *g, const rpo_target *t, int whole, rpo_error *err) {
  int64_t const width = t->z != NULL ? t->stride : (t->width > 0 ? t->width : 1);
  g->kind = kind_of(t, whole);
  int const integers = g->kind == RPO_KIND_CLASSES || g->kind == RPO_KIND_WHOLE;
  if (g->side == NULL || width > g->frame_width || integers != g->whole) {
    for (int level = 0; level < RPO_FRAMES; level++) {
      rpo_delete(g->frames[level].sum);
      rpo_delete(g->frames[level].whole);
      rpo_delete(g->frames[level].counts);
      g->frames[level].counts = NULL;
      g->frames[level].sum = NULL;
      g->frames[level].whole = NULL;
    }
    rpo_delete(g->side);
    rpo_delete(g->side_whole);
    rpo_delete(g->count_total);
    g->count_stride = integers ? count_stride(g, t) : 0;
    g->count_total = rpo_new_zero(g->count_stride, sizeof *g->count_total);
    g->side = rpo_new_zero(width, 8);
    g->side_whole = rpo_new_zero(width, 4);
    g->frame_width = width;
    if (g->side == NULL || g->side_whole == NULL || g->count_total == NULL)
      return rpo_fail_memory(err, "a tree");
  }
  g->whole = integers;
  g->t = t;
  return RPO_OK;
}

rpo_status rpo_tree_from_nodes(const rpo_node *nodes, int64_t n_nodes, const int32_t *samples,
                               int64_t rows, const double *weight, rpo_tree *out, rpo_error *err) {
  rpo_tree t;
  memset(&t, 0, sizeof t);
  for (int64_t i = 0; i < n_nodes; i++) t.n_inner += nodes[i].feature >= 0;
  t.n_leaves = t.n_inner + 1;
  t.n_rows = rows;
  t.feature = rpo_new(t.n_inner, 4);
  t.left = rpo_new(t.n_inner, 4);
  t.right = rpo_new(t.n_inner, 4);
  t.threshold = rpo_new(t.n_inner, 8);
  t.missing_left = rpo_new(t.n_inner, 1);
  t.impurity = rpo_new(t.n_inner, 4);
  t.leaf_impurity = rpo_new(t.n_leaves, 4);
  t.leaf_weight = rpo_new(t.n_leaves, 8);
  t.leaf_start = rpo_new(t.n_leaves + 1, 4);
  t.rows = rpo_new(rows, 4);
  int32_t *const stack = rpo_new(n_nodes, 4); /* nodes still to visit */
  int32_t *const name = rpo_new(n_nodes, 4);  /* by node: its reference */
  if (t.feature == NULL || t.left == NULL || t.right == NULL || t.threshold == NULL ||
      t.missing_left == NULL || t.impurity == NULL || t.leaf_impurity == NULL ||
      t.leaf_weight == NULL || t.leaf_start == NULL || t.rows == NULL || stack == NULL ||
      name == NULL) {
    rpo_delete(stack);
    rpo_delete(name);
    rpo_tree_release(&t);
    return rpo_fail_memory(err, "a tree");
  }
  int64_t depth = 0;
  int32_t inner = 0, leaf = 0;
  stack[depth++] = 0;
  while (depth > 0) {
    int32_t const i = stack[--depth];
    const rpo_node *const node = &nodes[i];
    if (node->feature < 0) {
      name[i] = ~leaf;
      t.leaf_impurity[leaf] = (float)node->impurity;
      t.leaf_start[leaf++] = node->start;
      continue;
    }
    name[i] = inner;
    t.feature[inner] = node->feature;
    t.threshold[inner] = node->threshold;
    t.missing_left[inner] = node->missing_left;
    t.impurity[inner++] = (float)node->impurity;
    stack[depth++] = node->child[1];
    stack[depth++] = node->child[0];
  }
  for (int64_t i = 0; i < n_nodes; i++) {
    const rpo_node *const node = &nodes[i];
    if (node->feature < 0) continue;
    t.left[name[i]] = name[node->child[0]];
    t.right[name[i]] = name[node->child[1]];
  }
  t.leaf_start[leaf] = (int32_t)rows;
  memcpy(t.rows, samples, (size_t)rows * 4);
  for (int64_t l = 0; l < t.n_leaves; l++) {
    t.leaf_weight[l] = 0.0;
    for (int64_t i = t.leaf_start[l]; i < t.leaf_start[l + 1]; i++) {
      t.leaf_weight[l] += weight[t.rows[i]];
    }
  }
  rpo_delete(stack);
  rpo_delete(name);
  *out = t;
  return RPO_OK;
}

rpo_status rpo_grower_run(rpo_grower *g, const rpo_target *target, const double *weight, int whole,
                          int64_t tree, rpo_job *job, int thread, rpo_tree *out, rpo_error *err) {
  int64_t rows = 0;
  RPO_TRY(fit_target(g, target, whole, err));
  RPO_TRY(fit_wide(g, err));
  if (g->o.max_leaves > 0) {
    int64_t const room = g->o.max_leaves < g->f->rows ? g->o.max_leaves + 2 : g->f->rows + 2;
    if (room > g->heap_room) {
      rpo_delete(g->heap);
      g->heap = rpo_new(room, (int64_t)sizeof *g->heap);
      g->heap_room = g->heap == NULL ? 0 : room;
      if (g->heap == NULL) return rpo_fail_memory(err, "a tree");
    }
  }
  g->weight = weight;
  g->n_nodes = 0;
  g->work = g->total_work = 0;
  g->total_weight = 0.0;
  g->light = whole;
  g->lean = 0;
  g->job = job;
  g->thread = thread;
  g->err = err;
  for (int64_t i = 0; i < g->f->rows; i++) {
    g->position[i] = INT32_MAX; /* in no node */
    if (!(weight[i] > 0.0)) continue;
    g->whole_weight[i] = whole ? (int32_t)weight[i] : 0;
    g->light &= weight[i] <= RPO_LIGHT;
    g->total_weight += weight[i];
    g->position[i] = (int32_t)rows;
    g->samples[rows++] = (int32_t)i;
  }
  g->min_leaf_weight = g->o.min_leaf_share * g->total_weight;
  RPO_TRY(rpo_kernels_pick()->grow(g, rows, rpo_mix((uint64_t)tree)));
  RPO_TRY(rpo_tree_from_nodes(g->nodes, g->n_nodes, g->samples, rows, weight, out, err));
  out->work = g->total_work + g->work;
  return RPO_OK;
}
