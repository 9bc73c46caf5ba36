/* Writing models: every section in the narrowest type that holds its values, the readout in whichever
 * form is smallest. Trees are measured, then written, in parallel. Neighbour: table.c makes leaf
 * tables. */
#include <string.h>

#include "format.h"
#include "mem.h"
#include "table.h"

enum { INNER, LEAF, ROW }; /* what a section of trees has a number for */

static const struct {
  rpo_section id;
  int32_t family;
  int by;
} of_trees[] = {
    {RPO_SEC_FEATURE, RPO_INDEX, INNER},    {RPO_SEC_THRESHOLD, RPO_REAL, INNER},
    {RPO_SEC_LEFT, RPO_CHILD, INNER},       {RPO_SEC_RIGHT, RPO_CHILD, INNER},
    {RPO_SEC_FLAGS, RPO_TYPE_U8, INNER},    {RPO_SEC_IMPURITY, RPO_TYPE_F32, INNER},
    {RPO_SEC_LEAF_IMPURITY, RPO_ANY, LEAF}, {RPO_SEC_LEAF_WEIGHT, RPO_ANY, LEAF},
    {RPO_SEC_LEAF_ROWS, RPO_COUNT, LEAF},   {RPO_SEC_SAMPLE_WEIGHT, RPO_ANY, LEAF},
    {RPO_SEC_ROWS, RPO_INDEX, ROW},         {RPO_SEC_ROW_WEIGHT, RPO_ANY, ROW},
};
enum { OF_TREES = sizeof of_trees / sizeof of_trees[0], FIRST_BY_ROW = OF_TREES - 2 };

/* A section on its way: its numbers lie in one place or, tree after tree, in many. */
typedef struct section {
  rpo_table_row row;
  rpo_array from; /* in one place */
  int of_trees;   /* index into `of_trees`; -1: in one place */
} section;

typedef struct plan {
  const rpo_model_parts *parts;
  int64_t *start[3];     /* by INNER, LEAF, ROW: where each tree's numbers begin */
  int64_t most_leaves;   /* of a tree */
  int sampled, weighted; /* whether there are sample weights, row weights */
  rpo_range *range;      /* trees x OF_TREES */
  section section[RPO_SECTIONS];
  uint32_t sections;
  int64_t bytes;
  int full;    /* a size does not fit */
  char *block; /* once sizes are known */
} plan;

static int64_t align(int64_t bytes) {
  return (bytes + RPO_BOUNDARY - 1) / RPO_BOUNDARY * RPO_BOUNDARY;
}

static const rpo_range no_numbers = {0.0, 0.0, 1, 1};

/* ---- A tree's numbers ---- */

static rpo_array whole_numbers(const int32_t *data, int64_t count) {
  rpo_array const a = {data, count, RPO_TYPE_I32};
  return a;
}

static rpo_array single_numbers(const float *data, int64_t count) {
  rpo_array const a = {data, count, RPO_TYPE_F32};
  return a;
}

static rpo_array real_numbers(const double *data, int64_t count) {
  rpo_array const a = {data, count, RPO_TYPE_F64};
  return a;
}

static rpo_array flags_of(const rpo_tree *t, uint8_t *room) {
  for (int64_t i = 0; i < t->n_inner; i++) {
    room[i] = rpo_node_flags(t->missing_left[i], t->left[i] < 0, t->threshold[i]);
  }
  rpo_array const a = {room, t->n_inner, RPO_TYPE_U8};
  return a;
}

static rpo_array leaf_rows_of(const rpo_tree *t, int32_t *room) {
  for (int64_t l = 0; l < t->n_leaves; l++) room[l] = t->leaf_start[l + 1] - t->leaf_start[l];
  return whole_numbers(room, t->n_leaves);
}

static rpo_array ones(int64_t count, double *room) {
  for (int64_t i = 0; i < count; i++) room[i] = 1.0;
  return real_numbers(room, count);
}

/* `room`: for numbers that the tree does not hold as such. */
static rpo_array numbers_of(const plan *p, int64_t tree, rpo_section id, void *room) {
  const rpo_tree *const t = &p->parts->tree[tree];
  const double *const row_weight = p->parts->row_weight == NULL ? NULL : p->parts->row_weight[tree];
  switch (id) {
    case RPO_SEC_FEATURE: return whole_numbers(t->feature, t->n_inner);
    case RPO_SEC_THRESHOLD: return real_numbers(t->threshold, t->n_inner);
    case RPO_SEC_LEFT: return whole_numbers(t->left, t->n_inner);
    case RPO_SEC_RIGHT: return whole_numbers(t->right, t->n_inner);
    case RPO_SEC_FLAGS: return flags_of(t, room);
    case RPO_SEC_IMPURITY: return single_numbers(t->impurity, t->n_inner);
    case RPO_SEC_LEAF_IMPURITY: return single_numbers(t->leaf_impurity, t->n_leaves);
    case RPO_SEC_LEAF_WEIGHT: return real_numbers(t->leaf_weight, t->n_leaves);
    case RPO_SEC_LEAF_ROWS: return leaf_rows_of(t, room);
    case RPO_SEC_SAMPLE_WEIGHT:
      return real_numbers(t->sample_weight ? t->sample_weight : t->leaf_weight, t->n_leaves);
    case RPO_SEC_ROWS: return whole_numbers(t->rows, t->n_rows);
    default: return row_weight ? real_numbers(row_weight, t->n_rows) : ones(t->n_rows, room);
  }
}

static void *room_of(const rpo_tree *t) {
  return rpo_new(t->n_leaves > t->n_rows ? t->n_leaves : t->n_rows, 8);
}

static int is_there(const plan *p, rpo_section id) {
  return id == RPO_SEC_SAMPLE_WEIGHT ? p->sampled : id != RPO_SEC_ROW_WEIGHT || p->weighted;
}

static rpo_status measure_tree(void *context, int64_t tree, int thread, rpo_job *job,
                               rpo_error *err) {
  const plan *const p = context;
  void *const room = room_of(&p->parts->tree[tree]);
  (void)thread;
  (void)job;
  if (room == NULL) return rpo_fail_memory(err, "the model");
  for (int k = 0; k < OF_TREES; k++) {
    rpo_range *const range = &p->range[tree * OF_TREES + k];
    *range = no_numbers;
    if (!rpo_family_varies(of_trees[k].family) || !is_there(p, of_trees[k].id)) continue;
    rpo_array const numbers = numbers_of(p, tree, of_trees[k].id, room);
    rpo_range_add(range, &numbers);
  }
  rpo_delete(room);
  return RPO_OK;
}

static rpo_status write_tree(void *context, int64_t tree, int thread, rpo_job *job,
                             rpo_error *err) {
  const plan *const p = context;
  void *const room = room_of(&p->parts->tree[tree]);
  (void)thread;
  (void)job;
  if (room == NULL) return rpo_fail_memory(err, "the model");
  for (uint32_t i = 0; i < p->sections; i++) {
    const section *const s = &p->section[i];
    if (s->of_trees < 0) continue;
    int32_t const type = (int32_t)s->row.type;
    int64_t const first = p->start[of_trees[s->of_trees].by][tree];
    rpo_array const numbers = numbers_of(p, tree, (rpo_section)s->row.id, room);
    rpo_array_convert(&numbers, type, p->block + s->row.offset + first * rpo_type_size(type));
  }
  rpo_delete(room);
  return RPO_OK;
}

/* ---- The plan ---- */

static rpo_status plan_start(plan *p, const rpo_model_parts *parts, rpo_error *err) {
  int64_t const trees = parts->trees;
  memset(p, 0, sizeof *p);
  p->parts = parts;
  p->range = rpo_new(trees * OF_TREES, (int64_t)sizeof *p->range);
  p->start[0] = rpo_new_zero(3 * (trees + 1), 8);
  if (p->range == NULL || p->start[0] == NULL) return rpo_fail_memory(err, "the model");
  for (int by = 1; by < 3; by++) p->start[by] = p->start[0] + by * (trees + 1);
  for (int64_t t = 0; t < trees; t++) {
    const rpo_tree *const tree = &parts->tree[t];
    p->start[INNER][t + 1] = p->start[INNER][t] + tree->n_inner;
    p->start[LEAF][t + 1] = p->start[LEAF][t] + tree->n_leaves;
    p->start[ROW][t + 1] = p->start[ROW][t] + tree->n_rows;
    p->most_leaves = tree->n_leaves > p->most_leaves ? tree->n_leaves : p->most_leaves;
    p->sampled |= tree->sample_weight != NULL;
    p->weighted |= parts->row_weight != NULL && parts->row_weight[t] != NULL;
  }
  return RPO_OK;
}

static section *add_section(plan *p, rpo_section id, int32_t type, int64_t count) {
  section *const s = &p->section[p->sections++];
  rpo_table_row const row = {(uint32_t)id, (uint32_t)type, (uint64_t)p->bytes, (uint64_t)count};
  memset(s, 0, sizeof *s);
  s->row = row;
  s->of_trees = -1;
  p->full |= count > (INT64_MAX / 2 - p->bytes) / 8;
  if (!p->full) p->bytes = align(p->bytes + count * rpo_type_size(type));
  return s;
}

static void add_array(plan *p, rpo_section id, int32_t family, const rpo_array *from) {
  rpo_range range = no_numbers;
  if (rpo_family_varies(family)) rpo_range_add(&range, from);
  add_section(p, id, rpo_range_type(&range, family), from->count)->from = *from;
}

static void add_whole(plan *p, rpo_section id, int32_t family, const int64_t *data, int64_t count) {
  rpo_array const from = {data, count, RPO_TYPE_I64};
  add_array(p, id, family, &from);
}

static void add_real(plan *p, rpo_section id, int32_t family, const double *data, int64_t count) {
  rpo_array const from = real_numbers(data, count);
  add_array(p, id, family, &from);
}

/* Sections of trees, first .. end. Both children have one type. */
static void add_trees(plan *p, int first, int end) {
  int64_t const trees = p->parts->trees;
  for (int k = first; k < end; k++) {
    rpo_range range = no_numbers;
    int32_t family = of_trees[k].family;
    if (!is_there(p, of_trees[k].id)) continue;
    if (family == RPO_CHILD) family = p->most_leaves <= 32768 ? RPO_TYPE_I16 : RPO_TYPE_I32;
    for (int64_t t = 0; t < trees; t++) rpo_range_join(&range, &p->range[t * OF_TREES + k]);
    int64_t const count = p->start[of_trees[k].by][trees];
    add_section(p, of_trees[k].id, rpo_range_type(&range, family), count)->of_trees = k;
  }
}

/* Y or a leaf table. */
static void add_values(plan *p, const rpo_labels *l) {
  if (l->dense != NULL) {
    add_real(p, RPO_SEC_VALUE, RPO_ANY, l->dense, l->rows * l->columns);
    return;
  }
  add_whole(p, RPO_SEC_VALUE_START, RPO_TYPE_I64, l->start, l->rows + 1);
  add_whole(p, RPO_SEC_VALUE_INDEX, RPO_INDEX, l->index, l->start[l->rows]);
  if (l->value != NULL) add_real(p, RPO_SEC_VALUE, RPO_ANY, l->value, l->start[l->rows]);
}

static void add_boosted(plan *p, const rpo_boosted *b) {
  add_array(p, RPO_SEC_START, RPO_TYPE_F64, &b->start);
  if (b->step.data != NULL) add_array(p, RPO_SEC_STEP, RPO_TYPE_F32, &b->step);
  if (b->value_start.data != NULL) {
    add_array(p, RPO_SEC_VALUE_START, RPO_TYPE_I64, &b->value_start);
    add_array(p, RPO_SEC_VALUE_INDEX, RPO_INDEX, &b->value_index);
  }
  add_array(p, RPO_SEC_VALUE, b->value.type, &b->value);
}

static void add_structure(plan *p, const int64_t *shape) {
  const rpo_model_parts *const parts = p->parts;
  int64_t const trees = parts->trees;
  p->bytes = align((int64_t)(sizeof(rpo_header) + RPO_SECTIONS * sizeof(rpo_table_row)));
  add_whole(p, RPO_SEC_SHAPE, RPO_TYPE_I64, shape, 6);
  add_whole(p, RPO_SEC_SAMPLING, RPO_TYPE_I64, parts->sampling, 3 * trees);
  add_whole(p, RPO_SEC_INNER_START, RPO_TYPE_I64, p->start[INNER], trees + 1);
  add_whole(p, RPO_SEC_LEAF_START, RPO_TYPE_I64, p->start[LEAF], trees + 1);
  add_trees(p, 0, FIRST_BY_ROW);
  if (parts->ratio) {
    add_real(p, RPO_SEC_FALLBACK, RPO_TYPE_F64, parts->fallback, parts->outputs);
  }
}

/* The readout is L where that is given, or takes fewer bytes than S and Y and is made here into
 * *table. */
static rpo_status add_readout(plan *p, const rpo_control *control, rpo_labels *table,
                              rpo_error *err) {
  const rpo_model_parts *const parts = p->parts;
  if (parts->boosted != NULL) {
    add_boosted(p, parts->boosted);
    return RPO_OK;
  }
  if (parts->table != NULL) {
    add_values(p, parts->table);
    return RPO_OK;
  }
  plan const structure = *p;
  add_whole(p, RPO_SEC_ROW_START, RPO_TYPE_I64, p->start[ROW], parts->trees + 1);
  add_trees(p, FIRST_BY_ROW, OF_TREES);
  add_values(p, parts->labels);
  int64_t const bytes = p->full ? INT64_MAX : p->bytes - structure.bytes;
  RPO_TRY(rpo_table_smaller(parts, bytes, control, table, err));
  if (table->rows == 0) return RPO_OK;
  *p = structure;
  add_values(p, table);
  return RPO_OK;
}

/* ---- The block ---- */

static void seal(char *block, uint32_t sections, int64_t bytes) {
  rpo_header head = {{0}, RPO_FORMAT_VERSION, sections, (uint64_t)bytes, 0};
  memcpy(head.magic, RPO_MAGIC, 8);
  head.checksum = rpo_block_checksum(block, bytes, &head);
  memcpy(block, &head, sizeof head);
}

static rpo_status write_block(plan *p, const rpo_control *control, rpo_error *err) {
  p->block = p->full ? NULL : rpo_new_zero(p->bytes, 1);
  if (p->block == NULL) return rpo_fail_memory(err, "the model");
  RPO_TRY(rpo_run(control, p->parts->trees, write_tree, p, err));
  for (uint32_t i = 0; i < p->sections; i++) {
    const section *const s = &p->section[i];
    memcpy(p->block + sizeof(rpo_header) + i * sizeof s->row, &s->row, sizeof s->row);
    if (s->of_trees >= 0) continue;
    rpo_array_convert(&s->from, (int32_t)s->row.type, p->block + s->row.offset);
  }
  seal(p->block, p->sections, p->bytes);
  return RPO_OK;
}

/* Packing goes on where growing ended: it reports as many tasks, all done. */
static int32_t report_done(void *user, int64_t done, int64_t total) {
  const rpo_control *const control = user;
  (void)done;
  return control->progress(control->user, total, total);
}

rpo_status rpo_model_pack(const rpo_model_parts *parts, const rpo_control *control, rpo_model **out,
                          rpo_error *err) {
  int64_t const shape[6] = {parts->trees, parts->inputs, parts->outputs,
                            parts->rows,  parts->ratio,  parts->shares};
  rpo_control inner = {1, 0, NULL, NULL, NULL};
  plan p;
  rpo_labels table;
  rpo_status status;
  memset(&table, 0, sizeof table);
  if (control != NULL) {
    inner.n_threads = control->n_threads;
    inner.progress = control->progress == NULL ? NULL : report_done;
    inner.user = (void *)(uintptr_t)control;
  }
  RPO_GOTO(plan_start(&p, parts, err));
  RPO_GOTO(rpo_run(&inner, parts->trees, measure_tree, &p, err));
  add_structure(&p, shape);
  RPO_GOTO(add_readout(&p, &inner, &table, err));
  RPO_GOTO(write_block(&p, &inner, err));
  RPO_GOTO(rpo_model_adopt(p.block, p.bytes, out, err));
  p.block = NULL;
done:
  rpo_delete(p.block);
  rpo_delete(p.range);
  rpo_delete(p.start[0]);
  rpo_labels_release(&table);
  return status;
}

rpo_status rpo_model_annotate(const rpo_model *m, const void *note, int64_t note_bytes, char **out,
                              int64_t *bytes, rpo_error *err) {
  rpo_header head;
  memcpy(&head, m->block, sizeof head);
  const char *const rows = m->block + sizeof head;
  uint32_t kept = 0;
  int64_t first = m->bytes, end = 0; /* of what is kept: all but an older note */
  rpo_table_row table[RPO_SECTIONS + 1];
  for (uint32_t i = 0; i < head.sections; i++) {
    rpo_table_row *const row = &table[kept];
    memcpy(row, rows + i * sizeof *row, sizeof *row);
    if (row->id == RPO_SEC_NOTE) continue;
    int64_t const begin = (int64_t)row->offset;
    int64_t const stop = begin + (int64_t)row->count * rpo_type_size((int32_t)row->type);
    first = begin < first ? begin : first;
    end = stop > end ? stop : end;
    kept++;
  }
  end = align(end);
  if (note_bytes > 0) {
    rpo_table_row const added = {RPO_SEC_NOTE, RPO_TYPE_U8, (uint64_t)end, (uint64_t)note_bytes};
    table[kept++] = added;
  }
  if ((int64_t)(sizeof head + kept * sizeof *table) > first) { /* another program's file */
    return rpo_fail(err, RPO_EFORMAT, "the model's table of sections has no room for a note");
  }
  int64_t const length = note_bytes > 0 ? align(end + note_bytes) : end;
  char *const block = rpo_new_zero(length, 1);
  if (block == NULL) return rpo_fail_memory(err, "the model");
  memcpy(block + first, m->block + first, (size_t)((end < m->bytes ? end : m->bytes) - first));
  memcpy(block + sizeof head, table, kept * sizeof *table);
  if (note_bytes > 0) memcpy(block + end, note, (size_t)note_bytes);
  seal(block, kept, length);
  *out = block;
  *bytes = length;
  return RPO_OK;
}
