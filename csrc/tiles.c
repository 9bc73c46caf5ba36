/* Products of a CSR matrix and a dense one where the dense side is larger than the caches. Its columns
 * go by panels of a cache line, one panel for all threads, and the entries of a block of rows in the
 * order of tiles of columns. Blocks gather: the block's lines of A B and a tile's of B are near. Ranges of
 * tiles scatter: a tile's lines of A'B are. Entries are put in order once for all panels, of as many
 * rows at a time as take no more room than the dense side. */
#include "tiles.h"

#include <string.h>

#include "array.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"

enum {
  LINE_BYTES = 64,
  FAR_BYTES = 1 << 23,  /* a dense side of this size stays in the cache that cores share */
  BLOCK_ROWS = 1 << 13, /* at most: their lines stay in a core's own cache */
  TILE_BITS = 8,        /* of the columns of a tile, whose lines stay in a core's first cache */
  RANGES = 4,           /* of tiles, for each thread */
  FEWEST_LINES = 4,     /* that putting entries in order pays for */
  COPY_ROWS = 1 << 12,  /* of a panel, copied by one thread */
  ROWS_AHEAD = 16,      /* of a dense side, whose lines are on their way */
  SURVEY_ROWS = 1 << 9, /* of a task */
  STEP = 1 << 14        /* entries between two looks at the clock */
};

#define LONG_SECONDS 0.05 /* after which the caller is asked whether to go on */

typedef struct tiles {
  const rpo_product *p;
  const rpo_kernels *kernels;
  int64_t width, size, numbers; /* of a result; bytes of a number; numbers of a line */
  int64_t from, to;             /* rows whose entries are in order now */
  char *entry;                  /* theirs, block after block, then zeros: they are fetched early */
  int64_t entry_size;
  int64_t tiles;
  int64_t *count; /* by thread and tile: entries, then where they go */
  int64_t ranges;
  int64_t *first; /* by range: its first tile, and the one after the last */
  int64_t *start; /* by block and range: its first entry, and behind all the one after the last */
  int64_t block_rows;
  int64_t falls; /* entries of a smaller column than the one before them */
  int64_t at;    /* byte of a dense row where the panel begins */
  int64_t bytes; /* of it */
  char *rows;    /* lines: the panel of a matrix with A's rows, and one with its columns */
  char *columns;
  const rpo_control *control; /* the caller's */
  int threads;
  int64_t done, total;    /* rows times panels, as told to it */
  double polled, seconds; /* when it was asked, and how long the last panel took */
} tiles;

#ifdef RPO_TEST_HOOKS
int64_t rpo_tiles_made = 0;
#endif

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t size_of(const rpo_product *p) { return p->dtype == RPO_F32 ? 4 : 8; }

static int64_t lines_of(const rpo_product *p, int64_t width) {
  return ceil_div(width * size_of(p), LINE_BYTES);
}

/* The size of parts of n, at most `most`, of which every thread has nearly as many. */
static int64_t even_part(int64_t n, int64_t most, int64_t threads) {
  return ceil_div(n, threads * ceil_div(n, threads * most));
}

/* Whether tiles gain: what an entry needs must be near more often than not. */
static int worthwhile(const rpo_product *p, int64_t width, int threads) {
  const rpo_matrix *const a = p->a;
  int64_t const lines = lines_of(p, width), stored = rpo_ptr_at(a, a->rows);
  double const block = (double)even_part(a->rows, BLOCK_ROWS, threads);
  if (a->cols > INT32_MAX / (LINE_BYTES / 4) || lines < FEWEST_LINES) return 0;
  if (a->cols * lines <= FAR_BYTES / LINE_BYTES || stored < 4 * a->cols) return 0;
  if (a->cols >> TILE_BITS < RANGES * threads) return 0;
  /* A line of the dense side is needed more than once for a block, or not worth the order. */
  return (double)stored * block >= (double)a->cols * (double)a->rows;
}

/* ---- Entries in the order of tiles ---- */

#define DEFINE_PLACE(name, real)                                                                   \
  static void name(const tiles *t, int64_t first, int64_t from, int64_t to, int64_t *next) {       \
    const rpo_matrix *const a = t->p->a;                                                           \
    rpo_entry_##real *const entry = (void *)t->entry;                                              \
    const real *const value = a->data;                                                             \
    int64_t const numbers = t->numbers;                                                            \
    for (int64_t i = from; i < to; i++) {                                                          \
      int64_t const end = rpo_ptr_at(a, i + 1);                                                    \
      for (int64_t e = rpo_ptr_at(a, i); e < end; e++) {                                           \
        int64_t const column = rpo_index_at(a->indices, a->index, e);                              \
        rpo_entry_##real const placed = {(int32_t)((i - first) * numbers),                         \
                                         (int32_t)(column * numbers), value ? value[e] : (real)1}; \
        entry[next[column >> TILE_BITS]++] = placed;                                               \
      }                                                                                            \
    }                                                                                              \
  }
DEFINE_PLACE(place_double, double)
DEFINE_PLACE(place_float, float)

/* Entries of rows by tile; how many follow a larger column is returned. */
static int64_t count_tiles(const rpo_matrix *a, int64_t from, int64_t to, int64_t *count) {
  int64_t falls = 0;
  for (int64_t i = from; i < to; i++) {
    int64_t const end = rpo_ptr_at(a, i + 1);
    int64_t before = 0;
    for (int64_t e = rpo_ptr_at(a, i); e < end; e++) {
      int64_t const column = rpo_index_at(a->indices, a->index, e);
      falls += column < before;
      before = column;
      count[column >> TILE_BITS]++;
    }
  }
  return falls;
}

static rpo_status survey_rows(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  tiles *const t = context;
  int64_t const first = task * SURVEY_ROWS, last = smaller(first + SURVEY_ROWS, t->p->a->rows);
  RPO_TRY(rpo_keep_on(job, thread, err));
  int64_t const falls = count_tiles(t->p->a, first, last, t->count + thread * (t->tiles + 1));
  if (falls > 0) (void)rpo_add(&t->falls, falls);
  return RPO_OK;
}

/* Cuts the tiles into ranges of nearly as many entries. */
static void cut_ranges(tiles *t) {
  int64_t const stored = rpo_ptr_at(t->p->a, t->p->a->rows);
  int64_t seen = 0, range = 0;
  for (int64_t j = 0; j < t->tiles; j++) {
    while (range < t->ranges &&
           (double)seen * (double)t->ranges >= (double)range * (double)stored) {
      t->first[range++] = j;
    }
    for (int64_t thread = 0; thread < t->threads; thread++) {
      seen += t->count[thread * (t->tiles + 1) + j];
    }
  }
  while (range <= t->ranges) t->first[range++] = t->tiles;
}

/* Where each tile's entries begin, given how many there are, and where the last one's end. */
static void add_up(int64_t *next, int64_t n, int64_t start) {
  for (int64_t j = 0; j < n; j++) {
    int64_t const count = next[j];
    next[j] = start;
    start += count;
  }
  next[n] = start;
}

static int64_t blocks_of(const tiles *t) { return ceil_div(t->to - t->from, t->block_rows); }

static rpo_status order_block(void *context, int64_t block, int thread, rpo_job *job,
                              rpo_error *err) {
  const tiles *const t = context;
  const rpo_matrix *const a = t->p->a;
  int64_t const first = t->from + block * t->block_rows;
  int64_t const last = smaller(first + t->block_rows, t->to);
  int64_t const begin = rpo_ptr_at(a, first), stored = rpo_ptr_at(a, last) - begin;
  int64_t const step = 1 + STEP * (last - first) / (stored + 1);
  int64_t *const next = t->count + thread * (t->tiles + 1);
  memset(next, 0, (size_t)t->tiles * sizeof *next);
  for (int64_t i = first; i < last; i += step) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    (void)count_tiles(a, i, smaller(i + step, last), next);
  }
  add_up(next, t->tiles, begin - rpo_ptr_at(a, t->from));
  for (int64_t r = 0; r < t->ranges; r++) t->start[block * t->ranges + r] = next[t->first[r]];
  for (int64_t i = first; i < last; i += step) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    (t->p->dtype == RPO_F32 ? place_float : place_double)(t, first, i, smaller(i + step, last),
                                                          next);
  }
  return RPO_OK;
}

/* ---- Panels ---- */

/* A part of the rows of a dense matrix's panel, to or from lines of its own. */
static void load(const tiles *t, char *line, const void *matrix, int64_t stride, int64_t first,
                 int64_t rows) {
  const char *from = (const char *)matrix + first * stride * t->size + t->at;
  for (int64_t i = 0; i < rows; i++, line += LINE_BYTES, from += stride * t->size) {
    RPO_PREFETCH(from + smaller(ROWS_AHEAD, rows - 1 - i) * stride * t->size);
    if (t->bytes == LINE_BYTES) {
      memcpy(line, from, LINE_BYTES);
    } else {
      memcpy(line, from, (size_t)t->bytes);
      memset(line + t->bytes, 0, (size_t)(LINE_BYTES - t->bytes));
    }
  }
}

static void store(const tiles *t, const char *line, int64_t first, int64_t rows) {
  int64_t const stride = t->p->out_stride * t->size;
  char *to = (char *)t->p->out + first * stride + t->at;
  for (int64_t i = 0; i < rows; i++, line += LINE_BYTES, to += stride) {
    RPO_PREFETCH(to + smaller(ROWS_AHEAD, rows - 1 - i) * stride);
    if (t->bytes == LINE_BYTES) {
      memcpy(to, line, LINE_BYTES);
    } else {
      memcpy(to, line, (size_t)t->bytes);
    }
  }
}

static void weigh(const tiles *t, char *line, int64_t first, int64_t rows) {
  const double *const weight = t->p->weight;
  for (int64_t i = 0; weight != NULL && i < rows; i++) {
    for (int64_t c = 0; c < t->numbers; c++) {
      if (t->p->dtype == RPO_F32) {
        ((float *)(void *)line)[i * t->numbers + c] *= (float)weight[first + i];
      } else {
        ((double *)(void *)line)[i * t->numbers + c] *= weight[first + i];
      }
    }
  }
}

static char *lines_of_block(const tiles *t, int64_t block) {
  return t->rows + block * t->block_rows * LINE_BYTES;
}

/* Entries of a block in ranges from .. to - 1: lines of columns times values are added to the block's,
 * or, `back`, the other way round. */
static rpo_status walk(const tiles *t, int back, int64_t block, int64_t from, int64_t to,
                       int thread, rpo_job *job, rpo_error *err) {
  const int64_t *const start = t->start + block * t->ranges;
  for (int64_t e = start[from]; e < start[to]; e += STEP) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    t->kernels->tile(t->p->dtype, back, t->entry + e * t->entry_size, smaller(STEP, start[to] - e),
                     lines_of_block(t, block), t->columns);
  }
  return RPO_OK;
}

/* The panel of B, as many rows as A has columns. */
static rpo_status load_columns(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  const tiles *const t = context;
  int64_t const first = task * COPY_ROWS, rows = smaller(COPY_ROWS, t->p->a->cols - first);
  RPO_TRY(rpo_keep_on(job, thread, err));
  load(t, t->columns + first * LINE_BYTES, t->p->b, t->p->b_stride, first, rows);
  return RPO_OK;
}

/* A block's lines: of diag(w) A B, into the result if that is asked for, or of diag(w) B. */
static rpo_status fill_block(void *context, int64_t block, int thread, rpo_job *job,
                             rpo_error *err) {
  const tiles *const t = context;
  const rpo_product *const p = t->p;
  int64_t const first = t->from + block * t->block_rows;
  int64_t const rows = smaller(t->block_rows, t->to - first);
  char *const lines = lines_of_block(t, block);
  if (p->kind == RPO_TRANSPOSED) {
    load(t, lines, p->b, p->b_stride, first, rows);
  } else {
    memset(lines, 0, (size_t)(rows * LINE_BYTES));
    RPO_TRY(walk(t, 0, block, 0, t->ranges, thread, job, err));
  }
  weigh(t, lines, first, rows);
  if (p->kind == RPO_TIMES) store(t, lines, first, rows);
  return RPO_OK;
}

/* The lines of a range's columns of the result, to which all blocks add. */
static rpo_status sum_range(void *context, int64_t range, int thread, rpo_job *job,
                            rpo_error *err) {
  const tiles *const t = context;
  int64_t const first = smaller(t->first[range] << TILE_BITS, t->p->a->cols);
  int64_t const columns = smaller(t->first[range + 1] << TILE_BITS, t->p->a->cols) - first;
  char *const sums = t->columns + first * LINE_BYTES;
  if (t->from > 0) {
    load(t, sums, t->p->out, t->p->out_stride, first, columns);
  } else {
    memset(sums, 0, (size_t)(columns * LINE_BYTES));
  }
  for (int64_t block = 0; block < blocks_of(t); block++) {
    RPO_TRY(walk(t, 1, block, range, range + 1, thread, job, err));
  }
  store(t, sums, first, columns);
  return RPO_OK;
}

/* ---- All of it ---- */

/* The row after those whose entries fit `most`: some blocks, one at least; of a matrix of very few
 * entries not many more rows than it has columns. */
static int64_t rows_within(const rpo_matrix *a, int64_t from, int64_t most) {
  int64_t to = smaller(from + BLOCK_ROWS, a->rows);
  while (to < a->rows && to - from < a->cols) {
    int64_t const next = smaller(to + BLOCK_ROWS, a->rows);
    if (rpo_ptr_at(a, next) - rpo_ptr_at(a, from) > most) break;
    to = next;
  }
  return to;
}

/* Most rows and most entries that are in order at a time. */
static void largest_part(const rpo_matrix *a, int64_t most, int64_t *rows, int64_t *entries) {
  *rows = *entries = 0;
  for (int64_t from = 0, to; from < a->rows; from = to) {
    to = rows_within(a, from, most);
    int64_t const stored = rpo_ptr_at(a, to) - rpo_ptr_at(a, from);
    if (stored > *entries) *entries = stored;
    if (to - from > *rows) *rows = to - from;
  }
}

static int32_t report(void *user, int64_t done, int64_t total) {
  const tiles *const t = user;
  (void)done;
  (void)total;
  return t->control->progress(t->control->user, t->done, t->total);
}

/* The control of what a panel takes: without progress while panels are short, since waiting to poll
 * costs more. */
static rpo_control inner_control(tiles *t) {
  rpo_control inner = {t->threads, 0, NULL, NULL, NULL};
  if (t->control != NULL && t->control->progress != NULL && t->seconds > LONG_SECONDS) {
    inner.progress = report;
    inner.user = t;
  }
  return inner;
}

static rpo_status run_panel(tiles *t, rpo_error *err) {
  int const kind = t->p->kind;
  rpo_control const inner = inner_control(t);
  double const began = rpo_now();
  if (kind != RPO_TRANSPOSED) {
    RPO_TRY(rpo_run(&inner, ceil_div(t->p->a->cols, COPY_ROWS), load_columns, t, err));
  }
  RPO_TRY(rpo_run(&inner, blocks_of(t), fill_block, t, err));
  if (kind != RPO_TIMES) RPO_TRY(rpo_run(&inner, t->ranges, sum_range, t, err));
  double const now = rpo_now();
  t->seconds = now - began;
  t->done += t->to - t->from;
  if (t->control == NULL || t->control->progress == NULL || now - t->polled < LONG_SECONDS) {
    return RPO_OK;
  }
  t->polled = now;
  return report(t, 0, 0) ? rpo_fail(err, RPO_ECANCELED, "cancelled by the progress callback")
                         : RPO_OK;
}

static rpo_status run_part(tiles *t, rpo_error *err) {
  int64_t const row_bytes = t->width * t->size;
  int64_t const stored = rpo_ptr_at(t->p->a, t->to) - rpo_ptr_at(t->p->a, t->from);
  t->seconds = 1.0; /* may be long: the first panel of a part is polled */
  t->block_rows = even_part(t->to - t->from, BLOCK_ROWS, t->threads);
  rpo_control const inner = inner_control(t);
  memset(t->entry + stored * t->entry_size, 0, (size_t)(RPO_TILE_AHEAD * t->entry_size));
  t->start[blocks_of(t) * t->ranges] = stored;
  RPO_TRY(rpo_run(&inner, blocks_of(t), order_block, t, err));
  for (t->at = 0; t->at < row_bytes; t->at += LINE_BYTES) {
    t->bytes = smaller(LINE_BYTES, row_bytes - t->at);
    RPO_TRY(run_panel(t, err));
  }
  return RPO_OK;
}

static void release(tiles *t) {
  rpo_delete(t->count);
  rpo_delete(t->first);
  rpo_delete(t->start);
  rpo_delete(t->entry);
  rpo_delete(t->rows);
  rpo_delete(t->columns);
}

static rpo_status run(tiles *t, rpo_error *err) {
  const rpo_matrix *const a = t->p->a;
  int64_t const most = a->cols * lines_of(t->p, t->width) * LINE_BYTES / t->entry_size;
  int64_t rows, entries;
  largest_part(a, most, &rows, &entries);
  int64_t const blocks = t->threads * ceil_div(rows, (int64_t)t->threads * BLOCK_ROWS);
  t->start = rpo_new(blocks * t->ranges + 1, (int64_t)sizeof *t->start);
  t->entry = rpo_new(entries + RPO_TILE_AHEAD, t->entry_size);
  t->rows = rpo_new(rows, LINE_BYTES);
  t->columns = rpo_new(a->cols, LINE_BYTES);
  if (t->start == NULL || t->entry == NULL || t->rows == NULL || t->columns == NULL) {
    return rpo_fail_memory(err, "the product");
  }
  rpo_expect_jumps(t->entry, entries, t->entry_size);
  rpo_expect_jumps(t->rows, rows, LINE_BYTES);
  rpo_expect_jumps(t->columns, a->cols, LINE_BYTES);
  for (t->from = 0; t->from < a->rows; t->from = t->to) {
    t->to = rows_within(a, t->from, most);
    RPO_TRY(run_part(t, err));
  }
  return RPO_OK;
}

/* Counts the entries of tiles, and cuts these into ranges. */
static rpo_status survey(tiles *t, rpo_error *err) {
  t->tiles = ceil_div(t->p->a->cols, 1 << TILE_BITS);
  t->ranges = RANGES * t->threads;
  t->count = rpo_new_zero(t->threads * (t->tiles + 1), (int64_t)sizeof *t->count);
  t->first = rpo_new(t->ranges + 1, (int64_t)sizeof *t->first);
  if (t->count == NULL || t->first == NULL) return rpo_fail_memory(err, "the product");
  t->seconds = 1.0;
  rpo_control const inner = inner_control(t);
  RPO_TRY(rpo_run(&inner, ceil_div(t->p->a->rows, SURVEY_ROWS), survey_rows, t, err));
  cut_ranges(t);
  return RPO_OK;
}

rpo_status rpo_tiles_multiply(const rpo_product *p, int64_t width, const rpo_control *control,
                              int *done, rpo_error *err) {
  int const threads = rpo_threads(control, INT32_MAX);
  *done = 0;
  if (!worthwhile(p, width, threads)) return RPO_OK;
  tiles t;
  memset(&t, 0, sizeof t);
  t.p = p;
  t.kernels = rpo_kernels_pick();
  t.width = width;
  t.size = size_of(p);
  t.numbers = LINE_BYTES / t.size;
  t.entry_size =
      (int64_t)(p->dtype == RPO_F32 ? sizeof(rpo_entry_float) : sizeof(rpo_entry_double));
  t.control = control;
  t.threads = threads;
  t.total = p->a->rows * lines_of(p, width);
  t.polled = rpo_now();
  rpo_status status = survey(&t, err);
  if (status == RPO_OK && t.falls == 0) {
    *done = 1;
#ifdef RPO_TEST_HOOKS
    rpo_tiles_made++;
#endif
    status = run(&t, err);
  }
  release(&t);
  return status;
}
