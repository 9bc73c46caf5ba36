/* Named arrays as a model file: what models other than trees consist of. */
#include <string.h>

#include "mem.h"
#include "model_io.h"

enum { MOST_DIMS = 4, SHAPE_NUMBERS = 1 + MOST_DIMS };

struct rpo_arrays {
  rpo_bytes block;
  int64_t count;
  rpo_named_array *array; /* look into the block */
  const void *note;
  int64_t note_bytes;
};

/* The numbers of an array; -1 when that is none. */
static int64_t numbers_of(const rpo_named_array *a) {
  int64_t const size = rpo_type_size(a->type);
  int64_t count = 1;
  if (size == 0 || a->dims < 0 || a->dims > MOST_DIMS) return -1;
  for (int d = 0; d < MOST_DIMS; d++) {
    if (a->shape[d] < 0 || (d >= a->dims && a->shape[d] != 1)) return -1;
    if (a->shape[d] > 0 && count > INT64_MAX / 16 / a->shape[d]) return -1;
    count *= a->shape[d];
  }
  return count;
}

/* ---- Saving ---- */

static rpo_status check_arrays(const rpo_named_array *arrays, int64_t count, rpo_error *err) {
  for (int64_t i = 0; i < count; i++) {
    const rpo_named_array *const a = &arrays[i];
    if (a->name == NULL || a->name[0] == 0) {
      return rpo_fail(err, RPO_EINVAL, "array %lld has no name", (long long)i);
    }
    int64_t const numbers = numbers_of(a);
    if (numbers < 0 || (numbers > 0 && a->data == NULL)) {
      return rpo_fail(err, RPO_EINVAL, "array %s has an unknown type, a bad shape or no data",
                      a->name);
    }
    for (int64_t k = 0; k < i; k++) {
      if (strcmp(arrays[k].name, a->name) == 0) {
        return rpo_fail(err, RPO_EINVAL, "two arrays have the name %s", a->name);
      }
    }
  }
  return RPO_OK;
}

/* Where sections lie: names, shapes, arrays. */
static int64_t lay_out(const rpo_named_array *arrays, int64_t count, rpo_table_row *row) {
  int64_t at = rpo_first_section(count + 2), names = 0;
  for (int64_t i = 0; i < count; i++) names += (int64_t)strlen(arrays[i].name) + 1;
  for (int64_t i = 0; i < count + 2; i++) {
    const rpo_named_array *const a = i < 2 ? NULL : &arrays[i - 2];
    rpo_table_row const named = {RPO_SEC_NAMES, RPO_TYPE_U8, at, names, 0};
    rpo_table_row const shaped = {RPO_SEC_SHAPES, RPO_TYPE_I64, at, SHAPE_NUMBERS * count, 0};
    if (a == NULL) {
      row[i] = i == 0 ? named : shaped;
    } else {
      rpo_table_row const own = {(uint32_t)(RPO_SEC_ARRAY + i - 2), (uint32_t)a->type, at,
                                 numbers_of(a), 0};
      row[i] = own;
    }
    int64_t const bytes = rpo_section_bytes(&row[i]);
    if (bytes > INT64_MAX / 4 - at) return -1;
    at += bytes;
  }
  return at;
}

static void fill(const rpo_named_array *arrays, int64_t count, const rpo_table_row *row,
                 char *block) {
  char *name = block + row[0].offset;
  int64_t *shape = (int64_t *)(void *)(block + row[1].offset);
  for (int64_t i = 0; i < count; i++) {
    const rpo_named_array *const a = &arrays[i];
    size_t const length = strlen(a->name) + 1;
    memcpy(name, a->name, length);
    name += length;
    *shape++ = a->dims;
    for (int d = 0; d < MOST_DIMS; d++) *shape++ = a->shape[d];
    int64_t const bytes = row[i + 2].count * rpo_type_size(a->type);
    if (bytes > 0) memcpy(block + row[i + 2].offset, a->data, (size_t)bytes);
  }
}

rpo_status rpo_arrays_save(const rpo_named_array *arrays, int64_t count, const char *path,
                           const void *note, int64_t note_bytes, rpo_error *err) {
  if (count < 0 || count > INT32_MAX / 2 || (count > 0 && arrays == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "count is %lld, arrays is %s", (long long)count,
                    arrays == NULL ? "NULL" : "given");
  }
  RPO_TRY(check_arrays(arrays, count, err));
  rpo_table_row *const row = rpo_new(count + 2, (int64_t)sizeof *row);
  if (row == NULL) return rpo_fail_memory(err, "the arrays");
  int64_t const bytes = lay_out(arrays, count, row);
  char *const block = bytes < 0 ? NULL : rpo_new_zero(bytes, 1);
  rpo_status status;
  if (block == NULL) {
    status = rpo_fail_memory(err, "the arrays");
  } else {
    fill(arrays, count, row, block);
    rpo_block_seal(block, RPO_MODEL_ARRAYS, row, (uint32_t)count + 2, bytes);
    status = rpo_model_write(block, path, note, note_bytes, err);
  }
  rpo_delete(block);
  rpo_delete(row);
  return status;
}

/* ---- Loading ---- */

/* Names and shapes, which the sections of the arrays must fit. */
static rpo_status attach(rpo_arrays *a, const rpo_header *head, rpo_error *err) {
  const char *const block = a->block.data;
  if (head->kind != RPO_MODEL_ARRAYS) {
    return rpo_fail(err, RPO_EFORMAT, "a file of kind %u, not of named arrays", head->kind);
  }
  if (head->sections < 2) return rpo_damaged(err, "names or shapes are missing");
  rpo_table_row const names = rpo_table_at(block, 0), shapes = rpo_table_at(block, 1);
  int64_t const count = shapes.count / SHAPE_NUMBERS;
  if (names.id != RPO_SEC_NAMES || names.type != RPO_TYPE_U8 || shapes.id != RPO_SEC_SHAPES ||
      shapes.type != RPO_TYPE_I64 || shapes.count != count * SHAPE_NUMBERS ||
      count > (int64_t)head->sections - 2 || (int64_t)head->sections > count + 3) {
    return rpo_damaged(err, "names or shapes are not where they should be");
  }
  a->array = rpo_new_zero(count, (int64_t)sizeof *a->array);
  if (a->array == NULL) return rpo_fail_memory(err, "the arrays");
  const char *name = block + names.offset, *const end = name + names.count;
  const int64_t *shape = (const int64_t *)(const void *)(block + shapes.offset);
  for (int64_t i = 0; i < count; i++) {
    rpo_table_row const row = rpo_table_at(block, i + 2);
    rpo_named_array *const own = &a->array[i];
    const char *const zero = name < end ? memchr(name, 0, (size_t)(end - name)) : NULL;
    if (zero == NULL) return rpo_damaged(err, "there are fewer names than arrays");
    own->name = name;
    name = zero + 1;
    own->type = (int32_t)row.type;
    own->dims = *shape < 0 || *shape > MOST_DIMS ? -1 : (int32_t)*shape;
    shape++;
    for (int d = 0; d < MOST_DIMS; d++) own->shape[d] = *shape++;
    own->data = block + row.offset;
    if (row.id != RPO_SEC_ARRAY + i || numbers_of(own) != row.count) {
      return rpo_fail(err, RPO_EFORMAT, "damaged model: array %lld is not of its shape",
                      (long long)i);
    }
  }
  a->count = count;
  if ((int64_t)head->sections == count + 2) return RPO_OK;
  rpo_table_row const note = rpo_table_at(block, count + 2);
  if (note.id != RPO_SEC_NOTE || note.type != RPO_TYPE_U8) {
    return rpo_damaged(err, "its last section is no note");
  }
  a->note = block + note.offset;
  a->note_bytes = note.count;
  return RPO_OK;
}

/* Takes the block over on success. */
static rpo_status open_bytes(const rpo_bytes *block, rpo_arrays **out, rpo_error *err) {
  rpo_header head;
  rpo_status status;
  rpo_arrays *const a = rpo_new_zero(1, (int64_t)sizeof *a);
  if (a == NULL) return rpo_fail_memory(err, "the arrays");
  a->block = *block;
  RPO_GOTO(rpo_table_check(block->data, block->bytes, &head, err));
  if (!block->mapped) {
    rpo_block_turn(block->data, &head);
    RPO_GOTO(rpo_sections_check(block->data, &head, err));
  }
  RPO_GOTO(attach(a, &head, err));
  *out = a;
  return RPO_OK;
done:
  rpo_delete(a->array);
  rpo_delete(a);
  return status;
}

rpo_status rpo_arrays_load(const char *path, int32_t mapped, rpo_arrays **out, rpo_error *err) {
  rpo_bytes b;
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  RPO_TRY(rpo_model_read(path, mapped, &b, err));
  rpo_status const status = open_bytes(&b, out, err);
  if (status != RPO_OK) rpo_bytes_release(&b);
  return status;
}

rpo_status rpo_arrays_parse(const void *buffer, int64_t bytes, rpo_arrays **out, rpo_error *err) {
  rpo_header head;
  if (buffer == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "buffer or out is NULL");
  if (bytes < 0) return rpo_fail(err, RPO_EINVAL, "bytes is negative: %lld", (long long)bytes);
  RPO_TRY(rpo_table_check(buffer, bytes, &head, err));
  rpo_bytes b = {rpo_new(bytes, 1), bytes, 0};
  if (b.data == NULL) return rpo_fail_memory(err, "the arrays");
  memcpy(b.data, buffer, (size_t)bytes);
  rpo_status const status = open_bytes(&b, out, err);
  if (status != RPO_OK) rpo_bytes_release(&b);
  return status;
}

void rpo_arrays_free(rpo_arrays *a) {
  if (a == NULL) return;
  rpo_bytes_release(&a->block);
  rpo_delete(a->array);
  rpo_delete(a);
}

int64_t rpo_arrays_count(const rpo_arrays *a) { return a == NULL ? 0 : a->count; }

rpo_status rpo_arrays_get(const rpo_arrays *a, int64_t i, rpo_named_array *out, rpo_error *err) {
  if (a == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "arrays or out is NULL");
  if (i < 0 || i >= a->count) {
    return rpo_fail(err, RPO_EINVAL, "i must be between 0 and %lld, got %lld",
                    (long long)(a->count - 1), (long long)i);
  }
  *out = a->array[i];
  return RPO_OK;
}

const void *rpo_arrays_note(const rpo_arrays *a, int64_t *note_bytes) {
  if (note_bytes != NULL) *note_bytes = a == NULL ? 0 : a->note_bytes;
  return a == NULL ? NULL : a->note;
}
