/* Forests of one output each, side by side in one model (single target): every leaf has one entry, in
 * its forest's column, multiplied so that means over all trees are means over that forest's. */
#include <string.h>

#include "mem.h"
#include "model.h"
#include "readout.h"
#include "sums.h"

static rpo_status check(const rpo_forest *const *forests, int64_t n, rpo_error *err) {
  for (int64_t j = 0; j < n; j++) {
    const rpo_forest *const a = forests[0], *const b = forests[j];
    if (b == NULL) return rpo_fail(err, RPO_EINVAL, "forest %lld is NULL", (long long)j);
    RPO_TRY(rpo_refuse_boosted(b, "forests side by side", err));
    RPO_TRY(rpo_model_check(b, err));
    if (b->outputs != 1 || b->inputs != a->inputs || b->rows != a->rows ||
        (a->sample_weight.data == NULL) != (b->sample_weight.data == NULL)) {
      return rpo_fail(err, RPO_EINVAL,
                      "forest %lld must have one output, and the rows and features of the first",
                      (long long)j);
    }
  }
  return RPO_OK;
}

/* One entry a leaf, zeros left out. */
static void put_leaves(const rpo_forest *m, int64_t tree, int64_t output, double factor,
                       int64_t leaves, rpo_labels *table) {
  for (int64_t l = 0; l < leaves; l++) {
    double sum[2] = {0.0, 0.0}, value;
    int64_t const e = table->start[table->rows];
    rpo_leaf_means(m, tree, l, sum);
    rpo_finish_row(m, sum, 1, &value);
    table->index[e] = output;
    table->value[e] = factor * value;
    table->start[++table->rows] = e + (value != 0.0);
  }
}

static rpo_status fill(const rpo_forest *const *forests, int64_t n, rpo_tree *tree,
                       int64_t *sampling, int64_t trees, rpo_labels *table, rpo_error *err) {
  int64_t at = 0;
  for (int64_t j = 0; j < n; j++) {
    const rpo_forest *const m = forests[j];
    for (int64_t t = 0; t < m->trees; t++, at++) {
      double *weight = NULL;
      RPO_TRY(rpo_model_tree(m, t, &tree[at], &weight, err));
      rpo_delete(weight);
      memcpy(sampling + 3 * at, m->sampling + 3 * t, 3 * sizeof *sampling);
      put_leaves(m, t, j, (double)trees / (double)m->trees, tree[at].n_leaves, table);
    }
  }
  return RPO_OK;
}

rpo_status rpo_forest_beside(const rpo_forest *const *forests, int64_t n, rpo_forest **out,
                             rpo_error *err) {
  rpo_labels table;
  rpo_status status = RPO_OK;
  int64_t trees = 0, leaves = 0, shares = 1;
  if (forests == NULL || out == NULL || n < 1) {
    return rpo_fail(err, RPO_EINVAL, "forests or out is NULL, or there are none");
  }
  RPO_TRY(check(forests, n, err));
  for (int64_t j = 0; j < n; j++) {
    trees += forests[j]->trees;
    shares &= forests[j]->shares;
    leaves += forests[j]->leaf_start[forests[j]->trees];
  }
  memset(&table, 0, sizeof table);
  table.columns = n;
  table.start = rpo_new_zero(leaves + 1, 8);
  table.index = rpo_new(leaves, 8);
  table.value = rpo_new(leaves, 8);
  rpo_tree *const tree = rpo_new_zero(trees, (int64_t)sizeof *tree);
  int64_t *const sampling = rpo_new(3 * trees, 8);
  if (table.start == NULL || table.index == NULL || table.value == NULL || tree == NULL ||
      sampling == NULL) {
    status = rpo_fail_memory(err, "the model");
    goto done;
  }
  RPO_GOTO(fill(forests, n, tree, sampling, trees, &table, err));
  rpo_model_parts parts;
  memset(&parts, 0, sizeof parts);
  parts.trees = trees;
  parts.inputs = forests[0]->inputs;
  parts.outputs = n;
  parts.rows = forests[0]->rows;
  parts.shares = shares;
  parts.tree = tree;
  parts.sampling = sampling;
  parts.table = &table;
  status = rpo_model_pack(&parts, NULL, out, err);
done:
  for (int64_t t = 0; tree != NULL && t < trees; t++) rpo_tree_release(&tree[t]);
  rpo_delete(tree);
  rpo_delete(sampling);
  rpo_labels_release(&table);
  return status;
}
