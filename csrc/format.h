/* The layout of model files and of models in memory, docs/format.md: a header, a table of sections,
 * the sections one behind the other on 64-byte boundaries. Header and table are written byte by byte,
 * little-endian; sections are arrays of numbers, little-endian in a file, the machine's own in
 * memory. model.c and pack.c make forests of them, arrays.c named arrays. */
#ifndef RPO_FORMAT_H
#define RPO_FORMAT_H
#include "number.h"
#include "status.h"

#define RPO_MAGIC "RPOMODEL"
#define RPO_FORMAT_VERSION 1
#define RPO_BOUNDARY 64
#define RPO_HEADER_BYTES 64
#define RPO_ROW_BYTES 32

/* Ids of sections in files: never renumbered. */
typedef enum rpo_section {
  RPO_SEC_SHAPE = 1,       /* i64: trees, inputs, outputs, rows, ratio, shares */
  RPO_SEC_SAMPLING = 2,    /* i64: by tree: seed, number, bootstrap draws (0: none) */
  RPO_SEC_INNER_START = 3, /* i64: trees + 1 */
  RPO_SEC_LEAF_START = 4,  /* i64: trees + 1 */
  RPO_SEC_ROW_START = 5,   /* i64: trees + 1; rows form */
  RPO_SEC_FEATURE = 6,     /* by inner node */
  RPO_SEC_THRESHOLD = 7,   /* by inner node */
  RPO_SEC_LEFT = 8,        /* by inner node: inner node of the tree, or ~leaf */
  RPO_SEC_RIGHT = 9,
  RPO_SEC_FLAGS = 10,         /* u8 by inner node: rpo_node_flag */
  RPO_SEC_IMPURITY = 11,      /* f32 by inner node */
  RPO_SEC_LEAF_IMPURITY = 12, /* f32 by leaf */
  RPO_SEC_LEAF_WEIGHT = 13,   /* by leaf */
  RPO_SEC_LEAF_ROWS = 14,     /* by leaf: number of training rows; not in the rows form */
  RPO_SEC_ROWS = 15,          /* rows form: training rows, leaf after leaf */
  RPO_SEC_ROW_WEIGHT = 16,    /* rows form: their weights; absent: 1 */
  RPO_SEC_VALUE_START = 17,   /* i64, sparse values: rows of them + 1; absent: dense */
  RPO_SEC_VALUE_INDEX = 18,   /* sparse values: label columns */
  RPO_SEC_VALUE = 19,         /* labels by training row, or leaf values; absent: ones (sparse) */
  RPO_SEC_FALLBACK = 21,      /* f64 by output, ratio only */
  RPO_SEC_NOTE = 22,          /* u8: the caller's own bytes */
  RPO_SEC_SAMPLE_WEIGHT = 23, /* by leaf: its weight in the sample the tree was grown on, where the
                                 leaves hold all rows; absent: they hold that sample */
  RPO_SEC_START = 24, /* f64 by output: of boosted models, whose predictions are these and the
                                 sums of their trees */
  RPO_SEC_STEP = 25,  /* f32 by tree and output: leaves have one value, multiplied by these */
  RPO_SEC_LEAF_FIRST =
      26,              /* rows form: where a leaf's rows begin among its tree's, and behind a tree's
                              leaves how many it has */
  RPO_SEC_NAMES = 27,  /* named arrays: u8, their names, each ended by a zero */
  RPO_SEC_SHAPES = 28, /* named arrays: i64, by array: dimensions, lengths of four of them */
  RPO_SECTIONS = 29,   /* ids of forests are below */
  RPO_SEC_ARRAY = 256  /* named arrays: the numbers of array i have the id 256 + i */
} rpo_section;

typedef struct rpo_header {
  uint32_t version, kind, sections;
  int64_t bytes; /* of the whole file */
} rpo_header;

typedef struct rpo_table_row {
  uint32_t id, type;
  int64_t offset, count; /* offset from the beginning of the file */
  uint64_t checksum;     /* of the section with the zeros behind it, up to the next boundary */
} rpo_table_row;

static inline int rpo_is_big_endian(void) {
  uint16_t const one = 1;
  return *(const unsigned char *)&one == 0;
}

static inline int64_t rpo_aligned(int64_t bytes) {
  return (bytes + RPO_BOUNDARY - 1) / RPO_BOUNDARY * RPO_BOUNDARY;
}

/* Where the first section begins. */
static inline int64_t rpo_first_section(int64_t sections) {
  return rpo_aligned(RPO_HEADER_BYTES + sections * RPO_ROW_BYTES);
}

/* Bytes of a section with the zeros behind it. */
static inline int64_t rpo_section_bytes(const rpo_table_row *row) {
  return rpo_aligned(row->count * rpo_type_size((int32_t)row->type));
}

static inline rpo_status rpo_damaged(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_EFORMAT, "damaged model: %s", what);
}

/* What the first bytes of a file say of the rest. */
rpo_status rpo_header_read(const void *block, int64_t have, rpo_header *out, rpo_error *err);
/* Header and table of a whole block, which must lie one behind the other without gaps: afterwards
 * every section lies within the block. */
rpo_status rpo_table_check(const void *block, int64_t bytes, rpo_header *out, rpo_error *err);
/* Row i of a table that was checked. */
rpo_table_row rpo_table_at(const void *block, int64_t i);
/* Whether a section is what its checksum says; `section` in the machine's order of bytes. */
int rpo_section_good(const void *section, const rpo_table_row *row);
/* All of them; says which one is not. */
rpo_status rpo_sections_check(const void *block, const rpo_header *head, rpo_error *err);

/* Writes header and table, rpo_first_section(head->sections) bytes. */
void rpo_header_write(const rpo_header *head, const rpo_table_row *rows, void *to);
/* Sums up the sections of a block in memory and writes its header and table. */
void rpo_block_seal(char *block, uint32_t kind, rpo_table_row *rows, uint32_t sections,
                    int64_t bytes);
/* Between the order of bytes of files and that of this machine: turns the sections around, or does
 * nothing. */
void rpo_block_turn(char *block, const rpo_header *head);

/* Name of a section for people: "thresholds". */
const char *rpo_section_name(uint32_t id);
#endif
