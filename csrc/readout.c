/* From leaves to predictions: A L, with A (samples x leaves) walked row after row and L the leaf table
 * or S Y. Rows are taken in blocks, trees in order within a row: the bits depend on neither the block
 * nor the thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"
#include "readout.h"
#include "topk.h"

#define BLOCK_ROWS 256
#define BLOCK_NUMBERS 131072 /* of X in a block: a megabyte */

/* ---- Blocks of X ---- */

static void load_rows(const rpo_matrix *X, int64_t first, int64_t rows, double *x) {
  int64_t const p = X->cols;
  if (X->format == RPO_DENSE) {
    for (int64_t i = 0; i < rows; i++) {
      double *const to = x + i * p;
      if (X->col_stride == 1 && X->dtype == RPO_F32) {
        const float *const from = (const float *)X->data + (first + i) * X->row_stride;
        for (int64_t j = 0; j < p; j++) to[j] = (double)from[j];
      } else {
        for (int64_t j = 0; j < p; j++) to[j] = rpo_dense_at(X, first + i, j);
      }
    }
    return;
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t e = rpo_ptr_at(X, first + i); e < rpo_ptr_at(X, first + i + 1); e++) {
      x[i * p + rpo_index_at(X->indices, X->index, e)] = rpo_value_at(X->data, X->dtype, e);
    }
  }
}

/* A sparse block was zero before and is zero again after. */
void rpo_unload_rows(const rpo_matrix *X, int64_t first, int64_t rows, double *x) {
  if (X->format == RPO_DENSE) return;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t e = rpo_ptr_at(X, first + i); e < rpo_ptr_at(X, first + i + 1); e++) {
      x[i * X->cols + rpo_index_at(X->indices, X->index, e)] = 0.0;
    }
  }
}

static rpo_status start_scratch(rpo_reading *r, rpo_scratch *s, rpo_error *err) {
  if (s->x != NULL) return RPO_OK;
  int64_t const by_row = r->m->rows * (r->indptr != NULL && r->m->row.data != NULL);
  int64_t const width = r->m->columns > by_row ? r->m->columns : by_row;
  s->leaf = rpo_new(r->m->trees * r->block, 4);
  s->sum = rpo_new_zero(width, 8);
  s->touched = rpo_new(by_row, 8);
  s->mark = rpo_new_zero(by_row, 1);
  s->first = rpo_new(r->m->trees, 8);
  s->end = rpo_new(r->m->trees, 8);
  s->unit = rpo_new(r->m->trees, 8);
  if (s->leaf == NULL || s->sum == NULL || s->touched == NULL || s->mark == NULL ||
      s->first == NULL || s->end == NULL || s->unit == NULL ||
      (s->x = rpo_new_zero(r->block * r->X->cols, 8)) == NULL) {
    return rpo_fail_memory(err, "the predictions");
  }
  return RPO_OK;
}

/* The leaves of a block of rows in every tree: s->leaf[tree * block + row]. */
rpo_status rpo_find_leaves(rpo_reading *r, int64_t task, int thread, int64_t *first, int64_t *rows,
                           rpo_error *err) {
  rpo_scratch *const s = &r->scratch[thread];
  RPO_TRY(start_scratch(r, s, err));
  *first = task * r->block;
  *rows = r->X->rows - *first < r->block ? r->X->rows - *first : r->block;
  load_rows(r->X, *first, *rows, s->x);
  for (int64_t t = 0; t < r->m->trees; t++) {
    r->kernels->leaves(r->m, t, s->x, r->X->cols, *rows, s->leaf + t * r->block);
  }
  return RPO_OK;
}

static void release(rpo_reading *r) {
  for (int i = 0; r->scratch != NULL && i < r->threads; i++) {
    rpo_delete(r->scratch[i].x);
    rpo_delete(r->scratch[i].leaf);
    rpo_delete(r->scratch[i].sum);
    rpo_delete(r->scratch[i].touched);
    rpo_delete(r->scratch[i].mark);
    rpo_delete(r->scratch[i].first);
    rpo_delete(r->scratch[i].end);
    rpo_delete(r->scratch[i].unit);
  }
  rpo_delete(r->scratch);
}

rpo_status rpo_read_blocks(rpo_reading *r, const rpo_control *control, rpo_task_fn task,
                           rpo_error *err) {
  int64_t const by_size = BLOCK_NUMBERS / r->X->cols;
  r->block = by_size < 8 ? 8 : by_size > BLOCK_ROWS ? BLOCK_ROWS : by_size;
  int64_t const blocks = (r->X->rows + r->block - 1) / r->block;
  r->threads = rpo_threads(control, blocks);
  r->kernels = rpo_kernels_pick();
  r->scratch = rpo_new_zero(r->threads, (int64_t)sizeof *r->scratch);
  if (r->scratch == NULL) return rpo_fail_memory(err, "the predictions");
  rpo_status const status = rpo_run(control, blocks, task, r, err);
  release(r);
  return status;
}

rpo_status rpo_check_input(const rpo_forest *m, const rpo_matrix *X, const void *out,
                           rpo_error *err) {
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  RPO_TRY(rpo_matrix_check(X, "X", err));
  if (X->cols != m->inputs) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld columns, the forest was fitted to %lld",
                    (long long)X->cols, (long long)m->inputs);
  }
  if (X->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "X must be dense or CSR, not CSC");
  return rpo_matrix_check_values(X, "X", 1, err);
}

/* ---- Sums over leaves ---- */

static inline int64_t label_at(const rpo_array *a, int64_t i) {
  if (a->type == RPO_TYPE_U16) return ((const uint16_t *)a->data)[i];
  return ((const int32_t *)a->data)[i];
}

/* Weights of leaves and rows: mostly small whole numbers. */
static inline double weight_at(const rpo_array *a, int64_t i) {
  if (a->type == RPO_TYPE_U8) return ((const uint8_t *)a->data)[i];
  if (a->type == RPO_TYPE_U16) return ((const uint16_t *)a->data)[i];
  return rpo_array_number(a, i);
}

/* sum += labels of one training row, times `share`. */
static inline void add_labels(const rpo_forest *m, int64_t row, double share, double *sum) {
  if (m->label_start == NULL) {
    int64_t const first = row * m->columns;
    if (m->label_value.type == RPO_TYPE_F64) {
      const double *const y = (const double *)m->label_value.data + first;
      for (int64_t j = 0; j < m->columns; j++) sum[j] += share * y[j];
    } else {
      for (int64_t j = 0; j < m->columns; j++) {
        sum[j] += share * rpo_array_number(&m->label_value, first + j);
      }
    }
    return;
  }
  int64_t const first = m->label_start[row], end = m->label_start[row + 1];
  if (m->label_value.data == NULL && m->label_index.type == RPO_TYPE_U16) {
    const uint16_t *const index = (const uint16_t *)m->label_index.data;
    for (int64_t e = first; e < end; e++) sum[index[e]] += share;
  } else if (m->label_value.data == NULL) {
    for (int64_t e = first; e < end; e++) sum[label_at(&m->label_index, e)] += share;
  } else {
    for (int64_t e = first; e < end; e++) {
      sum[label_at(&m->label_index, e)] += share * rpo_array_number(&m->label_value, e);
    }
  }
}

/* sum += the mean labels of a leaf (numbered over all trees). */
void rpo_add_leaf(const rpo_forest *m, int64_t leaf, double *sum) {
  if (m->table.data != NULL) {
    int64_t const first = leaf * m->columns;
    for (int64_t j = 0; j < m->columns; j++) sum[j] += rpo_array_number(&m->table, first + j);
    return;
  }
  double const unit = 1.0 / weight_at(&m->leaf_weight, leaf);
  for (int64_t i = m->leaf_row_start[leaf]; i < m->leaf_row_start[leaf + 1]; i++) {
    double const w = m->row_weight.data == NULL ? 1.0 : weight_at(&m->row_weight, i);
    add_labels(m, label_at(&m->row, i), unit * w, sum);
  }
}

/* sum += the means of one row's leaves over the trees that count; returns how many do. First all
 * leaves are looked up, then all rows: the memory answers many questions at once. */
static int64_t add_leaves(const rpo_reading *r, const rpo_scratch *s, int64_t i,
                          const uint8_t *in_bag, double *sum) {
  const rpo_forest *const m = r->m;
  int64_t count = 0;
  if (m->table.data != NULL) {
    for (int64_t t = 0; t < m->trees; t++) {
      if (in_bag != NULL && in_bag[t * m->rows]) continue;
      rpo_add_leaf(m, m->leaf_start[t] + s->leaf[t * r->block + i], sum);
      count++;
    }
    return count;
  }
  for (int64_t t = 0; t < m->trees; t++) {
    if (in_bag != NULL && in_bag[t * m->rows]) continue;
    int64_t const leaf = m->leaf_start[t] + s->leaf[t * r->block + i];
    s->first[count] = m->leaf_row_start[leaf];
    s->end[count] = m->leaf_row_start[leaf + 1];
    s->unit[count++] = 1.0 / weight_at(&m->leaf_weight, leaf);
  }
  for (int64_t t = 0; t < count; t++) {
    for (int64_t e = s->first[t]; e < s->end[t]; e++) {
      double const w = m->row_weight.data == NULL ? 1.0 : weight_at(&m->row_weight, e);
      add_labels(m, label_at(&m->row, e), s->unit[t] * w, sum);
    }
  }
  return count;
}

/* What rounding leaves of a zero becomes one: it may be a denominator. */
static inline double without(double sum, double part) {
  return fabs(sum - part) < 1e-12 * fabs(part) ? 0.0 : sum - part;
}

static void take_away(const rpo_labels *l, int64_t row, double share, double *sum) {
  if (l->dense != NULL) {
    const double *const y = l->dense + row * l->columns;
    for (int64_t j = 0; j < l->columns; j++) sum[j] = without(sum[j], share * y[j]);
    return;
  }
  for (int64_t e = l->start[row]; e < l->start[row + 1]; e++) {
    double *const s = sum + l->index[e];
    *s = without(*s, share * (l->value == NULL ? 1.0 : l->value[e]));
  }
}

/* The same of a training row, over the trees that did not see it. Leaves that hold all rows hold it
 * too: of weight w in a leaf of weight W and mean v, the mean of the others is (W v - w y) / (W - w). */
static int64_t add_others(const rpo_reading *r, const rpo_scratch *s, int64_t i, int64_t self,
                          double *sum) {
  const rpo_forest *const m = r->m;
  double const own = r->weight == NULL ? 1.0 : r->weight[self];
  double taken = 0.0;
  int64_t count = 0;
  for (int64_t t = 0; t < m->trees; t++) {
    if (r->in_bag[t * m->rows + self]) continue;
    int64_t const leaf = m->leaf_start[t] + s->leaf[t * r->block + i];
    double const all = weight_at(&m->leaf_weight, leaf), unit = 1.0 / (all - own);
    if (!(all > own)) continue; /* all but nothing of the weight is its own, by rounding */
    count++;
    if (m->table.data != NULL) {
      int64_t const first = leaf * m->columns;
      taken += unit * own;
      for (int64_t j = 0; j < m->columns; j++) {
        sum[j] += unit * all * rpo_array_number(&m->table, first + j);
      }
      continue;
    }
    for (int64_t e = m->leaf_row_start[leaf]; e < m->leaf_row_start[leaf + 1]; e++) {
      double const w = m->row_weight.data == NULL ? 1.0 : weight_at(&m->row_weight, e);
      int64_t const row = label_at(&m->row, e);
      if (row != self) add_labels(m, row, unit * w, sum);
    }
  }
  if (taken > 0.0) take_away(r->held, self, taken, sum);
  return count;
}

/* From sums over `count` trees to predictions. */
/* Shares, between 0 and 1, are rounded to multiples of 2^-46 (adding and subtracting 96 does it), so
 * that one half, one, and ties come out exact however the sum was made. */
void rpo_finish_row(const rpo_forest *m, const double *sum, int64_t count, double *out) {
  double const trees = (double)count;
  if (m->ratio) {
    for (int64_t j = 0; j < m->outputs; j++) {
      double const below = sum[m->outputs + j];
      out[j] = below > 0.0 ? sum[j] / below : rpo_array_number(&m->fallback, j);
    }
  } else if (m->shares) {
    for (int64_t j = 0; j < m->outputs; j++) out[j] = (sum[j] / trees + 96.0) - 96.0;
  } else {
    for (int64_t j = 0; j < m->outputs; j++) out[j] = sum[j] / trees;
  }
}

static rpo_status predict_block(void *context, int64_t task, int thread, rpo_job *job,
                                rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  rpo_scratch *const s = &r->scratch[thread];
  int64_t first, rows;
  (void)job;
  RPO_TRY(rpo_find_leaves(r, task, thread, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t count;
    double *const out = r->out + (first + i) * m->outputs;
    double *const sum = m->ratio ? s->sum : out;
    memset(sum, 0, (size_t)m->columns * sizeof *sum);
    count = r->held != NULL
                ? add_others(r, s, i, first + i, sum)
                : add_leaves(r, s, i, r->in_bag == NULL ? NULL : r->in_bag + first + i, sum);
    if (r->counts != NULL) r->counts[first + i] = count;
    if (count > 0) {
      rpo_finish_row(m, sum, count, out);
    } else {
      for (int64_t j = 0; j < m->outputs; j++) out[j] = NAN;
    }
  }
  rpo_unload_rows(r->X, first, rows, s->x);
  return RPO_OK;
}

rpo_status rpo_forest_predict(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                              double *out, rpo_error *err) {
  rpo_reading r;
  memset(&r, 0, sizeof r);
  RPO_TRY(rpo_check_input(m, X, out, err));
  r.m = m;
  r.X = X;
  r.out = out;
  return rpo_read_blocks(&r, control, predict_block, err);
}

/* Labels of a forest whose leaves hold all rows. */
static rpo_status read_held(const rpo_forest *m, const rpo_matrix *labels, rpo_labels *out,
                            rpo_error *err) {
  if (labels == NULL) {
    return rpo_fail(err, RPO_EINVAL, "labels is NULL, but the leaves hold all rows");
  }
  RPO_TRY(rpo_matrix_check(labels, "labels", err));
  RPO_TRY(rpo_matrix_check_values(labels, "labels", 0, err));
  if (labels->format == RPO_CSC || labels->rows != m->rows || labels->cols != m->columns) {
    return rpo_fail(err, RPO_EINVAL, "labels must be %lld x %lld, dense or CSR, as in the fit",
                    (long long)m->rows, (long long)m->columns);
  }
  return rpo_labels_new(labels, out, err);
}

rpo_status rpo_forest_predict_oob(const rpo_forest *m, const rpo_matrix *X,
                                  const rpo_matrix *labels, const double *weight,
                                  const rpo_control *control, double *out, int64_t *counts,
                                  rpo_error *err) {
  rpo_reading r;
  rpo_labels held;
  double *sums = NULL, *drawn = NULL;
  uint8_t *in_bag = NULL;
  rpo_status status;
  memset(&r, 0, sizeof r);
  memset(&held, 0, sizeof held);
  RPO_TRY(rpo_check_input(m, X, out, err));
  if (X->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld rows, the forest was fitted to %lld",
                    (long long)X->rows, (long long)m->rows);
  }
  for (int64_t t = 0; t < m->trees; t++) {
    if (m->sampling[3 * t + 2] == 0) {
      return rpo_fail(err, RPO_EINVAL, "out-of-bag predictions need trees grown with bootstrap");
    }
  }
  for (int64_t i = 0; weight != NULL && i < m->rows; i++) {
    if (!(weight[i] >= 0.0 && isfinite(weight[i]))) {
      return rpo_fail(err, RPO_EINVAL, "weight must be finite and not negative, found %g",
                      weight[i]);
    }
  }
  if (m->sample_weight.data != NULL) {
    RPO_GOTO(read_held(m, labels, &held, err));
    r.held = &held;
    r.weight = weight;
  }
  RPO_GOTO(rpo_weight_sums(weight, m->rows, &sums, err));
  drawn = rpo_new(m->rows, 8);
  in_bag = m->rows > INT64_MAX / m->trees ? NULL : rpo_new(m->rows * m->trees, 1);
  if (drawn == NULL || in_bag == NULL) {
    status = rpo_fail_memory(err, "the out-of-bag rows");
    goto done;
  }
  for (int64_t t = 0; t < m->trees; t++) {
    rpo_bootstrap((uint64_t)m->sampling[3 * t], (uint64_t)m->sampling[3 * t + 1],
                  m->sampling[3 * t + 2], sums, m->rows, drawn);
    for (int64_t i = 0; i < m->rows; i++) in_bag[t * m->rows + i] = drawn[i] > 0.0;
  }
  r.m = m;
  r.X = X;
  r.out = out;
  r.counts = counts;
  r.in_bag = in_bag;
  status = rpo_read_blocks(&r, control, predict_block, err);
done:
  rpo_labels_release(&held);
  rpo_delete(sums);
  rpo_delete(drawn);
  rpo_delete(in_bag);
  return status;
}

/* ---- The best k ---- */

static rpo_status topk_block(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  rpo_scratch *const s = &r->scratch[thread];
  int64_t first, rows;
  (void)job;
  RPO_TRY(rpo_find_leaves(r, task, thread, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t kept = 0;
    memset(s->sum, 0, (size_t)m->columns * sizeof *s->sum);
    (void)add_leaves(r, s, i, NULL, s->sum);
    rpo_finish_row(m, s->sum, m->trees, s->sum);
    for (int64_t j = 0; j < m->outputs; j++) {
      rpo_keep_best(s->sum[j], j, r->k, &kept, r->index + (first + i) * r->k,
                    r->out + (first + i) * r->k);
    }
  }
  rpo_unload_rows(r->X, first, rows, s->x);
  return RPO_OK;
}

rpo_status rpo_forest_predict_topk(const rpo_forest *m, const rpo_matrix *X, int64_t k,
                                   const rpo_control *control, int64_t *out_index,
                                   double *out_score, rpo_error *err) {
  rpo_reading r;
  memset(&r, 0, sizeof r);
  RPO_TRY(rpo_check_input(m, X, out_index, err));
  if (out_score == NULL) return rpo_fail(err, RPO_EINVAL, "out_score is NULL");
  if (k < 1 || k > m->outputs) {
    return rpo_fail(err, RPO_EINVAL, "k must be between 1 and the number of outputs %lld, got %lld",
                    (long long)m->outputs, (long long)k);
  }
  r.m = m;
  r.X = X;
  r.k = k;
  r.index = out_index;
  r.out = out_score;
  return rpo_read_blocks(&r, control, topk_block, err);
}

/* ---- Weights of training rows ---- */

static int ascending(const void *a, const void *b) {
  int64_t const x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static rpo_status weights_block(void *context, int64_t task, int thread, rpo_job *job,
                                rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  rpo_scratch *const s = &r->scratch[thread];
  int64_t first, rows;
  (void)job;
  RPO_TRY(rpo_find_leaves(r, task, thread, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t found = 0;
    for (int64_t t = 0; t < m->trees; t++) {
      int64_t const leaf = m->leaf_start[t] + s->leaf[t * r->block + i];
      double const unit = 1.0 / rpo_array_number(&m->leaf_weight, leaf) / (double)m->trees;
      for (int64_t e = m->leaf_row_start[leaf]; e < m->leaf_row_start[leaf + 1]; e++) {
        int64_t const row = label_at(&m->row, e);
        double const w = m->row_weight.data == NULL ? 1.0 : rpo_array_number(&m->row_weight, e);
        if (!s->mark[row]) {
          s->mark[row] = 1;
          s->touched[found++] = row;
        }
        s->sum[row] += unit * w;
      }
    }
    if (r->columns == NULL) {
      r->indptr[first + i + 1] = found;
    } else {
      qsort(s->touched, (size_t)found, sizeof *s->touched, ascending);
    }
    for (int64_t e = 0; e < found; e++) {
      int64_t const row = s->touched[e];
      if (r->columns != NULL) {
        r->columns[r->indptr[first + i] + e] = row;
        r->out[r->indptr[first + i] + e] = s->sum[row];
      }
      s->sum[row] = 0.0;
      s->mark[row] = 0;
    }
  }
  rpo_unload_rows(r->X, first, rows, s->x);
  return RPO_OK;
}

void rpo_add_up(int64_t *indptr, int64_t rows) {
  indptr[0] = 0;
  for (int64_t i = 0; i < rows; i++) indptr[i + 1] += indptr[i];
}

rpo_status rpo_forest_weights(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                              int64_t *indptr, int64_t *columns, double *values, rpo_error *err) {
  rpo_reading r;
  memset(&r, 0, sizeof r);
  RPO_TRY(rpo_check_input(m, X, indptr, err));
  if (m->row.data == NULL) {
    return rpo_fail(err, RPO_EINVAL,
                    "the forest keeps its leaves as a table, not as training rows: no weights");
  }
  if ((columns == NULL) != (values == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "columns and values must both be given or both be NULL");
  }
  r.m = m;
  r.X = X;
  r.indptr = indptr;
  r.columns = columns;
  r.out = values;
  RPO_TRY(rpo_read_blocks(&r, control, weights_block, err));
  if (columns == NULL) rpo_add_up(indptr, X->rows);
  return RPO_OK;
}
