/* Model files changed by hand, with checksums that are right again. */
#ifndef FORGE_H
#define FORGE_H
#include "checksum.h"
#include "format.h"
#include "mini.h"

static inline void put_number(unsigned char *at, int bytes, uint64_t v) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(v >> (8 * i));
}

static inline void reseal(unsigned char *block, int64_t bytes) {
  rpo_header head;
  if (rpo_header_read(block, bytes, &head, NULL) != RPO_OK) return;
  int64_t const first = rpo_first_section(head.sections);
  if (first > bytes) return;
  for (int64_t i = 0; i < head.sections; i++) {
    rpo_table_row const row = rpo_table_at(block, i);
    int64_t const size = rpo_type_size((int32_t)row.type);
    if (size == 0 || row.offset < first || row.offset > bytes || row.count < 0 ||
        row.count > (bytes - row.offset) / size || rpo_section_bytes(&row) > bytes - row.offset) {
      continue;
    }
    put_number(block + 64 + 32 * i + 24, 8,
               rpo_checksum(block + row.offset, rpo_section_bytes(&row), 1));
  }
  put_number(block + 8, 8, rpo_checksum(block + 16, first - 16, 1));
}

#endif
