/* Products of a CSR matrix and a dense one, without a transposed copy. Rows of A B are shared out
 * among the threads; of A'B and A'A B it is columns, each thread walking all of A for its own: either
 * way a number of the result is summed by one thread, in the order of A's entries. Where the dense side
 * is larger than the caches, tiles.c does it, with the same bits. */
#include "sparse.h"

#include <string.h>

#include "array.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"
#include "tiles.h"

enum {
  LINE_BYTES = 64,
  STEP_WORK = 1 << 18,    /* multiplications between two looks at the clock, roughly */
  NEAR_BYTES = 1 << 19,   /* dense panels of this size stay in a core's own cache */
  SHARED_BYTES = 1 << 23, /* and these in the cache that cores share, with room to spare */
  FAR_BYTES = 1 << 24,    /* what a larger matrix is cut into */
  FETCHED_LINES = 64      /* on their way at a time, roughly */
};

typedef struct products {
  rpo_product p;
  const rpo_kernels *kernels;
  int64_t rows, inner, width; /* of A; dense rows that entries point to; columns of the result */
  int64_t size;               /* bytes of a number */
  int64_t step;               /* rows of A at a time */
  int64_t panels;             /* that the columns are cut into */
  int copy_b, copy_out;       /* panels of these are laid out anew, on whole cache lines */
  char *own;                  /* room for the panels laid out anew, thread after thread */
  int64_t own_bytes;          /* of a thread */
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

static void zero_rows(char *to, int64_t stride, int64_t bytes, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) memset(to + i * stride, 0, (size_t)bytes);
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

/* Columns from .. from + width of the product. What is copied lies at `own`: rows of whole cache
 * lines, zeros behind B's numbers; a row of the result right behind the row of B it is added to with,
 * so that both come together. */
static rpo_product panel_of(const products *s, int64_t from, int64_t width, char *own) {
  int64_t const line_bytes = lines_of(s, width) * LINE_BYTES, bytes = width * s->size;
  int64_t const own_bytes = line_bytes * (s->copy_b + s->copy_out);
  rpo_product p = s->p;
  p.b = (const char *)p.b + from * s->size;
  p.out = (char *)p.out + from * s->size;
  p.beside = s->copy_b && s->copy_out;
  if (s->copy_b) {
    if (bytes < line_bytes) zero_rows(own, own_bytes, line_bytes, s->inner);
    copy_rows(own, own_bytes, p.b, p.b_stride * s->size, bytes, s->inner);
    p.b = own;
    p.b_stride = own_bytes / s->size;
  }
  if (s->copy_out) {
    p.out = own + s->copy_b * line_bytes;
    p.out_stride = own_bytes / s->size;
  }
  if (p.kind != RPO_TIMES) {
    zero_rows(p.out, p.out_stride * s->size, s->copy_out ? line_bytes : bytes, s->inner);
  }
  return p;
}

/* Threads add to panels of their own, not to neighbouring columns of one array: there the processor
 * would fetch lines of one thread for the other, and both would wait. */
static rpo_status panel_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const products *const s = context;
  int64_t const from = panel_start(s, task), width = panel_start(s, task + 1) - from;
  int64_t const whole_lines = lines_of(s, width) * LINE_BYTES / s->size;
  char *const own = s->own == NULL ? NULL : s->own + thread * s->own_bytes;
  rpo_product const p = panel_of(s, from, width, own);
  RPO_TRY(add_rows(s, &p, p.beside ? whole_lines : width, thread, job, err));
  if (s->copy_out) {
    copy_rows((char *)s->p.out + from * s->size, s->p.out_stride * s->size, p.out,
              p.out_stride * s->size, width * s->size, s->inner);
  }
  return RPO_OK;
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
  if (A->cols > INT64_MAX / 2 / (8 * B->cols + LINE_BYTES)) { /* twice: B beside the result */
    return rpo_fail(err, RPO_ENOMEM, "%lld x %lld numbers do not fit the machine",
                    (long long)A->cols, (long long)B->cols);
  }
  if (weight != NULL) {
    rpo_matrix const w = {A->rows, 1, RPO_DENSE, RPO_F64, RPO_I32, 0, weight, 1, 1, NULL, NULL};
    RPO_TRY(rpo_matrix_check_values(&w, "weight", 0, err));
  }
  return RPO_OK;
}

/* Panels of a dense side larger than the caches: narrow ones fit, down to a single line. Each walks
 * all of A anew, which costs less than a line from memory for every entry. */
static int64_t far_panels(const products *s, int64_t lines) {
  int64_t const fit = FAR_BYTES / (s->inner * LINE_BYTES);
  return ceil_div(lines, fit > 1 ? fit : 1);
}

/* How the work is cut: none of it changes a bit of the result. */
static void plan(products *s, const rpo_control *control) {
  int64_t const stored = rpo_ptr_at(s->p.a, s->rows), lines = lines_of(s, s->width);
  int64_t const bytes = s->inner * lines * LINE_BYTES;
  int64_t const aligned =
      (uintptr_t)s->p.b % LINE_BYTES == 0 && s->p.b_stride * s->size % LINE_BYTES == 0;
  int const pays = stored >= 4 * s->inner, far = pays && bytes > SHARED_BYTES;
  int64_t const cut = far ? far_panels(s, lines) : 1, threads = rpo_threads(control, lines);
  if (s->p.kind == RPO_TIMES) {
    s->panels = cut >= 2 * threads ? cut : 1;
    s->copy_b = s->panels > 1 || (pays && !far && !aligned);
  } else {
    s->panels = cut > threads ? cut : threads;
    s->copy_b = pays && s->p.kind == RPO_GRAM;
    s->copy_out = pays;
  }
  int64_t const most = ceil_div(lines, s->panels);
  int64_t const wide = most * LINE_BYTES / s->size;
  double const row_work = ((double)stored / (double)s->rows + 1.0) * (double)wide;
  s->step = 1 + (int64_t)(STEP_WORK / row_work);
  s->p.ahead = bytes > NEAR_BYTES ? 1 + FETCHED_LINES / most : 0;
  s->own_bytes = s->inner * most * LINE_BYTES * (s->copy_b + s->copy_out);
}

/* A B in one panel: threads share the copy of B, if there is one, and the rows of A. */
static rpo_status times(products *s, const rpo_control *control, rpo_error *err) {
  s->p = panel_of(s, 0, s->width, s->own);
  return rpo_run(control, ceil_div(s->rows, s->step), times_task, s, err);
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
  int done;
  RPO_TRY(rpo_tiles_multiply(&s.p, s.width, control, &done, err));
  if (done) return RPO_OK;
  plan(&s, control);
  int const shared = kind == RPO_TIMES && s.panels == 1;
  if (s.own_bytes > 0) {
    s.own = rpo_new(shared ? 1 : rpo_threads(control, s.panels), s.own_bytes);
    if (s.own == NULL) return rpo_fail_memory(err, "columns of the product");
  }
  rpo_status const status =
      shared ? times(&s, control, err) : rpo_run(control, s.panels, panel_task, &s, err);
  rpo_delete(s.own);
  return status;
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
