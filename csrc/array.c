#include "array.h"

#include <math.h>

#include "mem.h"

static int64_t major_of(const rpo_matrix *a) { return a->format == RPO_CSR ? a->rows : a->cols; }
static int64_t minor_of(const rpo_matrix *a) { return a->format == RPO_CSR ? a->cols : a->rows; }

static rpo_status check_offsets(const rpo_matrix *a, const char *name, rpo_error *err) {
  int64_t const major = major_of(a);
  if (a->index != RPO_I32 && a->index != RPO_I64) {
    return rpo_fail(err, RPO_EINVAL, "%s: unknown index type %d", name, (int)a->index);
  }
  if (a->indptr == NULL || rpo_ptr_at(a, 0) != 0) {
    return rpo_fail(err, RPO_EINVAL, "%s: offsets must begin with 0", name);
  }
  for (int64_t i = 0; i < major; i++) {
    if (rpo_ptr_at(a, i + 1) < rpo_ptr_at(a, i)) {
      return rpo_fail(err, RPO_EINVAL, "%s: offsets must not fall, they do at %lld", name,
                      (long long)i);
    }
  }
  if (rpo_ptr_at(a, major) > 0 && a->indices == NULL) {
    return rpo_fail(err, RPO_EINVAL, "%s: indices are missing", name);
  }
  return RPO_OK;
}

static int within(const void *indices, int32_t index, int64_t count, int64_t bound) {
  int bad = 0;
  if (index == RPO_I32) {
    const int32_t *const j = indices;
    for (int64_t e = 0; e < count; e++) bad |= (uint32_t)j[e] >= (uint32_t)bound;
  } else {
    const int64_t *const j = indices;
    for (int64_t e = 0; e < count; e++) bad |= (uint64_t)j[e] >= (uint64_t)bound;
  }
  return !bad;
}

static rpo_status check_range(const rpo_matrix *a, const char *name, rpo_error *err) {
  int64_t const minor = minor_of(a), stored = rpo_ptr_at(a, major_of(a));
  if (within(a->indices, a->index, stored, minor)) return RPO_OK;
  int64_t e = 0;
  while (within((const char *)a->indices + e * (a->index == RPO_I32 ? 4 : 8), a->index, 1, minor)) {
    e++;
  }
  return rpo_fail(err, RPO_EINVAL, "%s: index %lld is outside 0 .. %lld", name,
                  (long long)rpo_index_at(a->indices, a->index, e), (long long)(minor - 1));
}

static rpo_status check_distinct(const rpo_matrix *a, const char *name, rpo_error *err) {
  int64_t const major = major_of(a), minor = minor_of(a);
  int64_t *const seen = rpo_new(minor, (int64_t)sizeof *seen);
  if (seen == NULL) return rpo_fail_memory(err, name);
  for (int64_t j = 0; j < minor; j++) seen[j] = -1;
  rpo_status status = RPO_OK;
  for (int64_t i = 0; i < major && status == RPO_OK; i++) {
    for (int64_t e = rpo_ptr_at(a, i); e < rpo_ptr_at(a, i + 1); e++) {
      int64_t const j = rpo_index_at(a->indices, a->index, e);
      if (seen[j] == i) {
        status = rpo_fail(err, RPO_EINVAL, "%s: index %lld occurs twice in %s %lld", name,
                          (long long)j, a->format == RPO_CSR ? "row" : "column", (long long)i);
        break;
      }
      seen[j] = i;
    }
  }
  rpo_delete(seen);
  return status;
}

rpo_status rpo_matrix_check_bounds(const rpo_matrix *a, const char *name, rpo_error *err) {
  if (a == NULL) return rpo_fail(err, RPO_EINVAL, "%s is NULL", name);
  if (a->rows < 1 || a->cols < 1) {
    return rpo_fail(err, RPO_EINVAL,
                    "%s must have at least one row and one column, got %lld x %lld", name,
                    (long long)a->rows, (long long)a->cols);
  }
  if (a->rows > INT32_MAX - 1 || a->cols > INT32_MAX - 1) {
    return rpo_fail(err, RPO_EINVAL, "%s: at most 2^31 - 2 rows and columns, got %lld x %lld", name,
                    (long long)a->rows, (long long)a->cols);
  }
  if (a->dtype != RPO_F32 && a->dtype != RPO_F64) {
    return rpo_fail(err, RPO_EINVAL, "%s: unknown number type %d", name, (int)a->dtype);
  }
  if (a->format == RPO_DENSE) {
    if (a->data == NULL) return rpo_fail(err, RPO_EINVAL, "%s: data is NULL", name);
    return RPO_OK;
  }
  if (a->format != RPO_CSR && a->format != RPO_CSC) {
    return rpo_fail(err, RPO_EINVAL, "%s: unknown format %d", name, (int)a->format);
  }
  RPO_TRY(check_offsets(a, name, err));
  return check_range(a, name, err);
}

rpo_status rpo_matrix_check(const rpo_matrix *a, const char *name, rpo_error *err) {
  RPO_TRY(rpo_matrix_check_bounds(a, name, err));
  return a->format == RPO_DENSE ? RPO_OK : check_distinct(a, name, err);
}

static rpo_status bad_value(rpo_error *err, const char *name, double value, int allow_nan) {
  return rpo_fail(err, RPO_EINVAL, "%s must be finite%s, found %g", name,
                  allow_nan ? " or NaN" : "", value);
}

/* Whether a run of numbers holds one that is not finite: x - x is then not 0. */
static int all_finite(const void *data, int32_t dtype, int64_t count) {
  int bad = 0;
  if (dtype == RPO_F32) {
    const float *const x = data;
    for (int64_t i = 0; i < count; i++) bad |= !(x[i] - x[i] == 0.0f);
  } else {
    const double *const x = data;
    for (int64_t i = 0; i < count; i++) bad |= !(x[i] - x[i] == 0.0);
  }
  return !bad;
}

static int looks_finite(const rpo_matrix *a) {
  int64_t const size = a->dtype == RPO_F32 ? 4 : 8;
  if (a->format != RPO_DENSE) {
    return all_finite(a->data, a->dtype, rpo_ptr_at(a, a->format == RPO_CSR ? a->rows : a->cols));
  }
  for (int64_t i = 0; i < a->rows; i++) {
    if (a->col_stride != 1 ||
        !all_finite((const char *)a->data + i * a->row_stride * size, a->dtype, a->cols)) {
      return 0;
    }
  }
  return 1;
}

rpo_status rpo_matrix_check_values(const rpo_matrix *a, const char *name, int allow_nan,
                                   rpo_error *err) {
  if (a->data == NULL || looks_finite(a)) return RPO_OK;
  if (a->format == RPO_DENSE) {
    for (int64_t i = 0; i < a->rows; i++) {
      for (int64_t j = 0; j < a->cols; j++) {
        double const v = rpo_dense_at(a, i, j);
        if (!isfinite(v) && !(allow_nan && isnan(v))) return bad_value(err, name, v, allow_nan);
      }
    }
    return RPO_OK;
  }
  int64_t const stored = rpo_ptr_at(a, a->format == RPO_CSR ? a->rows : a->cols);
  for (int64_t e = 0; e < stored; e++) {
    double const v = rpo_value_at(a->data, a->dtype, e);
    if (!isfinite(v) && !(allow_nan && isnan(v))) return bad_value(err, name, v, allow_nan);
  }
  return RPO_OK;
}

rpo_status rpo_matrix_check_size(const rpo_matrix *a, const char *name, double most,
                                 rpo_error *err) {
  double worst = 0.0;
  for (int64_t i = 0; a->format == RPO_DENSE && i < a->rows; i++) {
    for (int64_t j = 0; j < a->cols; j++) {
      double const v = fabs(rpo_dense_at(a, i, j));
      worst = v > worst ? v : worst;
    }
  }
  int64_t const stored = a->format == RPO_DENSE || a->data == NULL
                             ? 0
                             : rpo_ptr_at(a, a->format == RPO_CSR ? a->rows : a->cols);
  for (int64_t e = 0; e < stored; e++) {
    double const v = fabs(rpo_value_at(a->data, a->dtype, e));
    worst = v > worst ? v : worst;
  }
  if (worst <= most) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL, "%s must be of size %g at most, found %g", name, most, worst);
}
