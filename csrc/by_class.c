#include "by_class.h"

#include <string.h>

#include "grower.h"
#include "kernels.h"
#include "mem.h"

static int few_values_prevail(const rpo_features *f) {
  int64_t few = 0;
  for (int64_t j = 0; j < f->cols; j++) few += rpo_bins(f, j) <= RPO_CUTS;
  return 2 * few >= f->cols;
}

int rpo_by_class_pays(const rpo_features *f, const rpo_target *t, int whole,
                      const rpo_grow_options *o) {
  return rpo_kernels_pick()->has_lanes && rpo_target_is_classes(t) && whole && !f->sparse &&
         f->width == 1 && !f->has_missing && !o->random_cut && few_values_prevail(f);
}

static rpo_status sort_rows(const rpo_target *t, int32_t *order, rpo_error *err) {
  int64_t *const place = rpo_new_zero(t->width + 1, 8);
  if (place == NULL) return rpo_fail_memory(err, "the classes");
  for (int64_t i = 0; i < t->rows; i++) place[t->index[i] + 1]++;
  for (int64_t j = 0; j < t->width; j++) place[j + 1] += place[j];
  for (int64_t i = 0; i < t->rows; i++) order[place[t->index[i]]++] = (int32_t)i;
  for (int64_t j = 0, i = 0; j < t->width; j++) { /* place[j]: where class j ends */
    for (; i < place[j]; i++) t->index[i] = (int32_t)j;
  }
  rpo_delete(place);
  return RPO_OK;
}

rpo_status rpo_by_class_sort(const rpo_features *f, rpo_target *target, rpo_by_class *out,
                             rpo_error *err) {
  out->features = *f;
  out->order = rpo_new(f->rows, 4);
  uint8_t *const codes = rpo_new(f->rows * f->cols, 1);
  uint8_t *const row_codes = rpo_new_zero(f->rows * f->cols + RPO_READ_BEYOND, 1);
  out->features.codes = codes;
  out->features.row_codes = row_codes;
  rpo_status status = RPO_OK;
  if (out->order == NULL || codes == NULL || row_codes == NULL) {
    status = rpo_fail_memory(err, "the classes");
  }
  if (status == RPO_OK) status = sort_rows(target, out->order, err);
  if (status != RPO_OK) {
    rpo_by_class_release(out);
    return status;
  }
  const uint8_t *const from = f->row_codes;
  for (int64_t i = 0; i < f->rows; i++) {
    memcpy(row_codes + i * f->cols, from + out->order[i] * f->cols, (size_t)f->cols);
  }
  const uint8_t *const column = f->codes;
  for (int64_t j = 0; j < f->cols; j++) {
    for (int64_t i = 0; i < f->rows; i++) {
      codes[j * f->rows + i] = column[j * f->rows + out->order[i]];
    }
  }
  return RPO_OK;
}

void rpo_by_class_release(rpo_by_class *sorted) {
  rpo_delete(sorted->order);
  rpo_delete(sorted->features.codes);
  rpo_delete(sorted->features.row_codes);
  memset(sorted, 0, sizeof *sorted);
}
