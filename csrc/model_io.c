#include "model_io.h"

#include <string.h>

#include "checksum.h"
#include "mem.h"
#include "model.h"

/* ---- Reading ---- */

static rpo_status length_of(const void *start, int64_t have, int64_t *bytes, rpo_error *err) {
  rpo_header head;
  RPO_TRY(rpo_header_read(start, have, &head, err));
  *bytes = head.bytes;
  return RPO_OK;
}

rpo_status rpo_model_read(const char *path, int mapped, rpo_bytes *out, rpo_error *err) {
  if (path == NULL) return rpo_fail(err, RPO_EINVAL, "path is NULL");
  return mapped && !rpo_is_big_endian() ? rpo_file_map(path, length_of, out, err)
                                        : rpo_file_read(path, length_of, out, err);
}

/* ---- Writing ---- */

/* Header and table for the block's sections and another note. The note lies last, wherever the block's
 * own lay; sections move by as much as the table grows and that note took. */
typedef struct layout {
  rpo_header head;
  rpo_table_row *row;
  char *start;                      /* header and table */
  int64_t first, gap, behind, last; /* the block's sections: up to its note, and from behind it */
  char *note;                       /* with zeros behind it, up to the next boundary */
  int64_t note_bytes;
} layout;

static void release(layout *l) {
  rpo_delete(l->row);
  rpo_delete(l->start);
  rpo_delete(l->note);
}

static rpo_status lay_out(const char *block, const void *note, int64_t note_bytes, layout *l,
                          rpo_error *err) {
  memset(l, 0, sizeof *l);
  RPO_TRY(rpo_header_read(block, RPO_HEADER_BYTES, &l->head, err));
  uint32_t const before = l->head.sections;
  l->row = rpo_new(before + 1, (int64_t)sizeof *l->row);
  l->start = rpo_new(rpo_first_section(before + 1), 1);
  l->note_bytes = rpo_aligned(note_bytes);
  l->note = rpo_new_zero(l->note_bytes, 1);
  if (l->row == NULL || l->start == NULL || l->note == NULL) {
    return rpo_fail_memory(err, "the model");
  }
  if (note_bytes > 0) memcpy(l->note, note, (size_t)note_bytes);
  l->first = rpo_first_section(before);
  l->gap = l->behind = l->last = l->head.bytes;
  uint32_t count = 0;
  for (uint32_t i = 0; i < before; i++) {
    rpo_table_row const row = rpo_table_at(block, i);
    if (row.id == RPO_SEC_NOTE) {
      l->gap = row.offset;
      l->behind = row.offset + rpo_section_bytes(&row);
    } else {
      l->row[count] = row;
      l->row[count++].offset -= l->behind - l->gap;
    }
  }
  int64_t const move = rpo_first_section(count + (note_bytes > 0)) - l->first;
  int64_t const end = l->last - (l->behind - l->gap) + move;
  for (uint32_t i = 0; i < count; i++) l->row[i].offset += move;
  if (note_bytes > 0) {
    rpo_table_row const row = {RPO_SEC_NOTE, RPO_TYPE_U8, end, note_bytes,
                               rpo_checksum(l->note, l->note_bytes, 1)};
    l->row[count++] = row;
  }
  l->head.sections = count;
  l->head.bytes = end + l->note_bytes;
  rpo_header_write(&l->head, l->row, l->start);
  return RPO_OK;
}

rpo_status rpo_model_write(const char *block, const char *path, const void *note,
                           int64_t note_bytes, rpo_error *err) {
  layout l;
  char *turned = NULL;
  rpo_status status;
  if (path == NULL) return rpo_fail(err, RPO_EINVAL, "path is NULL");
  if (note_bytes < 0 || note_bytes > INT64_MAX / 4 || (note_bytes > 0 && note == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "note_bytes is %lld, note is %s", (long long)note_bytes,
                    note == NULL ? "NULL" : "given");
  }
  RPO_GOTO(lay_out(block, note, note_bytes, &l, err));
  const char *from = block;
  if (rpo_is_big_endian()) {
    rpo_header head;
    RPO_GOTO(rpo_header_read(block, RPO_HEADER_BYTES, &head, err));
    turned = rpo_new(head.bytes, 1);
    if (turned == NULL) {
      status = rpo_fail_memory(err, "the model");
      goto done;
    }
    memcpy(turned, block, (size_t)head.bytes);
    rpo_block_turn(turned, &head);
    from = turned;
  }
  rpo_piece const pieces[4] = {{l.start, rpo_first_section(l.head.sections)},
                               {from + l.first, l.gap - l.first},
                               {from + l.behind, l.last - l.behind},
                               {l.note, l.note_bytes}};
  status = rpo_file_write(path, pieces, 4, err);
done:
  rpo_delete(turned);
  release(&l);
  return status;
}

/* ---- Forests ---- */

void rpo_forest_free(rpo_forest *m) {
  if (m == NULL) return;
  rpo_bytes block = {m->block, m->bytes, m->mapped};
  rpo_bytes_release(&block);
  rpo_delete(m);
}

int32_t rpo_forest_is_mapped(const rpo_forest *m) { return m != NULL && m->mapped; }

rpo_status rpo_forest_save(const rpo_forest *m, const char *path, const void *note,
                           int64_t note_bytes, rpo_error *err) {
  if (m == NULL) return rpo_fail(err, RPO_EINVAL, "forest is NULL");
  return rpo_model_write(m->block, path, note, note_bytes, err);
}

const void *rpo_forest_note(const rpo_forest *m, int64_t *note_bytes) {
  int const there = m != NULL && m->note.data != NULL && m->note.type == RPO_TYPE_U8;
  if (note_bytes != NULL) *note_bytes = there ? m->note.count : 0;
  return there ? m->note.data : NULL;
}

static rpo_status open_bytes(rpo_bytes *b, rpo_forest **out, rpo_error *err) {
  rpo_status const status = b->mapped ? rpo_model_open_mapped(b->data, b->bytes, out, err)
                                      : rpo_model_open(b->data, b->bytes, out, err);
  if (status != RPO_OK) rpo_bytes_release(b);
  return status;
}

static rpo_status load(const char *path, int mapped, rpo_forest **out, rpo_error *err) {
  rpo_bytes b;
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  RPO_TRY(rpo_model_read(path, mapped, &b, err));
  return open_bytes(&b, out, err);
}

rpo_status rpo_forest_load(const char *path, rpo_forest **out, rpo_error *err) {
  return load(path, 0, out, err);
}

rpo_status rpo_forest_open_mapped(const char *path, rpo_forest **out, rpo_error *err) {
  return load(path, 1, out, err);
}

rpo_status rpo_forest_dump(const rpo_forest *m, void *buffer, rpo_error *err) {
  rpo_header head;
  if (m == NULL || buffer == NULL) return rpo_fail(err, RPO_EINVAL, "forest or buffer is NULL");
  memcpy(buffer, m->block, (size_t)m->bytes);
  RPO_TRY(rpo_header_read(buffer, m->bytes, &head, err));
  rpo_block_turn(buffer, &head);
  return RPO_OK;
}

rpo_status rpo_forest_parse(const void *buffer, int64_t bytes, rpo_forest **out, rpo_error *err) {
  rpo_header head;
  if (buffer == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "buffer or out is NULL");
  if (bytes < 0) return rpo_fail(err, RPO_EINVAL, "bytes is negative: %lld", (long long)bytes);
  RPO_TRY(rpo_table_check(buffer, bytes, &head, err));
  rpo_bytes b = {rpo_new(bytes, 1), bytes, 0};
  if (b.data == NULL) return rpo_fail_memory(err, "the model");
  memcpy(b.data, buffer, (size_t)bytes);
  return open_bytes(&b, out, err);
}
