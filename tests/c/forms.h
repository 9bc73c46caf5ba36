/* Small models of every form a file can have. */
#ifndef FORMS_H
#define FORMS_H
#include "problem.h"

/* A small forest of one of the forms a model can have. */
enum {
  ROWS_SPARSE,
  ROWS_DENSE,
  ROWS_REAL,
  WEIGHTED,
  TABLE,
  TABLE_SPARSE,
  TABLE_SPARSE_REAL,
  RATIO,
  RATIO_TABLE,
  STUMPS,
  FORMS,
  BOOSTED = FORMS, /* sums of trees, not means of rows */
  BOOSTED_HALF,
  BOOSTED_SPARSE,
  BOOSTED_SPARSE_HALF,
  BOOSTED_COMPONENT,
  ALL_FORMS
};

static inline problem form_problem(int form) {
  dice d = {100 + (uint64_t)form};
  int const sparse_table = form == TABLE_SPARSE || form == TABLE_SPARSE_REAL;
  int const sparse = form == ROWS_SPARSE || form == ROWS_REAL || sparse_table;
  int64_t const n = 14, outs = sparse_table ? 40 : form == ROWS_REAL ? 30 : sparse ? 12 : 3;
  table const x =
      table_random(&d, n, 3, form == WEIGHTED ? 0 : 5, 0.1, form == ROWS_DENSE ? 0.1 : 0.0);
  double const empty = sparse_table ? 0.93 : form == ROWS_REAL ? 0.3 : 0.0;
  int const real = form == ROWS_REAL || form == WEIGHTED || form == TABLE_SPARSE_REAL;
  table const y = real ? table_random(&d, n, outs, 0, empty, 0.0)
                       : table_binary(&d, n, outs,
                                      sparse_table ? 0.07
                                      : sparse     ? 0.2
                                                   : 0.6);
  problem p = problem_new(x, y);
  problem_set(&p, RPO_OPT_N_TREES, 2);
  problem_set(&p, RPO_OPT_BOOTSTRAP, form != ROWS_DENSE);
  p.sparse_y = sparse;
  if (form == TABLE || form == RATIO_TABLE || sparse_table) problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
  if (form == STUMPS) problem_set(&p, RPO_OPT_MIN_SAMPLES_LEAF, 14); /* no inner node at all */
  if (form == WEIGHTED) {
    problem_set(&p, RPO_OPT_BOOTSTRAP, 0);
    p.weight = mini_room(n, 8);
    for (int64_t i = 0; i < n; i++) p.weight[i] = 0.25 + dice_real(&d);
  }
  if (form == RATIO || form == RATIO_TABLE) {
    problem_set(&p, RPO_OPT_LABEL_RATIO, 1);
    p.labels = table_binary(&d, n, 4, 0.6);
    p.fallback = mini_room(2, 8);
    p.fallback[0] = 0.5;
  }
  return p;
}

/* Sparse: with a gain asked of every entry, most are left out. */
static inline rpo_forest *boosted_forest(int form) {
  dice d = {100 + (uint64_t)form};
  int const sparse = form == BOOSTED_SPARSE || form == BOOSTED_SPARSE_HALF;
  problem p = problem_new(table_random(&d, 14, 3, 0, 0.1, 0.1),
                          table_binary(&d, 14, sparse ? 12 : 3, sparse ? 0.15 : 0.5));
  rpo_matrix const X = problem_x(&p), Y = problem_y(&p);
  rpo_boost_data data;
  rpo_features *features = NULL;
  rpo_options *options = NULL;
  rpo_boost *boost = NULL;
  rpo_forest *forest = NULL;
  rpo_error err;
  memset(&data, 0, sizeof data);
  data.Y = &Y;
  p.projection.kind = RPO_PROJECT_GAUSSIAN;
  p.projection.components = 1;
  problem_set(&p, RPO_OPT_LOSS, RPO_LOSS_LOGISTIC);
  problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
  problem_set(&p, RPO_OPT_RELABEL, form != BOOSTED_COMPONENT);
  problem_set(&p, RPO_OPT_HALF, form == BOOSTED_HALF || form == BOOSTED_SPARSE_HALF);
  if (sparse) problem_set(&p, RPO_OPT_LEAF_MIN_GAIN, 0.8);
  CHECK_OK(problem_options(&p, &options, &err), &err);
  CHECK_OK(rpo_features_new(&X, 0, NULL, &features, &err), &err);
  CHECK_OK(rpo_boost_new(options, features, &data, &p.projection, NULL, &boost, &err), &err);
  CHECK_OK(rpo_boost_run(boost, 2, NULL, &err), &err);
  CHECK_OK(rpo_boost_forest(boost, 2, &forest, &err), &err);
  rpo_boost_free(boost);
  rpo_features_free(features);
  rpo_options_free(options);
  problem_free(&p);
  return forest;
}

static inline rpo_forest *form_forest(int form) {
  if (form >= BOOSTED) return boosted_forest(form);
  problem p = form_problem(form);
  rpo_forest *const forest = problem_forest(&p, 1);
  problem_free(&p);
  return forest;
}

#endif
