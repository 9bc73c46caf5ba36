/* Growing many trees (forest paper, Algorithms 1 and 2) and drawing their rows. */
#ifndef RPO_FOREST_H
#define RPO_FOREST_H
#include "model.h"
#include "options.h"
#include "par.h"

/* How often each row is drawn: `draws` draws with replacement, by weight. `sums` are the running sums
 * of the weights (NULL: all equal). */
void rpo_bootstrap(uint64_t seed, uint64_t tree, int64_t draws, const double *sums, int64_t rows,
                   double *counts);
/* Weights of the rows in a tree's sample; `sampling` is its seed, number and draws (0: all rows). */
rpo_status rpo_sample_weights(const int64_t *sampling, const double *weight, const double *sums,
                              int64_t rows, double *out, rpo_job *job, int thread, rpo_error *err);
/* Refuses weights that are negative, not finite or all zero. */
rpo_status rpo_weight_check(const double *weight, int64_t rows, rpo_error *err);
/* Running sums of weights, NULL in *out when all are equal. */
rpo_status rpo_weight_sums(const double *weight, int64_t rows, double **out, rpo_error *err);
#endif
