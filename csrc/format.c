#include "format.h"

#include <string.h>

#include "checksum.h"

/* Header: magic, checksum of what lies between it and the first section, version, kind, sections, 0,
 * bytes, zeros. */
enum {
  AT_CHECKSUM = 8,
  AT_SUMMED = 16,
  AT_VERSION = 16,
  AT_KIND = 20,
  AT_SECTIONS = 24,
  AT_BYTES = 32
};

static uint64_t get(const unsigned char *at, int bytes) {
  uint64_t v = 0;
  for (int i = bytes - 1; i >= 0; i--) v = v << 8 | at[i];
  return v;
}

static void put(unsigned char *at, int bytes, uint64_t v) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(v >> (8 * i));
}

/* ---- Reading ---- */

rpo_status rpo_header_read(const void *block, int64_t have, rpo_header *out, rpo_error *err) {
  const unsigned char *const at = block;
  if (have < 8 || memcmp(at, RPO_MAGIC, 8) != 0) {
    return rpo_fail(err, RPO_EFORMAT, "not a model: it does not begin with %s", RPO_MAGIC);
  }
  if (have < RPO_HEADER_BYTES) return rpo_damaged(err, "shorter than its header");
  out->version = (uint32_t)get(at + AT_VERSION, 4);
  if (out->version < 1 || out->version > RPO_FORMAT_VERSION) {
    return rpo_fail(err, RPO_EFORMAT, "model format %u is not known here (this library reads %d)",
                    out->version, RPO_FORMAT_VERSION);
  }
  out->kind = (uint32_t)get(at + AT_KIND, 4);
  out->sections = (uint32_t)get(at + AT_SECTIONS, 4);
  uint64_t const bytes = get(at + AT_BYTES, 8);
  if (bytes > INT64_MAX / 2) return rpo_damaged(err, "its header gives an impossible length");
  out->bytes = (int64_t)bytes;
  return RPO_OK;
}

rpo_table_row rpo_table_at(const void *block, int64_t i) {
  const unsigned char *const at =
      (const unsigned char *)block + RPO_HEADER_BYTES + i * RPO_ROW_BYTES;
  rpo_table_row row;
  row.id = (uint32_t)get(at, 4);
  row.type = (uint32_t)get(at + 4, 4);
  row.offset = (int64_t)get(at + 8, 8);
  row.count = (int64_t)get(at + 16, 8);
  row.checksum = get(at + 24, 8);
  return row;
}

rpo_status rpo_table_check(const void *block, int64_t bytes, rpo_header *out, rpo_error *err) {
  RPO_TRY(rpo_header_read(block, bytes, out, err));
  if (out->bytes != bytes) {
    return rpo_fail(err, RPO_EFORMAT, "damaged model: it has %lld bytes, its header says %lld",
                    (long long)bytes, (long long)out->bytes);
  }
  int64_t at = rpo_first_section(out->sections);
  if (at > bytes) return rpo_damaged(err, "too many sections");
  uint64_t const sum = rpo_checksum((const char *)block + AT_SUMMED, at - AT_SUMMED, 1);
  if (!rpo_checksum_agrees(sum, get((const unsigned char *)block + AT_CHECKSUM, 8))) {
    return rpo_damaged(err, "the checksum of its header and table of sections is wrong");
  }
  for (int64_t i = 0; i < out->sections; i++) {
    rpo_table_row const row = rpo_table_at(block, i);
    int64_t const size = rpo_type_size((int32_t)row.type);
    if (size == 0 || row.offset != at || row.count < 0 || row.count > (bytes - at) / size ||
        rpo_section_bytes(&row) > bytes - at) {
      return rpo_fail(
          err, RPO_EFORMAT,
          "damaged model: section %lld (%s) is not where it should be, lies outside the "
          "file or has an unknown type",
          (long long)i, rpo_section_name(row.id));
    }
    at += rpo_section_bytes(&row);
  }
  return at == bytes ? RPO_OK : rpo_damaged(err, "bytes behind its last section");
}

int rpo_section_good(const void *section, const rpo_table_row *row) {
  int64_t const size = rpo_type_size((int32_t)row->type);
  return rpo_checksum_agrees(rpo_checksum(section, rpo_section_bytes(row), size), row->checksum);
}

rpo_status rpo_sections_check(const void *block, const rpo_header *head, rpo_error *err) {
  for (int64_t i = 0; i < head->sections; i++) {
    rpo_table_row const row = rpo_table_at(block, i);
    if (rpo_section_good((const char *)block + row.offset, &row)) continue;
    return rpo_fail(
        err, RPO_EFORMAT,
        "damaged model: the checksum of section %lld (%s, %lld bytes from %lld) is wrong",
        (long long)i, rpo_section_name(row.id), (long long)rpo_section_bytes(&row),
        (long long)row.offset);
  }
  return RPO_OK;
}

/* ---- Writing ---- */

void rpo_header_write(const rpo_header *head, const rpo_table_row *rows, void *to) {
  unsigned char *const at = to;
  int64_t const end = rpo_first_section(head->sections);
  memset(at, 0, (size_t)end);
  for (int i = 0; i < 8; i++) at[i] = (unsigned char)RPO_MAGIC[i];
  put(at + AT_VERSION, 4, head->version);
  put(at + AT_KIND, 4, head->kind);
  put(at + AT_SECTIONS, 4, head->sections);
  put(at + AT_BYTES, 8, (uint64_t)head->bytes);
  for (int64_t i = 0; i < head->sections; i++) {
    unsigned char *const row = at + RPO_HEADER_BYTES + i * RPO_ROW_BYTES;
    put(row, 4, rows[i].id);
    put(row + 4, 4, rows[i].type);
    put(row + 8, 8, (uint64_t)rows[i].offset);
    put(row + 16, 8, (uint64_t)rows[i].count);
    put(row + 24, 8, rows[i].checksum);
  }
  put(at + AT_CHECKSUM, 8, rpo_checksum(at + AT_SUMMED, end - AT_SUMMED, 1));
}

void rpo_block_seal(char *block, uint32_t kind, rpo_table_row *rows, uint32_t sections,
                    int64_t bytes) {
  rpo_header const head = {RPO_FORMAT_VERSION, kind, sections, bytes};
  for (uint32_t i = 0; i < sections; i++) {
    rows[i].checksum = rpo_checksum(block + rows[i].offset, rpo_section_bytes(&rows[i]),
                                    rpo_type_size((int32_t)rows[i].type));
  }
  rpo_header_write(&head, rows, block);
}

void rpo_block_turn(char *block, const rpo_header *head) {
  if (!rpo_is_big_endian()) return;
  for (int64_t i = 0; i < head->sections; i++) {
    rpo_table_row const row = rpo_table_at(block, i);
    int64_t const size = rpo_type_size((int32_t)row.type);
    char *const at = block + row.offset;
    for (int64_t e = 0; size > 1 && e < row.count * size; e += size) {
      for (int64_t k = 0; k < size / 2; k++) {
        char const other = at[e + k];
        at[e + k] = at[e + size - 1 - k];
        at[e + size - 1 - k] = other;
      }
    }
  }
}

const char *rpo_section_name(uint32_t id) {
  static const char *const names[RPO_SECTIONS] = {
      [RPO_SEC_SHAPE] = "shape",
      [RPO_SEC_SAMPLING] = "sampling",
      [RPO_SEC_INNER_START] = "inner starts",
      [RPO_SEC_LEAF_START] = "leaf starts",
      [RPO_SEC_ROW_START] = "row starts",
      [RPO_SEC_FEATURE] = "features",
      [RPO_SEC_THRESHOLD] = "thresholds",
      [RPO_SEC_LEFT] = "left children",
      [RPO_SEC_RIGHT] = "right children",
      [RPO_SEC_FLAGS] = "flags",
      [RPO_SEC_IMPURITY] = "impurities",
      [RPO_SEC_LEAF_IMPURITY] = "leaf impurities",
      [RPO_SEC_LEAF_WEIGHT] = "leaf weights",
      [RPO_SEC_LEAF_ROWS] = "leaf sizes",
      [RPO_SEC_ROWS] = "rows",
      [RPO_SEC_ROW_WEIGHT] = "row weights",
      [RPO_SEC_VALUE_START] = "value starts",
      [RPO_SEC_VALUE_INDEX] = "value columns",
      [RPO_SEC_VALUE] = "values",
      [RPO_SEC_FALLBACK] = "fallback",
      [RPO_SEC_NOTE] = "note",
      [RPO_SEC_SAMPLE_WEIGHT] = "sample weights",
      [RPO_SEC_START] = "constants",
      [RPO_SEC_STEP] = "steps",
      [RPO_SEC_LEAF_FIRST] = "first rows",
      [RPO_SEC_NAMES] = "names",
      [RPO_SEC_SHAPES] = "shapes",
  };
  if (id >= RPO_SEC_ARRAY) return "array";
  return id < RPO_SECTIONS && names[id] != NULL ? names[id] : "unknown";
}
