#include "model.h"

#include <string.h>

#include "array.h"
#include "format.h"
#include "mem.h"

/* ---- Labels ---- */

void rpo_labels_release(rpo_labels *labels) {
  rpo_delete(labels->dense);
  rpo_delete(labels->start);
  rpo_delete(labels->index);
  rpo_delete(labels->value);
  memset(labels, 0, sizeof *labels);
}

/* Values that are all 1 need not be kept. */
static void drop_ones(rpo_labels *l, int64_t stored) {
  if (l->value == NULL) return;
  for (int64_t e = 0; e < stored; e++) {
    if (l->value[e] != 1.0) return;
  }
  rpo_delete(l->value);
  l->value = NULL;
}

rpo_status rpo_labels_new(const rpo_matrix *Y, rpo_labels *out, rpo_error *err) {
  rpo_labels l;
  memset(&l, 0, sizeof l);
  l.rows = Y->rows;
  l.columns = Y->cols;
  if (Y->format == RPO_DENSE) {
    l.dense = Y->rows > INT64_MAX / Y->cols ? NULL : rpo_new(Y->rows * Y->cols, 8);
    if (l.dense == NULL) return rpo_fail_memory(err, "the labels");
    for (int64_t i = 0; i < Y->rows; i++) {
      for (int64_t j = 0; j < Y->cols; j++) l.dense[i * Y->cols + j] = rpo_dense_at(Y, i, j);
    }
  } else {
    int64_t const stored = rpo_ptr_at(Y, Y->rows);
    l.start = rpo_new(Y->rows + 1, 8);
    l.index = rpo_new(stored, 8);
    l.value = Y->data == NULL ? NULL : rpo_new(stored, 8);
    if (l.start == NULL || l.index == NULL || (Y->data != NULL && l.value == NULL)) {
      rpo_labels_release(&l);
      return rpo_fail_memory(err, "the labels");
    }
    for (int64_t i = 0; i <= Y->rows; i++) l.start[i] = rpo_ptr_at(Y, i);
    for (int64_t e = 0; e < stored; e++) {
      l.index[e] = rpo_index_at(Y->indices, Y->index, e);
      if (l.value != NULL) l.value[e] = rpo_value_at(Y->data, Y->dtype, e);
    }
    drop_ones(&l, stored);
  }
  *out = l;
  return RPO_OK;
}

static void copy_numbers(const rpo_array *a, int64_t first, int64_t count, int32_t type, void *to) {
  rpo_array const part = rpo_array_part(a, first, count);
  rpo_array_convert(&part, type, to);
}

rpo_status rpo_model_labels(const rpo_model *m, int64_t first, int64_t end, rpo_labels *out,
                            rpo_error *err) {
  rpo_labels l;
  memset(&l, 0, sizeof l);
  l.rows = end - first;
  l.columns = m->columns;
  int const sparse = m->value_start != NULL, values = m->value.data != NULL;
  int64_t const begin = sparse ? m->value_start[first] : first * l.columns;
  int64_t const count = sparse ? m->value_start[end] - begin : l.rows * l.columns;
  double *const value = values ? rpo_new(count, 8) : NULL;
  if (sparse) {
    l.start = rpo_new(l.rows + 1, 8);
    l.index = rpo_new(count, 8);
    l.value = value;
  } else {
    l.dense = value;
  }
  if ((values && value == NULL) || (sparse && (l.start == NULL || l.index == NULL))) {
    rpo_labels_release(&l);
    return rpo_fail_memory(err, "the labels");
  }
  for (int64_t i = 0; sparse && i <= l.rows; i++) l.start[i] = m->value_start[first + i] - begin;
  if (sparse) copy_numbers(&m->value_index, begin, count, RPO_TYPE_I64, l.index);
  if (values) copy_numbers(&m->value, begin, count, RPO_TYPE_F64, value);
  *out = l;
  return RPO_OK;
}

/* ---- Sections: where they lie, of what type and length ---- */

static rpo_status read_sections(const char *block, int64_t bytes, rpo_array *found,
                                rpo_error *err) {
  rpo_header head;
  RPO_TRY(rpo_table_check(block, bytes, &head, err));
  if (head.kind != RPO_MODEL_FOREST) {
    return rpo_fail(err, RPO_EFORMAT, "a file of kind %u, not a forest", head.kind);
  }
  for (uint32_t i = 0; i < head.sections; i++) {
    rpo_table_row const s = rpo_table_at(block, i);
    if (s.id >= RPO_SECTIONS || found[s.id].data != NULL) {
      return rpo_fail(err, RPO_EFORMAT, "damaged model: section %u has the id %u, unknown or twice",
                      i, s.id);
    }
    rpo_array const section = {block + s.offset, s.count, (int32_t)s.type};
    found[s.id] = section;
  }
  return RPO_OK;
}

static rpo_status expect(const rpo_array *a, int32_t family, int64_t count, const char *what,
                         rpo_error *err) {
  if (a->data == NULL || a->count != count || !rpo_type_allowed(family, a->type)) {
    return rpo_damaged(err, what);
  }
  return RPO_OK;
}

static rpo_status attach_trees(rpo_model *m, const rpo_array *found, rpo_error *err) {
  m->sampling = found[RPO_SEC_SAMPLING].data;
  m->inner_start = found[RPO_SEC_INNER_START].data;
  m->leaf_start = found[RPO_SEC_LEAF_START].data;
  m->feature = found[RPO_SEC_FEATURE];
  m->threshold = found[RPO_SEC_THRESHOLD];
  m->left = found[RPO_SEC_LEFT];
  m->right = found[RPO_SEC_RIGHT];
  m->impurity = found[RPO_SEC_IMPURITY];
  m->leaf_impurity = found[RPO_SEC_LEAF_IMPURITY];
  m->leaf_weight = found[RPO_SEC_LEAF_WEIGHT];
  m->leaf_rows = found[RPO_SEC_LEAF_ROWS];
  m->sample_weight = found[RPO_SEC_SAMPLE_WEIGHT];
  m->flags = found[RPO_SEC_FLAGS].data;
  int64_t const inner = m->feature.count, leaves = m->leaf_weight.count;
  RPO_TRY(expect(&found[RPO_SEC_SAMPLING], RPO_TYPE_I64, 3 * m->trees, "the sampling", err));
  RPO_TRY(expect(&found[RPO_SEC_INNER_START], RPO_TYPE_I64, m->trees + 1, "the node starts", err));
  RPO_TRY(expect(&found[RPO_SEC_LEAF_START], RPO_TYPE_I64, m->trees + 1, "the leaf starts", err));
  RPO_TRY(expect(&m->feature, RPO_INDEX, inner, "the features", err));
  RPO_TRY(expect(&m->threshold, RPO_REAL, inner, "the thresholds", err));
  RPO_TRY(expect(&m->left, RPO_CHILD, inner, "the children", err));
  RPO_TRY(expect(&m->right, m->left.type, inner, "the children", err));
  RPO_TRY(expect(&m->impurity, RPO_TYPE_F32, inner, "the impurities", err));
  RPO_TRY(expect(&found[RPO_SEC_FLAGS], RPO_TYPE_U8, inner, "the flags of nodes", err));
  RPO_TRY(expect(&m->leaf_impurity, RPO_ANY, leaves, "the leaves' impurities", err));
  RPO_TRY(expect(&m->leaf_weight, RPO_ANY, leaves, "the leaves' weights", err));
  if (m->sample_weight.data != NULL) {
    RPO_TRY(expect(&m->sample_weight, RPO_ANY, leaves, "the leaves' sample weights", err));
  }
  if (found[RPO_SEC_ROWS].data != NULL) return RPO_OK;
  return expect(&m->leaf_rows, RPO_COUNT, leaves, "the leaves' rows", err);
}

static rpo_status attach_rows(rpo_model *m, const rpo_array *found, rpo_error *err) {
  rpo_leaf_rows *const s = &m->s;
  s->row = found[RPO_SEC_ROWS];
  s->weight = found[RPO_SEC_ROW_WEIGHT];
  s->start = found[RPO_SEC_LEAF_FIRST];
  RPO_TRY(expect(&found[RPO_SEC_ROW_START], RPO_TYPE_I64, m->trees + 1, "the row starts", err));
  s->tree_start = found[RPO_SEC_ROW_START].data;
  RPO_TRY(expect(&s->start, RPO_INDEX, rpo_leaves(m) + m->trees, "the leaves' first rows", err));
  RPO_TRY(expect(&s->row, RPO_INDEX, s->row.count, "the rows section", err));
  if (s->weight.data == NULL) return RPO_OK;
  return expect(&s->weight, RPO_ANY, s->row.count, "the row weights", err);
}

/* Rows of the values: by training row in the rows form, else by leaf. */
static int64_t value_rows(const rpo_model *m) { return rpo_has_rows(m) ? m->rows : rpo_leaves(m); }

/* Leaves hold single or half precision numbers: one, or one an output. */
static rpo_status attach_boosted(rpo_model *m, const rpo_array *found, rpo_error *err) {
  const rpo_array *const start = &found[RPO_SEC_START], *const step = &found[RPO_SEC_STEP];
  int const sparse = found[RPO_SEC_VALUE_START].data != NULL;
  RPO_TRY(expect(start, RPO_TYPE_F64, m->outputs, "the constants", err));
  m->start = start->data;
  if (m->ratio || m->shares || found[RPO_SEC_ROWS].data != NULL ||
      (m->value.type != RPO_TYPE_F32 && m->value.type != RPO_TYPE_F16) ||
      (sparse && m->value.data == NULL)) {
    return rpo_damaged(err, "the values");
  }
  if (step->data == NULL) return RPO_OK;
  RPO_TRY(expect(step, RPO_TYPE_F32, m->trees * m->outputs, "the steps", err));
  if (sparse) return rpo_damaged(err, "the values");
  m->step = step->data;
  return RPO_OK;
}

static rpo_status attach_readout(rpo_model *m, const rpo_array *found, rpo_error *err) {
  m->value_index = found[RPO_SEC_VALUE_INDEX];
  m->value = found[RPO_SEC_VALUE];
  if (m->ratio) {
    m->fallback = found[RPO_SEC_FALLBACK];
    RPO_TRY(expect(&m->fallback, RPO_TYPE_F64, m->outputs, "the fallback section", err));
  }
  if (found[RPO_SEC_START].data != NULL) {
    RPO_TRY(attach_boosted(m, found, err));
  } else if (found[RPO_SEC_STEP].data != NULL || m->value.type == RPO_TYPE_F16) {
    return rpo_damaged(err, "the values"); /* readouts of means know neither */
  }
  if (found[RPO_SEC_ROWS].data != NULL) RPO_TRY(attach_rows(m, found, err));
  int64_t const rows = value_rows(m), entries = m->value_index.count;
  int32_t const family = m->start != NULL ? m->value.type : RPO_ANY; /* see attach_boosted */
  if (found[RPO_SEC_VALUE_START].data == NULL) {
    int64_t const each = m->step != NULL ? 1 : m->columns;
    return expect(&m->value, family, rows * each, "the values", err);
  }
  RPO_TRY(expect(&found[RPO_SEC_VALUE_START], RPO_TYPE_I64, rows + 1, "the value starts", err));
  m->value_start = found[RPO_SEC_VALUE_START].data;
  RPO_TRY(expect(&m->value_index, RPO_INDEX, entries, "the values", err));
  return m->value.data == NULL ? RPO_OK : expect(&m->value, family, entries, "the values", err);
}

/* A model that looks into the block, with nothing of its own yet. */
static rpo_status attach(const char *block, int64_t bytes, rpo_model *m, rpo_error *err) {
  rpo_array found[RPO_SECTIONS];
  memset(m, 0, sizeof *m);
  memset(found, 0, sizeof found);
  RPO_TRY(read_sections(block, bytes, found, err));
  RPO_TRY(expect(&found[RPO_SEC_SHAPE], RPO_TYPE_I64, 6, "the shape", err));
  const int64_t *const shape = found[RPO_SEC_SHAPE].data;
  for (int i = 0; i < 4; i++) {
    if (shape == NULL || shape[i] < 1 || shape[i] > INT32_MAX) return rpo_damaged(err, "the shape");
  }
  m->bytes = bytes;
  m->trees = shape[0];
  m->inputs = shape[1];
  m->outputs = shape[2];
  m->rows = shape[3];
  m->ratio = shape[4] != 0;
  m->shares = shape[5] != 0;
  m->columns = m->outputs * (m->ratio ? 2 : 1);
  m->note = found[RPO_SEC_NOTE];
  RPO_TRY(attach_trees(m, found, err));
  return attach_readout(m, found, err);
}

/* ---- Contents: never trusted ---- */

static int rises(const int64_t *start, int64_t count, int64_t last) {
  if (start[0] != 0 || start[count] != last) return 0;
  for (int64_t i = 0; i < count; i++) {
    if (start[i + 1] < start[i]) return 0;
  }
  return 1;
}

/* Where trees begin: a few numbers a tree, checked of mapped files, too. */
static rpo_status check_starts(const rpo_model *m, rpo_error *err) {
  if (!rises(m->inner_start, m->trees, m->feature.count) ||
      !rises(m->leaf_start, m->trees, rpo_leaves(m))) {
    return rpo_damaged(err, "the node starts");
  }
  const int64_t *const rows = m->s.tree_start;
  if (rows != NULL && !rises(rows, m->trees, m->s.row.count)) {
    return rpo_damaged(err, "the row starts");
  }
  for (int64_t t = 0; t < m->trees; t++) {
    if (m->leaf_start[t + 1] - m->leaf_start[t] != m->inner_start[t + 1] - m->inner_start[t] + 1) {
      return rpo_damaged(err, "a tree has the wrong number of leaves");
    }
    if (rows != NULL && rows[t + 1] - rows[t] > m->rows) {
      return rpo_damaged(err, "the row starts");
    }
    int64_t const draws = m->sampling[3 * t + 2];
    if (draws < 0 || draws > INT32_MAX) return rpo_damaged(err, "the draws of a sample");
  }
  return RPO_OK;
}

static rpo_status check_within(const rpo_array *a, int64_t bound, const char *what,
                               rpo_error *err) {
  for (int64_t i = 0; i < a->count; i++) {
    int64_t const v = rpo_array_whole(a, i);
    if (v < 0 || v >= bound) return rpo_damaged(err, what);
  }
  return RPO_OK;
}

/* A tree's leaves hold different rows. */
static rpo_status check_leaf_rows(const rpo_model *m, rpo_error *err) {
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
    int64_t left = rpo_has_rows(m) ? m->s.tree_start[t + 1] - m->s.tree_start[t] : m->rows;
    if (rpo_has_rows(m) && rpo_leaf_begin(m, &m->s, t, 0) != m->s.tree_start[t]) {
      return rpo_damaged(err, "the first leaf's rows begin too late");
    }
    for (int64_t l = 0; l < leaves; l++) {
      int64_t const here = rpo_leaf_size(m, t, l);
      if (here < rpo_has_rows(m)) return rpo_damaged(err, "a leaf has no rows");
      if (here > left) return rpo_damaged(err, "a leaf has too many rows");
      left -= here;
    }
    if (rpo_has_rows(m) && left != 0) {
      return rpo_damaged(err, "rows of leaves do not add up");
    }
  }
  return RPO_OK;
}

/* Inner nodes and leaves each lie in preorder. What is below node i are the inner nodes i + 1 .. end[i]
 * and the leaves from leaf[i] on, one more of them than inner nodes with i: left ones first. So every
 * node has one parent, and every walk ends. */
static rpo_status check_children(const rpo_model *m, int64_t tree, int64_t *end, int64_t *leaf,
                                 rpo_error *err) {
  int64_t const first = m->inner_start[tree], inner = m->inner_start[tree + 1] - first;
  end[0] = inner;
  leaf[0] = 0;
  for (int64_t i = 0; i < inner; i++) {
    int64_t const left = rpo_array_whole(&m->left, first + i);
    int64_t const right = rpo_array_whole(&m->right, first + i);
    int64_t const middle = right >= 0 ? right : end[i]; /* where inner nodes to the left end */
    int const good = middle > i && middle <= end[i] && (right < 0 || middle < end[i]) &&
                     left == (middle > i + 1 ? i + 1 : ~leaf[i]) &&
                     (right >= 0 || ~right == leaf[i] + end[i] - i);
    if (!good) return rpo_damaged(err, "a child is out of place");
    if (left >= 0) {
      end[left] = middle;
      leaf[left] = leaf[i];
    }
    if (right >= 0) {
      end[right] = end[i];
      leaf[right] = leaf[i] + right - i;
    }
    int const missing = m->flags[first + i] & RPO_MISSING_LEFT;
    if (m->flags[first + i] !=
        rpo_node_flags(missing, left < 0, rpo_array_number(&m->threshold, first + i))) {
      return rpo_damaged(err, "the flags of a node");
    }
  }
  return RPO_OK;
}

static rpo_status check_trees(const rpo_model *m, rpo_error *err) {
  RPO_TRY(check_leaf_rows(m, err));
  RPO_TRY(check_within(&m->feature, m->inputs, "a feature is out of range", err));
  int64_t most = 1;
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const here = m->inner_start[t + 1] - m->inner_start[t];
    most = here > most ? here : most;
  }
  int64_t *const end = rpo_new(2 * most, 8);
  if (end == NULL) return rpo_fail_memory(err, "the model");
  rpo_status status = RPO_OK;
  for (int64_t t = 0; t < m->trees && status == RPO_OK; t++) {
    status = check_children(m, t, end, end + most, err);
  }
  rpo_delete(end);
  return status;
}

static rpo_status check_readout(const rpo_model *m, rpo_error *err) {
  if (rpo_has_rows(m)) {
    RPO_TRY(check_within(&m->s.row, m->rows, "a training row is out of range", err));
  }
  if (m->value_start == NULL) return RPO_OK;
  if (!rises(m->value_start, value_rows(m), m->value_index.count)) {
    return rpo_damaged(err, "the values");
  }
  return check_within(&m->value_index, m->columns, "a label is out of range", err);
}

rpo_status rpo_model_check(const rpo_model *m, rpo_error *err) {
  if (m == NULL || m->trusted) return RPO_OK;
  RPO_TRY(check_trees(m, err));
  return check_readout(m, err);
}

rpo_status rpo_untrusted(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_EFORMAT, "damaged model, opened unchecked: %s", what);
}

static rpo_status take(const rpo_model *attached, char *block, int mapped, int trusted,
                       rpo_model **out, rpo_error *err) {
  rpo_model *const m = rpo_new(1, (int64_t)sizeof *m);
  if (m == NULL) return rpo_fail_memory(err, "the model");
  *m = *attached;
  m->block = block;
  m->mapped = mapped;
  m->trusted = trusted;
  *out = m;
  return RPO_OK;
}

rpo_status rpo_model_adopt(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_model m;
  RPO_TRY(attach(block, bytes, &m, err));
  return take(&m, block, 0, 1, out, err);
}

rpo_status rpo_model_open(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_header head;
  rpo_model m;
  RPO_TRY(rpo_table_check(block, bytes, &head, err));
  rpo_block_turn(block, &head);
  RPO_TRY(rpo_sections_check(block, &head, err));
  RPO_TRY(attach(block, bytes, &m, err));
  RPO_TRY(check_starts(&m, err));
  RPO_TRY(rpo_model_check(&m, err));
  return take(&m, block, 0, 1, out, err);
}

rpo_status rpo_model_open_mapped(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_model m;
  RPO_TRY(attach(block, bytes, &m, err));
  RPO_TRY(check_starts(&m, err));
  return take(&m, block, 1, 0, out, err);
}

/* ---- Copies ---- */

rpo_status rpo_model_tree(const rpo_model *m, int64_t tree, rpo_tree *out, double **row_weight,
                          rpo_error *err) {
  int64_t const first = m->inner_start[tree], leaf = m->leaf_start[tree];
  rpo_tree t;
  memset(&t, 0, sizeof t);
  t.n_inner = m->inner_start[tree + 1] - first;
  t.n_leaves = t.n_inner + 1;
  t.feature = rpo_new(t.n_inner, 4);
  t.left = rpo_new(t.n_inner, 4);
  t.right = rpo_new(t.n_inner, 4);
  t.threshold = rpo_new(t.n_inner, 8);
  t.missing_left = rpo_new(t.n_inner, 1);
  t.impurity = rpo_new(t.n_inner, 4);
  t.leaf_impurity = rpo_new(t.n_leaves, 4);
  t.leaf_weight = rpo_new(t.n_leaves, 8);
  t.leaf_start = rpo_new(t.n_leaves + 1, 4);
  int const sampled = m->sample_weight.data != NULL;
  if (sampled) t.sample_weight = rpo_new(t.n_leaves, 8);
  if (rpo_has_rows(m)) t.n_rows = m->s.tree_start[tree + 1] - m->s.tree_start[tree];
  t.rows = rpo_new(t.n_rows, 4);
  double *weight = m->s.weight.data == NULL ? NULL : rpo_new(t.n_rows, 8);
  if (t.feature == NULL || t.left == NULL || t.right == NULL || t.threshold == NULL ||
      t.missing_left == NULL || t.impurity == NULL || t.leaf_impurity == NULL ||
      t.leaf_weight == NULL || t.leaf_start == NULL || t.rows == NULL ||
      (sampled && t.sample_weight == NULL) || (weight == NULL && m->s.weight.data != NULL)) {
    rpo_tree_release(&t);
    rpo_delete(weight);
    return rpo_fail_memory(err, "a tree");
  }
  copy_numbers(&m->feature, first, t.n_inner, RPO_TYPE_I32, t.feature);
  copy_numbers(&m->left, first, t.n_inner, RPO_TYPE_I32, t.left);
  copy_numbers(&m->right, first, t.n_inner, RPO_TYPE_I32, t.right);
  copy_numbers(&m->threshold, first, t.n_inner, RPO_TYPE_F64, t.threshold);
  copy_numbers(&m->impurity, first, t.n_inner, RPO_TYPE_F32, t.impurity);
  for (int64_t i = 0; i < t.n_inner; i++)
    t.missing_left[i] = m->flags[first + i] & RPO_MISSING_LEFT;
  copy_numbers(&m->leaf_impurity, leaf, t.n_leaves, RPO_TYPE_F32, t.leaf_impurity);
  copy_numbers(&m->leaf_weight, leaf, t.n_leaves, RPO_TYPE_F64, t.leaf_weight);
  if (sampled) copy_numbers(&m->sample_weight, leaf, t.n_leaves, RPO_TYPE_F64, t.sample_weight);
  t.leaf_start[0] = 0;
  for (int64_t l = 0; l < t.n_leaves; l++) {
    t.leaf_start[l + 1] = t.leaf_start[l] + (int32_t)rpo_leaf_size(m, tree, l);
  }
  if (rpo_has_rows(m)) {
    int64_t const row = m->s.tree_start[tree];
    copy_numbers(&m->s.row, row, t.n_rows, RPO_TYPE_I32, t.rows);
    if (weight != NULL) copy_numbers(&m->s.weight, row, t.n_rows, RPO_TYPE_F64, weight);
  }
  *out = t;
  *row_weight = weight;
  return RPO_OK;
}
