/* Train a forest on generated data, save it, load it, predict:
 *   cc forest.c $(pkg-config --cflags --libs rpo) -o forest && ./forest model.rpo */
#include <stdio.h>
#include <stdlib.h>

#include "rpo.h"

enum { ROWS = 1000, INPUTS = 8, OUTPUTS = 30, BEST = 3 };

/* A call that fails says why in a sentence. */
static void must(rpo_status status, const rpo_error *err) {
  if (status == RPO_OK) return;
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

/* A row belongs to the outputs that its inputs point at. */
static void generate(double *x, float *y) {
  uint32_t state = 1;
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < INPUTS; j++) {
      state = state * 1664525u + 1013904223u;
      x[i * INPUTS + j] = (double)(state >> 8) / (1 << 24);
    }
    for (int j = 0; j < INPUTS; j++) {
      if (x[i * INPUTS + j] > 0.5) y[i * OUTPUTS + (j * 7) % OUTPUTS] = 1.0f;
    }
  }
}

/* Row-major numbers as the library sees them. */
static rpo_matrix view(const void *data, rpo_dtype dtype, int64_t rows, int64_t cols) {
  rpo_matrix m = {rows, cols, RPO_DENSE, (int32_t)dtype, RPO_I32, 0, data, cols, 1, NULL, NULL};
  return m;
}

int main(int argc, char **argv) {
  static double x[ROWS * INPUTS];
  static float y[ROWS * OUTPUTS];
  const char *const path = argc > 1 ? argv[1] : "forest.rpo";
  rpo_control const control = {2, 0, NULL, NULL, NULL}; /* two threads, no progress callback */
  rpo_projection const projection = {RPO_PROJECT_GAUSSIAN, 0, 5, 0.0, 0, 0, NULL};
  rpo_options *options = NULL;
  rpo_features *features = NULL;
  rpo_forest *forest = NULL, *loaded = NULL;
  rpo_error err;
  generate(x, y);
  rpo_matrix const X = view(x, RPO_F64, ROWS, INPUTS), Y = view(y, RPO_F32, ROWS, OUTPUTS);

  must(rpo_options_new(&options, &err), &err);
  must(rpo_options_set(options, RPO_OPT_N_TREES, 50, &err), &err);
  must(rpo_options_set(options, RPO_OPT_MAX_FEATURES, 3, &err), &err);
  must(rpo_features_new(&X, 0, &control, &features, &err), &err);
  /* Splits are searched among 5 random components, the leaves hold all 30 outputs. */
  must(
      rpo_forest_fit(options, features, &Y, NULL, NULL, NULL, &projection, &control, &forest, &err),
      &err);
  must(rpo_forest_save(forest, path, NULL, 0, &err), &err);
  must(rpo_forest_load(path, &loaded, &err), &err);
  printf("%lld trees, %lld bytes\n", (long long)rpo_forest_trees(loaded),
         (long long)rpo_forest_bytes(loaded));

  int64_t index[5 * BEST];
  double score[5 * BEST];
  rpo_matrix const first = view(x, RPO_F64, 5, INPUTS);
  must(rpo_forest_predict_topk(loaded, &first, BEST, &control, index, score, &err), &err);
  for (int i = 0; i < 5; i++) {
    printf("row %d:", i);
    for (int k = 0; k < BEST; k++) {
      printf("  output %2d %.2f", (int)index[i * BEST + k], score[i * BEST + k]);
    }
    printf("\n");
  }
  rpo_forest_free(loaded);
  rpo_forest_free(forest);
  rpo_features_free(features);
  rpo_options_free(options);
  return 0;
}
