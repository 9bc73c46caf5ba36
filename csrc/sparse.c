/* Products of a CSR matrix and a dense one, without a transposed copy. Rows of A B are shared out
 * among the threads; of A'B and A'A B it is columns, each thread walking all of A for its own: either
 * way a number of the result is summed by one thread, in the order of A's entries. */
#include "sparse.h"

#include <string.h>

#include "array.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"

enum {
  LINE_BYTES = 64,
  STEP_WORK = 1 << 18,    /* multiplications between two looks at the clock, roughly */
  NEAR_BYTES = 1 << 19,   /* dense panels of this size stay in a core's own cache */
  SHARED_BYTES = 1 << 23, /* and these in the cache that cores share */
  FETCHED_LINES = 96      /* on their way from memory at a time, roughly */
};

typedef struct products {
  rpo_product p;
  const rpo_kernels *kernels;
  int64_t rows, inner, width; /* of A; dense rows that entries point to; columns of the result */
  int64_t size;               /* bytes of a number */
  int64_t step;               /* rows of A at a time */
  int64_t panels;             /* that the columns are cut into */
  int copy_b, copy_out;       /* panels of these are laid out anew, on whole cache lines */
} products;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t lines_of(const products *s, int64_t width) {
  return ceil_div(width * s->size, LINE_BYTES);
}

/* Column where panel number i begins: whole cache lines, as even as they go. */
static int64_t panel_start(const products *s, int64_t i) {
  return smaller(lines_of(s, s->width) * i / s->panels * (LINE_BYTES / s->size), s->width);
}

static void copy_rows(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                      int64_t bytes, int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    memcpy(to + i * to_stride, from + i * from_stride, (size_t)bytes);
}

/* Columns from .. to of B on whole cache lines, zeros behind them; NULL: no memory. */
static void *copy_of_b(const products *s, int64_t from, int64_t to) {
  int64_t const line_bytes = lines_of(s, to - from) * LINE_BYTES;
  char *const copy = rpo_new_zero(s->inner, line_bytes);
  if (copy == NULL) return NULL;
  copy_rows(copy, line_bytes, (const char *)s->p.b + from * s->size, s->p.b_stride * s->size,
            (to - from) * s->size, s->inner);
  return copy;
}

static rpo_status times_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const products *const s = context;
  (void)thread;
  (void)job;
  (void)err;
  s->kernels->multiply(&s->p, task * s->step, smaller((task + 1) * s->step, s->rows), s->width);
  return RPO_OK;
}

/* Adds up `width` columns of A'B or A'A B, all rows of A. */
static rpo_status add_rows(const products *s, const rpo_product *p, int64_t width, int thread,
                           rpo_job *job, rpo_error *err) {
  for (int64_t row = 0; row < s->rows; row += s->step) {
    if (rpo_poll(job, thread)) return rpo_fail(err, RPO_ECANCELED, "cancelled");
    s->kernels->multiply(p, row, smaller(row + s->step, s->rows), width);
  }
  return RPO_OK;
}

/* Threads add to panels of their own, not to neighbouring columns of one array: there the processor
 * would fetch lines of one thread for the other, and both would wait. */
static rpo_status panel_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const products *const s = context;
  int64_t const from = panel_start(s, task), width = panel_start(s, task + 1) - from;
  int64_t const line_bytes = lines_of(s, width) * LINE_BYTES, bytes = width * s->size;
  int64_t const out_bytes = s->p.out_stride * s->size;
  char *const own_out = s->copy_out ? rpo_new_zero(s->inner, line_bytes) : NULL;
  char *const own_b = s->copy_b ? copy_of_b(s, from, from + width) : NULL;
  char *const out = (char *)s->p.out + from * s->size;
  rpo_product p = s->p;
  rpo_status status;
  if ((s->copy_out && own_out == NULL) || (s->copy_b && own_b == NULL)) {
    status = rpo_fail_memory(err, "columns of the product");
    goto done;
  }
  p.b = own_b != NULL ? own_b : (const char *)s->p.b + from * s->size;
  p.out = own_out != NULL ? own_out : out;
  if (own_b != NULL) p.b_stride = line_bytes / s->size;
  if (own_out != NULL) p.out_stride = line_bytes / s->size;
  if (own_out == NULL) {
    for (int64_t i = 0; i < s->inner; i++) memset(out + i * out_bytes, 0, (size_t)bytes);
  }
  int const whole_lines = own_b != NULL && own_out != NULL;
  RPO_GOTO(add_rows(s, &p, whole_lines ? line_bytes / s->size : width, thread, job, err));
  if (own_out != NULL) copy_rows(out, out_bytes, own_out, line_bytes, bytes, s->inner);
done:
  rpo_delete(own_b);
  rpo_delete(own_out);
  return status;
}

static rpo_status check(int kind, const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                        const void *out, rpo_error *err) {
  RPO_TRY(rpo_matrix_check_bounds(A, "A", err));
  RPO_TRY(rpo_matrix_check_bounds(B, "B", err));
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  if (A->format != RPO_CSR) return rpo_fail(err, RPO_EINVAL, "A must be CSR");
  if (B->format != RPO_DENSE || (B->cols > 1 && B->col_stride != 1)) {
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
  if (A->cols > INT64_MAX / (8 * B->cols + LINE_BYTES)) {
    return rpo_fail(err, RPO_ENOMEM, "%lld x %lld numbers do not fit the machine",
                    (long long)A->cols, (long long)B->cols);
  }
  if (weight != NULL) {
    rpo_matrix const w = {A->rows, 1, RPO_DENSE, RPO_F64, RPO_I32, 0, weight, 1, 1, NULL, NULL};
    RPO_TRY(rpo_matrix_check_values(&w, "weight", 0, err));
  }
  return RPO_OK;
}

/* How the work is cut: none of it changes a bit of the result. */
static void plan(products *s, const rpo_control *control) {
  int64_t const stored = rpo_ptr_at(s->p.a, s->rows), lines = lines_of(s, s->width);
  int64_t const bytes = s->inner * lines * LINE_BYTES;
  int64_t const aligned =
      (uintptr_t)s->p.b % LINE_BYTES == 0 && s->p.b_stride * s->size % LINE_BYTES == 0;
  int const pays = stored >= 4 * s->inner && bytes <= SHARED_BYTES;
  double const row_work = ((double)stored / (double)s->rows + 1.0) * (double)s->width;
  s->step = 1 + (int64_t)(STEP_WORK / row_work);
  s->panels = 1;
  s->p.ahead = bytes > NEAR_BYTES ? 1 + FETCHED_LINES / lines : 0;
  if (s->p.kind == RPO_TIMES) {
    s->copy_b = pays && !aligned;
    return;
  }
  int64_t const threads = rpo_threads(control, lines);
  s->panels = threads;
  s->copy_out = pays;
  s->copy_b = pays && s->p.kind == RPO_GRAM;
}

static rpo_status times(products *s, const rpo_control *control, rpo_error *err) {
  void *const own_b = s->copy_b ? copy_of_b(s, 0, s->width) : NULL;
  if (s->copy_b && own_b == NULL) return rpo_fail_memory(err, "a copy of B");
  if (own_b != NULL) {
    s->p.b = own_b;
    s->p.b_stride = lines_of(s, s->width) * LINE_BYTES / s->size;
  }
  rpo_status const status = rpo_run(control, ceil_div(s->rows, s->step), times_task, s, err);
  rpo_delete(own_b);
  return status;
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
  s.size = B->dtype == RPO_F32 ? 4 : 8;
  s.p.b = B->data;
  s.p.b_stride = B->row_stride;
  s.p.out = out;
  s.p.out_stride = B->cols;
  plan(&s, control);
  return kind == RPO_TIMES ? times(&s, control, err)
                           : rpo_run(control, s.panels, panel_task, &s, err);
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
