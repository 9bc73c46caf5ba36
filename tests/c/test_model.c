/* Models as bytes: round trips, notes, picking, and damage of every kind. Neighbour: test_files.c has
 * what files add to that. */
#include "forge.h"
#include "forms.h"
#include "mem.h"
#include "model.h"
#include "problem.h"

static rpo_forest *parse(const void *block, int64_t bytes) {
  rpo_forest *forest = NULL;
  rpo_error err;
  CHECK_OK(rpo_forest_parse(block, bytes, &forest, &err), &err);
  return forest;
}

static void threads_pack_the_same(void) {
  for (int form = 0; form < FORMS; form++) {
    problem p = form_problem(form);
    problem_set(&p, RPO_OPT_N_TREES, 7);
    rpo_forest *const one = problem_forest(&p, 1), *const three = problem_forest(&p, 3);
    mini_context("form %d", form);
    CHECK(forests_equal(one, three));
    rpo_forest_free(one);
    rpo_forest_free(three);
    problem_free(&p);
  }
}

static void dump_and_parse(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    unsigned char *const block = forest_bytes(a);
    rpo_forest *const b = parse(block, rpo_forest_bytes(a));
    mini_context("form %d", form);
    CHECK(forests_equal(a, b));
    CHECK_EQUAL(rpo_forest_trees(b), 2);
    CHECK_EQUAL(rpo_forest_rows(b), 14);
    CHECK_EQUAL(rpo_forest_inputs(b), 3);
    CHECK_EQUAL(rpo_forest_outputs(b), rpo_forest_outputs(a));
    CHECK_EQUAL(rpo_forest_has_rows(b), rpo_forest_has_rows(a));
    CHECK_EQUAL(rpo_forest_is_boosted(b), form >= BOOSTED);
    CHECK_EQUAL(b->step != NULL, form == BOOSTED_COMPONENT);
    CHECK_EQUAL(b->value.type == RPO_TYPE_F16, form == BOOSTED_HALF || form == BOOSTED_SPARSE_HALF);
    if (form >= TABLE && form <= TABLE_SPARSE_REAL) CHECK_EQUAL(rpo_forest_has_rows(a), 0);
    if (form == RATIO_TABLE) CHECK_EQUAL(rpo_forest_has_rows(a), 0);
    CHECK_EQUAL(a->value_start != NULL, form == ROWS_SPARSE || form == ROWS_REAL ||
                                            form == TABLE_SPARSE || form == TABLE_SPARSE_REAL ||
                                            form == BOOSTED_SPARSE || form == BOOSTED_SPARSE_HALF);
    if (form == ROWS_SPARSE || form == ROWS_REAL) CHECK_EQUAL(rpo_forest_has_rows(a), 1);
    int64_t length = -1;
    CHECK(rpo_forest_note(a, &length) == NULL && length == 0);
    rpo_forest_free(a);
    rpo_forest_free(b);
    free(block);
  }
}

static void save_and_load(void) {
  static const char note[] = "a note \xff\x00 with any bytes";
  const char *const path = "test_model.rpo";
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    rpo_forest *b = NULL, *c = NULL, *e = NULL;
    rpo_error err;
    int64_t length = -1;
    mini_context("form %d", form);
    CHECK_OK(rpo_forest_save(a, path, NULL, 0, &err), &err);
    CHECK_OK(rpo_forest_load(path, &b, &err), &err);
    CHECK(forests_equal(a, b));
    CHECK_OK(rpo_forest_save(b, path, note, (int64_t)sizeof note, &err), &err);
    CHECK_OK(rpo_forest_load(path, &c, &err), &err);
    const void *const got = rpo_forest_note(c, &length);
    CHECK_EQUAL(length, sizeof note);
    CHECK(got != NULL && memcmp(got, note, sizeof note) == 0);
    CHECK_OK(rpo_forest_save(c, path, "x", 1, &err), &err); /* another note replaces it */
    CHECK_OK(rpo_forest_load(path, &e, &err), &err);
    CHECK(rpo_forest_note(e, &length) != NULL && length == 1);
    CHECK(rpo_forest_bytes(e) <= rpo_forest_bytes(a) + 128); /* the old one is gone */
    rpo_forest_free(e);
    e = NULL;
    CHECK_OK(rpo_forest_save(c, path, NULL, 0, &err), &err);
    CHECK_OK(rpo_forest_load(path, &e, &err), &err);
    CHECK(rpo_forest_note(e, &length) == NULL && length == 0);
    CHECK(forests_equal(a, e)); /* without a note the same bytes as before it */
    rpo_forest_free(a);
    rpo_forest_free(b);
    rpo_forest_free(c);
    rpo_forest_free(e);
  }
  (void)remove(path);
}

/* A file longer than one reading block of 64 kB. */
static void large_files(void) {
  dice d = {7};
  problem p =
      problem_new(table_random(&d, 2000, 5, 0, 0.0, 0.0), table_random(&d, 2000, 9, 0, 0.0, 0.0));
  rpo_forest *const a = problem_forest(&p, 1);
  rpo_forest *b = NULL;
  CHECK(rpo_forest_bytes(a) > 150000);
  CHECK_EQUAL(rpo_forest_save(a, "test_large.rpo", NULL, 0, NULL), RPO_OK);
  CHECK_EQUAL(rpo_forest_load("test_large.rpo", &b, NULL), RPO_OK);
  CHECK(forests_equal(a, b));
  (void)remove("test_large.rpo");
  rpo_forest_free(a);
  rpo_forest_free(b);
  problem_free(&p);
}

static void bad_arguments_are_refused(void) {
  rpo_forest *const a = form_forest(0);
  rpo_forest *b = NULL;
  rpo_error err;
  char byte = 0;
  CHECK_EQUAL(rpo_forest_load("no/such/file.rpo", &b, &err), RPO_EIO);
  CHECK(strstr(err.message, "no/such/file.rpo") != NULL);
  CHECK_EQUAL(rpo_forest_save(a, "no/such/file.rpo", NULL, 0, &err), RPO_EIO);
  CHECK_EQUAL(rpo_forest_save(a, NULL, NULL, 0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_save(NULL, "x", NULL, 0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_save(a, "x", NULL, 3, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_save(a, "x", &byte, -1, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_load(NULL, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_parse(NULL, 10, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_parse(&byte, 1, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_parse(&byte, 0, &b, &err), RPO_EFORMAT);
  CHECK_EQUAL(rpo_forest_parse(&byte, -1, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_dump(a, NULL, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_dump(NULL, &byte, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_bytes(NULL) + rpo_forest_trees(NULL) + rpo_forest_has_rows(NULL), 0);
  CHECK(b == NULL);
  rpo_forest_free(a);
}

/* ---- Damage ---- */

/* Sparse rows walk in ways of their own: those of numbers, and those of ones. */
static void use_sparse(const rpo_forest *f, int64_t inputs, double *out, int64_t *index) {
  static const int64_t start[5] = {0, 1, 1, 3, 4};
  static const double real[4] = {-1.0, 2.0, 1.0, 0.5}, ones[4] = {1.0, 1.0, 1.0, 1.0};
  int64_t const column[4] = {inputs - 1, 0, inputs - 1, 0};
  rpo_matrix X;
  if (inputs < 2) return;
  memset(&X, 0, sizeof X);
  X.rows = 4;
  X.cols = inputs;
  X.format = RPO_CSR;
  X.dtype = RPO_F64;
  X.index = RPO_I64;
  X.indptr = start;
  X.indices = column;
  for (int k = 0; k < 2; k++) {
    X.data = k == 0 ? real : ones;
    (void)rpo_forest_predict(f, &X, NULL, out, NULL);
    (void)rpo_forest_predict_topk(f, &X, 1, NULL, index, out, NULL);
  }
}

/* Everything that reads a model; its answers do not matter, only that each call returns. */
static void use(const rpo_forest *f) {
  enum { MOST = 1 << 16 };
  static double x[64], out[MOST], low[MOST];
  static int64_t index[MOST], columns[MOST], start[64];
  int64_t const trees = rpo_forest_trees(f), d = rpo_forest_outputs(f),
                inputs = rpo_forest_inputs(f);
  rpo_matrix X;
  /* a shape may be absurd and yet agree with the rest: the calls would ask for as much memory */
  if (inputs > 16 || d > 4096 || trees > 60 || rpo_forest_rows(f) > 1 << 16) return;
  for (int i = 0; i < 64; i++) x[i] = i % 7 == 6 ? NAN : (double)(i % 5 - 2);
  memset(&X, 0, sizeof X);
  X.rows = 4;
  X.cols = inputs;
  X.dtype = RPO_F64;
  X.data = x;
  X.row_stride = inputs;
  X.col_stride = 1;
  (void)rpo_forest_predict(f, &X, NULL, out, NULL);
  use_sparse(f, inputs, out, index);
  if (rpo_forest_is_boosted(f) && 4 * d < MOST) {
    static float scores[MOST];
    (void)rpo_forest_add_trees(f, &X, 0, trees, NULL, scores, NULL);
  }
  (void)rpo_forest_predict_topk(f, &X, d > 2 ? 2 : d, NULL, index, out, NULL);
  (void)rpo_forest_apply(f, &X, NULL, index, NULL);
  if (rpo_forest_paths(f, &X, NULL, start, index, NULL, NULL) == RPO_OK && index[4] < MOST) {
    (void)rpo_forest_paths(f, &X, NULL, start, index, columns, NULL);
  }
  if (rpo_forest_weights(f, NULL, &X, NULL, index, NULL, NULL, NULL) == RPO_OK && index[4] < MOST) {
    (void)rpo_forest_weights(f, NULL, &X, NULL, index, columns, out, NULL);
  }
  (void)rpo_forest_importances(f, out, NULL);
  for (int64_t t = 0; t < trees; t++) {
    int64_t const nodes = rpo_forest_tree_nodes(f, t);
    rpo_tree_arrays const a = {index, columns, NULL, out, low, NULL, NULL, NULL};
    CHECK(nodes > 0 && nodes < 1000);
    (void)rpo_forest_tree(f, t, &a, NULL);
    if (nodes * d < MOST) (void)rpo_forest_tree_values(f, t, out, NULL);
  }
  rpo_forest *again = NULL;
  int64_t const pick[2] = {0, 0};
  (void)rpo_forest_pick(&f, 1, pick, 1, &again, NULL);
  rpo_forest_free(again);
  again = NULL;
  (void)rpo_forest_drop_labels(f, NULL, &again, NULL);
  rpo_forest_free(again);
}

static void truncations_are_refused(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    int64_t const bytes = rpo_forest_bytes(a);
    unsigned char *const block = forest_bytes(a);
    for (int64_t length = 0; length < bytes; length++) {
      /* a block of exactly this length: the address sanitizer watches its end */
      unsigned char *const cut = mini_room(length, 1);
      rpo_forest *b = NULL;
      rpo_error err;
      memcpy(cut, block, (size_t)length);
      mini_context("form %d, %lld of %lld bytes", form, (long long)length, (long long)bytes);
      CHECK_EQUAL(rpo_forest_parse(cut, length, &b, &err), RPO_EFORMAT);
      CHECK_EQUAL(err.code, RPO_EFORMAT);
      CHECK(b == NULL);
      free(cut);
    }
    free(block);
    rpo_forest_free(a);
  }
}

static void flips_are_refused(void) {
  static const unsigned char masks[] = {0x01, 0x80, 0xff};
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    int64_t const bytes = rpo_forest_bytes(a);
    unsigned char *const block = forest_bytes(a);
    for (int64_t i = 0; i < bytes; i++) {
      for (size_t m = 0; m < sizeof masks; m++) {
        rpo_forest *b = NULL;
        block[i] ^= masks[m];
        mini_context("form %d, byte %lld ^ %d", form, (long long)i, masks[m]);
        CHECK_EQUAL(rpo_forest_parse(block, bytes, &b, NULL), RPO_EFORMAT);
        if (b != NULL) use(b);
        rpo_forest_free(b);
        block[i] ^= masks[m];
      }
    }
    free(block);
    rpo_forest_free(a);
  }
}

/* The model of a block that was not read as a file is, but mapped: nothing in it is trusted. The block
 * has exactly its length, so that the address sanitizer watches its end. */
static void use_unchecked(const unsigned char *block, int64_t bytes) {
  rpo_forest *m = NULL;
  unsigned char *const own = mini_room(bytes, 1);
  memcpy(own, block, (size_t)bytes);
  if (rpo_model_open_mapped((char *)own, bytes, &m, NULL) == RPO_OK) {
    use(m);
    m->block = NULL;
    m->mapped = 0;
    rpo_forest_free(m);
  }
  free(own);
}

/* The same with the checksums made right again: what a forger would do. A model let in must be safe to
 * use, also one that is mapped, and let in unseen. */
static void forged_flips_are_safe(void) {
  static const unsigned char values[] = {0x01, 0x04, 0x80, 0xff};
  int64_t let_in = 0;
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    int64_t const bytes = rpo_forest_bytes(a);
    unsigned char *const block = forest_bytes(a);
    for (int64_t i = 16; i < bytes; i++) {
      for (size_t m = 0; m < sizeof values; m++) {
        rpo_forest *b = NULL;
        block[i] ^= values[m];
        reseal(block, bytes);
        mini_context("form %d, byte %lld ^ %d", form, (long long)i, values[m]);
        rpo_status const status = rpo_forest_parse(block, bytes, &b, NULL);
        CHECK(status == RPO_OK || status == RPO_EFORMAT || status == RPO_ENOMEM);
        CHECK((status == RPO_OK) == (b != NULL));
        if (b != NULL) {
          let_in++;
          use(b);
        }
        rpo_forest_free(b);
        if (!rpo_is_big_endian()) use_unchecked(block, bytes);
        block[i] ^= values[m];
      }
    }
    free(block);
    rpo_forest_free(a);
  }
  mini_context("%s", "");
  CHECK(let_in > 0);
}

/* The same tree, but its leaves are not numbered from left to right: what walks rely on. */
static void leaves_out_of_order_are_refused(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form), *b = NULL;
    int64_t const bytes = rpo_forest_bytes(a);
    unsigned char *const block = forest_bytes(a);
    mini_context("form %d", form);
    for (int64_t i = 0; i < a->left.count; i++) {
      int64_t const left = rpo_array_whole(&a->left, i), right = rpo_array_whole(&a->right, i);
      if (left >= 0 || right >= 0) continue;
      CHECK_EQUAL(a->left.type, RPO_TYPE_I16);
      put_number(block + ((const char *)a->left.data - a->block) + 2 * i, 2, (uint64_t)right);
      put_number(block + ((const char *)a->right.data - a->block) + 2 * i, 2, (uint64_t)left);
      reseal(block, bytes);
      CHECK_EQUAL(rpo_forest_parse(block, bytes, &b, NULL), RPO_EFORMAT);
      rpo_forest_free(b);
      break;
    }
    free(block);
    rpo_forest_free(a);
  }
}

/* Bytes that are no model. */
static void noise_is_refused(void) {
  dice d = {8};
  for (int k = 0; k < 300; k++) {
    int64_t const bytes = dice_below(&d, 400);
    unsigned char *const block = mini_room(bytes, 1);
    rpo_forest *b = NULL;
    for (int64_t i = 0; i < bytes; i++) block[i] = (unsigned char)dice_next(&d);
    if (k % 2 == 0 && bytes >= 64) {
      memcpy(block, "RPOMODEL", 8);
      put_number(block + 16, 4, 1);
      put_number(block + 20, 4, 1);
      put_number(block + 24, 4, (uint64_t)dice_below(&d, 10));
      put_number(block + 32, 8, (uint64_t)bytes);
      if (k % 4 == 0) reseal(block, bytes);
    }
    CHECK_EQUAL(rpo_forest_parse(block, bytes, &b, NULL), RPO_EFORMAT);
    CHECK(b == NULL);
    free(block);
  }
}

static void other_versions_are_named(void) {
  rpo_forest *const a = form_forest(0);
  unsigned char *const block = forest_bytes(a);
  rpo_forest *b = NULL;
  rpo_error err;
  block[16] = 77;
  CHECK_EQUAL(rpo_forest_parse(block, rpo_forest_bytes(a), &b, &err), RPO_EFORMAT);
  CHECK(strstr(err.message, "77") != NULL);
  free(block);
  rpo_forest_free(a);
}

/* ---- Picking ---- */

/* Trees picked, in any order and more than once, predict as they did. */
static void picked_trees_predict_the_same(void) {
  for (int form = 0; form < FORMS; form++) {
    problem p = form_problem(form);
    rpo_forest *const a = problem_forest(&p, 1);
    problem_set(&p, RPO_OPT_SEED, 5);
    problem_set(&p, RPO_OPT_MAX_DEPTH, 2); /* perhaps another readout than the first */
    rpo_forest *const b = problem_forest(&p, 1);
    const rpo_forest *const both[2] = {a, b};
    int64_t const pick[8] = {1, 1, 0, 0, 1, 0, 0, 0};
    rpo_forest *c = NULL, *one[4] = {NULL, NULL, NULL, NULL};
    rpo_matrix const X = problem_x(&p);
    int64_t const d = rpo_forest_outputs(a);
    double *const out = mini_room(14 * d, 8), *const sum = mini_room(14 * d, 8);
    rpo_error err;
    mini_context("form %d", form);
    CHECK_OK(rpo_forest_pick(both, 2, pick, 4, &c, &err), &err);
    CHECK_EQUAL(rpo_forest_trees(c), 4);
    for (int t = 0; t < 4; t++) {
      flat_tree s = tree_read(c, t), r = tree_read(both[pick[2 * t]], pick[2 * t + 1]);
      if (CHECK_EQUAL(s.nodes, r.nodes)) {
        CHECK(memcmp(s.a.feature, r.a.feature, (size_t)s.nodes * 8) == 0);
        CHECK(memcmp(s.a.threshold, r.a.threshold, (size_t)s.nodes * 8) == 0);
        CHECK(memcmp(s.a.n_samples, r.a.n_samples, (size_t)s.nodes * 8) == 0);
        for (int64_t i = 0; i < s.nodes * d; i++) CHECK_NEAR(s.value[i], r.value[i], 1e-12);
      }
      tree_free(&s);
      tree_free(&r);
      CHECK_OK(rpo_forest_pick(both, 2, pick + 2 * t, 1, &one[t], &err), &err);
      CHECK_OK(rpo_forest_predict(one[t], &X, NULL, out, &err), &err);
      for (int64_t i = 0; i < 14 * d; i++) sum[i] += out[i] / 4.0;
      rpo_forest_free(one[t]);
    }
    CHECK_OK(rpo_forest_predict(c, &X, NULL, out, &err), &err);
    if (p.fallback == NULL) {
      for (int64_t i = 0; i < 14 * d; i++) CHECK_NEAR(out[i], sum[i], 1e-12);
    }
    free(out);
    free(sum);
    rpo_forest_free(a);
    rpo_forest_free(b);
    rpo_forest_free(c);
    problem_free(&p);
  }
}

/* Leaves of all rows go with trees grown on all rows, not with those of bootstrap samples. */
static void all_rows_go_with_all_rows(void) {
  problem p = form_problem(ROWS_SPARSE);
  rpo_matrix const X = problem_x(&p);
  int64_t const pick[4] = {0, 1, 1, 0};
  double *const out = mini_room(14 * p.y.cols, 8), *const sum = mini_room(14 * p.y.cols, 8);
  rpo_forest *grown[2], *all = NULL, *joined = NULL;
  rpo_error err;
  for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
    problem_set(&p, RPO_OPT_BOOTSTRAP, bootstrap);
    grown[bootstrap] = problem_forest(&p, 1);
  }
  all = problem_relabelled(&p, grown[1], 1);
  for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
    const rpo_forest *const both[2] = {grown[bootstrap], all};
    CHECK_EQUAL(rpo_forest_pick(both, 2, pick, 2, &joined, &err), bootstrap ? RPO_EINVAL : RPO_OK);
    if (bootstrap) {
      CHECK(strstr(err.message, "leaf_rows") != NULL);
      continue;
    }
    for (int t = 0; t < 2; t++) {
      rpo_forest *one = NULL;
      CHECK_OK(rpo_forest_pick(both, 2, pick + 2 * t, 1, &one, &err), &err);
      CHECK_OK(rpo_forest_predict(one, &X, NULL, out, &err), &err);
      for (int64_t i = 0; i < 14 * p.y.cols; i++) sum[i] += out[i] / 2.0;
      rpo_forest_free(one);
    }
    CHECK_OK(rpo_forest_predict(joined, &X, NULL, out, &err), &err);
    for (int64_t i = 0; i < 14 * p.y.cols; i++) CHECK_NEAR(out[i], sum[i], 1e-12);
    rpo_forest_free(joined);
    joined = NULL;
  }
  for (int bootstrap = 0; bootstrap < 2; bootstrap++) rpo_forest_free(grown[bootstrap]);
  rpo_forest_free(all);
  free(out);
  free(sum);
  problem_free(&p);
}

/* All trees in order give back the same bytes. */
static void picking_all_is_a_copy(void) {
  for (int form = 0; form < FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    rpo_forest *b = NULL;
    const rpo_forest *const from = a;
    int64_t const pick[4] = {0, 0, 0, 1};
    rpo_error err;
    mini_context("form %d", form);
    CHECK_OK(rpo_forest_pick(&from, 1, pick, 2, &b, &err), &err);
    CHECK(forests_equal(a, b));
    rpo_forest_free(a);
    rpo_forest_free(b);
  }
}

static void bad_picks_are_refused(void) {
  static const int64_t bad[][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 2}};
  rpo_forest *const a = form_forest(ROWS_SPARSE), *const other = form_forest(TABLE);
  rpo_forest *b = NULL;
  const rpo_forest *from[2] = {a, other};
  int64_t const good[2] = {0, 0};
  for (int k = 0; k < 4; k++) {
    CHECK_EQUAL(rpo_forest_pick(from, 1, bad[k], 1, &b, NULL), RPO_EINVAL);
  }
  CHECK_EQUAL(rpo_forest_pick(from, 2, good, 1, &b, NULL), RPO_EINVAL); /* other labels */
  from[1] = NULL;
  CHECK_EQUAL(rpo_forest_pick(from, 2, good, 1, &b, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_pick(NULL, 1, good, 1, &b, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_pick(from, 1, NULL, 1, &b, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_pick(from, 0, good, 1, &b, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_pick(from, 1, good, 0, &b, NULL), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_pick(from, 1, good, 1, NULL, NULL), RPO_EINVAL);
  CHECK(b == NULL);
  rpo_forest_free(a);
  rpo_forest_free(other);
}

int main(void) {
  RUN(threads_pack_the_same);
  RUN(dump_and_parse);
  RUN(save_and_load);
  RUN(large_files);
  RUN(bad_arguments_are_refused);
  RUN(truncations_are_refused);
  RUN(flips_are_refused);
  RUN(leaves_out_of_order_are_refused);
  RUN(noise_is_refused);
  RUN(other_versions_are_named);
  RUN(picked_trees_predict_the_same);
  RUN(all_rows_go_with_all_rows);
  RUN(picking_all_is_a_copy);
  RUN(bad_picks_are_refused);
  RUN(forged_flips_are_safe);
  return mini_done("model");
}
