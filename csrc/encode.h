/* Features encoded once for all trees: a column's values become codes 0, 1, ... in ascending order.
 *
 * A code stands for an interval [low, high] of values seen; with exact splits low = high. Missing
 * values have the code after the last. The matrix of codes is kept dense (column after column) or
 * sparse (only entries that differ from zero, by column and by row), whichever is smaller: the
 * container X came in does not matter. */
#ifndef RPO_ENCODE_H
#define RPO_ENCODE_H
#include "status.h"

struct rpo_features {
  int64_t rows, cols;
  int32_t width;       /* bytes of a code: 1, 2 or 4 */
  int32_t sparse;      /* 1: sparse form */
  int32_t binary;      /* sparse form: every column has at most one non-zero value; no codes kept */
  int32_t has_missing; /* 1: some value is missing */
  int32_t single;      /* 1: every value is exactly a float32 */
  int32_t exact;       /* 1: every bin is one value */
  int64_t *bin_start;  /* cols + 1: where a column's bins begin in low and high */
  double *low, *high;  /* high == low when exact */
  int32_t *rest;       /* by column: the code not listed: of zero (sparse), of more than half of the
                          rows (dense), -1 when there is none */
  void *codes;         /* dense: cols x rows */
  int64_t *col_start;  /* sparse: cols + 1 */
  int32_t *col_rows;
  void *col_codes;    /* NULL when binary */
  int64_t *row_start; /* sparse: rows + 1 */
  int32_t *row_cols;
  void *row_codes; /* NULL when binary; dense: rows x cols, for small nodes */
};

static inline int32_t rpo_code_at(const void *codes, int32_t width, int64_t i) {
  if (width == 1) return ((const uint8_t *)codes)[i];
  if (width == 2) return ((const uint16_t *)codes)[i];
  return ((const int32_t *)codes)[i];
}

static inline void rpo_code_put(void *codes, int32_t width, int64_t i, int32_t code) {
  if (width == 1) {
    ((uint8_t *)codes)[i] = (uint8_t)code;
  } else if (width == 2) {
    ((uint16_t *)codes)[i] = (uint16_t)code;
  } else {
    ((int32_t *)codes)[i] = code;
  }
}

static inline int32_t rpo_bins(const rpo_features *features, int64_t col) {
  return (int32_t)(features->bin_start[col + 1] - features->bin_start[col]);
}

/* The cut of a column between the codes of a node's rows on either side: midway between their values, in
 * the precision of X, unless that cuts a bin in two of which the node has no rows: then behind the bin,
 * so that all rows of it go one way, here and in predictions. INFINITY where above is missing. */
double rpo_cut_between(const rpo_features *features, int32_t col, int32_t below, int32_t above);

/* The values of a dense, exact X without missing ones, row after row, as float where X is of single
 * precision and as double otherwise; else, and for few doubles, whose codes are narrower and soon
 * looked up, *out is NULL. */
rpo_status rpo_decode(const rpo_features *features, void **out, rpo_error *err);
rpo_status rpo_encode(const rpo_matrix *X, int32_t max_bins, const rpo_features *like,
                      const rpo_control *control, rpo_features **out, rpo_error *err);
#endif
