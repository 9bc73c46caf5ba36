/* Products of a sparse and a dense matrix whose dense side is larger than the caches. */
#ifndef RPO_TILES_H
#define RPO_TILES_H
#include "status.h"
#include "sparse.h"

/* Whether such a product of `width` columns gains by tiles, and may go by them: they add up the
 * entries of a row in the order of columns, which must be theirs. */
rpo_status rpo_tiles_pay(const rpo_product *product, int64_t width, const rpo_control *control,
                         int *pay, rpo_error *err);

rpo_status rpo_tiles_multiply(const rpo_product *product, int64_t width, const rpo_control *control,
                              rpo_error *err);
#endif
