#include "target.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "mem.h"

void rpo_target_release(rpo_target *t) {
  rpo_delete(t->z);
  rpo_delete(t->start);
  rpo_delete(t->index);
  rpo_delete(t->value);
  rpo_delete(t->origin);
  rpo_delete(t->norm);
  memset(t, 0, sizeof *t);
}

/* Rows padded so that vector loops have no remainder. */
int64_t rpo_target_stride(int64_t m) {
  if (m <= 2) return m;
  if (m <= 4) return 4;
  return (m + 7) / 8 * 8;
}

rpo_status rpo_target_sums(int64_t rows, int64_t m, rpo_target *t, rpo_error *err) {
  memset(t, 0, sizeof *t);
  t->rows = rows;
  t->width = m;
  t->stride = rpo_target_stride(m);
  t->norm = rpo_new(rows, 8);
  if (t->norm != NULL && rows <= INT64_MAX / t->stride) t->z = rpo_new_zero(rows * t->stride, 8);
  if (t->z == NULL) {
    rpo_target_release(t);
    return rpo_fail_memory(err, "the target");
  }
  return RPO_OK;
}

void rpo_target_norms(rpo_target *t) {
  for (int64_t i = 0; i < t->rows; i++) {
    double sum = 0.0;
    if (t->z != NULL) {
      for (int64_t c = 0; c < t->width; c++)
        sum += t->z[i * t->stride + c] * t->z[i * t->stride + c];
    } else if (t->value != NULL) {
      for (int64_t e = t->start[i]; e < t->start[i + 1]; e++) sum += t->value[e] * t->value[e];
    } else {
      sum = (double)(t->start[i + 1] - t->start[i]);
    }
    t->norm[i] = sum;
  }
}

/* Centring on a value of the data and then on the mean of the differences gives the same numbers for
 * y and y + c whenever y + c is exact. Whole numbers stay as they are: their sums are exact. */
static void centre(rpo_target *t) {
  int whole = 1;
  double largest = 0.0;
  for (int64_t i = 0; i < t->rows && whole; i++) {
    for (int64_t c = 0; c < t->width; c++) {
      double const v = t->z[i * t->stride + c];
      whole &= v == floor(v);
      if (fabs(v) > largest) largest = fabs(v);
    }
  }
  if (whole && largest <= 1024.0) return;
  for (int64_t c = 0; c < t->width; c++) {
    double const first = t->z[c];
    double sum = 0.0;
    for (int64_t i = 0; i < t->rows; i++) sum += t->z[i * t->stride + c] - first;
    double const mean = sum / (double)t->rows;
    for (int64_t i = 0; i < t->rows; i++) {
      double *const v = &t->z[i * t->stride + c];
      *v = (*v - first) - mean;
    }
  }
}

static rpo_status read_dense(const rpo_matrix *Y, int centred, rpo_target *t, rpo_error *err) {
  RPO_TRY(rpo_target_sums(Y->rows, Y->cols, t, err));
  for (int64_t i = 0; i < Y->rows; i++) {
    for (int64_t c = 0; c < Y->cols; c++) t->z[i * t->stride + c] = rpo_dense_at(Y, i, c);
  }
  if (centred) centre(t);
  rpo_target_norms(t);
  return RPO_OK;
}

/* An entry behind those from `first`, in order of outputs: equal rows must look equal. Most come sorted. */
static void put_sorted(rpo_target *t, int64_t first, int64_t at, int32_t index, double value) {
  for (; at > first && t->index[at - 1] > index; at--) {
    t->index[at] = t->index[at - 1];
    t->value[at] = t->value[at - 1];
  }
  t->index[at] = index;
  t->value[at] = value;
}

static rpo_status read_sparse(const rpo_matrix *Y, rpo_target *t, rpo_error *err) {
  int64_t const stored = rpo_ptr_at(Y, Y->rows);
  int32_t *const renumber = rpo_new_zero(Y->cols, 4);
  rpo_status status = RPO_OK;
  memset(t, 0, sizeof *t);
  t->rows = Y->rows;
  t->start = rpo_new(Y->rows + 1, 8);
  t->index = rpo_new(stored, 4);
  t->value = rpo_new(stored, 8);
  t->norm = rpo_new(Y->rows, 8);
  if (renumber == NULL || t->start == NULL || t->index == NULL || t->value == NULL ||
      t->norm == NULL) {
    status = rpo_fail_memory(err, "the target");
    goto done;
  }
  for (int64_t e = 0; e < stored; e++) {
    if (rpo_value_at(Y->data, Y->dtype, e) != 0.0) {
      renumber[rpo_index_at(Y->indices, Y->index, e)] = 1;
    }
  }
  for (int64_t j = 0; j < Y->cols; j++) {
    if (renumber[j] != 0) renumber[j] = (int32_t)++t->width;
  }
  t->origin = rpo_new(t->width, 8);
  if (t->origin == NULL) {
    status = rpo_fail_memory(err, "the target");
    goto done;
  }
  for (int64_t j = 0; j < Y->cols; j++) {
    if (renumber[j] != 0) t->origin[renumber[j] - 1] = j;
  }
  int ones = 1;
  int64_t kept = 0;
  for (int64_t i = 0; i < Y->rows; i++) {
    t->start[i] = kept;
    for (int64_t e = rpo_ptr_at(Y, i); e < rpo_ptr_at(Y, i + 1); e++) {
      double const v = rpo_value_at(Y->data, Y->dtype, e);
      if (v == 0.0) continue;
      ones &= v == 1.0;
      put_sorted(t, t->start[i], kept++, renumber[rpo_index_at(Y->indices, Y->index, e)] - 1, v);
    }
  }
  t->start[Y->rows] = kept;
  if (ones) {
    rpo_delete(t->value);
    t->value = NULL;
  }
  rpo_target_norms(t);
done:
  rpo_delete(renumber);
  if (status != RPO_OK) rpo_target_release(t);
  return status;
}

rpo_status rpo_target_new(const rpo_matrix *Y, int centred, rpo_target *out, rpo_error *err) {
  return Y->format == RPO_DENSE ? read_dense(Y, centred, out, err) : read_sparse(Y, out, err);
}

int rpo_target_is_classes(const rpo_target *t) {
  if (t->z != NULL || t->value != NULL || t->start[t->rows] != t->rows) return 0;
  for (int64_t i = 0; i < t->rows; i++) {
    if (t->start[i] != i) return 0;
  }
  return 1;
}

int rpo_target_is_small(const rpo_target *t) {
  return t->width <= 8 || (double)t->width * (double)t->rows <= 4.0 * (double)t->start[t->rows];
}

rpo_status rpo_target_spread(const rpo_target *labels, rpo_target *t, rpo_error *err) {
  RPO_TRY(rpo_target_sums(labels->rows, labels->width > 0 ? labels->width : 1, t, err));
  for (int64_t i = 0; i < labels->rows; i++) {
    for (int64_t e = labels->start[i]; e < labels->start[i + 1]; e++) {
      t->z[i * t->stride + labels->index[e]] = labels->value == NULL ? 1.0 : labels->value[e];
    }
  }
  if (labels->value != NULL) centre(t);
  rpo_target_norms(t);
  return RPO_OK;
}
