/* From rows to leaves. A tree's inner nodes only: feature, threshold, two children, the last with the
 * sign bit set when it is a leaf. Rows are dense here; sparse ones were spread into a buffer. */

#define WALK(child_type, feature_type, threshold_type)                                       \
  do {                                                                                       \
    const child_type *const left = (const child_type *)model->left.data + first;             \
    const child_type *const right = (const child_type *)model->right.data + first;           \
    const feature_type *const feature = (const feature_type *)model->feature.data + first;   \
    const threshold_type *const cut = (const threshold_type *)model->threshold.data + first; \
    for (int64_t i = 0; i < rows; i++) {                                                     \
      const double *const row = x + i * stride;                                              \
      int32_t node = 0;                                                                      \
      for (;;) {                                                                             \
        double const v = row[feature[node]];                                                 \
        if (v <= (double)cut[node] || (v != v && missing[node])) {                           \
          if (left[node] < 0) {                                                              \
            node = left[node];                                                               \
            break;                                                                           \
          }                                                                                  \
          node++; /* preorder: what is left of a node comes next */                          \
        } else {                                                                             \
          node = right[node];                                                                \
          if (node < 0) break;                                                               \
        }                                                                                    \
      }                                                                                      \
      leaf[i] = ~node;                                                                       \
    }                                                                                        \
    return;                                                                                  \
  } while (0)

static void leaves_of_rows(const rpo_model *model, int64_t tree, const double *x, int64_t stride,
                           int64_t rows, int32_t *leaf) {
  int64_t const first = model->inner_start[tree];
  const uint8_t *const missing = model->missing_left + first;
  if (model->inner_start[tree + 1] == first) {
    memset(leaf, 0, (size_t)rows * sizeof *leaf);
    return;
  }
  int const narrow = model->left.type == RPO_TYPE_I16 && model->feature.type == RPO_TYPE_U16;
  int const single = model->threshold.type == RPO_TYPE_F32;
  if (narrow && single) WALK(int16_t, uint16_t, float);
  if (narrow) WALK(int16_t, uint16_t, double);
  if (model->feature.type == RPO_TYPE_U16 && single) WALK(int32_t, uint16_t, float);
  if (model->feature.type == RPO_TYPE_U16) WALK(int32_t, uint16_t, double);
  if (single) WALK(int32_t, int32_t, float);
  WALK(int32_t, int32_t, double);
}
