#include "boost.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "boost_low.h"
#include "guide.h"
#include "loss.h"
#include "mem.h"
#include "par.h"
#include "projection.h"

#define LATE_BYTES (1 << 20) /* of a table that waits */
#define BLOCK_NUMBERS 1024   /* scores of a block of rows: they stay in the nearest cache */

/* ---- Ownership ---- */

void rpo_boost_tree_release(rpo_boost_tree *t) {
  rpo_tree_release(&t->tree);
  rpo_delete(t->component);
  rpo_delete(t->step);
  rpo_delete(t->start);
  rpo_delete(t->index);
  rpo_delete(t->half);
  rpo_delete(t->single);
  rpo_delete(t->leaf);
  memset(t, 0, sizeof *t);
}

void rpo_boost_free(rpo_boost *b) {
  if (b == NULL) return;
  for (int64_t t = 0; t < b->rounds; t++) rpo_boost_tree_release(&b->tree[t]);
  for (int i = 0; i < b->threads; i++) rpo_delete(b->rows[i]);
  rpo_hist_free(b->hist);
  rpo_low_free(b->low);
  rpo_delete(b->tree);
  rpo_delete(b->rows);
  rpo_delete(b->y_start);
  rpo_delete(b->y_index);
  rpo_delete(b->y_value);
  rpo_delete(b->weight);
  rpo_delete(b->watch);
  rpo_delete(b->entry_weight);
  rpo_delete(b->watched);
  rpo_delete(b->delta);
  rpo_delete(b->start);
  rpo_delete(b->matrix);
  rpo_delete(b->kept);
  rpo_delete(b->leaf_of);
  rpo_delete(b->settled);
  for (int i = 0; i < RPO_LATE; i++) rpo_delete(b->tables[i]);
  rpo_delete(b->phi);
  rpo_delete(b->z_own);
  rpo_delete(b->bag);
  rpo_delete(b->train_loss);
  rpo_delete(b->watch_loss);
  rpo_delete(b->chunk);
  rpo_delete(b->chunk_order);
  rpo_delete(b->partial);
  rpo_delete(b);
}

/* ---- Options and data ---- */

static int64_t no_limit(int64_t value) { return value > 0 ? value : INT64_MAX; }

static void read_options(rpo_boost *b, const rpo_options *o) {
  rpo_grow_options *const g = &b->grow;
  int64_t const p = b->features->cols, k = rpo_option_whole(o, RPO_OPT_MAX_FEATURES);
  g->seed = (uint64_t)rpo_option_whole(o, RPO_OPT_SEED);
  g->max_depth = no_limit(rpo_option_whole(o, RPO_OPT_MAX_DEPTH));
  g->min_split = rpo_option_whole(o, RPO_OPT_MIN_SAMPLES_SPLIT);
  g->min_leaf = rpo_option_whole(o, RPO_OPT_MIN_SAMPLES_LEAF);
  g->max_leaves = rpo_option_whole(o, RPO_OPT_MAX_LEAF_NODES);
  g->max_features = k > 0 && k < p ? k : p;
  g->min_leaf_share = rpo_option_get(o, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF);
  g->min_decrease = rpo_option_get(o, RPO_OPT_MIN_IMPURITY_DECREASE);
  g->draw_non_constant = rpo_option_whole(o, RPO_OPT_DRAW_NON_CONSTANT) != 0;
  b->loss = (int32_t)rpo_option_whole(o, RPO_OPT_LOSS);
  b->leaf = (int32_t)rpo_option_whole(o, RPO_OPT_LEAF);
  b->relabel = rpo_option_whole(o, RPO_OPT_RELABEL) != 0;
  b->half = rpo_option_whole(o, RPO_OPT_HALF) != 0;
  b->keep_loss = rpo_option_whole(o, RPO_OPT_TRAIN_LOSS) != 0;
  b->rate = rpo_option_get(o, RPO_OPT_LEARNING_RATE);
  b->subsample = rpo_option_get(o, RPO_OPT_SUBSAMPLE);
  b->l2 = rpo_option_get(o, RPO_OPT_L2);
  b->min_gain = rpo_option_get(o, RPO_OPT_LEAF_MIN_GAIN);
}

#define MOST_PHI 1e9 /* times the largest gradient still a number in single precision */

/* Entries of Phi, which forests take in double precision. */
static rpo_status check_size(const rpo_projection *p, int64_t d, rpo_error *err) {
  if (p->kind == RPO_PROJECT_RADEMACHER && p->sparsity > MOST_PHI * MOST_PHI) {
    return rpo_fail(err, RPO_EINVAL, "sparsity must be at most 1e18 in boosting, got %g",
                    p->sparsity);
  }
  for (int64_t i = 0; p->kind == RPO_PROJECT_MATRIX && i < p->components * d; i++) {
    if (fabs(p->matrix[i]) > MOST_PHI) {
      return rpo_fail(err, RPO_EINVAL,
                      "projection: matrix must be of size 1e9 at most in boosting, found %g",
                      p->matrix[i]);
    }
  }
  return RPO_OK;
}

static rpo_status check_projection(const rpo_projection *p, int64_t d, int relabel,
                                   rpo_error *err) {
  int64_t const m = p->components;
  if (p->kind == RPO_PROJECT_TOP || p->kind == RPO_PROJECT_NORM_SAMPLING) {
    if (m < 1 || (p->kind == RPO_PROJECT_TOP && m > d) || m > INT32_MAX) {
      return rpo_fail(err, RPO_EINVAL,
                      "n_components must be between 1 and %lld for this projection, got %lld",
                      (long long)d, (long long)m);
    }
  } else {
    RPO_TRY(rpo_projection_check(p, d, err));
    RPO_TRY(check_size(p, d, err));
  }
  if (!relabel && m != 1) {
    return rpo_fail(err, RPO_EINVAL, "n_components must be 1 without relabel, got %lld",
                    (long long)m);
  }
  return RPO_OK;
}

static rpo_status check_y(int64_t rows, const rpo_matrix *Y, rpo_error *err) {
  RPO_TRY(rpo_matrix_check(Y, "Y", err));
  RPO_TRY(rpo_matrix_check_values(Y, "Y", 0, err));
  if (Y->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "Y must be dense or CSR, not CSC");
  if (Y->rows != rows) {
    return rpo_fail(err, RPO_EINVAL, "Y has %lld rows, features have %lld", (long long)Y->rows,
                    (long long)rows);
  }
  if (Y->cols < 1) return rpo_fail(err, RPO_EINVAL, "Y has no columns");
  return RPO_OK;
}

static rpo_status check_binary(const rpo_boost *b, rpo_error *err) {
  for (int64_t i = 0; i < b->n; i++) {
    for (int64_t e = b->y_start[i]; e < b->y_start[i + 1] && b->y_value != NULL; e++) {
      if (b->y_value[e] != 1.0f) {
        return rpo_fail(err, RPO_EINVAL, "Y must hold zeros and ones with this loss, found %g",
                        (double)b->y_value[e]);
      }
    }
    if (b->loss == RPO_LOSS_SOFTMAX && b->y_start[i + 1] - b->y_start[i] != 1) {
      return rpo_fail(err, RPO_EINVAL, "Y must have one class in each row, row %lld has %lld",
                      (long long)i, (long long)(b->y_start[i + 1] - b->y_start[i]));
    }
  }
  return RPO_OK;
}

/* Entries of one row in order of outputs, zeros left out. Most come sorted. */
static int64_t read_row(const rpo_boost *b, const rpo_matrix *Y, int64_t row, int64_t at) {
  int64_t const first = at;
  int64_t const begin = Y->format == RPO_DENSE ? 0 : rpo_ptr_at(Y, row);
  int64_t const end = Y->format == RPO_DENSE ? Y->cols : rpo_ptr_at(Y, row + 1);
  for (int64_t e = begin; e < end; e++) {
    int const dense = Y->format == RPO_DENSE;
    double const v = dense ? rpo_dense_at(Y, row, e) : rpo_value_at(Y->data, Y->dtype, e);
    int64_t const j = dense ? e : rpo_index_at(Y->indices, Y->index, e);
    if (v == 0.0) continue;
    int64_t to = at++;
    for (; to > first && b->y_index[to - 1] > j; to--) {
      b->y_index[to] = b->y_index[to - 1];
      b->y_value[to] = b->y_value[to - 1];
    }
    b->y_index[to] = (int32_t)j;
    b->y_value[to] = (float)v;
  }
  return at;
}

static int64_t count_entries(const rpo_matrix *Y) {
  int64_t count = 0;
  if (Y->format != RPO_DENSE) return rpo_ptr_at(Y, Y->rows);
  for (int64_t i = 0; i < Y->rows; i++) {
    for (int64_t j = 0; j < Y->cols; j++) count += rpo_dense_at(Y, i, j) != 0.0;
  }
  return count;
}

/* Outputs and weights beyond these would leave the range of float sums. */
#define LARGEST_Y 1e20
#define LARGEST_ODDS 80.0 /* scores of the binary losses: loss.h */
#define LARGEST_WEIGHT 1e15
#define SMALLEST_WEIGHT 1e-15 /* of all rows */

static rpo_status read_y(rpo_boost *b, const rpo_matrix *Y, rpo_error *err) {
  if (!rpo_loss_is_binary(b->loss)) RPO_TRY(rpo_matrix_check_size(Y, "Y", LARGEST_Y, err));
  if (Y->format == RPO_DENSE && !rpo_loss_is_binary(b->loss)) {
    b->y_value = rpo_new_zero(b->n * b->stride, 4);
    if (b->y_value == NULL) return rpo_fail_memory(err, "Y");
    for (int64_t i = 0; i < b->n; i++) {
      for (int64_t j = 0; j < b->d; j++) {
        b->y_value[i * b->stride + j] = (float)rpo_dense_at(Y, i, j);
      }
    }
    return RPO_OK;
  }
  int64_t const entries = count_entries(Y);
  int ones = 1;
  b->y_start = rpo_new(b->n + 1, 8);
  b->y_index = rpo_new(entries, 4);
  b->y_value = rpo_new(entries, 4);
  if (b->y_start == NULL || b->y_index == NULL || b->y_value == NULL) {
    return rpo_fail_memory(err, "Y");
  }
  b->y_start[0] = 0;
  for (int64_t i = 0; i < b->n; i++) b->y_start[i + 1] = read_row(b, Y, i, b->y_start[i]);
  for (int64_t e = 0; e < b->y_start[b->n]; e++) ones &= b->y_value[e] == 1.0f;
  if (ones) {
    rpo_delete(b->y_value);
    b->y_value = NULL;
  }
  return rpo_loss_is_binary(b->loss) ? check_binary(b, err) : RPO_OK;
}

/* Weights of rows; those of watched ones apart. */
static rpo_status read_weights(rpo_boost *b, const rpo_boost_data *data, rpo_error *err) {
  double total = 0.0;
  b->weight = rpo_new(b->n, 8);
  b->watched = rpo_new(b->n, 4);
  if (data->watched != NULL) b->watch = rpo_new_zero(b->n, 8);
  if (b->weight == NULL || b->watched == NULL || (data->watched != NULL && b->watch == NULL)) {
    return rpo_fail_memory(err, "the weights");
  }
  for (int64_t i = 0; i < b->n; i++) {
    double const w = data->weight == NULL ? 1.0 : data->weight[i];
    if (!(w >= 0.0 && w <= LARGEST_WEIGHT)) {
      return rpo_fail(err, RPO_EINVAL, "weight must be between 0 and %g, found %g", LARGEST_WEIGHT,
                      w);
    }
    int const watched = data->watched != NULL && data->watched[i];
    b->weight[i] = watched ? 0.0 : w;
    if (watched) b->watch[i] = w;
    if (watched && w > 0.0) b->watched[b->n_watched++] = (int32_t)i;
    b->weighted |= !watched && w != 1.0 && w != 0.0;
    total += b->weight[i];
  }
  if (!(total > 0.0)) return rpo_fail(err, RPO_EINVAL, "weight: no training row weighs anything");
  if (total < SMALLEST_WEIGHT) {
    return rpo_fail(err, RPO_EINVAL, "weight: all training rows together weigh %g, less than %g",
                    total, SMALLEST_WEIGHT);
  }
  return RPO_OK;
}

static rpo_status read_entry_weights(rpo_boost *b, const rpo_matrix *w, rpo_error *err) {
  if (w == NULL) return RPO_OK;
  RPO_TRY(rpo_matrix_check(w, "entry_weight", err));
  RPO_TRY(rpo_matrix_check_values(w, "entry_weight", 0, err));
  if (w->format != RPO_DENSE || w->rows != b->n || w->cols != b->d) {
    return rpo_fail(err, RPO_EINVAL, "entry_weight must be dense and as large as Y");
  }
  if (b->loss == RPO_LOSS_SOFTMAX) {
    return rpo_fail(err, RPO_EINVAL, "entry_weight: the softmax loss weighs whole rows only");
  }
  b->entry_weight = rpo_new_zero(b->n * b->stride, 4);
  if (b->entry_weight == NULL) return rpo_fail_memory(err, "the weights");
  for (int64_t i = 0; i < b->n; i++) {
    for (int64_t j = 0; j < b->d; j++) {
      double const v = rpo_dense_at(w, i, j);
      if (!(v >= 0.0 && v <= LARGEST_WEIGHT)) {
        return rpo_fail(err, RPO_EINVAL, "entry_weight must be between 0 and %g, found %g",
                        LARGEST_WEIGHT, v);
      }
      b->entry_weight[i * b->stride + j] = (float)v;
    }
  }
  return RPO_OK;
}

/* Rows padded to whole vectors. */
static int64_t stride_of(int64_t d) {
  if (d <= 2) return d;
  if (d <= 4) return 4;
  return d <= 8 ? 8 : (d + RPO_LINE - 1) / RPO_LINE * RPO_LINE;
}

static rpo_status read_projection(rpo_boost *b, const rpo_projection *projection, rpo_error *err) {
  b->m = b->d;
  if (projection == NULL || projection->kind == RPO_PROJECT_NONE) {
    if (b->relabel || b->d == 1) return RPO_OK;
    return rpo_fail(err, RPO_EINVAL, "relabel must be 1 without projection");
  }
  RPO_TRY(check_projection(projection, b->d, b->relabel, err));
  b->projection = *projection;
  b->m = projection->components;
  if (b->m > INT64_MAX / b->stride / 8) return rpo_fail_memory(err, "the projection");
  b->phi = rpo_new_zero(b->m * b->stride, 4);
  if (projection->kind == RPO_PROJECT_MATRIX) {
    b->matrix = rpo_new(b->m * b->d, 8);
    if (b->matrix != NULL) {
      memcpy(b->matrix, projection->matrix, (size_t)(b->m * b->d) * sizeof *b->matrix);
    }
    b->projection.matrix = b->matrix;
  }
  if (b->phi == NULL || (projection->kind == RPO_PROJECT_MATRIX && b->matrix == NULL)) {
    return rpo_fail_memory(err, "the projection");
  }
  return RPO_OK;
}

void rpo_boost_restart(rpo_boost *b) {
  for (int64_t i = 0; i < b->n; i++) b->settled[i] = 0;
  if (b->low != NULL) {
    rpo_low_start(b);
    return;
  }
  float *const first = b->kept;
  for (int64_t j = 0; j < b->stride; j++) first[j] = j < b->d ? (float)b->start[j] : 0.0f;
  b->kernels->keep_scores(b->loss, b->d, b->stride, first);
  for (int64_t i = 1; i < b->n; i++) {
    memcpy(first + i * b->stride, first, (size_t)b->stride * sizeof *first);
  }
}

/* Where rows are long, some are not drawn, and tables of some trees are not large. */
static int may_be_late(const rpo_boost *b) {
  const rpo_grow_options *const g = &b->grow;
  int64_t const most = LATE_BYTES / 4 / b->stride;
  int const few = (g->max_leaves > 0 && g->max_leaves <= most) ||
                  (g->max_depth < 32 && (int64_t)1 << g->max_depth <= most);
  return b->low == NULL && rpo_boost_projects_lines(b) && b->subsample < 1.0 && few;
}

static rpo_status make_state(rpo_boost *b, const double *start, double quantile,
                             const rpo_control *control, rpo_error *err) {
  if (b->n > INT64_MAX / 8 / b->stride || b->n > INT64_MAX / 8 / b->m) {
    return rpo_fail_memory(err, "the scores");
  }
  RPO_TRY(rpo_low_begin(b, err));
  b->start = rpo_new(b->d, 8);
  if (b->loss == RPO_LOSS_HUBER) b->delta = rpo_new_zero(b->stride, 4);
  if (b->low == NULL) b->kept = rpo_new_zero(b->n * b->stride, 4);
  rpo_expect_jumps(b->kept, b->n * b->stride, 4);
  b->late = may_be_late(b) ? RPO_LATE : 1;
  b->settled = rpo_new(b->n, 8);
  b->leaf_of = b->n > INT64_MAX / RPO_LATE ? NULL : rpo_new(b->late * b->n, 4);
  int const owns_z = b->phi != NULL || !b->relabel; /* it is asked for once the tree stands */
  if (owns_z) b->z_own = rpo_new(b->n * b->m, 8);
  b->bag = rpo_new(b->n, 4);
  if (b->start == NULL || (b->loss == RPO_LOSS_HUBER && b->delta == NULL) ||
      (b->low == NULL && b->kept == NULL) || b->settled == NULL || b->leaf_of == NULL ||
      (owns_z && b->z_own == NULL) || b->bag == NULL) {
    return rpo_fail_memory(err, "the scores");
  }
  RPO_TRY(rpo_boost_constants(b, quantile, control, err));
  for (int64_t j = 0; j < b->d; j++) {
    double const most = rpo_loss_is_binary(b->loss) ? LARGEST_ODDS : LARGEST_Y;
    if (start != NULL) {
      b->start[j] = start[j];
    } else if (fabs(b->start[j]) > most && rpo_loss_is_binary(b->loss)) {
      b->start[j] = b->start[j] < 0.0 ? -most : most; /* entries weigh next to nothing */
    }
    if (!(fabs(b->start[j]) <= most)) {
      return rpo_fail(err, RPO_EINVAL, "start must be of size %g at most, found %g for output %lld",
                      most, b->start[j], (long long)j);
    }
    b->start[j] = (double)(float)b->start[j];
  }
  rpo_boost_restart(b);
  int const counted = b->weighted;
  RPO_TRY(rpo_hist_new(b->features, &b->grow, b->m, counted, &b->hist, err));
  b->z = b->z_own;
  b->z_apart = b->m;
  if (b->z == NULL) b->z = rpo_hist_room(b->hist, &b->z_apart);
  return RPO_OK;
}

rpo_status rpo_boost_make_room(rpo_boost *b, int64_t rounds, rpo_error *err) {
  if (rounds <= b->room) return RPO_OK;
  int64_t const room = rounds > 2 * b->room ? rounds : 2 * b->room;
  rpo_boost_tree *const tree = rpo_grow(b->tree, b->rounds, room, (int64_t)sizeof *tree);
  if (tree != NULL) b->tree = tree;
  int64_t const known = b->room > 0 ? b->rounds + 1 : 0;
  double *const train = tree == NULL ? NULL : rpo_grow(b->train_loss, known, room + 1, 8);
  if (train != NULL) b->train_loss = train;
  double *const watch = train == NULL ? NULL : rpo_grow(b->watch_loss, known, room + 1, 8);
  if (watch == NULL) return rpo_fail_memory(err, "boosting");
  b->watch_loss = watch;
  if (b->room == 0) watch[0] = NAN;
  b->room = room;
  return RPO_OK;
}

rpo_status rpo_boost_new(const rpo_options *options, const rpo_features *features,
                         const rpo_boost_data *data, const rpo_projection *projection,
                         const rpo_control *control, rpo_boost **out, rpo_error *err) {
  rpo_status status;
  if (options == NULL || features == NULL || data == NULL || out == NULL || data->Y == NULL) {
    return rpo_fail(err, RPO_EINVAL, "options, features, data, Y or out is NULL");
  }
  RPO_TRY(check_y(features->rows, data->Y, err));
  rpo_boost *const b = rpo_new_zero(1, (int64_t)sizeof *b);
  if (b == NULL) return rpo_fail_memory(err, "boosting");
  b->features = features;
  b->kernels = rpo_kernels_pick();
  b->n = features->rows;
  b->d = data->Y->cols;
  b->stride = stride_of(b->d);
  b->block = b->stride >= BLOCK_NUMBERS ? 1 : BLOCK_NUMBERS / b->stride;
  b->last_seconds = 1.0; /* the first round may be long: it is polled */
  read_options(b, options);
  if ((b->loss == RPO_LOSS_CUSTOM) != (data->loss != NULL)) {
    status =
        rpo_fail(err, RPO_EINVAL, "loss: a callback belongs to RPO_LOSS_CUSTOM, and to it only");
    goto done;
  }
  b->callback = data->loss;
  b->user = data->user;
  RPO_GOTO(read_y(b, data->Y, err));
  RPO_GOTO(read_weights(b, data, err));
  RPO_GOTO(read_entry_weights(b, data->entry_weight, err));
  RPO_GOTO(read_projection(b, projection, err));
  RPO_GOTO(
      make_state(b, data->start, rpo_option_get(options, RPO_OPT_HUBER_QUANTILE), control, err));
  RPO_GOTO(rpo_boost_make_room(b, 16, err));
  RPO_GOTO(rpo_boost_threads(b, control, err));
  RPO_GOTO(rpo_boost_watch(b, control, &b->watch_loss[0], err));
  *out = b;
done:
  if (status != RPO_OK) rpo_boost_free(b);
  return status;
}

/* ---- Rounds ---- */

/* Leaves of all rows: those the tree has not seen are guided there. */
static rpo_status find_leaves(rpo_boost *b, const rpo_tree *tree, int32_t *leaf,
                              const rpo_control *control, rpo_error *err) {
  const int32_t *const rows = b->bag + b->n_bag;
  int64_t const others = b->n - b->n_bag;
  RPO_TRY(rpo_guide_all(b->features, tree, rows, others, control, leaf, err));
  int32_t *const leaf_of = rpo_boost_leaf_of(b, b->rounds);
  for (int64_t i = 0; i < others; i++) leaf_of[rows[i]] = leaf[i];
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    for (int64_t i = tree->leaf_start[l]; i < tree->leaf_start[l + 1]; i++) {
      leaf_of[tree->rows[i]] = (int32_t)l;
    }
  }
  return RPO_OK;
}

rpo_status rpo_boost_begin_round(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  rpo_control const passes = rpo_boost_control(b, control);
  RPO_TRY(rpo_boost_make_room(b, b->rounds + 1, err));
  RPO_TRY(rpo_boost_draw(b, &passes, err));
  if (rpo_low_is_over(b)) RPO_TRY(rpo_low_leave(b, &passes, err));
  RPO_TRY(rpo_boost_look_phi(b, &passes, err));
  return b->low != NULL ? rpo_low_update(b, &passes, err) : rpo_boost_update(b, &passes, err);
}

static rpo_status one_round(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  rpo_control const passes = rpo_boost_control(b, control);
  rpo_boost_tree t;
  rpo_status status;
  double const began = rpo_now();
  rpo_control growing = passes; /* knows itself when a node is small */
  growing.n_threads = control == NULL ? 1 : control->n_threads;
  memset(&t, 0, sizeof t);
  int32_t *const room = rpo_new(b->n, 4);
  if (room == NULL) return rpo_fail_memory(err, "boosting");
  RPO_GOTO(rpo_boost_begin_round(b, control, err));
  RPO_GOTO(rpo_boost_put(b, &passes, err));
  RPO_GOTO(rpo_hist_run(b->hist, b->bag, b->n_bag, b->weight, (uint64_t)b->rounds, &growing,
                        &t.tree, err));
  RPO_GOTO(b->low != NULL ? rpo_low_label(b, &t, &passes, err)
                          : rpo_boost_label(b, &t, &passes, err));
  RPO_GOTO(find_leaves(b, &t.tree, room, &passes, err));
  if (b->low != NULL) RPO_GOTO(rpo_low_take(b, &t, &passes, err));
  rpo_delete(t.tree.rows);
  t.tree.rows = NULL;
  t.tree.n_rows = 0;
  b->tree[b->rounds++] = t;
  memset(&t, 0, sizeof t);
  b->watch_loss[b->rounds] = b->train_loss[b->rounds] = NAN;
  rpo_control quiet = passes;
  quiet.progress = NULL;
  RPO_GOTO(rpo_boost_watch(b, &quiet, &b->watch_loss[b->rounds], err));
done:
  rpo_delete(room);
  rpo_boost_tree_release(&t);
  b->last_seconds = rpo_now() - began;
  return status;
}

rpo_status rpo_boost_run(rpo_boost *b, int64_t rounds, const rpo_control *control, rpo_error *err) {
  double polled = rpo_now();
  if (b == NULL) return rpo_fail(err, RPO_EINVAL, "boost is NULL");
  if (rounds < 0) {
    return rpo_fail(err, RPO_EINVAL, "rounds is negative: %lld", (long long)rounds);
  }
  if (b->others > 0) return rpo_fail(err, RPO_EINVAL, "boost has rounds of the caller's learner");
  RPO_TRY(rpo_boost_threads(b, control, err));
  for (int64_t i = 0; i < rounds; i++) {
    double const now = rpo_now();
    if (control != NULL && control->progress != NULL && now - polled > 0.05) {
      polled = now;
      if (control->progress(control->user, i, rounds) != 0) {
        return rpo_fail(err, RPO_ECANCELED, "cancelled by the progress callback");
      }
    }
    RPO_TRY(one_round(b, control, err));
  }
  return RPO_OK;
}

int64_t rpo_boost_rounds(const rpo_boost *b) { return b == NULL ? 0 : b->rounds; }

rpo_status rpo_boost_losses(rpo_boost *b, double *train, double *watched, rpo_error *err) {
  if (b == NULL) return rpo_fail(err, RPO_EINVAL, "boost is NULL");
  for (int64_t r = 0; r <= b->rounds; r++) {
    if (train != NULL) train[r] = b->keep_loss && r < b->rounds ? b->train_loss[r] : NAN;
    if (watched != NULL) watched[r] = b->watch_loss[r];
  }
  return RPO_OK;
}

rpo_status rpo_boost_scores(rpo_boost *b, const int32_t *row, int64_t count,
                            const rpo_control *control, float *out, rpo_error *err) {
  if (b == NULL || row == NULL || out == NULL) {
    return rpo_fail(err, RPO_EINVAL, "boost, row or out is NULL");
  }
  if (count < 0) {
    return rpo_fail(err, RPO_EINVAL, "count is negative: %lld", (long long)count);
  }
  for (int64_t i = 0; i < count; i++) {
    if (row[i] < 0 || row[i] >= b->n) {
      return rpo_fail(err, RPO_EINVAL, "row must be between 0 and %lld, got %lld",
                      (long long)(b->n - 1), (long long)row[i]);
    }
  }
  if (b->low != NULL) return rpo_low_scores(b, row, count, out, b->d, control, err);
  RPO_TRY(rpo_boost_settle(b, control, err));
  for (int64_t i = 0; i < count; i++) {
    memcpy(out + i * b->d, b->kept + row[i] * b->stride, (size_t)b->d * sizeof *out);
    b->kernels->tell_scores(b->loss, b->d, out + i * b->d);
  }
  return RPO_OK;
}
