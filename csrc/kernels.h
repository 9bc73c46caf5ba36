/* The hot loops, compiled once per instruction set with the same source and the same results; the
 * table is picked at run time. */
#ifndef RPO_KERNELS_H
#define RPO_KERNELS_H
#include "grower.h"
#include "model.h"

typedef struct rpo_kernels {
  const char *name;
  int has_lanes; /* 1: compiled with loop_classes.h */
  /* Grows the tree in g->samples[0 .. rows). */
  rpo_status (*grow)(rpo_grower *g, int64_t rows, uint64_t path);
  /* Leaf of each of `rows` dense rows (row after row, `stride` apart) in one tree. `set` of the same
   * shape, or NULL: 0 where x is sure to be 0. */
  void (*leaves)(const rpo_model *model, int64_t tree, const double *x, const uint64_t *set,
                 int64_t stride, int64_t rows, int32_t *leaf);
  /* z += sum over the entries of y[j] times column j of phi; columns are `stride` apart. */
  void (*add_columns)(const double *phi, int64_t stride, const int32_t *index, const double *y,
                      int64_t entries, double *z);
  /* By step, how many of n scores are at least as large. */
  void (*count_passed)(const double *x, int64_t n, const double *step, int64_t steps,
                       int64_t *count);
} rpo_kernels;

const rpo_kernels *rpo_kernels_pick(void);
#endif
