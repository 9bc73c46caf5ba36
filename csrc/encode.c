#include "encode.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "column.h"
#include "mem.h"
#include "par.h"

enum { TILE = 16, TILE_VALUES = 1 << 22 }; /* columns of a dense X read at once */
enum { AHEAD = 32 };                       /* rows of it fetched ahead */

/* Entries by column, before coding. Dense form: every row of every column, in place. */
typedef struct entries {
  const rpo_matrix *X;
  int64_t *start; /* cols + 1; NULL: dense form read straight from X */
  int32_t *rows;
  double *values;
} entries;

typedef struct worker {
  rpo_sorter sorter;
  double *tile; /* dense form: neighbouring columns of X, one after the other */
} worker;

typedef struct coder {
  rpo_features *f;
  const rpo_features *like;
  entries e;
  int32_t max_bins;
  int32_t *codes;     /* all entries, before they are narrowed */
  rpo_column *column; /* by column */
  worker *work;       /* by thread */
} coder;

static int64_t column_size(const entries *e, int64_t col) {
  return e->start == NULL ? e->X->rows : e->start[col + 1] - e->start[col];
}

static int64_t nearest_bin(const rpo_features *like, int64_t col, double v) {
  const double *const low = like->low + like->bin_start[col];
  const double *const high = like->high + like->bin_start[col];
  int64_t a = 0, b = rpo_bins(like, col) - 1;
  while (a < b) {
    int64_t const mid = (a + b) / 2;
    if (v <= high[mid] / 2 + low[mid + 1] / 2) {
      b = mid;
    } else {
      a = mid + 1;
    }
  }
  return a;
}

static rpo_status code_like(const coder *k, int64_t col, const rpo_entries *e, int32_t *codes,
                            rpo_column *out, rpo_error *err) {
  const rpo_features *const like = k->like;
  int32_t const bins = rpo_bins(like, col);
  for (int64_t i = 0; i < e->count; i++) {
    int const missing = isnan(e->values[i]);
    codes[i] = missing ? bins : (int32_t)nearest_bin(like, col, e->values[i]);
    out->missing |= missing;
  }
  out->bins = bins;
  out->single = like->single;
  out->low = rpo_new(bins, (int64_t)sizeof(double));
  out->high = rpo_new(bins, (int64_t)sizeof(double));
  if (out->low == NULL || out->high == NULL) return rpo_fail_memory(err, "features");
  memcpy(out->low, like->low + like->bin_start[col], (size_t)bins * sizeof(double));
  memcpy(out->high, like->high + like->bin_start[col], (size_t)bins * sizeof(double));
  return RPO_OK;
}

static int64_t tile_columns(const rpo_features *f) {
  int64_t const columns = TILE_VALUES / (f->rows + 1);
  return columns < 1 ? 1 : columns < TILE ? columns : TILE;
}

#define READ_COLUMNS(type)                                                  \
  do {                                                                      \
    const type *const data = (const type *)X->data + first * X->col_stride; \
    for (int64_t i = 0; i < X->rows; i++) {                                 \
      const type *const own = data + i * X->row_stride;                     \
      if (i + AHEAD < X->rows) RPO_PREFETCH(own + AHEAD * X->row_stride);   \
      for (int64_t j = 0; j < end - first; j++) {                           \
        out[j * X->rows + i] = (double)own[j * X->col_stride];              \
      }                                                                     \
    }                                                                       \
  } while (0)

/* Columns of a dense X, one after the other. */
static void read_columns(const rpo_matrix *X, int64_t first, int64_t end, double *restrict out) {
  if (X->dtype == RPO_F32) {
    READ_COLUMNS(float);
  } else {
    READ_COLUMNS(double);
  }
}

/* A few neighbouring columns: read together, for a row-major X has them side by side. */
static rpo_status code_columns(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  coder *const k = context;
  worker *const w = &k->work[thread];
  int64_t const first = task * tile_columns(k->f), rows = k->f->rows;
  int64_t const after = first + tile_columns(k->f);
  int64_t const end = after < k->f->cols ? after : k->f->cols;
  (void)job;
  if (k->e.start == NULL) read_columns(k->e.X, first, end, w->tile);
  for (int64_t j = first; j < end; j++) {
    int const dense = k->e.start == NULL;
    int64_t const size = column_size(&k->e, j);
    const double *const values = dense ? w->tile + (j - first) * rows : k->e.values + k->e.start[j];
    int32_t *const codes = k->codes + (dense ? j * rows : k->e.start[j]);
    rpo_entries const e = {values, size, rows - size, k->f->sparse};
    RPO_TRY(k->like != NULL
                ? code_like(k, j, &e, codes, &k->column[j], err)
                : rpo_column_code(&w->sorter, &e, k->max_bins, codes, &k->column[j], err));
  }
  return RPO_OK;
}

/* ---- Collecting the non-zero entries by column ---- */

static int64_t count_entry(double v) { return v != 0.0; } /* NaN counts */

#define COUNT_ENTRIES(type)                                                            \
  do {                                                                                 \
    const type *const own = (const type *)X->data + i * X->row_stride;                 \
    for (int64_t j = 0; j < X->cols; j++) start[j + 1] += own[j * X->col_stride] != 0; \
  } while (0)

static void count_entries(const rpo_matrix *X, int64_t *start) {
  int64_t const major = X->format == RPO_CSC ? X->cols : X->rows;
  for (int64_t j = 0; j <= X->cols; j++) start[j] = 0;
  for (int64_t i = 0; i < major; i++) {
    if (X->format == RPO_DENSE) {
      if (X->dtype == RPO_F32) {
        COUNT_ENTRIES(float);
      } else {
        COUNT_ENTRIES(double);
      }
      continue;
    }
    for (int64_t e = rpo_ptr_at(X, i); e < rpo_ptr_at(X, i + 1); e++) {
      int64_t const col = X->format == RPO_CSC ? i : rpo_index_at(X->indices, X->index, e);
      start[col + 1] += count_entry(rpo_value_at(X->data, X->dtype, e));
    }
  }
  for (int64_t j = 0; j < X->cols; j++) start[j + 1] += start[j];
}

static void put_entry(entries *e, int64_t *fill, int64_t row, int64_t col, double v) {
  if (!count_entry(v)) return;
  e->rows[fill[col]] = (int32_t)row;
  e->values[fill[col]++] = v;
}

static rpo_status collect_entries(entries *e, rpo_error *err) {
  const rpo_matrix *const X = e->X;
  int64_t const stored = e->start[X->cols];
  int64_t *const fill = rpo_new(X->cols, 8);
  e->rows = rpo_new(stored, 4);
  e->values = rpo_new(stored, 8);
  if (fill == NULL || e->rows == NULL || e->values == NULL) {
    rpo_delete(fill);
    return rpo_fail_memory(err, "features");
  }
  memcpy(fill, e->start, (size_t)X->cols * 8);
  int64_t const major = X->format == RPO_CSC ? X->cols : X->rows;
  for (int64_t i = 0; i < major; i++) {
    if (X->format == RPO_DENSE) {
      for (int64_t j = 0; j < X->cols; j++) put_entry(e, fill, i, j, rpo_dense_at(X, i, j));
      continue;
    }
    for (int64_t s = rpo_ptr_at(X, i); s < rpo_ptr_at(X, i + 1); s++) {
      int64_t const other = rpo_index_at(X->indices, X->index, s);
      double const v = rpo_value_at(X->data, X->dtype, s);
      if (X->format == RPO_CSC) {
        put_entry(e, fill, other, i, v);
      } else {
        put_entry(e, fill, i, other, v);
      }
    }
  }
  rpo_delete(fill);
  return RPO_OK;
}

/* ---- Finishing ---- */

static void *narrow(const int32_t *codes, int64_t count, int32_t width) {
  void *const out = rpo_new(count, width);
  if (out == NULL) return NULL;
  for (int64_t i = 0; i < count; i++) {
    rpo_code_put(out, width, i, codes[i]);
  }
  return out;
}

static rpo_status join_bins(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  f->bin_start = rpo_new(f->cols + 1, 8);
  f->rest = rpo_new(f->cols, 4);
  if (f->bin_start == NULL || f->rest == NULL) return rpo_fail_memory(err, "features");
  int64_t widest = 0;
  f->single = 1;
  f->bin_start[0] = 0;
  for (int64_t j = 0; j < f->cols; j++) {
    f->bin_start[j + 1] = f->bin_start[j] + k->column[j].bins;
    if (k->column[j].bins > widest) widest = k->column[j].bins;
    f->has_missing |= k->column[j].missing;
    f->single &= k->column[j].single;
  }
  f->width = widest < 256 ? 1 : widest < 65536 ? 2 : 4;
  f->low = rpo_new(f->bin_start[f->cols], 8);
  f->high = rpo_new(f->bin_start[f->cols], 8);
  if (f->low == NULL || f->high == NULL) return rpo_fail_memory(err, "features");
  for (int64_t j = 0; j < f->cols; j++) {
    memcpy(f->low + f->bin_start[j], k->column[j].low, (size_t)k->column[j].bins * 8);
    memcpy(f->high + f->bin_start[j], k->column[j].high, (size_t)k->column[j].bins * 8);
  }
  f->exact = 1;
  for (int64_t b = 0; b < f->bin_start[f->cols]; b++) f->exact &= f->low[b] == f->high[b];
  return RPO_OK;
}

static int32_t code_of_zero(const rpo_features *f, int64_t col) {
  return (int32_t)nearest_bin(f, col, 0.0);
}

/* A code that more than half of the rows have consists of the bits that more than half have. */
static int32_t common_code(const int32_t *codes, int64_t rows, int64_t bins) {
  int32_t code = 0;
  int64_t same = 0;
  for (int bit = 0; bins >> bit > 0; bit++) {
    int64_t ones = 0;
    for (int64_t i = 0; i < rows; i++) ones += codes[i] >> bit & 1;
    if (2 * ones > rows) code |= (int32_t)1 << bit;
  }
  for (int64_t i = 0; i < rows; i++) same += codes[i] == code;
  return code < bins && 2 * same > rows ? code : -1;
}

/* Dense form: the code of more than half of the rows, which node scans may skip. */
static void find_common_codes(coder *k) {
  rpo_features *const f = k->f;
  for (int64_t j = 0; j < f->cols; j++) {
    f->rest[j] = common_code(k->codes + j * f->rows, f->rows, k->column[j].bins);
  }
}

#define TRANSPOSE(type)                                                 \
  do {                                                                  \
    const type *const from = (const type *)f->codes;                    \
    for (int64_t i0 = 0; i0 < f->rows; i0 += SQUARE) {                  \
      int64_t const i1 = i0 + SQUARE < f->rows ? i0 + SQUARE : f->rows; \
      for (int64_t j = 0; j < f->cols; j++) {                           \
        for (int64_t i = i0; i < i1; i++) {                             \
          ((type *)out)[i * f->cols + j] = from[j * f->rows + i];       \
        }                                                               \
      }                                                                 \
    }                                                                   \
  } while (0)

/* Codes row after row, in tiles that stay in cache. */
static void transpose(const rpo_features *f, void *out) {
  enum { SQUARE = 64 };
  if (f->width == 1) {
    TRANSPOSE(uint8_t);
  } else if (f->width == 2) {
    TRANSPOSE(uint16_t);
  } else {
    TRANSPOSE(int32_t);
  }
}

static rpo_status finish_dense(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  find_common_codes(k);
  f->codes = narrow(k->codes, f->rows * f->cols, f->width);
  f->row_codes = rpo_new(f->rows * f->cols, f->width);
  if (f->codes == NULL || f->row_codes == NULL) return rpo_fail_memory(err, "features");
  transpose(f, f->row_codes);
  return RPO_OK;
}

/* The dense form of entries that came sparse: zeros written out. */
static rpo_status spread(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  int32_t *const all = rpo_new(f->rows * f->cols, 4);
  if (all == NULL) return rpo_fail_memory(err, "features");
  for (int64_t j = 0; j < f->cols; j++) {
    int32_t const zero = k->column[j].bins > 0 ? code_of_zero(f, j) : 0;
    int32_t *const out = all + j * f->rows;
    for (int64_t i = 0; i < f->rows; i++) out[i] = zero;
    for (int64_t e = k->e.start[j]; e < k->e.start[j + 1]; e++) out[k->e.rows[e]] = k->codes[e];
  }
  rpo_delete(k->codes);
  k->codes = all;
  return RPO_OK;
}

static rpo_status finish_sparse(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  int64_t const stored = k->e.start[f->cols];
  f->binary = !f->has_missing;
  for (int64_t j = 0; j < f->cols; j++) {
    f->rest[j] = code_of_zero(f, j);
    f->binary &= k->column[j].bins <= 2;
    for (int64_t e = k->e.start[j]; e < k->e.start[j + 1] && f->binary; e++) {
      f->binary = k->codes[e] != f->rest[j]; /* a value may share the bin of zero */
    }
  }
  f->col_start = k->e.start;
  f->col_rows = k->e.rows;
  k->e.start = NULL;
  k->e.rows = NULL;
  f->row_start = rpo_new_zero(f->rows + 2, 8);
  f->row_cols = rpo_new(stored, 4);
  if (f->row_start == NULL || f->row_cols == NULL) return rpo_fail_memory(err, "features");
  int32_t *by_row = NULL;
  if (!f->binary) {
    f->col_codes = narrow(k->codes, stored, f->width);
    by_row = rpo_new(stored, 4);
    if (f->col_codes == NULL || by_row == NULL) {
      rpo_delete(by_row);
      return rpo_fail_memory(err, "features");
    }
  }
  int64_t *const fill = f->row_start + 1; /* runs up to the start of the next row while filling */
  for (int64_t e = 0; e < stored; e++) fill[f->col_rows[e] + 1]++;
  for (int64_t i = 0; i < f->rows; i++) fill[i + 1] += fill[i];
  for (int64_t j = 0; j < f->cols; j++) {
    for (int64_t e = f->col_start[j]; e < f->col_start[j + 1]; e++) {
      int64_t const to = fill[f->col_rows[e]]++;
      f->row_cols[to] = (int32_t)j;
      if (by_row != NULL) by_row[to] = k->codes[e];
    }
  }
  if (by_row != NULL) {
    f->row_codes = narrow(by_row, stored, f->width);
    rpo_delete(by_row);
    if (f->row_codes == NULL) return rpo_fail_memory(err, "features");
  }
  return RPO_OK;
}

static rpo_status code_all(coder *k, const rpo_control *control, rpo_error *err) {
  rpo_features *const f = k->f;
  int64_t const stored = k->e.start == NULL ? f->rows * f->cols : k->e.start[f->cols];
  int const threads = rpo_threads(control, f->cols);
  int64_t longest = 0;
  for (int64_t j = 0; j < f->cols; j++) {
    if (column_size(&k->e, j) > longest) longest = column_size(&k->e, j);
  }
  k->codes = rpo_new(stored, 4);
  k->column = rpo_new_zero(f->cols, (int64_t)sizeof *k->column);
  k->work = rpo_new_zero(threads, (int64_t)sizeof *k->work);
  if (k->codes == NULL || k->column == NULL || k->work == NULL) {
    return rpo_fail_memory(err, "features");
  }
  for (int t = 0; t < threads; t++) {
    RPO_TRY(rpo_sorter_new(longest, &k->work[t].sorter, err));
    if (k->e.start != NULL) continue;
    k->work[t].tile = rpo_new(tile_columns(f) * f->rows, 8);
    if (k->work[t].tile == NULL) return rpo_fail_memory(err, "features");
  }
  int64_t const tasks = (f->cols + tile_columns(f) - 1) / tile_columns(f);
  return rpo_run(control, tasks, code_columns, k, err);
}

static void coder_release(coder *k, const rpo_control *control) {
  for (int64_t j = 0; k->column != NULL && j < k->f->cols; j++) rpo_column_release(&k->column[j]);
  for (int t = 0; k->work != NULL && t < rpo_threads(control, k->f->cols); t++) {
    rpo_sorter_release(&k->work[t].sorter);
    rpo_delete(k->work[t].tile);
  }
  rpo_delete(k->column);
  rpo_delete(k->work);
  rpo_delete(k->codes);
  rpo_delete(k->e.start);
  rpo_delete(k->e.rows);
  rpo_delete(k->e.values);
}

/* Sparse form pays while its lists, by row and by column, are shorter than the table of codes. */
static int sparse_pays(int64_t stored, int64_t rows, int64_t cols) {
  return (double)stored * 5.0 < (double)rows * (double)cols;
}

rpo_status rpo_encode(const rpo_matrix *X, int32_t max_bins, const rpo_features *like,
                      const rpo_control *control, rpo_features **out, rpo_error *err) {
  rpo_features *const f = rpo_new_zero(1, (int64_t)sizeof *f);
  if (f == NULL) return rpo_fail_memory(err, "features");
  f->rows = X->rows;
  f->cols = X->cols;
  coder k;
  memset(&k, 0, sizeof k);
  k.f = f;
  k.like = like;
  k.e.X = X;
  k.max_bins = max_bins;
  rpo_status status = RPO_OK;
  k.e.start = rpo_new(f->cols + 1, 8);
  if (k.e.start == NULL) {
    status = rpo_fail_memory(err, "features");
    goto done;
  }
  count_entries(X, k.e.start);
  f->sparse = like != NULL ? like->sparse : sparse_pays(k.e.start[f->cols], f->rows, f->cols);
  if (X->format == RPO_DENSE && !f->sparse) {
    rpo_delete(k.e.start);
    k.e.start = NULL;
  } else {
    RPO_GOTO(collect_entries(&k.e, err));
  }
  RPO_GOTO(code_all(&k, control, err));
  RPO_GOTO(join_bins(&k, err));
  if (f->sparse) {
    RPO_GOTO(finish_sparse(&k, err));
  } else {
    if (k.e.start != NULL) RPO_GOTO(spread(&k, err));
    RPO_GOTO(finish_dense(&k, err));
  }
done:
  coder_release(&k, control);
  if (status != RPO_OK) {
    rpo_features_free(f);
  } else {
    *out = f;
  }
  return status;
}

enum { NEAR_BINS = 16384 }; /* low and high of so many stay in a near cache */

#define DECODE(type)                                                             \
  for (int64_t i = 0; i < f->rows; i++) {                                        \
    for (int64_t j = 0; j < f->cols; j++) {                                      \
      int32_t const code = rpo_code_at(f->row_codes, f->width, i * f->cols + j); \
      ((type *)values)[i * f->cols + j] = (type)f->low[f->bin_start[j] + code];  \
    }                                                                            \
  }

rpo_status rpo_decode(const rpo_features *f, void **out, rpo_error *err) {
  *out = NULL;
  if (f->sparse || !f->exact || f->has_missing) return RPO_OK;
  if (!f->single && f->bin_start[f->cols] <= NEAR_BINS) return RPO_OK;
  void *const values = rpo_new(f->rows * f->cols, f->single ? sizeof(float) : sizeof(double));
  if (values == NULL) return rpo_fail_memory(err, "the values");
  if (f->single) {
    DECODE(float)
  } else {
    DECODE(double)
  }
  *out = values;
  return RPO_OK;
}

void rpo_features_free(rpo_features *f) {
  if (f == NULL) return;
  rpo_delete(f->bin_start);
  rpo_delete(f->low);
  rpo_delete(f->high);
  rpo_delete(f->rest);
  rpo_delete(f->codes);
  rpo_delete(f->col_start);
  rpo_delete(f->col_rows);
  rpo_delete(f->col_codes);
  rpo_delete(f->row_start);
  rpo_delete(f->row_cols);
  rpo_delete(f->row_codes);
  rpo_delete(f);
}

/* ---- Cuts ---- */

static double middle_of(const rpo_features *f, double below, double above) {
  double middle = below / 2.0 + above / 2.0;
  if (f->single) middle = (double)(float)middle;
  return middle >= below && middle < above ? middle : below;
}

double rpo_cut_between(const rpo_features *f, int32_t col, int32_t below, int32_t above) {
  if (above == rpo_bins(f, col)) return INFINITY;
  const double *const low = f->low + f->bin_start[col];
  const double *const high = f->high + f->bin_start[col];
  double const middle = middle_of(f, high[below], low[above]);
  if (f->exact) return middle;       /* bins of one value are cut by nothing */
  int32_t last = below, end = above; /* the last bin that begins before the middle */
  while (end - last > 1) {
    int32_t const between = last + (end - last) / 2;
    if (low[between] <= middle) {
      last = between;
    } else {
      end = between;
    }
  }
  return high[last] <= middle ? middle : middle_of(f, high[last], low[last + 1]);
}
