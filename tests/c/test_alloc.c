/* Without memory: the n-th allocation fails, for n = 0, 1, 2, ... until the call succeeds. Each
 * failure must be RPO_ENOMEM, lose no block and leave the outputs as they were. One thread: the
 * count is exact. */
#include "kinds.h"
#include "starve.h"

/* ---- Problems, one for each way through the library ---- */

enum {
  DENSE,
  BINNED,
  MISSING,
  SPARSE,
  SPARSE_REAL,
  BINARY,
  SPREAD,
  GAUSSIAN,
  RADEMACHER,
  HADAMARD,
  SUBSAMPLE,
  SHARED,
  RATIO,
  WEIGHTED,
  BEST_FIRST,
  PRUNED,
  RANDOM_CUT,
  TABLE,
  TABLE_SPARSE,
  BALANCED,
  ONE_CLASS,
  CASES
};

static problem case_problem(int number) {
  dice d = {200 + (uint64_t)number};
  int64_t const n = 90;
  int const sparse = number == SPARSE || number == SPARSE_REAL || number == BINARY;
  int const labels =
      (number >= SPARSE && number <= SHARED) || number == BALANCED || number == ONE_CLASS;
  table x, y;
  if (number == BINARY) {
    x = table_binary(&d, n, 12, 0.1);
  } else {
    x = table_random(&d, n, 12, number == ONE_CLASS ? 6 : 0, sparse ? 0.9 : 0.0,
                     number == MISSING ? 0.05 : 0.0);
  }
  if (number == SPARSE_REAL) {
    y = table_random(&d, n, 24, 0, 0.92, 0.0);
  } else if (number == SPREAD) {
    y = table_binary(&d, n, 5, 0.3);
  } else if (number == ONE_CLASS) { /* rows laid class after class */
    y = random_y(&d, Y_ONE_CLASS, n);
  } else {
    y = labels || number == TABLE ? table_binary(&d, n, 24, 0.08)
                                  : table_random(&d, n, 3, 0, 0.0, 0.0);
  }
  problem p = problem_new(x, y);
  p.sparse_x = sparse;
  p.sparse_y = labels;
  problem_set(&p, RPO_OPT_N_TREES, 2);
  problem_set(&p, RPO_OPT_MAX_FEATURES, 4);
  problem_set(&p, RPO_OPT_BOOTSTRAP, number % 2);
  if (number == BINNED) p.max_bins = 7;
  if (number >= GAUSSIAN && number <= SHARED) {
    static const int32_t kinds[] = {RPO_PROJECT_GAUSSIAN, RPO_PROJECT_RADEMACHER,
                                    RPO_PROJECT_HADAMARD, RPO_PROJECT_SUBSAMPLE,
                                    RPO_PROJECT_RADEMACHER};
    p.projection.kind = kinds[number - GAUSSIAN];
    p.projection.components = 5;
    p.projection.sparsity = number == SHARED ? 1.0 : 6.0;
    p.projection.shared = number == SHARED;
    if (number == HADAMARD) p.sparse_y = 0; /* the fast transform */
  }
  if (number == RATIO) {
    problem_set(&p, RPO_OPT_LABEL_RATIO, 1);
    p.labels = table_binary(&d, n, 8, 0.6);
    p.fallback = mini_room(4, 8);
  }
  if (number == WEIGHTED) {
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    p.weight = mini_room(n, 8);
    for (int64_t i = 0; i < n; i++) p.weight[i] = dice_real(&d);
  }
  if (number == BEST_FIRST) problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 9);
  if (number == PRUNED) problem_set(&p, RPO_OPT_CCP_ALPHA, 0.01);
  if (number == RANDOM_CUT) problem_set(&p, RPO_OPT_RANDOM_CUT, 1);
  if (number == TABLE || number == TABLE_SPARSE) problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
  if (number == TABLE_SPARSE) p.labels = table_binary(&d, n, 190, 0.001);
  if (number == BALANCED) {
    problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
    problem_set(&p, RPO_OPT_BALANCE, RPO_BALANCE_LABELS);
  }
  return p;
}

/* ---- Making things ---- */

static char untouched; /* what an output points at before the call */

static rpo_status try_options(void *context, rpo_error *err) {
  rpo_options *out = (rpo_options *)(void *)&untouched;
  (void)context;
  rpo_status const status = rpo_options_new(&out, err);
  if (status != RPO_OK) CHECK((void *)out == &untouched);
  if (status == RPO_OK) rpo_options_free(out);
  return status;
}

static rpo_status try_features(void *context, rpo_error *err) {
  problem *const p = context;
  rpo_matrix const X = problem_x(p);
  rpo_features *out = (rpo_features *)(void *)&untouched;
  rpo_status const status = rpo_features_new(&X, p->max_bins, NULL, &out, err);
  if (status != RPO_OK) CHECK((void *)out == &untouched);
  if (status == RPO_OK) rpo_features_free(out);
  return status;
}

typedef struct likeness {
  problem *p;
  rpo_features *like;
} likeness;

static rpo_status try_like(void *context, rpo_error *err) {
  const likeness *const k = context;
  rpo_matrix const X = problem_x(k->p);
  rpo_features *out = (rpo_features *)(void *)&untouched;
  rpo_status const status = rpo_features_like(&X, k->like, NULL, &out, err);
  if (status != RPO_OK) CHECK((void *)out == &untouched);
  if (status == RPO_OK) rpo_features_free(out);
  return status;
}

static rpo_status try_fit(void *context, rpo_error *err) {
  problem *const p = context;
  rpo_forest *out = (rpo_forest *)(void *)&untouched;
  rpo_status const status = problem_fit(p, NULL, NULL, &out, err);
  if (status != RPO_OK) CHECK((void *)out == &untouched);
  if (status == RPO_OK) rpo_forest_free(out);
  return status;
}

static void making(void) {
  mini_context("options");
  until_it_succeeds(try_options, NULL);
  for (int number = 0; number < CASES; number++) {
    problem p = case_problem(number);
    rpo_matrix const X = problem_x(&p);
    likeness k = {&p, NULL};
    mini_context("features of case %d", number);
    until_it_succeeds(try_features, &p);
    CHECK_EQUAL(rpo_features_new(&X, p.max_bins, NULL, &k.like, NULL), RPO_OK);
    mini_context("features like case %d", number);
    until_it_succeeds(try_like, &k);
    rpo_features_free(k.like);
    mini_context("fit of case %d", number);
    until_it_succeeds(try_fit, &p);
    problem_free(&p);
  }
}

/* ---- Projections ---- */

static rpo_status try_draw(void *context, rpo_error *err) {
  const problem *const p = context;
  double phi[5 * 24];
  for (int i = 0; i < 5 * 24; i++) phi[i] = -7.0;
  rpo_status const status = rpo_projection_draw(&p->projection, 24, phi, err);
  for (int i = 0; i < 5 * 24 && status != RPO_OK; i++) CHECK(phi[i] == -7.0);
  return status;
}

static rpo_status try_project(void *context, rpo_error *err) {
  problem *const p = context;
  rpo_matrix const Y = problem_y(p);
  double z[90 * 5];
  for (int i = 0; i < 90 * 5; i++) z[i] = -7.0;
  rpo_status const status = rpo_projection_apply(&p->projection, &Y, NULL, z, err);
  for (int i = 0; i < 90 * 5 && status != RPO_OK; i++) CHECK(z[i] == -7.0);
  return status;
}

static void projecting(void) {
  for (int number = GAUSSIAN; number <= SHARED; number++) {
    problem p = case_problem(number);
    mini_context("drawing, case %d", number);
    until_it_succeeds(try_draw, &p);
    mini_context("projecting, case %d", number);
    until_it_succeeds(try_project, &p);
    problem_free(&p);
  }
}

/* ---- Reading a forest ---- */

typedef enum call {
  PREDICT,
  TOPK,
  OOB,
  APPLY,
  PATHS,
  WEIGHTS,
  LEAF_ROWS,
  AGREEMENT,
  IMPORTANCES,
  IMPORTANCES_ON,
  TREE,
  VALUES,
  PICK,
  RELABEL,
  SAVE,
  LOAD,
  PARSE,
  CALLS
} call;

enum { ROOM = 90 * 200 };

typedef struct reader {
  problem *p;
  const rpo_forest *forest;
  const rpo_features *features;
  call which;
  unsigned char *block; /* the model's bytes */
  double *real;
  int64_t *whole, *start, *rows;
} reader;

static rpo_status read_once(reader *r, rpo_forest **made, rpo_error *err) {
  rpo_matrix const X = problem_x(r->p);
  rpo_matrix const Y = r->p->labels.v == NULL ? problem_y(r->p) : table_dense(&r->p->labels);
  const rpo_forest *const f = r->forest;
  int64_t const pick[4] = {0, 1, 0, 0};
  rpo_tree_arrays const arrays = {r->whole, r->start, NULL, r->real, NULL, NULL, NULL, NULL};
  switch (r->which) {
    case PREDICT: return rpo_forest_predict(f, &X, NULL, r->real, err);
    case TOPK: return rpo_forest_predict_topk(f, &X, 2, NULL, r->whole, r->real, err);
    case OOB:
      return rpo_forest_predict_oob(f, &X, NULL, r->p->weight, NULL, r->real, r->whole, err);
    case APPLY: return rpo_forest_apply(f, &X, NULL, r->whole, err);
    case PATHS: return rpo_forest_paths(f, &X, NULL, r->start, r->whole, NULL, err);
    case WEIGHTS: return rpo_forest_weights(f, NULL, &X, NULL, r->whole, NULL, NULL, err);
    case LEAF_ROWS: {
      rpo_leaf_rows *rows = (rpo_leaf_rows *)(void *)&untouched;
      rpo_status const status = rpo_leaf_rows_new(f, &X, r->p->weight, NULL, &rows, err);
      if (status == RPO_OK) rpo_leaf_rows_free(rows);
      if (status != RPO_OK) CHECK((void *)rows == &untouched);
      return status;
    }
    case AGREEMENT:
      for (int64_t i = 0; i < X.rows; i++) r->rows[i] = i;
      return rpo_forest_agreement(f, &X, &Y, r->rows, r->p->weight, NULL, r->real, err);
    case IMPORTANCES: return rpo_forest_importances(f, r->real, err);
    case IMPORTANCES_ON:
      return rpo_forest_importances_on(f, &X, &Y, r->p->weight, NULL, r->real, err);
    case TREE: return rpo_forest_tree(f, 0, &arrays, err);
    case VALUES: return rpo_forest_tree_values(f, 0, r->real, err);
    case PICK: return rpo_forest_pick(&f, 1, pick, 2, made, err);
    case RELABEL: return rpo_forest_relabel(f, r->features, &Y, r->p->weight, NULL, made, err);
    case SAVE: return rpo_forest_save(f, "test_alloc_save.rpo", "note", 4, err);
    case LOAD: return rpo_forest_load("test_alloc.rpo", made, err);
    default: return rpo_forest_parse(r->block, rpo_forest_bytes(f), made, err);
  }
}

static rpo_status try_read(void *context, rpo_error *err) {
  reader *const r = context;
  rpo_forest *made = (rpo_forest *)(void *)&untouched;
  for (int i = 0; i < ROOM; i++) {
    r->real[i] = -7.0;
    r->whole[i] = r->start[i] = -7;
  }
  rpo_status const status = read_once(r, &made, err);
  if (status == RPO_OK) {
    if ((void *)made != &untouched) rpo_forest_free(made);
    return status;
  }
  int same = (void *)made == &untouched;
  for (int i = 0; i < ROOM; i++)
    same &= r->real[i] == -7.0 && r->whole[i] == -7 && r->start[i] == -7;
  CHECK(same);
  return status;
}

static void reading(void) {
  for (int number = 0; number < CASES; number++) {
    problem p = case_problem(number);
    rpo_features *features = NULL;
    rpo_forest *f = NULL;
    rpo_error err;
    CHECK_OK(problem_fit(&p, NULL, &features, &f, &err), &err);
    reader r = {&p,
                f,
                features,
                PREDICT,
                forest_bytes(f),
                mini_room(ROOM, 8),
                mini_room(ROOM, 8),
                mini_room(ROOM, 8),
                mini_room(ROOM, 8)};
    CHECK_EQUAL(rpo_forest_save(f, "test_alloc.rpo", NULL, 0, NULL), RPO_OK);
    for (int which = 0; which < CALLS; which++) {
      r.which = (call)which;
      if (r.which == WEIGHTS && !rpo_forest_has_rows(f)) continue;
      if (r.which == OOB && problem_get(&p, RPO_OPT_BOOTSTRAP, 0) < 1.0) continue;
      int const redraws = r.which == LEAF_ROWS || r.which == IMPORTANCES_ON;
      if (redraws && number == BALANCED) continue; /* refused: Y is not at hand */
      if (r.which == AGREEMENT && (p.fallback != NULL || number == TABLE_SPARSE)) continue;
      mini_context("case %d, call %d", number, which);
      until_it_succeeds(try_read, &r);
    }
    free(r.block);
    free(r.real);
    free(r.whole);
    free(r.start);
    free(r.rows);
    rpo_features_free(features);
    rpo_forest_free(f);
    problem_free(&p);
  }
  (void)remove("test_alloc.rpo");
  (void)remove("test_alloc_save.rpo");
}

/* ---- Single targets ---- */

static rpo_status try_beside(void *context, rpo_error *err) {
  const rpo_forest *const forests[2] = {context, context};
  rpo_forest *out = (rpo_forest *)(void *)&untouched;
  rpo_status const status = rpo_forest_beside(forests, 2, &out, err);
  if (status != RPO_OK) CHECK((void *)out == &untouched);
  if (status != RPO_OK) return status;
  CHECK_EQUAL(rpo_forest_trees(out), 4);
  CHECK_EQUAL(rpo_forest_outputs(out), 2);
  rpo_forest_free(out);
  return status;
}

static void beside(void) {
  for (int shallow = 0; shallow < 2; shallow++) { /* with training rows, and with a table */
    dice d = {17};
    table const x = table_random(&d, 60, 4, 0, 0.0, 0.0);
    problem p = problem_new(x, table_random(&d, 60, 1, 0, 0.0, 0.0));
    rpo_error err;
    problem_set(&p, RPO_OPT_N_TREES, 2);
    if (shallow) problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    rpo_forest *const f = problem_forest(&p, 1);
    rpo_forest *two = NULL;
    mini_context("side by side, shallow %d", shallow);
    until_it_succeeds(try_beside, f);
    const rpo_forest *both[2] = {f, NULL};
    CHECK_EQUAL(rpo_forest_beside(both, 2, &two, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_forest_beside(both, 0, &two, &err), RPO_EINVAL);
    both[1] = f;
    CHECK_OK(rpo_forest_beside(both, 2, &two, &err), &err);
    both[1] = two;
    rpo_forest *more = NULL;
    CHECK_EQUAL(rpo_forest_beside(both, 2, &more, &err), RPO_EINVAL);
    CHECK(strstr(err.message, "forest 1 must have one output") != NULL);
    rpo_forest_free(two);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

/* ---- Metrics ---- */

typedef struct scored {
  rpo_matrix scores, Y;
  const double *thresholds;
  int which;
} scored;

static rpo_status try_metric(void *context, rpo_error *err) {
  const scored *const c = context;
  double real[200];
  int64_t whole[200], ties[40];
  for (int i = 0; i < 200; i++) real[i] = (double)(whole[i] = -7);
  rpo_status status;
  switch (c->which % 3) {
    case 0: status = rpo_scores_precision(&c->scores, &c->Y, NULL, real, err); break;
    case 1: status = rpo_scores_reaching(&c->scores, c->thresholds, 150, NULL, whole, err); break;
    default: status = rpo_scores_topk(&c->scores, 5, NULL, whole, real, ties, err);
  }
  for (int i = 0; i < 200 && status != RPO_OK; i++) CHECK(real[i] == -7.0 && whole[i] == -7);
  return status;
}

static void scoring(void) {
  dice d = {300};
  table s = table_random(&d, 40, 150, 0, 0.0, 0.0), y = table_binary(&d, 40, 150, 0.5);
  double thresholds[150];
  for (int i = 0; i < 150; i++) thresholds[i] = 0.01 * i - 1.0;
  scored c = {table_dense(&s), table_compressed(&y, RPO_CSR), thresholds, 0};
  for (c.which = 0; c.which < 6; c.which++) {
    mini_context("metric %d", c.which);
    if (c.which == 3) c.scores = table_single(&s);
    until_it_succeeds(try_metric, &c);
  }
  table_free(&s);
  table_free(&y);
}

/* ---- Products ---- */

typedef struct factors {
  rpo_matrix A, B;
  int which;
} factors;

static rpo_status try_product(void *context, rpo_error *err) {
  const factors *const f = context;
  double out[60 * 20];
  for (int i = 0; i < 60 * 20; i++) out[i] = -7.0;
  rpo_status status;
  switch (f->which) {
    case 0: status = rpo_sparse_product(&f->A, NULL, &f->B, NULL, out, err); break;
    case 1: status = rpo_sparse_transposed_product(&f->A, NULL, &f->B, NULL, out, err); break;
    default: status = rpo_sparse_gram_product(&f->A, NULL, &f->B, NULL, out, err);
  }
  for (int i = 0; i < 60 * 20 && status != RPO_OK; i++) CHECK(out[i] == -7.0);
  return status;
}

static void multiplying(void) {
  dice d = {400};
  table a = table_random(&d, 60, 10, 0, 0.2, 0.0), b = table_random(&d, 60, 20, 0, 0.0, 0.0);
  factors f = {table_compressed(&a, RPO_CSR), table_dense(&b), 0};
  for (f.which = 0; f.which < 3; f.which++) {
    mini_context("product %d", f.which);
    f.B.rows = f.which == 1 ? 60 : 10;
    f.B.cols = 19; /* not on cache lines */
    until_it_succeeds(try_product, &f);
  }
  table_free(&a);
  table_free(&b);
}

/* Two threads, one of which may run out of memory: which allocation fails is chance, but the
 * failure is clean. */
static void fitting_in_parallel(void) {
  problem p = case_problem(GAUSSIAN);
  rpo_control const control = threads_of(2);
  problem_set(&p, RPO_OPT_N_TREES, 8);
  for (int64_t n = 0; n < 400; n += 7) {
    rpo_forest *out = NULL;
    int64_t const live = rpo_mem_live;
    rpo_mem_fail_after = n;
    rpo_status const status = problem_fit(&p, &control, NULL, &out, NULL);
    rpo_mem_fail_after = -1;
    mini_context("allocation %lld", (long long)n);
    CHECK(status == RPO_ENOMEM || status == RPO_OK);
    CHECK((status == RPO_OK) == (out != NULL));
    rpo_forest_free(out);
    CHECK_EQUAL(rpo_mem_live, live);
  }
  problem_free(&p);
}

int main(void) {
  RUN(making);
  RUN(projecting);
  RUN(reading);
  RUN(beside);
  RUN(scoring);
  RUN(multiplying);
  mini_context("%s", "");
  CHECK_EQUAL(rpo_mem_live, 0);
  RUN(fitting_in_parallel);
  return mini_done("alloc");
}
