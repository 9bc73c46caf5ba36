#include "hist.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "mem.h"
#include "par.h"
#include "rng.h"

#define POOLED_BYTES (64 << 20) /* a larger set of slots is made feature by feature */
#define PARALLEL_WORK 30000     /* additions worth waking a thread for */
#define FEATURE_BLOCK 16

/* ---- Memory ---- */

static int64_t slots_of(const rpo_features *f, int64_t col) {
  return f->binary ? 1 : rpo_bins(f, col) + f->has_missing;
}

static rpo_status plan_slots(rpo_hist *h, rpo_error *err) {
  h->offset = rpo_new(h->f->cols + 1, 8);
  if (h->offset == NULL) return rpo_fail_memory(err, "the histograms");
  h->offset[0] = 0;
  for (int64_t j = 0; j < h->f->cols; j++) {
    int64_t const slots = slots_of(h->f, j);
    h->offset[j + 1] = h->offset[j] + slots;
    h->widest = slots > h->widest ? slots : h->widest;
  }
  h->slots = h->offset[h->f->cols];
  return RPO_OK;
}

static int64_t stride_of(int64_t numbers) {
  if (numbers <= 2) return 2;
  if (numbers <= 4) return 4;
  return (numbers + 7) / 8 * 8;
}

/* Subtraction pays where the sums of all features are wanted anyway (sparse rows list them together, of
 * dense ones half have to be drawn), and where there are many more rows than slots. */
static int is_pooled(const rpo_hist *h, int64_t rows) {
  if (h->f->sparse) return 1;
  return 2 * h->o.max_features > h->f->cols && h->slots <= POOLED_BYTES / 8 / h->stride &&
         rows * h->f->cols >= 4 * h->slots;
}

rpo_status rpo_hist_new(const rpo_features *f, const rpo_grow_options *options, int64_t m,
                        int counted, rpo_hist **out, rpo_error *err) {
  rpo_hist *const h = rpo_new_zero(1, (int64_t)sizeof *h);
  if (h == NULL) return rpo_fail_memory(err, "the histograms");
  h->f = f;
  h->o = *options;
  h->m = m;
  h->counted = counted;
  h->stride = stride_of(1 + m + counted);
  h->unit = h->weight_unit = 1.0;
  rpo_status const status = plan_slots(h, err);
  if (status != RPO_OK) {
    rpo_hist_free(h);
    return status;
  }
  h->stat = f->rows > INT64_MAX / h->stride ? NULL : rpo_new_zero(f->rows * h->stride, 8);
  h->beside = h->stat == NULL ? NULL : rpo_new(f->sparse ? 0 : f->rows * h->stride, 8);
  h->samples = rpo_new(f->rows, 4);
  h->scratch = rpo_new(f->rows, 4);
  h->mark = rpo_new_zero(f->rows, 1);
  h->permutation = rpo_new(f->cols, 4);
  h->swaps = rpo_new(f->cols, 4);
  h->drawn = rpo_new(f->cols, 4);
  h->found = rpo_new(f->cols, (int64_t)sizeof *h->found);
  h->usable = rpo_new(f->cols, 1);
  h->code = rpo_new(f->sparse ? f->cols : 0, 4);
  if (h->stat == NULL || h->beside == NULL || h->samples == NULL || h->scratch == NULL ||
      h->mark == NULL || h->permutation == NULL || h->swaps == NULL || h->drawn == NULL ||
      h->found == NULL || h->usable == NULL || h->code == NULL) {
    rpo_hist_free(h);
    return rpo_fail_memory(err, "the histograms");
  }
  for (int64_t j = 0; j < f->cols; j++) h->permutation[j] = (int32_t)j;
  if (f->sparse) memcpy(h->code, f->rest, (size_t)f->cols * 4);
  *out = h;
  return RPO_OK;
}

static void free_by_thread(rpo_hist *h) {
  for (int i = 0; i < h->threads; i++) {
    if (h->own != NULL) rpo_delete(h->own[i]);
    if (h->partial != NULL) rpo_delete(h->partial[i]);
  }
  rpo_delete(h->own);
  rpo_delete(h->partial);
  h->own = h->partial = NULL;
  h->threads = 0;
}

void rpo_hist_free(rpo_hist *h) {
  if (h == NULL) return;
  free_by_thread(h);
  for (int64_t i = 0; i < h->n_spare; i++) rpo_delete(h->spare[i]);
  rpo_delete(h->spare);
  rpo_delete(h->waiting);
  rpo_delete(h->offset);
  rpo_delete(h->stat);
  rpo_delete(h->beside);
  rpo_delete(h->nodes);
  rpo_delete(h->samples);
  rpo_delete(h->scratch);
  rpo_delete(h->mark);
  rpo_delete(h->permutation);
  rpo_delete(h->swaps);
  rpo_delete(h->drawn);
  rpo_delete(h->found);
  rpo_delete(h->usable);
  rpo_delete(h->code);
  rpo_delete(h);
}

static rpo_status start_threads(rpo_hist *h, const rpo_control *control, rpo_error *err) {
  int const threads = rpo_threads(control, INT32_MAX);
  h->control = control;
  if (threads == h->threads) return RPO_OK;
  free_by_thread(h);
  h->own = rpo_new_zero(threads, (int64_t)sizeof *h->own);
  h->partial = rpo_new_zero(threads, (int64_t)sizeof *h->partial);
  if (h->own == NULL || h->partial == NULL) return rpo_fail_memory(err, "the histograms");
  h->threads = threads;
  for (int i = 0; i < threads; i++) {
    h->own[i] = rpo_new_zero((h->widest + 2) * h->stride + h->widest / 64 + 1, 8);
    if (h->own[i] != NULL) continue;
    free_by_thread(h); /* the next call begins anew */
    return rpo_fail_memory(err, "the histograms");
  }
  return RPO_OK;
}

/* A set of slots, not zeroed. */
static rpo_status take_sums(rpo_hist *h, double **out, rpo_error *err) {
  if (h->n_spare > 0) {
    *out = h->spare[--h->n_spare];
    return RPO_OK;
  }
  *out = h->slots > INT64_MAX / h->stride - 1 ? NULL : rpo_new((h->slots + 1) * h->stride, 8);
  return *out == NULL ? rpo_fail_memory(err, "the histograms") : RPO_OK;
}

static rpo_status give_sums(rpo_hist *h, double *sums, rpo_error *err) {
  if (sums == NULL) return RPO_OK;
  if (h->n_spare == h->spare_room) {
    int64_t const room = 2 * h->spare_room + 16;
    double **const spare = rpo_grow(h->spare, h->n_spare, room, (int64_t)sizeof *spare);
    if (spare == NULL) {
      rpo_delete(sums);
      return rpo_fail_memory(err, "the histograms");
    }
    h->spare = spare;
    h->spare_room = room;
  }
  h->spare[h->n_spare++] = sums;
  return RPO_OK;
}

/* ---- What rows add ---- */

/* A power of two that makes the largest of `rows` numbers whole and their sum exact in 53 bits. */
static double unit_of(double largest, int64_t rows) {
  int exponent, spare;
  (void)frexp(largest, &exponent);
  (void)frexp((double)rows, &spare);
  int const bits = 52 - spare < 30 ? 52 - spare : 30;
  if (exponent < -900) exponent = -900; /* its reciprocal is a number */
  return largest > 0.0 ? ldexp(1.0, exponent - bits) : 1.0;
}

void rpo_hist_units(rpo_hist *h, double weight, double sum) {
  h->weight_unit = h->counted ? unit_of(weight, h->f->rows) : 1.0;
  h->unit = unit_of(sum, h->f->rows);
}

/* To the nearest whole number below 2^51. */
static inline double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

void rpo_hist_put(rpo_hist *h, int64_t row, double weight, const double *z) {
  double *const stat = h->stat + row * h->stride;
  double const units = 1.0 / h->unit;
  double const w = h->counted ? nearest(weight / h->weight_unit) : 1.0;
  stat[0] = h->counted && !(w > 0.0) ? 1.0 : w; /* no row weighs nothing by rounding */
  for (int64_t c = 0; c < h->m; c++) stat[1 + c] = nearest(weight * z[c] * units);
  if (h->counted) stat[1 + h->m] = 1.0;
}

/* ---- Building ---- */

typedef struct build {
  rpo_hist *h;
  const int32_t *rows;
  int64_t n, blocks;
  double *sums;
} build;

static rpo_status build_rows(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const build *const b = context;
  int64_t const first = b->n * task / b->blocks, end = b->n * (task + 1) / b->blocks;
  (void)job;
  (void)thread;
  double **const own = &b->h->partial[task];
  size_t const bytes = (size_t)(b->h->slots * b->h->stride) * sizeof(double);
  if (task > 0 && *own == NULL) *own = rpo_new(b->h->slots * b->h->stride, 8);
  double *const sums = task == 0 ? b->sums : *own;
  if (sums == NULL) return rpo_fail_memory(err, "the histograms");
  memset(sums, 0, bytes);
  rpo_kernels_pick()->hist_rows(b->h, b->rows + first, end - first, sums);
  return RPO_OK;
}

static rpo_status build_features(void *context, int64_t task, int thread, rpo_job *job,
                                 rpo_error *err) {
  const build *const b = context;
  rpo_hist *const h = b->h;
  const rpo_kernels *const kernels = rpo_kernels_pick();
  int64_t const first = task * FEATURE_BLOCK;
  int64_t const end = first + FEATURE_BLOCK < h->f->cols ? first + FEATURE_BLOCK : h->f->cols;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t j = first; j < end; j++) {
    double *const sums = b->sums + h->offset[j] * h->stride;
    memset(sums, 0, (size_t)((h->offset[j + 1] - h->offset[j]) * h->stride) * sizeof *sums);
    kernels->hist_feature(h, j, b->rows, b->n, sums);
  }
  return RPO_OK;
}

static const rpo_control *control_for(const rpo_hist *h, double work) {
  return work * (double)h->stride > PARALLEL_WORK ? h->control : NULL;
}

static rpo_status build_sums(rpo_hist *h, const int32_t *rows, int64_t n, double *sums,
                             rpo_error *err) {
  const rpo_features *const f = h->f;
  build b = {h, rows, n, 1, sums};
  if (!f->sparse) {
    int64_t const tasks = (f->cols + FEATURE_BLOCK - 1) / FEATURE_BLOCK;
    const rpo_control *const control = control_for(h, (double)n * (double)f->cols);
    return rpo_run(control, tasks, build_features, &b, err);
  }
  double const entries = (double)f->row_start[f->rows] / (double)f->rows;
  const rpo_control *const control = control_for(h, (double)n * entries - (double)h->slots);
  b.blocks = control == NULL ? 1 : h->threads;
  RPO_TRY(rpo_run(control, b.blocks, build_rows, &b, err));
  int64_t const numbers = h->slots * h->stride;
  for (int64_t t = 1; t < b.blocks; t++) {
    for (int64_t i = 0; i < numbers; i++) sums[i] += h->partial[t][i];
  }
  return RPO_OK;
}

/* ---- Searching ---- */

typedef struct search {
  rpo_hist *h;
  const rpo_hist_node *node;
  int64_t first, end; /* of drawn */
} search;

static rpo_status search_block(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  const search *const s = context;
  rpo_hist *const h = s->h;
  const rpo_kernels *const kernels = rpo_kernels_pick();
  int64_t const first = s->first + task * FEATURE_BLOCK;
  int64_t const end = first + FEATURE_BLOCK < s->end ? first + FEATURE_BLOCK : s->end;
  double *const own = h->own[thread];
  const rpo_hist_node *const node = s->node;
  (void)job;
  (void)err;
  for (int64_t i = first; i < end; i++) {
    int64_t const j = h->drawn[i], offset = h->offset[j] * h->stride;
    rpo_cut *const found = &h->found[i];
    int const usable = node->sums == NULL
                           ? kernels->hist_direct(h, j, h->samples + node->start,
                                                  node->end - node->start, node->total, own, found)
                           : kernels->hist_cut(h, j, node->sums + offset, node->total, own, found);
    h->usable[i] = (uint8_t)usable;
  }
  return RPO_OK;
}

static void draw(rpo_hist *h, rpo_rng *rng, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    int64_t const j = i + (int64_t)rpo_below(rng, (uint32_t)(h->f->cols - i));
    int32_t const feature = h->permutation[j];
    h->permutation[j] = h->permutation[i];
    h->permutation[i] = feature;
    h->swaps[i] = (int32_t)j;
    h->drawn[i] = feature;
  }
}

static void undo_draws(rpo_hist *h, int64_t count) {
  for (int64_t i = count - 1; i >= 0; i--) {
    int32_t const feature = h->permutation[i];
    h->permutation[i] = h->permutation[h->swaps[i]];
    h->permutation[h->swaps[i]] = feature;
  }
}

/* The node's best cut: scikit-learn's rule of drawing, max_features and more until one is not
 * constant, or the paper's, until max_features are not. */
static rpo_status find_cut(rpo_hist *h, rpo_hist_node *node, rpo_error *err) {
  int64_t const p = h->f->cols, k = h->o.max_features;
  int const all = k >= p;
  rpo_rng rng = rpo_rng_new(h->o.seed, RPO_DRAW_NODE, node->path, 0);
  rpo_cut const none = {-INFINITY, -1, 0, 0, -1};
  search s = {h, node, 0, 0};
  int64_t usable = 0, wanted = all ? p : k;
  rpo_status status = RPO_OK;
  node->cut = none;
  for (int32_t i = node->start; node->sums == NULL && i < node->end; i++) {
    double *const to = h->beside + (i - node->start) * h->stride;
    memcpy(to, h->stat + h->samples[i] * h->stride, (size_t)h->stride * sizeof *to);
  }
  while (wanted > 0 && status == RPO_OK) {
    s.first = s.end;
    s.end = s.first + wanted < p ? s.first + wanted : p;
    if (all) {
      memcpy(h->drawn, h->permutation, (size_t)p * 4);
    } else {
      draw(h, &rng, s.first, s.end);
    }
    double const rows = (double)(node->end - node->start), slots = (double)h->slots / (double)p;
    double const each = node->sums == NULL ? 2.0 * rows : slots;
    int64_t const tasks = (s.end - s.first + FEATURE_BLOCK - 1) / FEATURE_BLOCK;
    status =
        rpo_run(control_for(h, each * (double)(s.end - s.first)), tasks, search_block, &s, err);
    if (status != RPO_OK) break;
    for (int64_t i = s.first; i < s.end; i++) {
      usable += h->usable[i];
      if (h->usable[i] && h->found[i].score > node->cut.score) node->cut = h->found[i];
    }
    wanted = h->o.draw_non_constant ? k - usable : usable == 0;
    if (s.end == p) break;
  }
  if (!all) undo_draws(h, s.end);
  return status;
}

/* ---- The loop ---- */

static void add_total(const rpo_hist *h, rpo_hist_node *node) {
  memset(node->total, 0, (size_t)h->stride * sizeof(double));
  for (int32_t i = node->start; i < node->end; i++) {
    const double *const stat = h->stat + (int64_t)h->samples[i] * h->stride;
    for (int64_t c = 0; c < h->stride; c++) node->total[c] += stat[c];
  }
}

static double square_over_weight(const rpo_hist *h, const double *total) {
  double square = 0.0;
  for (int64_t c = 1; c <= h->m; c++) square += total[c] * total[c];
  return square / total[0];
}

/* In the caller's units: decrease of the sum of variances, times weight over all weight. */
static double gain_of(const rpo_hist *h, const rpo_hist_node *node) {
  double const parent = square_over_weight(h, node->total);
  double const unit = h->unit / h->weight_unit;
  return (node->cut.score - parent) / h->total_weight * unit * unit;
}

static int may_split(const rpo_hist *h, const rpo_hist_node *node) {
  int64_t const n = node->end - node->start;
  return node->depth < h->o.max_depth && n >= h->o.min_split && n >= 2 * h->o.min_leaf &&
         node->total[0] >= 2.0 * h->min_leaf_weight;
}

static int split_pays(const rpo_hist *h, const rpo_hist_node *node) {
  if (node->cut.feature < 0 || !(node->cut.score > -INFINITY)) return 0;
  double const parent = square_over_weight(h, node->total);
  return node->cut.score > parent * (1.0 + 1e-12) && gain_of(h, node) >= h->o.min_decrease;
}

static double middle_of(const rpo_features *f, double below, double above) {
  double middle = below / 2.0 + above / 2.0;
  if (f->single) middle = (double)(float)middle;
  return middle >= below && middle < above ? middle : below;
}

/* Midway between the node's values on either side, unless that cuts a bin in two of which the node has
 * no rows: then behind the bin, so that all rows of it go one way, here and in predictions. */
static double threshold_of(const rpo_features *f, const rpo_cut *cut) {
  if (cut->above == rpo_bins(f, cut->feature)) return INFINITY;
  const double *const low = f->low + f->bin_start[cut->feature];
  const double *const high = f->high + f->bin_start[cut->feature];
  double const middle = middle_of(f, high[cut->below], low[cut->above]);
  int32_t last = cut->below, end = cut->above; /* the last bin that begins before the middle */
  while (end - last > 1) {
    int32_t const between = last + (end - last) / 2;
    if (low[between] <= middle) {
      last = between;
    } else {
      end = between;
    }
  }
  return high[last] <= middle ? middle : middle_of(f, high[last], low[last + 1]);
}

/* Marks the rows of a sparse column that go to the side its unlisted rows do not go to. */
static void mark_column(rpo_hist *h, const rpo_cut *cut, int rest_left, uint8_t value) {
  const rpo_features *const f = h->f;
  int32_t const bins = rpo_bins(f, cut->feature);
  for (int64_t e = f->col_start[cut->feature]; e < f->col_start[cut->feature + 1]; e++) {
    int32_t const code =
        f->binary ? 1 - f->rest[cut->feature] : rpo_code_at(f->col_codes, f->width, e);
    int const left = code == bins ? cut->missing_left == 1 : code <= cut->below;
    if (left != rest_left) h->mark[f->col_rows[e]] = value;
  }
}

/* Rows of the left side to the front, each side in its order. Returns where the right begins. */
static int32_t partition(rpo_hist *h, const rpo_hist_node *node) {
  const rpo_features *const f = h->f;
  const rpo_cut *const cut = &node->cut;
  int32_t const bins = rpo_bins(f, cut->feature);
  int const rest_left = f->sparse && f->rest[cut->feature] <= cut->below;
  int32_t at = node->start, away = 0;
  if (f->sparse) mark_column(h, cut, rest_left, 1);
  for (int32_t i = node->start; i < node->end; i++) {
    int32_t const row = h->samples[i];
    int left;
    if (f->sparse) {
      left = rest_left ^ h->mark[row];
    } else {
      int32_t const code = rpo_code_at(f->codes, f->width, (int64_t)cut->feature * f->rows + row);
      left = code == bins ? cut->missing_left == 1 : code <= cut->below;
    }
    h->samples[at] = row; /* at <= i */
    h->scratch[away] = row;
    at += left;
    away += !left;
  }
  memcpy(h->samples + at, h->scratch, (size_t)away * 4);
  if (f->sparse) mark_column(h, cut, rest_left, 0);
  return at;
}

static rpo_status new_node(rpo_hist *h, int32_t parent, int side, int32_t start, int32_t end,
                           int32_t *id, rpo_error *err) {
  if (h->n_nodes == h->node_room) {
    int64_t const room = h->node_room == 0 ? 256 : 2 * h->node_room;
    rpo_node *const nodes = rpo_grow(h->nodes, h->n_nodes, room, (int64_t)sizeof *nodes);
    if (nodes == NULL) return rpo_fail_memory(err, "a tree");
    h->nodes = nodes;
    h->node_room = room;
  }
  rpo_node const node = {0.0, 0.0, parent, {-1, -1}, -1, start, end, 0};
  *id = (int32_t)h->n_nodes++;
  h->nodes[*id] = node;
  if (parent >= 0) h->nodes[parent].child[side] = *id;
  return RPO_OK;
}

static rpo_status push(rpo_hist *h, int64_t *count, rpo_hist_node node, rpo_error *err) {
  if (*count == h->waiting_room) {
    int64_t const room = 2 * h->waiting_room + 64;
    rpo_hist_node *const waiting = rpo_grow(h->waiting, *count, room, (int64_t)sizeof *waiting);
    if (waiting == NULL) return rpo_fail_memory(err, "a tree");
    h->waiting = waiting;
    h->waiting_room = room;
  }
  h->waiting[(*count)++] = node;
  return RPO_OK;
}

/* Best first: the largest decrease, the earlier node of equal ones. Depth first: the last. */
static rpo_hist_node pop(rpo_hist *h, int64_t *count) {
  int64_t best = *count - 1;
  for (int64_t i = 0; h->o.max_leaves > 0 && i < *count; i++) {
    const rpo_hist_node *const a = &h->waiting[i], *const b = &h->waiting[best];
    double const x = a->cut.score, y = b->cut.score;
    if (x > y || (x == y && a->id < b->id)) best = i;
  }
  rpo_hist_node const node = h->waiting[best];
  h->waiting[best] = h->waiting[--*count];
  return node;
}

static void release_node(rpo_hist *h, rpo_hist_node *node, rpo_status *status, rpo_error *err) {
  rpo_delete(node->total);
  rpo_status const given = give_sums(h, node->sums, err);
  if (*status == RPO_OK) *status = given;
  node->total = node->sums = NULL;
}

/* Queues a node that a split pays in; its score becomes its gain. Takes the node over. */
static rpo_status consider(rpo_hist *h, int64_t *count, rpo_hist_node node, rpo_error *err) {
  rpo_status status = find_cut(h, &node, err);
  if (status == RPO_OK && split_pays(h, &node)) {
    node.cut.score = gain_of(h, &node);
    status = push(h, count, node, err);
    if (status == RPO_OK) return RPO_OK;
  }
  release_node(h, &node, &status, err);
  return status;
}

static rpo_status child_of(rpo_hist *h, const rpo_hist_node *parent, int side, int32_t start,
                           int32_t end, rpo_hist_node *child, rpo_error *err) {
  memset(child, 0, sizeof *child);
  RPO_TRY(new_node(h, parent->id, side, start, end, &child->id, err));
  child->depth = parent->depth + 1;
  child->start = start;
  child->end = end;
  child->path = rpo_path(parent->path, side);
  child->total = rpo_new(h->stride, 8);
  return child->total == NULL ? rpo_fail_memory(err, "a tree") : RPO_OK;
}

static rpo_status split(rpo_hist *h, int64_t *count, rpo_hist_node *node, rpo_error *err) {
  rpo_hist_node child[2];
  rpo_status status;
  memset(child, 0, sizeof child);
  int32_t const middle = partition(h, node);
  rpo_node *const made = &h->nodes[node->id];
  made->feature = node->cut.feature;
  made->threshold = threshold_of(h->f, &node->cut);
  made->missing_left =
      (uint8_t)(node->cut.missing_left >= 0 ? node->cut.missing_left
                                            : middle - node->start > node->end - middle);
  RPO_GOTO(child_of(h, node, 0, node->start, middle, &child[0], err));
  RPO_GOTO(child_of(h, node, 1, middle, node->end, &child[1], err));
  int const small = middle - node->start <= node->end - middle ? 0 : 1;
  add_total(h, &child[small]);
  for (int64_t c = 0; c < h->stride; c++) {
    child[1 - small].total[c] = node->total[c] - child[small].total[c];
  }
  int const wanted[2] = {may_split(h, &child[0]), may_split(h, &child[1])};
  int64_t const most = child[1 - small].end - child[1 - small].start;
  if (node->sums != NULL && (wanted[0] || wanted[1]) && is_pooled(h, most)) {
    rpo_hist_node *const few = &child[small], *const many = &child[1 - small];
    RPO_GOTO(take_sums(h, &few->sums, err));
    RPO_GOTO(build_sums(h, h->samples + few->start, few->end - few->start, few->sums, err));
    if (wanted[1 - small]) {
      many->sums = node->sums;
      node->sums = NULL;
      int64_t const numbers = h->slots * h->stride;
      for (int64_t i = 0; i < numbers; i++) many->sums[i] -= few->sums[i];
    }
  }
  for (int c = 0; c < 2; c++) {
    rpo_hist_node const taken = child[c];
    if (!wanted[c]) continue;
    child[c].sums = child[c].total = NULL;
    RPO_GOTO(consider(h, count, taken, err));
  }
done:
  for (int c = 0; c < 2; c++) release_node(h, &child[c], &status, err);
  return status;
}

static rpo_status grow(rpo_hist *h, int64_t n, uint64_t path, rpo_error *err) {
  int64_t count = 0, leaves = 1;
  rpo_hist_node root;
  rpo_status status = RPO_OK;
  memset(&root, 0, sizeof root);
  RPO_TRY(new_node(h, -1, 0, 0, (int32_t)n, &root.id, err));
  root.end = (int32_t)n;
  root.path = path;
  root.total = rpo_new(h->stride, 8);
  if (root.total == NULL) return rpo_fail_memory(err, "a tree");
  add_total(h, &root);
  h->total_weight = root.total[0];
  h->min_leaf_weight = h->o.min_leaf_share * h->total_weight;
  if (!may_split(h, &root)) {
    release_node(h, &root, &status, err);
    return status;
  }
  if (is_pooled(h, n)) {
    status = take_sums(h, &root.sums, err);
    if (status == RPO_OK) status = build_sums(h, h->samples, n, root.sums, err);
  }
  if (status == RPO_OK) {
    status = consider(h, &count, root, err);
  } else {
    release_node(h, &root, &status, err);
  }
  while (status == RPO_OK && count > 0 && (h->o.max_leaves == 0 || leaves < h->o.max_leaves)) {
    rpo_hist_node node = pop(h, &count);
    leaves++;
    status = split(h, &count, &node, err);
    release_node(h, &node, &status, err);
  }
  while (count > 0) release_node(h, &h->waiting[--count], &status, err);
  return status;
}

/* Impurities, children before their parents: those of leaves from their rows. */
static rpo_status note_impurities(rpo_hist *h, rpo_error *err) {
  int64_t const m = h->m, each = 2 * m + 1; /* weight, sums, squares */
  double *const of = rpo_new_zero(h->n_nodes * each, 8);
  if (of == NULL) return rpo_fail_memory(err, "a tree");
  for (int64_t i = h->n_nodes - 1; i >= 0; i--) {
    rpo_node *const node = &h->nodes[i];
    double *const at = of + i * each;
    for (int32_t s = node->start; node->feature < 0 && s < node->end; s++) {
      const double *const stat = h->stat + (int64_t)h->samples[s] * h->stride;
      at[0] += stat[0];
      for (int64_t c = 1; c <= m; c++) {
        at[c] += stat[c];
        at[m + c] += stat[c] * stat[c] / stat[0];
      }
    }
    double impurity = 0.0;
    for (int64_t c = 1; c <= m; c++) impurity += at[m + c] - at[c] * at[c] / at[0];
    impurity *= h->unit / h->weight_unit * h->unit / h->weight_unit / at[0];
    node->impurity = impurity > 0.0 ? impurity : 0.0;
    double *const parent = of + (int64_t)node->parent * each;
    for (int64_t c = 0; c < each && node->parent >= 0; c++) parent[c] += at[c];
  }
  rpo_delete(of);
  return RPO_OK;
}

rpo_status rpo_hist_run(rpo_hist *h, const int32_t *rows, int64_t n, const double *weight,
                        uint64_t name, const rpo_control *control, rpo_tree *out, rpo_error *err) {
  RPO_TRY(start_threads(h, control, err));
  memcpy(h->samples, rows, (size_t)n * 4);
  h->n_nodes = 0;
  RPO_TRY(grow(h, n, rpo_mix(name), err));
  RPO_TRY(note_impurities(h, err));
  return rpo_tree_from_nodes(h->nodes, h->n_nodes, h->samples, n, weight, out, err);
}

/* ---- Leaves of rows that the tree was not grown on ---- */

static int32_t below_of(const rpo_features *f, int32_t feature, double threshold) {
  const double *const high = f->high + f->bin_start[feature];
  int32_t low = -1, end = rpo_bins(f, feature);
  while (end - low > 1) {
    int32_t const middle = low + (end - low) / 2;
    if (high[middle] <= threshold) {
      low = middle;
    } else {
      end = middle;
    }
  }
  return low;
}

static void read_row(rpo_hist *h, int32_t row) {
  const rpo_features *const f = h->f;
  for (int64_t e = f->row_start[row]; e < f->row_start[row + 1]; e++) {
    int32_t const col = f->row_cols[e];
    h->code[col] = f->binary ? 1 - f->rest[col] : rpo_code_at(f->row_codes, f->width, e);
  }
}

static void forget_row(rpo_hist *h, int32_t row) {
  const rpo_features *const f = h->f;
  for (int64_t e = f->row_start[row]; e < f->row_start[row + 1]; e++) {
    h->code[f->row_cols[e]] = f->rest[f->row_cols[e]];
  }
}

rpo_status rpo_hist_leaves(rpo_hist *h, const rpo_tree *tree, const int32_t *rows, int64_t n,
                           int32_t *leaf, rpo_error *err) {
  const rpo_features *const f = h->f;
  int32_t *const below = rpo_new(tree->n_inner, 4);
  if (below == NULL) return rpo_fail_memory(err, "a tree");
  for (int64_t i = 0; i < tree->n_inner; i++) {
    below[i] = below_of(f, tree->feature[i], tree->threshold[i]);
  }
  for (int64_t i = 0; i < n; i++) {
    int32_t node = tree->n_inner > 0 ? 0 : ~0;
    if (f->sparse) read_row(h, rows[i]);
    while (node >= 0) {
      int32_t const feature = tree->feature[node];
      int32_t const code =
          f->sparse ? h->code[feature]
                    : rpo_code_at(f->row_codes, f->width, (int64_t)rows[i] * f->cols + feature);
      int const left =
          code == rpo_bins(f, feature) ? tree->missing_left[node] : code <= below[node];
      node = left ? tree->left[node] : tree->right[node];
    }
    leaf[i] = ~node;
    if (f->sparse) forget_row(h, rows[i]);
  }
  rpo_delete(below);
  return RPO_OK;
}
