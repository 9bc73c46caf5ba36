/* The hot loops, compiled once per instruction set with the same source and the same results; the
 * table is picked at run time. */
#ifndef RPO_KERNELS_H
#define RPO_KERNELS_H
#include "grower.h"
#include "hist.h"
#include "loss.h"
#include "model.h"
#include "sparse.h"
#include "topk.h"

/* A block of X as walks read it: dense, or the bits of what is stored with the values behind them. */
typedef struct rpo_rows {
  int64_t rows;
  int64_t stride;        /* from row to row: of dense, or of set and before */
  const double *dense;   /* NULL: sparse */
  const uint64_t *set;   /* 64 columns a word */
  const int64_t *before; /* by word: where its first value is */
  const double *value;   /* in order of columns; NULL: all 1 */
} rpo_rows;

static inline int rpo_bits(uint64_t word) {
#if defined(__GNUC__)
  return __builtin_popcountll(word);
#else
  int bits = 0;
  for (; word != 0; word &= word - 1) bits++;
  return bits;
#endif
}

static inline double rpo_sparse_at(const uint64_t *set, const int64_t *before, const double *value,
                                   int64_t column) {
  uint64_t const word = set[column / 64], bit = (uint64_t)1 << (column % 64);
  return word & bit ? value[before[column / 64] + rpo_bits(word & (bit - 1))] : 0.0;
}

typedef struct rpo_kernels {
  const char *name;
  int has_lanes; /* 1: compiled with loop_classes.h */
  /* Grows the tree in g->samples[0 .. rows). */
  rpo_status (*grow)(rpo_grower *g, int64_t rows, uint64_t path);
  /* Leaf of each of a block of rows in one tree; 0: a model that is not trusted points nowhere. */
  int (*leaves)(const rpo_model *model, int64_t tree, const rpo_rows *x, int32_t *leaf);
  /* z += sum over the entries of y[j] times column j of phi; columns are `stride` apart. */
  void (*add_columns)(const double *phi, int64_t stride, const int32_t *index, const double *y,
                      int64_t entries, double *z);
  /* Keeps a row's n scores, of a type of rpo_dtype; false if one is not finite. */
  int (*keep_best)(int dtype, const void *score, int64_t n, rpo_best *best);
  /* By step, how many of n scores are at least as large. */
  void (*count_passed)(const double *x, int64_t n, const double *step, int64_t steps,
                       int64_t *count);
  /* Histograms: what rows add to a dense feature's slots, to those of all sparse ones; the best cut of
   * a feature's slots (loop_hist.h). */
  void (*hist_feature)(const rpo_hist *h, int64_t feature, const int32_t *rows, int64_t n,
                       double *sums);
  void (*hist_rows)(const rpo_hist *h, const int32_t *rows, int64_t n, double *sums);
  /* All that rows add, `stride` sums. */
  void (*hist_total)(const rpo_hist *h, const int32_t *rows, int64_t n, double *total);
  int (*hist_direct)(const rpo_hist *h, int64_t feature, int32_t start, int32_t end,
                     const double *total, double *own, rpo_cut *cut);
  int (*hist_listed)(const rpo_hist *h, int64_t feature, const uint8_t *mark, const double *total,
                     double *own, rpo_cut *cut);
  int (*hist_cut)(const rpo_hist *h, int64_t feature, double *sums, const double *total,
                  double *own, rpo_cut *cut);
  /* Losses of rows of scores (loop_loss.h). */
  rpo_loss_fn loss;
  rpo_sum_loss_fn sum_loss;
  rpo_project_loss_fn project_loss;
  rpo_value_fn loss_value;
  rpo_newton_fn newton_values;
  /* Of a row of d outputs, n with its padding: scores and steps become what is kept of them, in place,
   * what is kept becomes scores again, and takes in what is kept of a step (loss.h). */
  void (*keep_scores)(int32_t loss, int64_t d, int64_t n, float *f);
  void (*keep_steps)(int32_t loss, int64_t d, int64_t n, float *v);
  void (*tell_scores)(int32_t loss, int64_t n, float *f);
  void (*take_steps)(int32_t loss, int64_t d, int64_t n, float *f, const float *v);
  void (*project_row)(const float *phi, int64_t m, int64_t stride, const float *g, double *z);
  void (*sum_row)(float w, const float *g, int64_t n, float *sum);
  void (*sum_product)(float w, const float *g, const float *v, int64_t n, float *sum);
  /* The first columns of a product, as far as rows from .. to of the sparse matrix contribute. */
  void (*multiply)(const rpo_product *product, int64_t from, int64_t to, int64_t width);
  /* Lines of numbers: what entries add to those of rows or, `back`, to those of columns. */
  void (*tile)(int dtype, int back, const void *entry, int64_t count, void *rows, void *columns);
} rpo_kernels;

const rpo_kernels *rpo_kernels_pick(void);
#endif
