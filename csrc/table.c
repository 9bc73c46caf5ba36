#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "par.h"

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

/* ---- Sparse ---- */

rpo_status rpo_table_start(rpo_table_maker *k, int64_t columns, rpo_error *err) {
  memset(k, 0, sizeof *k);
  k->columns = columns;
  k->sum = rpo_new_zero(columns, 8);
  k->mark = rpo_new_zero(columns, 1);
  k->found = rpo_new(columns + 1, 8);
  if (k->sum == NULL || k->mark == NULL || k->found == NULL) {
    rpo_table_release(k);
    return rpo_fail_memory(err, "the leaf table");
  }
  return RPO_OK;
}

rpo_status rpo_table_begin(rpo_table_maker *k, int64_t leaves, rpo_error *err) {
  memset(&k->table, 0, sizeof k->table);
  k->room = 0;
  k->table.columns = k->columns;
  k->table.start = rpo_new(leaves + 1, 8);
  if (k->table.start == NULL) return rpo_fail_memory(err, "the leaf table");
  k->table.start[0] = 0;
  return RPO_OK;
}

void rpo_table_release(rpo_table_maker *k) {
  rpo_delete(k->sum);
  rpo_delete(k->mark);
  rpo_delete(k->found);
  memset(k, 0, sizeof *k);
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

/* ---- The choice: trees in parallel ---- */

typedef struct making {
  const rpo_model_parts *parts;
  int64_t *leaf_start;    /* trees + 1: rows of the table */
  int64_t entries;        /* of a sparse table: as far as known */
  double most;            /* bytes of a sparse table to be given up at */
  int32_t *by_row;        /* entries of each row of Y */
  rpo_table_maker *maker; /* by thread */
  int threads;
  rpo_labels *own; /* by tree: its sparse table */
  rpo_labels table;
} making;

static int is_small(const making *k, int64_t entries) {
  const rpo_model_parts *const parts = k->parts;
  int64_t const leaves = k->leaf_start[parts->trees];
  return rpo_table_bytes_sparse(leaves, parts->labels->columns, entries) < k->most;
}

/* Entries a tree's sparse table has at least: a leaf has those of its first row. */
static rpo_status count_least(void *context, int64_t tree, int thread, rpo_job *job,
                              rpo_error *err) {
  making *const k = context;
  const rpo_tree *const t = &k->parts->tree[tree];
  int64_t sum = 0;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t l = 0; l < t->n_leaves; l++) sum += k->by_row[t->rows[t->leaf_start[l]]];
  (void)rpo_add(&k->entries, sum);
  return RPO_OK;
}

static rpo_status count_by_row(making *k, rpo_error *err) {
  const rpo_labels *const l = k->parts->labels;
  k->by_row = rpo_new_zero(l->rows, 4);
  if (k->by_row == NULL) return rpo_fail_memory(err, "the leaf table");
  for (int64_t i = 0; i < l->rows; i++) {
    if (l->dense == NULL) {
      k->by_row[i] = (int32_t)(l->start[i + 1] - l->start[i]);
      continue;
    }
    for (int64_t j = 0; j < l->columns; j++) k->by_row[i] += l->dense[i * l->columns + j] != 0.0;
  }
  return RPO_OK;
}

/* Does nothing once the trees before have too many entries. */
static rpo_status make_sparse_tree(void *context, int64_t tree, int thread, rpo_job *job,
                                   rpo_error *err) {
  making *const k = context;
  const rpo_model_parts *const parts = k->parts;
  const rpo_tree *const t = &parts->tree[tree];
  rpo_table_maker *const maker = &k->maker[thread];
  (void)job;
  if (!is_small(k, rpo_add(&k->entries, 0))) return RPO_OK;
  if (maker->sum == NULL) RPO_TRY(rpo_table_start(maker, parts->labels->columns, err));
  RPO_TRY(rpo_table_begin(maker, t->n_leaves, err));
  rpo_status const status =
      rpo_table_add_tree(maker, t, parts->row_weight[tree], parts->labels, err);
  k->own[tree] = maker->table;
  if (status == RPO_OK) (void)rpo_add(&k->entries, maker->table.start[t->n_leaves]);
  return status;
}

/* One tree's table to its place in the whole, whose starts are there. */
static rpo_status move_sparse_tree(void *context, int64_t tree, int thread, rpo_job *job,
                                   rpo_error *err) {
  const making *const k = context;
  rpo_labels *const own = &k->own[tree];
  int64_t *const start = k->table.start + k->leaf_start[tree];
  int64_t const first = start[0], entries = own->start[own->rows];
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t l = 1; l < own->rows; l++) start[l] = first + own->start[l];
  if (entries > 0) {
    memcpy(k->table.index + first, own->index, (size_t)entries * sizeof *own->index);
    memcpy(k->table.value + first, own->value, (size_t)entries * sizeof *own->value);
  }
  rpo_labels_release(own);
  return RPO_OK;
}

static rpo_status join_sparse(making *k, const rpo_control *control, rpo_error *err) {
  int64_t const trees = k->parts->trees, leaves = k->leaf_start[trees];
  rpo_labels *const l = &k->table;
  l->start = rpo_new(leaves + 1, 8);
  l->index = rpo_new(k->entries, 8);
  l->value = rpo_new(k->entries, 8);
  if (l->start == NULL || l->index == NULL || l->value == NULL) {
    return rpo_fail_memory(err, "the leaf table");
  }
  l->start[0] = 0;
  for (int64_t t = 0; t < trees; t++) {
    const rpo_labels *const own = &k->own[t];
    l->start[k->leaf_start[t + 1]] = l->start[k->leaf_start[t]] + own->start[own->rows];
  }
  RPO_TRY(rpo_run(control, trees, move_sparse_tree, k, err));
  l->rows = leaves;
  return RPO_OK;
}

/* The sparse table, given up when it takes k->most bytes or more. */
static rpo_status make_sparse(making *k, const rpo_control *control, rpo_error *err) {
  int64_t const trees = k->parts->trees;
  RPO_TRY(count_by_row(k, err));
  RPO_TRY(rpo_run(control, trees, count_least, k, err));
  if (!is_small(k, k->entries)) return RPO_OK;
  k->entries = 0;
  k->threads = rpo_threads(control, trees);
  k->maker = rpo_new_zero(k->threads, (int64_t)sizeof *k->maker);
  k->own = rpo_new_zero(trees, (int64_t)sizeof *k->own);
  if (k->maker == NULL || k->own == NULL) return rpo_fail_memory(err, "the leaf table");
  RPO_TRY(rpo_run(control, trees, make_sparse_tree, k, err));
  return is_small(k, k->entries) ? join_sparse(k, control, err) : RPO_OK;
}

static rpo_status make_dense_tree(void *context, int64_t tree, int thread, rpo_job *job,
                                  rpo_error *err) {
  const making *const k = context;
  const rpo_model_parts *const parts = k->parts;
  (void)thread;
  (void)job;
  (void)err;
  fill_dense(&parts->tree[tree], parts->row_weight[tree], parts->labels,
             k->table.dense + k->leaf_start[tree] * parts->labels->columns);
  return RPO_OK;
}

static rpo_status make_dense(making *k, const rpo_control *control, rpo_error *err) {
  int64_t const trees = k->parts->trees, leaves = k->leaf_start[trees];
  int64_t const d = k->parts->labels->columns;
  k->table.dense = leaves > INT64_MAX / d ? NULL : rpo_new(leaves * d, 8);
  if (k->table.dense == NULL) return rpo_fail_memory(err, "the leaf table");
  RPO_TRY(rpo_run(control, trees, make_dense_tree, k, err));
  k->table.rows = leaves;
  return RPO_OK;
}

rpo_status rpo_table_smaller(const rpo_model_parts *parts, int64_t bytes,
                             const rpo_control *control, rpo_labels *out, rpo_error *err) {
  int64_t const trees = parts->trees, columns = parts->labels->columns;
  making k;
  rpo_status status;
  memset(&k, 0, sizeof k);
  k.parts = parts;
  k.leaf_start = rpo_new_zero(trees + 1, 8);
  if (k.leaf_start == NULL) return rpo_fail_memory(err, "the leaf table");
  for (int64_t t = 0; t < trees; t++) {
    k.leaf_start[t + 1] = k.leaf_start[t] + parts->tree[t].n_leaves;
  }
  double const dense = rpo_table_bytes_dense(k.leaf_start[trees], columns);
  double const rows = (double)bytes;
  k.most = dense < rows ? dense : rows;
  k.table.columns = columns;
  RPO_GOTO(make_sparse(&k, control, err));
  if (k.table.rows == 0 && dense < rows) RPO_GOTO(make_dense(&k, control, err));
  if (k.table.rows > 0) {
    *out = k.table;
    memset(&k.table, 0, sizeof k.table);
  }
done:
  for (int i = 0; k.maker != NULL && i < k.threads; i++) rpo_table_release(&k.maker[i]);
  for (int64_t t = 0; k.own != NULL && t < trees; t++) rpo_labels_release(&k.own[t]);
  rpo_delete(k.maker);
  rpo_labels_release(&k.table);
  rpo_delete(k.own);
  rpo_delete(k.by_row);
  rpo_delete(k.leaf_start);
  return status;
}
