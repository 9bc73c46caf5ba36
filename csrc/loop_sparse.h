/* Rows of a CSR matrix times dense rows. Included once for each type of numbers and of indices: REAL,
 * INDEX and the name's ending TAG are the includer's.
 *
 * Work goes by chunks of columns narrow enough for registers. In a chunk, a row of A gathers: the sum
 * over its entries of value * row of B; or it scatters: value * chunk is added to a row of out, entry
 * after entry. A B is gathering, A'B is scattering, A'A B is one after the other. Each number of out
 * is a sum in the order of A's rows and entries, however columns are cut. */

#define PASTE_(name, tag) name##_##tag
#define PASTE(name, tag) PASTE_(name, tag)
#define OF_TYPE(name) PASTE(name, TAG)

/* A cache line of numbers as one value, and a quarter of it. */
#if defined(__GNUC__)
typedef REAL OF_TYPE(line) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
typedef REAL OF_TYPE(quarter) __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));
#define LINE ((int)(64 / sizeof(REAL)))
#else
typedef REAL OF_TYPE(line), OF_TYPE(quarter);
#define LINE 1
#endif
#define QUARTER ((LINE + 3) / 4)

/* The entries of one row of A. */
typedef struct OF_TYPE(entries) {
  const INDEX *index;
  const REAL *value;
  int64_t step; /* 0: all values are the one at value */
  int64_t count;
  int64_t ahead, listed; /* the dense row so many entries ahead is fetched, if it is below listed */
  int64_t fetched_b, fetched_out; /* columns of it: all with the first chunk, then none */
  REAL weight;
} OF_TYPE(entries);

#if defined(__GNUC__)
#define FETCH(address) __builtin_prefetch((address), 0, 2) /* into the second-level cache */
#else
#define FETCH(address) (void)(address)
#endif

/* Asks for the whole dense row of an entry to come. */
ALWAYS_INLINE void OF_TYPE(fetch)(const OF_TYPE(entries) * r, int64_t e, const REAL *dense,
                                  int64_t stride, int64_t columns) {
  if (e + r->ahead >= r->listed) return;
  const REAL *const row = dense + r->index[e + r->ahead] * stride;
  for (int64_t c = 0; c < columns; c += LINE) FETCH(row + c);
}

#define CHUNK lines
#define VECTOR OF_TYPE(line)
#define LANES LINE
#include "loop_chunk.h"
#define CHUNK quarters
#define VECTOR OF_TYPE(quarter)
#define LANES QUARTER
#include "loop_chunk.h"
#define CHUNK numbers
#define VECTOR REAL
#define LANES 1
#include "loop_chunk.h"

/* Cuts the columns into chunks. */
ALWAYS_INLINE void OF_TYPE(row)(int kind, int ahead, const rpo_product *p, OF_TYPE(entries) * r,
                                int64_t i, int64_t left) {
  const REAL *b = p->b;
  REAL *out = p->out;
  if (kind == RPO_TRANSPOSED) b += i * p->b_stride;
  if (kind == RPO_TIMES) out += i * p->out_stride;
#define DO(chunk, parts, lanes)                                                \
  {                                                                            \
    OF_TYPE(chunk)(kind, parts, ahead, r, b, p->b_stride, out, p->out_stride); \
    b += (parts) * (lanes);                                                    \
    out += (parts) * (lanes);                                                  \
    left -= (parts) * (lanes);                                                 \
    r->fetched_b = r->fetched_out = 0;                                         \
  }
  while (left >= 8 * LINE) DO(lines, 8, LINE)
  if (left >= 4 * LINE) DO(lines, 4, LINE)
  if (left >= 2 * LINE) DO(lines, 2, LINE)
  if (left >= LINE) DO(lines, 1, LINE)
  if (left >= 2 * QUARTER) DO(quarters, 2, QUARTER)
  if (left >= QUARTER) DO(quarters, 1, QUARTER)
  if (left >= 2) DO(numbers, 2, 1)
  if (left >= 1) DO(numbers, 1, 1)
#undef DO
}

ALWAYS_INLINE void OF_TYPE(rows)(int kind, int ahead, const rpo_product *p, int64_t from,
                                 int64_t to, int64_t width) {
  static const REAL one = 1;
  const INDEX *const start = p->a->indptr, *const index = p->a->indices;
  const REAL *const value = p->a->data;
  for (int64_t i = from; i < to; i++) {
    OF_TYPE(entries) r;
    r.index = index + start[i];
    r.step = value != NULL;
    r.value = value != NULL ? value + start[i] : &one;
    r.count = start[i + 1] - start[i];
    r.ahead = p->ahead;
    r.listed = start[to] - start[i];
    r.fetched_b = !ahead ? 0 : p->beside ? 2 * width : width;
    r.fetched_out = !ahead || p->beside ? 0 : width;
    r.weight = p->weight == NULL ? (REAL)1 : (REAL)p->weight[i];
    OF_TYPE(row)(kind, ahead, p, &r, i, width);
  }
}

static void OF_TYPE(multiply)(const rpo_product *p, int64_t from, int64_t to, int64_t width) {
  switch (2 * p->kind + (p->ahead > 0)) {
    case 2 * RPO_TIMES: OF_TYPE(rows)(RPO_TIMES, 0, p, from, to, width); break;
    case 2 * RPO_TIMES + 1: OF_TYPE(rows)(RPO_TIMES, 1, p, from, to, width); break;
    case 2 * RPO_TRANSPOSED: OF_TYPE(rows)(RPO_TRANSPOSED, 0, p, from, to, width); break;
    case 2 * RPO_TRANSPOSED + 1: OF_TYPE(rows)(RPO_TRANSPOSED, 1, p, from, to, width); break;
    case 2 * RPO_GRAM: OF_TYPE(rows)(RPO_GRAM, 0, p, from, to, width); break;
    default: OF_TYPE(rows)(RPO_GRAM, 1, p, from, to, width);
  }
}

#undef PASTE_
#undef PASTE
#undef OF_TYPE
#undef LINE
#undef QUARTER
#undef FETCH
#undef REAL
#undef INDEX
#undef TAG
