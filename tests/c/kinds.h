/* Random problems of every kind: the forms of X by the forms of Y. */
#ifndef KINDS_H
#define KINDS_H
#include "problem.h"

enum { X_LEVELS, X_REAL, X_SPARSE, X_BINARY, X_KINDS };
enum { Y_FEW, Y_REAL, Y_WIDE, Y_LABELS, Y_SPARSE_REAL, Y_ONE_CLASS, Y_KINDS };

static inline table random_x(dice *d, int kind, int64_t n, int64_t p, double missing) {
  switch (kind) {
    case X_LEVELS: return table_random(d, n, p, 6, 0.0, missing);
    case X_REAL: return table_random(d, n, p, 0, 0.0, missing);
    case X_SPARSE: return table_random(d, n, p, 5, 0.88, missing / 4);
    default: return table_binary(d, n, p, 0.1);
  }
}

/* Dense real targets go to the "sums" kind; sparse rows with many outputs to the "labels" kind. */
static inline table random_y(dice *d, int kind, int64_t n) {
  switch (kind) {
    case Y_FEW: return table_random(d, n, 2, 4, 0.3, 0.0);
    case Y_REAL: return table_random(d, n, 9, 0, 0.0, 0.0);
    case Y_WIDE: return table_random(d, n, 43, 0, 0.0, 0.0);
    case Y_LABELS: return table_binary(d, n, 24, 0.08);
    case Y_SPARSE_REAL: return table_random(d, n, 20, 0, 0.92, 0.0);
    default: {
      table y = table_new(n, 13);
      for (int64_t i = 0; i < n; i++) y.v[i * 13 + dice_below(d, 13)] = 1.0;
      return y;
    }
  }
}

static inline problem random_problem(dice *d, int x_kind, int y_kind, int64_t n, int64_t p,
                                     double missing) {
  table const x = random_x(d, x_kind, n, p, missing);
  problem q = problem_new(x, random_y(d, y_kind, n));
  q.sparse_x = x_kind >= X_SPARSE;
  q.sparse_y = y_kind >= Y_LABELS;
  return q;
}

static inline void random_weights(dice *d, problem *p, int whole) {
  p->weight = mini_room(p->x.rows, 8);
  for (int64_t i = 0; i < p->x.rows; i++) {
    double const u = dice_real(d);
    p->weight[i] = u < 0.2 ? 0.0 : whole ? 1.0 + (double)dice_below(d, 4) : u;
  }
  p->weight[0] = 1.0;
}

#endif
