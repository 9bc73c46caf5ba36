/* Products of a CSR matrix and a dense one, without a transposed copy. Rows of A B are shared out
 * among the threads; of A'B and A'A B it is columns, each thread walking all of A for its own: either
 * way a number of the result is summed by one thread, in the order of A's entries. */
#include "sparse.h"

#include <string.h>

#include "array.h"
#include "kernels.h"
#include "par.h"

enum {
  LINE_BYTES = 64,
  STEP_WORK = 1 << 18, /* multiplications between two looks at the clock, roughly */
  NEAR_BYTES = 1 << 19 /* a dense panel of this size stays in a near cache */
};

typedef struct products {
  rpo_product p;
  const rpo_kernels *kernels;
  int64_t rows, inner, width; /* of A; dense rows that entries point to; columns of the result */
  int64_t step;               /* rows of A at a time */
  int64_t unit;               /* columns in a cache line */
  int64_t panels;
} products;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t size_of(int32_t dtype) { return dtype == RPO_F32 ? 4 : 8; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where panel number i begins: whole cache lines, as even as they go. */
static int64_t panel_start(const products *s, int64_t i) {
  int64_t const lines = ceil_div(s->width, s->unit);
  return smaller(lines * i / s->panels * s->unit, s->width);
}

static rpo_status times_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const products *const s = context;
  (void)thread;
  (void)job;
  (void)err;
  s->kernels->multiply(&s->p, task * s->step, smaller((task + 1) * s->step, s->rows), 0, s->width);
  return RPO_OK;
}

static rpo_status panel_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const products *const s = context;
  int64_t const from = panel_start(s, task), to = panel_start(s, task + 1);
  int64_t const size = size_of(s->p.dtype);
  for (int64_t i = 0; i < s->inner; i++) {
    memset((char *)s->p.out + (i * s->p.out_stride + from) * size, 0, (size_t)((to - from) * size));
  }
  for (int64_t row = 0; row < s->rows; row += s->step) {
    if (rpo_poll(job, thread)) return rpo_fail(err, RPO_ECANCELED, "cancelled");
    s->kernels->multiply(&s->p, row, smaller(row + s->step, s->rows), from, to);
  }
  return RPO_OK;
}

static rpo_status check(int kind, const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                        const void *out, rpo_error *err) {
  RPO_TRY(rpo_matrix_check_bounds(A, "A", err));
  RPO_TRY(rpo_matrix_check_bounds(B, "B", err));
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  if (A->format != RPO_CSR) return rpo_fail(err, RPO_EINVAL, "A must be CSR");
  if (B->format != RPO_DENSE || B->col_stride != 1) {
    return rpo_fail(err, RPO_EINVAL, "B must be dense, the numbers of a row next to each other");
  }
  if (A->data != NULL && A->dtype != B->dtype) {
    return rpo_fail(err, RPO_EINVAL, "A and B must be of one number type, got %s and %s",
                    A->dtype == RPO_F32 ? "float32" : "float64",
                    B->dtype == RPO_F32 ? "float32" : "float64");
  }
  int64_t const rows = kind == RPO_TRANSPOSED ? A->rows : A->cols;
  if (B->rows != rows) {
    return rpo_fail(err, RPO_EINVAL, "B must have %lld rows, got %lld", (long long)rows,
                    (long long)B->rows);
  }
  if (weight != NULL) {
    rpo_matrix const w = {A->rows, 1, RPO_DENSE, RPO_F64, RPO_I32, 0, weight, 1, 1, NULL, NULL};
    RPO_TRY(rpo_matrix_check_values(&w, "weight", 0, err));
  }
  return RPO_OK;
}

static void plan(products *s, const rpo_control *control) {
  int64_t const stored = rpo_ptr_at(s->p.a, s->rows), size = size_of(s->p.dtype);
  int64_t const row_work = (stored / s->rows + 1) * s->width;
  int64_t const dense = s->inner * s->width * size * (s->p.kind == RPO_GRAM ? 2 : 1);
  s->step = 1 + STEP_WORK / row_work;
  s->unit = LINE_BYTES / size;
  s->panels = 1;
  s->p.ahead = dense > NEAR_BYTES;
  if (s->p.kind != RPO_TIMES) {
    int64_t const lines = ceil_div(s->width, s->unit);
    s->panels = rpo_threads(control, lines);
  }
}

static rpo_status multiply(int kind, const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                           const rpo_control *control, void *out, rpo_error *err) {
  products s;
  RPO_TRY(check(kind, A, weight, B, out, err));
  memset(&s, 0, sizeof s);
  s.kernels = rpo_kernels_pick();
  s.rows = A->rows;
  s.inner = A->cols;
  s.width = B->cols;
  s.p.kind = kind;
  s.p.a = A;
  s.p.weight = weight;
  s.p.dtype = B->dtype;
  s.p.b = B->data;
  s.p.b_stride = B->row_stride;
  s.p.out = out;
  s.p.out_stride = B->cols;
  plan(&s, control);
  if (kind == RPO_TIMES) {
    return rpo_run(control, ceil_div(s.rows, s.step), times_task, &s, err);
  }
  return rpo_run(control, s.panels, panel_task, &s, err);
}

rpo_status rpo_sparse_product(const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                              const rpo_control *control, void *out, rpo_error *err) {
  return multiply(RPO_TIMES, A, weight, B, control, out, err);
}

rpo_status rpo_sparse_transposed_product(const rpo_matrix *A, const double *weight,
                                         const rpo_matrix *B, const rpo_control *control, void *out,
                                         rpo_error *err) {
  return multiply(RPO_TRANSPOSED, A, weight, B, control, out, err);
}

rpo_status rpo_sparse_gram_product(const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                                   const rpo_control *control, void *out, rpo_error *err) {
  return multiply(RPO_GRAM, A, weight, B, control, out, err);
}
