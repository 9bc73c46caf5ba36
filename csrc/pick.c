/* A forest of some trees of several. */
#include <string.h>

#include "mem.h"
#include "sums.h"
#include "table.h"

static int same_numbers(const rpo_array *a, const rpo_array *b) {
  if ((a->data == NULL) != (b->data == NULL) || a->count != b->count) return 0;
  if (a->data == NULL) return 1;
  size_t const bytes = (size_t)(a->count * rpo_type_size(a->type));
  if (a->type == b->type && memcmp(a->data, b->data, bytes) == 0) return 1;
  for (int64_t i = 0; i < a->count; i++) {
    if (rpo_array_number(a, i) != rpo_array_number(b, i)) return 0;
  }
  return 1;
}

/* Forests that keep training rows must keep the same labels, of which the joint one has a copy. */
static int same_labels(const rpo_forest *a, const rpo_forest *b) {
  if (a == b || !rpo_has_rows(a) || !rpo_has_rows(b)) return 1;
  if ((a->value_start == NULL) != (b->value_start == NULL)) return 0;
  for (int64_t i = 0; a->value_start != NULL && i <= a->rows; i++) {
    if (a->value_start[i] != b->value_start[i]) return 0;
  }
  return same_numbers(&a->value_index, &b->value_index) && same_numbers(&a->value, &b->value);
}

/* A model says of all its leaves alike whether they hold samples or all rows; trees that were grown
 * on all rows are both. */
static rpo_status check_leaf_rows(const rpo_forest *const *forests, int64_t n, rpo_error *err) {
  int64_t all = -1, samples = -1;
  for (int64_t i = 0; i < n; i++) {
    if (forests[i]->sample_weight.data != NULL) {
      all = i;
      continue;
    }
    for (int64_t t = 0; t < forests[i]->trees; t++) {
      if (forests[i]->sampling[3 * t + 2] != 0) samples = i;
    }
  }
  if (all < 0 || samples < 0) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL,
                  "forests %lld and %lld differ in leaf_rows: one holds all rows, one those of its "
                  "samples",
                  (long long)all, (long long)samples);
}

static rpo_status check_pick(const rpo_forest *const *forests, int64_t n, const int64_t *pick,
                             int64_t count, rpo_error *err) {
  if (forests == NULL || pick == NULL || n < 1 || count < 1) {
    return rpo_fail(err, RPO_EINVAL, "forests and pick must not be empty");
  }
  for (int64_t i = 0; i < n; i++) {
    const rpo_forest *const a = forests[0], *const b = forests[i];
    if (b == NULL) return rpo_fail(err, RPO_EINVAL, "forest %lld is NULL", (long long)i);
    if (a->inputs != b->inputs || a->outputs != b->outputs || a->rows != b->rows ||
        a->ratio != b->ratio || !same_labels(a, b) || !same_numbers(&a->fallback, &b->fallback)) {
      return rpo_fail(err, RPO_EINVAL,
                      "forest %lld was not fitted to the same data as the first, in the same form",
                      (long long)i);
    }
  }
  RPO_TRY(check_leaf_rows(forests, n, err));
  for (int64_t i = 0; i < count; i++) {
    int64_t const from = pick[2 * i], tree = pick[2 * i + 1];
    if (from < 0 || from >= n || tree < 0 || tree >= forests[from]->trees) {
      return rpo_fail(err, RPO_EINVAL, "pick %lld: no tree %lld of forest %lld", (long long)i,
                      (long long)tree, (long long)from);
    }
  }
  return RPO_OK;
}

/* What is copied out of the forests. */
typedef struct picked {
  const rpo_forest *const *forests;
  const int64_t *pick;
  int64_t count;
  rpo_tree *tree;
  double **row_weight;
  int64_t *sampling;
  rpo_labels labels; /* Y, where a forest keeps rows */
  rpo_labels *table; /* by tree, its L where the forest keeps that */
} picked;

static rpo_status copy_out(picked *k, rpo_error *err) {
  k->tree = rpo_new_zero(k->count, (int64_t)sizeof *k->tree);
  k->row_weight = rpo_new_zero(k->count, (int64_t)sizeof *k->row_weight);
  k->sampling = rpo_new(3 * k->count, 8);
  k->table = rpo_new_zero(k->count, (int64_t)sizeof *k->table);
  if (k->tree == NULL || k->row_weight == NULL || k->sampling == NULL || k->table == NULL) {
    return rpo_fail_memory(err, "the model");
  }
  for (int64_t i = 0; i < k->count; i++) {
    int64_t const tree = k->pick[2 * i + 1];
    const rpo_forest *const m = k->forests[k->pick[2 * i]];
    RPO_TRY(rpo_model_tree(m, tree, &k->tree[i], &k->row_weight[i], err));
    memcpy(k->sampling + 3 * i, m->sampling + 3 * tree, 3 * sizeof *k->sampling);
    if (!rpo_has_rows(m)) {
      RPO_TRY(rpo_model_labels(m, m->leaf_start[tree], m->leaf_start[tree + 1], &k->table[i], err));
    } else if (k->labels.rows == 0) {
      RPO_TRY(rpo_model_labels(m, 0, m->rows, &k->labels, err));
    }
  }
  return RPO_OK;
}

static void picked_release(picked *k) {
  for (int64_t i = 0; i < k->count; i++) {
    if (k->tree != NULL) rpo_tree_release(&k->tree[i]);
    if (k->row_weight != NULL) rpo_delete(k->row_weight[i]);
    if (k->table != NULL) rpo_labels_release(&k->table[i]);
  }
  rpo_labels_release(&k->labels);
  rpo_delete(k->tree);
  rpo_delete(k->row_weight);
  rpo_delete(k->sampling);
  rpo_delete(k->table);
}

/* Dense tables one behind the other. */
static rpo_status join_dense(const picked *k, int64_t leaves, rpo_labels *out, rpo_error *err) {
  int64_t const columns = k->forests[0]->columns;
  double *at = leaves > INT64_MAX / columns ? NULL : rpo_new(leaves * columns, 8);
  if (at == NULL) return rpo_fail_memory(err, "the leaf table");
  out->rows = leaves;
  out->columns = columns;
  out->dense = at;
  for (int64_t i = 0; i < k->count; i++) {
    int64_t const numbers = k->tree[i].n_leaves * columns;
    memcpy(at, k->table[i].dense, (size_t)numbers * sizeof *at);
    at += numbers;
  }
  return RPO_OK;
}

/* Tables of any form, and made of rows and labels where a forest keeps those. */
static rpo_status join_sparse(const picked *k, int64_t leaves, rpo_labels *out, rpo_error *err) {
  rpo_table_maker maker;
  rpo_status status;
  RPO_TRY(rpo_table_start(&maker, k->forests[0]->columns, err));
  status = rpo_table_begin(&maker, leaves, err);
  for (int64_t i = 0; i < k->count && status == RPO_OK; i++) {
    status = k->table[i].rows > 0
                 ? rpo_table_add_rows(&maker, &k->table[i], err)
                 : rpo_table_add_tree(&maker, &k->tree[i], k->row_weight[i], &k->labels, err);
  }
  *out = maker.table;
  rpo_table_release(&maker);
  return status == RPO_OK ? rpo_table_settle(out, err) : status;
}

/* The joint leaf table, unless all trees come with rows. */
static rpo_status join_tables(const picked *k, rpo_labels *out, rpo_error *err) {
  int64_t leaves = 0;
  int tables = 0, dense = 1;
  for (int64_t i = 0; i < k->count; i++) {
    leaves += k->tree[i].n_leaves;
    tables |= k->table[i].rows > 0;
    dense &= k->table[i].dense != NULL;
  }
  if (!tables) return RPO_OK;
  return dense ? join_dense(k, leaves, out, err) : join_sparse(k, leaves, out, err);
}

rpo_status rpo_forest_pick(const rpo_forest *const *forests, int64_t n_forests, const int64_t *pick,
                           int64_t count, rpo_forest **out, rpo_error *err) {
  RPO_TRY(check_pick(forests, n_forests, pick, count, err));
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  for (int64_t i = 0; i < n_forests; i++) {
    RPO_TRY(rpo_refuse_boosted(forests[i], "picked trees", err));
    RPO_TRY(rpo_model_check(forests[i], err));
  }
  const rpo_forest *const first = forests[0];
  rpo_status status;
  rpo_labels table;
  picked k;
  memset(&table, 0, sizeof table);
  memset(&k, 0, sizeof k);
  k.forests = forests;
  k.pick = pick;
  k.count = count;
  RPO_GOTO(copy_out(&k, err));
  RPO_GOTO(join_tables(&k, &table, err));
  rpo_model_parts const parts = {count,
                                 first->inputs,
                                 first->outputs,
                                 first->rows,
                                 first->ratio,
                                 first->shares,
                                 k.tree,
                                 k.sampling,
                                 (const double *const *)k.row_weight,
                                 table.rows > 0 ? NULL : &k.labels,
                                 table.rows > 0 ? &table : NULL,
                                 first->ratio ? first->fallback.data : NULL,
                                 NULL};
  RPO_GOTO(rpo_model_pack(&parts, NULL, out, err));
done:
  rpo_labels_release(&table);
  picked_release(&k);
  return status;
}
