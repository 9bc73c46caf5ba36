/* Minimal cost-complexity pruning (Breiman et al. 1984): while the weakest link costs at most alpha a
 * leaf, cut it. */
#ifndef RPO_PRUNE_H
#define RPO_PRUNE_H
#include "grow.h"
rpo_status rpo_prune(rpo_tree *tree, double alpha, rpo_error *err);
#endif
