#include "by_class.h"

#include <string.h>

#include "grower.h"
#include "kernels.h"
#include "mem.h"

static int64_t count_few_valued(const rpo_features *f) {
  int64_t few = 0;
  for (int64_t j = 0; j < f->cols; j++) few += rpo_bins(f, j) <= RPO_CUTS;
  return few;
}

int rpo_by_class_pays(const rpo_features *f, const rpo_target *t, int whole,
                      const rpo_grow_options *o) {
  return rpo_kernels_pick()->has_lanes && rpo_target_is_classes(t) && whole && !f->sparse &&
         f->width == 1 && !f->has_missing && !o->random_cut && 2 * count_few_valued(f) >= f->cols;
}

/* `end`, of zeros: first how many rows a class has, then where they begin, at last where they end. */
static void sort_rows(const rpo_target *t, int32_t *order, int32_t *end) {
  int32_t before = 0;
  for (int64_t i = 0; i < t->rows; i++) end[t->index[i]]++;
  for (int64_t j = 0; j < t->width; j++) {
    int32_t const count = end[j];
    end[j] = before;
    before += count;
  }
  for (int64_t i = 0; i < t->rows; i++) order[end[t->index[i]]++] = (int32_t)i;
  for (int64_t j = 0, i = 0; j < t->width; j++) {
    for (; i < end[j]; i++) t->index[i] = (int32_t)j;
  }
}

/* A row within a line of memory, or in whole lines. */
static int64_t packed_stride(int64_t cols) {
  int64_t stride = 1;
  while (stride < 64 && 2 * stride < cols) stride *= 2;
  return stride < 64 ? stride : (cols + 127) / 128 * 64;
}

static void sort_codes(const rpo_features *f, const int32_t *order, uint8_t *codes,
                       uint8_t *row_codes, uint8_t *packed, int64_t stride) {
  const uint8_t *const by_row = f->row_codes;
  for (int64_t i = 0; i < f->rows; i++) {
    const uint8_t *const own = by_row + order[i] * f->cols;
    memcpy(row_codes + i * f->cols, own, (size_t)f->cols);
    for (int64_t j = 0; j < f->cols; j++) { /* of many values what is here is not looked at */
      packed[i * stride + (j >> 1)] |= (uint8_t)((own[j] & 15) << 4 * (j & 1));
    }
  }
  const uint8_t *const by_column = f->codes;
  for (int64_t j = 0; j < f->cols; j++) {
    for (int64_t i = 0; i < f->rows; i++) {
      codes[j * f->rows + i] = by_column[j * f->rows + order[i]];
    }
  }
}

rpo_status rpo_by_class_sort(const rpo_features *f, rpo_target *target, rpo_by_class *out,
                             rpo_error *err) {
  uint8_t *const codes = rpo_new(f->rows * f->cols, 1);
  uint8_t *const row_codes = rpo_new(f->rows * f->cols, 1);
  out->features = *f;
  out->features.codes = codes;
  out->features.row_codes = row_codes;
  out->stride = packed_stride(f->cols);
  out->all_few = count_few_valued(f) == f->cols;
  out->order = rpo_new(f->rows, 4);
  out->class_end = rpo_new_zero(target->width, 4);
  out->packed = rpo_new_zero(f->rows * out->stride + RPO_READ_BEYOND, 1);
  if (codes == NULL || row_codes == NULL || out->order == NULL || out->class_end == NULL ||
      out->packed == NULL) {
    rpo_by_class_release(out);
    return rpo_fail_memory(err, "the classes");
  }
  sort_rows(target, out->order, out->class_end);
  sort_codes(f, out->order, codes, row_codes, out->packed, out->stride);
  return RPO_OK;
}

void rpo_by_class_release(rpo_by_class *sorted) {
  rpo_delete(sorted->order);
  rpo_delete(sorted->class_end);
  rpo_delete(sorted->packed);
  rpo_delete(sorted->features.codes);
  rpo_delete(sorted->features.row_codes);
  memset(sorted, 0, sizeof *sorted);
}
