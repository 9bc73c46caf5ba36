/* Gradient boosting of many outputs (boosting paper, Algorithms 2 to 4): the state of a run.
 *
 * A round: the scores F take the last tree in, and the new gradient is projected, in one pass over the
 * rows (boost_pass.c; long rows that are not in the round's sample wait until they are, which saves
 * their way through memory); a tree is grown on the projections (hist.c); its leaves are labelled with
 * sums over their rows, in a second pass (boost_leaf.c, boost_step.c). The gradient is never stored. */
#ifndef RPO_BOOST_H
#define RPO_BOOST_H
#include "hist.h"
#include "kernels.h"
#include "mem.h"
#include "model.h"
#include "options.h"

/* The leaves of one round's tree as the model will have them. */
typedef struct rpo_boost_tree {
  rpo_tree tree;    /* its rows are given up once the leaves are made */
  float *component; /* without relabel: a number a leaf; table = component times step */
  float *step;      /* without relabel: d */
  int64_t *start;   /* with relabel: leaves + 1 */
  int32_t *index;   /* outputs of the entries */
  uint16_t *half;   /* entries; NULL: single */
  float *single;
  void *leaf; /* low memory: leaves of all rows, leaf_width bytes each */
  int32_t leaf_width;
} rpo_boost_tree;

typedef struct rpo_chunk { /* rows of one leaf, ascending, in the order of tree.rows */
  int32_t leaf;
  int32_t begin, end;
  int32_t range; /* of all rows: the one they begin in */
} rpo_chunk;

typedef struct rpo_low rpo_low; /* boost_low.h */

#define RPO_LATE 4 /* a power of two */

struct rpo_boost {
  const rpo_features *features; /* borrowed */
  const rpo_kernels *kernels;
  rpo_hist *hist;
  rpo_grow_options grow;
  rpo_projection projection;
  /* options */
  int32_t loss, leaf;
  int relabel, half, keep_loss;
  double rate, subsample, l2, min_gain;
  rpo_loss_callback callback;
  void *user;
  /* data */
  int64_t n, d, m, stride; /* rows, outputs, components; floats from row to row of scores */
  int64_t *y_start;        /* sparse Y: n + 1; NULL: dense */
  int32_t *y_index;
  float *y_value;      /* sparse: entries, NULL: ones; dense: n x stride */
  double *weight;      /* n; 0 for watched rows */
  double *watch;       /* n: weights of watched rows, else 0; NULL: none */
  float *entry_weight; /* n x stride, or NULL */
  int weighted;        /* weights of training rows are not all 1 */
  int32_t *watched;    /* their rows */
  int64_t n_watched;
  float *delta;   /* huber: by output */
  double *start;  /* d: constant scores */
  double *matrix; /* the caller's projection */
  /* state */
  rpo_low *low;     /* instead of scores; NULL: scores */
  float *kept;      /* n x stride: what is kept of scores (loss.h) */
  int64_t late;     /* trees that rows may be behind by until they are drawn: RPO_LATE or 1 */
  int64_t *settled; /* n: trees added to the scores */
  int32_t *leaf_of; /* late x n: leaves in the last trees */
  float *tables[RPO_LATE]; /* theirs: leaves x stride; what is kept of them, once labelled */
  int64_t table_room[RPO_LATE];
  float *table; /* of the tree at hand, or the last */
  float *phi;   /* m x stride; NULL: all outputs */
  int phi_is_set;
  double *z;       /* of the sample's rows: what is projected, m numbers */
  int64_t z_apart; /* from row to row */
  double *z_own;   /* NULL: z is where histograms take it up, and gone with that */
  int32_t *bag;    /* n: rows of this round's sample, ascending; behind them the others */
  int64_t n_bag;
  rpo_boost_tree *tree;
  int64_t rounds, room;
  int64_t others;                  /* rounds of the caller's learner: all of them or none */
  int64_t projected;               /* rounds + 1 once the caller was given a round's gradients */
  double *train_loss, *watch_loss; /* rounds + 1 */
  double last_seconds;
  /* scratch of one thread: rows of each kind */
  float **rows;
  int64_t block; /* rows of them */
  int threads;
  /* sums over the rows of leaves */
  rpo_chunk *chunk;
  int32_t *chunk_order; /* range by range: threads meet rows again that they had in pass 1 */
  int64_t n_chunks, chunk_room;
  float *partial; /* chunks x sums x stride */
  int64_t partial_room;
};

enum {
  RPO_ROW_SCORE,
  RPO_ROW_Y, /* zeros */
  RPO_ROW_GRADIENT,
  RPO_ROW_CURVATURE,
  RPO_ROW_MOVE,
  RPO_ROW_KINDS
};

/* Scratch of a thread: `block` rows of a kind. */
static inline float *rpo_boost_rows(const rpo_boost *b, int thread, int kind) {
  return b->rows[thread] + kind * b->block * b->stride;
}

/* The control of passes: without progress while rounds are short, since waiting to poll costs more; of
 * one thread where there is little to do. */
rpo_control rpo_boost_control(const rpo_boost *b, const rpo_control *control);
rpo_status rpo_boost_threads(rpo_boost *b, const rpo_control *control, rpo_error *err);

/* Asks for a long row of what is kept, or of the table, ahead of its turn. */
static inline void rpo_boost_ask(const rpo_boost *b, const float *row) {
  for (int64_t j = 0; j < b->stride; j += RPO_LINE) RPO_PREFETCH_MANY(row + j);
}

/* Of long rows the one so many further on is asked for: memory answers after about 12 KB. */
static inline int64_t rpo_boost_ahead(const rpo_boost *b) {
  int64_t const rows = 3072 / b->stride;
  return rows < 1 ? 1 : rows < 8 ? rows : 8;
}

/* Where the table of a round's tree is, and the leaves of all rows in it. */
static inline int64_t rpo_boost_slot(const rpo_boost *b, int64_t round) {
  return round & (b->late - 1);
}

static inline int32_t *rpo_boost_leaf_of(const rpo_boost *b, int64_t round) {
  return b->leaf_of + rpo_boost_slot(b, round) * b->n;
}

/* Whether gradients of a row need not be written down: it is of whole lines, and the library's own. */
static inline int rpo_boost_has_lines(const rpo_boost *b) {
  return b->stride % RPO_LINE == 0 && b->callback == NULL && b->entry_weight == NULL;
}

/* y of rows, spread; of sparse rows to be wiped again. */
const float *rpo_boost_spread(const rpo_boost *b, int thread, const int32_t *rows, int64_t count);
void rpo_boost_wipe(const rpo_boost *b, int thread, const int32_t *rows, int64_t count);
/* Negative gradients (and curvatures, when wanted) of the block of rows whose scores are at f, into
 * the thread's scratch. */
rpo_status rpo_boost_gradient(const rpo_boost *b, int thread, const int32_t *rows, int64_t count,
                              const float *f, int curvature, rpo_error *err);

/* y and the weight of one entry. */
static inline double rpo_boost_y(const rpo_boost *b, int64_t row, int64_t j) {
  if (b->y_start == NULL) return (double)b->y_value[row * b->stride + j];
  int64_t low = b->y_start[row], end = b->y_start[row + 1];
  while (low < end) {
    int64_t const middle = low + (end - low) / 2;
    if (b->y_index[middle] < j) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  if (low == b->y_start[row + 1] || b->y_index[low] != j) return 0.0;
  return b->y_value == NULL ? 1.0 : (double)b->y_value[low];
}

static inline double rpo_boost_weight(const rpo_boost *b, int64_t row, int64_t j) {
  double const w = b->weight[row];
  return b->entry_weight == NULL ? w : w * (double)b->entry_weight[row * b->stride + j];
}

/* Nor in the first pass: of one component. */
static inline int rpo_boost_projects_lines(const rpo_boost *b) {
  return rpo_boost_has_lines(b) && b->phi != NULL && b->m == 1;
}

/* The round's draws and its first pass: b->bag and b->z. */
rpo_status rpo_boost_begin_round(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* First pass: trees that are not yet are added, gradients of the bag are projected into z. */
rpo_status rpo_boost_update(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* Adds trees where they are missing. */
rpo_status rpo_boost_settle(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* Watched rows are settled and tell their loss. */
rpo_status rpo_boost_watch(rpo_boost *b, const rpo_control *control, double *loss, rpo_error *err);

/* Draws the round's sample, b->bag, and phi. */
rpo_status rpo_boost_draw(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* Projections become what rows add to histograms. */
rpo_status rpo_boost_put(rpo_boost *b, const rpo_control *control, rpo_error *err);
/* This round's phi, where it is drawn; where it looks at the sample's gradients. */
rpo_status rpo_boost_draw_phi(rpo_boost *b, rpo_error *err);
rpo_status rpo_boost_look_phi(rpo_boost *b, const rpo_control *control, rpo_error *err);

/* Sums over the rows of every leaf, or chunk of it: what = gradient, curvature and so on. */
typedef enum rpo_sums {
  RPO_SUM_GRADIENT, /* sum g */
  RPO_SUM_NEWTON,   /* sum g, sum h */
  RPO_SUM_STEP,     /* at F + step * v: sum g v, sum h v^2; v is the leaf's row of the table */
  RPO_SUM_SQUARES   /* sum g^2 */
} rpo_sums;
int64_t rpo_sums_count(rpo_sums what); /* 1 or 2 */
/* Fills b->partial; `step` (stride) with RPO_SUM_STEP only. */
rpo_status rpo_boost_sum(rpo_boost *b, const int32_t *rows, rpo_sums what, const float *step,
                         const rpo_control *control, rpo_error *err);
/* The rows of each leaf ascend: b->chunk has room for no more than their ranges. */
rpo_status rpo_boost_chunks(rpo_boost *b, const int32_t *rows, const int32_t *leaf_start,
                            int64_t leaves, rpo_error *err);
/* The chunks' sums, number `which`, of output 0 .. d - 1, added up over chunks first .. end - 1. */
void rpo_boost_add_chunks(const rpo_boost *b, rpo_sums what, int which, int64_t first, int64_t end,
                          double *out);

/* From any step, curvatures being 2^-120 at least, to one that is safe. */
#define RPO_HALVINGS 160

/* Labels the leaves of the new tree: b->table, and what the model keeps of it. */
rpo_status rpo_boost_label(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                           rpo_error *err);
/* The step of each output along the table's rows (one for all outputs with softmax): stride numbers.
 * `known`: b->partial has the sums of leaves (RPO_SUM_NEWTON). */
rpo_status rpo_boost_step(rpo_boost *b, const rpo_boost_tree *t, int known, float *step,
                          const rpo_control *control, rpo_error *err);
/* Whether that looks at gradients; `means`: leaves are means of them. */
int rpo_boost_searches(const rpo_boost *b, int means);
/* Median residuals of leaves, or along the table's rows: absolute loss. */
rpo_status rpo_boost_median_leaves(rpo_boost *b, const rpo_boost_tree *t,
                                   const rpo_control *control, rpo_error *err);
rpo_status rpo_boost_median_step(rpo_boost *b, const rpo_boost_tree *t, float *step,
                                 const rpo_control *control, rpo_error *err);

/* Algorithm 3, line 6: the mean of the projected gradient, a number a leaf. */
rpo_status rpo_boost_component(const rpo_boost *b, rpo_boost_tree *t, rpo_error *err);

/* Constant scores of least loss, and delta of huber. */
rpo_status rpo_boost_constants(rpo_boost *b, double quantile, const rpo_control *control,
                               rpo_error *err);

/* Scores are the constants. */
void rpo_boost_restart(rpo_boost *b);
/* Room for `rounds` rounds, and for a tree's rows of the table. */
rpo_status rpo_boost_make_room(rpo_boost *b, int64_t rounds, rpo_error *err);
rpo_status rpo_boost_table(rpo_boost *b, int64_t leaves, rpo_error *err);
/* The table's rows become what is kept of them, for passes to take in. */
rpo_status rpo_boost_keep_steps(rpo_boost *b, int64_t leaves, const rpo_control *control,
                                rpo_error *err);
/* Notes the table's rows as the model will have them, rounded when `half`; then they become what is
 * kept of them. */
rpo_status rpo_boost_keep(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                          rpo_error *err);

void rpo_boost_tree_release(rpo_boost_tree *t);
#endif
