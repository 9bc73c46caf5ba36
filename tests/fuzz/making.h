/* Arguments made of bytes: matrices of every form, weights, options, projections; now and then one
 * that must be refused. */
#ifndef MAKING_H
#define MAKING_H
#include "fuzz.h"

/* ---- Numbers ---- */

enum { REAL, LEVELS, BINARY, MOSTLY_ZERO, CONSTANT, HUGE, TINY, MISSING, NOT_FINITE, STYLES };

static inline double make_number(dice *d, int style) {
  double const u = dice_real(d);
  switch (style) {
    case LEVELS: return (double)(dice_below(d, 5) - 2);
    case BINARY: return u < 0.3;
    case MOSTLY_ZERO: return u < 0.9 ? 0.0 : (double)dice_below(d, 4);
    case CONSTANT: return 3.25;
    case HUGE: return (u - 0.5) * (u < 0.5 ? 1e300 : 1e19);
    case TINY: return (u - 0.5) * (u < 0.5 ? 1e-310 : 1e-30);
    case MISSING: return u < 0.2 ? NAN : 2.0 * u - 1.0;
    case NOT_FINITE: return u < 0.05 ? INFINITY : u < 0.1 ? -INFINITY : u < 0.2 ? NAN : u;
    default: return 2.0 * u - 1.0;
  }
}

/* Weights: NULL most of the time. */
static inline double *make_weights(source *s, int64_t n) {
  int const kind = (int)choose(s, 8);
  if (kind < 3) return NULL;
  dice d = choose_dice(s);
  double *const w = exactly(n, 8);
  for (int64_t i = 0; i < n; i++) {
    double const u = dice_real(&d);
    w[i] = kind == 3   ? (double)dice_below(&d, 4)
           : kind == 4 ? u
           : kind == 5 ? (u < 0.7 ? 0.0 : u * 1e-3)
           : kind == 6 ? make_number(&d, (int)choose(s, STYLES))
                       : u * 1e6;
  }
  return w;
}

/* ---- Matrices ---- */

typedef struct crafted {
  rpo_matrix view;
  void *block[3];
} crafted;

static inline void crafted_free(crafted *m) {
  for (int i = 0; i < 3; i++) free(m->block[i]);
  memset(m, 0, sizeof *m);
}

static inline void put_number(void *to, int32_t dtype, int64_t i, double v) {
  if (dtype == RPO_F32) {
    ((float *)to)[i] = (float)fmin(fmax(v, -3e38), 3e38);
    if (!isfinite(v)) ((float *)to)[i] = (float)v;
  } else {
    ((double *)to)[i] = v;
  }
}

static inline void put_index(void *to, int32_t index, int64_t i, int64_t v) {
  if (index == RPO_I32) {
    ((int32_t *)to)[i] = (int32_t)v;
  } else {
    ((int64_t *)to)[i] = v;
  }
}

/* Rows next to each other or apart, columns likewise, from front or back, or one row for all. */
static inline void make_dense(source *s, crafted *m, int style) {
  rpo_matrix *const a = &m->view;
  dice d = choose_dice(s);
  int64_t const rows = a->rows, cols = a->cols, size = a->dtype == RPO_F32 ? 4 : 8;
  int const layout = (int)choose(s, 6);
  a->row_stride = layout == 1 ? 1 : layout == 2 ? cols + 3 : layout == 4 ? 0 : cols;
  a->col_stride = layout == 1 ? rows : 1;
  int64_t const last = (rows - 1) * a->row_stride + (cols - 1) * a->col_stride;
  m->block[0] = exactly(last + 1, size);
  for (int64_t i = 0; i <= last; i++) put_number(m->block[0], a->dtype, i, make_number(&d, style));
  a->data = m->block[0];
  if (layout != 3) return;
  a->data = (char *)m->block[0] + (rows - 1) * cols * size; /* last row first */
  a->row_stride = -cols;
}

/* `one`: an entry a row (a column of CSC). Indices within a row in any order. */
static inline void make_compressed(source *s, crafted *m, int style, int one) {
  rpo_matrix *const a = &m->view;
  dice d = choose_dice(s);
  int64_t const major = a->format == RPO_CSR ? a->rows : a->cols;
  int64_t const minor = a->format == RPO_CSR ? a->cols : a->rows;
  int64_t const each = one ? 1 : (minor + 2) / 3;
  int const ones = choose(s, 2) == 0 && (style == BINARY || one);
  a->index = choose(s, 2) ? RPO_I64 : RPO_I32;
  int64_t const isize = a->index == RPO_I32 ? 4 : 8, size = a->dtype == RPO_F32 ? 4 : 8;
  int64_t *const start = exactly(major + 1, 8), *const index = exactly(major * each + 1, 8);
  int64_t count = 0;
  start[0] = 0;
  for (int64_t i = 0; i < major; i++) {
    int64_t const here = one ? 1 : dice_below(&d, each + 1);
    int64_t const first = dice_below(&d, minor), step = dice_below(&d, 2) ? 1 : minor - 1;
    for (int64_t k = 0; k < here; k++) index[count++] = (first + k * step) % minor;
    start[i + 1] = count;
  }
  int const slip = rarely(s, 24) ? 1 + (int)choose(s, 5) : 0; /* something that must be refused */
  if (slip == 1) start[0] = 1;
  if (slip == 2) start[major / 2 + 1] = -5;
  if (slip == 3 && count > 0) index[count / 2] = minor;
  if (slip == 4 && count > 0) index[count - 1] = -1;
  if (slip == 5 && start[1] > 1) index[0] = index[1];
  m->block[0] = ones ? NULL : exactly(count, size);
  for (int64_t e = 0; e < count && !ones; e++) {
    double const v = make_number(&d, style);
    put_number(m->block[0], a->dtype, e, one ? 1.0 : style == BINARY ? 1.0 : v);
  }
  m->block[1] = exactly(major + 1, isize);
  m->block[2] = exactly(count, isize);
  for (int64_t i = 0; i <= major; i++) put_index(m->block[1], a->index, i, start[i]);
  for (int64_t e = 0; e < count; e++) put_index(m->block[2], a->index, e, index[e]);
  a->data = m->block[0];
  a->indptr = m->block[1];
  a->indices = m->block[2];
  free(start);
  free(index);
}

/* Descriptions that no memory can be behind. */
static inline void spoil(source *s, rpo_matrix *a) {
  switch (choose(s, 10)) {
    case 0: a->rows = 0; break;
    case 1: a->cols = -1; break;
    case 2: a->rows = INT64_MAX; break;
    case 3: a->cols = (int64_t)1 << 40; break;
    case 4: a->dtype = 7; break;
    case 5: a->format = -1; break;
    case 6: a->index = 9; break;
    case 7: a->indptr = NULL; break;
    case 8: a->indices = NULL; break;
    default: a->format == RPO_DENSE ? (void)(a->data = NULL) : (void)(a->rows -= 1);
  }
}

/* `forms`: of dense, CSR, CSC the first so many. */
static inline crafted make_matrix(source *s, int64_t rows, int64_t cols, int forms, int style,
                                  int one) {
  crafted m;
  memset(&m, 0, sizeof m);
  m.view.rows = rows < 1 ? 1 : rows; /* of a handle that was not made: 0 */
  m.view.cols = cols < 1 ? 1 : cols;
  m.view.dtype = choose(s, 2) ? RPO_F32 : RPO_F64;
  m.view.format = (int32_t)choose(s, forms);
  if (one && m.view.format == RPO_DENSE) m.view.format = RPO_CSR;
  if (m.view.format == RPO_DENSE) {
    make_dense(s, &m, style);
  } else {
    make_compressed(s, &m, style, one);
  }
  if (rarely(s, 40)) spoil(s, &m.view);
  return m;
}

/* ---- Options and projections ---- */

/* Fits stay small: few trees and draws. */
static inline double make_option(source *s, int32_t id, double low, double high, double fallback) {
  switch (id) {
    case RPO_OPT_N_TREES: return 1.0 + (double)choose(s, 4);
    case RPO_OPT_MAX_SAMPLES: return (double)choose(s, 100);
    case RPO_OPT_SEED:
    case RPO_OPT_FIRST_TREE: return choose(s, 4) == 3 ? high : (double)choose(s, 256);
    default: break;
  }
  switch (choose(s, 9)) {
    case 0: return (double)choose(s, 12);
    case 1: return high < INFINITY ? high : 1e300;
    case 2: return low;
    case 3: return fallback;
    case 4: return (double)choose(s, 256) / 255.0;
    case 5: return 0.01 * (double)choose(s, 256);
    case 6: return (double)choose(s, 4);
    case 7: return NAN;
    default: return -1.0;
  }
}

static inline rpo_options *make_options(source *s, rpo_error *err) {
  rpo_options *options = NULL;
  limits starved = {1, 0, 0, 0, 0};
  if (!fine(rpo_options_new(&options, err), err, &starved)) return NULL;
  (void)rpo_options_set(options, RPO_OPT_N_TREES, 2.0, NULL);
  for (int64_t left = choose(s, 10); left > 0; left--) {
    int32_t id = (int32_t)choose(s, 70);
    double low, high, fallback;
    if (rpo_option_info((int32_t)choose(s, 40), &id, NULL, &fallback, &low, &high, NULL, err) !=
        RPO_OK) {
      low = high = fallback = 0.0;
    }
    (void)fine(rpo_options_set(options, id, make_option(s, id, low, high, fallback), err), err,
               &starved);
  }
  return options;
}

static inline rpo_projection make_projection(source *s, int64_t d, double **matrix) {
  rpo_projection p;
  memset(&p, 0, sizeof p);
  p.kind = (int32_t)choose(s, 10);
  p.shared = (int32_t)choose(s, 2);
  p.components = choose(s, 3) == 0 ? 1 : choose(s, 20);
  p.sparsity = rarely(s, 20) ? NAN : 0.5 * (double)choose(s, 12);
  p.seed = (uint64_t)choose(s, 256);
  p.stream = (uint64_t)choose(s, 256);
  if (rarely(s, 30)) p.components = choose(s, 2) ? -3 : (int64_t)1 << 40;
  if (p.kind == RPO_PROJECT_MATRIX && p.components > 0 && p.components < 256 && !rarely(s, 30)) {
    dice random = choose_dice(s);
    int const style = (int)choose(s, STYLES);
    *matrix = exactly(p.components * d, 8);
    for (int64_t i = 0; i < p.components * d; i++) (*matrix)[i] = make_number(&random, style);
    p.matrix = *matrix;
  }
  return p;
}

#endif
