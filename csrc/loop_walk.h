/* Rows of X down one tree whose children, features and thresholds have the types CHILD, FEATURE and CUT:
 * included by loop_leaves.h for all of these, with the name's ending TAG. `checked` and `ones` are
 * constants where these are inlined. */

/* Of one tree. */
typedef struct OF_TYPE(nodes) {
  const CHILD *left, *right;
  const FEATURE *feature;
  const CUT *cut;
  const uint8_t *flags;
  int64_t inner, inputs;
} OF_TYPE(nodes);

/* Whether a node is there and looks at a column that is there. */
ALWAYS_INLINE int OF_TYPE(is_node)(const OF_TYPE(nodes) * t, int64_t node) {
  return node < t->inner && (uint64_t)(int64_t)t->feature[node] < (uint64_t)t->inputs;
}

/* Several rows are under way at a time and no step waits for another's outcome: neither memory nor
 * wrong guesses hold them up. A row that has arrived makes room for the next. */
ALWAYS_INLINE int OF_TYPE(walk_dense)(int checked, const OF_TYPE(nodes) * t, const rpo_rows *x,
                                      int32_t *leaf) {
  const CHILD *const child[2] = {t->left, t->right};
  int64_t at[WALKERS], who[WALKERS], next = 0;
  int walkers = 0;
  for (; walkers < WALKERS && next < x->rows; walkers++, next++) {
    at[walkers] = 0;
    who[walkers] = next;
  }
  for (int k = 0; walkers > 0; k = k + 1 < walkers ? k + 1 : 0) {
    int64_t const node = at[k];
    if (checked && !OF_TYPE(is_node)(t, node)) return 0;
    double const v = x->dense[who[k] * x->stride + t->feature[node]];
    at[k] = child[goes_right(v, (double)t->cut[node], t->flags[node])][node];
    if (checked && !is_child(at[k], node, t->inner)) return 0;
    if (at[k] >= 0) continue;
    leaf[who[k]] = (int32_t)~at[k];
    if (next < x->rows) {
      at[k] = 0;
      who[k] = next++;
    } else {
      walkers--;
      at[k] = at[walkers];
      who[k] = who[walkers];
    }
  }
  return 1;
}

/* Where a row has no number, its zero goes left unless the node's flags say otherwise, and what lies
 * left of a node comes next (preorder): runs of such nodes are skipped without a look at the cut. Of
 * numbers that are all `ones`, the flags know the way. */
ALWAYS_INLINE int OF_TYPE(walk_sparse)(int checked, int ones, const OF_TYPE(nodes) * t,
                                       const rpo_rows *x, int32_t *leaf) {
  for (int64_t i = 0; i < x->rows; i++) {
    const uint64_t *const set = x->set + i * x->stride;
    const int64_t *const before = x->before + i * x->stride;
    int64_t node = 0;
    do {
      while ((!checked || OF_TYPE(is_node)(t, node)) && !has(set, t->feature[node]) &&
             t->flags[node] < RPO_LEFT_IS_LEAF) {
        node++;
      }
      if (checked && !OF_TYPE(is_node)(t, node)) return 0;
      int64_t const feature = t->feature[node];
      int const flags = t->flags[node];
      int const right = ones ? flags & (has(set, feature) ? RPO_ONE_RIGHT : RPO_ZERO_RIGHT)
                             : goes_right(rpo_sparse_at(set, before, x->value, feature),
                                          (double)t->cut[node], flags);
      int64_t const next = right ? t->right[node] : t->left[node];
      if (checked && !is_child(next, node, t->inner)) return 0;
      node = next;
    } while (node >= 0);
    leaf[i] = (int32_t)~node;
  }
  return 1;
}

ALWAYS_INLINE int OF_TYPE(walk)(int checked, const rpo_model *model, int64_t tree,
                                const rpo_rows *x, int32_t *leaf) {
  int64_t const first = model->inner_start[tree];
  OF_TYPE(nodes)
  const t = {(const CHILD *)model->left.data + first,
             (const CHILD *)model->right.data + first,
             (const FEATURE *)model->feature.data + first,
             (const CUT *)model->threshold.data + first,
             model->flags + first,
             model->inner_start[tree + 1] - first,
             model->inputs};
  if (x->dense != NULL) return OF_TYPE(walk_dense)(checked, &t, x, leaf);
  return x->value == NULL ? OF_TYPE(walk_sparse)(checked, 1, &t, x, leaf)
                          : OF_TYPE(walk_sparse)(checked, 0, &t, x, leaf);
}

#undef CHILD
#undef FEATURE
#undef CUT
#undef TAG
