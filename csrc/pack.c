/* Writing models: every section in the narrowest type that holds its values, the readout in whichever
 * form is smaller. */
#include <math.h>
#include <string.h>

#include "format.h"
#include "mem.h"

/* A source of numbers: value i of the section. */
typedef double (*number_fn)(const void *context, int64_t i);

typedef struct plan {
  rpo_table_row table[RPO_SECTIONS];
  uint32_t sections;
  int64_t bytes;
  char *block; /* NULL while sizes are taken */
  int full;    /* a size does not fit */
} plan;

static int64_t align(int64_t bytes) {
  return (bytes + RPO_BOUNDARY - 1) / RPO_BOUNDARY * RPO_BOUNDARY;
}

static uint32_t whole_type(double low, double high) {
  if (low >= 0 && high <= 255) return RPO_TYPE_U8;
  if (low >= 0 && high <= 65535) return RPO_TYPE_U16;
  if (low >= -32768 && high <= 32767) return RPO_TYPE_I16;
  if (low >= -2147483648.0 && high <= 2147483647.0) return RPO_TYPE_I32;
  return RPO_TYPE_F64;
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
  if (family == RPO_INDEX) return high <= 65535 ? RPO_TYPE_U16 : RPO_TYPE_I32;
  if (family == RPO_CHILD) return low >= -32768 && high <= 32767 ? RPO_TYPE_I16 : RPO_TYPE_I32;
  return family == RPO_REAL || type == RPO_TYPE_F64 ? real : type;
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
    rpo_table_row *const s = &p->table[p->sections++];
    s->id = (uint32_t)id;
    s->type =
        family != RPO_ANY && family < RPO_INDEX ? family : narrowest(family, value, context, count);
    s->offset = (uint64_t)p->bytes;
    s->count = (uint64_t)count;
    if (count > (INT64_MAX / 2 - p->bytes) / 8) {
      p->full = 1;
      return;
    }
    p->bytes = align(p->bytes + count * rpo_type_size(s->type));
    return;
  }
  for (uint32_t i = 0; i < p->sections; i++) {
    const rpo_table_row *const s = &p->table[i];
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

static double of_i64(const void *context, int64_t i) {
  return (double)((const int64_t *)context)[i];
}
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

enum { LEAF_IMPURITY, LEAF_WEIGHT, LEAF_ROWS, SAMPLE_WEIGHT };

static double of_leaf(const void *context, int64_t i) {
  source *const s = (source *)(uintptr_t)context;
  const rpo_tree *const t = tree_at(s, s->leaf_start, i);
  int64_t const j = i - s->leaf_start[s->tree];
  if (s->which == LEAF_IMPURITY) return (double)t->leaf_impurity[j];
  if (s->which == LEAF_WEIGHT) return t->leaf_weight[j];
  if (s->which == SAMPLE_WEIGHT) {
    return t->sample_weight == NULL ? t->leaf_weight[j] : t->sample_weight[j];
  }
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
  } inner[] = {{RPO_SEC_FEATURE, RPO_INDEX},        {RPO_SEC_THRESHOLD, RPO_REAL},
               {RPO_SEC_LEFT, RPO_CHILD},           {RPO_SEC_RIGHT, RPO_CHILD},
               {RPO_SEC_MISSING_LEFT, RPO_TYPE_U8}, {RPO_SEC_IMPURITY, RPO_TYPE_F32}};
  static const rpo_section leaf[] = {RPO_SEC_LEAF_IMPURITY, RPO_SEC_LEAF_WEIGHT, RPO_SEC_LEAF_ROWS,
                                     RPO_SEC_SAMPLE_WEIGHT};
  int64_t const trees = s->parts->trees;
  int sampled = 0;
  for (int64_t t = 0; t < trees; t++) sampled |= s->parts->tree[t].sample_weight != NULL;
  for (int i = 0; i < 6; i++) {
    s->which = i;
    s->tree = 0;
    put(p, inner[i].id, inner[i].family, s->inner_start[trees], of_inner, s);
  }
  for (int i = 0; i < 3 + sampled; i++) {
    s->which = i;
    s->tree = 0;
    put(p, leaf[i], RPO_ANY, s->leaf_start[trees], of_leaf, s);
  }
}

static void put_readout(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const trees = parts->trees;
  if (s->table != NULL) {
    int64_t const columns = parts->outputs * (parts->ratio ? 2 : 1);
    put(p, RPO_SEC_TABLE, RPO_REAL, s->leaf_start[trees] * columns, of_f64, s->table);
    return;
  }
  const rpo_labels *const l = parts->labels;
  int weighted = 0;
  put(p, RPO_SEC_ROW_START, RPO_TYPE_I64, trees + 1, of_i64, s->row_start);
  s->which = ROW;
  s->tree = 0;
  put(p, RPO_SEC_ROWS, RPO_INDEX, s->row_start[trees], of_row, s);
  for (int64_t t = 0; t < trees; t++) weighted |= parts->row_weight[t] != NULL;
  if (weighted) {
    s->which = ROW_WEIGHT;
    s->tree = 0;
    put(p, RPO_SEC_ROW_WEIGHT, RPO_ANY, s->row_start[trees], of_row, s);
  }
  if (l->dense != NULL) {
    put(p, RPO_SEC_LABEL_VALUE, RPO_ANY, l->rows * l->columns, of_f64, l->dense);
    return;
  }
  put(p, RPO_SEC_LABEL_START, RPO_TYPE_I64, l->rows + 1, of_i64, l->start);
  put(p, RPO_SEC_LABEL_INDEX, RPO_INDEX, l->start[l->rows], of_i64, l->index);
  if (l->value != NULL) put(p, RPO_SEC_LABEL_VALUE, RPO_ANY, l->start[l->rows], of_f64, l->value);
}

static void put_all(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const shape[6] = {parts->trees, parts->inputs, parts->outputs,
                            parts->rows,  parts->ratio,  parts->shares};
  put(p, RPO_SEC_SHAPE, RPO_TYPE_I64, 6, of_i64, shape);
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
  double const label_bytes = l->dense != NULL
                                 ? 8.0 * (double)l->rows * (double)l->columns
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

static void seal(char *block, uint32_t sections, int64_t bytes) {
  rpo_header head = {{0}, RPO_FORMAT_VERSION, sections, (uint64_t)bytes, 0};
  memcpy(head.magic, RPO_MAGIC, 8);
  head.checksum = rpo_block_checksum(block, bytes, &head);
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
  source s = {
      parts, starts, starts + parts->trees + 1, starts + 2 * (parts->trees + 1), parts->table,
      0,     0};
  count_parts(parts, starts, starts + parts->trees + 1, starts + 2 * (parts->trees + 1));
  if (parts->labels != NULL && table_is_smaller(&s, columns)) {
    RPO_GOTO(make_table(&s, columns, &table, err));
    s.table = table;
  }
  p.bytes = align((int64_t)(sizeof(rpo_header) + RPO_SECTIONS * sizeof(rpo_table_row)));
  put_all(&p, &s);
  block = p.full ? NULL : rpo_new_zero(p.bytes, 1);
  if (block == NULL) {
    status = rpo_fail_memory(err, "the model");
    goto done;
  }
  p.block = block;
  put_all(&p, &s);
  memcpy(block + sizeof(rpo_header), p.table, p.sections * sizeof(rpo_table_row));
  seal(block, p.sections, p.bytes);
  RPO_GOTO(rpo_model_open(block, p.bytes, out, err));
  block = NULL;
done:
  rpo_delete(block);
  rpo_delete(table);
  rpo_delete(starts);
  return status;
}

rpo_status rpo_model_annotate(const rpo_model *m, const void *note, int64_t note_bytes, char **out,
                              int64_t *bytes, rpo_error *err) {
  rpo_header head;
  memcpy(&head, m->block, sizeof head);
  int64_t end = m->bytes; /* without an older note, which lies last */
  if (m->note.data != NULL) {
    int64_t const offset = (const char *)m->note.data - m->block;
    int64_t const first = align((int64_t)(sizeof head + RPO_SECTIONS * sizeof(rpo_table_row)));
    if (offset >= first && align(offset + m->note.count) == end) end = offset;
  }
  int64_t const length = note_bytes > 0 ? align(end + note_bytes) : end;
  char *const block = rpo_new_zero(length, 1);
  if (block == NULL) return rpo_fail_memory(err, "the model");
  memcpy(block, m->block, (size_t)end);
  rpo_table_row *const table = (rpo_table_row *)(void *)(block + sizeof head);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < head.sections; i++) {
    if (table[i].id != RPO_SEC_NOTE) table[kept++] = table[i];
  }
  memset(table + kept, 0, (head.sections - kept) * sizeof *table);
  if (note_bytes > 0) {
    rpo_table_row const added = {RPO_SEC_NOTE, RPO_TYPE_U8, (uint64_t)end, (uint64_t)note_bytes};
    table[kept++] = added;
    memcpy(block + end, note, (size_t)note_bytes);
  }
  seal(block, kept, length);
  *out = block;
  *bytes = length;
  return RPO_OK;
}
