/* Files of every released version stay loadable and predict what they did: ../corpus, one folder a
 * version. NAME.expected.rpo holds inputs and answers. */
#if !defined(_WIN32)
#define _XOPEN_SOURCE 700
#include <dirent.h>
#endif
#include "mini.h"
#include "rpo.h"

#if !defined(_WIN32)

static rpo_named_array array_of(const rpo_arrays *arrays, const char *name) {
  rpo_named_array a;
  memset(&a, 0, sizeof a);
  for (int64_t i = 0; i < rpo_arrays_count(arrays); i++) {
    CHECK_EQUAL(rpo_arrays_get(arrays, i, &a, NULL), RPO_OK);
    if (strcmp(a.name, name) == 0) return a;
  }
  memset(&a, 0, sizeof a);
  CHECK(a.data != NULL);
  return a;
}

static int same(const void *a, const rpo_named_array *b, size_t size) {
  return memcmp(a, b->data, (size_t)(b->shape[0] * b->shape[1]) * size) == 0;
}

static void check_forest(const rpo_forest *m, const rpo_arrays *expected) {
  rpo_named_array const x = array_of(expected, "X"), scores = array_of(expected, "scores");
  rpo_named_array const leaves = array_of(expected, "leaves"), best = array_of(expected, "topk");
  rpo_named_array const best_scores = array_of(expected, "topk_scores");
  rpo_matrix X;
  rpo_error err;
  memset(&X, 0, sizeof X);
  X.rows = x.shape[0];
  X.cols = x.shape[1];
  X.dtype = RPO_F64;
  X.data = x.data;
  X.row_stride = X.cols;
  X.col_stride = 1;
  CHECK_EQUAL(scores.shape[1], rpo_forest_outputs(m));
  CHECK_EQUAL(leaves.shape[1], rpo_forest_trees(m));
  double *const out = mini_room(X.rows * rpo_forest_outputs(m), 8);
  int64_t *const index = mini_room(X.rows * rpo_forest_trees(m), 8);
  CHECK_EQUAL(rpo_forest_predict(m, &X, NULL, out, &err), RPO_OK);
  CHECK(same(out, &scores, 8));
  CHECK_EQUAL(rpo_forest_apply(m, &X, NULL, index, &err), RPO_OK);
  CHECK(same(index, &leaves, 8));
  CHECK_EQUAL(rpo_forest_predict_topk(m, &X, 1, NULL, index, out, &err), RPO_OK);
  CHECK(same(index, &best, 8));
  CHECK(same(out, &best_scores, 8));
  free(out);
  free(index);
}

/* Trees inside another model are a file of their own, as an array of bytes. */
static void check_arrays(const char *path) {
  for (int mapped = 0; mapped < 2; mapped++) {
    rpo_arrays *arrays = NULL;
    rpo_error err;
    if (!CHECK_EQUAL(rpo_arrays_load(path, mapped, &arrays, &err), RPO_OK)) continue;
    CHECK(rpo_arrays_count(arrays) > 0);
    for (int64_t i = 0; i < rpo_arrays_count(arrays); i++) {
      rpo_named_array a;
      CHECK_EQUAL(rpo_arrays_get(arrays, i, &a, &err), RPO_OK);
      const char *const dot = strrchr(a.name, '.');
      if (dot == NULL || strcmp(dot, "._model") != 0) continue;
      rpo_forest *nested = NULL;
      CHECK_EQUAL(rpo_forest_parse(a.data, a.shape[0], &nested, &err), RPO_OK);
      rpo_forest_free(nested);
    }
    rpo_arrays_free(arrays);
  }
}

static void check_file(const char *path) {
  char beside[600];
  rpo_model_info info;
  rpo_error err;
  mini_context("%s", path);
  if (!CHECK_EQUAL(rpo_model_inspect(path, &info, NULL, 0, &err), RPO_OK)) return;
  CHECK_EQUAL(info.damaged, 0);
  if (info.kind == RPO_MODEL_ARRAYS) {
    check_arrays(path);
    return;
  }
  rpo_arrays *expected = NULL;
  (void)snprintf(beside, sizeof beside, "%.*s.expected.rpo", (int)(strlen(path) - 4), path);
  CHECK_EQUAL(rpo_arrays_load(beside, 0, &expected, &err), RPO_OK);
  for (int mapped = 0; mapped < 2; mapped++) {
    rpo_forest *m = NULL;
    CHECK_EQUAL(mapped ? rpo_forest_open_mapped(path, &m, &err) : rpo_forest_load(path, &m, &err),
                RPO_OK);
    if (m != NULL && expected != NULL) check_forest(m, expected);
    rpo_forest_free(m);
  }
  rpo_arrays_free(expected);
}

static int check_folder(const char *folder) {
  char path[512];
  int files = 0;
  DIR *const open = opendir(folder);
  if (open == NULL) return 0;
  for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    const char *const dot = strchr(entry->d_name, '.');
    if (entry->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "%.250s/%.250s", folder, entry->d_name);
    if (dot != NULL && strcmp(dot, ".rpo") == 0) {
      check_file(path);
      files++;
    } else {
      files += check_folder(path); /* a version */
    }
  }
  (void)closedir(open);
  return files;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  if (argc == 2) CHECK(check_folder(argv[1]) >= 18);
  return mini_done("corpus");
}

#else
int main(void) { return 0; }
#endif
