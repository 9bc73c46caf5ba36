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

static rpo_status damaged(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_EFORMAT, "damaged model: %s", what);
}

static rpo_status read_sections(const char *block, int64_t bytes, rpo_array *found,
                                rpo_error *err) {
  rpo_header head;
  if (bytes < (int64_t)sizeof head) return damaged(err, "shorter than its header");
  memcpy(&head, block, sizeof head);
  if (memcmp(head.magic, RPO_MAGIC, 8) != 0) {
    return rpo_fail(err, RPO_EFORMAT, "not a model: it does not begin with %s", RPO_MAGIC);
  }
  if (head.version != RPO_FORMAT_VERSION) {
    return rpo_fail(err, RPO_EFORMAT, "model format %u is not known here (this library reads %d)",
                    head.version, RPO_FORMAT_VERSION);
  }
  if (head.bytes != (uint64_t)bytes) return damaged(err, "its length is not the one in its header");
  if (head.sections > RPO_SECTIONS ||
      sizeof head + head.sections * sizeof(rpo_table_row) > (uint64_t)bytes) {
    return damaged(err, "too many sections");
  }
  for (uint32_t i = 0; i < head.sections; i++) {
    rpo_table_row s;
    memcpy(&s, block + sizeof head + i * sizeof s, sizeof s);
    int64_t const size = rpo_type_size((int32_t)s.type);
    if (s.id >= RPO_SECTIONS || size == 0 || s.offset % RPO_BOUNDARY != 0 ||
        s.offset > (uint64_t)bytes || s.count > ((uint64_t)bytes - s.offset) / (uint64_t)size) {
      return damaged(err, "a section lies outside the file");
    }
    if (found[s.id].data != NULL) return damaged(err, "a section occurs twice");
    if (s.offset < sizeof head + head.sections * sizeof s) {
      return damaged(err, "a section lies in the table of sections");
    }
    found[s.id].data = block + s.offset;
    found[s.id].count = (int64_t)s.count;
    found[s.id].type = (int32_t)s.type;
  }
  return RPO_OK;
}

static rpo_status check_sum(const char *block, int64_t bytes, rpo_error *err) {
  rpo_header head;
  memcpy(&head, block, sizeof head);
  if (rpo_checksum_agrees(rpo_block_checksum(block, bytes, &head), head.checksum)) return RPO_OK;
  return damaged(err, "the checksum is wrong");
}

static rpo_status expect(const rpo_array *a, int32_t family, int64_t count, const char *what,
                         rpo_error *err) {
  if (a->data == NULL || a->count != count || !rpo_type_allowed(family, a->type)) {
    return damaged(err, what);
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
  int64_t const inner = m->feature.count, leaves = m->leaf_rows.count;
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
  return expect(&m->leaf_rows, RPO_COUNT, leaves, "the leaves' rows", err);
}

static rpo_status attach_rows(rpo_model *m, const rpo_array *found, rpo_error *err) {
  rpo_leaf_rows *const s = &m->s;
  s->row = found[RPO_SEC_ROWS];
  s->weight = found[RPO_SEC_ROW_WEIGHT];
  RPO_TRY(expect(&found[RPO_SEC_ROW_START], RPO_TYPE_I64, m->trees + 1, "the row starts", err));
  s->tree_start = found[RPO_SEC_ROW_START].data;
  RPO_TRY(expect(&s->row, RPO_INDEX, s->row.count, "the rows section", err));
  if (s->weight.data == NULL) return RPO_OK;
  return expect(&s->weight, RPO_ANY, s->row.count, "the row weights", err);
}

/* Rows of the values: by training row in the rows form, else by leaf. */
static int64_t value_rows(const rpo_model *m) {
  return rpo_has_rows(m) ? m->rows : m->leaf_rows.count;
}

/* Leaves hold single or half precision numbers: one, or one an output. */
static rpo_status attach_boosted(rpo_model *m, const rpo_array *found, rpo_error *err) {
  const rpo_array *const start = &found[RPO_SEC_START], *const step = &found[RPO_SEC_STEP];
  int const sparse = found[RPO_SEC_VALUE_START].data != NULL;
  RPO_TRY(expect(start, RPO_TYPE_F64, m->outputs, "the constants", err));
  m->start = start->data;
  if (m->ratio || m->shares || found[RPO_SEC_ROWS].data != NULL ||
      (m->value.type != RPO_TYPE_F32 && m->value.type != RPO_TYPE_F16) ||
      (sparse && m->value.data == NULL)) {
    return damaged(err, "the values");
  }
  if (step->data == NULL) return RPO_OK;
  RPO_TRY(expect(step, RPO_TYPE_F32, m->trees * m->outputs, "the steps", err));
  if (sparse) return damaged(err, "the values");
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
  } else if (found[RPO_SEC_STEP].data != NULL) {
    return damaged(err, "the steps"); /* readouts of means have none */
  }
  if (found[RPO_SEC_ROWS].data != NULL) RPO_TRY(attach_rows(m, found, err));
  int64_t const rows = value_rows(m), entries = m->value_index.count;
  int32_t const family = m->start != NULL ? m->value.type : RPO_ANY;
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
    if (shape[i] < 1 || shape[i] > INT32_MAX) return damaged(err, "the shape");
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

#define MOST_DRAWS (INT64_C(1) << 53) /* as the option max_samples */

static int rises(const int64_t *start, int64_t count, int64_t last) {
  if (start[0] != 0 || start[count] != last) return 0;
  for (int64_t i = 0; i < count; i++) {
    if (start[i + 1] < start[i]) return 0;
  }
  return 1;
}

static rpo_status check_within(const rpo_array *a, int64_t bound, const char *what,
                               rpo_error *err) {
  for (int64_t i = 0; i < a->count; i++) {
    int64_t const v = rpo_array_whole(a, i);
    if (v < 0 || v >= bound) return damaged(err, what);
  }
  return RPO_OK;
}

/* A tree's leaves hold different rows. */
static rpo_status check_leaf_rows(const rpo_model *m, rpo_error *err) {
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t left = m->rows;
    for (int64_t l = m->leaf_start[t]; l < m->leaf_start[t + 1]; l++) {
      int64_t const here = rpo_array_whole(&m->leaf_rows, l);
      if (here < 0 || here > left) return damaged(err, "a leaf has too many rows");
      left -= here;
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
  if (m->leaf_start[tree + 1] - m->leaf_start[tree] != inner + 1) {
    return damaged(err, "a tree has the wrong number of leaves");
  }
  end[0] = inner;
  leaf[0] = 0;
  for (int64_t i = 0; i < inner; i++) {
    int64_t const left = rpo_array_whole(&m->left, first + i);
    int64_t const right = rpo_array_whole(&m->right, first + i);
    int64_t const middle = right >= 0 ? right : end[i]; /* where inner nodes to the left end */
    int const good = middle > i && middle <= end[i] && (right < 0 || middle < end[i]) &&
                     left == (middle > i + 1 ? i + 1 : ~leaf[i]) &&
                     (right >= 0 || ~right == leaf[i] + end[i] - i);
    if (!good) return damaged(err, "a child is out of place");
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
      return damaged(err, "the flags of a node");
    }
  }
  return RPO_OK;
}

static rpo_status check_trees(const rpo_model *m, rpo_error *err) {
  int64_t const inner = m->feature.count, leaves = m->leaf_rows.count;
  if (!rises(m->inner_start, m->trees, inner) || !rises(m->leaf_start, m->trees, leaves)) {
    return damaged(err, "the node starts");
  }
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const draws = m->sampling[3 * t + 2];
    if (draws < 0 || draws > MOST_DRAWS) return damaged(err, "the draws of a tree");
  }
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
    const rpo_leaf_rows *const s = &m->s;
    if (!rises(s->tree_start, m->trees, s->row.count)) return damaged(err, "the rows section");
    for (int64_t t = 0; t < m->trees; t++) { /* a tree's rows are counted in 32 bits */
      if (s->tree_start[t + 1] - s->tree_start[t] > m->rows) return damaged(err, "the row starts");
    }
    RPO_TRY(check_within(&s->row, m->rows, "a training row is out of range", err));
  }
  if (m->value_start == NULL) return RPO_OK;
  if (!rises(m->value_start, value_rows(m), m->value_index.count)) {
    return damaged(err, "the values");
  }
  return check_within(&m->value_index, m->columns, "a label is out of range", err);
}

rpo_status rpo_leaf_rows_start(const rpo_model *m, rpo_leaf_rows *s, rpo_error *err) {
  s->start = rpo_new(m->leaf_start[m->trees] + m->trees, 4);
  if (s->start == NULL) return rpo_fail_memory(err, "the model");
  for (int64_t t = 0; t < m->trees; t++) {
    uint32_t *const start = s->start + m->leaf_start[t] + t;
    int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
    int64_t const rows = s->tree_start[t + 1] - s->tree_start[t];
    int64_t sum = 0;
    for (int64_t l = 0; l < leaves; l++) {
      start[l] = (uint32_t)sum;
      int64_t const here = rpo_array_whole(&m->leaf_rows, m->leaf_start[t] + l);
      if (here < 1) return damaged(err, "a leaf has no rows");
      if (here > rows - sum) return damaged(err, "a leaf has too many rows");
      sum += here;
    }
    start[leaves] = (uint32_t)sum;
    if (sum != rows) return damaged(err, "rows of leaves do not add up");
  }
  return RPO_OK;
}

/* Makes what a model owns beside the block, and takes that over. */
static rpo_status take(const rpo_model *attached, char *block, rpo_model **out, rpo_error *err) {
  rpo_model *const m = rpo_new(1, (int64_t)sizeof *m);
  if (m == NULL) return rpo_fail_memory(err, "the model");
  *m = *attached;
  rpo_status const status = rpo_has_rows(m) ? rpo_leaf_rows_start(m, &m->s, err) : RPO_OK;
  if (status != RPO_OK) {
    rpo_delete(m->s.start);
    rpo_delete(m);
    return status;
  }
  m->block = block;
  *out = m;
  return RPO_OK;
}

rpo_status rpo_model_adopt(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_model m;
  RPO_TRY(attach(block, bytes, &m, err));
  return take(&m, block, out, err);
}

rpo_status rpo_model_open(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_model m;
  RPO_TRY(attach(block, bytes, &m, err));
  RPO_TRY(check_sum(block, bytes, err));
  RPO_TRY(check_trees(&m, err));
  RPO_TRY(check_readout(&m, err));
  return take(&m, block, out, err);
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
  copy_numbers(&m->leaf_rows, leaf, t.n_leaves, RPO_TYPE_I32, t.leaf_start + 1);
  t.leaf_start[0] = 0;
  for (int64_t l = 0; l < t.n_leaves; l++) t.leaf_start[l + 1] += t.leaf_start[l];
  if (rpo_has_rows(m)) {
    int64_t const row = m->s.tree_start[tree];
    copy_numbers(&m->s.row, row, t.n_rows, RPO_TYPE_I32, t.rows);
    if (weight != NULL) copy_numbers(&m->s.weight, row, t.n_rows, RPO_TYPE_F64, weight);
  }
  *out = t;
  *row_weight = weight;
  return RPO_OK;
}
