#include "forest.h"

#include <math.h>
#include <string.h>

#include "array.h"
#include "balance.h"
#include "by_class.h"
#include "mem.h"
#include "projection.h"
#include "prune.h"
#include "rng.h"

#define DRAWS_BETWEEN_POLLS 1024

static void draw_rows(rpo_rng *rng, int64_t draws, const double *sums, int64_t rows,
                      double *counts) {
  for (int64_t i = 0; i < draws; i++) {
    if (sums == NULL) {
      counts[rpo_below(rng, (uint32_t)rows)] += 1.0;
      continue;
    }
    double const u = rpo_uniform(rng) * sums[rows - 1];
    int64_t a = 0, b = rows - 1; /* the first row whose running sum exceeds u */
    while (a < b) {
      int64_t const mid = a + (b - a) / 2;
      if (sums[mid] > u) {
        b = mid;
      } else {
        a = mid + 1;
      }
    }
    counts[a] += 1.0;
  }
}

void rpo_bootstrap(uint64_t seed, uint64_t tree, int64_t draws, const double *sums, int64_t rows,
                   double *counts) {
  rpo_rng rng = rpo_rng_new(seed, RPO_DRAW_BOOTSTRAP, tree, 0);
  memset(counts, 0, (size_t)rows * sizeof *counts);
  draw_rows(&rng, draws, sums, rows, counts);
}

rpo_status rpo_sample_weights(const int64_t *sampling, const double *weight, const double *sums,
                              int64_t rows, double *out, rpo_job *job, int thread, rpo_error *err) {
  int64_t left = sampling[2];
  if (left <= 0) {
    for (int64_t i = 0; i < rows; i++) out[i] = weight == NULL ? 1.0 : weight[i];
    return RPO_OK;
  }
  rpo_rng rng = rpo_rng_new((uint64_t)sampling[0], RPO_DRAW_BOOTSTRAP, (uint64_t)sampling[1], 0);
  memset(out, 0, (size_t)rows * sizeof *out);
  for (; left > 0; left -= DRAWS_BETWEEN_POLLS) { /* a sample may be larger than the rows */
    RPO_TRY(rpo_keep_on(job, thread, err));
    draw_rows(&rng, left < DRAWS_BETWEEN_POLLS ? left : DRAWS_BETWEEN_POLLS, sums, rows, out);
  }
  return RPO_OK;
}

/* Beyond these, sums of weights and of weighted squares would leave the range of numbers. */
#define LARGEST_WEIGHT 1e50
#define SMALLEST_WEIGHT 1e-50 /* of all rows */
#define LARGEST_TARGET 1e100  /* its square, too, times a weight */

rpo_status rpo_weight_check(const double *weight, int64_t rows, rpo_error *err) {
  double total = 0.0;
  for (int64_t i = 0; i < rows; i++) {
    double const w = weight == NULL ? 1.0 : weight[i];
    if (!(w >= 0.0 && isfinite(w))) {
      return rpo_fail(err, RPO_EINVAL, "weight must be finite and not negative, found %g", w);
    }
    if (w > LARGEST_WEIGHT) {
      return rpo_fail(err, RPO_EINVAL, "weight must be %g at most, found %g", LARGEST_WEIGHT, w);
    }
    total += w;
  }
  if (!(total > 0.0)) return rpo_fail(err, RPO_EINVAL, "weight: all weights are zero");
  if (total < SMALLEST_WEIGHT) {
    return rpo_fail(err, RPO_EINVAL, "weight: all together are %g, less than %g", total,
                    SMALLEST_WEIGHT);
  }
  return RPO_OK;
}

rpo_status rpo_weight_sums(const double *weight, int64_t rows, double **out, rpo_error *err) {
  int equal = 1;
  *out = NULL;
  for (int64_t i = 1; weight != NULL && i < rows; i++) equal &= weight[i] == weight[0];
  if (equal) return RPO_OK;
  double *const sums = rpo_new(rows, 8);
  if (sums == NULL) return rpo_fail_memory(err, "the weights");
  double sum = 0.0;
  for (int64_t i = 0; i < rows; i++) {
    sum += weight[i];
    sums[i] = sum;
  }
  *out = sums;
  return RPO_OK;
}

/* What one thread reuses from tree to tree. */
typedef struct worker {
  rpo_grower *grower;
  double *weight;
  double *sorted_weight; /* the same, class after class */
  double *frequency;     /* by label: see balance.h */
} worker;

typedef struct fit {
  const rpo_features *features;
  rpo_grow_options grow;
  int64_t first_tree, trees, outputs, draws; /* draws 0: no bootstrap */
  double scale, alpha;
  int64_t balance; /* an rpo_balance */
  int whole;       /* weights allow integer sums */
  const double *weight;
  const rpo_labels *labels; /* what the leaves hold */
  double *sums;
  void *values;        /* of the features, for random cuts */
  rpo_target source;   /* the caller's target, as read */
  rpo_target shared;   /* what all trees see, when they see the same */
  rpo_by_class sorted; /* the same, class after class, when that is faster */
  rpo_projection projection;
  int own; /* 1: a projection a tree (Algorithm 2) */
  worker *workers;
  rpo_tree *tree;
  double **row_weight;
} fit;

static rpo_status worker_start(const fit *f, worker *w, rpo_error *err) {
  if (w->grower != NULL) return RPO_OK;
  const rpo_features *const features = f->grow.by_class ? &f->sorted.features : f->features;
  RPO_TRY(rpo_grower_new(features, &f->grow, &w->grower, err));
  w->weight = rpo_new(f->features->rows, 8);
  if (f->grow.by_class) w->sorted_weight = rpo_new(f->features->rows, 8);
  if (f->balance != RPO_BALANCE_NONE) w->frequency = rpo_new(f->labels->columns, 8);
  if (w->weight == NULL || (f->grow.by_class && w->sorted_weight == NULL) ||
      (f->balance != RPO_BALANCE_NONE && w->frequency == NULL)) {
    return rpo_fail_memory(err, "a tree");
  }
  return RPO_OK;
}

static rpo_status tree_weights(const fit *f, int64_t number, const worker *w, rpo_job *job,
                               int thread, rpo_error *err) {
  int64_t const sampling[3] = {(int64_t)f->grow.seed, number, f->draws};
  RPO_TRY(rpo_sample_weights(sampling, f->weight, f->sums, f->features->rows, w->weight, job,
                             thread, err));
  if (f->balance != RPO_BALANCE_NONE) {
    rpo_balance_sample(f->labels, f->balance, w->frequency, w->weight);
  }
  return RPO_OK;
}

/* Grows on rows that lie class after class, and gives them their numbers back. */
static rpo_status grow_by_class(const fit *f, worker *w, int64_t number, rpo_job *job, int thread,
                                rpo_tree *t, rpo_error *err) {
  const int32_t *const order = f->sorted.order;
  for (int64_t i = 0; i < f->features->rows; i++) w->sorted_weight[i] = w->weight[order[i]];
  RPO_TRY(rpo_grower_run(w->grower, &f->shared, w->sorted_weight, f->whole, number, job, thread, t,
                         err));
  for (int64_t i = 0; i < t->n_rows; i++) t->rows[i] = order[t->rows[i]];
  return RPO_OK;
}

/* Weights of the tree's rows in the order of its leaves; NULL when all are 1. */
static rpo_status keep_weights(const rpo_tree *t, const double *weight, double **out,
                               rpo_error *err) {
  int ones = 1;
  for (int64_t i = 0; i < t->n_rows; i++) ones &= weight[t->rows[i]] == 1.0;
  *out = NULL;
  if (ones) return RPO_OK;
  double *const kept = rpo_new(t->n_rows, 8);
  if (kept == NULL) return rpo_fail_memory(err, "a tree");
  for (int64_t i = 0; i < t->n_rows; i++) kept[i] = weight[t->rows[i]];
  *out = kept;
  return RPO_OK;
}

static rpo_status grow_tree(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  fit *const f = context;
  worker *const w = &f->workers[thread];
  rpo_tree *const t = &f->tree[task];
  int64_t const number = f->first_tree + task;
  rpo_target own;
  rpo_status status;
  memset(&own, 0, sizeof own);
  RPO_GOTO(worker_start(f, w, err));
  RPO_GOTO(tree_weights(f, number, w, job, thread, err));
  if (f->own) {
    rpo_projection projection = f->projection;
    projection.stream = (uint64_t)number;
    RPO_GOTO(rpo_project(&projection, f->outputs, &f->source, &own, job, thread, err));
  }
  if (f->grow.by_class) {
    RPO_GOTO(grow_by_class(f, w, number, job, thread, t, err));
  } else {
    RPO_GOTO(rpo_grower_run(w->grower, f->own ? &own : &f->shared, w->weight, f->whole, number, job,
                            thread, t, err));
  }
  for (int64_t i = 0; i < t->n_inner; i++)
    t->impurity[i] = (float)(f->scale * (double)t->impurity[i]);
  for (int64_t i = 0; i < t->n_leaves; i++) {
    t->leaf_impurity[i] = (float)(f->scale * (double)t->leaf_impurity[i]);
  }
  RPO_GOTO(rpo_prune(t, f->alpha, err));
  RPO_GOTO(keep_weights(t, w->weight, &f->row_weight[task], err));
done:
  if (status == RPO_ECANCELED) (void)rpo_fail(err, status, "cancelled by the progress callback");
  rpo_target_release(&own);
  return status;
}

/* Whole weights whose sums of squares stay exact in 53 bits. */
static int weights_are_whole(const fit *f, double largest_norm) {
  double total = 0.0;
  if (f->balance != RPO_BALANCE_NONE) return 0;
  for (int64_t i = 0; i < f->features->rows; i++) {
    double const w = f->weight == NULL || f->draws > 0 ? 1.0 : f->weight[i];
    if (w != floor(w)) return 0;
    total += w;
  }
  if ((double)f->draws > total) total = (double)f->draws;
  return total < 1e9 && total * total * (largest_norm + 1.0) < 9e15;
}

static double largest_norm(const rpo_target *t) {
  double largest = 0.0;
  for (int64_t i = 0; i < t->rows; i++) largest = t->norm[i] > largest ? t->norm[i] : largest;
  return largest;
}

/* What comes before the trees reports that none is finished. */
typedef struct begin {
  const rpo_control *control;
  int64_t trees;
} begin;

static int32_t report_none(void *user, int64_t done, int64_t total) {
  const begin *const b = user;
  (void)done;
  (void)total;
  return b->control->progress(b->control->user, 0, b->trees);
}

static rpo_status prepare_target(fit *f, const rpo_matrix *target, const rpo_projection *projection,
                                 const rpo_control *control, rpo_error *err) {
  f->outputs = target->cols;
  RPO_TRY(rpo_target_new(target, 1, &f->source, err));
  f->whole = weights_are_whole(f, largest_norm(&f->source));
  if (projection != NULL && projection->kind != RPO_PROJECT_NONE) {
    f->projection = *projection;
    f->projection.seed = f->grow.seed;
    f->projection.stream = 0;
    f->own = !projection->shared && projection->kind != RPO_PROJECT_MATRIX;
    if (f->own) return RPO_OK;
    begin b = {control, f->trees};
    rpo_control before = {1, 0, NULL, NULL, NULL};
    if (control != NULL && control->progress != NULL) {
      before.progress = report_none;
      before.user = &b;
    }
    return rpo_project_all(&f->projection, f->outputs, &f->source, &before, &f->shared, err);
  }
  if (f->source.z == NULL && rpo_target_is_small(&f->source)) {
    return rpo_target_spread(&f->source, &f->shared, err);
  }
  f->shared = f->source;
  memset(&f->source, 0, sizeof f->source);
  return RPO_OK;
}

static int64_t no_limit(int64_t value) { return value > 0 ? value : INT64_MAX; }

static void read_options(fit *f, const rpo_options *o) {
  rpo_grow_options *const g = &f->grow;
  int64_t const p = f->features->cols;
  int64_t const k = rpo_option_whole(o, RPO_OPT_MAX_FEATURES);
  f->scale = rpo_option_get(o, RPO_OPT_IMPURITY_SCALE);
  f->alpha = rpo_option_get(o, RPO_OPT_CCP_ALPHA);
  f->first_tree = rpo_option_whole(o, RPO_OPT_FIRST_TREE);
  f->trees = rpo_option_whole(o, RPO_OPT_N_TREES);
  g->seed = (uint64_t)rpo_option_whole(o, RPO_OPT_SEED);
  g->max_depth = no_limit(rpo_option_whole(o, RPO_OPT_MAX_DEPTH));
  g->min_split = rpo_option_whole(o, RPO_OPT_MIN_SAMPLES_SPLIT);
  g->min_leaf = rpo_option_whole(o, RPO_OPT_MIN_SAMPLES_LEAF);
  g->max_leaves = rpo_option_whole(o, RPO_OPT_MAX_LEAF_NODES);
  g->max_features = k > 0 && k < p ? k : p;
  g->min_leaf_share = rpo_option_get(o, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF);
  g->min_decrease =
      f->scale > 0.0 ? rpo_option_get(o, RPO_OPT_MIN_IMPURITY_DECREASE) / f->scale : 0.0;
  g->random_cut = rpo_option_whole(o, RPO_OPT_RANDOM_CUT) != 0;
  g->draw_non_constant = rpo_option_whole(o, RPO_OPT_DRAW_NON_CONSTANT) != 0;
}

/* Operations of the fit: rows looked at, times what one costs with the target at hand (measured: ten
 * to find it, one for four columns of sums or an entry of labels), and the projections. */
static double count_work(const fit *f) {
  const rpo_target *const t = f->own ? &f->source : &f->shared;
  double const rows = (double)t->rows, m = (double)f->projection.components;
  double const entries = t->z != NULL ? (double)t->width : (double)t->start[t->rows] / rows;
  double const columns = f->own ? (double)rpo_target_stride(f->projection.components)
                                : (t->z != NULL ? (double)t->stride : 0.0);
  double const row = 10.0 + (columns > 0.0 ? columns / 4.0 : entries);
  double work = 0.0;
  for (int64_t i = 0; i < f->trees; i++) {
    work += (double)f->tree[i].work * row + (f->own ? rows * entries * m / 4.0 : 0.0);
  }
  return work;
}

static void fit_release(fit *f, int threads) {
  for (int i = 0; f->workers != NULL && i < threads; i++) {
    rpo_grower_free(f->workers[i].grower);
    rpo_delete(f->workers[i].weight);
    rpo_delete(f->workers[i].sorted_weight);
    rpo_delete(f->workers[i].frequency);
  }
  for (int64_t t = 0; t < f->trees; t++) {
    if (f->tree != NULL) rpo_tree_release(&f->tree[t]);
    if (f->row_weight != NULL) rpo_delete(f->row_weight[t]);
  }
  rpo_delete(f->workers);
  rpo_delete(f->tree);
  rpo_delete(f->row_weight);
  rpo_delete(f->sums);
  rpo_delete(f->values);
  rpo_target_release(&f->source);
  rpo_target_release(&f->shared);
  rpo_by_class_release(&f->sorted);
}

static rpo_status pack(const fit *f, int64_t outputs, int ratio, const double *fallback,
                       const rpo_control *control, rpo_forest **out, rpo_error *err) {
  const rpo_labels *const labels = f->labels;
  int64_t *const sampling = rpo_new(3 * f->trees, 8);
  if (sampling == NULL) return rpo_fail_memory(err, "the model");
  for (int64_t t = 0; t < f->trees; t++) {
    sampling[3 * t] = (int64_t)f->grow.seed;
    sampling[3 * t + 1] = f->first_tree + t;
    sampling[3 * t + 2] = f->draws;
  }
  rpo_model_parts const parts = {f->trees,
                                 f->features->cols,
                                 outputs,
                                 f->features->rows,
                                 ratio,
                                 !ratio && labels->start != NULL && labels->value == NULL,
                                 f->tree,
                                 sampling,
                                 (const double *const *)f->row_weight,
                                 labels,
                                 NULL,
                                 fallback,
                                 NULL};
  rpo_status const status = rpo_model_pack(&parts, control, out, err);
  rpo_delete(sampling);
  return status;
}

static rpo_status check_fit(const rpo_features *features, const rpo_matrix *target,
                            const rpo_matrix *labels, const double *weight, rpo_error *err) {
  if (target->rows != features->rows) {
    return rpo_fail(err, RPO_EINVAL, "target has %lld rows, features have %lld",
                    (long long)target->rows, (long long)features->rows);
  }
  if (labels->rows != features->rows) {
    return rpo_fail(err, RPO_EINVAL, "labels have %lld rows, features have %lld",
                    (long long)labels->rows, (long long)features->rows);
  }
  return rpo_weight_check(weight, features->rows, err);
}

rpo_status rpo_forest_fit(const rpo_options *options, const rpo_features *features,
                          const rpo_matrix *target, const rpo_matrix *labels,
                          const double *fallback, const double *weight,
                          const rpo_projection *projection, const rpo_control *control,
                          rpo_forest **out, rpo_error *err) {
  fit f;
  rpo_labels leaf_labels;
  rpo_status status;
  memset(&f, 0, sizeof f);
  memset(&leaf_labels, 0, sizeof leaf_labels);
  if (options == NULL || features == NULL || out == NULL) {
    return rpo_fail(err, RPO_EINVAL, "options, features or out is NULL");
  }
  if (labels == NULL) labels = target;
  RPO_TRY(rpo_matrix_check(target, "target", err));
  RPO_TRY(rpo_matrix_check(labels, "labels", err));
  if (target->format == RPO_CSC || labels->format == RPO_CSC) {
    return rpo_fail(err, RPO_EINVAL, "target and labels must be dense or CSR, not CSC");
  }
  RPO_TRY(rpo_matrix_check_values(target, "target", 0, err));
  RPO_TRY(rpo_matrix_check_size(target, "target", LARGEST_TARGET, err));
  if (labels != target) {
    RPO_TRY(rpo_matrix_check_values(labels, "labels", 0, err));
    RPO_TRY(rpo_matrix_check_size(labels, "labels", LARGEST_TARGET, err));
  }
  if (projection != NULL && projection->kind != RPO_PROJECT_NONE) {
    RPO_TRY(rpo_projection_check(projection, target->cols, err));
  }
  int const ratio = rpo_option_whole(options, RPO_OPT_LABEL_RATIO) != 0;
  if (ratio && (labels->cols % 2 != 0 || fallback == NULL)) {
    return rpo_fail(err, RPO_EINVAL, "label_ratio needs 2d columns of labels and a fallback");
  }
  RPO_TRY(check_fit(features, target, labels, weight, err));

  f.features = features;
  f.weight = weight;
  read_options(&f, options);
  int const threads = rpo_threads(control, f.trees);
  if (rpo_option_whole(options, RPO_OPT_BOOTSTRAP) != 0) {
    int64_t const draws = rpo_option_whole(options, RPO_OPT_MAX_SAMPLES);
    f.draws = draws > 0 ? draws : features->rows;
    RPO_GOTO(rpo_weight_sums(weight, features->rows, &f.sums, err));
  }
  RPO_GOTO(rpo_labels_new(labels, &leaf_labels, err));
  f.labels = &leaf_labels;
  if (f.draws > 0) f.balance = rpo_option_whole(options, RPO_OPT_BALANCE);
  if (f.balance != RPO_BALANCE_NONE) RPO_GOTO(rpo_balance_check(&leaf_labels, f.balance, err));
  RPO_GOTO(prepare_target(&f, target, projection, control, err));
  if (f.grow.random_cut) {
    RPO_GOTO(rpo_decode(features, &f.values, err));
    f.grow.values = f.values;
  }
  if (!f.own && rpo_by_class_pays(features, &f.shared, f.whole, &f.grow)) {
    RPO_GOTO(rpo_by_class_sort(features, &f.shared, &f.sorted, err));
    f.grow.by_class = &f.sorted;
  }
  f.workers = rpo_new_zero(threads, (int64_t)sizeof *f.workers);
  f.tree = rpo_new_zero(f.trees, (int64_t)sizeof *f.tree);
  f.row_weight = rpo_new_zero(f.trees, (int64_t)sizeof *f.row_weight);
  if (f.workers == NULL || f.tree == NULL || f.row_weight == NULL) {
    status = rpo_fail_memory(err, "the forest");
    goto done;
  }
  RPO_GOTO(rpo_run(control, f.trees, grow_tree, &f, err));
  RPO_GOTO(pack(&f, labels->cols / (ratio ? 2 : 1), ratio, fallback, control, out, err));
  if (control != NULL && control->work != NULL) *control->work += count_work(&f);
done:
  rpo_labels_release(&leaf_labels);
  fit_release(&f, threads);
  return status;
}
