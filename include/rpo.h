/* rpo.h: the public interface of librpo, trees, forests and gradient boosting for very many outputs.
 *
 * Read from top to bottom: status and errors, threads and progress, matrices (views of your memory),
 * options, features (X, encoded once), projections (of Y), forests and what they predict, model
 * files, boosting, metrics of scores, products of sparse and dense matrices.
 *
 * In short. A matrix of inputs X (rows x inputs) is encoded once (rpo_features_new). Trees are grown
 * on it towards a matrix Y (rows x outputs): many at once as a forest (rpo_forest_fit), or one round
 * after the other (rpo_boost_new, rpo_boost_run, rpo_boost_forest). Both ways make an rpo_forest,
 * which predicts (rpo_forest_predict, rpo_forest_predict_topk) and is kept in a file
 * (rpo_forest_save, rpo_forest_load). Models fitted by the Python package pyrpo are the same files.
 *
 * The papers: Joly, Geurts and Wehenkel, "Random forests with random projections of the output space
 * for high dimensional multi-label classification", 2014 (forest paper); Joly, Wehenkel and Geurts,
 * "Gradient tree boosting with random output projections for multi-label classification and
 * multi-output regression", 2017 (boosting paper).
 *
 * Errors. Every function that can fail returns an rpo_status and, when `err` is not NULL, fills it
 * with a sentence that names the argument at fault. A failed call makes no handle and has no effect,
 * but an array it was to fill may be filled in part: when it was cancelled, ran out of memory, or met
 * a wrong number on the way that it had to read the data for.
 * Pointers are required unless NULL is said to be allowed; a missing one is RPO_EINVAL.
 *
 * Memory. What is const is borrowed for the duration of the call only: free or change it afterwards
 * (rpo_boost alone keeps a pointer, to its features). Handles come through `out` from *_new, *_fit,
 * *_load, *_parse and the like, belong to the caller, and end with their *_free, which accepts NULL;
 * the library allocates nothing else for the caller, who also owns every array that is filled. Arrays
 * named "n x d" are dense, row after row: number j of row i is at [i * d + j]. Rows, columns, trees,
 * nodes and outputs are counted from 0, sizes in items, not bytes, unless said otherwise.
 *
 * Threads. Fitted handles never change: any number of threads may use one at the same time. Options
 * and runs of boosting change, and belong to one thread at a time. The library prints nothing, exits
 * nowhere, takes no signals and keeps no global state. The same seed gives the same bits for any
 * number of threads and any instruction set.
 *
 * Versions follow semantic versioning: what is compiled against one version runs with all later ones
 * of the same major version (before 1.0: of the same minor one), which is what the soname tells. Ids
 * and values of enums are never renumbered, new ones may be added; `reserved` fields are to be 0.
 */
#ifndef RPO_H
#define RPO_H

#include <stdint.h>

/* How the functions are declared: nothing a user sets. */
#ifndef RPO_API
#if defined(_WIN32)
#define RPO_API
#elif defined(__GNUC__)
#define RPO_API __attribute__((visibility("default")))
#else
#define RPO_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and errors ----------------------------------------------------------------------- */

typedef enum rpo_status {
  RPO_OK = 0,
  RPO_EINVAL = 1,    /* an argument is wrong; the message says which and why */
  RPO_ENOMEM = 2,    /* an allocation failed, or a size does not fit the machine */
  RPO_ECANCELED = 3, /* the progress callback asked to stop */
  RPO_EFORMAT = 4,   /* a model file or buffer is damaged or of an unknown version */
  RPO_EIO = 5        /* a file could not be opened, read or written */
} rpo_status;

typedef struct rpo_error {
  int32_t code;      /* an rpo_status */
  int32_t reserved;  /* 0 */
  char message[248]; /* a sentence, zero-terminated */
} rpo_error;

/* Version of the library, "major.minor.patch"; a string that needs no free, as the next one. */
RPO_API const char *rpo_version(void);

/* Name of the instruction set the hot loops were picked for: "baseline", "avx2", "avx512". */
RPO_API const char *rpo_instruction_set(void);

/* 1 when the library was built with OpenMP, else 0 (then every call runs on one thread). */
RPO_API int32_t rpo_has_openmp(void);

/* ---- Threads, progress, cancelling ----------------------------------------------------------- */

/* Called from time to time, on the calling thread only, by every long call. `done` of `total` units
 * of work (trees, rounds, columns, blocks of rows) are finished. A non-zero return cancels: the
 * call returns RPO_ECANCELED within 0.2 s with everything released. It must not leave by longjmp or
 * by an exception. */
typedef int32_t (*rpo_progress_fn)(void *user, int64_t done, int64_t total);

/* How a call runs; a NULL control is {1, 0, NULL, NULL, NULL}. In the child of a fork() whose parent
 * had used several threads through this library, calls use one. (A parent that used OpenMP otherwise
 * must ask for one thread in its children itself: their threads are gone.) */
typedef struct rpo_control {
  int32_t n_threads;        /* threads to use; below 1: 1; at most 4 a processor, or 16 */
  int32_t reserved;         /* 0 */
  rpo_progress_fn progress; /* NULL: none */
  void *user;               /* handed to progress */
  double *work; /* NULL, or where rpo_forest_fit adds the operations it counted: the same
                               for any number of threads, roughly in proportion to the time */
} rpo_control;

/* ---- Matrices: views of the caller's memory -------------------------------------------------- */

typedef enum rpo_dtype { RPO_F32 = 0, RPO_F64 = 1 } rpo_dtype;
typedef enum rpo_format { RPO_DENSE = 0, RPO_CSR = 1, RPO_CSC = 2 } rpo_format;
typedef enum rpo_index { RPO_I32 = 0, RPO_I64 = 1 } rpo_index;

/* A matrix as the caller has it: 1 to 2^31 - 2 rows and as many columns, dense of any strides (a
 * transpose exchanges them, a submatrix keeps them), compressed by rows (CSR) or by columns (CSC).
 * In the compressed forms row (column) i has the entries indptr[i] .. indptr[i + 1] - 1, indptr[0]
 * is 0, and what is not stored is 0. Which formats a function takes is said there: dense and CSR,
 * mostly. */
typedef struct rpo_matrix {
  int64_t rows, cols;
  int32_t format;      /* rpo_format */
  int32_t dtype;       /* rpo_dtype of data */
  int32_t index;       /* rpo_index of indptr and indices (CSR, CSC) */
  int32_t reserved;    /* 0 */
  const void *data;    /* dense: values; CSR, CSC: stored values, NULL when every one is 1 */
  int64_t row_stride;  /* dense: items from one row to the next */
  int64_t col_stride;  /* dense: items from one column to the next */
  const void *indptr;  /* CSR: rows + 1 offsets; CSC: cols + 1 offsets */
  const void *indices; /* CSR: columns, CSC: rows; distinct within a row (a column) */
} rpo_matrix;

/* ---- Options: one table of numbers ----------------------------------------------------------- */

/* What can be set: whole numbers unless "Real" is said. rpo_option_info tells the same, and all
 * bounds, to programs. */
typedef enum rpo_option {
  /* Of trees, in forests and boosting: */

  /* Key of every random draw, up to 2^53. Default 0. */
  RPO_OPT_SEED = 1,
  /* Trees of a forest; boosting is told its rounds instead. Default 100. */
  RPO_OPT_N_TREES = 2,
  /* Number of the first tree: grows trees first .. first + n - 1 of the forest of this seed,
   * so that a forest can be grown in parts (rpo_forest_pick joins them). Default 0. */
  RPO_OPT_FIRST_TREE = 3,
  /* Deepest leaf, the root being at 0; 0: no limit. Default 0. */
  RPO_OPT_MAX_DEPTH = 10,
  /* A node with fewer rows is a leaf. Default 2. */
  RPO_OPT_MIN_SAMPLES_SPLIT = 11,
  /* Fewest rows in a leaf. Default 1. */
  RPO_OPT_MIN_SAMPLES_LEAF = 12,
  /* Real: smallest share of the total weight in a leaf, up to 0.5. Default 0. */
  RPO_OPT_MIN_WEIGHT_FRACTION_LEAF = 13,
  /* Features drawn at a node, of which the best is taken; 0: all. Default 0. */
  RPO_OPT_MAX_FEATURES = 14,
  /* Most leaves, grown best first; 0: no limit, grown depth first. Default 0. */
  RPO_OPT_MAX_LEAF_NODES = 15,
  /* Real: smallest decrease of impurity of a split, weighted by the node's share of the
   * weight. Default 0. */
  RPO_OPT_MIN_IMPURITY_DECREASE = 16,
  /* Forests only. 1: one cut a feature, uniform between the node's smallest and largest value
   * (extra-trees), instead of the best. Default 0. */
  RPO_OPT_RANDOM_CUT = 17,
  /* 1: draw until max_features features are not constant in the node, instead of one at least.
   * Default 0. */
  RPO_OPT_DRAW_NON_CONSTANT = 18,

  /* Of forests: */

  /* Real: cost-complexity pruning; 0: none. Default 0. */
  RPO_OPT_CCP_ALPHA = 19,
  /* Real: factor from the sum of the outputs' variances to the impurity that is reported and
   * compared, 0 to 1e30. Default 1. */
  RPO_OPT_IMPURITY_SCALE = 20,
  /* 1: each tree sees rows drawn with replacement, in proportion to their weights. Default 0. */
  RPO_OPT_BOOTSTRAP = 30,
  /* Draws of a bootstrap; 0: as many as rows. Default 0. */
  RPO_OPT_MAX_SAMPLES = 31,
  /* An rpo_balance: weights of classes, with bootstrap only. Default 0. */
  RPO_OPT_BALANCE = 32,
  /* 1: labels are d numerators, then d denominators, and the ratio of their sums is predicted:
   * outputs that some rows lack (0 and 0 there). Default 0. */
  RPO_OPT_LABEL_RATIO = 40,

  /* Of boosting: */

  /* An rpo_loss. Default 0. */
  RPO_OPT_LOSS = 50,
  /* Real: factor of every step, 1e-6 to 1. Default 0.1. */
  RPO_OPT_LEARNING_RATE = 51,
  /* Real: share of the rows that a round sees, drawn without replacement; 1e-9 to 1.
   * Default 1. */
  RPO_OPT_SUBSAMPLE = 52,
  /* 1: leaves hold all outputs; 0: a tree says one number of a row, of which every output
   * takes a multiple. Default 1. */
  RPO_OPT_RELABEL = 53,
  /* An rpo_leaf. Default 0. */
  RPO_OPT_LEAF = 54,
  /* Real: added to the curvature of Newton steps. Default 0. */
  RPO_OPT_L2 = 55,
  /* Real: Huber's delta of an output is this quantile of its distances from the median.
   * Default 0.9. */
  RPO_OPT_HUBER_QUANTILE = 56,
  /* Real: outputs whose loss a leaf's Newton step lowers by less are left as they are, which
   * makes leaves sparse. Default 0. */
  RPO_OPT_LEAF_MIN_GAIN = 57,
  /* 1: leaves hold 16-bit numbers, in memory and in files. Default 0. */
  RPO_OPT_HALF = 58,
  /* 1: the loss of the rows in each round's sample is kept for rpo_boost_losses. Default 0. */
  RPO_OPT_TRAIN_LOSS = 59
} rpo_option;

/* Values of the option balance: weights of the rows of a tree, on top of how often its bootstrap
 * sample drew them, by the frequencies of classes in that sample. Labels must then be CSR and ones.
 * A row of class c weighs draws / (classes * frequency of c), classes absent from the sample not
 * counted. Of LABELS each column has the classes 0 and 1, and a row's weights are multiplied (all
 * by one more factor where the product would leave the range of doubles). */
typedef enum rpo_balance {
  RPO_BALANCE_NONE = 0,
  RPO_BALANCE_CLASSES = 1, /* one class a row: a single entry in each row of labels */
  RPO_BALANCE_LABELS = 2
} rpo_balance;

typedef struct rpo_options rpo_options; /* opaque */

/* A table of options, each at its default. It is read by fits, never changed by them. */
RPO_API rpo_status rpo_options_new(rpo_options **out, rpo_error *err);
RPO_API void rpo_options_free(rpo_options *options);

/* Sets option `id` (an rpo_option). A value outside its bounds, or a fraction where a whole number
 * is meant, is refused, never clamped. */
RPO_API rpo_status rpo_options_set(rpo_options *options, int32_t id, double value, rpo_error *err);

/* Describes the option at `position` (0, 1, ...) of the table: its id, name, default, bounds and
 * meaning. Any output may be NULL; the strings need no free. RPO_EINVAL past the last one. */
RPO_API rpo_status rpo_option_info(int32_t position, int32_t *id, const char **name,
                                   double *fallback, double *low, double *high, const char **text,
                                   rpo_error *err);

/* ---- Features: X encoded once, for all trees ------------------------------------------------- */

/* X by columns: the distinct values of each, or bins of them, and every row's code, the number of
 * its value or bin, in the narrowest type. Opaque, never changed; any number of fits may share it. */
typedef struct rpo_features rpo_features;

/* Encodes X (dense, CSR or CSC; NaN = missing; infinities refused). `max_bins` 0 keeps every
 * distinct value (exact splits); b >= 2 groups each column into at most b bins of about equal
 * weight, which makes boosting faster (255 is usual). A mostly-zero X, dense or sparse, is kept in
 * sparse form. */
RPO_API rpo_status rpo_features_new(const rpo_matrix *X, int32_t max_bins,
                                    const rpo_control *control, rpo_features **out, rpo_error *err);
/* Encodes X with the bins of `like`, so that several machines share edges. A value between two bins
 * goes to the nearer one. */
RPO_API rpo_status rpo_features_like(const rpo_matrix *X, const rpo_features *like,
                                     const rpo_control *control, rpo_features **out,
                                     rpo_error *err);
RPO_API void rpo_features_free(rpo_features *features);

/* Sizes; 0 of a NULL handle, as of all such functions below. */
RPO_API int64_t rpo_features_rows(const rpo_features *features);
RPO_API int64_t rpo_features_cols(const rpo_features *features);
RPO_API int64_t rpo_features_bytes(const rpo_features *features);     /* memory held, bytes */
RPO_API int32_t rpo_features_is_sparse(const rpo_features *features); /* 1: sparse form */
/* Number of bins of one column (missing not counted), 0 when col is out of range. */
RPO_API int64_t rpo_features_bins(const rpo_features *features, int64_t col);
/* Smallest and largest value of each bin of one column: two arrays of rpo_features_bins numbers. */
RPO_API rpo_status rpo_features_edges(const rpo_features *features, int64_t col, double *low,
                                      double *high, rpo_error *err);
/* Code of every row in one column (rows numbers); missing is rpo_features_bins(col). */
RPO_API rpo_status rpo_features_codes(const rpo_features *features, int64_t col, int32_t *codes,
                                      rpo_error *err);

/* ---- Projections of the output space --------------------------------------------------------- */

/* Splits may be searched on a few random combinations of the outputs, Z = Y Phi^T with Phi of m x d,
 * instead of all d outputs: variances of Z estimate those of Y (forest paper, section 2.2). Leaves
 * hold the original outputs all the same. */
typedef enum rpo_projection_kind {
  RPO_PROJECT_NONE = 0,       /* the original outputs */
  RPO_PROJECT_GAUSSIAN = 1,   /* N(0, 1/m) */
  RPO_PROJECT_RADEMACHER = 2, /* +-sqrt(s/m) with probability 1/(2s) each, else 0 */
  RPO_PROJECT_HADAMARD = 3,   /* m rows of the Hadamard matrix of the next power of 2, / sqrt(m) */
  RPO_PROJECT_SUBSAMPLE = 4,  /* m outputs, without replacement, times sqrt(d/m) */
  RPO_PROJECT_SUBSAMPLE_REPLACED = 5, /* the same with replacement */
  RPO_PROJECT_MATRIX = 6,             /* the caller's m x d matrix */
  /* boosting only: */
  RPO_PROJECT_TOP = 7,          /* the m outputs of largest gradient */
  RPO_PROJECT_NORM_SAMPLING = 8 /* m outputs, drawn with replacement by squared gradient, scaled so
                                   that squared lengths are right on average */
} rpo_projection_kind;

/* The projection {RPO_PROJECT_GAUSSIAN, 0, m, 0.0, 0, 0, NULL} is a good one. Fits copy what they
 * need of it. */
typedef struct rpo_projection {
  int32_t kind;         /* rpo_projection_kind */
  int32_t shared;       /* forests: 1 = one subspace for all trees (Algorithm 1), 0 = one a tree */
  int64_t components;   /* m >= 1, without replacement up to d; with MATRIX the rows of matrix */
  double sparsity;      /* s >= 1, RADEMACHER only: 1 none, 3 two thirds of the entries are 0 */
  uint64_t seed;        /* with `stream`, the key of the draw; fits use the option seed instead */
  uint64_t stream;      /* 0, 1, ...: independent draws of one seed (fits: the tree or round) */
  const double *matrix; /* MATRIX: components x d, row after row; else NULL. In boosting no entry is
                         * beyond 1e9 in size, nor sparsity beyond 1e18 */
} rpo_projection;

/* Writes Phi, m x d, of d outputs. Not of the kinds for boosting only. */
RPO_API rpo_status rpo_projection_draw(const rpo_projection *projection, int64_t d, double *phi,
                                       rpo_error *err);
/* Z = Y Phi^T: Y is n x d (dense or CSR, finite), Z is n x m. Phi is never stored whole:
 * only its columns of outputs that occur in Y. */
RPO_API rpo_status rpo_projection_apply(const rpo_projection *projection, const rpo_matrix *Y,
                                        const rpo_control *control, double *Z, rpo_error *err);

/* ---- Forests --------------------------------------------------------------------------------- */

/* A model: a number of trees and what their leaves say of the outputs; made by rpo_forest_fit, by
 * rpo_boost_forest or from a file. Opaque, never changed. A fully grown forest keeps its training
 * labels, of which its leaves are means (rpo_forest_has_rows): mind whom you give it to.
 *
 * Every function that reads X takes it dense or CSR, of any float type, NaN = missing, infinities
 * refused, with rpo_forest_inputs columns; rows in any number unless it must be the X of the fit. */
typedef struct rpo_forest rpo_forest;

/* Grows a forest of regression trees on all outputs together; labels of 0 and 1 make it a classifier
 * of labels, one 1 in each row one of classes, and its predictions their probabilities. Splits
 * maximise the decrease of the target's summed variance.
 *   options     those of trees and of forests
 *   features    X, n rows; borrowed for the call
 *   target      what the split search sees: n x q, dense or CSR, finite, of size 1e100 at most
 *   labels      what the leaves hold: n x d, dense or CSR, as target; NULL: target. With the option
 *               label_ratio, 2d columns: numerators, then denominators, of d outputs
 *   fallback    label_ratio only: d values predicted where the denominator is 0; else not looked at
 *   weight      n weights of 0 to 1e50, together 1e-50 at least; NULL: ones. So are weights of rows
 *               in every function that reads forests
 *   projection  applied to target; NULL: none */
RPO_API rpo_status rpo_forest_fit(const rpo_options *options, const rpo_features *features,
                                  const rpo_matrix *target, const rpo_matrix *labels,
                                  const double *fallback, const double *weight,
                                  const rpo_projection *projection, const rpo_control *control,
                                  rpo_forest **out, rpo_error *err);
/* The same trees with every training row in their leaves, in a new forest: their structure is that
 * of each tree's bootstrap sample, their predictions are means over all rows. features, labels and
 * weight are those of the fit, or made again like them; every leaf must receive a row. Importances stay those of the samples. */
RPO_API rpo_status rpo_forest_relabel(const rpo_forest *forest, const rpo_features *features,
                                      const rpo_matrix *labels, const double *weight,
                                      const rpo_control *control, rpo_forest **out, rpo_error *err);
RPO_API void rpo_forest_free(rpo_forest *forest);

RPO_API int64_t rpo_forest_trees(const rpo_forest *forest);
RPO_API int64_t rpo_forest_inputs(const rpo_forest *forest);  /* columns X must have */
RPO_API int64_t rpo_forest_outputs(const rpo_forest *forest); /* d, columns of a prediction */
RPO_API int64_t rpo_forest_rows(const rpo_forest *forest);    /* training rows */
RPO_API int64_t rpo_forest_bytes(const rpo_forest *forest); /* memory = file, without a new note */
/* 1 when the leaves are kept as training rows, 0 when a table of their values is smaller. */
RPO_API int32_t rpo_forest_has_rows(const rpo_forest *forest);

/* What the model says: out is rows x outputs. Of a forest the mean over its trees, hence shares
 * (probabilities) where labels are 0 and 1; of a boosted model its scores, constants plus the sum
 * over its trees: see rpo_loss for what they mean. */
RPO_API rpo_status rpo_forest_predict(const rpo_forest *forest, const rpo_matrix *X,
                                      const rpo_control *control, double *out, rpo_error *err);
/* The k best outputs of each row (1 <= k <= outputs), best first, ties by lower output: out_index
 * and out_score are rows x k, the scores those of rpo_forest_predict. No rows x outputs array is
 * made. */
RPO_API rpo_status rpo_forest_predict_topk(const rpo_forest *forest, const rpo_matrix *X, int64_t k,
                                           const rpo_control *control, int64_t *out_index,
                                           double *out_score, rpo_error *err);
/* Out-of-bag predictions of the training rows (X as in fit): each row by the trees whose bootstrap
 * sample left it out. Of a forest that rpo_forest_relabel made, the row's own label is left out of
 * the leaves, and `labels` must be given again; else they may be NULL. out is rows x outputs;
 * counts, one a row, says how many trees did (0: out is NaN) and may be NULL. `weight` as in
 * rpo_forest_fit: it steered the draws. */
RPO_API rpo_status rpo_forest_predict_oob(const rpo_forest *forest, const rpo_matrix *X,
                                          const rpo_matrix *labels, const double *weight,
                                          const rpo_control *control, double *out, int64_t *counts,
                                          rpo_error *err);
/* How well trees that have not seen a row predict it, alone and together. X and Y (rows x outputs,
 * as in rpo_forest_fit) are training rows, `rows` their numbers; a tree without bootstrap counts as
 * not having seen them. out is rows x 3: the number b of trees that count; the sum over these trees
 * a of |f_a - y|^2; the sum over their pairs a != b of (f_a - y) . (f_b - y). The mean over pairs
 * estimates without bias the squared error of infinitely many trees, the mean over trees that of
 * one. Forests that rpo_forest_relabel made are refused. */
RPO_API rpo_status rpo_forest_agreement(const rpo_forest *forest, const rpo_matrix *X,
                                        const rpo_matrix *Y, const int64_t *rows,
                                        const double *weight, const rpo_control *control,
                                        double *out, rpo_error *err);
/* Node each row ends in, by tree: out is rows x trees, nodes numbered in preorder from 0. */
RPO_API rpo_status rpo_forest_apply(const rpo_forest *forest, const rpo_matrix *X,
                                    const rpo_control *control, int64_t *out, rpo_error *err);
/* Nodes each row passes, in CSR form over all trees' nodes (tree t's begin at node_start[t]).
 * With `columns` NULL only indptr (rows + 1) is filled; then call again, with the same X, that indptr
 * and room for indptr[rows] columns: an indptr that does not agree is refused.
 * node_start has trees + 1 entries and may be NULL. */
RPO_API rpo_status rpo_forest_paths(const rpo_forest *forest, const rpo_matrix *X,
                                    const rpo_control *control, int64_t *node_start,
                                    int64_t *indptr, int64_t *columns, rpo_error *err);
/* The training rows of every leaf and their weights, for rpo_forest_weights. A forest with
 * rpo_forest_has_rows keeps them; this makes them again from X and `weight` (NULL: ones) as they
 * were in rpo_forest_fit: X goes down the trees, bootstrap samples are drawn again. What does not
 * agree with the forest's leaves is refused; so are forests of RPO_OPT_BALANCE, whose weights
 * depend on Y. */
typedef struct rpo_leaf_rows rpo_leaf_rows;
RPO_API rpo_status rpo_leaf_rows_new(const rpo_forest *forest, const rpo_matrix *X,
                                     const double *weight, const rpo_control *control,
                                     rpo_leaf_rows **out, rpo_error *err);
RPO_API void rpo_leaf_rows_free(rpo_leaf_rows *leaf_rows);
/* Weights of the training rows in each prediction (rows sum to 1), in CSR form; two calls as above.
 * Columns are sorted. `leaf_rows`, of this forest, may be NULL when rpo_forest_has_rows. */
RPO_API rpo_status rpo_forest_weights(const rpo_forest *forest, const rpo_leaf_rows *leaf_rows,
                                      const rpo_matrix *X, const rpo_control *control,
                                      int64_t *indptr, int64_t *columns, double *values,
                                      rpo_error *err);
/* Mean decrease in impurity by feature, each tree scaled to sum 1: out has inputs numbers, whose sum
 * is 1, or 0 where no tree has a split. */
RPO_API rpo_status rpo_forest_importances(const rpo_forest *forest, double *out, rpo_error *err);
/* The same in the variance of other outputs than those the splits were found on, above all of the
 * original ones (dense or CSR) where trees were grown on projections. X and weight are those of the
 * fit, which is checked: each tree's sample is drawn again. Not for samples weighed by
 * RPO_OPT_BALANCE. Takes each row's outputs about log(rows) times a tree. */
RPO_API rpo_status rpo_forest_importances_on(const rpo_forest *forest, const rpo_matrix *X,
                                             const rpo_matrix *target, const double *weight,
                                             const rpo_control *control, double *out,
                                             rpo_error *err);

/* One tree as flat arrays of rpo_forest_tree_nodes items that belong to the caller, nodes in
 * preorder; any pointer may be NULL. */
typedef struct rpo_tree_arrays {
  int64_t *left, *right; /* child nodes, -1 at a leaf */
  int64_t *feature;      /* -2 at a leaf */
  double *threshold;     /* x <= threshold goes left; -2 at a leaf */
  double *impurity;      /* summed variance of the target in the node, times impurity_scale */
  int64_t *n_samples;    /* distinct training rows in it */
  double *weight;        /* their total weight, with the number of times they were drawn */
  uint8_t *missing_left; /* 1: missing values go left */
} rpo_tree_arrays;
RPO_API int64_t rpo_forest_tree_nodes(const rpo_forest *forest,
                                      int64_t tree); /* -1: no such tree */
RPO_API rpo_status rpo_forest_tree(const rpo_forest *forest, int64_t tree,
                                   const rpo_tree_arrays *arrays, rpo_error *err);
/* Predicted outputs of every node of a tree, as if it were a leaf: out is nodes x outputs. */
RPO_API rpo_status rpo_forest_tree_values(const rpo_forest *forest, int64_t tree, double *out,
                                          rpo_error *err);

/* Single target: forests of one output each, on the same features and rows, as one model, whose
 * output j is predicted by the trees of forests[j]. Its leaves keep no training rows; values of a
 * single tree are multiplied by the number of forests. */
RPO_API rpo_status rpo_forest_beside(const rpo_forest *const *forests, int64_t n_forests,
                                     rpo_forest **out, rpo_error *err);
/* A new forest of `count` of the trees of `forests`: pick[2i] is the forest, pick[2i+1] the tree.
 * All must come from the same training labels, and their leaves must hold the same rows: those of
 * bootstrap samples or all (trees grown on all rows go with either). So are forests joined, cut short
 * or reordered. */
RPO_API rpo_status rpo_forest_pick(const rpo_forest *const *forests, int64_t n_forests,
                                   const int64_t *pick, int64_t count, rpo_forest **out,
                                   rpo_error *err);

/* The same forest without its training labels: where the leaves are kept as training rows and their
 * labels, they become a table of values. Predictions are the same to rounding, the file may be larger
 * or smaller. weights, predict_oob and relabel then need the training data again, as they do of every
 * forest whose leaves are a table. Of other forests, boosted ones too, a copy, with its note if it has
 * one; else the note is left behind. */
RPO_API rpo_status rpo_forest_drop_labels(const rpo_forest *forest, const rpo_control *control,
                                          rpo_forest **out, rpo_error *err);

/* Model files (docs/format.md): little-endian, the same in memory as on disk. Saving is atomic: the
 * file at `path` is the old one or the new one at any moment, and a failed call leaves the old one.
 * What is no regular file (a pipe, a device) is written to directly; a pipe that nobody reads sends
 * SIGPIPE, as to every program. `note_bytes` bytes of the
 * caller's own (its parameters, say) travel with the model; 0: none. */
RPO_API rpo_status rpo_forest_save(const rpo_forest *forest, const char *path, const void *note,
                                   int64_t note_bytes, rpo_error *err);
/* The note of a loaded model, owned by it, and its length; NULL and 0 when there is none. */
RPO_API const void *rpo_forest_note(const rpo_forest *forest, int64_t *note_bytes);
/* Reads a file and checks every checksum, offset and index in it. */
RPO_API rpo_status rpo_forest_load(const char *path, rpo_forest **out, rpo_error *err);
/* Maps a file into memory, read-only, instead of reading it: the time does not depend on its size, and
 * processes that map one file share its pages. Only header, section bounds and where trees begin are
 * checked, no checksum; calls check each index before they use it, or all of them first, and answer
 * RPO_EFORMAT where one points nowhere. The file must not be changed or cut short in place while it is
 * mapped (replacing it, as rpo_forest_save does, is harmless). Where files cannot be mapped
 * (Windows, big-endian machines), this is rpo_forest_load. */
RPO_API rpo_status rpo_forest_open_mapped(const char *path, rpo_forest **out, rpo_error *err);
/* 1 when the forest is a mapped file. */
RPO_API int32_t rpo_forest_is_mapped(const rpo_forest *forest);
/* The same through memory: dump writes rpo_forest_bytes(forest) bytes, the note that it was loaded
 * with among them; parse checks as load does. */
RPO_API rpo_status rpo_forest_dump(const rpo_forest *forest, void *buffer, rpo_error *err);
RPO_API rpo_status rpo_forest_parse(const void *buffer, int64_t bytes, rpo_forest **out,
                                    rpo_error *err);

/* ---- Any model file ------------------------------------------------------------------------------ */

typedef enum rpo_model_kind {
  RPO_MODEL_FOREST = 1, /* trees: rpo_forest_load */
  RPO_MODEL_ARRAYS = 2  /* named arrays: rpo_arrays_load */
} rpo_model_kind;

/* Types of numbers in files: never renumbered. */
typedef enum rpo_type {
  RPO_TYPE_U8 = 1,
  RPO_TYPE_U16 = 2,
  RPO_TYPE_I16 = 3,
  RPO_TYPE_I32 = 4,
  RPO_TYPE_I64 = 5,
  RPO_TYPE_F32 = 6,
  RPO_TYPE_F64 = 7,
  RPO_TYPE_F16 = 8 /* IEEE half precision */
} rpo_type;

/* What a file says of itself. */
typedef struct rpo_model_info {
  int32_t kind; /* an rpo_model_kind, or a number that this library does not know */
  int32_t version;
  int64_t bytes, sections;
  int64_t damaged;                      /* sections whose checksum is wrong */
  int64_t trees, inputs, outputs, rows; /* of forests, as the file says; else 0 */
} rpo_model_info;

typedef struct rpo_section_info {
  char name[24]; /* what it holds, "thresholds"; zero-terminated */
  uint32_t id;
  int32_t type;          /* an rpo_type */
  int64_t offset, count; /* from the file's beginning in bytes; numbers */
  int32_t good;          /* 1: its checksum is right */
  int32_t reserved;      /* 0 */
} rpo_section_info;

/* Looks into a file without loading it. *info is filled; of the sections the first `room`, in the order
 * of the file (`sections` may be NULL when room is 0). RPO_EFORMAT when header or table of sections
 * are damaged; damage of sections is told in `good`. */
RPO_API rpo_status rpo_model_inspect(const char *path, rpo_model_info *info,
                                     rpo_section_info *sections, int64_t room, rpo_error *err);

/* Named arrays in a file of the same format: what models other than trees consist of. */
typedef struct rpo_named_array {
  const char *name; /* zero-terminated */
  int32_t type;     /* an rpo_type */
  int32_t dims;     /* 0 to 4 */
  int64_t shape[4]; /* lengths of the dims, beyond them 1 */
  const void *data; /* the product of `shape` numbers, the last dimension's next to each other */
} rpo_named_array;

/* Saves `count` arrays with different names, atomically, as rpo_forest_save does. */
RPO_API rpo_status rpo_arrays_save(const rpo_named_array *arrays, int64_t count, const char *path,
                                   const void *note, int64_t note_bytes, rpo_error *err);

typedef struct rpo_arrays rpo_arrays; /* opaque, immutable */

/* Reads such a file and checks every checksum; `mapped` 1: maps it as rpo_forest_open_mapped does. */
RPO_API rpo_status rpo_arrays_load(const char *path, int32_t mapped, rpo_arrays **out,
                                   rpo_error *err);
/* The same of `bytes` bytes in memory, which are copied. */
RPO_API rpo_status rpo_arrays_parse(const void *buffer, int64_t bytes, rpo_arrays **out,
                                    rpo_error *err);
RPO_API void rpo_arrays_free(rpo_arrays *arrays);
RPO_API int64_t rpo_arrays_count(const rpo_arrays *arrays);
/* Array i, 0 .. count - 1; name and data belong to the handle. */
RPO_API rpo_status rpo_arrays_get(const rpo_arrays *arrays, int64_t i, rpo_named_array *out,
                                  rpo_error *err);
/* The note, owned by the handle, and its length; NULL and 0 when there is none. */
RPO_API const void *rpo_arrays_note(const rpo_arrays *arrays, int64_t *note_bytes);

/* ---- Boosting (boosting paper, Algorithms 2 to 4) -------------------------------------------- */

/* Losses of scores F against outputs y. Of the binary ones Y holds zeros and ones, and F is the
 * log-odds: p = 1 / (1 + e^-F). */
typedef enum rpo_loss {
  RPO_LOSS_SQUARED = 0,     /* (y - F)^2 / 2 */
  RPO_LOSS_ABSOLUTE = 1,    /* |y - F| */
  RPO_LOSS_HUBER = 2,       /* squared up to delta, linear beyond: see huber_quantile */
  RPO_LOSS_LOGISTIC = 3,    /* log(1 + e^-sF), s = 2y - 1 */
  RPO_LOSS_EXPONENTIAL = 4, /* e^(-sF/2) */
  RPO_LOSS_SOFTMAX = 5,     /* one class a row: log sum e^F - F_y */
  RPO_LOSS_CUSTOM = 6       /* the caller's */
} rpo_loss;

/* Values of the option leaf: what a leaf adds to the scores. */
typedef enum rpo_leaf {
  RPO_LEAF_NEWTON = 0, /* by output: gradient over curvature (absolute loss: the median residual) */
  RPO_LEAF_MEAN = 1    /* the mean negative gradient, times a step found by line search */
} rpo_leaf;

/* A caller's loss: fills negative gradients g and curvatures h (h NULL: not wanted) of `count`
 * rows, whose numbers are `row` and whose scores are f; all count x d, row after row. Called by the
 * calling thread only. Both must be finite, else the round fails with RPO_EINVAL; an output whose
 * curvatures in a leaf sum to -l2 or less takes no step there by RPO_LEAF_NEWTON. A non-zero return
 * cancels. */
typedef int32_t (*rpo_loss_callback)(void *user, int64_t count, const int32_t *row, const float *f,
                                     float *g, float *h);

/* What is boosted; all of it is copied. n: rows of the features, d: outputs. */
typedef struct rpo_boost_data {
  const rpo_matrix *Y;            /* n x d, dense or CSR, finite; softmax: one 1 in each row */
  const double *weight;           /* n, not negative; NULL: ones */
  const rpo_matrix *entry_weight; /* n x d, dense: factors of single entries; 0: not observed.
                                     NULL: ones */
  const uint8_t *watched;         /* n: 1 = not trained on, its loss is told; NULL: none */
  const double *start;            /* d: the constant scores, of size 1e20 at most, of binary losses
                                     80; NULL: those of least loss, of a caller's the means of Y */
  rpo_loss_callback loss;         /* with RPO_LOSS_CUSTOM, and only then; else NULL */
  void *user;                     /* handed to it */
} rpo_boost_data;

/* A run of boosting, changed by each round; one thread at a time may use it. Borrows `features`, and
 * nothing else, until it is freed. */
typedef struct rpo_boost rpo_boost;

/* Starts a run. Options: seed, the trees' but for random_cut, and boosting's. `projection` NULL:
 * trees are grown on all outputs (Algorithm 2). Without relabel, a tree has one component, and
 * every output takes a multiple of it (Algorithm 3); with it leaves are labelled with all outputs
 * (Algorithm 4): a Gaussian projection to one component is a good choice with many outputs. */
RPO_API rpo_status rpo_boost_new(const rpo_options *options, const rpo_features *features,
                                 const rpo_boost_data *data, const rpo_projection *projection,
                                 const rpo_control *control, rpo_boost **out, rpo_error *err);
RPO_API void rpo_boost_free(rpo_boost *boost);
/* Goes on from a model of the same options and data: the rounds it has are taken over. Only before
 * the first round. */
RPO_API rpo_status rpo_boost_resume(rpo_boost *boost, const rpo_forest *forest,
                                    const rpo_control *control, rpo_error *err);
/* Runs `rounds` more rounds, a tree each. When cancelled, the rounds that were completed stay. */
RPO_API rpo_status rpo_boost_run(rpo_boost *boost, int64_t rounds, const rpo_control *control,
                                 rpo_error *err);
/* Rounds run so far. */
RPO_API int64_t rpo_boost_rounds(const rpo_boost *boost);
/* Mean loss of an entry of Y (softmax: of a row) by round, from before the first: rounds + 1 numbers
 * each, NaN where it is not known. Of training rows, those in the round's sample before it began (of
 * more than 2^20 scores one row in 16), with the option train_loss; of watched rows. Of binary losses
 * scores count as rpo_boost_scores has them. Either may be NULL. */
RPO_API rpo_status rpo_boost_losses(rpo_boost *boost, double *train, double *watched,
                                    rpo_error *err);
/* Scores of `count` rows of the features: count x d. A run adds them up in its own way, of the binary
 * losses as odds: they are predictions up to rounding, and of size 83.2 at most; of softmax they are the
 * logarithms of probabilities. */
RPO_API rpo_status rpo_boost_scores(rpo_boost *boost, const int32_t *row, int64_t count,
                                    const rpo_control *control, float *out, rpo_error *err);
/* A round whose learner is the caller's own, instead of rpo_boost_run: no other rounds, relabel only
 * without projection. The next round's sample: `row` (room for all rows) gets its *count rows,
 * ascending, and z (rows x components, of all outputs without projection) their projected negative
 * gradients, row after row. */
RPO_API rpo_status rpo_boost_project(rpo_boost *boost, const rpo_control *control, int32_t *row,
                                     int64_t *count, double *z, rpo_error *err);
/* What a learner of them says of every row of the features: v, rows x columns, one column or as many
 * as outputs. Every output takes the step along it that lowers the loss of the sample most, times
 * learning_rate: `step`, one an output (one for all with softmax). */
RPO_API rpo_status rpo_boost_add(rpo_boost *boost, const float *v, int64_t columns,
                                 const rpo_control *control, float *step, rpo_error *err);
/* The constant scores, one an output; the run's own memory. NULL of NULL, as those below. */
RPO_API const double *rpo_boost_start(const rpo_boost *boost);
/* The rows that a round (0, 1, ...) of a run of this seed sees, of n rows with these weights, those
 * of watched rows 0: `row`, with room for n, gets them, ascending, and behind them the other rows,
 * ascending, too. How many they are; 0 when an argument is NULL. */
RPO_API int64_t rpo_boost_sample(uint64_t seed, int64_t round, double subsample,
                                 const double *weight, int64_t n, int32_t *row);
/* The model of the first `rounds` rounds (at least 1), whose predictions are scores: a handle of its
 * own, which outlives the run. */
RPO_API rpo_status rpo_boost_forest(const rpo_boost *boost, int64_t rounds, rpo_forest **out,
                                    rpo_error *err);
/* The model of `n_boosts` runs of one output each, on the same features: output j is that of
 * boosts[j], of its first rounds[j] rounds (single target). */
RPO_API rpo_status rpo_boost_join(const rpo_boost *const *boosts, int64_t n_boosts,
                                  const int64_t *rounds, rpo_forest **out, rpo_error *err);
/* Adds trees first .. end - 1 of a boosted model to scores, rows x outputs of X, which the caller
 * has set (to rpo_forest_start, or by an earlier call): predictions round by round. */
RPO_API rpo_status rpo_forest_add_trees(const rpo_forest *forest, const rpo_matrix *X,
                                        int64_t first, int64_t end, const rpo_control *control,
                                        float *scores, rpo_error *err);
/* The constants of a boosted model: outputs numbers, the model's own memory; NULL of other forests. */
RPO_API const double *rpo_forest_start(const rpo_forest *forest);
/* Steps of a boosted model without relabel, trees x outputs, row after row: a leaf's number is
 * multiplied by its tree's. The model's own memory; NULL of others. */
RPO_API const float *rpo_forest_step(const rpo_forest *forest);
/* 1 when predictions of the forest are sums of its trees on top of constants (boosting). Functions
 * that read means of training rows refuse such a forest: predict_oob, agreement, relabel, weights,
 * rpo_leaf_rows_new, importances_on, tree_values, pick. */
RPO_API int32_t rpo_forest_is_boosted(const rpo_forest *forest);

/* ---- Metrics of scores ----------------------------------------------------------------------- */

/* All three read dense finite scores, rows x labels. Views with their strides exchanged give the
 * same of each label over the rows. */

/* Average precision of each row: the mean, over the labels that are 1 in Y (dense or CSR, zeros and
 * ones), of the share of ones among the labels that score as much or more. NaN where Y has none. The
 * mean over the rows is the label ranking average precision. */
RPO_API rpo_status rpo_scores_precision(const rpo_matrix *scores, const rpo_matrix *Y,
                                        const rpo_control *control, double *out, rpo_error *err);
/* How many scores, of all rows together, are at least thresholds[i]; `count` thresholds ascend, and
 * so many numbers are written. */
RPO_API rpo_status rpo_scores_reaching(const rpo_matrix *scores, const double *thresholds,
                                       int64_t count, const rpo_control *control, int64_t *out,
                                       rpo_error *err);
/* The k best labels of each row, best first, ties by lower label: out_index and out_score are rows
 * x k. out_ties, NULL or one a row: labels of the row that score the same as the last listed. */
RPO_API rpo_status rpo_scores_topk(const rpo_matrix *scores, int64_t k, const rpo_control *control,
                                   int64_t *out_index, double *out_score, int64_t *out_ties,
                                   rpo_error *err);

/* ---- Products of a sparse and a dense matrix ------------------------------------------------- */

/* A is n x p, CSR; B dense, its rows' numbers next to each other, of any row stride; out, row after
 * row, of B's number type, which A's values (unless all are 1) share, and apart from B in memory. D
 * is the diagonal matrix of `weight`, n finite numbers, NULL: ones. A is never transposed; where B or
 * out is larger than the caches, entries of A are put in the order of tiles, in no more room than that
 * matrix takes or 8192 rows of A need, and 64 bytes a row or column of A beside them. An index may occur twice in a row, numbers that are not finite
 * spread as they do in sums. */

/* out = D A B: B is p x width, out n x width. */
RPO_API rpo_status rpo_sparse_product(const rpo_matrix *A, const double *weight,
                                      const rpo_matrix *B, const rpo_control *control, void *out,
                                      rpo_error *err);
/* out = A' D B: B is n x width, out p x width. */
RPO_API rpo_status rpo_sparse_transposed_product(const rpo_matrix *A, const double *weight,
                                                 const rpo_matrix *B, const rpo_control *control,
                                                 void *out, rpo_error *err);
/* out = A' D A B in one pass over A, without the n x width array between: B and out are p x width. */
RPO_API rpo_status rpo_sparse_gram_product(const rpo_matrix *A, const double *weight,
                                           const rpo_matrix *B, const rpo_control *control,
                                           void *out, rpo_error *err);

#ifdef __cplusplus
}
#endif
#endif
