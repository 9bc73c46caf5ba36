/* The step along what a tree says (Algorithms 2 and 4, line 6; 3, line 7): for every output the rho
 * that minimises sum_i w l(y, F + rho v), all outputs in one pass over the rows for each try. */
#include <math.h>
#include <string.h>

#include "boost.h"
#include "loss.h"
#include "mem.h"
#include "vmath.h"

#define TRIES 24
#define FLAT \
  1e-4 /* of the slope at first, or of the step: a hundred-millionth of a parabola's gain is left */
#define FARTHEST \
  30.0 /* scores change by no more: where both derivatives vanish, nothing is gained */

/* One output's search: the derivative -D of a convex function is negative at `low`, positive at
 * `high`, both on the side of zero on which the loss falls. */
typedef struct line {
  double at, low, high; /* high: INFINITY until known */
  double slope;         /* D at 0, made positive */
  double far;           /* largest step */
  int done;
} line;

static void start_line(line *l, double slope, double curvature, double reach) {
  memset(l, 0, sizeof *l);
  l->slope = slope;
  l->high = INFINITY;
  l->far = reach > 1e-30 ? FARTHEST / reach : 0.0;
  l->done = !(slope > 0.0) || !(l->far > 0.0);
  if (l->done) return;
  l->at = curvature > 0.0 ? slope / curvature : 1.0;
  if (!(l->at < l->far)) l->at = l->far;
}

/* Takes what was found at l->at, chooses the next try: Newton's where it stays in the bracket. */
static void go_on(line *l, double slope, double curvature) {
  if (l->done) return;
  if (fabs(slope) <= FLAT * l->slope) {
    l->low = l->at;
    l->done = 1;
    return;
  }
  if (slope > 0.0) {
    l->low = l->at;
  } else {
    l->high = l->at;
  }
  if (l->low >= l->far || (isfinite(l->high) && l->high - l->low <= FLAT * l->high)) {
    l->done = 1;
    return;
  }
  double next = curvature > 0.0 ? l->at + slope / curvature : INFINITY;
  if (!(next > l->low && next < l->high)) {
    next = isfinite(l->high) ? 0.5 * (l->low + l->high) : 2.0 * l->at;
  }
  l->at = next < l->far ? next : l->far;
}

/* One Newton step that cannot raise the loss: of logistic and exponential losses the curvature along
 * the way stays below e^t (e^(t/2)) times what it is here, t the largest change of a score; of softmax
 * (see joint_share) below e^2t times 2 sum p (1 - p) v^2. */
static double one_step(const rpo_boost *b, double slope, double curvature, double reach) {
  double const below = curvature + b->l2;
  if (!(slope > 0.0) || !(below > 0.0)) return 0.0;
  double step = slope / below;
  double const slow = b->loss == RPO_LOSS_LOGISTIC      ? 1.0
                      : b->loss == RPO_LOSS_EXPONENTIAL ? 2.0
                      : b->loss == RPO_LOSS_SOFTMAX     ? 0.5
                                                        : 0.0;
  if (b->loss == RPO_LOSS_SOFTMAX) curvature *= 2.0 * (double)(b->d - 1) / (double)b->d;
  for (int i = 0; slow > 0.0 && i < RPO_HALVINGS; i++) {
    double const t = b->rate * step * reach / slow;
    double const bend = t < 1e-3 ? 0.5 * (1.0 + t) : (rpo_exp(t) - t - 1.0) / (t * t);
    if (t <= 30.0 && curvature * b->rate * step * bend <= slope) break;
    step *= 0.5;
  }
  return step;
}

/* Sums over all rows, by output: of g v and of h v^2; of softmax all in the first. */
typedef struct sums {
  double *slope, *curvature;
} sums;

static void join_classes(const rpo_boost *b, sums *s) {
  for (int64_t j = 1; b->loss == RPO_LOSS_SOFTMAX && j < b->d; j++) {
    s->slope[0] += s->slope[j];
    s->curvature[0] += s->curvature[j];
  }
}

/* At no step, from the sums of leaves that b->partial has. */
static void recall(const rpo_boost *b, sums *s) {
  memset(s->slope, 0, (size_t)b->d * sizeof *s->slope);
  memset(s->curvature, 0, (size_t)b->d * sizeof *s->curvature);
  for (int64_t c = 0; c < b->n_chunks; c++) {
    const float *const g = b->partial + 2 * c * b->stride, *const h = g + b->stride;
    const float *const v = b->table + b->chunk[c].leaf * b->stride;
    for (int64_t j = 0; j < b->d; j++) {
      s->slope[j] += (double)v[j] * (double)g[j];
      s->curvature[j] += (double)v[j] * (double)v[j] * (double)h[j];
    }
  }
  join_classes(b, s);
}

static rpo_status evaluate(rpo_boost *b, const rpo_tree *tree, const float *step, sums *s,
                           const rpo_control *control, rpo_error *err) {
  RPO_TRY(rpo_boost_sum(b, tree->rows, RPO_SUM_STEP, step, control, err));
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 0, 0, b->n_chunks, s->slope);
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 1, 0, b->n_chunks, s->curvature);
  join_classes(b, s);
  return RPO_OK;
}

/* ---- The last outputs, after most are done: their scores are copied side by side ---- */

typedef struct rest {
  rpo_boost *b;
  const int32_t *rows;
  const float *step;
  int64_t n;       /* at most d / 2 */
  int32_t *output; /* n of them */
  int32_t *place;  /* by output: its place among them, or -1 */
  float *delta;    /* huber: n */
} rest;

static void rest_take(const rest *r, const float *from, float *to) {
  for (int64_t j = 0; j < r->n; j++) to[j] = from[r->output[j]];
}

/* y of a row, into zeros. */
static void rest_spread(const rest *r, int32_t row, float *y) {
  const rpo_boost *const b = r->b;
  if (b->y_start == NULL) {
    rest_take(r, b->y_value + row * b->stride, y);
    return;
  }
  for (int64_t e = b->y_start[row]; e < b->y_start[row + 1]; e++) {
    int32_t const place = r->place[b->y_index[e]];
    if (place >= 0) y[place] = b->y_value == NULL ? 1.0f : b->y_value[e];
  }
}

/* As sum_task, of the rest. */
static rpo_status rest_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  const rest *const r = context;
  const rpo_boost *const b = r->b;
  int64_t const number = b->chunk_order[task], n = r->n;
  const rpo_chunk *const chunk = &b->chunk[number];
  const float *const v = b->table + chunk->leaf * b->stride;
  float *const move = rpo_boost_rows(b, thread, RPO_ROW_MOVE);
  float *const first = b->partial + number * 2 * n, *const second = first + n;
  float *const f = rpo_boost_rows(b, thread, RPO_ROW_SCORE);
  float *const y = rpo_boost_rows(b, thread, RPO_ROW_Y);
  float *const g = rpo_boost_rows(b, thread, RPO_ROW_GRADIENT);
  float *const h = rpo_boost_rows(b, thread, RPO_ROW_CURVATURE);
  (void)err;
  memset(first, 0, (size_t)(2 * n) * sizeof *first);
  for (int64_t j = 0; j < n; j++) move[j] = r->step[r->output[j]] * v[r->output[j]];
  b->kernels->keep_steps(b->loss, n, n, move);
  for (int64_t at = chunk->begin; at < chunk->end; at += b->block) {
    int64_t const count = chunk->end - at < b->block ? chunk->end - at : b->block;
    const int32_t *const rows = r->rows + at;
    if (rpo_stopped(job)) break;
    for (int64_t i = 0; i < count; i++) {
      rest_take(r, b->kept + rows[i] * b->stride, f + i * n);
      b->kernels->take_steps(b->loss, n, n, f + i * n, move);
      rest_spread(r, rows[i], y + i * n);
    }
    b->kernels->loss(b->loss, count, n, n, f, y, r->delta, g, h);
    memset(y, 0, (size_t)(count * n) * sizeof *y);
    for (int64_t i = 0; i < count; i++) {
      float const w = (float)b->weight[rows[i]];
      for (int64_t j = 0; b->entry_weight != NULL && j < n; j++) {
        float const own = b->entry_weight[rows[i] * b->stride + r->output[j]];
        g[i * n + j] *= own;
        h[i * n + j] *= own;
      }
      b->kernels->sum_row(w, g + i * n, n, first);
      b->kernels->sum_row(w, h + i * n, n, second);
    }
  }
  for (int64_t j = 0; j < n; j++) {
    float const along = v[r->output[j]];
    first[j] *= along;
    second[j] *= along * along;
  }
  return RPO_OK;
}

/* The outputs that are open; 0 when they are too many, or cannot be told apart. */
static int64_t find_rest(const rpo_boost *b, const line *lines, rest *r) {
  r->n = 0;
  if (b->loss == RPO_LOSS_SOFTMAX || b->callback != NULL) return 0;
  for (int64_t j = 0; j < b->d; j++) {
    r->place[j] = lines[j].done ? -1 : (int32_t)r->n;
    if (lines[j].done) continue;
    if (2 * (r->n + 1) > b->d) return 0;
    if (b->delta != NULL) r->delta[r->n] = b->delta[j];
    r->output[r->n++] = (int32_t)j;
  }
  return r->n;
}

static rpo_status evaluate_rest(rest *r, sums *s, const rpo_control *control, rpo_error *err) {
  const rpo_boost *const b = r->b;
  RPO_TRY(rpo_run(control, b->n_chunks, rest_task, r, err));
  for (int64_t k = 0; k < r->n; k++) {
    double slope = 0.0, curvature = 0.0;
    for (int64_t c = 0; c < b->n_chunks; c++) {
      slope += (double)b->partial[2 * c * r->n + k];
      curvature += (double)b->partial[(2 * c + 1) * r->n + k];
    }
    s->slope[r->output[k]] = slope;
    s->curvature[r->output[k]] = curvature;
  }
  return RPO_OK;
}

/* ---- The search ---- */

/* By output, the largest |v| of a leaf. */
static void find_reach(const rpo_boost *b, int64_t leaves, double *reach) {
  memset(reach, 0, (size_t)b->d * sizeof *reach);
  for (int64_t l = 0; l < leaves; l++) {
    for (int64_t j = 0; j < b->d; j++) {
      double const v = fabs((double)b->table[l * b->stride + j]);
      int64_t const at = b->loss == RPO_LOSS_SOFTMAX ? 0 : j;
      reach[at] = v > reach[at] ? v : reach[at];
    }
  }
}

static void put_steps(const rpo_boost *b, const line *lines, const double *sign, int final,
                      float *step) {
  for (int64_t j = 0; j < b->d; j++) {
    int64_t const at = b->loss == RPO_LOSS_SOFTMAX ? 0 : j;
    step[j] = (float)(sign[at] * (final || lines[at].done ? lines[at].low : lines[at].at));
  }
}

static void start_lines(const rpo_boost *b, const sums *s, const double *reach, line *lines,
                        double *sign, int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    sign[j] = s->slope[j] < 0.0 ? -1.0 : 1.0;
    if (b->leaf == RPO_LEAF_NEWTON) {
      lines[j].low = one_step(b, fabs(s->slope[j]), s->curvature[j], reach[j]);
      lines[j].done = 1;
      continue;
    }
    start_line(&lines[j], fabs(s->slope[j]), s->curvature[j], reach[j]);
    if (b->loss == RPO_LOSS_SQUARED) { /* exact */
      lines[j].low = s->curvature[j] > 0.0 ? fabs(s->slope[j]) / s->curvature[j] : 0.0;
      lines[j].done = 1;
    }
  }
}

/* ---- Where a logistic search begins: as if all rows of a leaf had the same score ----
 *
 * Labels are few and curvatures small where a leaf wants large steps: Newton's from zero are far off. */

#define GUESS_TRIES 12

typedef struct guess {
  float *base;   /* leaves x stride: scores whose probabilities are the means of the rows' */
  double *told;  /* d: sum over leaves of v times the weight of rows with the label */
  double *count; /* d: that weight in a leaf; then slopes */
  double *bend;  /* d */
  line *line;    /* d */
} guess;

static void read_leaf(const rpo_boost *b, const rpo_tree *tree, int64_t leaf, int64_t first,
                      int64_t end, guess *a) {
  const float *const v = b->table + leaf * b->stride;
  double const weight = tree->leaf_weight[leaf];
  memset(a->count, 0, (size_t)b->d * sizeof *a->count);
  for (int32_t i = tree->leaf_start[leaf]; i < tree->leaf_start[leaf + 1]; i++) {
    int32_t const row = tree->rows[i];
    for (int64_t e = b->y_start[row]; e < b->y_start[row + 1]; e++) {
      a->count[b->y_index[e]] += b->weight[row];
    }
  }
  rpo_boost_add_chunks(b, RPO_SUM_NEWTON, 0, first, end, a->bend);
  for (int64_t j = 0; j < b->d; j++) {
    double const yes = (a->count[j] - a->bend[j]) / weight; /* the mean probability, and the rest */
    double const no = (weight - a->count[j] + a->bend[j]) / weight;
    double const odds = (yes > 1e-30 ? yes : 1e-30) / (no > 1e-30 ? no : 1e-30);
    a->base[leaf * b->stride + j] = (float)rpo_log(odds);
    a->told[j] += (double)v[j] * a->count[j];
  }
}

static void read_leaves(const rpo_boost *b, const rpo_tree *tree, guess *a) {
  int64_t first = 0;
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    int64_t end = first;
    while (end < b->n_chunks && b->chunk[end].leaf == l) end++;
    read_leaf(b, tree, l, first, end, a);
    first = end;
  }
}

static void try_guess(const rpo_boost *b, const rpo_tree *tree, const double *sign, guess *a) {
  float *const f = rpo_boost_rows(b, 0, RPO_ROW_SCORE);
  float *const zero = rpo_boost_rows(b, 0, RPO_ROW_Y);
  float *const step = rpo_boost_rows(b, 0, RPO_ROW_MOVE);
  float *const g = rpo_boost_rows(b, 0, RPO_ROW_GRADIENT);
  float *const h = rpo_boost_rows(b, 0, RPO_ROW_CURVATURE);
  for (int64_t j = 0; j < b->d; j++) {
    step[j] = (float)(sign[j] * a->line[j].at);
    a->count[j] = a->told[j];
    a->bend[j] = 0.0;
  }
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    const float *const v = b->table + l * b->stride, *const base = a->base + l * b->stride;
    double const weight = tree->leaf_weight[l];
    for (int64_t j = 0; j < b->d; j++) f[j] = base[j] + step[j] * v[j];
    b->kernels->keep_scores(b->loss, b->d, b->d, f);
    b->kernels->loss(b->loss, 1, b->d, b->stride, f, zero, NULL, g, h);
    for (int64_t j = 0; j < b->d; j++) {
      double const along = weight * (double)v[j];
      a->count[j] += along * (double)g[j];
      a->bend[j] += along * (double)v[j] * (double)h[j];
    }
  }
  for (int64_t j = 0; j < b->d; j++) go_on(&a->line[j], sign[j] * a->count[j], a->bend[j]);
}

/* Moves the first tries; b->partial has the sums of leaves. */
static rpo_status guess_steps(rpo_boost *b, const rpo_tree *tree, const double *sign, line *lines,
                              rpo_error *err) {
  rpo_status status = RPO_OK;
  guess a = {rpo_new(tree->n_leaves * b->stride, 4), rpo_new_zero(3 * b->d, 8), NULL, NULL,
             rpo_new(b->d, (int64_t)sizeof *lines)};
  if (a.base != NULL && a.told != NULL && a.line != NULL) {
    a.count = a.told + b->d;
    a.bend = a.count + b->d;
    memcpy(a.line, lines, (size_t)b->d * sizeof *lines);
    read_leaves(b, tree, &a);
    int64_t open = 1;
    for (int i = 0; i < GUESS_TRIES && open > 0; i++) {
      try_guess(b, tree, sign, &a);
      open = 0;
      for (int64_t j = 0; j < b->d; j++) open += !a.line[j].done;
    }
    for (int64_t j = 0; j < b->d; j++) {
      double const at = a.line[j].done ? a.line[j].low : a.line[j].at;
      if (!lines[j].done && at > 0.0) lines[j].at = at;
    }
  } else {
    status = rpo_fail_memory(err, "the step");
  }
  rpo_delete(a.base);
  rpo_delete(a.told);
  rpo_delete(a.line);
  return status;
}

/* Where leaves have many rows: of few, a pass is as quick. */
static int may_guess(const rpo_boost *b, const rpo_tree *tree) {
  return b->loss == RPO_LOSS_LOGISTIC && b->leaf == RPO_LEAF_MEAN && b->entry_weight == NULL &&
         tree->leaf_weight != NULL && 16 * tree->n_leaves <= tree->leaf_start[tree->n_leaves];
}

static rpo_status search_lines(rpo_boost *b, const rpo_tree *tree, int known, line *lines,
                               double *sign, sums *s, double *reach, rest *r, float *step,
                               const rpo_control *control, rpo_error *err) {
  int64_t const n = b->loss == RPO_LOSS_SOFTMAX ? 1 : b->d;
  memset(step, 0, (size_t)b->stride * sizeof *step);
  find_reach(b, tree->n_leaves, reach);
  if (!known) RPO_TRY(rpo_boost_sum(b, tree->rows, RPO_SUM_NEWTON, NULL, control, err));
  recall(b, s);
  start_lines(b, s, reach, lines, sign, n);
  if (may_guess(b, tree)) RPO_TRY(guess_steps(b, tree, sign, lines, err));
  for (int i = 0; i < TRIES; i++) {
    int64_t open = 0;
    for (int64_t j = 0; j < n; j++) open += !lines[j].done;
    if (open == 0) break;
    put_steps(b, lines, sign, 0, step);
    RPO_TRY(find_rest(b, lines, r) > 0 ? evaluate_rest(r, s, control, err)
                                       : evaluate(b, tree, step, s, control, err));
    for (int64_t j = 0; j < n; j++) go_on(&lines[j], sign[j] * s->slope[j], s->curvature[j]);
  }
  put_steps(b, lines, sign, 1, step);
  return RPO_OK;
}

/* Softmax scores that all move alike change nothing: a component is given to each class by its own
 * Newton step first, and one step is searched along that. The table's columns are multiplied. */
static rpo_status aim_classes(rpo_boost *b, const rpo_tree *tree, double *aim, double *curvature,
                              float *step, const rpo_control *control, rpo_error *err) {
  memset(step, 0, (size_t)b->stride * sizeof *step);
  RPO_TRY(rpo_boost_sum(b, tree->rows, RPO_SUM_STEP, step, control, err));
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 0, 0, b->n_chunks, aim);
  rpo_boost_add_chunks(b, RPO_SUM_STEP, 1, 0, b->n_chunks, curvature);
  for (int64_t j = 0; j < b->d; j++) {
    double const below = curvature[j] + b->l2;
    aim[j] = below > 0.0 ? (double)(float)(aim[j] / below) : 0.0;
    for (int64_t l = 0; l < tree->n_leaves; l++) b->table[l * b->stride + j] *= (float)aim[j];
  }
  return RPO_OK;
}

int rpo_boost_searches(const rpo_boost *b, int means) {
  if (b->loss == RPO_LOSS_ABSOLUTE) return 0;
  return !(b->loss == RPO_LOSS_SQUARED && b->relabel && b->entry_weight == NULL && means);
}

rpo_status rpo_boost_step(rpo_boost *b, const rpo_boost_tree *t, int known, float *step,
                          const rpo_control *control, rpo_error *err) {
  int const means = t->tree.leaf_weight != NULL; /* else what the caller's learner says */
  if (b->loss == RPO_LOSS_ABSOLUTE) return rpo_boost_median_step(b, t, step, control, err);
  if (!rpo_boost_searches(b, means)) {
    for (int64_t j = 0; j < b->d; j++) step[j] = 1.0f; /* means of leaves are the minimum */
    return RPO_OK;
  }
  double *const room = rpo_new_zero(5 * b->d, 8);
  line *const lines = rpo_new_zero(b->d, (int64_t)sizeof *lines);
  int32_t *const places = rpo_new(2 * b->d, 4);
  float *const delta = rpo_new(b->d, 4);
  int const aims = b->loss == RPO_LOSS_SOFTMAX && !b->relabel;
  rpo_status status = RPO_OK;
  if (room == NULL || lines == NULL || places == NULL || delta == NULL) {
    status = rpo_fail_memory(err, "the step");
  } else {
    double *const aim = room + 4 * b->d;
    sums s = {room, room + b->d};
    rest r = {b, t->tree.rows, step, 0, places, places + b->d, delta};
    if (aims) status = aim_classes(b, &t->tree, aim, room, step, control, err);
    if (status == RPO_OK) {
      status = search_lines(b, &t->tree, known, lines, room + 2 * b->d, &s, room + 3 * b->d, &r,
                            step, control, err);
    }
    for (int64_t j = 0; aims && j < b->d; j++) step[j] *= (float)aim[j];
  }
  rpo_delete(room);
  rpo_delete(lines);
  rpo_delete(places);
  rpo_delete(delta);
  return status;
}
