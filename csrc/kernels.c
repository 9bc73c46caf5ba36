/* Compiled once per instruction set; RPO_ISA names it. No function here is called by name from
 * elsewhere: everything goes through the table. */
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "rng.h"

#ifndef RPO_ISA
#define RPO_ISA baseline
#endif

#include "loop_sums.h"
#include "loop_split.h"
#include "loop_search.h"

static int node_is_leaf(rpo_grower *g, const rpo_frame *frame, int32_t id, const int32_t *rows,
                        int64_t n, int64_t depth);
static int split_pays(const rpo_grower *g, const rpo_frame *frame, const best_split *best);
static void make_inner(rpo_grower *g, int32_t id, const best_split *best, int64_t n_left,
                       int64_t n_right);

#include "loop_grow.h"
#include "loop_leaves.h"

#define NAME_(isa) rpo_kernels_##isa
#define NAME(isa) NAME_(isa)
#define TEXT_(isa) #isa
#define TEXT(isa) TEXT_(isa)

extern const rpo_kernels NAME(RPO_ISA);
const rpo_kernels NAME(RPO_ISA) = {TEXT(RPO_ISA), grow, leaves_of_rows};
