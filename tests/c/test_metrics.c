/* Metrics of scores against their definitions, ties and extreme ranges included. */
#include "data.h"

/* The definition, a label at a time. */
static double naive_precision(const table *scores, const table *y, int64_t row) {
  const double *const x = scores->v + row * scores->cols, *const one = y->v + row * y->cols;
  double sum = 0.0;
  int64_t relevant = 0;
  for (int64_t j = 0; j < y->cols; j++) {
    int64_t all = 0, good = 0;
    if (one[j] == 0.0) continue;
    relevant++;
    for (int64_t k = 0; k < y->cols; k++) {
      all += x[k] >= x[j];
      good += x[k] >= x[j] && one[k] == 1.0;
    }
    sum += (double)good / (double)all;
  }
  return relevant == 0 ? NAN : sum / (double)relevant;
}

static rpo_matrix transposed(rpo_matrix m) {
  rpo_matrix t = m;
  t.rows = m.cols;
  t.cols = m.rows;
  t.row_stride = m.col_stride;
  t.col_stride = m.row_stride;
  return t;
}

/* Out of a few values (ties), all reals, or the whole range of doubles. */
static table scores_of(dice *d, int64_t rows, int64_t cols, int kind) {
  table t = table_random(d, rows, cols, kind == 0 ? 5 : 0, 0.0, 0.0);
  for (int64_t i = 0; kind >= 2 && i < rows * cols; i++) {
    if (kind == 2) t.v[i] = 1.7e308 * t.v[i];
    if (kind == 3) t.v[i] = 0x1p-1074 * floor(3.0 * t.v[i]);
    if (kind == 4) t.v[i] = exp(200.0 * t.v[i]);
    if (kind == 5) t.v[i] = t.v[i] < 0.0 ? -0.0 : 0.0;
    if (kind == 6) t.v[i] = (double)(float)t.v[i];
  }
  return t;
}

enum { KINDS = 7 };

static void precisions_are_the_definition(void) {
  dice d = {1};
  static const double share[] = {0.0, 0.05, 0.6, 1.0};
  static const int64_t size[][2] = {{1, 1}, {1, 300}, {40, 1}, {37, 150}};
  for (int number = 0; number < KINDS * 4 * 4; number++) {
    int const kind = number % KINDS;
    int64_t const rows = size[number / KINDS % 4][0], cols = size[number / KINDS % 4][1];
    double const one = share[number / KINDS / 4];
    table s = scores_of(&d, rows, cols, kind), y = table_binary(&d, rows, cols, one);
    rpo_matrix const S = table_dense(&s),
                     forms[] = {table_dense(&y), table_compressed(&y, RPO_CSR)};
    double *const out = mini_room(rows, 8), *const again = mini_room(rows, 8);
    mini_context("kind %d, %lld x %lld, share %g", kind, (long long)rows, (long long)cols, one);
    for (int form = 0; form < 2; form++) {
      rpo_error err;
      rpo_control const two = threads_of(2);
      CHECK_OK(rpo_scores_precision(&S, &forms[form], NULL, out, &err), &err);
      CHECK_OK(rpo_scores_precision(&S, &forms[form], &two, again, &err), &err);
      CHECK(memcmp(out, again, (size_t)rows * 8) == 0);
      for (int64_t i = 0; i < rows; i++) {
        double const expected = naive_precision(&s, &y, i);
        if (isnan(expected)) {
          CHECK(isnan(out[i]));
        } else {
          CHECK_NEAR(out[i], expected, 1e-14);
        }
      }
    }
    free(out);
    free(again);
    table_free(&s);
    table_free(&y);
  }
}

/* float32 in the other order, and labels over the rows. */
static void views_of_any_strides(void) {
  dice d = {2};
  table s = scores_of(&d, 60, 90, 6), y = table_binary(&d, 60, 90, 0.1), st = table_new(90, 60);
  table yt = table_new(90, 60);
  for (int64_t i = 0; i < 60; i++) {
    for (int64_t j = 0; j < 90; j++) {
      st.v[j * 60 + i] = s.v[i * 90 + j];
      yt.v[j * 60 + i] = y.v[i * 90 + j];
    }
  }
  rpo_matrix const S = table_dense(&s), single = table_single(&s), Y = table_dense(&y);
  rpo_matrix const ST = transposed(S), YT = transposed(Y), ready = table_dense(&st);
  rpo_matrix const labels = table_compressed(&yt, RPO_CSR);
  double a[90], b[90];
  rpo_error err;
  CHECK_OK(rpo_scores_precision(&S, &Y, NULL, a, &err), &err);
  CHECK_OK(rpo_scores_precision(&single, &Y, NULL, b, &err), &err);
  CHECK(memcmp(a, b, 60 * sizeof *a) == 0);
  CHECK_OK(rpo_scores_precision(&ready, &labels, NULL, a, &err), &err);
  CHECK_OK(rpo_scores_precision(&ST, &YT, NULL, b, &err), &err);
  CHECK(memcmp(a, b, sizeof a) == 0);
  CHECK_OK(rpo_scores_precision(&ST, &labels, NULL, b, &err), &err);
  CHECK(memcmp(a, b, sizeof a) == 0);
  table_free(&s);
  table_free(&y);
  table_free(&st);
  table_free(&yt);
}

static int by_value(const void *a, const void *b) {
  double const x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void scores_that_reach_thresholds(void) {
  dice d = {3};
  for (int number = 0; number < KINDS * 3; number++) {
    int const kind = number % KINDS;
    int64_t const steps = number < KINDS ? 1 : number < 2 * KINDS ? 7 : 700;
    table s = scores_of(&d, 50, 40, kind), t = scores_of(&d, 1, steps, kind);
    rpo_matrix const S = table_dense(&s);
    int64_t *const out = mini_room(steps, 8), *const again = mini_room(steps, 8);
    rpo_control const two = threads_of(2);
    rpo_error err;
    mini_context("kind %d, %lld thresholds", kind, (long long)steps);
    t.v[0] = s.v[77];
    qsort(t.v, (size_t)steps, 8, by_value);
    CHECK_OK(rpo_scores_reaching(&S, t.v, steps, NULL, out, &err), &err);
    CHECK_OK(rpo_scores_reaching(&S, t.v, steps, &two, again, &err), &err);
    CHECK(memcmp(out, again, (size_t)steps * 8) == 0);
    for (int64_t i = 0; i < steps; i++) {
      int64_t expected = 0;
      for (int64_t e = 0; e < 50 * 40; e++) expected += s.v[e] >= t.v[i];
      CHECK_EQUAL(out[i], expected);
    }
    free(out);
    free(again);
    table_free(&s);
    table_free(&t);
  }
}

static void best_labels(void) {
  dice d = {4};
  for (int kind = 0; kind < KINDS; kind++) {
    enum { ROWS = 30, COLS = 23 };
    table s = scores_of(&d, ROWS, COLS, kind);
    rpo_matrix const S = table_dense(&s);
    for (int64_t k = 1; k <= COLS; k += 11) {
      int64_t index[ROWS * COLS], ties[ROWS];
      double score[ROWS * COLS];
      rpo_control const two = threads_of(2);
      rpo_error err;
      mini_context("kind %d, k = %lld", kind, (long long)k);
      CHECK_OK(rpo_scores_topk(&S, k, &two, index, score, ties, &err), &err);
      for (int64_t i = 0; i < ROWS; i++) {
        const double *const x = s.v + i * COLS;
        int64_t equal = 0;
        for (int64_t j = 0; j < COLS; j++) { /* its place in the order, if among the best */
          int64_t place = 0;
          for (int64_t o = 0; o < COLS; o++) place += x[o] > x[j] || (x[o] == x[j] && o < j);
          if (place < k) CHECK_EQUAL(index[i * k + place], j);
          if (place < k) CHECK(score[i * k + place] == x[j]);
          equal += x[j] == score[i * k + k - 1];
        }
        CHECK_EQUAL(ties[i], equal);
      }
      CHECK_OK(rpo_scores_topk(&S, k, NULL, index, score, NULL, &err), &err);
    }
    table_free(&s);
  }
}

static void refused(rpo_status status, const rpo_error *err, const char *words) {
  CHECK_EQUAL(status, RPO_EINVAL);
  if (!CHECK(strstr(err->message, words) != NULL)) fprintf(stderr, "  %s\n", err->message);
}

static void bad_input(void) {
  dice d = {5};
  table s = scores_of(&d, 6, 5, 1), y = table_binary(&d, 6, 5, 0.5);
  rpo_matrix const S = table_dense(&s), Y = table_dense(&y);
  rpo_matrix narrow = Y, csc = table_compressed(&y, RPO_CSC);
  double out[30], falling[] = {0.5, 0.2}, missing[] = {NAN}, step[] = {0.0};
  int64_t index[30];
  rpo_error err;
  narrow.cols = 4;
  refused(rpo_scores_precision(NULL, &Y, NULL, out, &err), &err, "scores is NULL");
  refused(rpo_scores_precision(&S, NULL, NULL, out, &err), &err, "Y is NULL");
  refused(rpo_scores_precision(&S, &Y, NULL, NULL, &err), &err, "out is NULL");
  refused(rpo_scores_precision(&S, &narrow, NULL, out, &err), &err, "Y must be 6 x 5");
  refused(rpo_scores_precision(&S, &csc, NULL, out, &err), &err, "CSC");
  refused(rpo_scores_precision(&csc, &Y, NULL, out, &err), &err, "scores must be dense");
  refused(rpo_scores_reaching(&S, NULL, 1, NULL, index, &err), &err, "thresholds is NULL");
  refused(rpo_scores_reaching(&S, step, 0, NULL, index, &err), &err, "thresholds");
  refused(rpo_scores_reaching(&S, falling, 2, NULL, index, &err), &err, "ascend, found 0.2");
  refused(rpo_scores_reaching(&S, missing, 1, NULL, index, &err), &err, "thresholds must be fin");
  refused(rpo_scores_reaching(&S, step, 1, NULL, NULL, &err), &err, "out is NULL");
  refused(rpo_scores_topk(&S, 0, NULL, index, out, NULL, &err), &err, "k must be between 1 and");
  refused(rpo_scores_topk(&S, 6, NULL, index, out, NULL, &err), &err, "labels 5, got 6");
  refused(rpo_scores_topk(&S, 1, NULL, NULL, out, NULL, &err), &err, "out_index");
  s.v[13] = NAN;
  refused(rpo_scores_precision(&S, &Y, NULL, out, &err), &err, "scores must be finite, found");
  s.v[13] = INFINITY;
  refused(rpo_scores_reaching(&S, step, 1, NULL, index, &err), &err,
          "scores must be finite, found");
  refused(rpo_scores_topk(&S, 2, NULL, index, out, NULL, &err), &err, "found inf");
  s.v[13] = 0.0;
  y.v[4] = 2.0;
  refused(rpo_scores_precision(&S, &Y, NULL, out, &err), &err, "zeros and ones only, found 2");
  y.v[4] = NAN;
  csc = table_compressed(&y, RPO_CSR);
  refused(rpo_scores_precision(&S, &csc, NULL, out, &err), &err, "zeros and ones only, found nan");
  table_free(&s);
  table_free(&y);
}

int main(void) {
  RUN(precisions_are_the_definition);
  RUN(views_of_any_strides);
  RUN(scores_that_reach_thresholds);
  RUN(best_labels);
  RUN(bad_input);
  return mini_done("metrics");
}
