/* Writing models: every section in the narrowest type that holds its values, the readout in whichever
 * form is smallest. Neighbour: table.c makes leaf tables. */
#include <math.h>
#include <string.h>

#include "format.h"
#include "mem.h"
#include "table.h"

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
    whole &= fabs(v) < 9e15 && (double)(int64_t)v == v && !(v == 0.0 && signbit(v));
    single &= (double)(float)v == v;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  uint32_t const real = single ? RPO_TYPE_F32 : RPO_TYPE_F64;
  uint32_t const type = whole ? whole_type(low, high) : RPO_TYPE_F64;
  if (family == RPO_INDEX) return high <= 65535 ? RPO_TYPE_U16 : RPO_TYPE_I32;
  return family == RPO_REAL || type == RPO_TYPE_F64 ? real : type;
}

#define WRITE(type) \
  for (int64_t i = 0; i < count; i++) ((type *)(void *)at)[i] = (type)value(context, i)

static void write_numbers(char *at, uint32_t type, int64_t count, number_fn value,
                          const void *context) {
  switch (type) {
    case RPO_TYPE_U8: WRITE(uint8_t); break;
    case RPO_TYPE_U16: WRITE(uint16_t); break;
    case RPO_TYPE_I16: WRITE(int16_t); break;
    case RPO_TYPE_I32: WRITE(int32_t); break;
    case RPO_TYPE_I64: WRITE(int64_t); break;
    case RPO_TYPE_F32: WRITE(float); break;
    default: WRITE(double); break;
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
    write_numbers(p->block + s->offset, s->type, count, value, context);
  }
}

typedef struct source {
  const rpo_model_parts *parts;
  const int64_t *inner_start, *leaf_start, *row_start;
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

enum { FEATURE, THRESHOLD, LEFT, RIGHT, FLAGS, IMPURITY };

static double of_inner(const void *context, int64_t i) {
  source *const s = (source *)(uintptr_t)context;
  const rpo_tree *const t = tree_at(s, s->inner_start, i);
  int64_t const j = i - s->inner_start[s->tree];
  switch (s->which) {
    case FEATURE: return t->feature[j];
    case THRESHOLD: return t->threshold[j];
    case LEFT: return t->left[j];
    case RIGHT: return t->right[j];
    case FLAGS: return rpo_node_flags(t->missing_left[j], t->left[j] < 0, t->threshold[j]);
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
  static const rpo_section leaf[] = {RPO_SEC_LEAF_IMPURITY, RPO_SEC_LEAF_WEIGHT, RPO_SEC_LEAF_ROWS,
                                     RPO_SEC_SAMPLE_WEIGHT};
  int64_t const trees = s->parts->trees;
  int64_t most = 0;
  int sampled = 0;
  for (int64_t t = 0; t < trees; t++) {
    sampled |= s->parts->tree[t].sample_weight != NULL;
    most = s->parts->tree[t].n_leaves > most ? s->parts->tree[t].n_leaves : most;
  }
  uint32_t const child = most <= 32768 ? RPO_TYPE_I16 : RPO_TYPE_I32; /* of both sides */
  struct {
    rpo_section id;
    uint32_t family;
  } const inner[] = {{RPO_SEC_FEATURE, RPO_INDEX}, {RPO_SEC_THRESHOLD, RPO_REAL},
                     {RPO_SEC_LEFT, child},        {RPO_SEC_RIGHT, child},
                     {RPO_SEC_FLAGS, RPO_TYPE_U8}, {RPO_SEC_IMPURITY, RPO_TYPE_F32}};
  for (int i = 0; i < 6; i++) {
    s->which = i;
    s->tree = 0;
    put(p, inner[i].id, inner[i].family, s->inner_start[trees], of_inner, s);
  }
  for (int i = 0; i < 3 + sampled; i++) {
    s->which = i;
    s->tree = 0;
    put(p, leaf[i], i == LEAF_ROWS ? RPO_COUNT : RPO_ANY, s->leaf_start[trees], of_leaf, s);
  }
}

/* Y or a leaf table. */
static void put_values(plan *p, const rpo_labels *l) {
  if (l->dense != NULL) {
    put(p, RPO_SEC_VALUE, RPO_ANY, l->rows * l->columns, of_f64, l->dense);
    return;
  }
  put(p, RPO_SEC_VALUE_START, RPO_TYPE_I64, l->rows + 1, of_i64, l->start);
  put(p, RPO_SEC_VALUE_INDEX, RPO_INDEX, l->start[l->rows], of_i64, l->index);
  if (l->value != NULL) put(p, RPO_SEC_VALUE, RPO_ANY, l->start[l->rows], of_f64, l->value);
}

/* S and Y. */
static void put_rows(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const trees = parts->trees;
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
  put_values(p, parts->labels);
}

static void put_structure(plan *p, source *s) {
  const rpo_model_parts *const parts = s->parts;
  int64_t const shape[6] = {parts->trees, parts->inputs, parts->outputs,
                            parts->rows,  parts->ratio,  parts->shares};
  put(p, RPO_SEC_SHAPE, RPO_TYPE_I64, 6, of_i64, shape);
  put(p, RPO_SEC_SAMPLING, RPO_TYPE_I64, 3 * parts->trees, of_i64, parts->sampling);
  put(p, RPO_SEC_INNER_START, RPO_TYPE_I64, parts->trees + 1, of_i64, s->inner_start);
  put(p, RPO_SEC_LEAF_START, RPO_TYPE_I64, parts->trees + 1, of_i64, s->leaf_start);
  put_trees(p, s);
  if (parts->ratio) put(p, RPO_SEC_FALLBACK, RPO_TYPE_F64, parts->outputs, of_f64, parts->fallback);
}

/* The sections of the readout; `table` NULL: of the rows form. */
static void put_readout(plan *p, source *s, const rpo_labels *table) {
  if (table == NULL) {
    put_rows(p, s);
  } else {
    put_values(p, table);
  }
}

/* Sizes of all sections. The readout is L, made here into *table, where that takes fewer bytes than
 * S and Y. */
static rpo_status plan_all(plan *p, source *s, rpo_labels *table, rpo_error *err) {
  const rpo_model_parts *const parts = s->parts;
  p->bytes = align((int64_t)(sizeof(rpo_header) + RPO_SECTIONS * sizeof(rpo_table_row)));
  put_structure(p, s);
  plan const structure = *p;
  put_readout(p, s, parts->table);
  if (parts->table != NULL) return RPO_OK;
  RPO_TRY(rpo_table_smaller(parts, p->full ? INT64_MAX : p->bytes - structure.bytes, table, err));
  if (table->rows == 0) return RPO_OK;
  *p = structure;
  put_readout(p, s, table);
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
  int64_t const trees = parts->trees;
  int64_t *const starts = rpo_new(3 * (trees + 1), 8);
  char *block = NULL;
  plan p;
  rpo_labels table;
  rpo_status status = RPO_OK;
  memset(&p, 0, sizeof p);
  memset(&table, 0, sizeof table);
  if (starts == NULL) return rpo_fail_memory(err, "the model");
  source s = {parts, starts, starts + trees + 1, starts + 2 * (trees + 1), 0, 0};
  count_parts(parts, starts, starts + trees + 1, starts + 2 * (trees + 1));
  RPO_GOTO(plan_all(&p, &s, &table, err));
  block = p.full ? NULL : rpo_new_zero(p.bytes, 1);
  if (block == NULL) {
    status = rpo_fail_memory(err, "the model");
    goto done;
  }
  p.block = block;
  put_structure(&p, &s);
  put_readout(&p, &s, table.rows > 0 ? &table : parts->table);
  memcpy(block + sizeof(rpo_header), p.table, p.sections * sizeof(rpo_table_row));
  seal(block, p.sections, p.bytes);
  RPO_GOTO(rpo_model_open(block, p.bytes, out, err));
  block = NULL;
done:
  rpo_delete(block);
  rpo_labels_release(&table);
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
