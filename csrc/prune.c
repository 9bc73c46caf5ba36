#include "prune.h"

#include <string.h>

#include "mem.h"

/* By inner node: risks (impurity times share of weight), leaves below, their range. */
typedef struct links {
  double *own, *branch, *weight;
  int64_t *leaves, *span, *first_leaf; /* leaves left below, once below, the first of them */
  int32_t *parent;
  uint8_t *cut; /* 1: a leaf now, 2: below one */
} links;

static void links_release(links *k) {
  rpo_delete(k->own);
  rpo_delete(k->branch);
  rpo_delete(k->weight);
  rpo_delete(k->leaves);
  rpo_delete(k->span);
  rpo_delete(k->first_leaf);
  rpo_delete(k->parent);
  rpo_delete(k->cut);
}

static void child_sums(const rpo_tree *t, const links *k, int32_t child, double total, double *risk,
                       double *weight, int64_t *leaves, int64_t *first) {
  if (child < 0) {
    *risk = (double)t->leaf_impurity[~child] * t->leaf_weight[~child] / total;
    *weight = t->leaf_weight[~child];
    *leaves = 1;
    *first = ~child;
  } else {
    *risk = k->branch[child];
    *weight = k->weight[child];
    *leaves = k->span[child];
    *first = k->first_leaf[child];
  }
}

/* Children come after their parents: one pass from the back fills everything. */
static void fill_links(const rpo_tree *t, links *k) {
  double total = 0.0;
  for (int64_t l = 0; l < t->n_leaves; l++) total += t->leaf_weight[l];
  for (int64_t i = t->n_inner - 1; i >= 0; i--) {
    double risk[2], weight[2];
    int64_t leaves[2], first[2];
    child_sums(t, k, t->left[i], total, &risk[0], &weight[0], &leaves[0], &first[0]);
    child_sums(t, k, t->right[i], total, &risk[1], &weight[1], &leaves[1], &first[1]);
    k->branch[i] = risk[0] + risk[1];
    k->weight[i] = weight[0] + weight[1];
    k->leaves[i] = k->span[i] = leaves[0] + leaves[1];
    k->first_leaf[i] = first[0];
    k->own[i] = (double)t->impurity[i] * k->weight[i] / total;
    if (t->left[i] >= 0) k->parent[t->left[i]] = (int32_t)i;
    if (t->right[i] >= 0) k->parent[t->right[i]] = (int32_t)i;
  }
}

static void cut_link(const rpo_tree *t, links *k, int64_t node) {
  double const risk = k->own[node] - k->branch[node];
  int64_t const leaves = k->leaves[node] - 1;
  for (int64_t i = node; i >= 0; i = k->parent[i]) {
    k->branch[i] += risk;
    k->leaves[i] -= leaves;
  }
  k->cut[node] = 1;
  for (int64_t i = node + 1; i < t->n_inner && k->cut[k->parent[i]] != 0; i++) k->cut[i] = 2;
}

static void cut_weakest(const rpo_tree *t, links *k, double alpha) {
  for (;;) {
    int64_t weakest = -1;
    double least = alpha;
    for (int64_t i = 0; i < t->n_inner; i++) {
      if (k->cut[i] != 0) continue;
      double const cost = (k->own[i] - k->branch[i]) / (double)(k->leaves[i] - 1);
      if (cost < least || (weakest < 0 && cost <= least)) {
        least = cost;
        weakest = i;
      }
    }
    if (weakest < 0) return;
    cut_link(t, k, weakest);
  }
}

/* Rewrites the tree in place: what stays moves forward. */
static void rebuild(rpo_tree *t, const links *k, int32_t *name) {
  int32_t inner = 0, leaf = 0;
  for (int64_t i = 0; i < t->n_inner; i++) name[i] = k->cut[i] == 0 ? inner++ : 0;
  int64_t next_leaf = 0, kept = 0;
  int32_t *const leaf_name = name + t->n_inner;
  for (int64_t i = 0; i < t->n_inner; i++) { /* whole branches become one leaf */
    if (k->cut[i] != 1) continue;
    int64_t const first = k->first_leaf[i];
    for (; next_leaf < first; next_leaf++) leaf_name[next_leaf] = leaf++;
    int64_t const end = first + k->span[i];
    for (; next_leaf < end; next_leaf++) leaf_name[next_leaf] = leaf;
    t->leaf_impurity[first] = t->impurity[i];
    t->leaf_weight[first] = k->weight[i];
    name[i] = ~leaf++;
  }
  for (; next_leaf < t->n_leaves; next_leaf++) leaf_name[next_leaf] = leaf++;
  int32_t const rows = t->leaf_start[t->n_leaves];
  for (int64_t l = 0; l < t->n_leaves; l++) {
    if (l > 0 && leaf_name[l - 1] == leaf_name[l]) continue;
    t->leaf_start[kept] = t->leaf_start[l];
    t->leaf_impurity[kept] = t->leaf_impurity[l];
    t->leaf_weight[kept++] = t->leaf_weight[l];
  }
  t->leaf_start[kept] = rows;
  for (int64_t i = 0; i < t->n_inner; i++) {
    if (k->cut[i] != 0) continue;
    int32_t const to = name[i];
    int32_t const child[2] = {t->left[i], t->right[i]};
    int32_t moved[2];
    for (int c = 0; c < 2; c++) moved[c] = child[c] < 0 ? ~leaf_name[~child[c]] : name[child[c]];
    t->feature[to] = t->feature[i];
    t->threshold[to] = t->threshold[i];
    t->missing_left[to] = t->missing_left[i];
    t->impurity[to] = t->impurity[i];
    t->left[to] = moved[0];
    t->right[to] = moved[1];
  }
  t->n_inner = inner;
  t->n_leaves = leaf;
}

rpo_status rpo_prune(rpo_tree *t, double alpha, rpo_error *err) {
  if (!(alpha > 0.0) || t->n_inner == 0) return RPO_OK;
  links k;
  k.own = rpo_new(t->n_inner, 8);
  k.branch = rpo_new(t->n_inner, 8);
  k.weight = rpo_new(t->n_inner, 8);
  k.leaves = rpo_new(t->n_inner, 8);
  k.span = rpo_new(t->n_inner, 8);
  k.first_leaf = rpo_new(t->n_inner, 8);
  k.parent = rpo_new(t->n_inner, 4);
  k.cut = rpo_new_zero(t->n_inner, 1);
  int32_t *const name = rpo_new(t->n_inner + t->n_leaves, 4);
  rpo_status status = RPO_OK;
  if (k.own == NULL || k.branch == NULL || k.weight == NULL || k.leaves == NULL || k.span == NULL ||
      k.first_leaf == NULL || k.parent == NULL || k.cut == NULL || name == NULL) {
    status = rpo_fail_memory(err, "pruning");
  } else {
    for (int64_t i = 0; i < t->n_inner; i++) k.parent[i] = -1;
    fill_links(t, &k);
    cut_weakest(t, &k, alpha);
    rebuild(t, &k, name);
  }
  rpo_delete(name);
  links_release(&k);
  return status;
}
