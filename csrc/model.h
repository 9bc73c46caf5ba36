/* A fitted forest: one block of memory, laid out as in a file, and views into it.
 *
 * Block: header, table of sections, sections on 64-byte boundaries. Every section is an array of one
 * of a few number types, the narrowest that holds its values exactly. Trees lie one behind the other;
 * inner_start, leaf_start and row_start say where each begins. A model is a structure (trees map rows
 * to leaves) and a readout in the smallest of three forms: the leaves' training rows with their
 * weights (S) and the labels (Y), or the table of leaf values (L = S Y), dense or sparse. So each has
 * one matrix of values, Y or L, and says what rows of it a leaf stands for. */
#ifndef RPO_MODEL_H
#define RPO_MODEL_H
#include "grow.h"
#include "number.h"

/* What a walk asks of a node besides feature, cut and children. */
enum { RPO_MISSING_LEFT = 1, RPO_ONE_RIGHT = 2, RPO_LEFT_IS_LEAF = 4, RPO_ZERO_RIGHT = 8 };

static inline uint8_t rpo_node_flags(int missing_left, int left_is_leaf, double cut) {
  return (uint8_t)((missing_left ? RPO_MISSING_LEFT : 0) | (1.0 <= cut ? 0 : RPO_ONE_RIGHT) |
                   (left_is_leaf ? RPO_LEFT_IS_LEAF : 0) | (0.0 <= cut ? 0 : RPO_ZERO_RIGHT));
}

/* S: the training rows of each leaf, leaf after leaf, and their weights. */
struct rpo_leaf_rows {
  const int64_t *tree_start; /* trees + 1: where a tree's rows begin; NULL: there are none */
  rpo_array
      start; /* by leaf, within its tree's; a tree has one more of them than leaves; 16 or 32 bits */
  rpo_array row, weight; /* weight absent: ones */
  /* made again (rpo_leaf_rows_new), not part of a model: */
  int64_t rows, trees;
  const int64_t *leaf_start;
  void *owned[5]; /* tree_start, leaf_start, the numbers of row, weight and start */
};

typedef struct rpo_forest {
  char *block; /* owned */
  int64_t bytes;
  int mapped;  /* 1: block is a mapped file */
  int trusted; /* 1: all numbers were checked, or made here; 0: each index is, before it is used */
  int64_t trees, inputs, outputs, rows;
  int64_t columns; /* of the labels: outputs, twice that with ratio */
  int ratio;
  int shares; /* labels are all 1: predictions are shares of weight */
  const int64_t *sampling, *inner_start, *leaf_start;
  const uint8_t *flags;
  rpo_array feature, threshold, left, right, impurity, leaf_impurity, leaf_weight, leaf_rows;
  rpo_array sample_weight;    /* no data: leaf_weight */
  rpo_leaf_rows s;            /* rows form */
  const int64_t *value_start; /* NULL: dense */
  rpo_array value_index, value;
  rpo_array fallback, note;
  const double *start; /* NULL: predictions are means of trees */
  const float *step;   /* trees x outputs; NULL: leaves hold all outputs */
} rpo_model;

static inline int rpo_has_rows(const rpo_model *m) { return m->s.tree_start != NULL; }
static inline int64_t rpo_leaves(const rpo_model *m) { return m->leaf_weight.count; }

/* Index of a leaf's first row in S; those of leaf + 1 follow. Leaves are numbered within the tree. */
static inline int64_t rpo_leaf_begin(const rpo_model *m, const rpo_leaf_rows *s, int64_t tree,
                                     int64_t leaf) {
  int64_t const at = m->leaf_start[tree] + tree + leaf;
  int64_t const start = s->start.type == RPO_TYPE_U16 ? ((const uint16_t *)s->start.data)[at]
                                                      : ((const int32_t *)s->start.data)[at];
  return s->tree_start[tree] + start;
}

/* Number of training rows in a leaf. */
static inline int64_t rpo_leaf_size(const rpo_model *m, int64_t tree, int64_t leaf) {
  if (!rpo_has_rows(m)) return rpo_array_whole(&m->leaf_rows, m->leaf_start[tree] + leaf);
  return rpo_leaf_begin(m, &m->s, tree, leaf + 1) - rpo_leaf_begin(m, &m->s, tree, leaf);
}

typedef struct rpo_labels { /* Y, or a leaf table, on the way into a model or out of it */
  int64_t rows, columns;
  double *dense;  /* rows x columns, or NULL */
  int64_t *start; /* sparse: rows + 1 */
  int64_t *index;
  double *value; /* NULL: ones */
} rpo_labels;

rpo_status rpo_labels_new(const rpo_matrix *Y, rpo_labels *out, rpo_error *err);
void rpo_labels_release(rpo_labels *values);

/* The readout of a boosted model, ready. */
typedef struct rpo_boosted {
  rpo_array start, step;                     /* see RPO_SEC_START, RPO_SEC_STEP */
  rpo_array value_start, value_index, value; /* no value_start: dense */
} rpo_boosted;

typedef struct rpo_model_parts {
  int64_t trees, inputs, outputs, rows, ratio, shares;
  const rpo_tree *tree;
  const int64_t *sampling;
  const double *const *row_weight; /* by tree: by place in tree.rows; NULL: ones */
  const rpo_labels *labels;        /* Y: the readout's form is chosen */
  const rpo_labels *table;         /* or L, ready */
  const double *fallback;
  const rpo_boosted *boosted; /* or this: no labels, no row weights */
} rpo_model_parts;

/* Chooses the readout, lays everything out; trees in parallel. */
rpo_status rpo_model_pack(const rpo_model_parts *parts, const rpo_control *control, rpo_model **out,
                          rpo_error *err);
/* These take the block over on success. What comes from outside is opened: every checksum, offset and
 * index is checked. What was packed here is adopted as it is. */
rpo_status rpo_model_adopt(char *block, int64_t bytes, rpo_model **out, rpo_error *err);
rpo_status rpo_model_open(char *block, int64_t bytes, rpo_model **out, rpo_error *err);
/* A mapped file, whose sections are not read yet: checks where they lie and where trees begin. */
rpo_status rpo_model_open_mapped(char *block, int64_t bytes, rpo_model **out, rpo_error *err);
/* Checks every offset and index, unless that was done: for calls that go through whole trees. Others
 * check what they use, see rpo_untrusted. */
rpo_status rpo_model_check(const rpo_model *model, rpo_error *err);
/* The answer to an index of a mapped file that points nowhere. */
rpo_status rpo_untrusted(rpo_error *err, const char *what);
/* Copies one tree out again, with the weights of its rows (NULL when there are none). */
rpo_status rpo_model_tree(const rpo_model *model, int64_t tree, rpo_tree *out, double **row_weight,
                          rpo_error *err);
/* Copies rows first .. end of the values out: of Y in the rows form, else of L. */
rpo_status rpo_model_labels(const rpo_model *model, int64_t first, int64_t end, rpo_labels *out,
                            rpo_error *err);
#endif
