/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf. Rows are dense here; sparse ones were spread into a buffer, and
 * `set` says where they have numbers. */

#define WALKERS 8

/* 1: to the right. */
#define GOES_RIGHT(row, node)                                                   \
  (row[feature[node]] != row[feature[node]] ? !(flags[node] & RPO_MISSING_LEFT) \
                                            : !(row[feature[node]] <= (double)cut[node]))

/* Several rows are under way at a time and no step waits for another's outcome: neither memory nor
 * wrong guesses hold them up. A row that has arrived makes room for the next. */
#define WALK_DENSE(child_type)                                      \
  do {                                                              \
    const child_type *const child[2] = {left, right};               \
    int64_t at[WALKERS], who[WALKERS], next = 0;                    \
    int walkers = 0;                                                \
    for (; walkers < WALKERS && next < rows; walkers++, next++) {   \
      at[walkers] = 0;                                              \
      who[walkers] = next;                                          \
    }                                                               \
    for (int k = 0; walkers > 0; k = k + 1 < walkers ? k + 1 : 0) { \
      const double *const row = x + who[k] * stride;                \
      int64_t const node = at[k];                                   \
      at[k] = child[GOES_RIGHT(row, node)][node];                   \
      if (at[k] >= 0) continue;                                     \
      leaf[who[k]] = (int32_t)~at[k];                               \
      if (next < rows) {                                            \
        at[k] = 0;                                                  \
        who[k] = next++;                                            \
      } else {                                                      \
        walkers--;                                                  \
        at[k] = at[walkers];                                        \
        who[k] = who[walkers];                                      \
      }                                                             \
    }                                                               \
  } while (0)

/* Where a row has no number, its zero goes left unless the node's flags say otherwise, and what lies
 * left of a node comes next (preorder): runs of such nodes are skipped without a look at the cut. */
#define WALK_SPARSE()                                                   \
  for (int64_t i = 0; i < rows; i++) {                                  \
    const double *const row = x + i * stride;                           \
    const uint64_t *const here = set + i * ((stride + 63) / 64);        \
    int64_t node = 0;                                                   \
    do {                                                                \
      while (!(here[feature[node] / 64] >> (feature[node] % 64) & 1) && \
             flags[node] <= RPO_MISSING_LEFT)                           \
        node++;                                                         \
      node = GOES_RIGHT(row, node) ? right[node] : left[node];          \
    } while (node >= 0);                                                \
    leaf[i] = (int32_t)~node;                                           \
  }

#define WALK(child_type, feature_type, threshold_type)                                       \
  do {                                                                                       \
    const child_type *const left = (const child_type *)model->left.data + first;             \
    const child_type *const right = (const child_type *)model->right.data + first;           \
    const feature_type *const feature = (const feature_type *)model->feature.data + first;   \
    const threshold_type *const cut = (const threshold_type *)model->threshold.data + first; \
    if (set == NULL) {                                                                       \
      WALK_DENSE(child_type);                                                                \
    } else {                                                                                 \
      WALK_SPARSE()                                                                          \
    }                                                                                        \
    return;                                                                                  \
  } while (0)

#define WALK_CUTS(child_type, feature_type)                                           \
  do {                                                                                \
    if (model->threshold.type == RPO_TYPE_F32) WALK(child_type, feature_type, float); \
    WALK(child_type, feature_type, double);                                           \
  } while (0)

static void leaves_of_rows(const rpo_model *model, int64_t tree, const double *x,
                           const uint64_t *set, int64_t stride, int64_t rows, int32_t *leaf) {
  int64_t const first = model->inner_start[tree];
  const uint8_t *const flags = model->flags + first;
  if (model->inner_start[tree + 1] == first) {
    memset(leaf, 0, (size_t)rows * sizeof *leaf);
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
