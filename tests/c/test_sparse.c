/* Products of a CSR matrix and a dense one against their definition: number and index types, widths,
 * weights, ones, threads. Sums are in the order of A's entries, so the bits are known, too. */
#include "data.h"
#include "starve.h"
#include "tiles.h"

typedef rpo_status (*multiply)(const rpo_matrix *A, const double *weight, const rpo_matrix *B,
                               const rpo_control *control, void *out, rpo_error *err);

enum { TIMES, TRANSPOSED, GRAM, KINDS };
static const multiply by_kind[KINDS] = {rpo_sparse_product, rpo_sparse_transposed_product,
                                        rpo_sparse_gram_product};

/* A, its CSR form in any types, B with a stride of its own, and the result. */
typedef struct sums {
  int kind, single, far, ones;
  int64_t n, p, width, stride;
  rpo_matrix A, B;
  int64_t *start, *index;
  int32_t *start32, *index32;
  double *value, *b, *weight, *out;
  float *value32, *b32, *out32;
} sums;

static int64_t result_rows(const sums *s) { return s->kind == TIMES ? s->n : s->p; }
static int64_t b_rows(const sums *s) { return s->kind == TRANSPOSED ? s->n : s->p; }

static int by_size(const void *a, const void *b) {
  int64_t const x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Up to `most` entries a row, indices in any order or, `sorted`, ascending. */
static sums sums_of(dice *d, int kind, int single, int far, int ones, int64_t n, int64_t p,
                    int64_t width, int64_t most_entries, int sorted) {
  sums s;
  memset(&s, 0, sizeof s);
  s.kind = kind, s.single = single, s.far = far, s.ones = ones;
  s.n = n, s.p = p, s.width = width;
  s.stride = width + dice_below(d, 4);
  int64_t const most = n * most_entries;
  s.start = mini_room(n + 1, 8), s.index = mini_room(most, 8), s.value = mini_room(most, 8);
  s.start32 = mini_room(n + 1, 4), s.index32 = mini_room(most, 4), s.value32 = mini_room(most, 4);
  for (int64_t i = 0; i < n; i++) { /* empty rows, and indices that occur twice */
    int64_t const count = dice_below(d, 3) == 0 ? 0 : dice_below(d, most_entries);
    s.start[i + 1] = s.start[i] + count;
    for (int64_t e = s.start[i]; e < s.start[i + 1]; e++) s.index[e] = dice_below(d, p);
    if (sorted) qsort(s.index + s.start[i], (size_t)count, sizeof *s.index, by_size);
    for (int64_t e = s.start[i]; e < s.start[i + 1]; e++) {
      s.index32[e] = (int32_t)s.index[e];
      s.value32[e] = ones ? 1.0f : (float)dice_real(d) - 0.5f;
      s.value[e] = (double)s.value32[e];
    }
    s.start32[i + 1] = (int32_t)s.start[i + 1];
  }
  int64_t const numbers = b_rows(&s) * s.stride;
  s.b = mini_room(numbers, 8), s.b32 = mini_room(numbers, 4), s.weight = mini_room(n, 8);
  for (int64_t i = 0; i < numbers; i++) s.b[i] = (double)(s.b32[i] = (float)dice_real(d) - 0.5f);
  for (int64_t i = 0; i < n; i++) s.weight[i] = dice_below(d, 4) == 0 ? 0.0 : dice_real(d);
  s.out = mini_room(result_rows(&s) * width, 8), s.out32 = mini_room(result_rows(&s) * width, 4);
  rpo_matrix const A = {n,
                        p,
                        RPO_CSR,
                        single ? RPO_F32 : RPO_F64,
                        far ? RPO_I64 : RPO_I32,
                        0,
                        single ? (const void *)s.value32 : s.value,
                        0,
                        0,
                        far ? (const void *)s.start : s.start32,
                        far ? (const void *)s.index : s.index32};
  rpo_matrix const B = {
      b_rows(&s), width, RPO_DENSE, A.dtype, 0, 0, single ? (const void *)s.b32 : s.b,
      s.stride,   1,     NULL,      NULL};
  s.A = A;
  s.B = B;
  if (ones) s.A.data = NULL;
  return s;
}

static sums sums_new(dice *d, int kind, int single, int far, int ones, int64_t n, int64_t p,
                     int64_t width) {
  return sums_of(d, kind, single, far, ones, n, p, width, 12, 0);
}

static void sums_free(sums *s) {
  void *const blocks[] = {s->start, s->index, s->start32, s->index32, s->value, s->value32,
                          s->b,     s->b32,   s->weight,  s->out,     s->out32};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

enum { WIDEST = 131 };

/* The result, every operation in the number type and in the order of A's entries. */
#define DEFINE_NAIVE(name, real, VALUE, DENSE, OUT)                                         \
  static void name(sums *s, const double *weight) {                                         \
    real sum[WIDEST];                                                                       \
    int64_t const width = s->width;                                                         \
    for (int64_t k = 0; k < result_rows(s) * width; k++) s->OUT[k] = 0;                     \
    for (int64_t i = 0; i < s->n; i++) {                                                    \
      real const factor = weight == NULL ? (real)1 : (real)weight[i];                       \
      for (int64_t c = 0; c < width; c++) {                                                 \
        sum[c] = s->kind == TRANSPOSED ? s->DENSE[i * s->stride + c] : (real)0;             \
      }                                                                                     \
      for (int64_t e = s->start[i]; s->kind != TRANSPOSED && e < s->start[i + 1]; e++) {    \
        const real *const row = s->DENSE + s->index[e] * s->stride;                         \
        for (int64_t c = 0; c < width; c++) sum[c] = sum[c] + (real)(s->VALUE[e] * row[c]); \
      }                                                                                     \
      for (int64_t c = 0; c < width; c++) sum[c] = sum[c] * factor;                         \
      if (s->kind == TIMES) memcpy(s->OUT + i * width, sum, (size_t)width * sizeof *sum);   \
      for (int64_t e = s->start[i]; s->kind != TIMES && e < s->start[i + 1]; e++) {         \
        real *const out = s->OUT + s->index[e] * width;                                     \
        for (int64_t c = 0; c < width; c++) out[c] += (real)(s->VALUE[e] * sum[c]);         \
      }                                                                                     \
    }                                                                                       \
  }
DEFINE_NAIVE(naive_double, double, value, b, out)
DEFINE_NAIVE(naive_single, float, value32, b32, out32)

static void check_product(sums *s, const double *weight, int threads) {
  int64_t const bytes = result_rows(s) * s->width * (s->single ? 4 : 8);
  char *const got = mini_room(bytes, 1);
  rpo_control const control = threads_of(threads);
  rpo_error err;
  memset(got, 0x5a, (size_t)bytes);
  CHECK_OK(by_kind[s->kind](&s->A, weight, &s->B, &control, got, &err), &err);
  CHECK(s->width <= WIDEST);
  (s->single ? naive_single : naive_double)(s, weight);
  CHECK(memcmp(got, s->single ? (const void *)s->out32 : s->out, (size_t)bytes) == 0);
  free(got);
}

static void products_are_the_definition(void) {
  static const int64_t widths[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 64, 100, 120, 131};
  static const int64_t shapes[][2] = {{1, 1}, {60, 20}, {20, 60}, {3, 500}, {900, 7}};
  dice d = {1};
  for (int number = 0; number < KINDS * 2 * 2 * 14 * 5; number++) {
    int const kind = number % KINDS, single = number / KINDS % 2, far = number / KINDS / 2 % 2;
    int64_t const width = widths[number / KINDS / 4 % 14], *shape = shapes[number / KINDS / 56];
    int const ones = dice_below(&d, 3) == 0;
    sums s = sums_new(&d, kind, single, far, ones, shape[0], shape[1], width);
    mini_context("kind %d, %s, %s, %lld x %lld, width %lld", kind, single ? "float" : "double",
                 far ? "int64" : "int32", (long long)shape[0], (long long)shape[1],
                 (long long)width);
    check_product(&s, NULL, 1);
    check_product(&s, s.weight, 2);
    check_product(&s, s.weight, 5);
    sums_free(&s);
  }
}

/* Dense sides beyond the near cache, where rows are fetched early, and beyond all caches: those go by
 * narrow panels, rows not being in order. */
static void large_products(void) {
  dice d = {2};
  for (int kind = 0; kind < KINDS; kind++) {
    for (int single = 0; single < 2; single++) {
      for (int far = 0; far < 2; far++) {
        sums s = sums_new(&d, kind, single, !far, 0, 40000, far ? 20000 : 3000, far ? 131 : 61);
        mini_context("kind %d, large, %d%d", kind, single, far);
        check_product(&s, NULL, 1);
        check_product(&s, s.weight, 3);
        sums_free(&s);
      }
    }
  }
}

/* The same of a product that must go by tiles. */
static void check_tiles(sums *s, int weighted, int threads) {
  int64_t const made = rpo_tiles_made;
  check_product(s, weighted ? s->weight : NULL, threads);
  CHECK_EQUAL(rpo_tiles_made, made + 1);
}

/* Rows in order and a dense side beyond all caches: entries go by tiles of columns. */
static void tiled_products(void) {
  dice d = {4};
  for (int number = 0; number < 12; number++) {
    int const kind = number % KINDS, single = number / KINDS % 2;
    int const far = dice_below(&d, 2) == 0, ones = dice_below(&d, 3) == 0;
    int const weighted = dice_below(&d, 2) == 0, threads = 1 + number % 4;
    sums s = sums_of(&d, kind, single, far, ones, 30000, 20000, single ? 131 : 61, 20, 1);
    mini_context("kind %d, tiles, single %d, int64 %d, ones %d, weighted %d, %d threads", kind,
                 single, far, ones, weighted, threads);
    check_tiles(&s, weighted, threads);
    sums_free(&s);
  }
}

/* More entries than fit the dense side's room, or more rows than it has: some blocks of rows after the
 * others, of unequal sizes. */
static void tiles_in_parts(void) {
  dice d = {5};
  for (int number = 0; number < 2 * KINDS; number++) {
    int const kind = number % KINDS, late = number / KINDS;
    sums s = sums_of(&d, kind, 1, 0, 0, 65000, 33000, 52, 40, 1);
    mini_context("kind %d, tiles in parts, late %d", kind, late);
    CHECK(s.start[s.n] * 12 > s.p * 4 * 64);
    if (late) { /* of two entries each at first, then a row of very many */
      for (int64_t i = 0; i <= 40000; i++) s.start32[i] = (int32_t)(s.start[i] = 2 * i);
      for (int64_t i = 0; i < s.n; i++) {
        qsort(s.index + s.start[i], (size_t)(s.start[i + 1] - s.start[i]), 8, by_size);
      }
      for (int64_t e = 0; e < s.start[s.n]; e++) s.index32[e] = (int32_t)s.index[e];
    }
    check_tiles(&s, 1, 2 + late);
    sums_free(&s);
  }
}

static void refused(rpo_status status, const rpo_error *err, const char *words) {
  CHECK_EQUAL(status, RPO_EINVAL);
  if (!CHECK(strstr(err->message, words) != NULL)) fprintf(stderr, "  %s\n", err->message);
}

static void bad_input(void) {
  dice d = {3};
  sums s = sums_new(&d, TIMES, 0, 0, 0, 20, 9, 5);
  rpo_matrix other = s.B, csc = s.A;
  rpo_error err;
  refused(rpo_sparse_product(NULL, NULL, &s.B, NULL, s.out, &err), &err, "A is NULL");
  refused(rpo_sparse_product(&s.A, NULL, NULL, NULL, s.out, &err), &err, "B is NULL");
  refused(rpo_sparse_product(&s.A, NULL, &s.B, NULL, NULL, &err), &err, "out is NULL");
  refused(rpo_sparse_product(&s.B, NULL, &s.B, NULL, s.out, &err), &err, "A must be CSR");
  refused(rpo_sparse_product(&s.A, NULL, &s.A, NULL, s.out, &err), &err, "B must be dense");
  refused(rpo_sparse_transposed_product(&s.A, NULL, &s.B, NULL, s.out, &err), &err,
          "B must have 20 rows, got 9");
  other.rows = 8;
  refused(rpo_sparse_gram_product(&s.A, NULL, &other, NULL, s.out, &err), &err,
          "B must have 9 rows, got 8");
  other.rows = 9;
  other.col_stride = 2;
  refused(rpo_sparse_product(&s.A, NULL, &other, NULL, s.out, &err), &err, "next to each other");
  other.col_stride = 1;
  other.dtype = RPO_F32;
  refused(rpo_sparse_product(&s.A, NULL, &other, NULL, s.out, &err), &err,
          "one number type, got float64 and float32");
  csc.format = RPO_CSC;
  csc.rows = 9;
  csc.cols = 20;
  refused(rpo_sparse_product(&csc, NULL, &s.B, NULL, s.out, &err), &err, "A must be CSR");
  s.weight[7] = NAN;
  refused(rpo_sparse_product(&s.A, s.weight, &s.B, NULL, s.out, &err), &err, "weight must be fin");
  s.index32[3] = 9;
  refused(rpo_sparse_product(&s.A, NULL, &s.B, NULL, s.out, &err), &err, "A: index 9 is outside");
  s.index32[3] = -1;
  refused(rpo_sparse_product(&s.A, NULL, &s.B, NULL, s.out, &err), &err, "A: index -1 is outside");
  s.start32[2] = 70;
  refused(rpo_sparse_product(&s.A, NULL, &s.B, NULL, s.out, &err), &err, "must not fall");
  sums_free(&s);
}

static int32_t stop_at_once(void *user, int64_t done, int64_t total) {
  (void)user;
  (void)done;
  (void)total;
  return 1;
}

/* A second's work and more, of which the first twentieth is done. */
static void cancelling(void) {
  enum { ROWS = 2000, ENTRIES = 3000, COLS = 300 };
  int64_t *const start = mini_room(ROWS + 1, 8), *const index = mini_room(ROWS * ENTRIES, 8);
  double *const b = mini_room(ROWS * COLS, 8), *const out = mini_room(ROWS * COLS, 8);
  for (int64_t i = 0; i <= ROWS; i++) start[i] = i * ENTRIES;
  for (int64_t e = 0; e < ROWS * ENTRIES; e++) index[e] = e % COLS;
  rpo_matrix const A = {ROWS, COLS, RPO_CSR, RPO_F64, RPO_I64, 0, NULL, 0, 0, start, index};
  for (int kind = 0; kind < KINDS; kind++) {
    rpo_matrix const B = {
        kind == TRANSPOSED ? ROWS : COLS, COLS, RPO_DENSE, RPO_F64, 0, 0, b, COLS, 1, NULL, NULL};
    rpo_control control = threads_of(2);
    rpo_error err;
    control.progress = stop_at_once;
    mini_context("kind %d", kind);
    CHECK_EQUAL(by_kind[kind](&A, NULL, &B, &control, out, &err), RPO_ECANCELED);
  }
  free(start);
  free(index);
  free(b);
  free(out);
}

/* Each panel takes a fraction of a twentieth of a second: the caller is asked between them. */
static void cancelling_tiles(void) {
  enum { ROWS = 8000, COLS = 4000, ENTRIES = 60 };
  int64_t *const start = mini_room(ROWS + 1, 8), *const index = mini_room(ROWS * ENTRIES, 8);
  double *const b = mini_room(COLS, 8), *const out = mini_room(ROWS * COLS, 8);
  for (int64_t i = 0; i <= ROWS; i++) start[i] = i * ENTRIES;
  for (int64_t e = 0; e < ROWS * ENTRIES; e++) index[e] = e % ENTRIES * (COLS / ENTRIES);
  rpo_matrix const A = {ROWS, COLS, RPO_CSR, RPO_F64, RPO_I64, 0, NULL, 0, 0, start, index};
  for (int kind = 0; kind < KINDS; kind++) {
    rpo_matrix const B = {
        kind == TRANSPOSED ? ROWS : COLS, COLS, RPO_DENSE, RPO_F64, 0, 0, b, 0, 1, NULL, NULL};
    rpo_control control = threads_of(2);
    rpo_error err;
    int64_t const made = rpo_tiles_made;
    control.progress = stop_at_once;
    mini_context("kind %d, tiles", kind);
    CHECK_EQUAL(by_kind[kind](&A, NULL, &B, &control, out, &err), RPO_ECANCELED);
    CHECK_EQUAL(rpo_tiles_made, made + 1);
  }
  free(start);
  free(index);
  free(b);
  free(out);
}

static rpo_status multiply_starved(void *context, rpo_error *err) {
  sums *const s = context;
  rpo_control const control = threads_of(1);
  int64_t const bytes = result_rows(s) * s->width * 8;
  memset(s->out, 0x5a, (size_t)bytes);
  rpo_status const status = by_kind[s->kind](&s->A, s->weight, &s->B, &control, s->out, err);
  int64_t touched = 0;
  for (int64_t i = 0; i < bytes; i++) touched += ((const char *)s->out)[i] != 0x5a;
  CHECK((touched == 0) == (status != RPO_OK));
  return status;
}

static void without_memory(void) {
  dice d = {6};
  for (int kind = 0; kind < KINDS; kind++) {
    sums s = sums_of(&d, kind, 0, 0, 0, 9000, 5000, 250, 40, 1);
    int64_t const made = rpo_tiles_made;
    mini_context("kind %d, tiles", kind);
    until_it_succeeds(multiply_starved, &s);
    CHECK(rpo_tiles_made > made);
    sums_free(&s);
  }
}

int main(void) {
  RUN(products_are_the_definition);
  RUN(large_products);
  RUN(tiled_products);
  RUN(tiles_in_parts);
  RUN(bad_input);
  RUN(cancelling);
  RUN(cancelling_tiles);
  RUN(without_memory);
  return mini_done("sparse");
}
