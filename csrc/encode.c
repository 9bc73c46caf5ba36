#include "encode.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "mem.h"
#include "par.h"

enum { BITS = 11, DIGITS = 1 << BITS, PASSES = 6 }; /* of the radix sort */
enum { FEW = 256, SLOTS = 1024 };                   /* values of a column that need no sort */
enum { TILE = 8, TILE_VALUES = 1 << 22 };           /* columns of a dense X read at once */

/* One column on its way: entries sorted by value, the missing ones left out. */
typedef struct column {
  uint64_t *key, *key2; /* values as ordered integers */
  int32_t *at, *at2;    /* position of the entry in the column */
  int64_t *histogram;   /* PASSES x DIGITS */
  int64_t count;
  double *tile; /* dense form: columns of X, one after the other */
} column;

/* The distinct values of a column that has few, in order of appearance. */
typedef struct few {
  uint64_t key[FEW];
  int64_t weight[FEW];
  int32_t run[FEW]; /* its place among the runs */
  int16_t slot[SLOTS];
  int32_t count;
} few;

/* Entries by column, before coding. Dense form: every row of every column, in place. */
typedef struct entries {
  const rpo_matrix *X;
  int64_t *start; /* cols + 1; NULL: dense form read straight from X */
  int32_t *rows;
  double *values;
} entries;

typedef struct coder {
  rpo_features *f;
  const rpo_features *like;
  entries e;
  int32_t max_bins;
  int32_t *codes;            /* all entries, before they are narrowed */
  int64_t *bins;             /* by column */
  double **low, **high;      /* by column */
  uint8_t *missing, *single; /* by column */
  column *work;              /* by thread */
} coder;

static uint64_t key_of(double v) {
  uint64_t bits;
  double const value = v == 0.0 ? 0.0 : v; /* -0 and 0 are one value */
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}

static double value_of(uint64_t key) {
  uint64_t const bits = key >> 63 ? key & 0x7FFFFFFFFFFFFFFFu : ~key;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Radix sort, least digit first. A digit that all keys share costs nothing: float32 values and small
 * whole numbers leave most digits alike. */
static void sort_column(column *c) {
  memset(c->histogram, 0, PASSES * DIGITS * sizeof *c->histogram);
  for (int64_t i = 0; i < c->count; i++) {
    for (int pass = 0; pass < PASSES; pass++) {
      c->histogram[pass * DIGITS + (int64_t)(c->key[i] >> (BITS * pass) & (DIGITS - 1))]++;
    }
  }
  for (int pass = 0; pass < PASSES && c->count > 0; pass++) {
    int64_t *const h = c->histogram + pass * DIGITS;
    int const shift = BITS * pass;
    if (h[c->key[0] >> shift & (DIGITS - 1)] == c->count) continue;
    int64_t sum = 0;
    for (int d = 0; d < DIGITS; d++) {
      int64_t const here = h[d];
      h[d] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < c->count; i++) {
      int64_t const to = h[c->key[i] >> shift & (DIGITS - 1)]++;
      c->key2[to] = c->key[i];
      c->at2[to] = c->at[i];
    }
    uint64_t *const key = c->key;
    int32_t *const at = c->at;
    c->key = c->key2;
    c->at = c->at2;
    c->key2 = key;
    c->at2 = at;
  }
}

/* Runs of equal keys; `zeros` more zeros take part, listed nowhere. */
typedef struct runs {
  int64_t count;   /* distinct values */
  uint64_t *key;   /* by run */
  int64_t *weight; /* by run */
  int64_t *end;    /* by run: entries up to here belong to it or earlier ones */
} runs;

static void find_runs(const column *c, int64_t zeros, int with_zero, runs *r) {
  uint64_t const zero = key_of(0.0);
  int zero_open = with_zero;
  r->count = 0;
  for (int64_t i = 0; i <= c->count;) {
    int const at_end = i == c->count;
    if (zero_open && (at_end || c->key[i] >= zero)) {
      zero_open = 0;
      if (at_end || c->key[i] != zero) {
        r->key[r->count] = zero;
        r->weight[r->count] = zeros;
        r->end[r->count++] = i;
      }
    }
    if (at_end) break;
    int64_t j = i + 1;
    while (j < c->count && c->key[j] == c->key[i]) j++;
    r->key[r->count] = c->key[i];
    r->weight[r->count] = j - i + (c->key[i] == zero ? zeros : 0);
    r->end[r->count++] = j;
    i = j;
  }
}

/* Groups runs into at most `most` bins of about equal weight: a bin is closed once it holds its share
 * of what is left. Zero keeps a bin of its own in sparse form, where it is not listed. */
static int64_t group_runs(const runs *r, int64_t most, int keep_zero, int32_t *bin_of) {
  int64_t left = 0;
  for (int64_t i = 0; i < r->count; i++) left += r->weight[i];
  uint64_t const zero = key_of(0.0);
  int64_t bin = 0, held = 0;
  for (int64_t i = 0; i < r->count; i++) {
    bin_of[i] = (int32_t)bin;
    held += r->weight[i];
    if (i + 1 == r->count) break;
    int64_t const bins_left = most - bin;
    int const full = r->count <= most || (double)held * (double)bins_left >= (double)left;
    int const at_zero = keep_zero && (r->key[i] == zero || r->key[i + 1] == zero);
    if ((full || at_zero) && bins_left > 1) {
      left -= held;
      held = 0;
      bin++;
    }
  }
  return bin + 1;
}

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

static rpo_status code_like(coder *k, int64_t col, const double *values, int32_t *codes,
                            rpo_error *err) {
  const rpo_features *const like = k->like;
  int64_t const size = column_size(&k->e, col);
  int32_t const bins = rpo_bins(like, col);
  for (int64_t i = 0; i < size; i++) {
    double const v = values[i];
    codes[i] = isnan(v) ? bins : (int32_t)nearest_bin(like, col, v);
    if (isnan(v)) k->missing[col] = 1;
  }
  k->bins[col] = bins;
  k->low[col] = rpo_new(bins, (int64_t)sizeof(double));
  k->high[col] = rpo_new(bins, (int64_t)sizeof(double));
  if (k->low[col] == NULL || k->high[col] == NULL) return rpo_fail_memory(err, "features");
  memcpy(k->low[col], like->low + like->bin_start[col], (size_t)bins * sizeof(double));
  memcpy(k->high[col], like->high + like->bin_start[col], (size_t)bins * sizeof(double));
  k->single[col] = (uint8_t)like->single;
  return RPO_OK;
}

static void note_column(coder *k, int64_t col, const double *values, int64_t size) {
  int single = 1, missing = 0;
  for (int64_t i = 0; i < size; i++) {
    missing |= isnan(values[i]);
    single &= (double)(float)values[i] == values[i] || isnan(values[i]);
  }
  k->single[col] = (uint8_t)single;
  k->missing[col] = (uint8_t)missing;
}

/* Entries to be sorted; missing ones are coded -1. */
static void load_column(column *c, const double *values, int64_t size, int32_t *codes) {
  c->count = 0;
  for (int64_t i = 0; i < size; i++) {
    if (isnan(values[i])) {
      codes[i] = -1;
      continue;
    }
    c->key[c->count] = key_of(values[i]);
    c->at[c->count++] = (int32_t)i;
  }
}

/* Numbers the values as they appear; missing ones -1. Returns 0 when there are too many. */
static int load_few(few *w, const double *values, int64_t size, int32_t *codes) {
  w->count = 0;
  for (int i = 0; i < SLOTS; i++) w->slot[i] = -1;
  for (int64_t i = 0; i < size; i++) {
    if (isnan(values[i])) {
      codes[i] = -1;
      continue;
    }
    uint64_t const key = key_of(values[i]);
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 54);
    while (w->slot[at] >= 0 && w->key[w->slot[at]] != key) at = (at + 1) & (SLOTS - 1);
    if (w->slot[at] < 0) {
      if (w->count == FEW) return 0;
      w->slot[at] = (int16_t)w->count;
      w->key[w->count] = key;
      w->weight[w->count++] = 0;
    }
    codes[i] = w->slot[at];
    w->weight[w->slot[at]]++;
  }
  return 1;
}

/* Runs of the few values, in ascending order, with `zeros` more zeros. */
static void sort_few(few *w, int64_t zeros, int with_zero, runs *r) {
  uint64_t const zero = key_of(0.0);
  int32_t order[FEW];
  int open = with_zero;
  for (int32_t i = 0; i < w->count; i++) {
    int32_t j = i;
    for (; j > 0 && w->key[order[j - 1]] > w->key[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  r->count = 0;
  for (int32_t i = 0; i <= w->count; i++) {
    uint64_t const key = i < w->count ? w->key[order[i]] : UINT64_MAX;
    if (open && key > zero) {
      r->key[r->count] = zero;
      r->weight[r->count++] = zeros;
    }
    open = open && key < zero;
    if (i == w->count) break;
    w->run[order[i]] = (int32_t)r->count;
    r->key[r->count] = key;
    r->weight[r->count++] = w->weight[order[i]] + (key == zero ? zeros : 0);
  }
}

static rpo_status code_column(coder *k, int64_t col, column *c, const double *values,
                              rpo_error *err) {
  int64_t const size = column_size(&k->e, col);
  int32_t *const codes = k->codes + (k->e.start == NULL ? col * size : k->e.start[col]);
  if (k->like != NULL) return code_like(k, col, values, codes, err);
  note_column(k, col, values, size);
  few w;
  int const is_few = load_few(&w, values, size, codes);
  if (!is_few) {
    load_column(c, values, size, codes);
    sort_column(c);
  }

  int const listed_only = k->f->sparse;
  int64_t const zeros = k->f->rows - size;
  int const with_zero = listed_only || zeros > 0;
  int64_t const most_runs = (is_few ? w.count : c->count) + 1;
  runs r = {0, rpo_new(most_runs, 8), rpo_new(most_runs, 8), rpo_new(most_runs, 8)};
  int32_t *const bin_of = rpo_new(most_runs, 4);
  rpo_status status = RPO_OK;
  if (r.key == NULL || r.weight == NULL || r.end == NULL || bin_of == NULL) {
    status = rpo_fail_memory(err, "features");
    goto done;
  }
  if (is_few) {
    sort_few(&w, zeros, with_zero, &r);
  } else {
    find_runs(c, zeros, with_zero, &r);
  }
  int64_t const most = k->max_bins > 0 ? k->max_bins : r.count;
  int64_t const bins = r.count == 0 ? 0 : group_runs(&r, most, listed_only, bin_of);
  k->bins[col] = bins;
  k->low[col] = rpo_new(bins, (int64_t)sizeof(double));
  k->high[col] = rpo_new(bins, (int64_t)sizeof(double));
  if (k->low[col] == NULL || k->high[col] == NULL) {
    status = rpo_fail_memory(err, "features");
    goto done;
  }
  for (int64_t i = 0; i < r.count; i++) {
    if (i == 0 || bin_of[i] != bin_of[i - 1]) k->low[col][bin_of[i]] = value_of(r.key[i]);
    k->high[col][bin_of[i]] = value_of(r.key[i]);
  }
  if (is_few) {
    for (int32_t i = 0; i < w.count; i++) w.run[i] = bin_of[w.run[i]];
    for (int64_t i = 0; i < size; i++) codes[i] = codes[i] < 0 ? (int32_t)bins : w.run[codes[i]];
  } else {
    for (int64_t i = 0, entry = 0; i < r.count; i++) {
      for (; entry < r.end[i]; entry++) codes[c->at[entry]] = bin_of[i];
    }
    for (int64_t i = 0; k->missing[col] && i < size; i++) {
      if (codes[i] < 0) codes[i] = (int32_t)bins;
    }
  }
done:
  rpo_delete(r.key);
  rpo_delete(r.weight);
  rpo_delete(r.end);
  rpo_delete(bin_of);
  return status;
}

static int64_t tile_columns(const rpo_features *f) {
  int64_t const columns = TILE_VALUES / (f->rows + 1);
  return columns < 1 ? 1 : columns < TILE ? columns : TILE;
}

/* A few neighbouring columns: read together, for a row-major X has them side by side. */
static rpo_status code_columns(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  coder *const k = context;
  column *const c = &k->work[thread];
  int64_t const first = task * tile_columns(k->f), rows = k->f->rows;
  int64_t const after = first + tile_columns(k->f);
  int64_t const end = after < k->f->cols ? after : k->f->cols;
  (void)job;
  for (int64_t i = 0; k->e.start == NULL && i < rows; i++) {
    for (int64_t j = first; j < end; j++) {
      c->tile[(j - first) * rows + i] = rpo_dense_at(k->e.X, i, j);
    }
  }
  for (int64_t j = first; j < end; j++) {
    const double *const values =
        k->e.start == NULL ? c->tile + (j - first) * rows : k->e.values + k->e.start[j];
    RPO_TRY(code_column(k, j, c, values, err));
  }
  return RPO_OK;
}

/* ---- Collecting the non-zero entries by column ---- */

static int64_t count_entry(double v) { return v != 0.0; } /* NaN counts */

static void count_entries(const rpo_matrix *X, int64_t *start) {
  int64_t const major = X->format == RPO_CSC ? X->cols : X->rows;
  for (int64_t j = 0; j <= X->cols; j++) start[j] = 0;
  for (int64_t i = 0; i < major; i++) {
    if (X->format == RPO_DENSE) {
      for (int64_t j = 0; j < X->cols; j++) start[j + 1] += count_entry(rpo_dense_at(X, i, j));
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
    f->bin_start[j + 1] = f->bin_start[j] + k->bins[j];
    if (k->bins[j] > widest) widest = k->bins[j];
    f->has_missing |= k->missing[j];
    f->single &= k->single[j];
  }
  f->width = widest < 256 ? 1 : widest < 65536 ? 2 : 4;
  f->low = rpo_new(f->bin_start[f->cols], 8);
  f->high = rpo_new(f->bin_start[f->cols], 8);
  if (f->low == NULL || f->high == NULL) return rpo_fail_memory(err, "features");
  for (int64_t j = 0; j < f->cols; j++) {
    memcpy(f->low + f->bin_start[j], k->low[j], (size_t)k->bins[j] * 8);
    memcpy(f->high + f->bin_start[j], k->high[j], (size_t)k->bins[j] * 8);
  }
  f->exact = 1;
  for (int64_t b = 0; b < f->bin_start[f->cols]; b++) f->exact &= f->low[b] == f->high[b];
  return RPO_OK;
}

static int32_t code_of_zero(const rpo_features *f, int64_t col) {
  return (int32_t)nearest_bin(f, col, 0.0);
}

/* Dense form: the code of more than half of the rows, which node scans may skip. */
static rpo_status find_common_codes(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  int64_t most = 0;
  for (int64_t j = 0; j < f->cols; j++) {
    if (k->bins[j] > most) most = k->bins[j];
  }
  int64_t *const count = rpo_new(most + 1, 8);
  if (count == NULL) return rpo_fail_memory(err, "features");
  for (int64_t j = 0; j < f->cols; j++) {
    memset(count, 0, (size_t)(k->bins[j] + 1) * 8);
    for (int64_t i = 0; i < f->rows; i++) count[k->codes[j * f->rows + i]]++;
    f->rest[j] = -1;
    for (int64_t b = 0; b < k->bins[j]; b++) {
      if (2 * count[b] > f->rows) f->rest[j] = (int32_t)b;
    }
  }
  rpo_delete(count);
  return RPO_OK;
}

/* Codes row after row, in tiles that stay in cache. */
static void transpose(const rpo_features *f, void *out) {
  enum { SQUARE = 64 };
  for (int64_t i0 = 0; i0 < f->rows; i0 += SQUARE) {
    int64_t const i1 = i0 + SQUARE < f->rows ? i0 + SQUARE : f->rows;
    for (int64_t j = 0; j < f->cols; j++) {
      for (int64_t i = i0; i < i1; i++) {
        int32_t const code = rpo_code_at(f->codes, f->width, j * f->rows + i);
        rpo_code_put(out, f->width, i * f->cols + j, code);
      }
    }
  }
}

static rpo_status finish_dense(coder *k, rpo_error *err) {
  rpo_features *const f = k->f;
  RPO_TRY(find_common_codes(k, err));
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
    int32_t const zero = k->bins[j] > 0 ? code_of_zero(f, j) : 0;
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
    f->binary &= k->bins[j] <= 2;
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
  k->bins = rpo_new_zero(f->cols, 8);
  k->low = rpo_new_zero(f->cols, (int64_t)sizeof(double *));
  k->high = rpo_new_zero(f->cols, (int64_t)sizeof(double *));
  k->missing = rpo_new_zero(f->cols, 1);
  k->single = rpo_new_zero(f->cols, 1);
  k->work = rpo_new_zero(threads, (int64_t)sizeof(column));
  if (k->codes == NULL || k->bins == NULL || k->low == NULL || k->high == NULL ||
      k->missing == NULL || k->single == NULL || k->work == NULL) {
    return rpo_fail_memory(err, "features");
  }
  for (int t = 0; t < threads; t++) {
    column *const c = &k->work[t];
    c->key = rpo_new(longest, 8);
    c->key2 = rpo_new(longest, 8);
    c->at = rpo_new(longest, 4);
    c->at2 = rpo_new(longest, 4);
    c->histogram = rpo_new(PASSES * DIGITS, 8);
    if (k->e.start == NULL) {
      c->tile = rpo_new(tile_columns(f) * f->rows, 8);
      if (c->tile == NULL) return rpo_fail_memory(err, "features");
    }
    if (c->histogram == NULL || c->key == NULL || c->key2 == NULL || c->at == NULL ||
        c->at2 == NULL) {
      return rpo_fail_memory(err, "features");
    }
  }
  int64_t const tasks = (f->cols + tile_columns(f) - 1) / tile_columns(f);
  return rpo_run(control, tasks, code_columns, k, err);
}

static void coder_release(coder *k, const rpo_control *control) {
  for (int64_t j = 0; j < k->f->cols; j++) {
    if (k->low != NULL) rpo_delete(k->low[j]);
    if (k->high != NULL) rpo_delete(k->high[j]);
  }
  for (int t = 0; k->work != NULL && t < rpo_threads(control, k->f->cols); t++) {
    rpo_delete(k->work[t].key);
    rpo_delete(k->work[t].key2);
    rpo_delete(k->work[t].at);
    rpo_delete(k->work[t].at2);
    rpo_delete(k->work[t].histogram);
    rpo_delete(k->work[t].tile);
  }
  rpo_delete(k->work);
  rpo_delete(k->low);
  rpo_delete(k->high);
  rpo_delete(k->bins);
  rpo_delete(k->missing);
  rpo_delete(k->single);
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

rpo_status rpo_decode(const rpo_features *f, float **out, rpo_error *err) {
  *out = NULL;
  if (f->sparse || !f->exact || !f->single || f->has_missing) return RPO_OK;
  float *const values = rpo_new(f->rows * f->cols, 4);
  if (values == NULL) return rpo_fail_memory(err, "the values");
  for (int64_t i = 0; i < f->rows; i++) {
    for (int64_t j = 0; j < f->cols; j++) {
      int32_t const code = rpo_code_at(f->row_codes, f->width, i * f->cols + j);
      values[i * f->cols + j] = (float)f->low[f->bin_start[j] + code];
    }
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
