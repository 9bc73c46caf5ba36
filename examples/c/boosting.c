/* Boost on generated data, keep the best number of rounds, save, load, predict:
 *   cc boosting.c $(pkg-config --cflags --libs rpo) -lm -o boosting && ./boosting model.rpo */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpo.h"

enum { ROWS = 1000, HELD_OUT = 200, INPUTS = 8, OUTPUTS = 30, ROUNDS = 60, SHOWN = 5, BEST = 3 };

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

/* The number of rounds, at least 1, after which the rows not trained on were predicted best. */
static int64_t best_rounds(rpo_boost *boost) {
  double loss[ROUNDS + 1];
  int64_t best = 1;
  rpo_error err;
  must(rpo_boost_losses(boost, NULL, loss, &err), &err);
  for (int64_t i = 2; i <= rpo_boost_rounds(boost); i++) {
    if (loss[i] < loss[best]) best = i;
  }
  printf("loss %.4f at first, %.4f after %d rounds\n", loss[0], loss[best], (int)best);
  return best;
}

int main(int argc, char **argv) {
  static double x[ROWS * INPUTS];
  static float y[ROWS * OUTPUTS];
  static uint8_t watched[ROWS];
  const char *const path = argc > 1 ? argv[1] : "boosting.rpo";
  rpo_control const control = {2, 0, NULL, NULL, NULL}; /* two threads, no progress callback */
  rpo_projection const projection = {RPO_PROJECT_GAUSSIAN, 0, 1, 0.0, 0, 0, NULL};
  rpo_boost_data data = {NULL, NULL, NULL, watched, NULL, NULL, NULL};
  rpo_options *options = NULL;
  rpo_features *features = NULL;
  rpo_boost *boost = NULL;
  rpo_forest *model = NULL, *loaded = NULL;
  rpo_error err;
  generate(x, y);
  for (int i = ROWS - HELD_OUT; i < ROWS; i++) watched[i] = 1;
  rpo_matrix const X = view(x, RPO_F64, ROWS, INPUTS), Y = view(y, RPO_F32, ROWS, OUTPUTS);
  data.Y = &Y;

  must(rpo_options_new(&options, &err), &err);
  must(rpo_options_set(options, RPO_OPT_LOSS, RPO_LOSS_LOGISTIC, &err), &err);
  must(rpo_options_set(options, RPO_OPT_LEARNING_RATE, 0.3, &err), &err);
  must(rpo_options_set(options, RPO_OPT_MAX_LEAF_NODES, 16, &err), &err);
  must(rpo_options_set(options, RPO_OPT_L2, 1.0, &err), &err);
  must(rpo_features_new(&X, 255, &control, &features, &err), &err);
  must(rpo_boost_new(options, features, &data, &projection, &control, &boost, &err), &err);
  must(rpo_boost_run(boost, ROUNDS, &control, &err), &err);
  must(rpo_boost_forest(boost, best_rounds(boost), &model, &err), &err);
  must(rpo_forest_save(model, path, NULL, 0, &err), &err);
  must(rpo_forest_load(path, &loaded, &err), &err);

  int64_t index[SHOWN * BEST];
  double score[SHOWN * BEST];
  rpo_matrix const shown = view(x + (ROWS - SHOWN) * INPUTS, RPO_F64, SHOWN, INPUTS);
  must(rpo_forest_predict_topk(loaded, &shown, BEST, &control, index, score, &err), &err);
  for (int i = 0; i < SHOWN; i++) {
    printf("row %d:", ROWS - SHOWN + i);
    for (int k = 0; k < BEST; k++) {
      double const probability = 1.0 / (1.0 + exp(-score[i * BEST + k])); /* scores are log-odds */
      printf("  output %2d %.2f", (int)index[i * BEST + k], probability);
    }
    printf("\n");
  }
  rpo_forest_free(loaded);
  rpo_forest_free(model);
  rpo_boost_free(boost);
  rpo_features_free(features);
  rpo_options_free(options);
  return 0;
}
