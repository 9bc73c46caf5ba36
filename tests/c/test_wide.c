/* Models too large for 16-bit numbers: of rows, features, outputs or nodes there are more than 65536.
 * What is read of them, also of mapped files, agrees with trees walked here. */
#include "forge.h"
#include "forms.h"
#include "model.h"

enum { MANY = 66000, READ = 12 };

/* X: the last column counts, the first is noise, those between are empty. */
static rpo_matrix column_x(int64_t rows, int64_t cols, int ones, int32_t **start, int32_t **index,
                           double **value) {
  rpo_matrix X = {rows, cols, RPO_CSR, RPO_F64, RPO_I32, 0, NULL, 0, 0, NULL, NULL};
  dice d = {5};
  int32_t count = 0;
  *start = mini_room(rows + 1, 4);
  *index = mini_room(2 * rows, 4);
  *value = mini_room(2 * rows, 8);
  for (int64_t i = 0; i < rows; i++) {
    if (dice_below(&d, 2)) {
      (*value)[count] = ones ? 1.0 : 1.0 + (double)dice_below(&d, 3);
      (*index)[count++] = 0;
    }
    if (!ones || dice_below(&d, 2)) {
      (*value)[count] = ones ? 1.0 : 1e-9 + (double)i; /* no float */
      (*index)[count++] = (int32_t)cols - 1;
    }
    (*start)[i + 1] = count;
  }
  X.data = ones ? NULL : *value;
  X.indptr = *start;
  X.indices = *index;
  return X;
}

static double at(const rpo_matrix *X, int64_t row, int64_t col) {
  const int32_t *const start = X->indptr, *const index = X->indices;
  for (int32_t e = start[row]; e < start[row + 1]; e++) {
    if (index[e] == col) return X->data == NULL ? 1.0 : ((const double *)X->data)[e];
  }
  return 0.0;
}

static int64_t leaf_of(const flat_tree *t, const rpo_matrix *X, int64_t row) {
  int64_t node = 0;
  while (t->a.left[node] >= 0) {
    node =
        at(X, row, t->a.feature[node]) <= t->a.threshold[node] ? t->a.left[node] : t->a.right[node];
  }
  return node;
}

/* The first rows of X, by trees and by the library: trusted and not, the rows sparse and dense. */
static void read_all(const rpo_forest *m, const rpo_matrix *X) {
  static int64_t leaf[READ], start[READ + 1];
  rpo_forest *mapped = NULL;
  rpo_error err;
  flat_tree t = tree_read(m, 0);
  rpo_matrix some = *X, dense = *X;
  double *const cell = mini_room(READ * X->cols, 8);
  some.rows = dense.rows = READ;
  for (int64_t i = 0; i < READ; i++) {
    for (int64_t j = 0; j < X->cols; j += X->cols - 1) cell[i * X->cols + j] = at(X, i, j);
  }
  dense.format = RPO_DENSE;
  dense.data = cell;
  dense.row_stride = X->cols;
  dense.col_stride = 1;
  CHECK_OK(rpo_forest_save(m, "test_wide.rpo", NULL, 0, &err), &err);
  CHECK_OK(rpo_forest_open_mapped("test_wide.rpo", &mapped, &err), &err);
  for (int way = 0; way < 4; way++) {
    mini_context("way %d", way);
    const rpo_forest *const read = way % 2 ? mapped : m;
    CHECK_OK(rpo_forest_apply(read, way < 2 ? &some : &dense, NULL, leaf, &err), &err);
    for (int64_t i = 0; i < READ; i++) CHECK_EQUAL(leaf[i], leaf_of(&t, X, i));
    CHECK_OK(rpo_forest_paths(read, way < 2 ? &some : &dense, NULL, leaf, start, NULL, &err), &err);
    CHECK(start[READ] > READ);
  }
  tree_free(&t);
  free(cell);
  rpo_forest_free(mapped);
  (void)remove("test_wide.rpo");
}

static rpo_forest *fit(const rpo_matrix *X, const rpo_matrix *Y, int bootstrap) {
  rpo_options *options = NULL;
  rpo_features *features = NULL;
  rpo_forest *m = NULL;
  rpo_error err;
  CHECK_OK(rpo_options_new(&options, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_N_TREES, 1, &err), &err);
  CHECK_OK(rpo_options_set(options, RPO_OPT_BOOTSTRAP, bootstrap, &err), &err);
  CHECK_OK(rpo_features_new(X, 0, NULL, &features, &err), &err);
  CHECK_OK(rpo_forest_fit(options, features, Y, NULL, NULL, NULL, NULL, NULL, &m, &err), &err);
  rpo_features_free(features);
  rpo_options_free(options);
  return m;
}

/* Predictions of a fully grown tree without a bootstrap are the training outputs. */
static void predicts(const rpo_forest *m, const rpo_matrix *X, const rpo_matrix *Y) {
  int64_t const d = rpo_forest_outputs(m);
  double *const out = mini_room(READ * d, 8);
  double score[READ];
  int64_t best[READ];
  rpo_matrix some = *X;
  rpo_error err;
  some.rows = READ;
  CHECK_OK(rpo_forest_predict(m, &some, NULL, out, &err), &err);
  CHECK_OK(rpo_forest_predict_topk(m, &some, 1, NULL, best, score, &err), &err);
  for (int64_t i = 0; i < READ; i++) {
    for (int64_t j = 0; j < d && Y->format == RPO_CSR; j++) CHECK(out[i * d + j] == at(Y, i, j));
    if (Y->format == RPO_DENSE) CHECK(out[i] == ((const double *)Y->data)[i]);
    CHECK(score[i] == out[i * d + best[i]]);
  }
  free(out);
}

static void many_rows_and_nodes(void) {
  for (int cols = 2; cols <= MANY; cols += MANY - 2) {
    int32_t *start, *index;
    double *value, *const y = mini_room(MANY, 8);
    rpo_matrix const X = column_x(MANY, cols, 0, &start, &index, &value);
    rpo_matrix const Y = {MANY, 1, RPO_DENSE, RPO_F64, 0, 0, y, 1, 1, NULL, NULL};
    for (int64_t i = 0; i < MANY; i++) y[i] = (double)(i * 7 % 1000);
    rpo_forest *const m = fit(&X, &Y, 0);
    CHECK(rpo_forest_tree_nodes(m, 0) > 65536 && m->left.type == RPO_TYPE_I32);
    CHECK_EQUAL(m->feature.type, cols > 65536 ? RPO_TYPE_I32 : RPO_TYPE_U16);
    read_all(m, &X);
    predicts(m, &X, &Y);
    rpo_forest_free(m);
    free(start);
    free(index);
    free(value);
    free(y);
  }
}

/* Few rows of many features, numbers or ones, and of many labels. */
static void many_features_and_outputs(void) {
  for (int ones = 0; ones < 2; ones++) {
    int32_t *start, *index, labels[READ], each[READ + 1];
    double *value;
    rpo_matrix const X = column_x(READ, MANY, ones, &start, &index, &value);
    rpo_matrix const Y = {READ, MANY, RPO_CSR, RPO_F64, RPO_I32, 0, NULL, 0, 0, each, labels};
    for (int32_t i = 0; i < READ; i++) {
      labels[i] = MANY - 1 - (ones ? (int32_t)at(&X, i, MANY - 1) : i % 5);
      each[i] = i;
    }
    each[READ] = READ;
    rpo_forest *const m = fit(&X, &Y, 0);
    CHECK(m->feature.type == RPO_TYPE_I32 && m->value_index.type == RPO_TYPE_I32);
    read_all(m, &X);
    predicts(m, &X, &Y);
    rpo_forest_free(m);
    free(start);
    free(index);
    free(value);
  }
}

int main(void) {
  RUN(many_rows_and_nodes);
  RUN(many_features_and_outputs);
  return mini_done("wide");
}
