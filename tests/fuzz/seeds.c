/* Writes small models of every form, for fuzz_model to begin with: seeds FOLDER. The byte before each
 * model says that its checksum does not matter. */
#include "../c/kinds.h"

static void write_bytes(const char *path, int first, const unsigned char *block, int64_t bytes) {
  FILE *const file = fopen(path, "wb");
  int const good = file != NULL && fputc(first, file) == first &&
                   fwrite(block, 1, (size_t)bytes, file) == (size_t)bytes;
  if (file == NULL || fclose(file) != 0 || !good) {
    fprintf(stderr, "cannot write %s\n", path);
    exit(1);
  }
}

/* To be read, and to be mapped. */
static void keep(const char *folder, const char *name, int number, const rpo_forest *forest) {
  char path[400];
  unsigned char *const block = forest_bytes(forest);
  for (int first = 0; first <= 2; first += 2) {
    (void)snprintf(path, sizeof path, "%.300s/%s-%02d%s", folder, name, number, first ? "m" : "");
    write_bytes(path, first, block, rpo_forest_bytes(forest));
  }
  free(block);
}

static void means(const char *folder) {
  int number = 0;
  for (int y = 0; y < Y_KINDS; y++) {
    for (int way = 0; way < 4; way++) { /* deep or shallow, X of one form or the other */
      dice d = {10 + (uint64_t)number};
      problem p = random_problem(&d, way % 2 ? X_REAL : X_BINARY, y, 9, 3, 0.1);
      problem_set(&p, RPO_OPT_N_TREES, 2);
      problem_set(&p, RPO_OPT_BOOTSTRAP, way % 2);
      if (way > 1) problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
      if (way == 1) random_weights(&d, &p, 0);
      rpo_forest *const f = problem_forest(&p, 1);
      keep(folder, "means", number++, f);
      if (way == 1) { /* its leaves with all rows */
        rpo_forest *const all = problem_relabelled(&p, f, 1);
        keep(folder, "relabelled", number, all);
        rpo_forest_free(all);
      }
      rpo_forest_free(f);
      problem_free(&p);
    }
  }
}

static void ratio(const char *folder) {
  for (int shallow = 0; shallow < 2; shallow++) {
    dice d = {70};
    problem p = random_problem(&d, X_LEVELS, Y_FEW, 9, 3, 0.1);
    p.labels = table_binary(&d, 9, 4, 0.6);
    p.fallback = mini_room(2, 8);
    problem_set(&p, RPO_OPT_LABEL_RATIO, 1);
    if (shallow) problem_set(&p, RPO_OPT_MAX_DEPTH, 1);
    rpo_forest *const f = problem_forest(&p, 1);
    keep(folder, "ratio", shallow, f);
    rpo_forest_free(f);
    problem_free(&p);
  }
}

static void sums(const char *folder) {
  for (int way = 0; way < 8; way++) { /* by bits: without relabel, half precision, sparse leaves */
    dice d = {80 + (uint64_t)way};
    problem p = random_problem(&d, X_LEVELS, way & 4 ? Y_LABELS : Y_FEW, 12, 3, 0.1);
    rpo_matrix const X = problem_x(&p), Y = problem_y(&p);
    rpo_boost_data const data = {&Y, NULL, NULL, NULL, NULL, NULL, NULL};
    rpo_features *features = NULL;
    rpo_options *options = NULL;
    rpo_boost *boost = NULL;
    rpo_forest *f = NULL;
    rpo_error err;
    p.projection.kind = RPO_PROJECT_GAUSSIAN;
    p.projection.components = 1;
    problem_set(&p, RPO_OPT_MAX_DEPTH, 2);
    problem_set(&p, RPO_OPT_RELABEL, !(way & 1));
    problem_set(&p, RPO_OPT_HALF, way & 2 ? 1 : 0);
    if (way & 4) problem_set(&p, RPO_OPT_LEAF_MIN_GAIN, 0.3);
    CHECK_OK(problem_options(&p, &options, &err), &err);
    CHECK_OK(rpo_features_new(&X, 0, NULL, &features, &err), &err);
    CHECK_OK(rpo_boost_new(options, features, &data, &p.projection, NULL, &boost, &err), &err);
    CHECK_OK(rpo_boost_run(boost, 2, NULL, &err), &err);
    CHECK_OK(rpo_boost_forest(boost, 2, &f, &err), &err);
    keep(folder, "sums", way, f);
    rpo_forest_free(f);
    rpo_boost_free(boost);
    rpo_features_free(features);
    rpo_options_free(options);
    problem_free(&p);
  }
}

static void arrays(const char *folder) {
  double const numbers[6] = {1.0, 2.0, 3.0, -4.0, 0.5, NAN};
  rpo_named_array const a[3] = {{"weight", RPO_TYPE_F64, 2, {2, 3, 1, 1}, numbers},
                                {"count", RPO_TYPE_I64, 0, {1, 1, 1, 1}, &numbers[1]},
                                {"name", RPO_TYPE_U8, 1, {5, 1, 1, 1}, "seeds"}};
  unsigned char block[4096];
  char path[400];
  rpo_error err;
  CHECK_OK(rpo_arrays_save(a, 3, "seeds.rpo", "a note", 6, &err), &err);
  FILE *const file = fopen("seeds.rpo", "rb");
  int64_t const bytes = file == NULL ? 0 : (int64_t)fread(block, 1, sizeof block, file);
  if (file != NULL) (void)fclose(file);
  (void)remove("seeds.rpo");
  (void)snprintf(path, sizeof path, "%.300s/arrays", folder);
  write_bytes(path, 0, block, bytes);
}

int main(int count, char **argument) {
  if (count != 2) return 1;
  arrays(argument[1]);
  means(argument[1]);
  ratio(argument[1]);
  sums(argument[1]);
  return mini_failures > 0;
}
