/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf.
 *
 * Of a model that is not trusted (a mapped file) every number is looked at before it is used: `checked`
 * is a constant where walk() is inlined, so that trusted models pay nothing. Children come after their
 * parents: every walk ends. */

#define WALKERS 8

/* 1: to the right. */
static inline int goes_right(double v, double cut, uint8_t flags) {
  return v != v ? !(flags & RPO_MISSING_LEFT) : !(v <= cut);
}
#define GOES_RIGHT(v, node) goes_right((v), (double)cut[node], flags[node])

/* Whether a node is there and looks at a column that is there. */
#define IS_NODE(node) ((node) < inner && (uint64_t)(int64_t)feature[node] < (uint64_t)model->inputs)
/* Whether a child is a leaf of the tree, or a node behind its parent. */
#define IS_CHILD(child, node) \
  ((child) < 0 ? ~(child) <= inner : (child) > (node) && (child) < inner)

/* Several rows are under way at a time and no step waits for another's outcome: neither memory nor
 * wrong guesses hold them up. A row that has arrived makes room for the next. */
#define WALK_DENSE(child_type)                                       \
  do {                                                               \
    const child_type *const child[2] = {left, right};                \
    int64_t at[WALKERS], who[WALKERS], next = 0;                     \
    int walkers = 0;                                                 \
    for (; walkers < WALKERS && next < x->rows; walkers++, next++) { \
      at[walkers] = 0;                                               \
      who[walkers] = next;                                           \
    }                                                                \
    for (int k = 0; walkers > 0; k = k + 1 < walkers ? k + 1 : 0) {  \
      int64_t const node = at[k];                                    \
      if (checked && !IS_NODE(node)) return 0;                       \
      double const v = x->dense[who[k] * x->stride + feature[node]]; \
      at[k] = child[GOES_RIGHT(v, node)][node];                      \
      if (checked && !IS_CHILD(at[k], node)) return 0;               \
      if (at[k] >= 0) continue;                                      \
      leaf[who[k]] = (int32_t)~at[k];                                \
      if (next < x->rows) {                                          \
        at[k] = 0;                                                   \
        who[k] = next++;                                             \
      } else {                                                       \
        walkers--;                                                   \
        at[k] = at[walkers];                                         \
        who[k] = who[walkers];                                       \
      }                                                              \
    }                                                                \
  } while (0)

/* Where a row has no number, its zero goes left unless the node's flags say otherwise, and what lies
 * left of a node comes next (preorder): runs of such nodes are skipped without a look at the cut. */
#define WALK_SPARSE(right_of_node)                                      \
  for (int64_t i = 0; i < x->rows; i++) {                               \
    const uint64_t *const set = x->set + i * x->stride;                 \
    const int64_t *const before = x->before + i * x->stride;            \
    int64_t node = 0;                                                   \
    do {                                                                \
      while ((!checked || IS_NODE(node)) && !HAS(set, feature[node]) && \
             flags[node] < RPO_LEFT_IS_LEAF) {                          \
        node++;                                                         \
      }                                                                 \
      if (checked && !IS_NODE(node)) return 0;                          \
      int64_t const next = (right_of_node) ? right[node] : left[node];  \
      if (checked && !IS_CHILD(next, node)) return 0;                   \
      node = next;                                                      \
    } while (node >= 0);                                                \
    leaf[i] = (int32_t)~node;                                           \
    (void)before;                                                       \
  }

#define HAS(set, column) ((set)[(column) / 64] >> ((column) % 64) & 1)
/* Of numbers that are all 1, the flags know the way. */
#define ONE_GOES_RIGHT (flags[node] & (HAS(set, feature[node]) ? RPO_ONE_RIGHT : RPO_ZERO_RIGHT))
#define VALUE_GOES_RIGHT \
  GOES_RIGHT(rpo_sparse_at(set, before, x->value, (int64_t)feature[node]), node)

#define WALK(child_type, feature_type, threshold_type)                                       \
  do {                                                                                       \
    const child_type *const left = (const child_type *)model->left.data + first;             \
    const child_type *const right = (const child_type *)model->right.data + first;           \
    const feature_type *const feature = (const feature_type *)model->feature.data + first;   \
    const threshold_type *const cut = (const threshold_type *)model->threshold.data + first; \
    if (x->dense != NULL) {                                                                  \
      WALK_DENSE(child_type);                                                                \
    } else if (x->value == NULL) {                                                           \
      WALK_SPARSE(ONE_GOES_RIGHT)                                                            \
    } else {                                                                                 \
      WALK_SPARSE(VALUE_GOES_RIGHT)                                                          \
    }                                                                                        \
    return 1;                                                                                \
  } while (0)

#define WALK_CUTS(child_type, feature_type)                                           \
  do {                                                                                \
    if (model->threshold.type == RPO_TYPE_F32) WALK(child_type, feature_type, float); \
    WALK(child_type, feature_type, double);                                           \
  } while (0)

ALWAYS_INLINE int walk(int checked, const rpo_model *model, int64_t tree, const rpo_rows *x,
                       int32_t *leaf) {
  int64_t const first = model->inner_start[tree], inner = model->inner_start[tree + 1] - first;
  const uint8_t *const flags = model->flags + first;
  if (inner == 0) {
    memset(leaf, 0, (size_t)x->rows * sizeof *leaf);
    return 1;
  }
  int const narrow = model->left.type == RPO_TYPE_I16; /* both children, see model.c */
  if (model->feature.type == RPO_TYPE_U16) {
    if (narrow) WALK_CUTS(int16_t, uint16_t);
    WALK_CUTS(int32_t, uint16_t);
  }
  if (narrow) WALK_CUTS(int16_t, int32_t);
  WALK_CUTS(int32_t, int32_t);
}

static int leaves_of_rows(const rpo_model *model, int64_t tree, const rpo_rows *x, int32_t *leaf) {
  return model->trusted ? walk(0, model, tree, x, leaf) : walk(1, model, tree, x, leaf);
}
