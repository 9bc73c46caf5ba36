/* This round's Phi, as floats: drawn, or looking at the gradient. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "mem.h"
#include "projection.h"
#include "rng.h"

/* Squared length of every output's gradient over the bag, by output. */
static rpo_status gradient_squares(rpo_boost *b, const rpo_control *control, double *out,
                                   rpo_error *err) {
  int32_t const all[2] = {0, (int32_t)b->n_bag};
  RPO_TRY(rpo_boost_settle(b, control, err)); /* scores must be up to date */
  RPO_TRY(rpo_boost_chunks(b, b->bag, all, 1, err));
  RPO_TRY(rpo_boost_sum(b, b->bag, RPO_SUM_SQUARES, NULL, control, err));
  rpo_boost_add_chunks(b, RPO_SUM_SQUARES, 0, 0, b->n_chunks, out);
  return RPO_OK;
}

/* The m largest, largest first, earlier outputs first among equal ones. */
static void pick_top(const rpo_boost *b, double *square) {
  for (int64_t c = 0; c < b->m; c++) {
    int64_t best = 0;
    for (int64_t j = 1; j < b->d; j++) best = square[j] > square[best] ? j : best;
    b->phi[c * b->stride + best] = 1.0f;
    square[best] = -1.0;
  }
}

/* Output j with probability p_j in proportion to its square, scaled 1 / sqrt(m p_j). */
static void pick_by_norm(const rpo_boost *b, const double *square) {
  rpo_rng rng = rpo_rng_new(b->grow.seed, RPO_DRAW_PROJECTION, (uint64_t)b->rounds, 0);
  double total = 0.0;
  for (int64_t j = 0; j < b->d; j++) total += square[j];
  for (int64_t c = 0; c < b->m; c++) {
    double const u = rpo_uniform(&rng) * total;
    double sum = square[0];
    int64_t j = 0, last = 0; /* last: of positive square */
    while (j + 1 < b->d && !(sum > u)) {
      j++;
      sum += square[j];
      if (square[j] > 0.0) last = j;
    }
    if (!(square[j] > 0.0)) j = last;
    double const share = total > 0.0 ? square[j] / total : 1.0;
    b->phi[c * b->stride + j] = (float)(1.0 / sqrt((double)b->m * share));
  }
}

static int looks(const rpo_boost *b) {
  int32_t const kind = b->projection.kind;
  return b->phi != NULL && (kind == RPO_PROJECT_TOP || kind == RPO_PROJECT_NORM_SAMPLING);
}

rpo_status rpo_boost_draw_phi(rpo_boost *b, rpo_error *err) {
  int const same = b->projection.kind == RPO_PROJECT_MATRIX && b->rounds > 0 && b->phi_is_set;
  if (b->phi == NULL || looks(b) || same) return RPO_OK;
  double *const drawn = rpo_new(b->m * b->d, 8);
  if (drawn == NULL) return rpo_fail_memory(err, "the projection");
  rpo_projection how = b->projection;
  how.seed = b->grow.seed;
  how.stream = (uint64_t)b->rounds;
  how.matrix = b->matrix;
  rpo_status const status = rpo_projection_draw(&how, b->d, drawn, err);
  for (int64_t c = 0; c < b->m && status == RPO_OK; c++) {
    for (int64_t j = 0; j < b->d; j++) b->phi[c * b->stride + j] = (float)drawn[c * b->d + j];
  }
  b->phi_is_set = status == RPO_OK;
  rpo_delete(drawn);
  return status;
}

rpo_status rpo_boost_look_phi(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  if (!looks(b)) return RPO_OK;
  double *const square = rpo_new(b->d, 8);
  if (square == NULL) return rpo_fail_memory(err, "the projection");
  rpo_status const status = gradient_squares(b, control, square, err);
  memset(b->phi, 0, (size_t)(b->m * b->stride) * sizeof *b->phi);
  if (status == RPO_OK && b->projection.kind == RPO_PROJECT_TOP) pick_top(b, square);
  if (status == RPO_OK && b->projection.kind != RPO_PROJECT_TOP) pick_by_norm(b, square);
  rpo_delete(square);
  return status;
}
