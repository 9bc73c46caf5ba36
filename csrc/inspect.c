/* What a model file says of itself, for people: read as it is, with whatever damage. */
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "model_io.h"

static void describe(const char *block, int64_t i, rpo_section_info *out) {
  rpo_table_row const row = rpo_table_at(block, i);
  memset(out, 0, sizeof *out);
  (void)snprintf(out->name, sizeof out->name, "%s", rpo_section_name(row.id));
  out->id = row.id;
  out->type = (int32_t)row.type;
  out->offset = row.offset;
  out->count = row.count;
  out->good = rpo_section_good(block + row.offset, &row);
}

rpo_status rpo_model_inspect(const char *path, rpo_model_info *info, rpo_section_info *sections,
                             int64_t room, rpo_error *err) {
  rpo_bytes b;
  rpo_header head;
  rpo_status status;
  if (info == NULL || room < 0 || (room > 0 && sections == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "info or sections is NULL, or room is negative");
  }
  RPO_TRY(rpo_model_read(path, 1, &b, err));
  RPO_GOTO(rpo_table_check(b.data, b.bytes, &head, err));
  if (!b.mapped) rpo_block_turn(b.data, &head);
  memset(info, 0, sizeof *info);
  info->kind = (int32_t)head.kind;
  info->version = (int32_t)head.version;
  info->bytes = b.bytes;
  info->sections = head.sections;
  for (int64_t i = 0; i < head.sections; i++) {
    rpo_section_info s;
    describe(b.data, i, &s);
    info->damaged += !s.good;
    if (i < room) sections[i] = s;
    if (head.kind != RPO_MODEL_FOREST || s.id != RPO_SEC_SHAPE || s.type != RPO_TYPE_I64 ||
        s.count < 4) {
      continue;
    }
    int64_t shape[4];
    memcpy(shape, b.data + s.offset, sizeof shape);
    info->trees = shape[0];
    info->inputs = shape[1];
    info->outputs = shape[2];
    info->rows = shape[3];
  }
done:
  rpo_bytes_release(&b);
  return status;
}
