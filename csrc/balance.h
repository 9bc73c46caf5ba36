/* Class weights from the frequencies in a bootstrap sample ("balanced subsample"). */
#ifndef RPO_BALANCE_H
#define RPO_BALANCE_H
#include "model.h"

/* Refuses labels that `kind` (an rpo_balance other than NONE) cannot count: all entries must be ones,
 * and of CLASSES there is one a row. */
rpo_status rpo_balance_check(const rpo_labels *labels, int64_t kind, rpo_error *err);
/* Multiplies the number of times each row was drawn by its class weight in the sample. `room` is of
 * labels->columns numbers. */
void rpo_balance_sample(const rpo_labels *labels, int64_t kind, double *room, double *counts);
#endif
