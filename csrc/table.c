#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

double rpo_table_bytes_dense(int64_t leaves, int64_t columns) {
  return 8.0 * (double)leaves * (double)columns;
}

double rpo_table_bytes_sparse(int64_t leaves, int64_t columns, int64_t entries) {
  double const index = columns <= 65536 ? 2.0 : 4.0;
  return 8.0 * (double)leaves + (index + 8.0) * (double)entries;
}

/* ---- Dense ---- */

/* The leaves of one tree. */
static void fill_dense(const rpo_tree *t, const double *weight, const rpo_labels *l,
                       double *table) {
  int64_t const d = l->columns;
  memset(table, 0, (size_t)(t->n_leaves * d) * sizeof *table);
  for (int64_t leaf = 0; leaf < t->n_leaves; leaf++) {
    double *const out = table + leaf * d;
    double const unit = 1.0 / t->leaf_weight[leaf];
    for (int64_t i = t->leaf_start[leaf]; i < t->leaf_start[leaf + 1]; i++) {
      double const share = unit * (weight == NULL ? 1.0 : weight[i]);
      int64_t const row = t->rows[i];
      if (l->dense != NULL) {
        for (int64_t j = 0; j < d; j++) out[j] += share * l->dense[row * d + j];
      } else {
        for (int64_t e = l->start[row]; e < l->start[row + 1]; e++) {
          out[l->index[e]] += share * (l->value == NULL ? 1.0 : l->value[e]);
        }
      }
    }
  }
}

static rpo_status make_dense(const rpo_model_parts *parts, int64_t leaves, rpo_labels *out,
                             rpo_error *err) {
  int64_t const d = parts->labels->columns;
  double *const table = leaves > INT64_MAX / d ? NULL : rpo_new(leaves * d, 8);
  if (table == NULL) return rpo_fail_memory(err, "the leaf table");
  double *here = table;
  for (int64_t t = 0; t < parts->trees; t++) {
    fill_dense(&parts->tree[t], parts->row_weight[t], parts->labels, here);
    here += parts->tree[t].n_leaves * d;
  }
  out->rows = leaves;
  out->columns = d;
  out->dense = table;
  return RPO_OK;
}

/* ---- Sparse ---- */

rpo_status rpo_table_start(rpo_table_maker *k, int64_t leaves, int64_t columns, rpo_error *err) {
  memset(k, 0, sizeof *k);
  k->table.columns = columns;
  k->table.start = rpo_new(leaves + 1, 8);
  k->sum = rpo_new_zero(columns, 8);
  k->mark = rpo_new_zero(columns, 1);
  k->found = rpo_new(columns + 1, 8);
  if (k->table.start == NULL || k->sum == NULL || k->mark == NULL || k->found == NULL) {
    rpo_table_release(k);
    rpo_labels_release(&k->table);
    return rpo_fail_memory(err, "the leaf table");
  }
  k->table.start[0] = 0;
  return RPO_OK;
}

void rpo_table_release(rpo_table_maker *k) {
  rpo_delete(k->sum);
  rpo_delete(k->mark);
  rpo_delete(k->found);
  k->sum = NULL;
  k->mark = NULL;
  k->found = NULL;
}

static rpo_status make_room(rpo_table_maker *k, int64_t more, rpo_error *err) {
  rpo_labels *const l = &k->table;
  int64_t const used = l->start[l->rows];
  if (used + more <= k->room) return RPO_OK;
  int64_t const room = 2 * (used + more) + 64;
  int64_t *const index = rpo_grow(l->index, used, room, 8);
  if (index != NULL) l->index = index;
  double *const value = index == NULL ? NULL : rpo_grow(l->value, used, room, 8);
  if (value == NULL) return rpo_fail_memory(err, "the leaf table");
  l->value = value;
  k->room = room;
  return RPO_OK;
}

static inline void add_entry(rpo_table_maker *k, int64_t *found, int64_t column, double v) {
  k->found[*found] = column;
  if (!k->mark[column]) (*found)++;
  k->mark[column] = 1;
  k->sum[column] += v;
}

static int ascending(const void *a, const void *b) {
  int64_t const x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Ends a leaf: writes its sums down in order of columns, and wipes them. */
static rpo_status end_leaf(rpo_table_maker *k, int64_t found, rpo_error *err) {
  rpo_labels *const l = &k->table;
  RPO_TRY(make_room(k, found, err));
  int64_t at = l->start[l->rows];
  qsort(k->found, (size_t)found, sizeof *k->found, ascending);
  for (int64_t i = 0; i < found; i++) {
    int64_t const column = k->found[i];
    l->index[at] = column;
    l->value[at++] = k->sum[column];
    k->sum[column] = 0.0;
    k->mark[column] = 0;
  }
  l->start[++l->rows] = at;
  return RPO_OK;
}

static void add_row(rpo_table_maker *k, const rpo_labels *l, int64_t row, double share,
                    int64_t *found) {
  if (l->dense != NULL) {
    const double *const y = l->dense + row * l->columns;
    for (int64_t j = 0; j < l->columns; j++) {
      if (y[j] != 0.0) add_entry(k, found, j, share * y[j]);
    }
    return;
  }
  for (int64_t e = l->start[row]; e < l->start[row + 1]; e++) {
    add_entry(k, found, l->index[e], share * (l->value == NULL ? 1.0 : l->value[e]));
  }
}

rpo_status rpo_table_add_tree(rpo_table_maker *k, const rpo_tree *t, const double *weight,
                              const rpo_labels *labels, rpo_error *err) {
  for (int64_t leaf = 0; leaf < t->n_leaves; leaf++) {
    double const unit = 1.0 / t->leaf_weight[leaf];
    int64_t found = 0;
    for (int64_t i = t->leaf_start[leaf]; i < t->leaf_start[leaf + 1]; i++) {
      add_row(k, labels, t->rows[i], unit * (weight == NULL ? 1.0 : weight[i]), &found);
    }
    RPO_TRY(end_leaf(k, found, err));
  }
  return RPO_OK;
}

rpo_status rpo_table_add_rows(rpo_table_maker *k, const rpo_labels *from, rpo_error *err) {
  for (int64_t row = 0; row < from->rows; row++) {
    int64_t found = 0;
    add_row(k, from, row, 1.0, &found);
    RPO_TRY(end_leaf(k, found, err));
  }
  return RPO_OK;
}

rpo_status rpo_table_settle(rpo_labels *l, rpo_error *err) {
  if (rpo_table_bytes_sparse(l->rows, l->columns, l->start[l->rows]) <
      rpo_table_bytes_dense(l->rows, l->columns)) {
    return RPO_OK;
  }
  l->dense = rpo_new_zero(l->rows * l->columns, 8);
  if (l->dense == NULL) return rpo_fail_memory(err, "the leaf table");
  for (int64_t i = 0; i < l->rows; i++) {
    for (int64_t e = l->start[i]; e < l->start[i + 1]; e++) {
      l->dense[i * l->columns + l->index[e]] = l->value[e];
    }
  }
  rpo_delete(l->start);
  rpo_delete(l->index);
  rpo_delete(l->value);
  l->start = l->index = NULL;
  l->value = NULL;
  return RPO_OK;
}

/* ---- The choice ---- */

/* Entries a sparse table has at least: a leaf has those of its first row. */
static rpo_status least_entries(const rpo_model_parts *parts, int64_t *out, rpo_error *err) {
  const rpo_labels *const l = parts->labels;
  int32_t *const count = rpo_new_zero(l->rows, 4);
  if (count == NULL) return rpo_fail_memory(err, "the leaf table");
  for (int64_t i = 0; i < l->rows; i++) {
    if (l->dense == NULL) {
      count[i] = (int32_t)(l->start[i + 1] - l->start[i]);
      continue;
    }
    for (int64_t j = 0; j < l->columns; j++) count[i] += l->dense[i * l->columns + j] != 0.0;
  }
  int64_t sum = 0;
  for (int64_t t = 0; t < parts->trees; t++) {
    const rpo_tree *const tree = &parts->tree[t];
    for (int64_t leaf = 0; leaf < tree->n_leaves; leaf++) {
      sum += count[tree->rows[tree->leaf_start[leaf]]];
    }
  }
  rpo_delete(count);
  *out = sum;
  return RPO_OK;
}

/* The sparse table, given up when it takes `most` bytes or more. */
static rpo_status make_sparse(const rpo_model_parts *parts, int64_t leaves, double most,
                              rpo_labels *out, rpo_error *err) {
  int64_t const d = parts->labels->columns;
  rpo_table_maker k;
  rpo_status status = RPO_OK;
  int64_t least = 0;
  RPO_TRY(least_entries(parts, &least, err));
  if (rpo_table_bytes_sparse(leaves, d, least) >= most) return RPO_OK;
  RPO_TRY(rpo_table_start(&k, leaves, d, err));
  int small = 1;
  for (int64_t t = 0; t < parts->trees && small && status == RPO_OK; t++) {
    status = rpo_table_add_tree(&k, &parts->tree[t], parts->row_weight[t], parts->labels, err);
    small = rpo_table_bytes_sparse(leaves, d, k.table.start[k.table.rows]) < most;
  }
  rpo_table_release(&k);
  if (status == RPO_OK && small) {
    *out = k.table;
  } else {
    rpo_labels_release(&k.table);
  }
  return status;
}

rpo_status rpo_table_smaller(const rpo_model_parts *parts, int64_t bytes, rpo_labels *out,
                             rpo_error *err) {
  int64_t leaves = 0;
  memset(out, 0, sizeof *out);
  for (int64_t t = 0; t < parts->trees; t++) leaves += parts->tree[t].n_leaves;
  double const dense = rpo_table_bytes_dense(leaves, parts->labels->columns);
  double const rows = (double)bytes;
  RPO_TRY(make_sparse(parts, leaves, dense < rows ? dense : rows, out, err));
  if (out->rows == 0 && dense < rows) return make_dense(parts, leaves, out, err);
  return RPO_OK;
}
