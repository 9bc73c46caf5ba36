/* What a forest answers, against its trees walked by hand. */
#ifndef READOUT_H
#define READOUT_H
#include "problem.h"

/* predict, apply, paths, top-k, weights of one forest, all from its trees as flat arrays. */
static inline void check_readout(problem *p, const rpo_forest *f, const table *x, int sparse,
                                 int32_t threads) {
  int64_t const trees = rpo_forest_trees(f), d = rpo_forest_outputs(f), n = x->rows;
  table copy = table_new(n, x->cols);
  memcpy(copy.v, x->v, (size_t)(n * x->cols) * 8);
  rpo_matrix const X = sparse ? table_compressed(&copy, RPO_CSR) : table_dense(&copy);
  rpo_control const control = threads_of(threads);
  double *const out = mini_room(n * d, 8), *const expected = mini_room(n * d, 8);
  int64_t *const node = mini_room(n * trees, 8), *const start = mini_room(trees + 1, 8);
  int64_t *const indptr = mini_room(n + 1, 8);
  rpo_error err;
  CHECK_OK(rpo_forest_predict(f, &X, &control, out, &err), &err);
  CHECK_OK(rpo_forest_apply(f, &X, &control, node, &err), &err);
  CHECK_OK(rpo_forest_paths(f, &X, &control, start, indptr, NULL, &err), &err);
  int64_t *const columns = mini_room(indptr[n], 8), *const next = mini_room(n, 8);
  CHECK_OK(rpo_forest_paths(f, &X, &control, NULL, indptr, columns, &err), &err);
  CHECK_EQUAL(start[0], 0);
  for (int64_t i = 0; i < n; i++) next[i] = indptr[i];
  for (int64_t k = 0; k < trees; k++) {
    flat_tree t = tree_read(f, k);
    CHECK_EQUAL(start[k + 1] - start[k], t.nodes);
    for (int64_t i = 0; i < n; i++) {
      int64_t at = 0;
      for (;;) { /* the way down is what paths lists */
        CHECK(next[i] < indptr[i + 1] && columns[next[i]] == start[k] + at);
        next[i]++;
        if (t.a.left[at] < 0) break;
        at = tree_goes_left(&t, at, x->v + i * x->cols) ? t.a.left[at] : t.a.right[at];
      }
      CHECK_EQUAL(node[i * trees + k], at);
      CHECK_EQUAL(tree_walk(&t, x->v + i * x->cols), at);
      for (int64_t j = 0; j < d; j++) expected[i * d + j] += t.value[at * d + j] / (double)trees;
    }
    tree_free(&t);
  }
  for (int64_t i = 0; i < n; i++) CHECK_EQUAL(next[i], indptr[i + 1]);
  if (p->fallback == NULL) {
    for (int64_t i = 0; i < n * d; i++)
      CHECK_NEAR(out[i], expected[i], 1e-12 * (1.0 + fabs(out[i])));
  }
  for (int64_t k = 1; k <= d; k = k == d ? d + 1 : k > 1 || d < 3 ? d : d / 2 + 1) {
    int64_t *const index = mini_room(n * k, 8);
    double *const score = mini_room(n * k, 8);
    CHECK_OK(rpo_forest_predict_topk(f, &X, k, &control, index, score, &err), &err);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t r = 0; r < k; r++) {
        int64_t const j = index[i * k + r];
        int64_t better = 0; /* its rank is the number of outputs before it */
        if (!CHECK(j >= 0 && j < d)) continue;
        CHECK(score[i * k + r] == out[i * d + j]);
        for (int64_t other = 0; other < d; other++) {
          double const mine = out[i * d + j], its = out[i * d + other];
          better += its > mine || (its == mine && other < j);
        }
        CHECK_EQUAL(better, r);
      }
    }
    free(index);
    free(score);
  }
  free(out);
  free(expected);
  free(node);
  free(start);
  free(indptr);
  free(columns);
  free(next);
  table_free(&copy);
}

typedef struct weight_matrix {
  int64_t rows, *indptr, *columns;
  double *values;
} weight_matrix;

static inline weight_matrix weights_read(const rpo_forest *f, const rpo_leaf_rows *leaf_rows,
                                         const rpo_matrix *X, const rpo_control *control) {
  weight_matrix w = {X->rows, mini_room(X->rows + 1, 8), NULL, NULL};
  rpo_error err;
  CHECK_OK(rpo_forest_weights(f, leaf_rows, X, control, w.indptr, NULL, NULL, &err), &err);
  w.columns = mini_room(w.indptr[w.rows], 8);
  w.values = mini_room(w.indptr[w.rows], 8);
  CHECK_OK(rpo_forest_weights(f, leaf_rows, X, control, w.indptr, w.columns, w.values, &err), &err);
  return w;
}

static inline void weights_free(weight_matrix *w) {
  free(w->indptr);
  free(w->columns);
  free(w->values);
}

static inline int weights_equal(const weight_matrix *a, const weight_matrix *b) {
  size_t const entries = (size_t)a->indptr[a->rows];
  return a->rows == b->rows &&
         memcmp(a->indptr, b->indptr, (size_t)(a->rows + 1) * sizeof *a->indptr) == 0 &&
         memcmp(a->columns, b->columns, entries * sizeof *a->columns) == 0 &&
         memcmp(a->values, b->values, entries * sizeof *a->values) == 0;
}

/* Weights sum to 1, columns rise, W Y is the prediction; the rows of leaves made again give the same
 * ones, to the bit, as those the forest keeps. */
static inline void check_weights(problem *p, const rpo_forest *f, int32_t threads) {
  int64_t const n = p->x.rows, d = p->y.cols;
  rpo_matrix const X = problem_x(p);
  rpo_control const control = threads_of(threads);
  double *const out = mini_room(n * d, 8), *const product = mini_room(d, 8);
  rpo_leaf_rows *again = NULL;
  rpo_error err;
  CHECK_OK(rpo_leaf_rows_new(f, &X, p->weight, &control, &again, &err), &err);
  weight_matrix w = weights_read(f, again, &X, &control);
  if (rpo_forest_has_rows(f)) {
    weight_matrix own = weights_read(f, NULL, &X, &control);
    CHECK(weights_equal(&w, &own));
    weights_free(&own);
  } else {
    CHECK_EQUAL(rpo_forest_weights(f, NULL, &X, &control, w.indptr, NULL, NULL, &err), RPO_EINVAL);
  }
  CHECK_OK(rpo_forest_predict(f, &X, &control, out, &err), &err);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0.0;
    memset(product, 0, (size_t)d * 8);
    for (int64_t e = w.indptr[i]; e < w.indptr[i + 1]; e++) {
      int64_t const row = w.columns[e];
      CHECK(row >= 0 && row < n && (e == w.indptr[i] || w.columns[e - 1] < row));
      CHECK(w.values[e] > 0.0);
      sum += w.values[e];
      for (int64_t j = 0; j < d; j++) product[j] += w.values[e] * p->y.v[row * d + j];
    }
    CHECK_NEAR(sum, 1.0, 1e-12);
    for (int64_t j = 0; j < d; j++) CHECK_NEAR(product[j], out[i * d + j], 1e-12);
  }
  rpo_leaf_rows_free(again);
  weights_free(&w);
  free(out);
  free(product);
}

#endif
