/* Reading a caller's matrix, whatever its number types. */
#ifndef RPO_ARRAY_H
#define RPO_ARRAY_H
#include "status.h"

static inline double rpo_value_at(const void *data, int32_t dtype, int64_t i) {
  if (data == NULL) return 1.0;
  return dtype == RPO_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static inline int64_t rpo_index_at(const void *data, int32_t index, int64_t i) {
  return index == RPO_I32 ? (int64_t)((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

static inline double rpo_dense_at(const rpo_matrix *a, int64_t row, int64_t col) {
  return rpo_value_at(a->data, a->dtype, row * a->row_stride + col * a->col_stride);
}

static inline int64_t rpo_ptr_at(const rpo_matrix *a, int64_t i) {
  return rpo_index_at(a->indptr, a->index, i);
}

/* Shape, format, offsets and indices of a matrix; `name` is how messages call it. */
rpo_status rpo_matrix_check(const rpo_matrix *a, const char *name, rpo_error *err);
/* The same, but an index may occur twice in a row: a fast look for what only walks the entries. */
rpo_status rpo_matrix_check_bounds(const rpo_matrix *a, const char *name, rpo_error *err);
/* All stored values finite (or NaN where `allow_nan`). */
rpo_status rpo_matrix_check_values(const rpo_matrix *a, const char *name, int allow_nan,
                                   rpo_error *err);
/* Refuses numbers, finite ones, that are further from 0 than `most`. */
rpo_status rpo_matrix_check_size(const rpo_matrix *a, const char *name, double most,
                                 rpo_error *err);
#endif
