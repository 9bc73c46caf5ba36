/* Coding one column: its values become codes 0, 1, ... in ascending order, the missing ones the code
 * after the last. */
#ifndef RPO_COLUMN_H
#define RPO_COLUMN_H
#include "status.h"

/* Scratch of one thread. */
typedef struct rpo_sorter {
  uint64_t *key, *key2; /* values as ordered integers */
  int32_t *at, *at2;    /* position of the entry in the column */
  int64_t *histogram;
  int64_t count;
} rpo_sorter;

rpo_status rpo_sorter_new(int64_t longest, rpo_sorter *out, rpo_error *err);
void rpo_sorter_release(rpo_sorter *sorter);

/* What became of a column. */
typedef struct rpo_column {
  int64_t bins;
  double *low, *high; /* owned: by bin, the interval of values seen */
  int missing;        /* 1: some value is missing */
  int single;         /* 1: every value is exactly a float32 */
} rpo_column;

/* Entries of a column and how many more zeros it has that are not among them. */
typedef struct rpo_entries {
  const double *values;
  int64_t count, zeros;
  int sparse; /* 1: zero keeps a bin of its own, whether or not it occurs */
} rpo_entries;

/* Exact bins with max_bins 0, else at most so many of about equal weight. */
rpo_status rpo_column_code(rpo_sorter *sorter, const rpo_entries *entries, int32_t max_bins,
                           int32_t *codes, rpo_column *out, rpo_error *err);
void rpo_column_release(rpo_column *column);
#endif
