/* Reading a forest out: blocks of rows, their leaves, the rows of Y or L that a prediction adds up.
 * Neighbours: readout.c has this and the predictions, topk.c the best k, weights.c the weights of
 * training rows, nodes.c looks at the trees themselves. */
#ifndef RPO_READOUT_H
#define RPO_READOUT_H
#include "kernels.h"

typedef struct rpo_scratch {
  double *x;       /* values of a block of X: all of a dense one, those stored of a sparse one */
  uint64_t *set;   /* sparse X: a bit by number that is stored, zero between blocks */
  int64_t *before; /* sparse X: by word of set, where its values begin */
  int32_t *leaf;   /* trees x block */
  double *sum;     /* by label column, zero between rows */
  double *weight;  /* by training row, zero between rows */
  uint8_t *mark;   /* by training row: met already */
  int64_t *first, *end; /* by tree: the rows of a leaf */
  double *unit;         /* by tree: 1 / weight of the leaf */
  int64_t *pick;        /* rows of Y or L that make a prediction */
  double *share;        /* their weights, of which every tree has 1 */
} rpo_scratch;

typedef struct rpo_reading {
  const rpo_forest *m;
  const rpo_matrix *X;
  const rpo_leaf_rows *s; /* training rows of leaves; NULL: the table form */
  const rpo_kernels *kernels;
  int64_t block, most;  /* rows of a block; numbers that any block has */
  rpo_scratch *scratch; /* by thread */
  int threads;
  int sums;               /* 1: scratch->sum is wanted */
  const uint8_t *in_bag;  /* trees x rows, or NULL */
  const rpo_labels *held; /* of all rows, when leaves hold them and a row is to be left out */
  const double *weight;   /* with it: by row; NULL: ones */
  int64_t *counts;
  double *out;
  int64_t k, *index; /* top-k */
  int64_t *indptr, *columns;
  int32_t *leaf; /* trees x rows */
  float *scores; /* boosted: what trees are added to; NULL: the constants */
} rpo_reading;

/* A reading of X through all the trees. */
rpo_status rpo_reading_start(rpo_reading *r, const rpo_forest *m, const rpo_matrix *X,
                             const void *out, rpo_error *err);
/* Runs `task` over the blocks of r->X. */
rpo_status rpo_read_blocks(rpo_reading *r, const rpo_control *control, rpo_task_fn task,
                           rpo_error *err);
/* The leaves of a block of rows in every tree: scratch->leaf[tree * block + row]. */
rpo_status rpo_find_leaves(rpo_reading *r, int64_t task, int thread, rpo_job *job, int64_t *first,
                           int64_t *rows, rpo_error *err);
/* The leaves of all rows: trees x rows. */
rpo_status rpo_all_leaves(rpo_reading *r, const rpo_control *control, int32_t *leaf,
                          rpo_error *err);
/* Which of n training rows (numbers in `rows`, NULL: all) each tree has seen: trees x n, to be deleted.
 * Trees without bootstrap have seen none. */
rpo_status rpo_in_bag(const rpo_forest *m, const int64_t *rows, int64_t n, const double *weight,
                      const rpo_control *control, uint8_t **out, rpo_error *err);

/* Of models that are not trusted (mapped files): whether the training rows in the leaves of row i of
 * the block are there; whether rows `pick` of Y or L have entries that are there. To be asked before
 * these are used; others cost nothing. */
rpo_status rpo_rows_check(const rpo_reading *r, const rpo_scratch *s, int64_t i, rpo_error *err);
rpo_status rpo_values_check(const rpo_forest *m, const int64_t *pick, int64_t count,
                            rpo_error *err);

/* Row i of the block, A S of it: its training rows into s->pick, first come first, their weights into
 * s->weight. Returns how many trees count (in_bag NULL: all), *found rows. */
int64_t rpo_collect_rows(const rpo_reading *r, rpo_scratch *s, int64_t i, const uint8_t *in_bag,
                         int64_t *found);
/* Moves the weights of s->pick to s->share and wipes s->weight. */
void rpo_take_weights(rpo_scratch *s, int64_t found);
/* s->pick and s->share of row i, in either form. */
int64_t rpo_pick_values(const rpo_reading *r, rpo_scratch *s, int64_t i, const uint8_t *in_bag,
                        int64_t *found);
/* sum += share times row `pick` of Y or L, `count` times. */
void rpo_add_values(const rpo_forest *m, const int64_t *pick, const double *share, int64_t count,
                    double *sum);
/* From a sum over trees to a prediction. Shares, between 0 and 1, are rounded to multiples of 2^-46
 * (adding and subtracting 96 does it), so that one half, one, and ties come out exact however the sum
 * was made. */
static inline double rpo_finish(const rpo_forest *m, double sum, double trees) {
  return m->shares ? (sum * (1.0 / trees) + 96.0) - 96.0 : sum / trees;
}
/* The same of a row, ratios too; sum may be out. */
void rpo_finish_row(const rpo_forest *m, const double *sum, int64_t count, double *out);
/* sum += the mean labels of a leaf: m->columns numbers. */
void rpo_leaf_means(const rpo_forest *m, int64_t tree, int64_t leaf, double *sum);
/* Counts, behind a zero, to offsets. */
void rpo_add_up(int64_t *indptr, int64_t rows);

/* Of a second call, which fills: whether indptr rises from 0, and a row has as many entries as counted
 * now. Then nothing is written beyond indptr[rows] entries. */
rpo_status rpo_counts_check(const int64_t *indptr, int64_t rows, rpo_error *err);
rpo_status rpo_count_check(const int64_t *indptr, int64_t row, int64_t count, rpo_error *err);
#endif
