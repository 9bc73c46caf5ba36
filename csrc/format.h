/* The layout of a model's block: header, table of sections, types. Shared by model.c, which reads
 * blocks, and pack.c, which writes them. */
#ifndef RPO_FORMAT_H
#define RPO_FORMAT_H
#include "checksum.h"
#include "model.h"

#define RPO_MAGIC "RPOMODEL"
#define RPO_FORMAT_VERSION 1
#define RPO_BOUNDARY 64

typedef struct rpo_header {
  char magic[8];
  uint32_t version, sections;
  uint64_t bytes, checksum; /* of everything else */
} rpo_header;

typedef struct rpo_table_row {
  uint32_t id, type;
  uint64_t offset, count;
} rpo_table_row;

static inline int64_t rpo_type_size(uint32_t type) {
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

/* What a section may be, so that readers in hot loops know a few types only. */
enum { RPO_ANY = 0, RPO_INDEX = 101, RPO_CHILD = 102, RPO_REAL = 103, RPO_COUNT = 104 };

static inline int rpo_type_allowed(uint32_t family, uint32_t type) {
  switch (family) {
    case RPO_ANY: return 1;
    case RPO_INDEX: return type == RPO_TYPE_U16 || type == RPO_TYPE_I32;
    case RPO_CHILD: return type == RPO_TYPE_I16 || type == RPO_TYPE_I32;
    case RPO_REAL: return type == RPO_TYPE_F32 || type == RPO_TYPE_F64;
    case RPO_COUNT: return type == RPO_TYPE_U8 || type == RPO_TYPE_U16 || type == RPO_TYPE_I32;
    default: return type == family;
  }
}

/* Of everything behind the header, and of its fields. */
static inline uint64_t rpo_block_checksum(const char *block, int64_t bytes,
                                          const rpo_header *head) {
  uint64_t const rest = rpo_checksum(block + sizeof *head, bytes - (int64_t)sizeof *head);
  return rpo_checksum(head, (int64_t)offsetof(rpo_header, checksum)) ^ rest;
}
#endif
