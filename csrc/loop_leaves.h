/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf. Rows are dense here; sparse ones were spread into a buffer, and
 * `set` says where they have numbers: elsewhere a zero goes left, mostly, without a look at it. What
 * lies left of a node comes next (preorder). */

#define CHILD(node)                                                                          \
  (row[feature[node]] <= (double)cut[node] ||                                                \
           (row[feature[node]] != row[feature[node]] && (flags[node] & RPO_MISSING_LEFT))    \
       ? left[node]                                                                          \
       : right[node])

#define WALK(child_type, feature_type, threshold_type)                                       \
  do {                                                                                       \
    const child_type *const left = (const child_type *)model->left.data + first;             \
    const child_type *const right = (const child_type *)model->right.data + first;           \
    const feature_type *const feature = (const feature_type *)model->feature.data + first;   \
    const threshold_type *const cut = (const threshold_type *)model->threshold.data + first; \
    for (int64_t i = 0; i < rows; i++) {                                                     \
      const double *const row = x + i * stride;                                              \
      const uint8_t *const here = set == NULL ? NULL : set + i * stride;                     \
      int64_t node = 0;                                                                      \
      do {                                                                                   \
        if (here != NULL) {                                                                  \
          while (here[feature[node]] == 0 && flags[node] <= RPO_MISSING_LEFT) node++;        \
        }                                                                                    \
        node = CHILD(node);                                                                  \
      } while (node >= 0);                                                                   \
      leaf[i] = (int32_t)~node;                                                              \
    }                                                                                        \
    return;                                                                                  \
  } while (0)

#define WALK_CUTS(child_type, feature_type)                                              \
  do {                                                                                   \
    if (model->threshold.type == RPO_TYPE_F32) WALK(child_type, feature_type, float);    \
    WALK(child_type, feature_type, double);                                              \
  } while (0)

static void leaves_of_rows(const rpo_model *model, int64_t tree, const double *x,
                           const uint8_t *set, int64_t stride, int64_t rows, int32_t *leaf) {
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
