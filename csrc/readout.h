/* Reading a forest out: blocks of rows, their leaves, sums over leaves. Neighbours: readout.c makes
 * predictions of them, nodes.c looks at the trees themselves. */
#ifndef RPO_READOUT_H
#define RPO_READOUT_H
#include "kernels.h"

typedef struct rpo_scratch {
  double *x;            /* block x inputs */
  int32_t *leaf;        /* trees x block */
  double *sum;          /* columns, zero between rows */
  int64_t *touched;     /* training rows whose sum is not zero */
  int64_t *first, *end; /* by tree: the rows of a leaf */
  double *unit;         /* by tree: 1 / weight of the leaf */
  uint8_t *mark;
} rpo_scratch;

typedef struct rpo_reading {
  const rpo_forest *m;
  const rpo_matrix *X;
  const rpo_kernels *kernels;
  int64_t block;
  rpo_scratch *scratch; /* by thread */
  int threads;
  const uint8_t *in_bag;  /* trees x rows, or NULL */
  const rpo_labels *held; /* with it, of leaves that hold all rows: what they hold, */
  const double *weight;   /* and the rows' weights (NULL: ones) */
  int64_t *counts;
  double *out;
  int64_t k, *index;           /* top-k */
  const int64_t *node_of_leaf; /* apply */
  int64_t *nodes, *indptr, *columns;
} rpo_reading;

rpo_status rpo_check_input(const rpo_forest *m, const rpo_matrix *X, const void *out,
                           rpo_error *err);
/* Runs `task` over the blocks of r->X. */
rpo_status rpo_read_blocks(rpo_reading *r, const rpo_control *control, rpo_task_fn task,
                           rpo_error *err);
/* The leaves of a block of rows in every tree: scratch->leaf[tree * block + row]. */
rpo_status rpo_find_leaves(rpo_reading *r, int64_t task, int thread, int64_t *first, int64_t *rows,
                           rpo_error *err);
void rpo_unload_rows(const rpo_matrix *X, int64_t first, int64_t rows, double *x);
/* sum += the mean labels of a leaf (numbered over all trees). */
void rpo_add_leaf(const rpo_forest *m, int64_t leaf, double *sum);
/* From sums over `count` trees to predictions. */
void rpo_finish_row(const rpo_forest *m, const double *sum, int64_t count, double *out);
/* Counts, behind a zero, to offsets. */
void rpo_add_up(int64_t *indptr, int64_t rows);
#endif
