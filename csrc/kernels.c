/* Compiled once per instruction set; RPO_ISA names it. No function here is called by name from
 * elsewhere: everything goes through the table. */
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "rng.h"
#include "vmath.h"

#ifndef RPO_ISA
#define RPO_ISA baseline
#endif

#include "loop_sums.h"
#include "loop_split.h"
#include "loop_search.h"

static int node_is_leaf(rpo_grower *g, const rpo_frame *frame, int32_t id, const int32_t *rows,
                        int64_t n, int64_t depth);
static int split_pays(const rpo_grower *g, const rpo_frame *frame, const best_split *best);
static void make_inner(rpo_grower *g, int32_t id, const best_split *best, int64_t n_left,
                       int64_t n_right);

#include "loop_grow.h"
#include "loop_leaves.h"
#include "loop_hist.h"
#include "loop_loss.h"

ALWAYS_INLINE void add_columns_of(int64_t stride, const double *phi, const int32_t *index,
                                  const double *y, int64_t entries, double *restrict z) {
  for (int64_t e = 0; e < entries; e++) {
    add_scaled(z, y == NULL ? 1.0 : y[e], phi + (index == NULL ? e : index[e]) * stride, stride);
  }
}

static void add_columns(const double *phi, int64_t stride, const int32_t *index, const double *y,
                        int64_t entries, double *z) {
  switch (stride) {
    case 1: add_columns_of(1, phi, index, y, entries, z); break;
    case 8: add_columns_of(8, phi, index, y, entries, z); break;
    case 16: add_columns_of(16, phi, index, y, entries, z); break;
    case 32: add_columns_of(32, phi, index, y, entries, z); break;
    default: add_columns_of(stride, phi, index, y, entries, z);
  }
}

enum { COUNT_BLOCK = 1024 }; /* scores that stay in the nearest cache */

static void count_passed(const double *x, int64_t n, const double *step, int64_t steps,
                         int64_t *count) {
  memset(count, 0, (size_t)steps * sizeof *count);
  for (int64_t from = 0; from < n; from += COUNT_BLOCK) {
    int64_t const to = n - from < COUNT_BLOCK ? n : from + COUNT_BLOCK;
    int64_t i = 0;
    for (; i + 4 <= steps; i += 4) {
      double const s0 = step[i], s1 = step[i + 1], s2 = step[i + 2], s3 = step[i + 3];
      int64_t n0 = 0, n1 = 0, n2 = 0, n3 = 0;
      for (int64_t j = from; j < to; j++) {
        n0 += x[j] >= s0;
        n1 += x[j] >= s1;
        n2 += x[j] >= s2;
        n3 += x[j] >= s3;
      }
      count[i] += n0;
      count[i + 1] += n1;
      count[i + 2] += n2;
      count[i + 3] += n3;
    }
    for (; i < steps; i++) {
      double const s0 = step[i];
      int64_t n0 = 0;
      for (int64_t j = from; j < to; j++) n0 += x[j] >= s0;
      count[i] += n0;
    }
  }
}

enum { KEEP_BLOCK = 32 }; /* scores that are looked at one by one if one is among the best so far */

/* NaN is not below anything, and only finite numbers differ from themselves by zero. */
#define DEFINE_KEEP(name, real, flag)                                                          \
  static int name(const real *x, int64_t n, rpo_best *best) {                                  \
    flag odd = 0;                                                                              \
    for (int64_t from = 0; from < n; from += KEEP_BLOCK) {                                     \
      int64_t const to = n - from < KEEP_BLOCK ? n : from + KEEP_BLOCK;                        \
      int const full = best->kept == best->k;                                                  \
      real const least = full ? (real)best->score[0] : 0;                                      \
      flag above = 0;                                                                          \
      for (int64_t j = from; j < to; j++) {                                                    \
        above |= x[j] > least;                                                                 \
        odd |= !(x[j] - x[j] == 0);                                                            \
      }                                                                                        \
      for (int64_t j = from; (!full || above) && j < to; j++) rpo_keep(best, (double)x[j], j); \
    }                                                                                          \
    return !odd;                                                                               \
  }
DEFINE_KEEP(keep_best_f64, double, int64_t)
DEFINE_KEEP(keep_best_f32, float, int32_t)

static int keep_best(int dtype, const void *score, int64_t n, rpo_best *best) {
  return dtype == RPO_F32 ? keep_best_f32(score, n, best) : keep_best_f64(score, n, best);
}

#define REAL double
#define INDEX int32_t
#define TAG f64_i32
#include "loop_sparse.h"
#define REAL double
#define INDEX int64_t
#define TAG f64_i64
#include "loop_sparse.h"
#define REAL float
#define INDEX int32_t
#define TAG f32_i32
#include "loop_sparse.h"
#define REAL float
#define INDEX int64_t
#define TAG f32_i64
#include "loop_sparse.h"

static void multiply(const rpo_product *p, int64_t from, int64_t to, int64_t width) {
  int const far = p->a->index == RPO_I64;
  if (p->dtype == RPO_F64) {
    (far ? multiply_f64_i64 : multiply_f64_i32)(p, from, to, width);
  } else {
    (far ? multiply_f32_i64 : multiply_f32_i32)(p, from, to, width);
  }
}

#if defined(__GNUC__)
#define FETCH(address, near) __builtin_prefetch((address), 0, near)
#else
#define FETCH(address, near) (void)(address)
#endif

#define REAL double
#include "loop_tile.h"
#define REAL float
#include "loop_tile.h"

static void tile(int dtype, int back, const void *entry, int64_t count, void *rows, void *columns) {
  (dtype == RPO_F64 ? tile_double : tile_float)(back, entry, count, rows, columns);
}

#define NAME_(isa) rpo_kernels_##isa
#define NAME(isa) NAME_(isa)
#define TEXT_(isa) #isa
#define TEXT(isa) TEXT_(isa)

extern const rpo_kernels NAME(RPO_ISA);
const rpo_kernels NAME(RPO_ISA) = {
    .name = TEXT(RPO_ISA),
    .has_lanes = HAVE_CUT_LANES,
    .grow = grow,
    .leaves = leaves_of_rows,
    .add_columns = add_columns,
    .keep_best = keep_best,
    .count_passed = count_passed,
    .multiply = multiply,
    .tile = tile,
    .hist_feature = hist_feature,
    .hist_rows = hist_rows,
    .hist_total = hist_total,
    .hist_direct = hist_direct,
    .hist_listed = hist_listed,
    .hist_cut = hist_cut,
    .loss = loss_rows,
    .sum_loss = sum_loss,
    .project_loss = project_loss,
    .loss_value = loss_value,
    .newton_values = newton_values,
    .keep_steps = keep_steps,
    .keep_scores = keep_scores,
    .tell_scores = tell_scores,
    .take_steps = take_steps,
    .project_row = project_row,
    .sum_row = sum_row,
    .sum_product = sum_product,
};
