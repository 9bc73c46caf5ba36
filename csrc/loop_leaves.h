/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf. loop_walk.h has the walks.
 *
 * Of a model that is not trusted (a mapped file) every number is looked at before it is used: `checked`
 * is a constant where walk() is inlined, so that trusted models pay nothing. Children come after their
 * parents: every walk ends. */

#define WALKERS 8

/* 1: to the right. */
static inline int goes_right(double v, double cut, int flags) {
  return v != v ? !(flags & RPO_MISSING_LEFT) : !(v <= cut);
}

/* Whether a child is a leaf of the tree, or a node behind its parent. */
static inline int is_child(int64_t child, int64_t node, int64_t inner) {
  return child < 0 ? ~child <= inner : child > node && child < inner;
}

static inline int has(const uint64_t *set, int64_t column) {
  return set[column / 64] >> (column % 64) & 1;
}

#define PASTE_(name, tag) name##_##tag
#define PASTE(name, tag) PASTE_(name, tag)
#define OF_TYPE(name) PASTE(name, TAG)
#define CHILD int16_t
#define FEATURE uint16_t
#define CUT float
#define TAG i16_u16_f32
#include "loop_walk.h"
#define CHILD int16_t
#define FEATURE uint16_t
#define CUT double
#define TAG i16_u16_f64
#include "loop_walk.h"
#define CHILD int16_t
#define FEATURE int32_t
#define CUT float
#define TAG i16_i32_f32
#include "loop_walk.h"
#define CHILD int16_t
#define FEATURE int32_t
#define CUT double
#define TAG i16_i32_f64
#include "loop_walk.h"
#define CHILD int32_t
#define FEATURE uint16_t
#define CUT float
#define TAG i32_u16_f32
#include "loop_walk.h"
#define CHILD int32_t
#define FEATURE uint16_t
#define CUT double
#define TAG i32_u16_f64
#include "loop_walk.h"
#define CHILD int32_t
#define FEATURE int32_t
#define CUT float
#define TAG i32_i32_f32
#include "loop_walk.h"
#define CHILD int32_t
#define FEATURE int32_t
#define CUT double
#define TAG i32_i32_f64
#include "loop_walk.h"
#undef PASTE_
#undef PASTE
#undef OF_TYPE

ALWAYS_INLINE int walk(int checked, const rpo_model *model, int64_t tree, const rpo_rows *x,
                       int32_t *leaf) {
  int const narrow = model->left.type == RPO_TYPE_I16; /* both children, see model.c */
  int const few = model->feature.type == RPO_TYPE_U16;
  int const single = model->threshold.type == RPO_TYPE_F32;
  if (model->inner_start[tree] == model->inner_start[tree + 1]) {
    memset(leaf, 0, (size_t)x->rows * sizeof *leaf);
    return 1;
  }
  switch (4 * narrow + 2 * few + single) {
    case 0: return walk_i32_i32_f64(checked, model, tree, x, leaf);
    case 1: return walk_i32_i32_f32(checked, model, tree, x, leaf);
    case 2: return walk_i32_u16_f64(checked, model, tree, x, leaf);
    case 3: return walk_i32_u16_f32(checked, model, tree, x, leaf);
    case 4: return walk_i16_i32_f64(checked, model, tree, x, leaf);
    case 5: return walk_i16_i32_f32(checked, model, tree, x, leaf);
    case 6: return walk_i16_u16_f64(checked, model, tree, x, leaf);
    default: return walk_i16_u16_f32(checked, model, tree, x, leaf);
  }
}

static int leaves_of_rows(const rpo_model *model, int64_t tree, const rpo_rows *x, int32_t *leaf) {
  return model->trusted ? walk(0, model, tree, x, leaf) : walk(1, model, tree, x, leaf);
}
