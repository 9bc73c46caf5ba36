/* State of a growing tree. Neighbours: grower.c owns the memory, the loop*.h compute. */
#ifndef RPO_GROWER_H
#define RPO_GROWER_H
#include "by_class.h"

#define RPO_BLOCK 64         /* rows of a small node: one bit each */
#define RPO_BLOCK_COUNTED 24 /* the same, where larger nodes have a table of counts */
#define RPO_CUTS \
  16 /* values of a feature whose cuts are all summed at once, when rows have one class */

#define RPO_LIGHT 15 /* most weight of a row there */

#define RPO_WRITE_BEYOND 16 /* rows behind the scratch that may be written */

#define RPO_WIDE_ROWS 65536        /* most rows of a node whose sums of many columns go by panels */
#define RPO_WIDE_ORDERED (1 << 20) /* rows put in order, of all features of a batch */
#define RPO_GRAM_ROWS 256          /* most rows of a node whose rows are known by their products */

#define RPO_COUNTS (1 << 21) /* most counts in a table of features by labels */

/* Kinds of target as the loops see them: sums by the width of a padded row, labels by their values. */
typedef enum rpo_kind {
  RPO_KIND_SUMS_1,
  RPO_KIND_SUMS_2,
  RPO_KIND_SUMS_4,
  RPO_KIND_SUMS_8,
  RPO_KIND_SUMS_16,
  RPO_KIND_SUMS,    /* any other width */
  RPO_KIND_GRAM,    /* the same in small nodes: products of rows (loop_gram.h) */
  RPO_KIND_CLASSES, /* whole labels, one a row */
  RPO_KIND_WHOLE,   /* labels of 1 and whole weights: integer sums */
  RPO_KIND_REAL     /* other labels */
} rpo_kind;

/* Totals of the current node, inherited from the parent by subtracting the smaller child. */
typedef struct rpo_frame {
  double *sum;     /* sums: stride; labels with values: width */
  int32_t *whole;  /* whole labels: width */
  int32_t *listed; /* sparse features: rows of the node in each column's list */
  int16_t *counts; /* cols x count_stride, while counted (loop_counts.h) */
  int counted;
  uint8_t *constant; /* dense features: 1 = known constant in the node */
  double square;     /* |S|^2 */
  double norm;       /* sum of w |y|^2 */
  double weight;
} rpo_frame;

typedef struct rpo_node {
  double threshold, impurity;
  int32_t parent, child[2]; /* ids; -1: none */
  int32_t feature;          /* -1: leaf */
  int32_t start, end;       /* rows */
  uint8_t missing_left;
} rpo_node;

/* The tree of these nodes, numbered in preorder; `weight` by row. */
rpo_status rpo_tree_from_nodes(const rpo_node *nodes, int64_t n_nodes, const int32_t *samples,
                               int64_t rows, const double *weight, rpo_tree *out, rpo_error *err);

/* A node waiting to be split, best first. */
typedef struct rpo_waiting {
  uint64_t path;
  double gain;
  int32_t node, depth, middle, feature;
  uint8_t missing_left;
  double threshold;
} rpo_waiting;

typedef struct rpo_entry { /* a column's rows within a small node, as bits */
  uint64_t rows;
  int32_t feature;
  int32_t codes; /* where the codes of its rows begin, in order of rows; -1: binary */
} rpo_entry;

#define RPO_FRAMES 48 /* halvings of 2^31 rows, and of a block, and some */

struct rpo_grower {
  const rpo_features *f;
  rpo_grow_options o;
  /* the tree */
  const rpo_target *t;
  const double *weight;
  int32_t *whole_weight; /* by row, when sums are integers */
  int kind;              /* rpo_kind */
  int whole;             /* 1: integer sums */
  int lean;  /* 1: a node's totals follow from the cut that made it: the root alone has sums */
  int light; /* 1: whole weights of RPO_LIGHT at most */
  double total_weight, min_leaf_weight;
  rpo_node *nodes;
  int64_t n_nodes, node_room;
  int32_t *samples;  /* rows, a node's side by side */
  int32_t *position; /* by row: its place in samples */
  int32_t *scratch;  /* rows */
  rpo_frame frames[RPO_FRAMES];
  int64_t frame_width; /* room in a frame's sums */
  double *side;        /* one side's sums */
  int32_t *side_whole;
  /* dense features, sums of many columns (loop_wide.h, loop_gram.h) */
  int32_t *wide_place; /* by feature and place */
  double *wide_cross;  /* the same */
  double *wide_panel;
  double *wide_dot;   /* by row: w z.T */
  double *gram_room;  /* products, those of a node behind those of the one it is in */
  double *gram_dot;   /* by place in the node: z.T */
  const double *gram; /* of the node at hand */
  int64_t gram_stride;
  /* sparse binary features, whole labels (loop_counts.h) */
  int64_t count_stride; /* labels and weight, padded; 0: no tables */
  int16_t *count_total; /* the node's labels */
  /* drawing */
  int32_t *permutation; /* of features: the identity between nodes */
  int32_t *swaps;
  int32_t *drawn; /* candidates */
  double *no_hit; /* by N: chance that k of p features miss N, or of the fewest hits */
  /* lists of (code, row) */
  uint64_t *keys, *keys2;
  int64_t key_room;
  int32_t *slot; /* by feature: candidate + 1, 0 when not drawn */
  int64_t *slot_start;
  int32_t *best_rows; /* rows of the best split's listed side */
  /* small nodes */
  uint64_t *bits; /* by feature */
  rpo_entry *entries;
  int64_t entry_room;
  int32_t *block_codes;
  int64_t block_code_room;
  /* best first */
  rpo_waiting *heap;
  int64_t heap_room;
  rpo_job *job;
  int thread;
  int64_t work;       /* rows looked at since the last poll */
  int64_t total_work; /* before that, of this tree */
  rpo_error *err;
};

rpo_frame *rpo_grower_frame(rpo_grower *g, int level); /* NULL: no memory */
/* An empty table of counts. */
rpo_status rpo_grower_counts(rpo_grower *g, rpo_frame *frame);
rpo_status rpo_grower_node(rpo_grower *g, int32_t parent, int side, int32_t start, int32_t end,
                           int32_t *id);
rpo_status rpo_grower_entry_room(rpo_grower *g, int64_t entries, int64_t codes);

/* True when the work since the last look was enough to look again, and the caller wants to stop. */
static inline int rpo_grower_poll(rpo_grower *g) {
  if (rpo_stopped(g->job)) return 1;
  if (g->work < 100000) return 0;
  g->total_work += g->work;
  g->work = 0;
  return rpo_poll(g->job, g->thread);
}

/* Chance of drawing the fewest possible hits when k of p features are drawn and N are wanted. */
void rpo_fill_no_hit(int64_t p, int64_t k, double *no_hit);
#endif
