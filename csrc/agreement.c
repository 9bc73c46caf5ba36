/* What a forest's trees have in common about rows they have not seen: the squared error of one tree,
 * and that of infinitely many, from pairs of trees. */
#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"
#include "readout.h"
#include "sums.h"

typedef struct agreement {
  rpo_reading r; /* first: tasks get it by this address */
  const rpo_matrix *Y;
  double *out;   /* rows x 3 */
  double **work; /* by thread: f of one tree less y, and y, by column */
} agreement;

/* Rows of Y or L that make tree t's value for row i of the block, and their weights. */
static int64_t pick_tree(const rpo_reading *r, rpo_scratch *s, int64_t i, int64_t t) {
  const rpo_forest *const m = r->m;
  int64_t const leaf = s->leaf[t * r->block + i];
  if (r->s == NULL) {
    s->pick[0] = m->leaf_start[t] + leaf;
    s->share[0] = 1.0;
    return 1;
  }
  int64_t const first = rpo_leaf_begin(m, r->s, t, leaf),
                end = rpo_leaf_begin(m, r->s, t, leaf + 1);
  double const total = rpo_array_number(&m->leaf_weight, m->leaf_start[t] + leaf);
  for (int64_t e = first; e < end; e++) {
    s->pick[e - first] = rpo_array_whole(&r->s->row, e);
    s->share[e - first] =
        (r->s->weight.data == NULL ? 1.0 : rpo_array_number(&r->s->weight, e)) / total;
  }
  return end - first;
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0.0;
  for (int64_t j = 0; j < n; j++) sum += a[j] * b[j];
  return sum;
}

/* f . sum, of picked rows of sparse labels. */
static double dot_picked(const rpo_forest *m, const rpo_scratch *s, int64_t found,
                         const double *sum) {
  double product = 0.0;
  for (int64_t i = 0; i < found; i++) {
    for (int64_t e = m->value_start[s->pick[i]]; e < m->value_start[s->pick[i] + 1]; e++) {
      double const v = m->value.data == NULL ? 1.0 : rpo_array_number(&m->value, e);
      product += s->share[i] * v * sum[rpo_array_whole(&m->value_index, e)];
    }
  }
  return product;
}

static double y_at(const rpo_matrix *Y, int64_t row, int64_t e, int64_t *column) {
  *column = Y->format == RPO_DENSE ? e : rpo_index_at(Y->indices, Y->index, e);
  return Y->format == RPO_DENSE ? rpo_dense_at(Y, row, e) : rpo_value_at(Y->data, Y->dtype, e);
}

/* Sparse labels: sum_{a != b} f_a . f_b grows by twice f . F, F being the sum so far. */
static void agree_sparse(agreement *g, rpo_scratch *s, int64_t i, int64_t row,
                         const uint8_t *in_bag, double *out) {
  const rpo_forest *const m = g->r.m;
  const rpo_matrix *const Y = g->Y;
  double *const sum = s->sum;
  double b = 0.0, pairs = 0.0, hits = 0.0, norm = 0.0;
  memset(sum, 0, (size_t)m->columns * sizeof *sum);
  for (int64_t t = 0; t < m->trees; t++) {
    if (in_bag[t * g->r.X->rows]) continue;
    int64_t const found = pick_tree(&g->r, s, i, t);
    pairs += 2.0 * dot_picked(m, s, found, sum);
    rpo_add_values(m, s->pick, s->share, found, sum);
    b += 1.0;
  }
  int64_t const first = Y->format == RPO_DENSE ? 0 : rpo_ptr_at(Y, row);
  int64_t const end = Y->format == RPO_DENSE ? Y->cols : rpo_ptr_at(Y, row + 1);
  for (int64_t e = first; e < end; e++) {
    int64_t j;
    double const y = y_at(Y, row, e, &j);
    hits += y * sum[j];
    norm += y * y;
  }
  out[0] = b;
  out[1] = b * norm - 2.0 * hits + (dot(sum, sum, m->columns) - pairs);
  out[2] = b * (b - 1.0) * norm - 2.0 * (b - 1.0) * hits + pairs;
}

/* Dense ones: the same of residuals, whatever the mean of Y. */
static void agree_dense(agreement *g, rpo_scratch *s, int64_t i, int64_t row, double *value,
                        const uint8_t *in_bag, double *out) {
  const rpo_forest *const m = g->r.m;
  double *const sum = s->sum, *const y = value + m->columns;
  int64_t const first = g->Y->format == RPO_DENSE ? 0 : rpo_ptr_at(g->Y, row);
  int64_t const end = g->Y->format == RPO_DENSE ? m->columns : rpo_ptr_at(g->Y, row + 1);
  memset(y, 0, (size_t)m->columns * sizeof *y);
  for (int64_t e = first; e < end; e++) {
    int64_t j;
    double const v = y_at(g->Y, row, e, &j);
    y[j] += v;
  }
  memset(sum, 0, (size_t)m->columns * sizeof *sum);
  out[0] = out[1] = out[2] = 0.0;
  for (int64_t t = 0; t < m->trees; t++) {
    if (in_bag[t * g->r.X->rows]) continue;
    int64_t const found = pick_tree(&g->r, s, i, t);
    memset(value, 0, (size_t)m->columns * sizeof *value);
    rpo_add_values(m, s->pick, s->share, found, value);
    for (int64_t j = 0; j < m->columns; j++) value[j] -= y[j];
    out[0] += 1.0;
    out[1] += dot(value, value, m->columns);
    out[2] += 2.0 * dot(value, sum, m->columns);
    for (int64_t j = 0; j < m->columns; j++) sum[j] += value[j];
  }
}

static rpo_status agree_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  agreement *const g = context;
  const rpo_forest *const m = g->r.m;
  rpo_scratch *const s = &g->r.scratch[thread];
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(&g->r, task, thread, job, &first, &rows, err));
  if (m->value_start == NULL && g->work[thread] == NULL) {
    g->work[thread] = rpo_new(m->columns, 16);
    if (g->work[thread] == NULL) return rpo_fail_memory(err, "the errors");
  }
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t *const in_bag = g->r.in_bag + first + i;
    double *const out = g->out + 3 * (first + i);
    RPO_TRY(rpo_keep_on(job, thread, err));
    if (m->value_start != NULL) {
      agree_sparse(g, s, i, first + i, in_bag, out);
    } else {
      agree_dense(g, s, i, first + i, g->work[thread], in_bag, out);
    }
  }
  return RPO_OK;
}

static rpo_status check(const rpo_forest *m, const rpo_matrix *X, const rpo_matrix *Y,
                        const int64_t *rows, const double *weight, rpo_error *err) {
  RPO_TRY(rpo_matrix_check(Y, "Y", err));
  if (rows == NULL) return rpo_fail(err, RPO_EINVAL, "rows is NULL");
  if (Y->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "Y must be dense or CSR, not CSC");
  RPO_TRY(rpo_matrix_check_values(Y, "Y", 0, err));
  if (Y->rows != X->rows || Y->cols != m->outputs) {
    return rpo_fail(err, RPO_EINVAL, "Y is %lld x %lld, expected %lld x %lld", (long long)Y->rows,
                    (long long)Y->cols, (long long)X->rows, (long long)m->outputs);
  }
  if (m->ratio) return rpo_fail(err, RPO_EINVAL, "forest: was fitted with label_ratio");
  if (m->sample_weight.data != NULL) {
    return rpo_fail(err, RPO_EINVAL,
                    "forest: its leaves hold all rows, also those to be predicted");
  }
  for (int64_t i = 0; i < X->rows; i++) {
    if (rows[i] < 0 || rows[i] >= m->rows) {
      return rpo_fail(err, RPO_EINVAL, "rows[%lld] is %lld, the forest was fitted to %lld rows",
                      (long long)i, (long long)rows[i], (long long)m->rows);
    }
  }
  return rpo_weight_check(weight, m->rows, err);
}

rpo_status rpo_forest_agreement(const rpo_forest *m, const rpo_matrix *X, const rpo_matrix *Y,
                                const int64_t *rows, const double *weight,
                                const rpo_control *control, double *out, rpo_error *err) {
  agreement g;
  uint8_t *in_bag = NULL;
  rpo_status status;
  memset(&g, 0, sizeof g);
  RPO_TRY(rpo_reading_start(&g.r, m, X, out, err));
  RPO_TRY(rpo_refuse_boosted(m, "agreement", err));
  RPO_TRY(rpo_model_check(m, err));
  RPO_TRY(check(m, X, Y, rows, weight, err));
  int const threads = rpo_threads(control, X->rows);
  g.Y = Y;
  g.out = out;
  g.r.sums = 1;
  RPO_GOTO(rpo_in_bag(m, rows, X->rows, weight, control, &in_bag, err));
  g.work = rpo_new_zero(threads, (int64_t)sizeof *g.work);
  if (g.work == NULL) {
    status = rpo_fail_memory(err, "the errors");
    goto done;
  }
  g.r.in_bag = in_bag;
  status = rpo_read_blocks(&g.r, control, agree_block, err);
done:
  for (int i = 0; g.work != NULL && i < threads; i++) rpo_delete(g.work[i]);
  rpo_delete(g.work);
  rpo_delete(in_bag);
  return status;
}
