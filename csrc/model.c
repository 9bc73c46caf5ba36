#include "model.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "checksum.h"
#include "mem.h"

#define MAGIC "RPOMODEL"
#define VERSION 1
#define BOUNDARY 64

typedef struct header {
  char magic[8];
  uint32_t version, sections;
  uint64_t bytes, checksum; /* of everything else */
} header;

typedef struct section {
  uint32_t id, type;
  uint64_t offset, count;
} section;

static int64_t type_size(uint32_t type) {
  switch (type) {
    case RPO_TYPE_U8: return 1;
    case RPO_TYPE_U16:
    case RPO_TYPE_I16: return 2;
    case RPO_TYPE_I32:
    case RPO_TYPE_F32: return 4;
    case RPO_TYPE_I64:
    case RPO_TYPE_F64: return 8;
    default: return 0;
  }
}

int64_t rpo_array_whole(const rpo_array *a, int64_t i) {
  switch (a->type) {
    case RPO_TYPE_U8: return ((const uint8_t *)a->data)[i];
    case RPO_TYPE_U16: return ((const uint16_t *)a->data)[i];
    case RPO_TYPE_I16: return ((const int16_t *)a->data)[i];
    case RPO_TYPE_I32: return ((const int32_t *)a->data)[i];
    case RPO_TYPE_I64: return ((const int64_t *)a->data)[i];
    default: return (int64_t)rpo_array_number(a, i);
  }
}

double rpo_array_number(const rpo_array *a, int64_t i) {
  if (a->type == RPO_TYPE_F32) return (double)((const float *)a->data)[i];
  if (a->type == RPO_TYPE_F64) return ((const double *)a->data)[i];
  return (double)rpo_array_whole(a, i);
}

/* ---- Labels ---- */

void rpo_labels_release(rpo_labels *labels) {
  rpo_delete(labels->dense);
  rpo_delete(labels->start);
  rpo_delete(labels->index);
  rpo_delete(labels->value);
  memset(labels, 0, sizeof *labels);
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
  }
  *out = l;
  return RPO_OK;
}

rpo_status rpo_model_labels(const rpo_model *m, rpo_labels *out, rpo_error *err) {
  rpo_labels l;
  memset(&l, 0, sizeof l);
  l.rows = m->rows;
  l.columns = m->columns;
  if (m->label_start == NULL) {
    l.dense = rpo_new(m->label_value.count, 8);
    if (l.dense == NULL) return rpo_fail_memory(err, "the labels");
    for (int64_t i = 0; i < m->label_value.count; i++) {
      l.dense[i] = rpo_array_number(&m->label_value, i);
    }
    *out = l;
    return RPO_OK;
  }
  int const values = m->label_value.data != NULL;
  l.start = rpo_new(m->rows + 1, 8);
  l.index = rpo_new(m->label_index.count, 8);
  if (values) l.value = rpo_new(m->label_index.count, 8);
  if (l.start == NULL || l.index == NULL || (values && l.value == NULL)) {
    rpo_labels_release(&l);
    return rpo_fail_memory(err, "the labels");
  }
  memcpy(l.start, m->label_start, (size_t)(m->rows + 1) * 8);
  for (int64_t e = 0; e < m->label_index.count; e++) {
    l.index[e] = rpo_array_whole(&m->label_index, e);
    if (values) l.value[e] = rpo_array_number(&m->label_value, e);
  }
  *out = l;
  return RPO_OK;
}

/* ---- Writing sections: the narrowest type that holds every value ---- */

/* A source of numbers: value i of the section. */
typedef double (*number_fn)(const void *context, int64_t i);

typedef struct plan {
  section table[RPO_SECTIONS];
  uint32_t sections;
  int64_t bytes;
  char *block; /* NULL while sizes are taken */
  int full;    /* a size does not fit */
} plan;

static int64_t align(int64_t bytes) { return (bytes + BOUNDARY - 1) / BOUNDARY * BOUNDARY; }

static uint32_t whole_type(double low, double high) {
  if (low >= 0 && high <= 255) return RPO_TYPE_U8;
  if (low >= 0 && high <= 65535) return RPO_TYPE_U16;
  if (low >= -32768 && high <= 32767) return RPO_TYPE_I16;
  if (low >= -2147483648.0 && high <= 2147483647.0) return RPO_TYPE_I32;
  return RPO_TYPE_F64;
}

/* What a section may be, so that readers in hot loops know a few types only. */
enum { ANY = 0, INDEX = 101, CHILD = 102, REAL = 103 };

static int type_allowed(uint32_t family, uint32_t type) {
  switch (family) {
    case ANY: return 1;
    case INDEX: return type == RPO_TYPE_U16 || type == RPO_TYPE_I32;
    case CHILD: return type == RPO_TYPE_I16 || type == RPO_TYPE_I32;
    case REAL: return type == RPO_TYPE_F32 || type == RPO_TYPE_F64;
    default: return type == family;
  }
}

static uint32_t narrowest(uint32_t family, number_fn value, const void *context, int64_t count) {
  double low = 0.0, high = 0.0;
  int whole = 1, single = 1;
  for (int64_t i = 0; i < count; i++) {
    double const v = value(context, i);
    whole &= v == floor(v) && !(v == 0.0 && signbit(v));
    single &= (double)(float)v == v;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  uint32_t const real = single ? RPO_TYPE_F32 : RPO_TYPE_F64;
  uint32_t const type = whole ? whole_type(low, high) : RPO_TYPE_F64;
  if (family == INDEX) return high <= 65535 ? RPO_TYPE_U16 : RPO_TYPE_I32;
  if (family == CHILD) return low >= -32768 && high <= 32767 ? RPO_TYPE_I16 : RPO_TYPE_I32;
  return family == REAL || type == RPO_TYPE_F64 ? real : type;
}

static void write_number(char *at, uint32_t type, int64_t i, double v) {
  switch (type) {
    case RPO_TYPE_U8: ((uint8_t *)at)[i] = (uint8_t)v; break;
    case RPO_TYPE_U16: ((uint16_t *)at)[i] = (uint16_t)v; break;
    case RPO_TYPE_I16: ((int16_t *)at)[i] = (int16_t)v; break;
    case RPO_TYPE_I32: ((int32_t *)at)[i] = (int32_t)v; break;
    case RPO_TYPE_I64: ((int64_t *)at)[i] = (int64_t)v; break;
    case RPO_TYPE_F32: ((float *)at)[i] = (float)v; break;
    default: ((double *)at)[i] = v; break;
  }
}

/* First pass: notes the section. Second: fills it. `family`: a type, or the narrowest of some. */
static void put(plan *p, rpo_section id, uint32_t family, int64_t count, number_fn value,
                const void *context) {
  if (p->block == NULL) {
    section *const s = &p->table[p->sections++];
    s->id = (uint32_t)id;
    s->type = family != ANY && family < INDEX ? family : narrowest(family, value, context, count);
    s->offset = (uint64_t)p->bytes;
    s->count = (uint64_t)count;
    if (count > (INT64_MAX / 2 - p->bytes) / 8) {
      p->full = 1;
      return;
    }
    p->bytes = align(p->bytes + count * type_size(s->type));
    return;
  }
  for (uint32_t i = 0; i < p->sections; i++) {
    const section *const s = &p->table[i];
    if (s->id != (uint32_t)id) continue;
    char *const at = p->block + s->offset;
    for (int64_t j = 0; j < count; j++) write_number(at, s->type, j, value(context, j));
  }
}

typedef struct source {
  const rpo_model_parts *parts;
  const int64_t *inner_start, *leaf_start, *row_start;
  const double *table;
  int which;
  int64_t tree; /* cursor: trees are asked for in order */
} source;

static double of_i64(const void *context, int64_t i) { return (double)((const int64_t *)context)[i]; }
static double of_f64(const void *context, int64_t i) { return ((const double *)context)[i]; }

/* Fields of trees, one tree behind the other. The context is const for the caller only: the cursor
 * spares a search. */
static const rpo_tree *tree_at(source *s, const int64_t *start, int64_t i) {
  if (i < start[s->tree]) s->tree = 0;
  while (i >= start[s->tree + 1]) s->tree++;
  return &s->parts->tree[s->tree];
}

enum { FEATURE, THRESHOLD, LEFT, RIGHT, MISSING, IMPURITY };

static double of_inner(const void *context, int64_t i) {
  source *const s = (source *)(uintptr_t)context;
  const rpo_tree *const t = tree_at(s, s->inner_start, i);
  int64_t const j = i - s->inner_start[s->tree];
  switch (s->which) {
    case FEATURE: return t->feature[j];
    case THRESHOLD: return t->threshold[j];
    case LEFT: return t->left[j];
    case RIGHT: return t->right[j];
    case MISSING: return t->missing_left[j];
    default: return (double)t->impurity[j];
  }
}

enum { LEAF_IMPURITY, LEAF_WEIGHT, LEAF_ROWS };

static double of_leaf(const void *context, int64_t i) {
  source *const s = (source *)(uintptr_t)context;
  const rpo_tree *const t = tree_at(s, s->leaf_start, i);
  int64_t const j = i - s->leaf_start[s->tree];
  if (s->which == LEAF_IMPURITY) return (double)t->leaf_impurity[j];
  if (s->which == LEAF_WEIGHT) return t->leaf_weight[j];
  return t->leaf_start[j + 1] - t->leaf_start[j];
}

enum { ROW, ROW_WEIGHT };

static double of_row(const void *context, int64_t i) {
  source *const s = (source *)(uintptr_t)context;
  const rpo_tree *const t = tree_at(s, s->row_start, i);
  int64_t const j = i - s->row_start[s->tree];
  if (s->which == ROW) return t->rows[j];
  return s->parts->row_weight[s->tree] == NULL ? 1.0 : s->parts->row_weight[s->tree][j];
}

static void put_trees(plan *p, source *s) {
  static const struct {
    rpo_section id;
    uint32_t family;
  } inner[] = {{RPO_SEC_FEATURE, INDEX}, {RPO_SEC_THRESHOLD, REAL},
               {RPO_SEC_LEFT, CHILD},    {RPO_SEC_RIGHT, CHILD},
               {RPO_SEC_MISSING_LEFT, RPO_TYPE_U8}, {RPO_SEC_IMPURITY, RPO_TYPE_F32}};
  static const rpo_section leaf[] = {RPO_SEC_LEAF_IMPURITY, RPO_SEC_LEAF_WEIGHT,
                                     RPO_SEC_LEAF_ROWS};
  int64_t const trees = s->parts->trees;
  for (int i = 0; i < 6; i++) {
    s->which = i;
    s->tree = 0;
    put(p, inner[i].id, inner[i].family, s->inner_start[trees], of_inner, s);
  }
  for (int i = 0; i < 3; i++) {
    s->which = i;
    s->tree = 0;
    put(p, leaf[i], ANY, s->leaf_start[trees], of_leaf, s);
  }
}

static void put_readout(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const trees = parts->trees;
  if (s->table != NULL) {
    int64_t const columns = parts->outputs * (parts->ratio ? 2 : 1);
    put(p, RPO_SEC_TABLE, REAL, s->leaf_start[trees] * columns, of_f64, s->table);
    return;
  }
  const rpo_labels *const l = parts->labels;
  int weighted = 0;
  put(p, RPO_SEC_ROW_START, RPO_TYPE_I64, trees + 1, of_i64, s->row_start);
  s->which = ROW;
  s->tree = 0;
  put(p, RPO_SEC_ROWS, INDEX, s->row_start[trees], of_row, s);
  for (int64_t t = 0; t < trees; t++) weighted |= parts->row_weight[t] != NULL;
  if (weighted) {
    s->which = ROW_WEIGHT;
    s->tree = 0;
    put(p, RPO_SEC_ROW_WEIGHT, ANY, s->row_start[trees], of_row, s);
  }
  if (l->dense != NULL) {
    put(p, RPO_SEC_LABEL_VALUE, ANY, l->rows * l->columns, of_f64, l->dense);
    return;
  }
  put(p, RPO_SEC_LABEL_START, RPO_TYPE_I64, l->rows + 1, of_i64, l->start);
  put(p, RPO_SEC_LABEL_INDEX, INDEX, l->start[l->rows], of_i64, l->index);
  if (l->value != NULL) put(p, RPO_SEC_LABEL_VALUE, ANY, l->start[l->rows], of_f64, l->value);
}

static void put_all(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const shape[5] = {parts->trees, parts->inputs, parts->outputs, parts->rows,
                            parts->ratio};
  put(p, RPO_SEC_SHAPE, RPO_TYPE_I64, 5, of_i64, shape);
  put(p, RPO_SEC_SAMPLING, RPO_TYPE_I64, 3 * parts->trees, of_i64, parts->sampling);
  put(p, RPO_SEC_INNER_START, RPO_TYPE_I64, parts->trees + 1, of_i64, s->inner_start);
  put(p, RPO_SEC_LEAF_START, RPO_TYPE_I64, parts->trees + 1, of_i64, s->leaf_start);
  put_trees(p, s);
  put_readout(p, s);
  if (parts->ratio) put(p, RPO_SEC_FALLBACK, RPO_TYPE_F64, parts->outputs, of_f64, parts->fallback);
}

/* ---- The leaf table ---- */

/* L = S Y of one tree: mean labels of each leaf. */
void rpo_fill_table(const rpo_tree *t, const double *weight, const rpo_labels *l, double *table) {
  for (int64_t leaf = 0; leaf < t->n_leaves; leaf++) {
    double *const out = table + leaf * l->columns;
    for (int64_t j = 0; j < l->columns; j++) out[j] = 0.0;
    for (int64_t i = t->leaf_start[leaf]; i < t->leaf_start[leaf + 1]; i++) {
      int64_t const row = t->rows[i];
      double const share = (weight == NULL ? 1.0 : weight[i]) / t->leaf_weight[leaf];
      if (l->dense != NULL) {
        for (int64_t j = 0; j < l->columns; j++) out[j] += share * l->dense[row * l->columns + j];
      } else {
        for (int64_t e = l->start[row]; e < l->start[row + 1]; e++) {
          out[l->index[e]] += share * (l->value == NULL ? 1.0 : l->value[e]);
        }
      }
    }
  }
}

/* Bytes of the two readouts, roughly: the smaller one is kept. */
static int table_is_smaller(const source *s, int64_t columns) {
  const rpo_model_parts *const parts = s->parts;
  const rpo_labels *const l = parts->labels;
  double const leaves = (double)s->leaf_start[parts->trees];
  double const rows = (double)s->row_start[parts->trees];
  int weighted = 0;
  for (int64_t t = 0; t < parts->trees; t++) weighted |= parts->row_weight[t] != NULL;
  double const row_bytes = (l->rows <= 65536 ? 2.0 : 4.0) + (weighted ? 1.0 : 0.0);
  double const label_bytes = l->dense != NULL ? 8.0 * (double)l->rows * (double)l->columns
                                              : 3.0 * (double)l->start[l->rows] + 8.0 * (double)l->rows;
  return 8.0 * leaves * (double)columns < rows * row_bytes + label_bytes;
}

static rpo_status make_table(const source *s, int64_t columns, double **out, rpo_error *err) {
  const rpo_model_parts *const parts = s->parts;
  double *const table = rpo_new(s->leaf_start[parts->trees] * columns, 8);
  if (table == NULL) return rpo_fail_memory(err, "the leaf table");
  for (int64_t t = 0; t < parts->trees; t++) {
    rpo_fill_table(&parts->tree[t], parts->row_weight[t], parts->labels,
               table + s->leaf_start[t] * columns);
  }
  *out = table;
  return RPO_OK;
}

static void count_parts(const rpo_model_parts *parts, int64_t *inner, int64_t *leaf, int64_t *row) {
  inner[0] = leaf[0] = row[0] = 0;
  for (int64_t t = 0; t < parts->trees; t++) {
    inner[t + 1] = inner[t] + parts->tree[t].n_inner;
    leaf[t + 1] = leaf[t] + parts->tree[t].n_leaves;
    row[t + 1] = row[t] + parts->tree[t].n_rows;
  }
}

/* Of everything behind the header, and of its fields. */
static uint64_t checksum_of(const char *block, int64_t bytes, const header *head) {
  uint64_t const rest = rpo_checksum(block + sizeof *head, bytes - (int64_t)sizeof *head);
  return rpo_checksum(head, (int64_t)offsetof(header, checksum)) ^ rest;
}

static void seal(char *block, uint32_t sections, int64_t bytes) {
  header head = {{0}, VERSION, sections, (uint64_t)bytes, 0};
  memcpy(head.magic, MAGIC, 8);
  head.checksum = checksum_of(block, bytes, &head);
  memcpy(block, &head, sizeof head);
}

rpo_status rpo_model_pack(const rpo_model_parts *parts, rpo_model **out, rpo_error *err) {
  int64_t const columns = parts->outputs * (parts->ratio ? 2 : 1);
  int64_t *const starts = rpo_new(3 * (parts->trees + 1), 8);
  double *table = NULL;
  char *block = NULL;
  plan p;
  rpo_status status = RPO_OK;
  memset(&p, 0, sizeof p);
  if (starts == NULL) return rpo_fail_memory(err, "the model");
  source s = {parts, starts, starts + parts->trees + 1, starts + 2 * (parts->trees + 1),
              parts->table, 0, 0};
  count_parts(parts, starts, starts + parts->trees + 1, starts + 2 * (parts->trees + 1));
  if (parts->labels != NULL && table_is_smaller(&s, columns)) {
    RPO_GOTO(make_table(&s, columns, &table, err));
    s.table = table;
  }
  p.bytes = align((int64_t)(sizeof(header) + RPO_SECTIONS * sizeof(section)));
  put_all(&p, &s);
  block = p.full ? NULL : rpo_new_zero(p.bytes, 1);
  if (block == NULL) {
    status = rpo_fail_memory(err, "the model");
    goto done;
  }
  p.block = block;
  put_all(&p, &s);
  memcpy(block + sizeof(header), p.table, p.sections * sizeof(section));
  seal(block, p.sections, p.bytes);
  RPO_GOTO(rpo_model_open(block, p.bytes, out, err));
  block = NULL;
done:
  rpo_delete(block);
  rpo_delete(table);
  rpo_delete(starts);
  return status;
}

rpo_status rpo_model_annotate(const rpo_model *m, const void *note, int64_t note_bytes,
                              char **out, int64_t *bytes, rpo_error *err) {
  header head;
  memcpy(&head, m->block, sizeof head);
  int64_t end = m->bytes; /* without an older note, which lies last */
  if (m->note.data != NULL) {
    int64_t const offset = (const char *)m->note.data - m->block;
    int64_t const first = align((int64_t)(sizeof head + RPO_SECTIONS * sizeof(section)));
    if (offset >= first && align(offset + m->note.count) == end) end = offset;
  }
  int64_t const length = note_bytes > 0 ? align(end + note_bytes) : end;
  char *const block = rpo_new_zero(length, 1);
  if (block == NULL) return rpo_fail_memory(err, "the model");
  memcpy(block, m->block, (size_t)end);
  section *const table = (section *)(void *)(block + sizeof head);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < head.sections; i++) {
    if (table[i].id != RPO_SEC_NOTE) table[kept++] = table[i];
  }
  memset(table + kept, 0, (head.sections - kept) * sizeof *table);
  if (note_bytes > 0) {
    section const added = {RPO_SEC_NOTE, RPO_TYPE_U8, (uint64_t)end, (uint64_t)note_bytes};
    table[kept++] = added;
    memcpy(block + end, note, (size_t)note_bytes);
  }
  seal(block, kept, length);
  *out = block;
  *bytes = length;
  return RPO_OK;
}

/* ---- Reading: never trusts ---- */

static rpo_status damaged(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_EFORMAT, "damaged model: %s", what);
}

static rpo_status read_sections(const char *block, int64_t bytes, rpo_array *found, rpo_error *err) {
  header head;
  if (bytes < (int64_t)sizeof head) return damaged(err, "shorter than its header");
  memcpy(&head, block, sizeof head);
  if (memcmp(head.magic, MAGIC, 8) != 0) {
    return rpo_fail(err, RPO_EFORMAT, "not a model: it does not begin with %s", MAGIC);
  }
  if (head.version != VERSION) {
    return rpo_fail(err, RPO_EFORMAT, "model format %u is not known here (this library reads %d)",
                    head.version, VERSION);
  }
  if (head.bytes != (uint64_t)bytes) return damaged(err, "its length is not the one in its header");
  if (head.sections > RPO_SECTIONS ||
      sizeof head + head.sections * sizeof(section) > (uint64_t)bytes) {
    return damaged(err, "too many sections");
  }
  if (checksum_of(block, bytes, &head) != head.checksum) {
    return damaged(err, "the checksum is wrong");
  }
  for (uint32_t i = 0; i < head.sections; i++) {
    section s;
    memcpy(&s, block + sizeof head + i * sizeof s, sizeof s);
    int64_t const size = type_size(s.type);
    if (s.id >= RPO_SECTIONS || size == 0 || s.offset % BOUNDARY != 0 ||
        s.offset > (uint64_t)bytes || s.count > ((uint64_t)bytes - s.offset) / (uint64_t)size) {
      return damaged(err, "a section lies outside the file");
    }
    found[s.id].data = block + s.offset;
    found[s.id].count = (int64_t)s.count;
    found[s.id].type = (int32_t)s.type;
  }
  return RPO_OK;
}

static rpo_status expect(const rpo_array *a, uint32_t family, int64_t count, const char *what,
                         rpo_error *err) {
  if (a->data == NULL || a->count != count || !type_allowed(family, (uint32_t)a->type)) {
    return damaged(err, what);
  }
  return RPO_OK;
}

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

/* Children come after their parent, so that every walk ends; a left one right after it (preorder).
 * `seen`, by inner node and leaf: none is the child of two, hence (by count) each of one. */
static rpo_status check_children(const rpo_model *m, uint8_t *seen, rpo_error *err) {
  uint8_t *const seen_leaf = seen + m->inner_start[m->trees];
  for (int64_t t = 0; t < m->trees; t++) {
    int64_t const first = m->inner_start[t];
    int64_t const inner = m->inner_start[t + 1] - first;
    int64_t const leaves = m->leaf_start[t + 1] - m->leaf_start[t];
    if (leaves != inner + 1) return damaged(err, "a tree has the wrong number of leaves");
    for (int64_t i = 0; i < inner; i++) {
      int64_t const child[2] = {rpo_array_whole(&m->left, first + i),
                                rpo_array_whole(&m->right, first + i)};
      for (int c = 0; c < 2; c++) {
        int const inner_good = c == 0 ? child[c] == i + 1 : child[c] > i;
        int const good = child[c] >= 0 ? inner_good && child[c] < inner : ~child[c] < leaves;
        if (!good) return damaged(err, "a child is out of place");
        uint8_t *const mark = child[c] >= 0 ? &seen[first + child[c]]
                                            : &seen_leaf[m->leaf_start[t] + ~child[c]];
        if (*mark) return damaged(err, "a node has two parents");
        *mark = 1;
      }
    }
  }
  return RPO_OK;
}

static rpo_status derive_leaf_rows(rpo_model *m, rpo_error *err) {
  int64_t const leaves = m->leaf_start[m->trees];
  m->leaf_row_start = rpo_new(leaves + 1, 8);
  if (m->leaf_row_start == NULL) return rpo_fail_memory(err, "the model");
  int64_t sum = 0;
  for (int64_t t = 0; t < m->trees; t++) {
    if (sum != m->row_start[t]) return damaged(err, "rows of leaves do not add up");
    for (int64_t l = m->leaf_start[t]; l < m->leaf_start[t + 1]; l++) {
      m->leaf_row_start[l] = sum;
      int64_t const here = rpo_array_whole(&m->leaf_rows, l);
      if (here < 0 || here > m->row.count - sum) return damaged(err, "a leaf has too many rows");
      sum += here;
    }
  }
  m->leaf_row_start[leaves] = sum;
  return sum == m->row.count ? RPO_OK : damaged(err, "rows of leaves do not add up");
}

static rpo_status open_readout(rpo_model *m, const rpo_array *found, rpo_error *err) {
  int64_t const leaves = m->leaf_start[m->trees];
  m->table = found[RPO_SEC_TABLE];
  if (m->ratio) {
    m->fallback = found[RPO_SEC_FALLBACK];
    RPO_TRY(expect(&m->fallback, RPO_TYPE_F64, m->outputs, "the fallback section", err));
  }
  if (m->table.data != NULL) {
    return expect(&m->table, REAL, leaves * m->columns, "the leaf table", err);
  }
  m->row = found[RPO_SEC_ROWS];
  m->row_weight = found[RPO_SEC_ROW_WEIGHT];
  m->label_index = found[RPO_SEC_LABEL_INDEX];
  m->label_value = found[RPO_SEC_LABEL_VALUE];
  RPO_TRY(expect(&found[RPO_SEC_ROW_START], RPO_TYPE_I64, m->trees + 1, "the row starts", err));
  m->row_start = found[RPO_SEC_ROW_START].data;
  if (m->row.data == NULL || !type_allowed(INDEX, (uint32_t)m->row.type) ||
      !rises(m->row_start, m->trees, m->row.count)) {
    return damaged(err, "the rows section");
  }
  RPO_TRY(check_within(&m->row, m->rows, "a training row is out of range", err));
  if (m->row_weight.data != NULL) {
    RPO_TRY(expect(&m->row_weight, ANY, m->row.count, "the row weights", err));
  }
  RPO_TRY(derive_leaf_rows(m, err));
  if (found[RPO_SEC_LABEL_START].data == NULL) {
    return expect(&m->label_value, ANY, m->rows * m->columns, "the labels", err);
  }
  RPO_TRY(expect(&found[RPO_SEC_LABEL_START], RPO_TYPE_I64, m->rows + 1, "the label starts", err));
  m->label_start = found[RPO_SEC_LABEL_START].data;
  if (m->label_index.data == NULL || !type_allowed(INDEX, (uint32_t)m->label_index.type) ||
      !rises(m->label_start, m->rows, m->label_index.count)) {
    return damaged(err, "the labels");
  }
  if (m->label_value.data != NULL) {
    RPO_TRY(expect(&m->label_value, ANY, m->label_index.count, "the label values", err));
  }
  return check_within(&m->label_index, m->columns, "a label is out of range", err);
}

static rpo_status open_trees(rpo_model *m, const rpo_array *found, rpo_error *err) {
  RPO_TRY(expect(&found[RPO_SEC_SAMPLING], RPO_TYPE_I64, 3 * m->trees, "the sampling", err));
  RPO_TRY(expect(&found[RPO_SEC_INNER_START], RPO_TYPE_I64, m->trees + 1, "the node starts", err));
  RPO_TRY(expect(&found[RPO_SEC_LEAF_START], RPO_TYPE_I64, m->trees + 1, "the leaf starts", err));
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
  m->missing_left = found[RPO_SEC_MISSING_LEFT].data;
  int64_t const inner = m->feature.count, leaves = m->leaf_rows.count;
  if (!rises(m->inner_start, m->trees, inner) || !rises(m->leaf_start, m->trees, leaves)) {
    return damaged(err, "the node starts");
  }
  RPO_TRY(expect(&m->feature, INDEX, inner, "the features", err));
  RPO_TRY(expect(&m->threshold, REAL, inner, "the thresholds", err));
  RPO_TRY(expect(&m->left, CHILD, inner, "the children", err));
  RPO_TRY(expect(&m->right, CHILD, inner, "the children", err));
  RPO_TRY(expect(&m->impurity, RPO_TYPE_F32, inner, "the impurities", err));
  RPO_TRY(expect(&found[RPO_SEC_MISSING_LEFT], RPO_TYPE_U8, inner, "the missing sides", err));
  RPO_TRY(expect(&m->leaf_impurity, ANY, leaves, "the leaves' impurities", err));
  RPO_TRY(expect(&m->leaf_weight, ANY, leaves, "the leaves' weights", err));
  RPO_TRY(check_within(&m->feature, m->inputs, "a feature is out of range", err));
  uint8_t *const seen = rpo_new_zero(inner + leaves, 1);
  if (seen == NULL) return rpo_fail_memory(err, "the model");
  rpo_status const status = check_children(m, seen, err);
  rpo_delete(seen);
  return status;
}

rpo_status rpo_model_open(char *block, int64_t bytes, rpo_model **out, rpo_error *err) {
  rpo_array found[RPO_SECTIONS];
  memset(found, 0, sizeof found);
  RPO_TRY(read_sections(block, bytes, found, err));
  RPO_TRY(expect(&found[RPO_SEC_SHAPE], RPO_TYPE_I64, 5, "the shape", err));
  const int64_t *const shape = found[RPO_SEC_SHAPE].data;
  for (int i = 0; i < 4; i++) {
    if (shape[i] < 1 || shape[i] > INT32_MAX) return damaged(err, "the shape");
  }
  rpo_model *const m = rpo_new_zero(1, (int64_t)sizeof *m);
  if (m == NULL) return rpo_fail_memory(err, "the model");
  m->bytes = bytes;
  m->trees = shape[0];
  m->inputs = shape[1];
  m->outputs = shape[2];
  m->rows = shape[3];
  m->ratio = shape[4] != 0;
  m->columns = m->outputs * (m->ratio ? 2 : 1);
  m->note = found[RPO_SEC_NOTE];
  rpo_status status = open_trees(m, found, err);
  if (status == RPO_OK) status = open_readout(m, found, err);
  if (status != RPO_OK) {
    rpo_delete(m->leaf_row_start);
    rpo_delete(m);
    return status;
  }
  m->block = block;
  *out = m;
  return RPO_OK;
}

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
  if (m->row.data != NULL) t.n_rows = m->row_start[tree + 1] - m->row_start[tree];
  t.rows = rpo_new(t.n_rows, 4);
  double *weight = m->row_weight.data == NULL ? NULL : rpo_new(t.n_rows, 8);
  if (t.feature == NULL || t.left == NULL || t.right == NULL || t.threshold == NULL ||
      t.missing_left == NULL || t.impurity == NULL || t.leaf_impurity == NULL ||
      t.leaf_weight == NULL || t.leaf_start == NULL || t.rows == NULL ||
      (weight == NULL && m->row_weight.data != NULL)) {
    rpo_tree_release(&t);
    rpo_delete(weight);
    return rpo_fail_memory(err, "a tree");
  }
  for (int64_t i = 0; i < t.n_inner; i++) {
    t.feature[i] = (int32_t)rpo_array_whole(&m->feature, first + i);
    t.left[i] = (int32_t)rpo_array_whole(&m->left, first + i);
    t.right[i] = (int32_t)rpo_array_whole(&m->right, first + i);
    t.threshold[i] = rpo_array_number(&m->threshold, first + i);
    t.missing_left[i] = m->missing_left[first + i];
    t.impurity[i] = (float)rpo_array_number(&m->impurity, first + i);
  }
  t.leaf_start[0] = 0;
  for (int64_t l = 0; l < t.n_leaves; l++) {
    t.leaf_impurity[l] = (float)rpo_array_number(&m->leaf_impurity, leaf + l);
    t.leaf_weight[l] = rpo_array_number(&m->leaf_weight, leaf + l);
    t.leaf_start[l + 1] =
        t.leaf_start[l] + (int32_t)rpo_array_whole(&m->leaf_rows, leaf + l);
  }
  for (int64_t i = 0; i < t.n_rows; i++) {
    t.rows[i] = (int32_t)rpo_array_whole(&m->row, m->row_start[tree] + i);
    if (weight != NULL) weight[i] = rpo_array_number(&m->row_weight, m->row_start[tree] + i);
  }
  *out = t;
  *row_weight = weight;
  return RPO_OK;
}
