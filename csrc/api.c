/* The small public functions: options, features, projections, sizes. The large ones stand where their
 * work is done: forest.c (fit), pick.c, readout.c (predictions), topk.c, weights.c, nodes.c (trees). */
#include <string.h>

#include "array.h"
#include "encode.h"
#include "kernels.h"
#include "mem.h"
#include "model.h"
#include "options.h"
#include "projection.h"

#ifndef RPO_VERSION
#define RPO_VERSION "unknown"
#endif

const char *rpo_version(void) { return RPO_VERSION; }

const char *rpo_instruction_set(void) { return rpo_kernels_pick()->name; }

int32_t rpo_has_openmp(void) {
#ifdef _OPENMP
  return 1;
#else
  return 0;
#endif
}

/* ---- Options ---- */

rpo_status rpo_options_new(rpo_options **out, rpo_error *err) {
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  rpo_options *const options = rpo_new(1, (int64_t)sizeof *options);
  if (options == NULL) return rpo_fail_memory(err, "options");
  rpo_options_default(options);
  *out = options;
  return RPO_OK;
}

void rpo_options_free(rpo_options *options) { rpo_delete(options); }

rpo_status rpo_options_set(rpo_options *options, int32_t id, double value, rpo_error *err) {
  if (options == NULL) return rpo_fail(err, RPO_EINVAL, "options is NULL");
  int const position = rpo_option_find(id);
  if (position < 0) return rpo_fail(err, RPO_EINVAL, "there is no option %d", (int)id);
  RPO_TRY(rpo_options_check(position, value, err));
  options->value[position] = value;
  return RPO_OK;
}

rpo_status rpo_option_info(int32_t position, int32_t *id, const char **name, double *fallback,
                           double *low, double *high, const char **text, rpo_error *err) {
  if (position < 0 || position >= RPO_OPTION_COUNT) {
    return rpo_fail(err, RPO_EINVAL, "position must be between 0 and %d, got %d",
                    RPO_OPTION_COUNT - 1, (int)position);
  }
  const rpo_option_row *const row = &rpo_option_table()[position];
  if (id != NULL) *id = (int32_t)row->id;
  if (name != NULL) *name = row->name;
  if (fallback != NULL) *fallback = row->fallback;
  if (low != NULL) *low = row->low;
  if (high != NULL) *high = row->high;
  if (text != NULL) *text = row->text;
  return RPO_OK;
}

/* ---- Features ---- */

rpo_status rpo_features_new(const rpo_matrix *X, int32_t max_bins, const rpo_control *control,
                            rpo_features **out, rpo_error *err) {
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  RPO_TRY(rpo_matrix_check(X, "X", err));
  RPO_TRY(rpo_matrix_check_values(X, "X", 1, err));
  if (max_bins != 0 && max_bins < 2) {
    return rpo_fail(err, RPO_EINVAL, "max_bins must be 0 or at least 2, got %d", (int)max_bins);
  }
  return rpo_encode(X, max_bins, NULL, control, out, err);
}

rpo_status rpo_features_like(const rpo_matrix *X, const rpo_features *like,
                             const rpo_control *control, rpo_features **out, rpo_error *err) {
  if (out == NULL || like == NULL) return rpo_fail(err, RPO_EINVAL, "like or out is NULL");
  RPO_TRY(rpo_matrix_check(X, "X", err));
  RPO_TRY(rpo_matrix_check_values(X, "X", 1, err));
  if (X->cols != like->cols) {
    return rpo_fail(err, RPO_EINVAL, "X has %lld columns, like has %lld", (long long)X->cols,
                    (long long)like->cols);
  }
  return rpo_encode(X, 0, like, control, out, err);
}

int64_t rpo_features_rows(const rpo_features *f) { return f == NULL ? 0 : f->rows; }
int64_t rpo_features_cols(const rpo_features *f) { return f == NULL ? 0 : f->cols; }
int32_t rpo_features_is_sparse(const rpo_features *f) { return f == NULL ? 0 : f->sparse; }

int64_t rpo_features_bytes(const rpo_features *f) {
  if (f == NULL) return 0;
  int64_t const bins = f->bin_start[f->cols];
  int64_t const fixed = (int64_t)sizeof *f + f->cols * 12 + bins * 16;
  if (!f->sparse) return fixed + 2 * f->rows * f->cols * f->width;
  int64_t const stored = f->col_start[f->cols];
  return fixed + (f->rows + f->cols) * 8 + 2 * stored * (4 + (f->binary ? 0 : f->width));
}

int64_t rpo_features_bins(const rpo_features *f, int64_t col) {
  return f == NULL || col < 0 || col >= f->cols ? 0 : rpo_bins(f, col);
}

static rpo_status check_column(const rpo_features *f, int64_t col, rpo_error *err) {
  if (f == NULL) return rpo_fail(err, RPO_EINVAL, "features is NULL");
  if (col < 0 || col >= f->cols) {
    return rpo_fail(err, RPO_EINVAL, "col must be between 0 and %lld, got %lld",
                    (long long)(f->cols - 1), (long long)col);
  }
  return RPO_OK;
}

rpo_status rpo_features_edges(const rpo_features *f, int64_t col, double *low, double *high,
                              rpo_error *err) {
  RPO_TRY(check_column(f, col, err));
  if (low == NULL || high == NULL) return rpo_fail(err, RPO_EINVAL, "low or high is NULL");
  size_t const bytes = (size_t)rpo_bins(f, col) * sizeof(double);
  memcpy(low, f->low + f->bin_start[col], bytes);
  memcpy(high, f->high + f->bin_start[col], bytes);
  return RPO_OK;
}

rpo_status rpo_features_codes(const rpo_features *f, int64_t col, int32_t *codes, rpo_error *err) {
  RPO_TRY(check_column(f, col, err));
  if (codes == NULL) return rpo_fail(err, RPO_EINVAL, "codes is NULL");
  for (int64_t i = 0; i < f->rows; i++) {
    codes[i] = f->sparse ? f->rest[col] : rpo_code_at(f->codes, f->width, col * f->rows + i);
  }
  if (!f->sparse) return RPO_OK;
  for (int64_t e = f->col_start[col]; e < f->col_start[col + 1]; e++) {
    codes[f->col_rows[e]] = f->binary ? 1 - f->rest[col] : rpo_code_at(f->col_codes, f->width, e);
  }
  return RPO_OK;
}

/* ---- Projections ---- */

rpo_status rpo_projection_apply(const rpo_projection *projection, const rpo_matrix *Y,
                                const rpo_control *control, double *Z, rpo_error *err) {
  rpo_target y, z;
  if (projection == NULL || Z == NULL) return rpo_fail(err, RPO_EINVAL, "projection or Z is NULL");
  RPO_TRY(rpo_matrix_check(Y, "Y", err));
  RPO_TRY(rpo_matrix_check_values(Y, "Y", 0, err));
  if (Y->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "Y must be dense or CSR, not CSC");
  RPO_TRY(rpo_projection_check(projection, Y->cols, err));
  RPO_TRY(rpo_target_new(Y, 0, &y, err));
  rpo_status const status = rpo_project_all(projection, Y->cols, &y, control, &z, err);
  rpo_target_release(&y);
  RPO_TRY(status);
  for (int64_t i = 0; i < z.rows; i++) {
    memcpy(Z + i * z.width, z.z + i * z.stride, (size_t)z.width * sizeof *Z);
  }
  rpo_target_release(&z);
  return RPO_OK;
}

/* ---- Forests: sizes ---- */

int64_t rpo_forest_trees(const rpo_forest *m) { return m == NULL ? 0 : m->trees; }
int64_t rpo_forest_inputs(const rpo_forest *m) { return m == NULL ? 0 : m->inputs; }
int64_t rpo_forest_outputs(const rpo_forest *m) { return m == NULL ? 0 : m->outputs; }
int64_t rpo_forest_rows(const rpo_forest *m) { return m == NULL ? 0 : m->rows; }
int64_t rpo_forest_bytes(const rpo_forest *m) { return m == NULL ? 0 : m->bytes; }
const double *rpo_forest_start(const rpo_forest *m) { return m == NULL ? NULL : m->start; }
const float *rpo_forest_step(const rpo_forest *m) { return m == NULL ? NULL : m->step; }
int32_t rpo_forest_is_boosted(const rpo_forest *m) { return m != NULL && m->start != NULL; }
int32_t rpo_forest_has_rows(const rpo_forest *m) { return m != NULL && rpo_has_rows(m); }
