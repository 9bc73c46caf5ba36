/* From leaves to predictions: A L, with A (samples x leaves) walked row after row and L the leaf table
 * or S Y. The product is taken in the cheap order: A S first, since trees agree and a row's leaves
 * share their training rows, then times Y. Rows are taken in blocks, trees in order within a row: the
 * bits depend on neither the block nor the thread. */
#include "readout.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"
#include "sums.h"

/* ---- A S ---- */

static inline int64_t index_of(const void *data, int32_t type, int64_t i) {
  return type == RPO_TYPE_U16 ? (int64_t)((const uint16_t *)data)[i]
                              : (int64_t)((const int32_t *)data)[i];
}

/* Whether numbers first .. end of an array are below a bound. */
static int all_below(const rpo_array *a, int64_t first, int64_t end, int64_t bound) {
  int good = 1;
  if (a->type == RPO_TYPE_U16) {
    const uint16_t *const v = a->data;
    for (int64_t e = first; e < end; e++) good &= v[e] < bound;
  } else {
    const int32_t *const v = a->data;
    for (int64_t e = first; e < end; e++) good &= v[e] >= 0 && v[e] < bound;
  }
  return good;
}

rpo_status rpo_rows_check(const rpo_reading *r, const rpo_scratch *s, int64_t i, rpo_error *err) {
  const rpo_forest *const m = r->m;
  if (m->trusted || r->s == NULL) return RPO_OK;
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const leaf = s->leaf[t * r->block + i];
    int64_t const first = rpo_leaf_begin(m, r->s, t, leaf);
    int64_t const end = rpo_leaf_begin(m, r->s, t, leaf + 1);
    if (first < r->s->tree_start[t] || end < first || end > r->s->tree_start[t + 1] ||
        !all_below(&r->s->row, first, end, m->rows)) {
      return rpo_untrusted(err, "a leaf has training rows that are not there");
    }
  }
  return RPO_OK;
}

rpo_status rpo_values_check(const rpo_forest *m, const int64_t *pick, int64_t count,
                            rpo_error *err) {
  if (m->trusted || m->value_start == NULL) return RPO_OK;
  for (int64_t i = 0; i < count; i++) {
    int64_t const first = m->value_start[pick[i]], end = m->value_start[pick[i] + 1];
    if (first < 0 || end < first || end > m->value_index.count ||
        !all_below(&m->value_index, first, end, m->columns)) {
      return rpo_untrusted(err, "values of an output that is not there");
    }
  }
  return RPO_OK;
}

/* Weights of leaves and rows: mostly small whole numbers. */
static inline double weight_of(const rpo_array *a, int32_t type, int64_t i) {
  if (type == 0) return 1.0;
  if (type == RPO_TYPE_U8) return ((const uint8_t *)a->data)[i];
  if (type == RPO_TYPE_U16) return ((const uint16_t *)a->data)[i];
  return rpo_array_number(a, i);
}

/* One body for all types, which are constants where it is called. */
static inline int64_t merge_leaves(const rpo_leaf_rows *rows, rpo_scratch *s, int64_t trees,
                                   int32_t row_type, int32_t weight_type) {
  int64_t found = 0;
  for (int64_t t = 0; t < trees; t++) {
    double const unit = s->unit[t];
    for (int64_t e = s->first[t]; e < s->end[t]; e++) {
      int64_t const row = index_of(rows->row.data, row_type, e);
      s->weight[row] += unit * weight_of(&rows->weight, weight_type, e);
      s->pick[found] = row;
      found += 1 - s->mark[row];
      s->mark[row] = 1;
    }
  }
  return found;
}

/* First all leaves are looked up, then all rows: the memory answers many questions at once. */
int64_t rpo_collect_rows(const rpo_reading *r, rpo_scratch *s, int64_t i, const uint8_t *in_bag,
                         int64_t *found) {
  const rpo_forest *const m = r->m;
  const rpo_leaf_rows *const rows = r->s;
  int64_t const row_bytes = rows->row.type == RPO_TYPE_U16 ? 2 : 4;
  int64_t count = 0;
  for (int64_t t = 0; t < m->trees; t++) {
    if (in_bag != NULL && in_bag[t * m->rows]) continue;
    int64_t const leaf = s->leaf[t * r->block + i];
    s->first[count] = rpo_leaf_begin(m, rows, t, leaf);
    s->end[count] = rpo_leaf_begin(m, rows, t, leaf + 1);
    RPO_PREFETCH((const char *)rows->row.data + s->first[count] * row_bytes);
    s->unit[count++] =
        1.0 / weight_of(&m->leaf_weight, m->leaf_weight.type, m->leaf_start[t] + leaf);
  }
  int32_t const type = rows->row.type;
  int32_t const weight = rows->weight.data == NULL ? 0 : rows->weight.type;
  if (type == RPO_TYPE_U16 && weight == RPO_TYPE_U8) {
    *found = merge_leaves(rows, s, count, RPO_TYPE_U16, RPO_TYPE_U8);
  } else if (type == RPO_TYPE_I32 && weight == RPO_TYPE_U8) {
    *found = merge_leaves(rows, s, count, RPO_TYPE_I32, RPO_TYPE_U8);
  } else {
    *found = merge_leaves(rows, s, count, type, weight);
  }
  return count;
}

void rpo_take_weights(rpo_scratch *s, int64_t found) {
  for (int64_t e = 0; e < found; e++) {
    int64_t const row = s->pick[e];
    s->share[e] = s->weight[row];
    s->weight[row] = 0.0;
    s->mark[row] = 0;
  }
}

/* ---- Times Y, or A times L ---- */

int64_t rpo_pick_values(const rpo_reading *r, rpo_scratch *s, int64_t i, const uint8_t *in_bag,
                        int64_t *found) {
  const rpo_forest *const m = r->m;
  int64_t count = 0;
  if (r->s != NULL) {
    count = rpo_collect_rows(r, s, i, in_bag, found);
    rpo_take_weights(s, *found);
    return count;
  }
  for (int64_t t = 0; t < m->trees; t++) {
    if (in_bag != NULL && in_bag[t * m->rows]) continue;
    s->pick[count] = m->leaf_start[t] + s->leaf[t * r->block + i];
    s->share[count++] = 1.0;
  }
  *found = count;
  return count;
}

#define ADD_DENSE(type)                                                    \
  for (int64_t i = 0; i < count; i++) {                                    \
    const type *const y = (const type *)m->value.data + pick[i] * columns; \
    double const w = share[i];                                             \
    for (int64_t j = 0; j < columns; j++) sum[j] += w * (double)y[j];      \
  }

static void add_dense(const rpo_forest *m, const int64_t *pick, const double *share, int64_t count,
                      double *sum) {
  int64_t const columns = m->columns;
  switch (m->value.type) {
    case RPO_TYPE_U8: ADD_DENSE(uint8_t) break;
    case RPO_TYPE_U16: ADD_DENSE(uint16_t) break;
    case RPO_TYPE_I16: ADD_DENSE(int16_t) break;
    case RPO_TYPE_I32: ADD_DENSE(int32_t) break;
    case RPO_TYPE_I64: ADD_DENSE(int64_t) break;
    case RPO_TYPE_F32: ADD_DENSE(float) break;
    default: ADD_DENSE(double) break;
  }
}

void rpo_add_values(const rpo_forest *m, const int64_t *pick, const double *share, int64_t count,
                    double *sum) {
  if (m->value_start == NULL) {
    add_dense(m, pick, share, count, sum);
    return;
  }
  const void *const index = m->value_index.data;
  for (int64_t i = 0; i < count; i++) {
    int64_t const first = m->value_start[pick[i]], end = m->value_start[pick[i] + 1];
    double const w = share[i];
    if (m->value.data != NULL) {
      for (int64_t e = first; e < end; e++) {
        sum[index_of(index, m->value_index.type, e)] += w * rpo_array_number(&m->value, e);
      }
    } else if (m->value_index.type == RPO_TYPE_U16) {
      for (int64_t e = first; e < end; e++) sum[((const uint16_t *)index)[e]] += w;
    } else {
      for (int64_t e = first; e < end; e++) sum[((const int32_t *)index)[e]] += w;
    }
  }
}

void rpo_finish_row(const rpo_forest *m, const double *sum, int64_t count, double *out) {
  double const trees = (double)count;
  if (m->ratio) {
    for (int64_t j = 0; j < m->outputs; j++) {
      double const below = sum[m->outputs + j];
      out[j] = below > 0.0 ? sum[j] / below : rpo_array_number(&m->fallback, j);
    }
  } else if (m->shares) {
    double const each = 1.0 / trees;
    for (int64_t j = 0; j < m->outputs; j++) out[j] = (sum[j] * each + 96.0) - 96.0;
  } else {
    for (int64_t j = 0; j < m->outputs; j++) out[j] = sum[j] / trees;
  }
}

/* ---- Training rows, where leaves hold all rows and a row's own labels must not count ---- */

/* Of weight w in a leaf of weight W and mean v, the mean of the others is (W v - w y) / (W - w). In the
 * rows form the row is skipped; of a table its share is to be taken away: *taken of its labels. */
static int64_t pick_others(const rpo_reading *r, rpo_scratch *s, int64_t i, int64_t self,
                           int64_t *found, double *taken) {
  const rpo_forest *const m = r->m;
  double const own = r->weight == NULL ? 1.0 : r->weight[self];
  int64_t trees = 0, picked = 0;
  *taken = 0.0;
  for (int64_t t = 0; t < m->trees; t++) {
    if (r->in_bag[t * m->rows + self]) continue;
    int64_t const leaf = s->leaf[t * r->block + i];
    double const all = rpo_array_number(&m->leaf_weight, m->leaf_start[t] + leaf);
    if (!(all > own)) continue; /* all but nothing of the weight is its own, by rounding */
    double const unit = 1.0 / (all - own);
    trees++;
    if (r->s == NULL) {
      s->pick[picked] = m->leaf_start[t] + leaf;
      s->share[picked++] = unit * all;
      *taken += unit * own;
      continue;
    }
    int64_t const end = rpo_leaf_begin(m, r->s, t, leaf + 1);
    for (int64_t e = rpo_leaf_begin(m, r->s, t, leaf); e < end; e++) {
      int64_t const row = rpo_array_whole(&r->s->row, e);
      if (row == self) continue;
      s->weight[row] +=
          unit * (r->s->weight.data == NULL ? 1.0 : rpo_array_number(&r->s->weight, e));
      s->pick[picked] = row;
      picked += 1 - s->mark[row];
      s->mark[row] = 1;
    }
  }
  if (r->s != NULL) rpo_take_weights(s, picked);
  *found = picked;
  return trees;
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

/* ---- Predictions ---- */

static rpo_status predict_block(void *context, int64_t task, int thread, rpo_job *job,
                                rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  const rpo_labels *const held = r->held;
  rpo_scratch *const s = &r->scratch[thread];
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t found;
    RPO_TRY(rpo_keep_on(job, thread, err));
    double *const out = r->out + (first + i) * m->outputs;
    double *const sum = m->ratio ? s->sum : out;
    const uint8_t *const in_bag = r->in_bag == NULL ? NULL : r->in_bag + first + i;
    double taken = 0.0;
    RPO_TRY(rpo_rows_check(r, s, i, err));
    int64_t const count = held != NULL ? pick_others(r, s, i, first + i, &found, &taken)
                                       : rpo_pick_values(r, s, i, in_bag, &found);
    RPO_TRY(rpo_values_check(m, s->pick, found, err));
    memset(sum, 0, (size_t)m->columns * sizeof *sum);
    rpo_add_values(m, s->pick, s->share, found, sum);
    if (held != NULL && taken > 0.0) take_away(held, first + i, taken, sum);
    if (r->counts != NULL) r->counts[first + i] = count;
    if (count > 0) {
      rpo_finish_row(m, sum, count, out);
    } else {
      for (int64_t j = 0; j < m->outputs; j++) out[j] = NAN;
    }
  }
  return RPO_OK;
}

rpo_status rpo_forest_predict(const rpo_forest *m, const rpo_matrix *X, const rpo_control *control,
                              double *out, rpo_error *err) {
  rpo_reading r;
  RPO_TRY(rpo_reading_start(&r, m, X, out, err));
  r.out = out;
  r.sums = m->ratio;
  if (m->start != NULL) return rpo_sums_read(&r, control, err);
  return rpo_read_blocks(&r, control, predict_block, err);
}

static rpo_status check_oob(const rpo_forest *m, const rpo_matrix *X, const double *weight,
                            rpo_error *err) {
  if (X->rows != m->rows) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld rows, the forest was fitted to %lld",
                    (long long)X->rows, (long long)m->rows);
  }
  for (int64_t t = 0; t < m->trees; t++) {
    if (m->sampling[3 * t + 2] == 0) {
      return rpo_fail(err, RPO_EINVAL, "out-of-bag predictions need trees grown with bootstrap");
    }
  }
  return rpo_weight_check(weight, m->rows, err);
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
  uint8_t *in_bag = NULL;
  rpo_status status;
  memset(&held, 0, sizeof held);
  RPO_TRY(rpo_reading_start(&r, m, X, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "out-of-bag predictions", err));
  RPO_TRY(rpo_model_check(m, err));
  RPO_TRY(check_oob(m, X, weight, err));
  if (m->sample_weight.data != NULL) {
    RPO_GOTO(read_held(m, labels, &held, err));
    r.held = &held;
    r.weight = weight;
  }
  RPO_GOTO(rpo_in_bag(m, NULL, m->rows, weight, control, &in_bag, err));
  r.out = out;
  r.counts = counts;
  r.in_bag = in_bag;
  r.sums = m->ratio;
  status = rpo_read_blocks(&r, control, predict_block, err);
done:
  rpo_labels_release(&held);
  rpo_delete(in_bag);
  return status;
}
