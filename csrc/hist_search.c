/* A node's sums, and the best cut they allow. */
#include <math.h>
#include <string.h>

#include "hist.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"
#include "rng.h"

#define PARALLEL_WORK 30000 /* additions worth waking a thread for */
#define FEATURE_BLOCK 16

/* ---- Building ---- */

typedef struct build {
  rpo_hist_hand *hand; /* and behind it those of other threads */
  const int32_t *rows;
  int64_t n, blocks;
  double *sums;
} build;

static rpo_status build_rows(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const build *const b = context;
  const rpo_hist *const h = b->hand->h;
  int64_t const first = b->n * task / b->blocks, end = b->n * (task + 1) / b->blocks;
  (void)job;
  (void)thread;
  double **const own = &b->hand[task].partial;
  size_t const bytes = (size_t)(h->slots * h->stride) * sizeof(double);
  if (task > 0 && *own == NULL) *own = rpo_new(h->slots * h->stride, 8);
  double *const sums = task == 0 ? b->sums : *own;
  if (sums == NULL) return rpo_fail_memory(err, "the histograms");
  memset(sums, 0, bytes);
  rpo_kernels_pick()->hist_rows(h, b->rows + first, end - first, sums);
  return RPO_OK;
}

static rpo_status build_features(void *context, int64_t task, int thread, rpo_job *job,
                                 rpo_error *err) {
  const build *const b = context;
  const rpo_hist *const h = b->hand->h;
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

static const rpo_control *control_for(const rpo_hist_hand *w, double work) {
  return work * (double)w->h->stride > PARALLEL_WORK ? w->control : NULL;
}

double rpo_hist_work(const rpo_hist *h, int64_t rows) {
  const rpo_features *const f = h->f;
  double const each = f->sparse ? (double)f->row_start[f->rows] / (double)f->rows : (double)f->cols;
  return (double)rows * each;
}

rpo_status rpo_hist_build(rpo_hist_hand *w, const int32_t *rows, int64_t n, double *sums,
                          rpo_error *err) {
  const rpo_hist *const h = w->h;
  build b = {w, rows, n, 1, sums};
  if (!h->f->sparse) {
    int64_t const tasks = (h->f->cols + FEATURE_BLOCK - 1) / FEATURE_BLOCK;
    return rpo_run(control_for(w, rpo_hist_work(h, n)), tasks, build_features, &b, err);
  }
  const rpo_control *const control = control_for(w, rpo_hist_work(h, n) - (double)h->slots);
  b.blocks = rpo_threads(control, h->threads);
  RPO_TRY(rpo_run(control, b.blocks, build_rows, &b, err));
  int64_t const numbers = h->slots * h->stride;
  for (int64_t t = 1; t < b.blocks; t++) {
    for (int64_t i = 0; i < numbers; i++) sums[i] += w[t].partial[i];
  }
  return RPO_OK;
}

/* ---- Searching ---- */

typedef struct search {
  rpo_hist_hand *hand; /* and behind it those of other threads */
  const rpo_hist_node *node;
  int64_t first, end; /* of drawn */
} search;

static rpo_status search_block(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  const search *const s = context;
  rpo_hist_hand *const w = s->hand;
  const rpo_hist *const h = w->h;
  const rpo_kernels *const kernels = rpo_kernels_pick();
  int64_t const first = s->first + task * FEATURE_BLOCK;
  int64_t const end = first + FEATURE_BLOCK < s->end ? first + FEATURE_BLOCK : s->end;
  double *const own = w[thread].own;
  const rpo_hist_node *const node = s->node;
  (void)job;
  (void)err;
  for (int64_t i = first; i < end; i++) {
    int64_t const j = w->drawn[i], offset = h->offset[j] * h->stride;
    rpo_cut *const found = &w->found[i];
    int usable;
    if (node->sums != NULL) {
      usable = kernels->hist_cut(h, j, node->sums + offset, node->total, own, found);
    } else if (h->f->sparse) {
      usable = kernels->hist_listed(h, j, w->mark, node->total, own, found);
    } else {
      usable = kernels->hist_direct(h, j, node->start, node->end, node->total, own, found);
    }
    w->usable[i] = (uint8_t)usable;
  }
  return RPO_OK;
}

static void draw(rpo_hist_hand *w, rpo_rng *rng, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    int64_t const j = i + (int64_t)rpo_below(rng, (uint32_t)(w->h->f->cols - i));
    int32_t const feature = w->permutation[j];
    w->permutation[j] = w->permutation[i];
    w->permutation[i] = feature;
    w->swaps[i] = (int32_t)j;
    w->drawn[i] = feature;
  }
}

static void undo_draws(rpo_hist_hand *w, int64_t count) {
  for (int64_t i = count - 1; i >= 0; i--) {
    int32_t const feature = w->permutation[i];
    w->permutation[i] = w->permutation[w->swaps[i]];
    w->permutation[w->swaps[i]] = feature;
  }
}

/* What is looked at feature by feature: the node's rows, of dense ones what they add side by side. */
static void lay_out(rpo_hist_hand *w, const rpo_hist_node *node) {
  const rpo_hist *const h = w->h;
  for (int32_t i = node->start; i < node->end && h->f->sparse; i++) w->mark[h->samples[i]] = 1;
  for (int32_t i = node->start; i < node->end && h->beside != NULL; i++) {
    double *const to = h->beside + i * h->stride;
    memcpy(to, h->stat + h->samples[i] * h->stride, (size_t)h->stride * sizeof *to);
  }
}

static void clear_marks(rpo_hist_hand *w, const rpo_hist_node *node) {
  const rpo_hist *const h = w->h;
  for (int32_t i = node->start; i < node->end && h->f->sparse; i++) w->mark[h->samples[i]] = 0;
}

rpo_status rpo_hist_search(rpo_hist_hand *w, rpo_hist_node *node, rpo_error *err) {
  const rpo_hist *const h = w->h;
  int64_t const p = h->f->cols, k = h->o.max_features;
  int const all = k >= p;
  rpo_rng rng = rpo_rng_new(h->o.seed, RPO_DRAW_NODE, node->path, 0);
  rpo_cut const none = {-INFINITY, -1, 0, 0, -1};
  search s = {w, node, 0, 0};
  int64_t usable = 0, wanted = all ? p : k;
  rpo_status status = RPO_OK;
  node->cut = none;
  if (node->sums == NULL) lay_out(w, node);
  while (wanted > 0 && status == RPO_OK) {
    s.first = s.end;
    s.end = s.first + wanted < p ? s.first + wanted : p;
    if (all) {
      memcpy(w->drawn, w->permutation, (size_t)p * 4);
    } else {
      draw(w, &rng, s.first, s.end);
    }
    double const rows = (double)(node->end - node->start), slots = (double)h->slots / (double)p;
    double const each = node->sums == NULL ? 2.0 * rows : slots;
    int64_t const tasks = (s.end - s.first + FEATURE_BLOCK - 1) / FEATURE_BLOCK;
    status =
        rpo_run(control_for(w, each * (double)(s.end - s.first)), tasks, search_block, &s, err);
    if (status != RPO_OK) break;
    for (int64_t i = s.first; i < s.end; i++) {
      usable += w->usable[i];
      if (w->usable[i] && w->found[i].score > node->cut.score) node->cut = w->found[i];
    }
    wanted = h->o.draw_non_constant ? k - usable : usable == 0;
    if (s.end == p) break;
  }
  if (node->sums == NULL) clear_marks(w, node);
  if (!all) undo_draws(w, s.end);
  return status;
}
