/* A forest without its training labels: S Y, worked out once, instead of S and Y. */
#include <string.h>

#include "mem.h"
#include "model.h"
#include "table.h"

static rpo_status copy_of(const rpo_model *m, rpo_model **out, rpo_error *err) {
  char *const block = rpo_new(m->bytes, 1);
  if (block == NULL) return rpo_fail_memory(err, "the model");
  memcpy(block, m->block, (size_t)m->bytes);
  rpo_status const status = rpo_model_adopt(block, m->bytes, out, err);
  if (status != RPO_OK) rpo_delete(block);
  return status;
}

static rpo_status copy_trees(const rpo_model *m, rpo_tree *tree, double **row_weight,
                             rpo_error *err) {
  for (int64_t t = 0; t < m->trees; t++) {
    RPO_TRY(rpo_model_tree(m, t, &tree[t], &row_weight[t], err));
  }
  return RPO_OK;
}

rpo_status rpo_forest_drop_labels(const rpo_forest *m, const rpo_control *control, rpo_forest **out,
                                  rpo_error *err) {
  rpo_labels labels, table;
  rpo_status status;
  if (m == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "forest or out is NULL");
  RPO_TRY(rpo_model_check(m, err));
  if (!rpo_has_rows(m)) return copy_of(m, out, err);
  memset(&labels, 0, sizeof labels);
  memset(&table, 0, sizeof table);
  rpo_tree *const tree = rpo_new_zero(m->trees, (int64_t)sizeof *tree);
  double **const row_weight = rpo_new_zero(m->trees, (int64_t)sizeof *row_weight);
  if (tree == NULL || row_weight == NULL) {
    status = rpo_fail_memory(err, "the trees");
    goto done;
  }
  RPO_GOTO(copy_trees(m, tree, row_weight, err));
  RPO_GOTO(rpo_model_labels(m, 0, m->rows, &labels, err));
  rpo_model_parts parts = {m->trees, m->inputs,   m->outputs,
                           m->rows,  m->ratio,    m->shares,
                           tree,     m->sampling, (const double *const *)row_weight,
                           &labels,  NULL,        m->ratio ? m->fallback.data : NULL,
                           NULL};
  RPO_GOTO(rpo_table_smaller(&parts, INT64_MAX, control, &table, err));
  parts.labels = NULL;
  parts.table = &table;
  status = rpo_model_pack(&parts, control, out, err);
done:
  for (int64_t t = 0; tree != NULL && t < m->trees; t++) rpo_tree_release(&tree[t]);
  for (int64_t t = 0; row_weight != NULL && t < m->trees; t++) rpo_delete(row_weight[t]);
  rpo_delete(tree);
  rpo_delete(row_weight);
  rpo_labels_release(&labels);
  rpo_labels_release(&table);
  return status;
}
