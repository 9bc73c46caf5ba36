/* Products of a sparse and a dense matrix whose dense side is larger than the caches. */
#ifndef RPO_TILES_H
#define RPO_TILES_H
#include "status.h"
#include "sparse.h"

/* Makes such a product of `width` columns if tiles gain; else nothing is written, and `done` is 0. They
 * add up the entries of a row in the order of columns, which must be theirs. */
rpo_status rpo_tiles_multiply(const rpo_product *product, int64_t width, const rpo_control *control,
                              int *done, rpo_error *err);

#ifdef RPO_TEST_HOOKS
extern int64_t rpo_tiles_made; /* products that went by tiles */
#endif
#endif
