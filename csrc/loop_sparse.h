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

/* A cache line of numbers as one value. */
#if defined(__GNUC__)
typedef REAL OF_TYPE(line) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
#define LINE ((int)(64 / sizeof(REAL)))
#else
typedef REAL OF_TYPE(line);
#define LINE 1
#endif

/* The entries of one row of A. */
typedef struct OF_TYPE(entries) {
  const INDEX *index;
  const REAL *value;
  int64_t step; /* 0: all values are the one at value */
  int64_t count;
  int64_t ahead, listed; /* the dense row so many entries ahead is fetched, if it is below listed */
  int64_t fetched;       /* columns of it: all with the first chunk, then none */
  REAL weight;
} OF_TYPE(entries);

#if defined(__GNUC__)
#define FETCH(address) __builtin_prefetch((address), 0, 2) /* into the second-level cache */
#else
#define FETCH(address) (void)(address)
#endif

/* Asks for the whole dense row of an entry to come. */
ALWAYS_INLINE void OF_TYPE(fetch)(const OF_TYPE(entries) * r, int64_t e, const REAL *dense,
                                  int64_t stride) {
  if (e + r->ahead >= r->listed) return;
  const REAL *const row = dense + r->index[e + r->ahead] * stride;
  for (int64_t c = 0; c < r->fetched; c += LINE) FETCH(row + c);
}

/* `lines` lines of columns at b and out; every constant argument is one where this is inlined. */
ALWAYS_INLINE void OF_TYPE(wide)(int kind, int lines, int ahead, const OF_TYPE(entries) * r,
                                 const REAL *b, int64_t b_stride, REAL *out, int64_t out_stride) {
  typedef OF_TYPE(line) line;
  line sum[8];
  if (kind == RPO_TRANSPOSED) {
    for (int v = 0; v < lines; v++) sum[v] = *(const line *)(b + v * LINE);
  } else {
    for (int v = 0; v < lines; v++) sum[v] = (line){0};
    for (int64_t e = 0; e < r->count; e++) {
      REAL const value = r->value[e * r->step];
      const REAL *const z = b + r->index[e] * b_stride;
      if (ahead && r->fetched > 0) OF_TYPE(fetch)(r, e, b, b_stride);
      for (int v = 0; v < lines; v++) sum[v] += value * *(const line *)(z + v * LINE);
    }
  }
  for (int v = 0; v < lines; v++) sum[v] *= r->weight;
  if (kind == RPO_TIMES) {
    for (int v = 0; v < lines; v++) *(line *)(out + v * LINE) = sum[v];
    return;
  }
  for (int64_t e = 0; e < r->count; e++) {
    REAL const value = r->value[e * r->step];
    REAL *const z = out + r->index[e] * out_stride;
    if (ahead && r->fetched > 0) OF_TYPE(fetch)(r, e, out, out_stride);
    for (int v = 0; v < lines; v++) *(line *)(z + v * LINE) += value * sum[v];
  }
}

/* The same for `width` columns, less than a line. */
ALWAYS_INLINE void OF_TYPE(narrow)(int kind, int width, const OF_TYPE(entries) * r, const REAL *b,
                                   int64_t b_stride, REAL *out, int64_t out_stride) {
  REAL sum[8];
  for (int c = 0; c < width; c++) sum[c] = kind == RPO_TRANSPOSED ? b[c] : (REAL)0;
  if (kind != RPO_TRANSPOSED) {
    for (int64_t e = 0; e < r->count; e++) {
      REAL const value = r->value[e * r->step];
      const REAL *const z = b + r->index[e] * b_stride;
      for (int c = 0; c < width; c++) sum[c] += value * z[c];
    }
  }
  for (int c = 0; c < width; c++) sum[c] *= r->weight;
  if (kind == RPO_TIMES) {
    for (int c = 0; c < width; c++) out[c] = sum[c];
    return;
  }
  for (int64_t e = 0; e < r->count; e++) {
    REAL const value = r->value[e * r->step];
    REAL *const z = out + r->index[e] * out_stride;
    for (int c = 0; c < width; c++) z[c] += value * sum[c];
  }
}

/* Cuts the columns into chunks. */
ALWAYS_INLINE void OF_TYPE(row)(int kind, int ahead, const rpo_product *p, OF_TYPE(entries) * r,
                                int64_t i, int64_t left) {
  const REAL *b = p->b;
  REAL *out = p->out;
  if (kind == RPO_TRANSPOSED) b += i * p->b_stride;
  if (kind == RPO_TIMES) out += i * p->out_stride;
#define WIDE(lines)                                                           \
  {                                                                           \
    OF_TYPE(wide)(kind, lines, ahead, r, b, p->b_stride, out, p->out_stride); \
    b += (lines) * LINE;                                                      \
    out += (lines) * LINE;                                                    \
    left -= (lines) * LINE;                                                   \
    r->fetched = 0;                                                           \
  }
#define NARROW(width)                                                    \
  if (left >= (width)) {                                                 \
    OF_TYPE(narrow)(kind, width, r, b, p->b_stride, out, p->out_stride); \
    b += (width);                                                        \
    out += (width);                                                      \
    left -= (width);                                                     \
  }
  while (left >= 8 * LINE) WIDE(8)
  if (left >= 4 * LINE) WIDE(4)
  if (left >= 2 * LINE) WIDE(2)
  if (left >= LINE) WIDE(1)
  if (LINE > 8) NARROW(8)
  NARROW(4)
  NARROW(2)
  NARROW(1)
#undef WIDE
#undef NARROW
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
    r.fetched = ahead ? width : 0;
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
#undef FETCH
#undef REAL
#undef INDEX
#undef TAG
