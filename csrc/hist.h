/* Growing a tree on few columns of sums from histograms: a node's sums by feature and code, its larger
 * child's by subtracting the smaller child's. What boosting grows its trees with.
 *
 * Sums are whole multiples of one unit, kept in doubles: exact, hence the same in any order, by any
 * thread, and when subtracted. */
#ifndef RPO_HIST_H
#define RPO_HIST_H
#include "grow.h"
#include "grower.h"

typedef struct rpo_cut {
  double score;         /* -INFINITY: none */
  int32_t feature;      /* -1: none */
  int32_t below, above; /* the codes the cut lies between */
  int8_t missing_left;  /* -1: no missing value in the node */
} rpo_cut;

/* A node that may be split. */
typedef struct rpo_hist_node {
  double *sums;  /* by slot; NULL: made feature by feature */
  double *total; /* stride */
  uint64_t path;
  rpo_cut cut;
  int32_t id, depth, start, end;
} rpo_hist_node;

typedef struct rpo_hist rpo_hist;

/* What one thread grows nodes with. */
typedef struct rpo_hist_hand {
  rpo_hist *h;
  const rpo_control *control; /* of jobs within a node; NULL: none */
  rpo_node *nodes;
  int64_t n_nodes, node_room;
  uint8_t *mark; /* sparse: by row, zero between uses */
  int32_t *permutation, *swaps, *drawn;
  rpo_cut *found;  /* by place in drawn */
  uint8_t *usable; /* the same: not constant in the node */
  double *own;     /* a feature's slots, and sums of one side */
  double *partial; /* all slots, for large sparse nodes */
  double **spare;  /* slots not in use */
  int64_t n_spare, spare_room;
  rpo_hist_node *waiting;
  int64_t n_waiting, waiting_room;
} rpo_hist_hand;

/* A node left to another hand with all that is below it: that hand's nodes first .. end - 1, this one
 * first. */
typedef struct rpo_hist_branch {
  rpo_hist_node node;
  int lent; /* it came with slots */
  int64_t hand, first, end;
} rpo_hist_branch;

#define RPO_BRANCHES 256 /* of a tree at most */
#define RPO_NARROW 4     /* numbers of a slot: several rows share a line of the cache */

struct rpo_hist {
  const rpo_features *f;
  rpo_grow_options o;
  int64_t m;       /* columns of sums */
  int64_t stride;  /* of a slot: weight, sums, number of rows where weights are not it */
  int counted;     /* 1: the number of rows is kept apart from the weight */
  int64_t slots;   /* of all features */
  int64_t widest;  /* slots of the widest feature */
  int64_t *offset; /* cols + 1: a feature's slots */
  double *stat;    /* rows x stride: what a row adds to a slot, in units */
  double *beside;  /* narrow ones of a node's rows, at their places in samples */
  double unit, weight_unit;
  double total_weight, min_leaf_weight;
  int32_t *samples, *scratch; /* rows, a node's side by side */
  int threads;
  rpo_hist_hand *hand; /* the first grows the trunk, with others' scratch; the rest, branches */
  int64_t hands;
  rpo_hist_branch *branch; /* RPO_BRANCHES; NULL: of one thread */
  rpo_feed branches;
  int64_t branch_rows; /* of a branch at most; 0: all is trunk */
  rpo_control alone;   /* the caller's, of one thread: the first polls within its nodes */
};

/* `counted`: weights are not all 1. */
rpo_status rpo_hist_new(const rpo_features *features, const rpo_grow_options *options, int64_t m,
                        int counted, rpo_hist **out, rpo_error *err);
void rpo_hist_free(rpo_hist *hist);
/* Units of the rows' weights and of their sums, from their largest absolute values; to be set before
 * rpo_hist_put. */
void rpo_hist_units(rpo_hist *hist, double weight, double sum);
/* What some rows add: their weights and weighted values; `weight` of all rows, and `z`, a row's m
 * values `apart` behind the last row's. */
void rpo_hist_put(rpo_hist *hist, const int32_t *rows, int64_t n, const double *weight,
                  const double *z, int64_t apart);
/* Where values may wait for rpo_hist_put, instead of in an array of their own: each row's is taken up
 * where it lies. */
double *rpo_hist_room(rpo_hist *hist, int64_t *apart);
/* Grows a tree on `n` rows, ascending, of these weights (by row of the features); `name` keys its
 * draws. */
rpo_status rpo_hist_run(rpo_hist *hist, const int32_t *rows, int64_t n, const double *weight,
                        uint64_t name, const rpo_control *control, rpo_tree *out, rpo_error *err);

/* ---- Between the files of the grower ---- */

/* A set of slots, not zeroed; and back. */
rpo_status rpo_hist_take(rpo_hist_hand *hand, double **out, rpo_error *err);
rpo_status rpo_hist_give(rpo_hist_hand *hand, double *sums, rpo_error *err);
/* Hands for the threads of a call. */
rpo_status rpo_hist_hands(rpo_hist *hist, const rpo_control *control, rpo_error *err);
/* Additions that the sums of so many rows take. */
double rpo_hist_work(const rpo_hist *hist, int64_t rows);
/* The sums of rows, by slot. */
rpo_status rpo_hist_build(rpo_hist_hand *hand, const int32_t *rows, int64_t n, double *sums,
                          rpo_error *err);
/* The node's best cut: scikit-learn's rule of drawing, max_features and more until one is not
 * constant, or the paper's, until max_features are not. */
rpo_status rpo_hist_search(rpo_hist_hand *hand, rpo_hist_node *node, rpo_error *err);
#endif
