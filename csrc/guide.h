/* A tree as a guide for rows of encoded features it was not grown on: from codes to leaves. */
#ifndef RPO_GUIDE_H
#define RPO_GUIDE_H
#include "encode.h"
#include "grow.h"

/* A tree's inner nodes, their cuts turned into codes. */
typedef struct rpo_guide rpo_guide;
rpo_status rpo_guide_new(const rpo_features *features, const rpo_tree *tree, rpo_guide **out,
                         rpo_error *err);
void rpo_guide_free(rpo_guide *guide);

/* Room of a thread for rows of sparse features, for any tree; *out is NULL of dense ones, which need
 * none. rpo_delete ends it. */
rpo_status rpo_guide_room(const rpo_features *features, void **out, rpo_error *err);
/* Leaf of each of `n` rows. */
void rpo_guide_leaves(const rpo_guide *guide, void *room, const int32_t *rows, int64_t n,
                      int32_t *leaf);
/* The same by all threads. */
rpo_status rpo_guide_all(const rpo_features *features, const rpo_tree *tree, const int32_t *rows,
                         int64_t n, const rpo_control *control, int32_t *leaf, rpo_error *err);
#endif
