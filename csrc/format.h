/* The layout of a model's block: header, table of sections. Shared by model.c, which reads
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

/* Of everything behind the header, and of its fields. */
static inline uint64_t rpo_block_checksum(const char *block, int64_t bytes,
                                          const rpo_header *head) {
  uint64_t const rest = rpo_checksum(block + sizeof *head, bytes - (int64_t)sizeof *head);
  return rpo_checksum(head, (int64_t)offsetof(rpo_header, checksum)) ^ rest;
}
#endif
