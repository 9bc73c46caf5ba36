/* Models as files: mapped, looked into; named arrays; what a hostile file can ask for; models without
 * their labels. Neighbour: test_saving.c. */
#include "file.h"
#include "forge.h"
#include "forms.h"
#include "mem.h"
#include "model.h"
#include "starve.h"

static const char *const PATH = "test_files.rpo";

static void write_file(const char *path, const void *data, int64_t bytes) {
  FILE *const file = fopen(path, "wb");
  CHECK(file != NULL);
  if (file == NULL) return;
  CHECK(fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes);
  CHECK(fclose(file) == 0);
}

/* ---- Reading the same ---- */

typedef struct answers {
  double out[2000], score[100], weight[2000];
  int64_t index[100], leaf[100], start[15], column[2000];
  double importance[8];
} answers;

static void ask(const rpo_forest *m, const rpo_matrix *X, answers *a) {
  rpo_error err;
  memset(a, 0, sizeof *a);
  CHECK_OK(rpo_forest_predict(m, X, NULL, a->out, &err), &err);
  CHECK_OK(rpo_forest_predict_topk(m, X, 2, NULL, a->index, a->score, &err), &err);
  CHECK_OK(rpo_forest_apply(m, X, NULL, a->leaf, &err), &err);
  CHECK_OK(rpo_forest_importances(m, a->importance, &err), &err);
  if (!rpo_forest_has_rows(m)) return;
  CHECK_OK(rpo_forest_weights(m, NULL, X, NULL, a->start, NULL, NULL, &err), &err);
  CHECK_OK(rpo_forest_weights(m, NULL, X, NULL, a->start, a->column, a->weight, &err), &err);
}

/* Dense and sparse rows, numbers and ones. */
static void mapped_files_read_the_same(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form), *b = NULL;
    static answers from_a, from_b;
    rpo_error err;
    CHECK_OK(rpo_forest_save(a, PATH, "note", 4, &err), &err);
    CHECK_OK(rpo_forest_open_mapped(PATH, &b, &err), &err);
    CHECK_EQUAL(rpo_forest_is_mapped(a), 0);
    CHECK_EQUAL(rpo_forest_is_mapped(b), !rpo_is_big_endian());
    for (int kind = 0; kind < 3; kind++) {
      dice d = {5};
      problem p = problem_new(
          kind == 2 ? table_binary(&d, 14, 3, 0.4) : table_random(&d, 14, 3, 5, 0.4, 0.1),
          table_random(&d, 14, 1, 0, 0.0, 0.0));
      p.sparse_x = kind > 0;
      rpo_matrix const X = problem_x(&p);
      mini_context("form %d, rows of kind %d", form, kind);
      ask(a, &X, &from_a);
      ask(b, &X, &from_b);
      CHECK(memcmp(&from_a, &from_b, sizeof from_a) == 0);
      problem_free(&p);
    }
    rpo_forest_free(a);
    rpo_forest_free(b);
  }
  (void)remove(PATH);
}

/* ---- Hostile files ---- */

/* What a file promises is not asked for before it is there. */
static void memory_is_bounded_by_the_file(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    int64_t const bytes = rpo_forest_bytes(a);
    unsigned char *const block = forest_bytes(a);
    static const uint64_t promises[] = {
        0, 63, 1 << 20, (uint64_t)1 << 40, (uint64_t)1 << 61, UINT64_MAX};
    for (size_t k = 0; k < sizeof promises / sizeof promises[0]; k++) {
      for (int64_t at = 16; at < 64 + 32 * 24; at += 8) { /* header and table */
        uint64_t before;
        memcpy(&before, block + at, 8);
        put_number(block + at, 8, promises[k]);
        reseal(block, bytes);
        write_file(PATH, block, bytes);
        for (int mapped = 0; mapped < 2; mapped++) {
          rpo_forest *b = NULL;
          rpo_error err;
          mini_context("form %d, %llu at %lld", form, (unsigned long long)promises[k],
                       (long long)at);
          rpo_mem_asked = 0;
          rpo_status const status =
              mapped ? rpo_forest_open_mapped(PATH, &b, &err) : rpo_forest_load(PATH, &b, &err);
          CHECK(status == RPO_OK || status == RPO_EFORMAT);
          CHECK(rpo_mem_asked < 8 * bytes + 200000);
          rpo_forest_free(b);
        }
        memcpy(block + at, &before, 8);
      }
    }
    free(block);
    rpo_forest_free(a);
  }
  (void)remove(PATH);
}

/* Every error of a file names what is wrong. */
static void damage_is_named(void) {
  rpo_forest *const a = form_forest(ROWS_SPARSE), *b = NULL;
  int64_t const bytes = rpo_forest_bytes(a);
  unsigned char *const block = forest_bytes(a);
  rpo_error err;
  block[(const char *)a->threshold.data - a->block] ^= 4;
  write_file(PATH, block, bytes);
  CHECK_EQUAL(rpo_forest_load(PATH, &b, &err), RPO_EFORMAT);
  CHECK(strstr(err.message, "thresholds") != NULL);
  if (!rpo_is_big_endian()) {
    CHECK_EQUAL(rpo_forest_open_mapped(PATH, &b, &err), RPO_OK); /* not looked at */
    rpo_forest_free(b);
    b = NULL;
  }
  block[(const char *)a->threshold.data - a->block] ^= 4;
  write_file(PATH, block, bytes - 1);
  CHECK_EQUAL(rpo_forest_load(PATH, &b, &err), RPO_EFORMAT);
  CHECK(strstr(err.message, "its header says") != NULL);
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, &b, &err), RPO_EFORMAT);
  unsigned char *const longer = mini_room(bytes + 1, 1);
  memcpy(longer, block, (size_t)bytes);
  write_file(PATH, longer, bytes + 1);
  CHECK_EQUAL(rpo_forest_load(PATH, &b, &err), RPO_EFORMAT);
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, &b, &err), RPO_EFORMAT);
  write_file(PATH, block, 20);
  CHECK_EQUAL(rpo_forest_load(PATH, &b, &err), RPO_EFORMAT);
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, &b, &err), RPO_EFORMAT);
  write_file(PATH, block, 0);
  CHECK_EQUAL(rpo_forest_load(PATH, &b, &err), RPO_EFORMAT);
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, &b, &err), RPO_EFORMAT);
  CHECK_EQUAL(rpo_forest_load("no/such.rpo", &b, &err), RPO_EIO);
  CHECK_EQUAL(rpo_forest_open_mapped("no/such.rpo", &b, &err), RPO_EIO);
  CHECK_EQUAL(rpo_forest_open_mapped(".", &b, &err), RPO_EIO);
  CHECK_EQUAL(rpo_forest_open_mapped(NULL, &b, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, NULL, &err), RPO_EINVAL);
  CHECK(b == NULL);
  free(longer);
  free(block);
  rpo_forest_free(a);
  (void)remove(PATH);
}

/* ---- Looking into files ---- */

static void inspection_tells_what_is_there(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form);
    rpo_section_info section[40];
    rpo_model_info info;
    rpo_error err;
    mini_context("form %d", form);
    CHECK_OK(rpo_forest_save(a, PATH, "note", 4, &err), &err);
    CHECK_OK(rpo_model_inspect(PATH, &info, section, 40, &err), &err);
    CHECK_EQUAL(info.kind, RPO_MODEL_FOREST);
    CHECK_EQUAL(info.version, 1);
    CHECK_EQUAL(info.trees, 2);
    CHECK_EQUAL(info.inputs, 3);
    CHECK_EQUAL(info.outputs, rpo_forest_outputs(a));
    CHECK_EQUAL(info.rows, 14);
    CHECK_EQUAL(info.damaged, 0);
    CHECK(info.sections > 10 && info.sections < 40);
    CHECK(strcmp(section[0].name, "shape") == 0);
    CHECK(strcmp(section[info.sections - 1].name, "note") == 0);
    CHECK_EQUAL(section[info.sections - 1].count, 4);
    unsigned char *const block = forest_bytes(a);
    block[(const char *)a->leaf_weight.data - a->block] ^= 1;
    write_file(PATH, block, rpo_forest_bytes(a));
    CHECK_OK(rpo_model_inspect(PATH, &info, section, 40, &err), &err);
    CHECK_EQUAL(info.damaged, 1);
    for (int i = 0; i < info.sections; i++) {
      CHECK_EQUAL(section[i].good, section[i].id != RPO_SEC_LEAF_WEIGHT);
    }
    CHECK_OK(rpo_model_inspect(PATH, &info, NULL, 0, &err), &err);
    block[30] ^= 1;
    write_file(PATH, block, rpo_forest_bytes(a));
    CHECK_EQUAL(rpo_model_inspect(PATH, &info, NULL, 0, &err), RPO_EFORMAT);
    CHECK_EQUAL(rpo_model_inspect(PATH, NULL, NULL, 0, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_model_inspect(PATH, &info, NULL, 1, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_model_inspect("no/such.rpo", &info, NULL, 0, &err), RPO_EIO);
    free(block);
    rpo_forest_free(a);
  }
  (void)remove(PATH);
}

/* ---- Named arrays ---- */

static const double REALS[6] = {1.5, -2.0, 0.0, 3.25, 1e300, -0.0};
static const int32_t WHOLES[3] = {7, -8, 9};
static const uint8_t BYTES[5] = {0, 1, 2, 254, 255};
static const rpo_named_array ARRAYS[4] = {
    {"reals", RPO_TYPE_F64, 2, {2, 3, 1, 1}, REALS},
    {"a.b/whole", RPO_TYPE_I32, 1, {3, 1, 1, 1}, WHOLES},
    {"scalar", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES},
    {"none", RPO_TYPE_F32, 2, {0, 4, 1, 1}, NULL},
};

static void check_arrays(const rpo_arrays *a) {
  int64_t length = -1;
  CHECK_EQUAL(rpo_arrays_count(a), 4);
  for (int i = 0; i < 4; i++) {
    rpo_named_array got;
    rpo_error err;
    CHECK_OK(rpo_arrays_get(a, i, &got, &err), &err);
    CHECK(strcmp(got.name, ARRAYS[i].name) == 0);
    CHECK_EQUAL(got.type, ARRAYS[i].type);
    CHECK_EQUAL(got.dims, ARRAYS[i].dims);
    CHECK(memcmp(got.shape, ARRAYS[i].shape, sizeof got.shape) == 0);
    int64_t const bytes = got.shape[0] * got.shape[1] * rpo_type_size(got.type);
    CHECK(bytes == 0 || memcmp(got.data, ARRAYS[i].data, (size_t)bytes) == 0);
  }
  const void *const note = rpo_arrays_note(a, &length);
  CHECK(length == 5 && memcmp(note, BYTES, 5) == 0);
}

static unsigned char *read_file(const char *path, int64_t *bytes) {
  unsigned char *const block = mini_room(1 << 16, 1);
  FILE *const file = fopen(path, "rb");
  *bytes = file == NULL ? 0 : (int64_t)fread(block, 1, 1 << 16, file);
  if (file != NULL) (void)fclose(file);
  return block;
}

static void arrays_come_back(void) {
  rpo_arrays *a = NULL;
  rpo_named_array none;
  rpo_forest *forest = NULL;
  rpo_model_info info;
  rpo_error err;
  int64_t bytes;
  CHECK_OK(rpo_arrays_save(ARRAYS, 4, PATH, BYTES, 5, &err), &err);
  for (int mapped = 0; mapped < 2; mapped++) {
    CHECK_OK(rpo_arrays_load(PATH, mapped, &a, &err), &err);
    check_arrays(a);
    CHECK_EQUAL(rpo_arrays_get(a, 4, &none, &err), RPO_EINVAL);
    CHECK_EQUAL(rpo_arrays_get(a, -1, &none, &err), RPO_EINVAL);
    rpo_arrays_free(a);
  }
  unsigned char *const block = read_file(PATH, &bytes);
  CHECK_OK(rpo_arrays_parse(block, bytes, &a, &err), &err);
  check_arrays(a);
  rpo_arrays_free(a);
  CHECK_EQUAL(rpo_forest_load(PATH, &forest, &err), RPO_EFORMAT); /* another kind */
  CHECK_EQUAL(rpo_forest_open_mapped(PATH, &forest, &err), RPO_EFORMAT);
  CHECK_OK(rpo_model_inspect(PATH, &info, NULL, 0, &err), &err);
  CHECK_EQUAL(info.kind, RPO_MODEL_ARRAYS);
  CHECK_EQUAL(info.sections, 7);
  CHECK_OK(rpo_arrays_save(NULL, 0, PATH, NULL, 0, &err), &err); /* nothing at all */
  CHECK_OK(rpo_arrays_load(PATH, 0, &a, &err), &err);
  CHECK_EQUAL(rpo_arrays_count(a), 0);
  CHECK(rpo_arrays_note(a, &bytes) == NULL && bytes == 0);
  rpo_arrays_free(a);
  rpo_arrays_free(NULL);
  free(block);
  (void)remove(PATH);
}

static void bad_arrays_are_refused(void) {
  static const rpo_named_array bad[][2] = {
      {{NULL, RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", 99, 0, {1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", RPO_TYPE_U8, 5, {1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", RPO_TYPE_U8, 1, {-1, 1, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", RPO_TYPE_U8, 1, {1, 2, 1, 1}, BYTES}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", RPO_TYPE_U8, 1, {1, 1, 1, 1}, NULL}, {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
      {{"y", RPO_TYPE_U8, 2, {INT64_MAX, 3, 1, 1}, BYTES},
       {"x", RPO_TYPE_U8, 0, {1, 1, 1, 1}, BYTES}},
  };
  rpo_arrays *a = NULL;
  rpo_error err;
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    mini_context("case %d", (int)k);
    CHECK_EQUAL(rpo_arrays_save(bad[k], 2, PATH, NULL, 0, &err), RPO_EINVAL);
  }
  CHECK_EQUAL(rpo_arrays_save(ARRAYS, -1, PATH, NULL, 0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_save(ARRAYS, 1, NULL, NULL, 0, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_save(ARRAYS, 1, PATH, NULL, 3, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_save(ARRAYS, 1, "no/such.rpo", NULL, 0, &err), RPO_EIO);
  CHECK_EQUAL(rpo_arrays_load("no/such.rpo", 0, &a, &err), RPO_EIO);
  CHECK_EQUAL(rpo_arrays_load(NULL, 0, &a, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_parse(NULL, 3, &a, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_parse(BYTES, -3, &a, &err), RPO_EINVAL);
  CHECK_EQUAL(rpo_arrays_parse(BYTES, 5, NULL, &err), RPO_EINVAL);
  CHECK(a == NULL);
}

/* Damage, and forgeries: either refused or as safe as the real ones. */
static void damaged_arrays_are_refused(void) {
  static const unsigned char masks[] = {0x01, 0x04, 0x80, 0xff};
  int64_t bytes;
  rpo_error err;
  CHECK_OK(rpo_arrays_save(ARRAYS, 4, PATH, BYTES, 5, &err), &err);
  unsigned char *const block = read_file(PATH, &bytes);
  for (int64_t i = 0; i < bytes; i++) {
    rpo_arrays *a = NULL;
    unsigned char *const cut = mini_room(i, 1);
    memcpy(cut, block, (size_t)i);
    mini_context("cut or flipped at %lld", (long long)i);
    CHECK_EQUAL(rpo_arrays_parse(cut, i, &a, NULL), RPO_EFORMAT);
    free(cut);
    for (size_t k = 0; k < sizeof masks; k++) {
      block[i] ^= masks[k];
      CHECK_EQUAL(rpo_arrays_parse(block, bytes, &a, NULL), RPO_EFORMAT);
      CHECK(a == NULL);
      unsigned char *const forged = mini_room(bytes, 1);
      memcpy(forged, block, (size_t)bytes);
      reseal(forged, bytes);
      rpo_mem_asked = 0;
      if (rpo_arrays_parse(forged, bytes, &a, NULL) == RPO_OK) {
        double sum = 0.0;
        for (int64_t n = 0; n < rpo_arrays_count(a); n++) {
          rpo_named_array got;
          CHECK_EQUAL(rpo_arrays_get(a, n, &got, NULL), RPO_OK);
          int64_t const count = got.shape[0] * got.shape[1] * got.shape[2] * got.shape[3];
          rpo_array const numbers = {got.data, count, got.type};
          for (int64_t e = 0; e < count; e++) {
            double const v = rpo_array_number(&numbers, e);
            sum += v == v ? (double)strlen(got.name) : 0.0;
          }
        }
        CHECK(sum >= 0.0);
      }
      CHECK(rpo_mem_asked < 8 * bytes + 4096);
      rpo_arrays_free(a);
      a = NULL;
      free(forged);
      block[i] ^= masks[k];
    }
  }
  free(block);
  (void)remove(PATH);
}

/* ---- Without labels ---- */

static void dropped_labels_leave_the_predictions(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    rpo_forest *const a = form_forest(form), *b = NULL, *c = NULL;
    static answers from_a, from_b;
    int64_t start[15];
    rpo_error err;
    dice d = {5};
    problem p =
        problem_new(table_random(&d, 14, 3, 5, 0.0, 0.1), table_random(&d, 14, 1, 0, 0.0, 0.0));
    rpo_matrix const X = problem_x(&p);
    mini_context("form %d", form);
    CHECK_OK(rpo_forest_drop_labels(a, NULL, &b, &err), &err);
    CHECK_EQUAL(rpo_forest_has_rows(b), 0);
    CHECK_EQUAL(rpo_forest_is_boosted(b), form >= BOOSTED);
    CHECK_OK(rpo_forest_predict(a, &X, NULL, from_a.out, &err), &err);
    CHECK_OK(rpo_forest_predict(b, &X, NULL, from_b.out, &err), &err);
    for (int64_t i = 0; i < 14 * rpo_forest_outputs(a); i++) {
      if (a->shares || !rpo_forest_has_rows(a)) {
        CHECK(from_a.out[i] == from_b.out[i]);
      } else {
        CHECK_NEAR(from_a.out[i], from_b.out[i], 1e-14);
      }
    }
    CHECK_EQUAL(rpo_forest_weights(b, NULL, &X, NULL, start, NULL, NULL, &err), RPO_EINVAL);
    CHECK(strstr(err.message, form >= BOOSTED ? "boosted" : "leaf_rows") != NULL);
    if (!rpo_forest_has_rows(a)) CHECK(forests_equal(a, b));
    CHECK_OK(rpo_forest_drop_labels(b, NULL, &c, &err), &err);
    CHECK(forests_equal(b, c));
    rpo_forest_free(a);
    rpo_forest_free(b);
    rpo_forest_free(c);
    problem_free(&p);
  }
  CHECK_EQUAL(rpo_forest_drop_labels(NULL, NULL, NULL, NULL), RPO_EINVAL);
}

/* ---- Without memory ---- */

typedef struct starving {
  rpo_forest *forest;
  int what;
} starving;

static rpo_status one_call(void *context, rpo_error *err) {
  starving *const s = context;
  rpo_forest *made = NULL;
  rpo_arrays *arrays = NULL;
  rpo_model_info info;
  rpo_status status = RPO_OK;
  switch (s->what) {
    case 0: status = rpo_forest_save(s->forest, PATH, "note", 4, err); break;
    case 1: status = rpo_forest_load(PATH, &made, err); break;
    case 2: status = rpo_forest_open_mapped(PATH, &made, err); break;
    case 3: status = rpo_forest_drop_labels(s->forest, NULL, &made, err); break;
    case 4: status = rpo_arrays_save(ARRAYS, 4, "starved.rpo", "note", 4, err); break;
    case 5: status = rpo_arrays_load("starved.rpo", 0, &arrays, err); break;
    default: status = rpo_arrays_load("starved.rpo", 1, &arrays, err); break;
  }
  CHECK(status == RPO_OK || (made == NULL && arrays == NULL));
  (void)info;
  rpo_forest_free(made);
  rpo_arrays_free(arrays);
  return status;
}

static void without_memory_nothing_is_lost(void) {
  for (int form = 0; form < ALL_FORMS; form++) {
    starving s = {form_forest(form), 0};
    for (s.what = 0; s.what < 7; s.what++) {
      mini_context("form %d, call %d", form, s.what);
      until_it_succeeds(one_call, &s);
    }
    rpo_forest_free(s.forest);
  }
  (void)remove(PATH);
  (void)remove("starved.rpo");
}

int main(void) {
  RUN(mapped_files_read_the_same);
  RUN(memory_is_bounded_by_the_file);
  RUN(damage_is_named);
  RUN(inspection_tells_what_is_there);
  RUN(arrays_come_back);
  RUN(bad_arrays_are_refused);
  RUN(damaged_arrays_are_refused);
  RUN(dropped_labels_leave_the_predictions);
  RUN(without_memory_nothing_is_lost);
  return mini_done("files");
}
