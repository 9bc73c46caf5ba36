/* Every public function that takes long or takes memory, as one table: what test_calls.c starves and
 * cancels. A stage holds what the calls work on. */
#ifndef CALLS_H
#define CALLS_H
#include "problem.h"

enum { STAGE_ROWS = 70, STAGE_OUTPUTS = 12 };

enum { GROWN, RELABELLED, BESIDE, BOOSTED, COMPONENTS, STAGES };

typedef struct stage {
  int kind;
  problem p;
  rpo_matrix X, Y; /* CSR or dense, as the problem says */
  rpo_options *options;
  rpo_features *features;
  rpo_forest *forest;
  rpo_leaf_rows *leaf_rows;
  rpo_boost *boost;
  rpo_boost_data data;
  int64_t *whole, *indptr; /* output arrays, and where weights begin */
  double *real;
  float *single;
  unsigned char *block;
} stage;

enum { STAGE_ROOM = 40000 };

static inline void stage_boost(stage *s) {
  rpo_error err;
  s->data.Y = &s->Y;
  s->p.projection.kind = RPO_PROJECT_GAUSSIAN;
  s->p.projection.components = s->kind == COMPONENTS ? 1 : 3;
  CHECK_OK(rpo_options_set(s->options, RPO_OPT_RELABEL, s->kind != COMPONENTS, &err), &err);
  CHECK_OK(rpo_options_set(s->options, RPO_OPT_MAX_DEPTH, 4, &err), &err);
  CHECK_OK(rpo_options_set(s->options, RPO_OPT_LEAF, s->kind == COMPONENTS, &err), &err);
  CHECK_OK(
      rpo_boost_new(s->options, s->features, &s->data, &s->p.projection, NULL, &s->boost, &err),
      &err);
  CHECK_OK(rpo_boost_run(s->boost, 3, NULL, &err), &err);
  CHECK_OK(rpo_boost_forest(s->boost, 3, &s->forest, &err), &err);
}

static inline void stage_forest(stage *s) {
  rpo_error err;
  int64_t entries;
  CHECK_OK(rpo_forest_fit(s->options, s->features, &s->Y, NULL, NULL, NULL, &s->p.projection, NULL,
                          &s->forest, &err),
           &err);
  if (s->kind == BESIDE) {
    const rpo_forest *const two[2] = {s->forest, s->forest};
    rpo_forest *joint = NULL;
    CHECK_OK(rpo_forest_beside(two, 2, &joint, &err), &err);
    rpo_forest_free(s->forest);
    s->forest = joint;
    return;
  }
  if (s->kind == RELABELLED) {
    rpo_forest *all = NULL;
    CHECK_OK(rpo_forest_relabel(s->forest, s->features, &s->Y, NULL, NULL, &all, &err), &err);
    rpo_forest_free(s->forest);
    s->forest = all;
  }
  CHECK_OK(rpo_leaf_rows_new(s->forest, &s->X, NULL, NULL, &s->leaf_rows, &err), &err);
  CHECK_OK(rpo_forest_weights(s->forest, s->leaf_rows, &s->X, NULL, s->indptr, NULL, NULL, &err),
           &err);
  entries = s->indptr[STAGE_ROWS];
  CHECK(entries <= STAGE_ROOM);
}

static inline void stage_start(stage *s, int kind) {
  rpo_error err;
  dice d = {500 + (uint64_t)kind};
  memset(s, 0, sizeof *s);
  s->kind = kind;
  int64_t const outputs = kind == BESIDE ? 1 : STAGE_OUTPUTS;
  int const sparse = kind == RELABELLED || kind == COMPONENTS;
  s->p = problem_new(table_random(&d, STAGE_ROWS, 5, 7, sparse ? 0.8 : 0.0, 0.05),
                     table_random(&d, STAGE_ROWS, outputs, 3, 0.7, 0.0));
  s->p.sparse_x = s->p.sparse_y = sparse;
  s->whole = mini_room(STAGE_ROOM, 8);
  s->indptr = mini_room(STAGE_ROWS + 1, 8);
  s->real = mini_room(STAGE_ROOM, 8);
  s->single = mini_room(STAGE_ROOM, 4);
  problem_set(&s->p, RPO_OPT_N_TREES, 3);
  problem_set(&s->p, RPO_OPT_BOOTSTRAP, kind != BESIDE);
  if (kind == GROWN) {
    s->p.projection.kind = RPO_PROJECT_GAUSSIAN;
    s->p.projection.components = 4;
    s->p.projection.shared = 1;
  }
  s->X = problem_x(&s->p);
  s->Y = problem_y(&s->p);
  CHECK_OK(problem_options(&s->p, &s->options, &err), &err);
  CHECK_OK(rpo_features_new(&s->X, 0, NULL, &s->features, &err), &err);
  if (kind == BOOSTED || kind == COMPONENTS) {
    stage_boost(s);
  } else {
    stage_forest(s);
  }
  s->block = forest_bytes(s->forest);
}

static inline void stage_end(stage *s) {
  rpo_leaf_rows_free(s->leaf_rows);
  rpo_boost_free(s->boost);
  rpo_forest_free(s->forest);
  rpo_features_free(s->features);
  rpo_options_free(s->options);
  problem_free(&s->p);
  free(s->whole);
  free(s->indptr);
  free(s->real);
  free(s->single);
  free(s->block);
}

/* ---- The calls ---- */

typedef rpo_status (*call_fn)(stage *s, const rpo_control *control, rpo_error *err);

#define MAKES(type, free, call)                \
  type *made = NULL;                           \
  rpo_status const status = (call);            \
  CHECK((status == RPO_OK) == (made != NULL)); \
  free(made);                                  \
  return status

static inline rpo_status call_features(stage *s, const rpo_control *c, rpo_error *err) {
  MAKES(rpo_features, rpo_features_free,
        rpo_features_new(&s->X, s->kind % 2 ? 4 : 0, c, &made, err));
}
static inline rpo_status call_like(stage *s, const rpo_control *c, rpo_error *err) {
  MAKES(rpo_features, rpo_features_free, rpo_features_like(&s->X, s->features, c, &made, err));
}
static inline rpo_status call_fit(stage *s, const rpo_control *c, rpo_error *err) {
  const rpo_projection *const p = s->boost == NULL ? &s->p.projection : NULL;
  MAKES(rpo_forest, rpo_forest_free,
        rpo_forest_fit(s->options, s->features, &s->Y, NULL, NULL, NULL, p, c, &made, err));
}
static inline rpo_status call_project(stage *s, const rpo_control *c, rpo_error *err) {
  rpo_projection const p = {RPO_PROJECT_RADEMACHER, 0, 5, 3.0, 1, 2, NULL};
  return rpo_projection_apply(&p, &s->Y, c, s->real, err);
}
static inline rpo_status call_predict(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_predict(s->forest, &s->X, c, s->real, err);
}
static inline rpo_status call_topk(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_predict_topk(s->forest, &s->X, 1, c, s->whole, s->real, err);
}
static inline rpo_status call_apply(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_apply(s->forest, &s->X, c, s->whole, err);
}
static inline rpo_status call_paths(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_paths(s->forest, &s->X, c, NULL, s->whole, NULL, err);
}
static inline rpo_status call_oob(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_predict_oob(s->forest, &s->X, &s->Y, NULL, c, s->real, s->whole, err);
}
static inline rpo_status call_agreement(stage *s, const rpo_control *c, rpo_error *err) {
  int64_t rows[STAGE_ROWS];
  for (int64_t i = 0; i < STAGE_ROWS; i++) rows[i] = i;
  return rpo_forest_agreement(s->forest, &s->X, &s->Y, rows, NULL, c, s->real, err);
}
static inline rpo_status call_leaf_rows(stage *s, const rpo_control *c, rpo_error *err) {
  MAKES(rpo_leaf_rows, rpo_leaf_rows_free,
        rpo_leaf_rows_new(s->forest, &s->X, NULL, c, &made, err));
}
static inline rpo_status call_weights(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_weights(s->forest, s->leaf_rows, &s->X, c, s->indptr, s->whole, s->real, err);
}
static inline rpo_status call_importances_on(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_importances_on(s->forest, &s->X, &s->Y, NULL, c, s->real, err);
}
static inline rpo_status call_importances(stage *s, const rpo_control *c, rpo_error *err) {
  (void)c;
  return rpo_forest_importances(s->forest, s->real, err);
}
static inline rpo_status call_relabel(stage *s, const rpo_control *c, rpo_error *err) {
  MAKES(rpo_forest, rpo_forest_free,
        rpo_forest_relabel(s->forest, s->features, &s->Y, NULL, c, &made, err));
}
static inline rpo_status call_pick(stage *s, const rpo_control *c, rpo_error *err) {
  int64_t const pick[4] = {0, 2, 0, 0};
  const rpo_forest *const one = s->forest;
  (void)c;
  MAKES(rpo_forest, rpo_forest_free, rpo_forest_pick(&one, 1, pick, 2, &made, err));
}
static inline rpo_status call_save(stage *s, const rpo_control *c, rpo_error *err) {
  (void)c;
  return rpo_forest_save(s->forest, "test_calls.rpo", "note", 4, err);
}
static inline rpo_status call_load(stage *s, const rpo_control *c, rpo_error *err) {
  (void)s;
  (void)c;
  MAKES(rpo_forest, rpo_forest_free, rpo_forest_load("test_calls.rpo", &made, err));
}
static inline rpo_status call_parse(stage *s, const rpo_control *c, rpo_error *err) {
  (void)c;
  MAKES(rpo_forest, rpo_forest_free,
        rpo_forest_parse(s->block, rpo_forest_bytes(s->forest), &made, err));
}
static inline rpo_status call_tree(stage *s, const rpo_control *c, rpo_error *err) {
  rpo_tree_arrays const a = {s->whole, NULL, NULL, s->real, NULL, NULL, NULL, NULL};
  (void)c;
  return rpo_forest_tree(s->forest, 1, &a, err);
}
static inline rpo_status call_add_trees(stage *s, const rpo_control *c, rpo_error *err) {
  return rpo_forest_add_trees(s->forest, &s->X, 1, 3, c, s->single, err);
}

/* From nothing to three rounds. */
static inline rpo_status call_boost(stage *s, const rpo_control *c, rpo_error *err) {
  rpo_boost *b = NULL;
  rpo_status status =
      rpo_boost_new(s->options, s->features, &s->data, &s->p.projection, c, &b, err);
  if (status == RPO_OK) status = rpo_boost_run(b, 3, c, err);
  rpo_boost_free(b);
  return status;
}
static inline rpo_status call_resume(stage *s, const rpo_control *c, rpo_error *err) {
  rpo_boost *b = NULL;
  rpo_status status =
      rpo_boost_new(s->options, s->features, &s->data, &s->p.projection, c, &b, err);
  if (status == RPO_OK) status = rpo_boost_resume(b, s->forest, c, err);
  rpo_boost_free(b);
  return status;
}
static inline rpo_status call_scores(stage *s, const rpo_control *c, rpo_error *err) {
  int32_t const rows[3] = {5, 0, 69};
  rpo_boost *b = NULL;
  rpo_status status =
      rpo_boost_new(s->options, s->features, &s->data, &s->p.projection, NULL, &b, err);
  if (status == RPO_OK) status = rpo_boost_run(b, 2, NULL, err);
  if (status == RPO_OK) status = rpo_boost_scores(b, rows, 3, c, s->single, err);
  rpo_boost_free(b);
  return status;
}
static inline rpo_status call_model(stage *s, const rpo_control *c, rpo_error *err) {
  (void)c;
  MAKES(rpo_forest, rpo_forest_free, rpo_boost_forest(s->boost, 3, &made, err));
}

/* ---- The table: by stage, a letter each (GROWN, RELABELLED, BESIDE, BOOSTED, COMPONENTS) ---- */

typedef struct named_call {
  const char *name, *stages;
  call_fn call;
} named_call;

static const named_call all_calls[] = {
    {"rpo_features_new", "grbsc", call_features},
    {"rpo_features_like", "grbsc", call_like},
    {"rpo_forest_fit", "grbsc", call_fit},
    {"rpo_projection_apply", "grs", call_project},
    {"rpo_forest_predict", "grbsc", call_predict},
    {"rpo_forest_predict_topk", "grbsc", call_topk},
    {"rpo_forest_apply", "grbsc", call_apply},
    {"rpo_forest_paths", "grbsc", call_paths},
    {"rpo_forest_predict_oob", "gr", call_oob},
    {"rpo_forest_agreement", "g", call_agreement},
    {"rpo_leaf_rows_new", "gr", call_leaf_rows},
    {"rpo_forest_weights", "gr", call_weights},
    {"rpo_forest_importances_on", "gr", call_importances_on},
    {"rpo_forest_importances", "grbsc", call_importances},
    {"rpo_forest_relabel", "gr", call_relabel},
    {"rpo_forest_pick", "gr", call_pick},
    {"rpo_forest_save", "grbsc", call_save},
    {"rpo_forest_load", "grbsc", call_load},
    {"rpo_forest_parse", "grbsc", call_parse},
    {"rpo_forest_tree", "grbsc", call_tree},
    {"rpo_forest_add_trees", "sc", call_add_trees},
    {"rpo_boost_run", "sc", call_boost},
    {"rpo_boost_resume", "sc", call_resume},
    {"rpo_boost_scores", "sc", call_scores},
    {"rpo_boost_forest", "sc", call_model},
};

static inline int call_fits(const named_call *c, int kind) {
  return strchr(c->stages, "grbsc"[kind]) != NULL;
}

#endif
