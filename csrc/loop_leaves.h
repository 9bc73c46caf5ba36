/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf. */

#define WALKERS 8

/* 1: to the right. */
static inline int goes_right(double v, double cut, uint8_t flags) {
  return v != v ? !(flags & RPO_MISSING_LEFT) : !(v <= cut);
}
#define GOES_RIGHT(v, node) goes_right((v), (double)cut[node], flags[node])

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
      double const v = x->dense[who[k] * x->stride + feature[node]]; \
      at[k] = child[GOES_RIGHT(v, node)][node];                      \
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
#define WALK_SPARSE(right_of_node)                                               \
  for (int64_t i = 0; i < x->rows; i++) {                                        \
    const uint64_t *const set = x->set + i * x->stride;                          \
    const int64_t *const before = x->before + i * x->stride;                     \
    int64_t node = 0;                                                            \
    do {                                                                         \
      while (!HAS(set, feature[node]) && flags[node] < RPO_LEFT_IS_LEAF) node++; \
      node = (right_of_node) ? right[node] : left[node];                         \
    } while (node >= 0);                                                         \
    leaf[i] = (int32_t)~node;                                                    \
    (void)before;                                                                \
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
    return;                                                                                  \
  } while (0)

#define WALK_CUTS(child_type, feature_type)                                           \
  do {                                                                                \
    if (model->threshold.type == RPO_TYPE_F32) WALK(child_type, feature_type, float); \
    WALK(child_type, feature_type, double);                                           \
  } while (0)

static void leaves_of_rows(const rpo_model *model, int64_t tree, const rpo_rows *x, int32_t *leaf) {
  int64_t const first = model->inner_start[tree];
  const uint8_t *const flags = model->flags + first;
  if (model->inner_start[tree + 1] == first) {
    memset(leaf, 0, (size_t)x->rows * sizeof *leaf);
    return;
  }
  int const narrow = model->left.type == RPO_TYPE_I16; /* both children, see model.c */
  if (model->feature.type == RPO_TYPE_U16) {
    if (narrow) WALK_CUTS(int16_t, uint16_t);
    WALK_CUTS(int32_t, uint16_t);
  }
  if (narrow) WALK_CUTS(int16_t, int32_t);
  WALK_CUTS(int32_t, int32_t);
}
