/* Any bytes as a model: refused with a reason, or a forest that every function can read, or named
 * arrays. Checksums are ignored when the first byte is even, so that contents are reached; when it is 2
 * above a multiple of 4, the model is opened as a mapped file is, its contents unseen. The byte is not
 * part of the model. */
#include "checksum.h"
#include "number.h"
#include "reading.h"

enum { ROWS = 5 };

/* A few rows of zeros, ones, halves and missing values, in the first and last columns. */
static void read_with(const rpo_forest *forest, int64_t rows, limits *may) {
  int64_t const cols = rpo_forest_inputs(forest);
  int32_t start[65], index[64];
  double value[64], dense[64 * 8];
  for (int32_t i = 0; i < 64; i++) {
    start[i] = i;
    index[i] = (int32_t)(i % 3 == 0 ? 0 : i % 3 == 1 ? cols - 1 : cols / 2);
    value[i] = i % 7 == 6 ? NAN : (i % 5) * 0.5 - 1.0;
  }
  start[64] = 64;
  for (int i = 0; i < 64 * 8; i++) dense[i] = i % 11 == 10 ? NAN : (i * 5 % 9) * 0.25 - 1.0;
  rpo_matrix X = {rows, cols, RPO_CSR, RPO_F64, RPO_I32, 0, value, 0, 0, start, index};
  if (cols <= 8) {
    X.format = RPO_DENSE;
    X.data = dense;
    X.row_stride = cols;
    X.col_stride = 1;
  }
  rpo_matrix Y = X; /* of as many columns as labels have, all in the first */
  Y.format = RPO_CSR;
  Y.data = NULL;
  Y.cols = rpo_forest_outputs(forest);
  int32_t zeros[64] = {0};
  Y.indptr = start;
  Y.indices = zeros;
  rpo_control const control = {1, 0, patience, may, NULL};
  reading r = {forest, &X, NULL, &control, may, {0, 0, {0}}};
  read_forest(&r, &Y);
}

/* A boosted model is taken up by a run that fits it. */
static void resume(const rpo_forest *forest) {
  int64_t const rows = rpo_forest_rows(forest), d = rpo_forest_outputs(forest);
  int64_t const cols = rpo_forest_inputs(forest);
  if (!rpo_forest_is_boosted(forest) || rows > 64 || cols > 8 || d > 64) return;
  limits none = {0, 0, 0, 0, 0};
  rpo_error err;
  dice random = {9};
  table x = table_random(&random, rows, cols, 4, 0.2, 0.1), y = table_binary(&random, rows, d, 0.4);
  rpo_matrix const X = table_dense(&x), Y = table_dense(&y);
  rpo_boost_data const data = {&Y, NULL, NULL, NULL, rpo_forest_start(forest), NULL, NULL};
  rpo_projection const one = {RPO_PROJECT_GAUSSIAN, 0, 1, 1.0, 0, 0, NULL};
  rpo_features *features = NULL;
  rpo_options *options = NULL;
  rpo_boost *boost = NULL;
  MUST(rpo_options_new(&options, &err) == RPO_OK);
  MUST(rpo_options_set(options, RPO_OPT_RELABEL, rpo_forest_step(forest) == NULL, &err) == RPO_OK);
  MUST(rpo_features_new(&X, 0, NULL, &features, &err) == RPO_OK);
  if (fine(rpo_boost_new(options, features, &data, &one, NULL, &boost, &err), &err, &none) &&
      fine(rpo_boost_resume(boost, forest, NULL, &err), &err, &none)) {
    (void)fine(rpo_boost_run(boost, 1, NULL, &err), &err, &none);
  }
  rpo_boost_free(boost);
  rpo_features_free(features);
  rpo_options_free(options);
  table_free(&x);
  table_free(&y);
}

/* As rpo_forest_open_mapped, in memory of its own, whose end the address sanitizer watches. */
static rpo_status open_mapped(const uint8_t *data, int64_t size, rpo_forest **out, rpo_error *err) {
  char *const block = rpo_new(size, 1);
  memcpy(block, data, (size_t)size);
  rpo_status const status = rpo_model_open_mapped(block, size, out, err);
  if (status == RPO_OK) {
    (*out)->mapped = 0; /* freed, not unmapped */
  } else {
    rpo_delete(block);
  }
  return status;
}

/* Names are strings, and every byte of the arrays is there. */
static void read_arrays(const rpo_arrays *arrays) {
  rpo_named_array a;
  int64_t note = -1, sum = 0;
  const char *const text = rpo_arrays_note(arrays, &note);
  for (int64_t i = 0; i < rpo_arrays_count(arrays); i++) {
    MUST(rpo_arrays_get(arrays, i, &a, NULL) == RPO_OK && a.dims >= 0 && a.dims <= 4);
    int64_t bytes = rpo_type_size(a.type);
    for (int k = 0; k < 4; k++) bytes *= a.shape[k];
    for (int64_t k = 0; k < bytes; k++) sum += ((const uint8_t *)a.data)[k];
    sum += (int64_t)strlen(a.name);
  }
  for (int64_t k = 0; k < note; k++) sum += text[k];
  MUST(note >= 0 && sum != INT64_MIN);
  MUST(rpo_arrays_get(arrays, rpo_arrays_count(arrays), &a, NULL) == RPO_EINVAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rpo_forest *forest = NULL;
  rpo_arrays *arrays = NULL;
  rpo_error err;
  limits none = {0, 0, 0, 0, 0};
  if (size < 2) return 0;
  int const mapped = data[0] % 4 == 2;
  limits impatient = {0, 25, 0, 0, mapped}; /* a file may ask for a billion draws */
  rpo_poll_seconds = 0.0;
  rpo_checksum_ignored = data[0] % 2 == 0;
  int64_t const bytes = (int64_t)size - 1;
  if (fine(mapped ? open_mapped(data + 1, bytes, &forest, &err)
                  : rpo_forest_parse(data + 1, bytes, &forest, &err),
           &err, &none)) {
    int64_t const rows = rpo_forest_rows(forest);
    read_with(forest, rows <= 16 ? rows : ROWS, &impatient);
    resume(forest);
  } else {
    MUST(err.code == RPO_EFORMAT && forest == NULL);
    if (fine(rpo_arrays_parse(data + 1, bytes, &arrays, &err), &err, &none)) read_arrays(arrays);
  }
  rpo_forest_free(forest);
  rpo_arrays_free(arrays);
  MUST(rpo_mem_live == 0);
  return 0;
}
