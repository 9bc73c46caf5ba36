/* Second pass: sums over the rows of leaves, in chunks of rows, each by one thread, rows in order; and
 * from them what leaves hold. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "mem.h"

#define CHUNK_ROWS 512 /* float sums of more would lose too much */
#define RANGES 4       /* of all rows */
#define RANGE_ROWS 16  /* worth sums of their own */

/* ---- Sums ---- */

int64_t rpo_sums_count(rpo_sums what) {
  return what == RPO_SUM_NEWTON || what == RPO_SUM_STEP ? 2 : 1;
}

static rpo_status chunk_room(rpo_boost *b, int64_t most, rpo_error *err) {
  if (most <= b->chunk_room) return RPO_OK;
  rpo_delete(b->chunk);
  rpo_delete(b->chunk_order);
  b->chunk = rpo_new(most, (int64_t)sizeof *b->chunk);
  b->chunk_order = rpo_new(most, 4);
  int const made = b->chunk != NULL && b->chunk_order != NULL;
  b->chunk_room = made ? most : 0;
  return made ? RPO_OK : rpo_fail_memory(err, "the leaves");
}

static int32_t range_of(const rpo_boost *b, int32_t row) {
  return (int32_t)((int64_t)row * RANGES / b->n);
}

/* The first row behind a range. */
static int64_t end_of(const rpo_boost *b, int32_t range) {
  return ((range + 1) * b->n + RANGES - 1) / RANGES;
}

static void order_chunks(rpo_boost *b) {
  int64_t next[RANGES + 1] = {0};
  for (int64_t c = 0; c < b->n_chunks; c++) next[b->chunk[c].range + 1]++;
  for (int r = 0; r < RANGES; r++) next[r + 1] += next[r];
  for (int64_t c = 0; c < b->n_chunks; c++) {
    b->chunk_order[next[b->chunk[c].range]++] = (int32_t)c;
  }
}

/* Of at most CHUNK_ROWS rows each; one range's, unless the leaf is small. */
rpo_status rpo_boost_chunks(rpo_boost *b, const int32_t *rows, const int32_t *leaf_start,
                            int64_t leaves, rpo_error *err) {
  int64_t const n = leaf_start[leaves];
  RPO_TRY(chunk_room(b, leaves + n / CHUNK_ROWS + n / RANGE_ROWS, err));
  b->n_chunks = 0;
  for (int64_t l = 0; l < leaves; l++) {
    int32_t begin = leaf_start[l];
    int const whole = leaf_start[l + 1] - begin < RANGES * RANGE_ROWS;
    while (begin < leaf_start[l + 1]) {
      int32_t const rest = leaf_start[l + 1] - begin, range = range_of(b, rows[begin]);
      int32_t const most = begin + (rest < CHUNK_ROWS ? rest : CHUNK_ROWS);
      int64_t const behind = end_of(b, range);
      int32_t end = whole ? most : begin;
      while (end < most && rows[end] < behind) end++;
      rpo_chunk const chunk = {(int32_t)l, begin, end, range};
      b->chunk[b->n_chunks++] = chunk;
      begin = end;
    }
  }
  order_chunks(b);
  return RPO_OK;
}

typedef struct summing {
  rpo_boost *b;
  const int32_t *rows;
  rpo_sums what;
  const float *step;
} summing;

/* Scores of some rows, where rows are short or a step is tried: copied side by side. */
static const float *gather(const summing *s, int thread, const int32_t *rows, int64_t count,
                           const float *move) {
  const rpo_boost *const b = s->b;
  if (count == 1 && move == NULL) return b->kept + rows[0] * b->stride;
  float *const f = rpo_boost_rows(b, thread, RPO_ROW_SCORE);
  for (int64_t i = 0; i < count; i++) {
    float *const to = f + i * b->stride;
    memcpy(to, b->kept + rows[i] * b->stride, (size_t)b->stride * 4);
    if (move != NULL) b->kernels->take_steps(b->loss, b->d, b->stride, to, move);
  }
  return f;
}

/* The row at a place of the task's chunk or, behind its end, as far into the next task's. */
static int32_t row_behind(const summing *s, int64_t task, int64_t at) {
  const rpo_boost *const b = s->b;
  const rpo_chunk *chunk = &b->chunk[b->chunk_order[task]];
  if (at >= chunk->end && task + 1 < b->n_chunks) {
    int64_t const over = at - chunk->end;
    chunk = &b->chunk[b->chunk_order[task + 1]];
    at = chunk->begin + over;
  }
  return s->rows[at < chunk->end ? at : chunk->end - 1];
}

/* Rows of whole lines: gradients are added where they are found, none is written down. */
static void sum_lines(const summing *s, int64_t task, int thread, rpo_job *job, float *first,
                      float *second) {
  const rpo_boost *const b = s->b;
  const rpo_chunk *const chunk = &b->chunk[b->chunk_order[task]];
  int64_t const ahead = rpo_boost_ahead(b);
  for (int64_t at = chunk->begin; at < chunk->end && !rpo_stopped(job); at++) {
    int32_t const row = s->rows[at], next = row_behind(s, task, at + ahead);
    const float *const y = rpo_boost_spread(b, thread, &row, 1);
    b->kernels->sum_loss(b->loss, b->d, b->stride, (float)b->weight[row], b->kept + row * b->stride,
                         y, b->delta, b->kept + next * b->stride, first, second);
    rpo_boost_wipe(b, thread, &row, 1);
  }
}

static int sums_lines(const summing *s) {
  return s->what == RPO_SUM_NEWTON && rpo_boost_has_lines(s->b);
}

static rpo_status sum_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  const summing *const s = context;
  rpo_boost *const b = s->b;
  int64_t const number = b->chunk_order[task];
  const rpo_chunk *const chunk = &b->chunk[number];
  int64_t const stride = b->stride, sums = rpo_sums_count(s->what);
  float *const first = b->partial + number * sums * stride, *const second = first + stride;
  const float *const v = s->what == RPO_SUM_STEP ? b->table + chunk->leaf * stride : NULL;
  float *const move = v == NULL ? NULL : rpo_boost_rows(b, thread, RPO_ROW_MOVE);
  int const curvature = sums == 2;
  for (int64_t j = 0; v != NULL && j < stride; j++) move[j] = s->step[j] * v[j];
  if (v != NULL) b->kernels->keep_steps(b->loss, b->d, stride, move);
  memset(first, 0, (size_t)(sums * stride) * sizeof *first);
  if (sums_lines(s)) {
    sum_lines(s, task, thread, job, first, second);
    return RPO_OK;
  }
  for (int64_t at = chunk->begin; at < chunk->end; at += b->block) {
    int64_t const count = chunk->end - at < b->block ? chunk->end - at : b->block;
    const int32_t *const rows = s->rows + at;
    if (rpo_stopped(job)) break;
    if (b->block == 1 && at + 1 < chunk->end) rpo_boost_ask(b, b->kept + rows[1] * b->stride);
    const float *const f = gather(s, thread, rows, count, move);
    RPO_TRY(rpo_boost_gradient(b, thread, rows, count, f, curvature, err));
    const float *const g = rpo_boost_rows(b, thread, RPO_ROW_GRADIENT);
    const float *const h = rpo_boost_rows(b, thread, RPO_ROW_CURVATURE);
    for (int64_t i = 0; i < count; i++) {
      float const w = (float)b->weight[rows[i]];
      if (s->what == RPO_SUM_SQUARES) {
        b->kernels->sum_product(w, g + i * stride, g + i * stride, stride, first);
        continue;
      }
      b->kernels->sum_row(w, g + i * stride, stride, first);
      if (curvature) b->kernels->sum_row(w, h + i * stride, stride, second);
    }
  }
  for (int64_t j = 0; v != NULL && j < stride; j++) {
    first[j] *= v[j];
    second[j] *= v[j] * v[j];
  }
  return RPO_OK;
}

rpo_status rpo_boost_sum(rpo_boost *b, const int32_t *rows, rpo_sums what, const float *step,
                         const rpo_control *control, rpo_error *err) {
  summing s = {b, rows, what, step};
  int64_t const each = rpo_sums_count(what) * b->stride;
  if (b->n_chunks > INT64_MAX / each) return rpo_fail_memory(err, "the leaves");
  if (b->n_chunks * each > b->partial_room) {
    rpo_delete(b->partial);
    b->partial = rpo_new(b->n_chunks * each, 4);
    b->partial_room = b->partial == NULL ? 0 : b->n_chunks * each;
    if (b->partial == NULL) return rpo_fail_memory(err, "the leaves");
  }
  return rpo_run(control, b->n_chunks, sum_task, &s, err);
}

void rpo_boost_add_chunks(const rpo_boost *b, rpo_sums what, int which, int64_t first, int64_t end,
                          double *out) {
  int64_t const sums = rpo_sums_count(what);
  memset(out, 0, (size_t)b->d * sizeof *out);
  for (int64_t c = first; c < end; c++) {
    const float *const part = b->partial + (c * sums + which) * b->stride;
    for (int64_t j = 0; j < b->d; j++) out[j] += (double)part[j];
  }
}

/* ---- Values ---- */

/* e^x - x - 1 for 0 <= x <= 30, from above: the series to a power whose rest is bounded by halving. */
static double beyond_line(double x) {
  double term = 0.5 * x * x, sum = term;
  for (int k = 3; k < 100 && term > 1e-17 * sum; k++) {
    term *= x / (double)k;
    sum += term;
  }
  return sum;
}

/* How far a score may move until the curvature is e times as large; 0: it never grows. */
static double slowness(int32_t loss) {
  return loss == RPO_LOSS_LOGISTIC ? 1.0 : loss == RPO_LOSS_EXPONENTIAL ? 2.0 : 0.0;
}

/* A step that cannot raise the loss, from sums of gradients and curvatures alone: of logistic and
 * exponential losses the curvature changes by no more than e^|t| (e^(|t|/2)) along a step t, so that
 *   loss(t) - loss(0) <= -G t + H (e^|t| - |t| - 1).
 * The step is halved until that is not positive. Softmax: see joint_share; the other losses lie below
 * their parabola. */
static double safe_step(double slow, double g, double h, double step) {
  if (slow == 0.0) return step;
  for (int i = 0; i < RPO_HALVINGS; i++) {
    double const t = fabs(step) / slow;
    if (t <= 1.0 && h * step * step * RPO_BEND <= g * step) break;
    if (t <= 30.0 && h * slow * slow * beyond_line(t) <= g * step) break;
    step *= 0.5;
  }
  return step;
}

static double newton_value(const rpo_boost *b, double g, double h) {
  double const below = h + b->l2;
  if (!(below > 0.0) || 0.5 * g * g / below < b->min_gain) return 0.0;
  return safe_step(slowness(b->loss), g, h, b->rate * g / below);
}

/* Nearly all are safe by the first look. */
static void newton_values(const rpo_boost *b, const double *g, const double *h, float *value) {
  double const slow = slowness(b->loss);
  rpo_newton const how = {b->rate, b->l2, b->min_gain, slow > 0.0 ? slow : INFINITY};
  if (b->kernels->newton_values(b->d, &how, g, h, value) == 0) return;
  for (int64_t j = 0; j < b->d; j++) value[j] = (float)newton_value(b, g[j], h[j]);
}

/* Softmax couples the outputs: the curvature along the steps t of a leaf is the sum over its rows of t's
 * variance under p, at most 2 sum p (1 - p) t^2, and grows by e^r at most, r the range of t. Returns the
 * power of 1/2 that makes a step of the whole row which cannot raise the loss. */
static double joint_share(int64_t d, const double *g, const double *h, const float *step) {
  double slope = 0.0, bend = 0.0, low = 0.0, high = 0.0, share = 1.0;
  for (int64_t j = 0; j < d; j++) {
    double const t = (double)step[j];
    slope += g[j] * t;
    bend += h[j] * t * t;
    low = t < low ? t : low;
    high = t > high ? t : high;
  }
  bend *= 2.0 * (double)(d - 1) / (double)d; /* h has the factor d / (d - 1) */
  for (int i = 0; i < RPO_HALVINGS; i++) {
    double const r = share * (high - low);
    if (r <= 1.0 && bend * share * RPO_BEND <= slope) break;
    if (r <= 30.0 && bend * share * beyond_line(r) <= slope * r * r) break;
    share *= 0.5;
  }
  return share;
}

typedef struct labelling {
  rpo_boost *b;
  rpo_sums what;
  const int64_t *first; /* leaves + 1: a leaf's chunks */
  const double *weight; /* of leaves */
  double **own;         /* by thread: 2 d */
} labelling;

/* Of the leaf's row of the table: its values, without the factor that a line search finds. */
static rpo_status label_leaf(void *context, int64_t leaf, int thread, rpo_job *job,
                             rpo_error *err) {
  const labelling *const l = context;
  rpo_boost *const b = l->b;
  int const newton = b->leaf == RPO_LEAF_NEWTON;
  float *const row = b->table + leaf * b->stride;
  double *const g = l->own[thread], *const h = g + b->d;
  (void)job;
  (void)err;
  rpo_boost_add_chunks(b, l->what, 0, l->first[leaf], l->first[leaf + 1], g);
  if (newton) rpo_boost_add_chunks(b, l->what, 1, l->first[leaf], l->first[leaf + 1], h);
  if (newton) newton_values(b, g, h, row);
  for (int64_t j = 0; j < b->d && !newton; j++) row[j] = (float)(g[j] / l->weight[leaf]);
  if (newton && b->loss == RPO_LOSS_SOFTMAX) {
    double const share = joint_share(b->d, g, h, row);
    for (int64_t j = 0; j < b->d; j++) row[j] *= (float)share;
  }
  for (int64_t j = b->d; j < b->stride; j++) row[j] = 0.0f;
  return RPO_OK;
}

/* b->table from the sums of b->partial. */
static rpo_status label_leaves(rpo_boost *b, const rpo_tree *tree, rpo_sums what,
                               const rpo_control *control, rpo_error *err) {
  rpo_status status = RPO_OK;
  int64_t *const first = rpo_new_zero(tree->n_leaves + 1, 8);
  int const threads = rpo_threads(control, tree->n_leaves);
  double **const own = rpo_new_zero(threads, (int64_t)sizeof *own);
  labelling l = {b, what, first, tree->leaf_weight, own};
  int ready = first != NULL && own != NULL;
  for (int i = 0; ready && i < threads; i++) ready = (own[i] = rpo_new(2 * b->d, 8)) != NULL;
  if (ready) {
    for (int64_t c = 0; c < b->n_chunks; c++) first[b->chunk[c].leaf + 1] = c + 1;
    for (int64_t i = 0; i < tree->n_leaves; i++) {
      if (first[i + 1] == 0) first[i + 1] = first[i];
    }
    status = rpo_run(control, tree->n_leaves, label_leaf, &l, err);
  } else {
    status = rpo_fail_memory(err, "the leaves");
  }
  for (int i = 0; own != NULL && i < threads; i++) rpo_delete(own[i]);
  rpo_delete(own);
  rpo_delete(first);
  return status;
}

/* ---- What the model keeps ---- */

typedef struct keeping {
  rpo_boost *b;
  rpo_boost_tree *t;
} keeping;

/* Rounds the leaf's values: later rounds see what is kept. */
static rpo_status count_leaf(void *context, int64_t leaf, int thread, rpo_job *job,
                             rpo_error *err) {
  const keeping *const k = context;
  float *const row = k->b->table + leaf * k->b->stride;
  int64_t entries = 0;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t j = 0; j < k->b->d && k->b->half; j++) {
    row[j] = rpo_half_value(rpo_half_of(row[j]));
  }
  for (int64_t j = 0; j < k->b->d; j++) entries += row[j] != 0.0f;
  k->t->start[leaf + 1] = entries;
  return RPO_OK;
}

static rpo_status keep_leaf(void *context, int64_t leaf, int thread, rpo_job *job, rpo_error *err) {
  const keeping *const k = context;
  rpo_boost_tree *const t = k->t;
  const rpo_boost *const b = k->b;
  float *const row = b->table + leaf * b->stride;
  int64_t e = t->start[leaf], end = t->start[leaf + 1];
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t j = 0; e < end; j++) { /* zeros are written over */
    t->index[e] = (int32_t)j;
    if (b->half) {
      t->half[e] = rpo_half_of(row[j]);
    } else {
      t->single[e] = row[j];
    }
    e += row[j] != 0.0f;
  }
  b->kernels->keep_steps(b->loss, b->d, b->stride, row);
  return RPO_OK;
}

rpo_status rpo_boost_keep(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                          rpo_error *err) {
  int64_t const leaves = t->tree.n_leaves;
  keeping k = {b, t};
  t->start = rpo_new_zero(leaves + 1, 8);
  if (t->start == NULL) return rpo_fail_memory(err, "the leaves");
  RPO_TRY(rpo_run(control, leaves, count_leaf, &k, err));
  for (int64_t l = 0; l < leaves; l++) t->start[l + 1] += t->start[l];
  int64_t const entries = t->start[leaves];
  t->index = rpo_new(entries, 4);
  if (b->half) {
    t->half = rpo_new(entries, 2);
  } else {
    t->single = rpo_new(entries, 4);
  }
  if (t->index == NULL || (b->half ? (void *)t->half : (void *)t->single) == NULL) {
    return rpo_fail_memory(err, "the leaves");
  }
  return rpo_run(control, leaves, keep_leaf, &k, err);
}

rpo_status rpo_boost_component(const rpo_boost *b, rpo_boost_tree *t, rpo_error *err) {
  const rpo_tree *const tree = &t->tree;
  t->component = rpo_new(tree->n_leaves, 4);
  t->step = rpo_new_zero(b->stride, 4);
  if (t->component == NULL || t->step == NULL) return rpo_fail_memory(err, "the leaves");
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    double sum = 0.0;
    for (int64_t i = tree->leaf_start[l]; i < tree->leaf_start[l + 1]; i++) {
      sum += b->weight[tree->rows[i]] * b->z[tree->rows[i]];
    }
    t->component[l] = (float)(sum / tree->leaf_weight[l]);
  }
  return RPO_OK;
}

/* Line 7: every output takes its own multiple of the component. */
static rpo_status label_rank_one(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                                 rpo_error *err) {
  int64_t const leaves = t->tree.n_leaves;
  RPO_TRY(rpo_boost_component(b, t, err));
  for (int64_t l = 0; l < leaves; l++) {
    float *const row = b->table + l * b->stride;
    for (int64_t j = 0; j < b->stride; j++) row[j] = j < b->d ? t->component[l] : 0.0f;
  }
  RPO_TRY(rpo_boost_step(b, t, 0, t->step, control, err));
  for (int64_t j = 0; j < b->stride; j++) t->step[j] *= (float)b->rate;
  for (int64_t l = 0; l < leaves; l++) {
    float *const row = b->table + l * b->stride;
    for (int64_t j = 0; j < b->stride; j++) row[j] = t->component[l] * t->step[j];
  }
  return RPO_OK;
}

/* Algorithms 2 and 4: mean gradients of leaves, times the step of each output. */
static rpo_status scale_means(rpo_boost *b, rpo_boost_tree *t, rpo_sums what,
                              const rpo_control *control, rpo_error *err) {
  float *const step = rpo_new_zero(b->stride, 4);
  if (step == NULL) return rpo_fail_memory(err, "the leaves");
  rpo_status const status = rpo_boost_step(b, t, what == RPO_SUM_NEWTON, step, control, err);
  for (int64_t l = 0; status == RPO_OK && l < t->tree.n_leaves; l++) {
    float *const row = b->table + l * b->stride;
    for (int64_t j = 0; j < b->d; j++) row[j] *= (float)b->rate * step[j];
  }
  rpo_delete(step);
  return status;
}

rpo_status rpo_boost_table(rpo_boost *b, int64_t leaves, rpo_error *err) {
  if (leaves > INT64_MAX / b->stride) return rpo_fail_memory(err, "the leaves");
  int64_t const slot = rpo_boost_slot(b, b->rounds);
  float **const table = &b->tables[slot];
  int64_t *const room = &b->table_room[slot];
  if (leaves * b->stride > *room) {
    rpo_delete(*table);
    *table = rpo_new(leaves * b->stride, 4);
    *room = *table == NULL ? 0 : leaves * b->stride;
  }
  b->table = *table;
  return b->table == NULL ? rpo_fail_memory(err, "the leaves") : RPO_OK;
}

static rpo_status keep_steps_of_leaf(void *context, int64_t leaf, int thread, rpo_job *job,
                                     rpo_error *err) {
  const rpo_boost *const b = context;
  (void)thread;
  (void)job;
  (void)err;
  b->kernels->keep_steps(b->loss, b->d, b->stride, b->table + leaf * b->stride);
  return RPO_OK;
}

rpo_status rpo_boost_keep_steps(rpo_boost *b, int64_t leaves, const rpo_control *control,
                                rpo_error *err) {
  return rpo_run(control, leaves, keep_steps_of_leaf, b, err);
}

static rpo_status label_relabelled(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                                   rpo_error *err) {
  const rpo_tree *const tree = &t->tree;
  int const newton = b->leaf == RPO_LEAF_NEWTON;
  if (newton && b->loss == RPO_LOSS_ABSOLUTE) {
    RPO_TRY(rpo_boost_median_leaves(b, t, control, err));
    return rpo_boost_keep(b, t, control, err);
  }
  rpo_sums const what = newton || rpo_boost_searches(b, 1) ? RPO_SUM_NEWTON : RPO_SUM_GRADIENT;
  RPO_TRY(rpo_boost_sum(b, tree->rows, what, NULL, control, err));
  RPO_TRY(label_leaves(b, tree, what, control, err));
  if (!newton) RPO_TRY(scale_means(b, t, what, control, err));
  return rpo_boost_keep(b, t, control, err);
}

rpo_status rpo_boost_label(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                           rpo_error *err) {
  const rpo_tree *const tree = &t->tree;
  RPO_TRY(rpo_boost_table(b, tree->n_leaves, err));
  RPO_TRY(rpo_boost_chunks(b, tree->rows, tree->leaf_start, tree->n_leaves, err));
  if (b->relabel) return label_relabelled(b, t, control, err);
  RPO_TRY(label_rank_one(b, t, control, err));
  return rpo_boost_keep_steps(b, tree->n_leaves, control, err);
}
