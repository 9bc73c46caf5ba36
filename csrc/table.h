/* Leaf tables L = S Y, dense or sparse: the mean labels of each leaf, trees one behind the other. */
#ifndef RPO_TABLE_H
#define RPO_TABLE_H
#include "model.h"

/* Bytes of a table's sections, roughly: what forms are compared by. */
double rpo_table_bytes_dense(int64_t leaves, int64_t columns);
double rpo_table_bytes_sparse(int64_t leaves, int64_t columns, int64_t entries);

/* The smaller table of the parts' trees, when it is smaller than `bytes`; else *out is left. */
rpo_status rpo_table_smaller(const rpo_model_parts *parts, int64_t bytes,
                             const rpo_control *control, rpo_labels *out, rpo_error *err);

/* A sparse table in the making, leaf by leaf. */
typedef struct rpo_table_maker {
  rpo_labels table; /* the caller's; rows: leaves so far */
  int64_t room;     /* for entries */
  int64_t columns;
  double *sum; /* by column, zero between leaves */
  uint8_t *mark;
  int64_t *found; /* columns met, with room for one more */
} rpo_table_maker;

rpo_status rpo_table_start(rpo_table_maker *maker, int64_t columns, rpo_error *err);
/* Begins a table for so many leaves. */
rpo_status rpo_table_begin(rpo_table_maker *maker, int64_t leaves, rpo_error *err);
/* Adds the leaves of a tree. */
rpo_status rpo_table_add_tree(rpo_table_maker *maker, const rpo_tree *tree,
                              const double *row_weight, const rpo_labels *labels, rpo_error *err);
/* Adds the rows of a table. */
rpo_status rpo_table_add_rows(rpo_table_maker *maker, const rpo_labels *from, rpo_error *err);
/* Everything but the table. */
void rpo_table_release(rpo_table_maker *maker);
/* Spreads a sparse table when it is smaller dense. */
rpo_status rpo_table_settle(rpo_labels *table, rpo_error *err);
#endif
