/* Features: codes and edges against a naive oracle, whatever container X came in. */
#include "data.h"

static int ascending(const void *a, const void *b) {
  double const x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static rpo_features *encode(const rpo_matrix *X, int32_t max_bins) {
  rpo_features *f = NULL;
  rpo_error err;
  CHECK_OK(rpo_features_new(X, max_bins, NULL, &f, &err), &err);
  return f;
}

/* Distinct values of a column, ascending; sparse form always counts zero among them. */
static int64_t distinct_values(const table *t, int64_t col, int with_zero, double *values) {
  int64_t count = 0, kept = 0;
  if (with_zero) values[count++] = 0.0;
  for (int64_t i = 0; i < t->rows; i++) {
    double const v = t->v[i * t->cols + col];
    if (!isnan(v)) values[count++] = v == 0.0 ? 0.0 : v;
  }
  qsort(values, (size_t)count, sizeof *values, ascending);
  for (int64_t i = 0; i < count; i++) {
    if (i == 0 || values[i] != values[i - 1]) values[kept++] = values[i];
  }
  return kept;
}

/* Exact codes: the rank among the distinct values; missing comes last. */
static void check_exact(const rpo_features *f, const table *t) {
  double *const values = mini_room(t->rows + 1, sizeof *values);
  double *const low = mini_room(t->rows + 1, sizeof *low);
  double *const high = mini_room(t->rows + 1, sizeof *high);
  int32_t *const codes = mini_room(t->rows, sizeof *codes);
  rpo_error err;
  CHECK_EQUAL(rpo_features_rows(f), t->rows);
  CHECK_EQUAL(rpo_features_cols(f), t->cols);
  for (int64_t j = 0; j < t->cols; j++) {
    int64_t const count = distinct_values(t, j, rpo_features_is_sparse(f), values);
    if (!CHECK_EQUAL(rpo_features_bins(f, j), count)) continue;
    CHECK_OK(rpo_features_edges(f, j, low, high, &err), &err);
    CHECK_OK(rpo_features_codes(f, j, codes, &err), &err);
    for (int64_t b = 0; b < count; b++) {
      CHECK(low[b] == values[b] && high[b] == values[b]);
      CHECK(!(low[b] == 0.0 && signbit(low[b]))); /* -0 is 0 */
    }
    for (int64_t i = 0; i < t->rows; i++) {
      double const v = t->v[i * t->cols + j];
      if (isnan(v)) {
        CHECK_EQUAL(codes[i], count);
      } else if (CHECK(codes[i] >= 0 && codes[i] < count)) {
        CHECK(values[codes[i]] == v);
      }
    }
  }
  free(values);
  free(low);
  free(high);
  free(codes);
}

/* Bins: at most `most`, disjoint, ascending, every value inside its own. */
static void check_binned(const rpo_features *f, const table *t, int32_t most) {
  double *const low = mini_room(most, sizeof *low), *const high = mini_room(most, sizeof *high);
  int32_t *const codes = mini_room(t->rows, sizeof *codes);
  rpo_error err;
  for (int64_t j = 0; j < t->cols; j++) {
    int64_t const bins = rpo_features_bins(f, j);
    if (!CHECK(bins <= most)) continue;
    CHECK_OK(rpo_features_edges(f, j, low, high, &err), &err);
    CHECK_OK(rpo_features_codes(f, j, codes, &err), &err);
    for (int64_t b = 0; b < bins; b++) CHECK(low[b] <= high[b] && (b == 0 || high[b - 1] < low[b]));
    for (int64_t i = 0; i < t->rows; i++) {
      double const v = t->v[i * t->cols + j];
      if (isnan(v)) {
        CHECK_EQUAL(codes[i], bins);
      } else if (CHECK(codes[i] >= 0 && codes[i] < bins)) {
        CHECK(low[codes[i]] <= v && v <= high[codes[i]]);
      }
    }
  }
  free(low);
  free(high);
  free(codes);
}

static void check_same(const rpo_features *a, const rpo_features *b) {
  int64_t const rows = rpo_features_rows(a), cols = rpo_features_cols(a);
  int32_t *const x = mini_room(rows, sizeof *x), *const y = mini_room(rows, sizeof *y);
  double *const edge = mini_room(4 * (rows + 1), sizeof *edge);
  double *const e[4] = {edge, edge + rows + 1, edge + 2 * (rows + 1), edge + 3 * (rows + 1)};
  CHECK_EQUAL(rpo_features_is_sparse(a), rpo_features_is_sparse(b));
  CHECK_EQUAL(rpo_features_bytes(a), rpo_features_bytes(b));
  for (int64_t j = 0; j < cols; j++) {
    int64_t const bins = rpo_features_bins(a, j);
    if (!CHECK_EQUAL(bins, rpo_features_bins(b, j))) continue;
    CHECK_EQUAL(rpo_features_codes(a, j, x, NULL), RPO_OK);
    CHECK_EQUAL(rpo_features_codes(b, j, y, NULL), RPO_OK);
    CHECK(memcmp(x, y, (size_t)rows * sizeof *x) == 0);
    CHECK_EQUAL(rpo_features_edges(a, j, e[0], e[1], NULL), RPO_OK);
    CHECK_EQUAL(rpo_features_edges(b, j, e[2], e[3], NULL), RPO_OK);
    CHECK(memcmp(e[0], e[2], (size_t)bins * sizeof(double)) == 0);
    CHECK(memcmp(e[1], e[3], (size_t)bins * sizeof(double)) == 0);
  }
  free(x);
  free(y);
  free(edge);
}

/* Every container of the same numbers gives the same codes and edges. */
static void check_containers(table *t, int32_t max_bins) {
  rpo_matrix m = table_dense(t);
  rpo_features *const dense = encode(&m, max_bins);
  if (max_bins == 0) {
    check_exact(dense, t);
  } else {
    check_binned(dense, t, max_bins);
  }
  rpo_control const three = threads_of(3);
  rpo_features *f = NULL;
  CHECK_EQUAL(rpo_features_new(&m, max_bins, &three, &f, NULL), RPO_OK);
  check_same(dense, f);
  rpo_features_free(f);
  for (int format = RPO_CSR; format <= RPO_CSC; format++) {
    m = table_compressed(t, (rpo_format)format);
    f = encode(&m, max_bins);
    check_same(dense, f);
    rpo_features_free(f);
  }
  rpo_features_free(dense);
}

static void random_against_oracle(void) {
  static const int32_t bins[] = {0, 2, 3, 5, 16, 255, 300};
  static const double zero[] = {0.0, 0.5, 0.85, 0.97};
  dice d = {1};
  for (int32_t b = 0; b < 7; b++) {
    for (int z = 0; z < 4; z++) {
      for (int k = 0; k < 6; k++) {
        int64_t const rows = 1 + dice_below(&d, 120), cols = 1 + dice_below(&d, 12);
        double const missing = k % 2 == 0 ? 0.0 : 0.02;
        table t = table_random(&d, rows, cols, k < 4 ? 1 + dice_below(&d, 9) : 0, zero[z], missing);
        mini_context("max_bins %d, zeros %g, case %d: %lld x %lld", bins[b], zero[z], k,
                     (long long)rows, (long long)cols);
        check_containers(&t, bins[b]);
        table_free(&t);
      }
    }
  }
}

/* Mostly zeros with values on both sides and two bins: zero must not share one unseen. */
static void two_bins_on_both_sides_of_zero(void) {
  table t = table_new(20, 2);
  t.v[2 * 3] = -1.0;
  t.v[2 * 7] = 1.0;
  t.v[2 * 5 + 1] = 2.0;
  check_containers(&t, 2);
  table_free(&t);
}

/* 300 and 70 000 distinct values need codes of 2 and 4 bytes. */
static void wide_codes(void) {
  static const int64_t rows[] = {255, 256, 257, 65535, 65536, 70000};
  dice d = {2};
  for (int i = 0; i < 6; i++) {
    table t = table_random(&d, rows[i], 1, 0, 0.0, 0.0);
    mini_context("%lld values", (long long)rows[i]);
    check_containers(&t, 0);
    table_free(&t);
  }
}

static void single_precision_and_strides(void) {
  dice d = {3};
  for (int z = 0; z < 2; z++) {
    table t = table_random(&d, 90, 7, 0, z == 0 ? 0.0 : 0.9, 0.01);
    for (int64_t i = 0; i < 90 * 7; i++) t.v[i] = (double)(float)t.v[i];
    rpo_matrix const wide = table_dense(&t), narrow = table_single(&t);
    rpo_features *const a = encode(&wide, 0), *const b = encode(&narrow, 0);
    check_same(a, b);
    rpo_features_free(a);
    rpo_features_free(b);
    table_free(&t);
  }
}

/* 64-bit indices and data = NULL, which means that every stored value is 1. */
static void long_indices_and_implicit_ones(void) {
  dice d = {4};
  table t = table_binary(&d, 60, 9, 0.1);
  rpo_matrix m = table_compressed(&t, RPO_CSR);
  rpo_features *const a = encode(&m, 0);
  int64_t *const start = mini_room(61, 8), *const index = mini_room(60 * 9, 8);
  for (int i = 0; i <= 60; i++) start[i] = t.start[i];
  for (int64_t e = 0; e < start[60]; e++) index[e] = t.index[e];
  m.index = RPO_I64;
  m.indptr = start;
  m.indices = index;
  m.data = NULL;
  rpo_features *const b = encode(&m, 0);
  check_same(a, b);
  rpo_features_free(a);
  rpo_features_free(b);
  free(start);
  free(index);
  table_free(&t);
}

/* Stored zeros and negative zeros are zeros. */
static void negative_zero_is_zero(void) {
  double const v[12] = {0.0, -0.0, 1.0, -0.0, -1.0, 0.0, -0.0, -0.0, 0.0, -0.0, -0.0, 0.0};
  table t = table_new(12, 1);
  memcpy(t.v, v, sizeof v);
  check_containers(&t, 0);
  int32_t const start[2] = {0, 12}, index[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  rpo_matrix m = table_dense(&t);
  rpo_features *const a = encode(&m, 0);
  m.format = RPO_CSC;
  m.indptr = start;
  m.indices = index;
  rpo_features *const b = encode(&m, 0);
  check_same(a, b);
  rpo_features_free(a);
  rpo_features_free(b);
  table_free(&t);
}

static void constant_and_missing_columns(void) {
  dice d = {5};
  table t = table_random(&d, 30, 4, 5, 0.0, 0.0);
  for (int64_t i = 0; i < 30; i++) {
    t.v[4 * i] = 3.5;
    t.v[4 * i + 1] = NAN;
    t.v[4 * i + 2] = 0.0;
  }
  check_containers(&t, 0);
  check_containers(&t, 4);
  table_free(&t);
  t = table_new(8, 3); /* nothing at all */
  check_containers(&t, 0);
  check_containers(&t, 2);
  table_free(&t);
}

/* 1000 distinct values in 10 bins: 100 rows each; a heavy value takes a bin of its own. */
static void bins_have_equal_weight(void) {
  dice d = {6};
  table t = table_random(&d, 1000, 1, 0, 0.0, 0.0);
  rpo_matrix m = table_dense(&t);
  int32_t *const codes = mini_room(1000, sizeof *codes);
  int64_t count[10] = {0};
  rpo_features *f = encode(&m, 10);
  CHECK_EQUAL(rpo_features_bins(f, 0), 10);
  CHECK_EQUAL(rpo_features_codes(f, 0, codes, NULL), RPO_OK);
  for (int i = 0; i < 1000; i++) count[codes[i]]++;
  for (int b = 0; b < 10; b++) CHECK_EQUAL(count[b], 100);
  rpo_features_free(f);
  for (int i = 0; i < 700; i++) t.v[i] = 0.25;
  f = encode(&m, 10);
  CHECK_EQUAL(rpo_features_bins(f, 0), 10);
  rpo_features_free(f);
  free(codes);
  table_free(&t);
}

/* The nearest of like's bins; halfway values are left out of the comparison. */
static int64_t nearest(const double *low, const double *high, int64_t bins, double v, int *tie) {
  int64_t best = -1;
  double least = INFINITY;
  for (int64_t b = 0; b < bins; b++) {
    double const off = v < low[b] ? low[b] - v : v > high[b] ? v - high[b] : 0.0;
    if (off < least) {
      least = off;
      best = b;
    } else if (off == least) {
      *tie = 1;
    }
  }
  return best;
}

static void check_like(table *fitted, table *other, int32_t max_bins) {
  rpo_matrix m = table_dense(fitted);
  rpo_features *const like = encode(&m, max_bins);
  double *const low = mini_room(fitted->rows + 1, 8), *const high = mini_room(fitted->rows + 1, 8);
  int32_t *const codes = mini_room(other->rows, 4);
  for (int format = RPO_DENSE; format <= RPO_CSC; format++) {
    rpo_features *f = NULL;
    rpo_error err;
    m = format == RPO_DENSE ? table_dense(other) : table_compressed(other, (rpo_format)format);
    CHECK_OK(rpo_features_like(&m, like, NULL, &f, &err), &err);
    for (int64_t j = 0; j < other->cols; j++) {
      int64_t const bins = rpo_features_bins(f, j);
      CHECK_EQUAL(bins, rpo_features_bins(like, j));
      CHECK_EQUAL(rpo_features_edges(f, j, low, high, NULL), RPO_OK);
      CHECK_EQUAL(rpo_features_codes(f, j, codes, NULL), RPO_OK);
      for (int64_t i = 0; i < other->rows; i++) {
        double const v = other->v[i * other->cols + j];
        int tie = 0;
        int64_t const expected = isnan(v) || bins == 0 ? bins : nearest(low, high, bins, v, &tie);
        if (!tie) CHECK_EQUAL(codes[i], expected);
      }
    }
    rpo_features_free(f);
  }
  rpo_features_free(like);
  free(low);
  free(high);
  free(codes);
}

static void like_takes_the_nearest_bin(void) {
  dice d = {7};
  for (int k = 0; k < 40; k++) {
    double const zero = k % 3 == 0 ? 0.0 : k % 3 == 1 ? 0.6 : 0.92;
    table a = table_random(&d, 40, 5, k % 4 == 0 ? 4 : 0, zero, k % 2 ? 0.02 : 0.0);
    table b = table_random(&d, 25, 5, 0, zero, k % 5 == 0 ? 0.05 : 0.0);
    mini_context("case %d", k);
    check_like(&a, &b, k % 2 == 0 ? 0 : 4);
    table_free(&a);
    table_free(&b);
  }
}

/* Binary sparse columns keep no codes: a value nearer to 0 than to 1 must still become 0. */
static void like_of_binary_columns(void) {
  dice d = {8};
  table a = table_binary(&d, 60, 6, 0.1), b = table_binary(&d, 40, 6, 0.1);
  for (int64_t i = 0; i < 40 * 6; i++) b.v[i] *= 0.9 * dice_real(&d) + 0.1;
  mini_context("fractions");
  check_like(&a, &b, 0);
  for (int64_t i = 0; i < 40 * 6; i++) b.v[i] = b.v[i] > 0.0 ? 1.0 : 0.0;
  mini_context("the same values");
  check_like(&a, &b, 0);
  b.v[7] = NAN;
  mini_context("missing values, unseen in the fit");
  check_like(&a, &b, 0);
  table_free(&a);
  table_free(&b);
}

static void like_of_itself_is_the_same(void) {
  dice d = {9};
  for (int k = 0; k < 8; k++) {
    table t = table_random(&d, 70, 4, 6, k % 2 ? 0.9 : 0.2, k % 4 < 2 ? 0.0 : 0.02);
    rpo_matrix const m = table_dense(&t);
    rpo_features *const a = encode(&m, k < 4 ? 0 : 3);
    rpo_features *b = NULL;
    mini_context("case %d", k);
    CHECK_EQUAL(rpo_features_like(&m, a, NULL, &b, NULL), RPO_OK);
    check_same(a, b);
    rpo_features_free(a);
    rpo_features_free(b);
    table_free(&t);
  }
}

static void refuse(const rpo_matrix *m, int32_t max_bins, const char *word) {
  rpo_features *f = NULL;
  rpo_error err;
  memset(&err, 0, sizeof err);
  mini_context("expected: %s", word);
  CHECK_EQUAL(rpo_features_new(m, max_bins, NULL, &f, &err), RPO_EINVAL);
  CHECK(f == NULL);
  CHECK(strstr(err.message, word) != NULL);
}

static void bad_matrices_are_refused(void) {
  dice d = {10};
  table t = table_random(&d, 6, 5, 3, 0.5, 0.0);
  rpo_matrix m = table_dense(&t);
  refuse(NULL, 0, "X");
  refuse(&m, 1, "max_bins");
  refuse(&m, -1, "max_bins");
  m.rows = 0;
  refuse(&m, 0, "row");
  m = table_dense(&t);
  m.data = NULL;
  refuse(&m, 0, "data");
  m = table_dense(&t);
  m.dtype = 7;
  refuse(&m, 0, "type");
  m = table_dense(&t);
  m.format = 3;
  refuse(&m, 0, "format");
  m = table_dense(&t);
  t.v[3] = INFINITY;
  refuse(&m, 0, "finite");
  t.v[3] = 1.0;
  for (int i = 0; i < 5; i++) t.v[i] = 1.0;
  m = table_compressed(&t, RPO_CSR);
  m.index = 9;
  refuse(&m, 0, "index");
  m.index = RPO_I32;
  t.index[1] = t.index[0];
  refuse(&m, 0, "twice");
  t.index[1] = 5;
  refuse(&m, 0, "outside");
  t.index[1] = -1;
  refuse(&m, 0, "outside");
  t.index[1] = 1;
  t.start[0] = 1;
  refuse(&m, 0, "offsets");
  t.start[0] = 0;
  t.start[1] = 500;
  refuse(&m, 0, "offsets");
  m.indices = NULL;
  refuse(&m, 0, "");
  table_free(&t);
}

static void columns_are_checked(void) {
  dice d = {11};
  table t = table_random(&d, 6, 5, 3, 0.0, 0.0);
  rpo_matrix m = table_dense(&t);
  rpo_features *const f = encode(&m, 0);
  rpo_features *other = NULL;
  double low[6], high[6];
  int32_t codes[6];
  CHECK_EQUAL(rpo_features_bins(f, -1), 0);
  CHECK_EQUAL(rpo_features_bins(f, 5), 0);
  CHECK_EQUAL(rpo_features_codes(f, 5, codes, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_features_codes(f, 0, NULL, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_features_edges(f, -1, low, high, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_features_edges(NULL, 0, low, high, NULL), RPO_EINVAL);
  m.cols = 4;
  CHECK_EQUAL(rpo_features_like(&m, f, NULL, &other, NULL), RPO_EINVAL);
  CHECK(other == NULL);
  CHECK_EQUAL(rpo_features_new(&m, 0, NULL, NULL, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_features_rows(NULL) + rpo_features_cols(NULL) + rpo_features_bytes(NULL), 0);
  rpo_features_free(f);
  rpo_features_free(NULL);
  table_free(&t);
}

int main(void) {
  RUN(random_against_oracle);
  RUN(two_bins_on_both_sides_of_zero);
  RUN(wide_codes);
  RUN(single_precision_and_strides);
  RUN(long_indices_and_implicit_ones);
  RUN(negative_zero_is_zero);
  RUN(constant_and_missing_columns);
  RUN(bins_have_equal_weight);
  RUN(like_takes_the_nearest_bin);
  RUN(like_of_binary_columns);
  RUN(like_of_itself_is_the_same);
  RUN(bad_matrices_are_refused);
  RUN(columns_are_checked);
  return mini_done("encode");
}
