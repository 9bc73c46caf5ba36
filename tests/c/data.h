/* Random tables and the views of them that the library reads. */
#ifndef DATA_H
#define DATA_H
#include "mini.h"
#include "rpo.h"

/* A call that must succeed; the library's sentence is shown when it does not. */
static inline int data_ok(rpo_status status, const rpo_error *err, const char *file, int line,
                          const char *text) {
  char full[600];
  if (status == RPO_OK) return mini_report(1, file, line, text);
  (void)snprintf(full, sizeof full, "%.250s: %s", text, err->message);
  return mini_report(0, file, line, full);
}
#define CHECK_OK(call, err) data_ok((call), (err), __FILE__, __LINE__, #call)

/* The test's own generator (splitmix64), independent of the one under test. */
typedef struct dice {
  uint64_t state;
} dice;

static inline uint64_t dice_next(dice *d) {
  uint64_t x = d->state += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
static inline double dice_real(dice *d) { return (double)(dice_next(d) >> 11) * 0x1p-53; }
static inline int64_t dice_below(dice *d, int64_t bound) {
  return (int64_t)(dice_next(d) % (uint64_t)bound);
}

/* A dense table, row after row, and its compressed forms. */
typedef struct table {
  int64_t rows, cols;
  double *v;
  float *single;
  int32_t *start, *index;
  double *stored;
} table;

static inline table table_new(int64_t rows, int64_t cols) {
  table t;
  memset(&t, 0, sizeof t);
  t.rows = rows;
  t.cols = cols;
  t.v = mini_room(rows * cols, sizeof *t.v);
  return t;
}

static inline void table_free(table *t) {
  free(t->v);
  free(t->single);
  free(t->start);
  free(t->index);
  free(t->stored);
  memset(t, 0, sizeof *t);
}

/* Values out of -levels/2 .. levels/2 (0: any real), zero and missing with the given chances. */
static inline table table_random(dice *d, int64_t rows, int64_t cols, int64_t levels, double zero,
                                 double missing) {
  table t = table_new(rows, cols);
  for (int64_t i = 0; i < rows * cols; i++) {
    double const u = dice_real(d);
    if (u < missing) {
      t.v[i] = NAN;
    } else if (u >= missing + zero) {
      t.v[i] = levels > 0 ? (double)(dice_below(d, levels) - levels / 2) : 2.0 * dice_real(d) - 1.0;
    }
  }
  return t;
}

/* 0/1 with the given chance of 1. */
static inline table table_binary(dice *d, int64_t rows, int64_t cols, double one) {
  table t = table_new(rows, cols);
  for (int64_t i = 0; i < rows * cols; i++) t.v[i] = dice_real(d) < one ? 1.0 : 0.0;
  return t;
}

static inline rpo_matrix table_dense(const table *t) {
  rpo_matrix m;
  memset(&m, 0, sizeof m);
  m.rows = t->rows;
  m.cols = t->cols;
  m.format = RPO_DENSE;
  m.dtype = RPO_F64;
  m.data = t->v;
  m.row_stride = t->cols;
  m.col_stride = 1;
  return m;
}

/* float32, column after column: the other number type and the other order at once. */
static inline rpo_matrix table_single(table *t) {
  rpo_matrix m = table_dense(t);
  if (t->single == NULL) t->single = mini_room(t->rows * t->cols, sizeof *t->single);
  for (int64_t i = 0; i < t->rows; i++) {
    for (int64_t j = 0; j < t->cols; j++) t->single[j * t->rows + i] = (float)t->v[i * t->cols + j];
  }
  m.dtype = RPO_F32;
  m.data = t->single;
  m.row_stride = 1;
  m.col_stride = t->rows;
  return m;
}

/* Compressed by rows (RPO_CSR) or columns (RPO_CSC), 32-bit indices. A view lasts until the other
 * format is asked for: a table has room for one. */
static inline rpo_matrix table_compressed(table *t, rpo_format format) {
  rpo_matrix m = table_dense(t);
  int64_t const major = format == RPO_CSR ? t->rows : t->cols;
  int64_t const minor = format == RPO_CSR ? t->cols : t->rows;
  int32_t count = 0;
  if (t->start == NULL) {
    int64_t const most = t->rows > t->cols ? t->rows : t->cols;
    t->start = mini_room(most + 1, sizeof *t->start);
    t->index = mini_room(t->rows * t->cols, sizeof *t->index);
    t->stored = mini_room(t->rows * t->cols, sizeof *t->stored);
  }
  for (int64_t i = 0; i < major; i++) {
    for (int64_t j = 0; j < minor; j++) {
      double const v = format == RPO_CSR ? t->v[i * t->cols + j] : t->v[j * t->cols + i];
      if (v == 0.0) continue;
      t->index[count] = (int32_t)j;
      t->stored[count++] = v;
    }
    t->start[i + 1] = count;
  }
  m.format = (int32_t)format;
  m.index = RPO_I32;
  m.data = t->stored;
  m.indptr = t->start;
  m.indices = t->index;
  return m;
}

/* One control: `threads` threads, no progress. */
static inline rpo_control threads_of(int32_t threads) {
  rpo_control c;
  memset(&c, 0, sizeof c);
  c.n_threads = threads;
  return c;
}

#endif
