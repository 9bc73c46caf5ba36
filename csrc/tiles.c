/* Products of a CSR matrix and a dense one where the dense side is larger than the caches. Its columns
 * go by panels of a cache line, and the entries of a block of rows in the order of tiles of columns:
 * the block's lines of A B then stay in a core's own cache, and those of the dense side come tile
 * after tile. Entries are put in order once for all panels, of as many blocks at a time as take no
 * more room than the dense side. */
#include "tiles.h"

#include <string.h>

#include "array.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"

enum {
  LINE_BYTES = 64,
  FAR_BYTES = 1 << 23,  /* a dense side of this size stays in the cache that cores share */
  BLOCK_ROWS = 1 << 13, /* whose lines stay in a core's own cache, with room to spare */
  TILE_BITS = 10,       /* of the columns of a tile */
  FEWEST_LINES = 4,     /* that putting entries in order pays for */
  STEP = 1 << 14        /* entries between two looks at the clock */
};

typedef struct tiles {
  const rpo_product *p;
  const rpo_kernels *kernels;
  int64_t width, size, numbers; /* of a result; bytes of a number; numbers of a line */
  int64_t from, to;             /* rows whose entries are in order now */
  char *entry;                  /* theirs, block after block, then zeros: they are fetched early */
  int64_t entry_size;
  int64_t *next; /* by thread and tile */
  int64_t tiles;
  char *own; /* by thread: panel of B, panel of the result, lines of a block */
  int64_t own_lines;
} tiles;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t size_of(const rpo_product *p) { return p->dtype == RPO_F32 ? 4 : 8; }

static int64_t lines_of(const rpo_product *p, int64_t width) {
  return ceil_div(width * size_of(p), LINE_BYTES);
}

static int rows_ascend(const rpo_matrix *a) {
  for (int64_t i = 0; i < a->rows; i++) {
    int64_t const end = rpo_ptr_at(a, i + 1);
    for (int64_t e = rpo_ptr_at(a, i) + 1; e < end; e++) {
      if (rpo_index_at(a->indices, a->index, e) < rpo_index_at(a->indices, a->index, e - 1)) {
        return 0;
      }
    }
  }
  return 1;
}

int rpo_tiles_pay(const rpo_product *p, int64_t width, const rpo_control *control) {
  const rpo_matrix *const a = p->a;
  int64_t const lines = lines_of(p, width), stored = rpo_ptr_at(a, a->rows);
  if (a->cols > INT32_MAX || a->cols * lines <= FAR_BYTES / LINE_BYTES) return 0;
  if (lines < FEWEST_LINES || lines < 2 * rpo_threads(control, lines) - 1) return 0;
  /* A line of the dense side is needed more than once for a block, or not worth the order. */
  if ((double)stored * BLOCK_ROWS < (double)a->cols * (double)a->rows) return 0;
  return stored >= 4 * a->cols && rows_ascend(a);
}

/* ---- Entries in the order of tiles ---- */

#define DEFINE_PLACE(name, real)                                                             \
  static void name(const tiles *t, int64_t first, int64_t from, int64_t to, int64_t *next) { \
    const rpo_matrix *const a = t->p->a;                                                     \
    rpo_entry_##real *const entry = (void *)t->entry;                                        \
    const real *const value = a->data;                                                       \
    for (int64_t i = from; i < to; i++) {                                                    \
      int64_t const end = rpo_ptr_at(a, i + 1);                                              \
      for (int64_t e = rpo_ptr_at(a, i); e < end; e++) {                                     \
        int32_t const column = (int32_t)rpo_index_at(a->indices, a->index, e);               \
        rpo_entry_##real const placed = {(int32_t)(i - first), column,                       \
                                         value ? value[e] : (real)1};                        \
        entry[next[column >> TILE_BITS]++] = placed;                                         \
      }                                                                                      \
    }                                                                                        \
  }
DEFINE_PLACE(place_double, double)
DEFINE_PLACE(place_float, float)

static void count_tiles(const rpo_matrix *a, int64_t from, int64_t to, int64_t *count) {
  int64_t const end = rpo_ptr_at(a, to);
  for (int64_t e = rpo_ptr_at(a, from); e < end; e++) {
    count[rpo_index_at(a->indices, a->index, e) >> TILE_BITS]++;
  }
}

/* Where each tile's entries begin, given how many there are. */
static void add_up(int64_t *next, int64_t n, int64_t start) {
  for (int64_t j = 0; j < n; j++) {
    int64_t const count = next[j];
    next[j] = start;
    start += count;
  }
}

static rpo_status order_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const tiles *const t = context;
  const rpo_matrix *const a = t->p->a;
  int64_t const first = t->from + task * BLOCK_ROWS, last = smaller(first + BLOCK_ROWS, t->to);
  int64_t const start = rpo_ptr_at(a, first), stored = rpo_ptr_at(a, last) - start;
  int64_t const step = 1 + STEP * (last - first) / (stored + 1);
  int64_t *const next = t->next + thread * t->tiles;
  memset(next, 0, (size_t)t->tiles * sizeof *next);
  for (int64_t i = first; i < last; i += step) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    count_tiles(a, i, smaller(i + step, last), next);
  }
  add_up(next, t->tiles, start - rpo_ptr_at(a, t->from));
  for (int64_t i = first; i < last; i += step) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    (t->p->dtype == RPO_F32 ? place_float : place_double)(t, first, i, smaller(i + step, last),
                                                          next);
  }
  return RPO_OK;
}

/* ---- Panels ---- */

/* A panel of columns of a dense matrix, or a part of its rows, to or from lines of its own. */
static void load(char *line, const char *from, int64_t stride, int64_t bytes, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, line += LINE_BYTES, from += stride) {
    memcpy(line, from, (size_t)bytes);
    memset(line + bytes, 0, (size_t)(LINE_BYTES - bytes));
  }
}

static void store(char *to, int64_t stride, const char *line, int64_t bytes, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, line += LINE_BYTES, to += stride) {
    memcpy(to, line, (size_t)bytes);
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

/* All entries of a block: the panel's lines times values to the block's, or `back`. */
static rpo_status walk(const tiles *t, int back, int64_t first, int64_t last, char *block,
                       char *panel, int thread, rpo_job *job, rpo_error *err) {
  const rpo_matrix *const a = t->p->a;
  int64_t const start = rpo_ptr_at(a, t->from), end = rpo_ptr_at(a, last) - start;
  for (int64_t e = rpo_ptr_at(a, first) - start; e < end; e += STEP) {
    RPO_TRY(rpo_keep_on(job, thread, err));
    t->kernels->tile(t->p->dtype, back, t->entry + e * t->entry_size, smaller(STEP, end - e), block,
                     panel);
  }
  return RPO_OK;
}

static rpo_status panel_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const tiles *const t = context;
  const rpo_product *const p = t->p;
  int64_t const inner = p->a->cols, at = task * LINE_BYTES;
  int64_t const bytes = smaller(LINE_BYTES, t->width * t->size - at);
  int64_t const b_stride = p->b_stride * t->size, out_stride = p->out_stride * t->size;
  const char *const b = (const char *)p->b + at;
  char *const out = (char *)p->out + at;
  char *const block = t->own + thread * t->own_lines * LINE_BYTES;
  char *const sums = block + BLOCK_ROWS * LINE_BYTES; /* of columns of A */
  char *const panel = p->kind == RPO_GRAM ? sums + inner * LINE_BYTES : sums;
  if (p->kind != RPO_TRANSPOSED) load(panel, b, b_stride, bytes, inner);
  if (p->kind != RPO_TIMES) {
    if (t->from > 0) {
      load(sums, out, out_stride, bytes, inner);
    } else {
      memset(sums, 0, (size_t)(inner * LINE_BYTES));
    }
  }
  for (int64_t first = t->from; first < t->to; first += BLOCK_ROWS) {
    int64_t const last = smaller(first + BLOCK_ROWS, t->to), rows = last - first;
    if (p->kind == RPO_TRANSPOSED) {
      load(block, b + first * b_stride, b_stride, bytes, rows);
    } else {
      memset(block, 0, (size_t)(rows * LINE_BYTES));
      RPO_TRY(walk(t, 0, first, last, block, panel, thread, job, err));
    }
    weigh(t, block, first, rows);
    if (p->kind == RPO_TIMES) {
      store(out + first * out_stride, out_stride, block, bytes, rows);
    } else {
      RPO_TRY(walk(t, 1, first, last, block, sums, thread, job, err));
    }
  }
  if (p->kind != RPO_TIMES) store(out, out_stride, sums, bytes, inner);
  return RPO_OK;
}

/* ---- All of it ---- */

/* The row after those whose entries fit `most`: whole blocks, one at least. */
static int64_t rows_within(const rpo_matrix *a, int64_t from, int64_t most) {
  int64_t to = smaller(from + BLOCK_ROWS, a->rows);
  while (to < a->rows) {
    int64_t const next = smaller(to + BLOCK_ROWS, a->rows);
    if (rpo_ptr_at(a, next) - rpo_ptr_at(a, from) > most) break;
    to = next;
  }
  return to;
}

static int64_t largest_part(const rpo_matrix *a, int64_t most) {
  int64_t largest = 0;
  for (int64_t from = 0, to; from < a->rows; from = to) {
    to = rows_within(a, from, most);
    int64_t const stored = rpo_ptr_at(a, to) - rpo_ptr_at(a, from);
    if (stored > largest) largest = stored;
  }
  return largest;
}

static rpo_status run(tiles *t, int64_t most, const rpo_control *control, rpo_error *err) {
  const rpo_matrix *const a = t->p->a;
  for (t->from = 0; t->from < a->rows; t->from = t->to) {
    t->to = rows_within(a, t->from, most);
    RPO_TRY(rpo_run(control, ceil_div(t->to - t->from, BLOCK_ROWS), order_block, t, err));
    RPO_TRY(rpo_run(control, lines_of(t->p, t->width), panel_task, t, err));
  }
  return RPO_OK;
}

rpo_status rpo_tiles_multiply(const rpo_product *p, int64_t width, const rpo_control *control,
                              rpo_error *err) {
  const rpo_matrix *const a = p->a;
  int64_t const lines = lines_of(p, width), threads = rpo_threads(control, lines);
  tiles t;
  memset(&t, 0, sizeof t);
  t.p = p;
  t.kernels = rpo_kernels_pick();
  t.width = width;
  t.size = size_of(p);
  t.numbers = LINE_BYTES / t.size;
  t.entry_size =
      (int64_t)(p->dtype == RPO_F32 ? sizeof(rpo_entry_float) : sizeof(rpo_entry_double));
  t.tiles = (a->cols >> TILE_BITS) + 1;
  t.own_lines = BLOCK_ROWS + (p->kind == RPO_GRAM ? 2 : 1) * a->cols;
  int64_t const most = a->cols * lines * LINE_BYTES / t.entry_size;
  int64_t const entries = largest_part(a, most);
  t.entry = rpo_new(entries + RPO_TILE_AHEAD, t.entry_size);
  t.next = rpo_new(threads * t.tiles, (int64_t)sizeof *t.next);
  t.own = rpo_new(threads * t.own_lines, LINE_BYTES);
  rpo_status status;
  if (t.entry == NULL || t.next == NULL || t.own == NULL) {
    status = rpo_fail_memory(err, "the product");
  } else {
    memset(t.entry + entries * t.entry_size, 0, (size_t)(RPO_TILE_AHEAD * t.entry_size));
    status = run(&t, most, control, err);
  }
  rpo_delete(t.entry);
  rpo_delete(t.next);
  rpo_delete(t.own);
  return status;
}
