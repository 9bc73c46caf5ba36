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
  if (h->stat == NULL || h->beside == NULL || h->samples == NULL || h->scratch == NULL ||
      h->mark == NULL || h->permutation == NULL || h->swaps == NULL || h->drawn == NULL ||
      h->found == NULL || h->usable == NULL) {
    rpo_hist_free(h);
    return rpo_fail_memory(err, "the histograms");
  }
  for (int64_t j = 0; j < f->cols; j++) h->permutation[j] = (int32_t)j;
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
  rpo_delete(h);
}

rpo_status rpo_hist_threads(rpo_hist *h, const rpo_control *control, rpo_error *err) {
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
rpo_status rpo_hist_take(rpo_hist *h, double **out, rpo_error *err) {
  if (h->n_spare > 0) {
    *out = h->spare[--h->n_spare];
    return RPO_OK;
  }
  *out = h->slots > INT64_MAX / h->stride - 1 ? NULL : rpo_new((h->slots + 1) * h->stride, 8);
  return *out == NULL ? rpo_fail_memory(err, "the histograms") : RPO_OK;
}

rpo_status rpo_hist_give(rpo_hist *h, double *sums, rpo_error *err) {
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
