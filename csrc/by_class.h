/* The rows of a problem with one class a row, laid class after class: the form loop_classes.h reads. */
#ifndef RPO_BY_CLASS_H
#define RPO_BY_CLASS_H
#include "grow.h"

#define RPO_READ_BEYOND 64 /* bytes behind the packed codes that may be read */

typedef struct rpo_by_class {
  int32_t *order;        /* by place: the row */
  int32_t *class_end;    /* by class: the place behind its last row */
  rpo_features features; /* codes of its own, in that order, of many values or where sums do not fit
                            lanes; the rest borrowed */
  uint8_t *packed;       /* codes of features of few values in half a byte each, row after row */
  int64_t stride;        /* bytes of a row there */
  int all_few;           /* 1: all features are of few values */
} rpo_by_class;

static inline int32_t rpo_packed_code(const uint8_t *row, int32_t feature) {
  return row[feature >> 1] >> 4 * (feature & 1) & 15;
}

int rpo_by_class_pays(const rpo_features *features, const rpo_target *target, int whole,
                      const rpo_grow_options *options);
/* Also sorts the target. Nothing is left behind on failure, but the target may be sorted. */
rpo_status rpo_by_class_sort(const rpo_features *features, rpo_target *target, rpo_by_class *out,
                             rpo_error *err);
void rpo_by_class_release(rpo_by_class *sorted);
#endif
