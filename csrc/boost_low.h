/* Algorithm 3 with the squared loss and sparse Y, without scores: with G (rows x rounds) what the trees
 * say and R (rounds x outputs) their steps, F = start + G R, and all that a round asks for follows
 * from sparse Y and products with G and R:
 *
 *   projections  z = (Y - F) phi = Y phi - start phi - G (R phi)
 *   steps        rho = (Y'g - start sum(g) - R'(G'g)) / (g'g),  g weighted, and of the bag only
 *   losses       |y - F - g s|^2 = |y - F|^2 - 2 g (y - F) s + g^2 |s|^2,  row by row
 *
 * Memory is that of Y, and O((rows + outputs) rounds): G is kept as leaf numbers, mostly bytes. */
#ifndef RPO_BOOST_LOW_H
#define RPO_BOOST_LOW_H
#include "boost.h"

struct rpo_low {
  int64_t *column; /* d + 1: Y by output */
  int32_t *row;
  float *value;     /* NULL: ones */
  double *loss;     /* by row, of all outputs */
  double *along;    /* by row: scratch */
  double *by_round; /* scratch */
  int64_t room;     /* of by_round */
  /* Scores by which a run is stopped are asked for again and again, of the same rows. */
  int32_t *asked; /* the rows last asked for */
  int64_t n_asked;
  float *told; /* n_asked x d: their scores, when asked for twice */
  int64_t told_rounds;
};

/* Takes this way where it can be taken and is the shorter one: sets b->low. */
rpo_status rpo_low_begin(rpo_boost *b, rpo_error *err);
void rpo_low_free(rpo_low *low);
/* Losses of the constant scores. */
void rpo_low_start(rpo_boost *b);
/* First pass of a round: gradients of the last one are projected into z. */
rpo_status rpo_low_update(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* Line 6 and 7: the leaves' components and every output's step. */
rpo_status rpo_low_label(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                         rpo_error *err);
/* The tree's column of G, from b->leaf_of, and the losses behind it. To be added to b->tree after. */
rpo_status rpo_low_take(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                        rpo_error *err);
double rpo_low_watch(const rpo_boost *b);
/* Scores of rows (NULL: the first `count`), `stride` apart: the bits that predictions have. */
rpo_status rpo_low_scores(const rpo_boost *b, const int32_t *rows, int64_t count, float *out,
                          int64_t stride, const rpo_control *control, rpo_error *err);
/* True once so many rounds were run that passes over all scores cost less. */
int rpo_low_is_over(const rpo_boost *b);
/* Goes on with scores in memory. */
rpo_status rpo_low_leave(rpo_boost *b, const rpo_control *control, rpo_error *err);
#endif
