/* Growing one tree: what goes in, what comes out. The loop itself (grow_loop.h) is compiled once per
 * instruction set by kernels.c. */
#ifndef RPO_GROW_H
#define RPO_GROW_H
#include "encode.h"
#include "par.h"
#include "target.h"

typedef struct rpo_grow_options {
  uint64_t seed;
  int64_t max_depth; /* INT64_MAX: no limit */
  int64_t min_split, min_leaf;
  int64_t max_leaves;    /* 0: depth first */
  int64_t max_features;  /* k, 1 .. features */
  double min_leaf_share; /* of the tree's total weight */
  double min_decrease;   /* of the sum of variances, times weight / total weight */
  int random_cut;
  int draw_non_constant;
  const struct rpo_by_class *by_class; /* where rows lie class after class, else NULL */
  const void *values; /* random cuts: the features' values (rpo_decode); NULL: codes alone */
} rpo_grow_options;

/* A grown tree. Inner nodes and leaves are numbered apart, each in preorder (leaves: from left to
 * right); a child is an inner node (>= 0) or leaf ~child. Leaf l holds rows[leaf_start[l] ..
 * leaf_start[l + 1]). Impurities are sums of variances. */
typedef struct rpo_tree {
  int64_t n_inner, n_leaves, n_rows;
  int64_t work;                    /* rows looked at, candidate after candidate, to grow it */
  int32_t *feature, *left, *right; /* inner */
  double *threshold;               /* inner: x <= threshold goes left */
  uint8_t *missing_left;           /* inner */
  float *impurity;                 /* inner */
  float *leaf_impurity;
  double *leaf_weight;
  double *sample_weight; /* of the leaves in the tree's sample, where leaf_weight is of other rows;
                            else NULL */
  int32_t *leaf_start;   /* n_leaves + 1 */
  int32_t *rows;         /* training rows, leaf after leaf */
} rpo_tree;

void rpo_tree_release(rpo_tree *tree);

/* Scratch of one thread, reused from tree to tree. */
typedef struct rpo_grower rpo_grower;
rpo_status rpo_grower_new(const rpo_features *features, const rpo_grow_options *options,
                          rpo_grower **out, rpo_error *err);
void rpo_grower_free(rpo_grower *grower);

/* Grows tree number `tree` on the rows of positive weight. `whole`: all weights are whole and small
 * enough for integer sums. */
rpo_status rpo_grower_run(rpo_grower *grower, const rpo_target *target, const double *weight,
                          int whole, int64_t tree, rpo_job *job, int thread, rpo_tree *out,
                          rpo_error *err);
#endif
