/* What the split search sees of the outputs. Two kinds:
 *   sums     an additive statistic: m columns (projected, real-valued or few outputs), dense;
 *   labels   a cursor over sparse rows: moving a row changes sum_j S_j^2 by its own entries only.
 * Labels are `whole` when every entry is 1: their sums are then integers and exact. */
#ifndef RPO_TARGET_H
#define RPO_TARGET_H
#include "status.h"

typedef struct rpo_target {
  int64_t rows;
  int64_t width;   /* columns: m of sums; of labels, the outputs that occur */
  int64_t stride;  /* sums: doubles from row to row, width padded with zeros */
  double *z;       /* sums: rows x stride; NULL: labels */
  int64_t *start;  /* labels: rows + 1 */
  int32_t *index;  /* labels: outputs, renumbered 0 .. width - 1 */
  double *value;   /* labels: entries; NULL: all 1 */
  int64_t *origin; /* labels: by column, its number in the caller's matrix */
  double *norm;    /* by row: its squared length */
} rpo_target;

/* Reads a matrix: dense becomes sums (with `centred`, centred unless all are small whole numbers), CSR
 * becomes labels. */
rpo_status rpo_target_new(const rpo_matrix *Y, int centred, rpo_target *out, rpo_error *err);
/* The sums form of labels, for few outputs. */
rpo_status rpo_target_spread(const rpo_target *labels, rpo_target *out, rpo_error *err);
/* True when walking dense rows costs less than walking entries. */
int rpo_target_is_small(const rpo_target *labels);
/* True when every row has one label, of value 1. */
int rpo_target_is_classes(const rpo_target *target);
/* Doubles from row to row of m columns. */
int64_t rpo_target_stride(int64_t m);
/* Empty sums of m columns: z to be filled, then rpo_target_norms. */
rpo_status rpo_target_sums(int64_t rows, int64_t m, rpo_target *out, rpo_error *err);
void rpo_target_norms(rpo_target *target);
void rpo_target_release(rpo_target *target);
#endif
