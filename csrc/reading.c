/* Blocks of rows on their way down the trees, by all threads; who was in a tree's sample. */
#include "readout.h"

#include <string.h>

#include "array.h"
#include "forest.h"
#include "mem.h"

#define BLOCK_ROWS 2048      /* a block reads all the trees once */
#define BLOCK_NUMBERS 262144 /* of X in a block: two megabytes */

static int64_t words_of(const rpo_matrix *X) { return (X->cols + 63) / 64; }

static void load_dense(const rpo_matrix *X, int64_t first, int64_t rows, double *x) {
  int64_t const p = X->cols;
  for (int64_t i = 0; i < rows; i++) {
    double *const to = x + i * p;
    if (X->col_stride == 1 && X->dtype == RPO_F32) {
      const float *const from = (const float *)X->data + (first + i) * X->row_stride;
      for (int64_t j = 0; j < p; j++) to[j] = (double)from[j];
    } else {
      for (int64_t j = 0; j < p; j++) to[j] = rpo_dense_at(X, first + i, j);
    }
  }
}

/* The entries of a row come in any order: first all bits, then each value in its place. Returns
 * whether all are 1. */
static int load_sparse(const rpo_matrix *X, int64_t first, int64_t rows, rpo_scratch *s) {
  int64_t const words = words_of(X);
  int64_t count = 0;
  int ones = 1;
  for (int64_t i = 0; i < rows; i++) {
    uint64_t *const set = s->set + i * words;
    int64_t *const before = s->before + i * words;
    int64_t const begin = rpo_ptr_at(X, first + i), end = rpo_ptr_at(X, first + i + 1);
    for (int64_t e = begin; e < end; e++) {
      int64_t const j = rpo_index_at(X->indices, X->index, e);
      set[j / 64] |= (uint64_t)1 << (j % 64);
    }
    for (int64_t w = 0; w < words; w++) {
      before[w] = count;
      count += rpo_bits(set[w]);
    }
    for (int64_t e = begin; e < end; e++) {
      int64_t const j = rpo_index_at(X->indices, X->index, e);
      uint64_t const below = set[j / 64] & (((uint64_t)1 << (j % 64)) - 1);
      double const v = rpo_value_at(X->data, X->dtype, e);
      s->x[before[j / 64] + rpo_bits(below)] = v;
      ones &= v == 1.0;
    }
  }
  return ones;
}

static rpo_rows load_rows(const rpo_matrix *X, int64_t first, int64_t rows, rpo_scratch *s) {
  if (X->format == RPO_DENSE) {
    rpo_rows const dense = {rows, X->cols, s->x, NULL, NULL, NULL};
    load_dense(X, first, rows, s->x);
    return dense;
  }
  int const ones = load_sparse(X, first, rows, s);
  rpo_rows const sparse = {rows, words_of(X), NULL, s->set, s->before, ones ? NULL : s->x};
  return sparse;
}

static void unload_rows(const rpo_matrix *X, int64_t first, int64_t rows, rpo_scratch *s) {
  if (X->format == RPO_DENSE) return;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t e = rpo_ptr_at(X, first + i); e < rpo_ptr_at(X, first + i + 1); e++) {
      s->set[i * words_of(X) + rpo_index_at(X->indices, X->index, e) / 64] = 0;
    }
  }
}

static rpo_status start_scratch(rpo_reading *r, rpo_scratch *s, rpo_error *err) {
  if (s->x != NULL) return RPO_OK;
  int64_t const trees = r->m->trees;
  int64_t const words = r->X->format == RPO_DENSE ? 0 : r->block * words_of(r->X);
  int64_t const by_row = r->s != NULL ? r->m->rows : 0;
  int64_t const picks = r->s != NULL ? r->m->rows + 1 : trees;
  s->set = rpo_new_zero(words, 8);
  s->before = rpo_new(words, 8);
  s->leaf = rpo_new(trees * r->block, 4);
  s->sum = rpo_new_zero(r->sums ? r->m->columns : 0, 8);
  s->weight = rpo_new_zero(by_row, 8);
  s->mark = rpo_new_zero(by_row, 1);
  s->first = rpo_new(trees, 8);
  s->end = rpo_new(trees, 8);
  s->unit = rpo_new(trees, 8);
  s->pick = rpo_new(picks, 8);
  s->share = rpo_new(picks, 8);
  if (s->set == NULL || s->before == NULL || s->leaf == NULL || s->sum == NULL ||
      s->weight == NULL || s->mark == NULL || s->first == NULL || s->end == NULL ||
      s->unit == NULL || s->pick == NULL || s->share == NULL ||
      (s->x = rpo_new(r->most, 8)) == NULL) {
    return rpo_fail_memory(err, "the predictions");
  }
  return RPO_OK;
}

rpo_status rpo_find_leaves(rpo_reading *r, int64_t task, int thread, rpo_job *job, int64_t *first,
                           int64_t *rows, rpo_error *err) {
  rpo_scratch *const s = &r->scratch[thread];
  RPO_TRY(start_scratch(r, s, err));
  *first = task * r->block;
  *rows = r->X->rows - *first < r->block ? r->X->rows - *first : r->block;
  rpo_rows const x = load_rows(r->X, *first, *rows, s);
  rpo_status status = RPO_OK;
  for (int64_t t = 0; t < r->m->trees && status == RPO_OK; t++) {
    status = rpo_keep_on(job, thread, err);
    if (status == RPO_OK && !r->kernels->leaves(r->m, t, &x, s->leaf + t * r->block)) {
      status = rpo_untrusted(err, "a node points nowhere");
    }
  }
  unload_rows(r->X, *first, *rows, s);
  return status;
}

static void release(rpo_reading *r) {
  for (int i = 0; r->scratch != NULL && i < r->threads; i++) {
    rpo_scratch *const s = &r->scratch[i];
    rpo_delete(s->x);
    rpo_delete(s->set);
    rpo_delete(s->before);
    rpo_delete(s->leaf);
    rpo_delete(s->sum);
    rpo_delete(s->weight);
    rpo_delete(s->mark);
    rpo_delete(s->first);
    rpo_delete(s->end);
    rpo_delete(s->unit);
    rpo_delete(s->pick);
    rpo_delete(s->share);
  }
  rpo_delete(r->scratch);
}

static int64_t most_numbers(const rpo_reading *r) {
  const rpo_matrix *const X = r->X;
  int64_t most = 0;
  if (X->format == RPO_DENSE) return r->block * X->cols;
  for (int64_t first = 0; first < X->rows; first += r->block) {
    int64_t const end = first + r->block < X->rows ? first + r->block : X->rows;
    int64_t const here = rpo_ptr_at(X, end) - rpo_ptr_at(X, first);
    most = here > most ? here : most;
  }
  return most;
}

rpo_status rpo_read_blocks(rpo_reading *r, const rpo_control *control, rpo_task_fn task,
                           rpo_error *err) {
  int64_t const width = r->X->format == RPO_DENSE
                            ? r->X->cols
                            : 2 * words_of(r->X) + rpo_ptr_at(r->X, r->X->rows) / r->X->rows;
  int64_t const by_size = BLOCK_NUMBERS / width;
  r->block = by_size < 8 ? 8 : by_size > BLOCK_ROWS ? BLOCK_ROWS : by_size;
  r->threads = rpo_threads(control, r->X->rows);
  int64_t const shares = r->threads == 1 ? 1 : 4 * r->threads; /* so that all finish together */
  int64_t const by_share = (r->X->rows + shares - 1) / shares;
  r->block = r->block < by_share ? r->block : by_share;
  int64_t const blocks = (r->X->rows + r->block - 1) / r->block;
  r->most = most_numbers(r);
  r->kernels = rpo_kernels_pick();
  r->scratch = rpo_new_zero(r->threads, (int64_t)sizeof *r->scratch);
  if (r->scratch == NULL) return rpo_fail_memory(err, "the predictions");
  rpo_status const status = rpo_run(control, blocks, task, r, err);
  release(r);
  return status;
}

rpo_status rpo_reading_start(rpo_reading *r, const rpo_forest *m, const rpo_matrix *X,
                             const void *out, rpo_error *err) {
  memset(r, 0, sizeof *r);
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  RPO_TRY(rpo_matrix_check(X, "X", err));
  if (X->cols != m->inputs) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld columns, the forest was fitted to %lld",
                    (long long)X->cols, (long long)m->inputs);
  }
  if (X->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "X must be dense or CSR, not CSC");
  RPO_TRY(rpo_matrix_check_values(X, "X", 1, err));
  r->m = m;
  r->X = X;
  r->s = rpo_has_rows(m) ? &m->s : NULL;
  return RPO_OK;
}

static rpo_status leaves_block(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  rpo_reading *const r = context;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  const rpo_scratch *const s = &r->scratch[thread];
  for (int64_t t = 0; t < r->m->trees; t++) {
    memcpy(r->leaf + t * r->X->rows + first, s->leaf + t * r->block, (size_t)rows * 4);
  }
  return RPO_OK;
}

rpo_status rpo_all_leaves(rpo_reading *r, const rpo_control *control, int32_t *leaf,
                          rpo_error *err) {
  r->leaf = leaf;
  return rpo_read_blocks(r, control, leaves_block, err);
}

typedef struct bags {
  const rpo_forest *m;
  const int64_t *rows;
  int64_t n;
  double *sums;
  uint8_t *in_bag;
} bags;

static rpo_status fill_bag(void *context, int64_t tree, int thread, rpo_job *job, rpo_error *err) {
  const bags *const b = context;
  const int64_t *const sampling = b->m->sampling + 3 * tree; /* seed, number, draws */
  if (sampling[2] == 0) return RPO_OK;
  double *const drawn = rpo_new(b->m->rows, 8);
  if (drawn == NULL) return rpo_fail_memory(err, "the out-of-bag rows");
  rpo_status const status =
      rpo_sample_weights(sampling, NULL, b->sums, b->m->rows, drawn, job, thread, err);
  for (int64_t i = 0; i < b->n && status == RPO_OK; i++) {
    b->in_bag[tree * b->n + i] = drawn[b->rows == NULL ? i : b->rows[i]] > 0.0;
  }
  rpo_delete(drawn);
  return status;
}

rpo_status rpo_in_bag(const rpo_forest *m, const int64_t *rows, int64_t n, const double *weight,
                      const rpo_control *control, uint8_t **out, rpo_error *err) {
  bags b = {m, rows, n, NULL, NULL};
  RPO_TRY(rpo_weight_sums(weight, m->rows, &b.sums, err));
  b.in_bag = n > INT64_MAX / m->trees ? NULL : rpo_new_zero(n * m->trees, 1);
  rpo_status const status = b.in_bag == NULL ? rpo_fail_memory(err, "the out-of-bag rows")
                                             : rpo_run(control, m->trees, fill_bag, &b, err);
  rpo_delete(b.sums);
  if (status == RPO_OK) {
    *out = b.in_bag;
  } else {
    rpo_delete(b.in_bag);
  }
  return status;
}
