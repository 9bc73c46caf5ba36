/* Every function that reads a forest, on one X: whatever the forest, nothing breaks, and what two of
 * them say agrees. */
#ifndef READING_H
#define READING_H
#include "fuzz.h"
#include "model.h"

enum { ROOM = 1 << 12 }; /* numbers in an output array */

typedef struct reading {
  const rpo_forest *forest;
  const rpo_matrix *X;
  const double *weight; /* of X's rows; NULL: ones */
  const rpo_control *control;
  limits *may;
  rpo_error err;
} reading;

static inline void read_predictions(reading *r) {
  int64_t const n = r->X->rows, d = rpo_forest_outputs(r->forest), k = d < 3 ? d : 3;
  double *const out = exactly(n * d, 8), *const score = exactly(n * k, 8);
  int64_t *const index = exactly(n * k, 8);
  int const whole =
      fine(rpo_forest_predict(r->forest, r->X, r->control, out, &r->err), &r->err, r->may);
  int const top =
      fine(rpo_forest_predict_topk(r->forest, r->X, k, r->control, index, score, &r->err), &r->err,
           r->may);
  for (int64_t i = 0; i < n * k && whole && top; i++) {
    MUST(index[i] >= 0 && index[i] < d);
    double const there = out[i / k * d + index[i]];
    MUST(score[i] == there || (isnan(score[i]) && isnan(there)));
  }
  free(out);
  free(score);
  free(index);
}

static inline void read_nodes(reading *r) {
  int64_t const n = r->X->rows, trees = rpo_forest_trees(r->forest);
  int64_t *const node = exactly(n * trees, 8), *const start = exactly(trees + 1, 8);
  int64_t *const indptr = exactly(n + 1, 8);
  if (fine(rpo_forest_apply(r->forest, r->X, r->control, node, &r->err), &r->err, r->may)) {
    for (int64_t i = 0; i < n * trees; i++) {
      MUST(node[i] >= 0 && node[i] < rpo_forest_tree_nodes(r->forest, i % trees));
    }
  }
  rpo_status status = rpo_forest_paths(r->forest, r->X, r->control, start, indptr, NULL, &r->err);
  if (fine(status, &r->err, r->may) && indptr[n] < ROOM) {
    int64_t *const columns = exactly(indptr[n], 8);
    status = rpo_forest_paths(r->forest, r->X, r->control, NULL, indptr, columns, &r->err);
    if (fine(status, &r->err, r->may)) {
      for (int64_t e = 0; e < indptr[n]; e++) MUST(columns[e] >= 0 && columns[e] < start[trees]);
    }
    free(columns);
  }
  free(node);
  free(start);
  free(indptr);
}

static inline void read_weights(reading *r, const rpo_leaf_rows *rows) {
  int64_t const n = r->X->rows;
  int64_t *const indptr = exactly(n + 1, 8);
  rpo_status status =
      rpo_forest_weights(r->forest, rows, r->X, r->control, indptr, NULL, NULL, &r->err);
  if (fine(status, &r->err, r->may) && indptr[n] < ROOM) {
    int64_t *const columns = exactly(indptr[n], 8);
    double *const values = exactly(indptr[n], 8);
    status =
        rpo_forest_weights(r->forest, rows, r->X, r->control, indptr, columns, values, &r->err);
    if (fine(status, &r->err, r->may)) {
      for (int64_t e = 0; e < indptr[n]; e++) {
        MUST(columns[e] >= 0 && columns[e] < rpo_forest_rows(r->forest));
      }
    }
    free(columns);
    free(values);
  }
  free(indptr);
}

static inline void read_trees(reading *r) {
  int64_t const trees = rpo_forest_trees(r->forest), d = rpo_forest_outputs(r->forest);
  double *const importances = exactly(rpo_forest_inputs(r->forest), 8);
  (void)fine(rpo_forest_importances(r->forest, importances, &r->err), &r->err, r->may);
  free(importances);
  MUST(rpo_forest_tree_nodes(r->forest, trees) == -1);
  for (int64_t t = 0; t < trees && t < 3; t++) {
    int64_t const nodes = rpo_forest_tree_nodes(r->forest, t);
    if (nodes > ROOM / d) continue;
    int64_t *const left = exactly(nodes, 8), *const right = exactly(nodes, 8);
    int64_t *const feature = exactly(nodes, 8), *const samples = exactly(nodes, 8);
    double *const cut = exactly(nodes, 8), *const impurity = exactly(nodes, 8);
    double *const weight = exactly(nodes, 8), *const value = exactly(nodes * d, 8);
    uint8_t *const missing = exactly(nodes, 1);
    rpo_tree_arrays const a = {left, right, feature, cut, impurity, samples, weight, missing};
    if (fine(rpo_forest_tree(r->forest, t, &a, &r->err), &r->err, r->may)) {
      for (int64_t i = 0; i < nodes; i++) {
        MUST((left[i] == -1 && right[i] == -1) ||
             (left[i] == i + 1 && right[i] > left[i] && right[i] < nodes));
        MUST(feature[i] < rpo_forest_inputs(r->forest));
      }
    }
    (void)fine(rpo_forest_tree_values(r->forest, t, value, &r->err), &r->err, r->may);
    free(left);
    free(right);
    free(feature);
    free(samples);
    free(cut);
    free(impurity);
    free(weight);
    free(value);
    free(missing);
  }
}

/* The same bytes again, and from them the same model. */
static inline void read_bytes(reading *r) {
  int64_t const bytes = rpo_forest_bytes(r->forest);
  char *const block = exactly(bytes, 1), *const again = exactly(bytes, 1);
  rpo_forest *copy = NULL;
  int64_t note = -1;
  const char *const text = rpo_forest_note(r->forest, &note);
  MUST(note >= 0 && (text != NULL || note == 0));
  MUST(rpo_forest_dump(r->forest, block, &r->err) == RPO_OK);
  if (fine(rpo_forest_parse(block, bytes, &copy, &r->err), &r->err, r->may)) {
    MUST(rpo_forest_bytes(copy) == bytes);
    MUST(rpo_forest_dump(copy, again, &r->err) == RPO_OK &&
         memcmp(block, again, (size_t)bytes) == 0);
  } else {
    MUST(r->may->starved || r->may->damaged);
  }
  rpo_forest_free(copy);
  free(block);
  free(again);
}

/* What needs rows like those of the fit. Y NULL: left out. */
static inline void read_training_rows(reading *r, const rpo_matrix *Y) {
  int64_t const n = r->X->rows, d = rpo_forest_outputs(r->forest);
  double *const out = exactly(n * (d > 3 ? d : 3), 8);
  int64_t *const counts = exactly(n, 8);
  rpo_leaf_rows *rows = NULL;
  rpo_forest *made = NULL;
  rpo_status status = rpo_leaf_rows_new(r->forest, r->X, r->weight, r->control, &rows, &r->err);
  if (fine(status, &r->err, r->may)) read_weights(r, rows);
  rpo_leaf_rows_free(rows);
  if (n == rpo_forest_rows(r->forest)) {
    status =
        rpo_forest_predict_oob(r->forest, r->X, Y, r->weight, r->control, out, counts, &r->err);
    (void)fine(status, &r->err, r->may);
  }
  if (Y != NULL) {
    double *const importances = exactly(rpo_forest_inputs(r->forest), 8);
    for (int64_t i = 0; i < n; i++) counts[i] = (i * 7) % n;
    status = rpo_forest_agreement(r->forest, r->X, Y, counts, r->weight, r->control, out, &r->err);
    (void)fine(status, &r->err, r->may);
    status =
        rpo_forest_importances_on(r->forest, r->X, Y, r->weight, r->control, importances, &r->err);
    (void)fine(status, &r->err, r->may);
    rpo_features *features = NULL;
    status = rpo_features_new(r->X, 0, r->control, &features, &r->err);
    if (fine(status, &r->err, r->may)) {
      status = rpo_forest_relabel(r->forest, features, Y, r->weight, r->control, &made, &r->err);
      (void)fine(status, &r->err, r->may);
    }
    rpo_forest_free(made);
    rpo_features_free(features);
    free(importances);
  }
  free(out);
  free(counts);
}

static inline void read_sums(reading *r) {
  int64_t const n = r->X->rows, d = rpo_forest_outputs(r->forest);
  int64_t const trees = rpo_forest_trees(r->forest);
  float *const scores = exactly(n * d, 4);
  memset(scores, 0, (size_t)(n * d) * 4);
  MUST((rpo_forest_start(r->forest) != NULL) == (rpo_forest_is_boosted(r->forest) != 0));
  MUST(rpo_forest_step(r->forest) == NULL || rpo_forest_is_boosted(r->forest));
  MUST(!rpo_forest_has_rows(r->forest) || !rpo_forest_is_boosted(r->forest));
  (void)fine(rpo_forest_add_trees(r->forest, r->X, trees / 2, trees, r->control, scores, &r->err),
             &r->err, r->may);
  MUST(rpo_forest_add_trees(r->forest, r->X, 0, trees + 1, r->control, scores, &r->err) != RPO_OK);
  free(scores);
}

/* Other forests of its trees. */
static inline void read_into_others(reading *r) {
  const rpo_forest *const twice[2] = {r->forest, r->forest};
  int64_t const pick[4] = {1, rpo_forest_trees(r->forest) - 1, 0, 0};
  rpo_forest *made = NULL;
  (void)fine(rpo_forest_pick(twice, 2, pick, 2, &made, &r->err), &r->err, r->may);
  rpo_forest_free(made);
  made = NULL;
  (void)fine(rpo_forest_beside(twice, 2, &made, &r->err), &r->err, r->may);
  rpo_forest_free(made);
}

static inline void read_forest(reading *r, const rpo_matrix *Y) {
  int64_t const n = r->X->rows < 1 ? 1 : r->X->rows;
  if (rpo_forest_outputs(r->forest) > ROOM / n || rpo_forest_trees(r->forest) > ROOM / n ||
      rpo_forest_inputs(r->forest) > ROOM || rpo_forest_rows(r->forest) > ROOM) {
    return; /* a handful of bytes may tell of a billion outputs or rows */
  }
  read_trees(r);
  read_bytes(r);
  if (r->X->rows < 1 || r->X->rows > ROOM) return;
  read_predictions(r);
  read_nodes(r);
  read_weights(r, NULL);
  read_training_rows(r, Y);
  read_sums(r);
  read_into_others(r);
}

#endif
