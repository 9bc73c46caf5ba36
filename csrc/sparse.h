/* Products of a CSR matrix and a dense one, as the kernels see them. */
#ifndef RPO_SPARSE_H
#define RPO_SPARSE_H
#include "rpo.h"

enum {
  RPO_TIMES,      /* out = diag(w) A B */
  RPO_TRANSPOSED, /* out = A' diag(w) B */
  RPO_GRAM        /* out = A' diag(w) A B */
};

typedef struct rpo_product {
  int kind;
  const rpo_matrix *a;  /* CSR */
  const double *weight; /* by row of a; NULL: ones */
  int dtype;            /* of the values of a, of b and of out: rpo_dtype */
  const void *b;        /* dense */
  int64_t b_stride;     /* numbers from row to row */
  void *out;
  int64_t out_stride;
  int beside;    /* each row of out lies right behind that of b */
  int64_t ahead; /* entries by which rows of b or out are fetched before their turn; 0: not */
} rpo_product;

/* An entry in the order of tiles.c: where the line of its row begins in its block, and that of its
 * column in the panel, in numbers. */
typedef struct rpo_entry_double {
  int32_t row, column;
  double value;
} rpo_entry_double;
typedef struct rpo_entry_float {
  int32_t row, column;
  float value;
} rpo_entry_float;

enum { RPO_TILE_AHEAD = 128 }; /* entries that are readable behind the last */
#endif
