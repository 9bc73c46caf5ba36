#include "hist.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "par.h"

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

static void free_hand(rpo_hist_hand *w) {
  for (int64_t i = 0; i < w->n_spare; i++) rpo_delete(w->spare[i]);
  rpo_delete(w->spare);
  rpo_delete(w->waiting);
  rpo_delete(w->nodes);
  rpo_delete(w->mark);
  rpo_delete(w->permutation);
  rpo_delete(w->swaps);
  rpo_delete(w->drawn);
  rpo_delete(w->found);
  rpo_delete(w->usable);
  rpo_delete(w->own);
  rpo_delete(w->partial);
}

static rpo_status new_hand(rpo_hist *h, rpo_hist_hand *w, rpo_error *err) {
  const rpo_features *const f = h->f;
  memset(w, 0, sizeof *w);
  w->h = h;
  w->mark = rpo_new_zero(f->sparse ? f->rows : 0, 1);
  w->permutation = rpo_new(f->cols, 4);
  w->swaps = rpo_new(f->cols, 4);
  w->drawn = rpo_new(f->cols, 4);
  w->found = rpo_new(f->cols, (int64_t)sizeof *w->found);
  w->usable = rpo_new(f->cols, 1);
  w->own = rpo_new_zero((h->widest + 2) * h->stride + h->widest / 64 + 1, 8);
  if (w->mark == NULL || w->permutation == NULL || w->swaps == NULL || w->drawn == NULL ||
      w->found == NULL || w->usable == NULL || w->own == NULL) {
    free_hand(w);
    return rpo_fail_memory(err, "the histograms");
  }
  for (int64_t j = 0; j < f->cols; j++) w->permutation[j] = (int32_t)j;
  return RPO_OK;
}

/* One that grows the trunk and, of more threads than one, one for each that grows branches. */
rpo_status rpo_hist_hands(rpo_hist *h, const rpo_control *control, rpo_error *err) {
  int const threads = rpo_threads(control, INT32_MAX);
  int64_t const wanted = threads > 1 ? threads + 1 : 1;
  if (wanted > h->hands) {
    rpo_hist_hand *const hand = rpo_grow(h->hand, h->hands, wanted, (int64_t)sizeof *hand);
    if (hand == NULL) return rpo_fail_memory(err, "the histograms");
    h->hand = hand;
    for (; h->hands < wanted; h->hands++) RPO_TRY(new_hand(h, &hand[h->hands], err));
  }
  if (threads > 1 && h->branch == NULL) {
    h->branch = rpo_new(RPO_BRANCHES, (int64_t)sizeof *h->branch);
    if (h->branch == NULL) return rpo_fail_memory(err, "the histograms");
  }
  h->threads = threads;
  h->hand[0].control = control;
  return RPO_OK;
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
  rpo_status status;
  RPO_GOTO(plan_slots(h, err));
  h->stat = f->rows > INT64_MAX / h->stride ? NULL : rpo_new_zero(f->rows * h->stride, 8);
  int const narrow = !f->sparse && h->stride <= RPO_NARROW;
  if (h->stat != NULL && narrow) h->beside = rpo_new(f->rows * h->stride, 8);
  h->samples = rpo_new(f->rows, 4);
  h->scratch = rpo_new(f->rows, 4);
  if (h->stat == NULL || (narrow && h->beside == NULL) || h->samples == NULL ||
      h->scratch == NULL) {
    status = rpo_fail_memory(err, "the histograms");
    goto done;
  }
  RPO_GOTO(rpo_hist_hands(h, NULL, err));
  *out = h;
done:
  if (status != RPO_OK) rpo_hist_free(h);
  return status;
}

void rpo_hist_free(rpo_hist *h) {
  if (h == NULL) return;
  for (int64_t i = 0; i < h->hands; i++) free_hand(&h->hand[i]);
  rpo_delete(h->hand);
  rpo_delete(h->branch);
  rpo_delete(h->offset);
  rpo_delete(h->stat);
  rpo_delete(h->beside);
  rpo_delete(h->samples);
  rpo_delete(h->scratch);
  rpo_delete(h);
}

/* A set of slots, not zeroed. */
rpo_status rpo_hist_take(rpo_hist_hand *w, double **out, rpo_error *err) {
  const rpo_hist *const h = w->h;
  if (w->n_spare > 0) {
    *out = w->spare[--w->n_spare];
    return RPO_OK;
  }
  *out = h->slots > INT64_MAX / h->stride - 1 ? NULL : rpo_new((h->slots + 1) * h->stride, 8);
  return *out == NULL ? rpo_fail_memory(err, "the histograms") : RPO_OK;
}

rpo_status rpo_hist_give(rpo_hist_hand *w, double *sums, rpo_error *err) {
  if (sums == NULL) return RPO_OK;
  if (w->n_spare == w->spare_room) {
    int64_t const room = 2 * w->spare_room + 16;
    double **const spare = rpo_grow(w->spare, w->n_spare, room, (int64_t)sizeof *spare);
    if (spare == NULL) {
      rpo_delete(sums);
      return rpo_fail_memory(err, "the histograms");
    }
    w->spare = spare;
    w->spare_room = room;
  }
  w->spare[w->n_spare++] = sums;
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

double *rpo_hist_room(rpo_hist *h, int64_t *apart) {
  *apart = h->stride;
  return h->stat + 1;
}

void rpo_hist_put(rpo_hist *h, const int32_t *rows, int64_t n, const double *weight,
                  const double *z, int64_t apart) {
  int64_t const m = h->m;
  double const units = 1.0 / h->unit;
  for (int64_t i = 0; i < n; i++) {
    double *const stat = h->stat + rows[i] * h->stride;
    double const w = h->counted ? nearest(weight[rows[i]] / h->weight_unit) : 1.0;
    stat[0] = h->counted && !(w > 0.0) ? 1.0 : w; /* no row weighs nothing by rounding */
    for (int64_t c = 0; c < m; c++) {
      stat[1 + c] = nearest(weight[rows[i]] * z[rows[i] * apart + c] * units);
    }
    if (h->counted) stat[1 + m] = 1.0;
  }
}
