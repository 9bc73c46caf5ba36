/* Random subspaces: moments of each kind, draw against apply, dense against sparse Y. */
#include "data.h"

static rpo_projection kind_of(rpo_projection_kind kind, int64_t m, double sparsity, uint64_t seed) {
  rpo_projection p;
  memset(&p, 0, sizeof p);
  p.kind = (int32_t)kind;
  p.components = m;
  p.sparsity = sparsity;
  p.seed = seed;
  return p;
}

/* Phi, m x d. */
static double *draw(const rpo_projection *p, int64_t d) {
  double *const phi = mini_room(p->components * d, sizeof *phi);
  rpo_error err;
  CHECK_OK(rpo_projection_draw(p, d, phi, &err), &err);
  return phi;
}

/* Mean 0, variance 1/m, and the fourth moment that tells the kinds apart. */
static void check_moments(const rpo_projection *p, int64_t d, double kurtosis) {
  int64_t const count = p->components * d;
  double const m = (double)p->components, n = (double)count;
  double *const phi = draw(p, d);
  double sum[3] = {0.0, 0.0, 0.0};
  for (int64_t i = 0; i < count; i++) {
    double const x = phi[i] * sqrt(m), y = x * x;
    sum[0] += x;
    sum[1] += y;
    sum[2] += y * y;
  }
  CHECK_NEAR(sum[0] / n, 0.0, 5.0 / sqrt(n));
  CHECK_NEAR(sum[1] / n, 1.0, 5.0 * sqrt((kurtosis - 1.0) / n) + 1e-9);
  CHECK_NEAR(sum[2] / n, kurtosis, 0.05 * kurtosis + 1e-9);
  free(phi);
}

static void gaussian_moments(void) {
  rpo_projection const p = kind_of(RPO_PROJECT_GAUSSIAN, 200, 0.0, 1);
  check_moments(&p, 2000, 3.0);
}

/* E x^4 = s for unit variance; the three values in their proportions. */
static void rademacher_moments(void) {
  static const double sparsity[] = {1.0, 3.0, 5.0, 20.0};
  enum { M = 250, D = 2000 };
  for (int k = 0; k < 4; k++) {
    double const s = sparsity[k], unit = sqrt(s / M), n = (double)M * D;
    rpo_projection const p = kind_of(RPO_PROJECT_RADEMACHER, M, s, 2);
    int64_t plus = 0, minus = 0, zero = 0;
    mini_context("s = %g", s);
    check_moments(&p, D, s);
    double *const phi = draw(&p, D);
    for (int64_t i = 0; i < (int64_t)M * D; i++) {
      plus += fabs(phi[i] - unit) < 1e-15;
      minus += fabs(phi[i] + unit) < 1e-15;
      zero += phi[i] == 0.0;
    }
    CHECK_EQUAL(plus + minus + zero, (int64_t)M * D);
    double const share = 1.0 / (2.0 * s), by = 5.0 * sqrt(share / n);
    CHECK_NEAR((double)plus / n, share, by);
    CHECK_NEAR((double)minus / n, share, by);
    if (s == 1.0) CHECK_EQUAL(zero, 0);
    free(phi);
  }
}

/* Each row picks one output. Over all seeds and rows every output is as likely. */
static void subsample_rows(void) {
  enum { M = 6, D = 11, SEEDS = 3000 };
  for (int kind = RPO_PROJECT_SUBSAMPLE; kind <= RPO_PROJECT_SUBSAMPLE_REPLACED; kind++) {
    int64_t count[D] = {0}, repeated = 0;
    mini_context("kind %d", kind);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      rpo_projection const p = kind_of((rpo_projection_kind)kind, M, 0.0, seed);
      double *const phi = draw(&p, D);
      int taken[D] = {0};
      for (int i = 0; i < M; i++) {
        int entries = 0;
        for (int j = 0; j < D; j++) {
          if (phi[i * D + j] == 0.0) continue;
          CHECK_NEAR(phi[i * D + j], sqrt((double)D / M), 1e-15);
          entries++;
          count[j]++;
          repeated += taken[j]++ > 0;
        }
        CHECK_EQUAL(entries, 1);
      }
      free(phi);
    }
    double const share = (double)M * SEEDS / D;
    for (int j = 0; j < D; j++) CHECK_NEAR((double)count[j], share, 5.0 * sqrt(share));
    CHECK((kind == RPO_PROJECT_SUBSAMPLE) == (repeated == 0));
  }
}

/* Rows of the Hadamard matrix: entry (r, c) is (-1)^popcount(r & c); distinct, hence orthogonal. */
static void hadamard_rows(void) {
  static const int64_t outputs[] = {1, 2, 3, 8, 13, 64};
  for (int k = 0; k < 6; k++) {
    int64_t const d = outputs[k];
    int64_t order = 1;
    while (order < d) order *= 2;
    rpo_projection const p = kind_of(RPO_PROJECT_HADAMARD, order, 0.0, 3);
    double *const phi = draw(&p, d);
    int *const seen = mini_room(order, sizeof *seen);
    mini_context("d = %lld", (long long)d);
    for (int64_t i = 0; i < order; i++) {
      int64_t matches = 0, row = -1;
      for (int64_t r = 0; r < order; r++) { /* which row of the matrix is it? */
        int64_t same = 0;
        for (int64_t c = 0; c < d; c++) {
          int64_t bits = r & c, odd = 0;
          for (; bits > 0; bits /= 2) odd ^= bits & 1;
          same += fabs(phi[i * d + c] * sqrt((double)order) - (odd ? -1.0 : 1.0)) < 1e-12;
        }
        if (same == d) {
          matches++;
          row = r;
        }
      }
      CHECK(matches >= 1);
      if (d == order && row >= 0) {
        CHECK_EQUAL(matches, 1);
        CHECK_EQUAL(seen[row]++, 0);
      }
      for (int64_t other = 0; other < i && d == order; other++) {
        double sum = 0.0;
        for (int64_t c = 0; c < d; c++) sum += phi[i * d + c] * phi[other * d + c];
        CHECK_NEAR(sum, 0.0, 1e-12);
      }
    }
    free(phi);
    free(seen);
  }
}

static double *apply(const rpo_projection *p, const rpo_matrix *Y) {
  double *const z = mini_room(Y->rows * p->components, sizeof *z);
  rpo_error err;
  CHECK_OK(rpo_projection_apply(p, Y, NULL, z, &err), &err);
  return z;
}

/* The kinds for one d, one after the other; returns 0 past the last. */
static int kind_number(int i, int64_t d, const double *matrix, rpo_projection *p) {
  static const struct {
    rpo_projection_kind kind;
    int64_t m;
    double sparsity;
  } kinds[] = {{RPO_PROJECT_GAUSSIAN, 5, 0.0},   {RPO_PROJECT_GAUSSIAN, 1, 0.0},
               {RPO_PROJECT_RADEMACHER, 7, 1.0}, {RPO_PROJECT_RADEMACHER, 7, 3.0},
               {RPO_PROJECT_RADEMACHER, 9, 9.0}, {RPO_PROJECT_HADAMARD, 4, 0.0},
               {RPO_PROJECT_SUBSAMPLE, 3, 0.0},  {RPO_PROJECT_SUBSAMPLE_REPLACED, 8, 0.0},
               {RPO_PROJECT_MATRIX, 3, 0.0}};
  if (i >= (int)(sizeof kinds / sizeof *kinds)) return 0;
  int64_t m = kinds[i].m;
  if (kinds[i].kind == RPO_PROJECT_SUBSAMPLE && m > d) m = d;
  if (kinds[i].kind == RPO_PROJECT_HADAMARD && m > d) m = d;
  *p = kind_of(kinds[i].kind, m, kinds[i].sparsity, 4);
  if (kinds[i].kind == RPO_PROJECT_MATRIX) p->matrix = matrix;
  return 1;
}

/* apply(I) = Phi^T: what is drawn is what is applied; the fast transform is the matrix. */
static void apply_to_the_identity_is_draw(void) {
  static const int64_t outputs[] = {1, 2, 3, 8, 21, 100};
  dice dice_ = {1};
  for (int k = 0; k < 6; k++) {
    int64_t const d = outputs[k];
    table matrix = table_random(&dice_, 3, d, 0, 0.0, 0.0), identity = table_new(d, d);
    rpo_projection p;
    for (int64_t j = 0; j < d; j++) identity.v[j * d + j] = 1.0;
    for (int i = 0; kind_number(i, d, matrix.v, &p); i++) {
      double *const phi = draw(&p, d);
      for (int sparse = 0; sparse < 2; sparse++) {
        rpo_matrix const Y = sparse ? table_compressed(&identity, RPO_CSR) : table_dense(&identity);
        double *const z = apply(&p, &Y);
        mini_context("d = %lld, kind %d, sparse %d", (long long)d, p.kind, sparse);
        for (int64_t j = 0; j < d; j++) {
          for (int64_t c = 0; c < p.components; c++) {
            CHECK_NEAR(z[j * p.components + c], phi[c * d + j], 1e-14);
          }
        }
        free(z);
      }
      free(phi);
    }
    table_free(&matrix);
    table_free(&identity);
  }
}

/* Z = Y Phi^T by the plain triple loop, for dense, CSR and unit-valued Y. */
static void apply_is_the_product(void) {
  enum { N = 40, D = 37 };
  dice dice_ = {2};
  table matrix = table_random(&dice_, 3, D, 0, 0.0, 0.0);
  for (int ones = 0; ones < 2; ones++) {
    table y = ones ? table_binary(&dice_, N, D, 0.1) : table_random(&dice_, N, D, 0, 0.8, 0.0);
    for (int64_t i = 0; i < N; i++) y.v[i * D + 5] = 0.0; /* an output nobody has */
    rpo_projection p;
    for (int i = 0; kind_number(i, D, matrix.v, &p); i++) {
      int64_t const m = p.components;
      double *const phi = draw(&p, D);
      rpo_matrix const dense = table_dense(&y);
      rpo_matrix csr = table_compressed(&y, RPO_CSR);
      if (ones) csr.data = NULL;
      double *const a = apply(&p, &dense), *const b = apply(&p, &csr);
      mini_context("kind %d, ones %d", p.kind, ones);
      for (int64_t r = 0; r < N; r++) {
        for (int64_t c = 0; c < m; c++) {
          double sum = 0.0;
          for (int64_t j = 0; j < D; j++) sum += y.v[r * D + j] * phi[c * D + j];
          CHECK_NEAR(a[r * m + c], sum, 1e-12);
          CHECK_NEAR(b[r * m + c], sum, 1e-12);
        }
      }
      free(phi);
      free(a);
      free(b);
    }
    table_free(&y);
  }
  table_free(&matrix);
}

/* Another stream or seed is another draw; the same ones repeat. */
static void streams_are_independent(void) {
  enum { D = 3000, M = 20 };
  for (int kind = RPO_PROJECT_GAUSSIAN; kind <= RPO_PROJECT_RADEMACHER; kind++) {
    rpo_projection p = kind_of((rpo_projection_kind)kind, M, 1.0, 5);
    double *const a = draw(&p, D), *const again = draw(&p, D);
    CHECK(memcmp(a, again, sizeof *a * M * D) == 0);
    for (int change = 0; change < 2; change++) {
      p.stream = change == 0 ? 1 : 0;
      p.seed = change == 0 ? 5 : 6;
      double *const b = draw(&p, D);
      double product = 0.0;
      for (int64_t i = 0; i < (int64_t)M * D; i++) product += a[i] * b[i] * M;
      mini_context("kind %d, change %d", kind, change);
      CHECK_NEAR(product / ((double)M * D), 0.0, 5.0 / sqrt((double)M * D));
      free(b);
    }
    free(a);
    free(again);
  }
}

/* A longer Phi begins with the same columns: an entry depends on its output only. */
static void columns_do_not_depend_on_d(void) {
  rpo_projection const p = kind_of(RPO_PROJECT_GAUSSIAN, 4, 0.0, 7);
  double *const a = draw(&p, 10), *const b = draw(&p, 30);
  for (int i = 0; i < 4; i++) CHECK(memcmp(a + 10 * i, b + 30 * i, 10 * sizeof *a) == 0);
  free(a);
  free(b);
}

static void refuse(const rpo_projection *p, int64_t d, const char *word) {
  table y = table_new(2, d > 0 ? d : 1);
  rpo_matrix const Y = table_dense(&y);
  double z[64], phi[512];
  rpo_error err;
  for (int i = 0; i < 64; i++) z[i] = -7.0;
  memset(&err, 0, sizeof err);
  mini_context("expected: %s", word);
  CHECK_EQUAL(rpo_projection_draw(p, d, phi, &err), RPO_EINVAL);
  CHECK(strstr(err.message, word) != NULL);
  if (d > 0) {
    CHECK_EQUAL(rpo_projection_apply(p, &Y, NULL, z, &err), RPO_EINVAL);
    CHECK(strstr(err.message, word) != NULL);
    for (int i = 0; i < 64; i++) CHECK(z[i] == -7.0);
  }
  table_free(&y);
}

static void bad_projections_are_refused(void) {
  double matrix[8] = {1, 2, 3, 4, 5, 6, NAN, 8};
  rpo_projection p = kind_of(RPO_PROJECT_GAUSSIAN, 0, 0.0, 0);
  refuse(&p, 8, "n_components");
  p = kind_of(RPO_PROJECT_GAUSSIAN, -1, 0.0, 0);
  refuse(&p, 8, "n_components");
  p = kind_of(RPO_PROJECT_GAUSSIAN, (int64_t)1 << 40, 0.0, 0);
  refuse(&p, 8, "n_components");
  p = kind_of(RPO_PROJECT_SUBSAMPLE, 9, 0.0, 0);
  refuse(&p, 8, "n_components");
  p = kind_of(RPO_PROJECT_HADAMARD, 17, 0.0, 0);
  refuse(&p, 9, "n_components");
  p = kind_of(RPO_PROJECT_RADEMACHER, 2, 0.5, 0);
  refuse(&p, 8, "sparsity");
  p.sparsity = NAN;
  refuse(&p, 8, "sparsity");
  p.sparsity = INFINITY;
  refuse(&p, 8, "sparsity");
  p = kind_of(RPO_PROJECT_MATRIX, 2, 0.0, 0);
  refuse(&p, 4, "matrix");
  p.matrix = matrix;
  refuse(&p, 4, "matrix");
  p = kind_of(RPO_PROJECT_NONE, 2, 0.0, 0);
  refuse(&p, 4, "kind");
  p = kind_of((rpo_projection_kind)7, 2, 0.0, 0);
  refuse(&p, 4, "kind");
  p = kind_of(RPO_PROJECT_GAUSSIAN, 2, 0.0, 0);
  refuse(&p, 0, "d must");
}

static void bad_outputs_are_refused(void) {
  dice d = {3};
  table y = table_random(&d, 4, 5, 0, 0.3, 0.0);
  rpo_projection const p = kind_of(RPO_PROJECT_GAUSSIAN, 2, 0.0, 0);
  double z[8];
  rpo_matrix Y = table_compressed(&y, RPO_CSC);
  CHECK_EQUAL(rpo_projection_apply(&p, &Y, NULL, z, NULL), RPO_EINVAL);
  Y = table_dense(&y);
  y.v[3] = NAN;
  CHECK_EQUAL(rpo_projection_apply(&p, &Y, NULL, z, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_projection_apply(&p, NULL, NULL, z, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_projection_apply(NULL, &Y, NULL, z, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_projection_draw(&p, 5, NULL, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_projection_draw(NULL, 5, z, NULL), RPO_EINVAL);
  table_free(&y);
}

int main(void) {
  RUN(gaussian_moments);
  RUN(rademacher_moments);
  RUN(subsample_rows);
  RUN(hadamard_rows);
  RUN(apply_to_the_identity_is_draw);
  RUN(apply_is_the_product);
  RUN(streams_are_independent);
  RUN(columns_do_not_depend_on_d);
  RUN(bad_projections_are_refused);
  RUN(bad_outputs_are_refused);
  return mini_done("projection");
}
