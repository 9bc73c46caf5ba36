/* Passes over the scores: rows in blocks, parallel, each row by one thread. */
#include <math.h>
#include <string.h>

#include "boost_low.h"
#include "mem.h"

#define TASK_NUMBERS 65536     /* scores of a task */
#define LOSS_NUMBERS (1 << 20) /* of more scores, the training loss is told by some rows */
#define LOSS_APART 16
#define SMALL_NUMBERS (1 << 17) /* of fewer scores a pass is over before a second thread is awake */

static int64_t task_rows(const rpo_boost *b) {
  int64_t const blocks = TASK_NUMBERS / (b->block * b->stride);
  return b->block * (blocks > 1 ? blocks : 1);
}

rpo_control rpo_boost_control(const rpo_boost *b, const rpo_control *control) {
  rpo_control quiet = {1, 0, NULL, NULL, NULL};
  if (control != NULL) quiet = *control;
  if (b->last_seconds < 0.1) quiet.progress = NULL;
  quiet.work = NULL;
  if (b->callback != NULL || b->n < SMALL_NUMBERS / b->stride) quiet.n_threads = 1;
  return quiet;
}

rpo_status rpo_boost_threads(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  int const threads = rpo_threads(control, INT32_MAX);
  if (threads <= b->threads) return RPO_OK;
  float **const rows = rpo_grow(b->rows, b->threads, threads, (int64_t)sizeof *rows);
  if (rows == NULL) return rpo_fail_memory(err, "boosting");
  b->rows = rows;
  for (; b->threads < threads; b->threads++) {
    rows[b->threads] = rpo_new_zero(RPO_ROW_KINDS * b->block * b->stride, 4);
    if (rows[b->threads] == NULL) return rpo_fail_memory(err, "boosting");
  }
  return RPO_OK;
}

/* ---- y and gradients of a block of rows ---- */

const float *rpo_boost_spread(const rpo_boost *b, int thread, const int32_t *rows, int64_t count) {
  if (b->y_start == NULL && count == 1) return b->y_value + rows[0] * b->stride;
  float *const y = rpo_boost_rows(b, thread, RPO_ROW_Y);
  for (int64_t i = 0; i < count; i++) {
    float *const to = y + i * b->stride;
    if (b->y_start == NULL) {
      memcpy(to, b->y_value + rows[i] * b->stride, (size_t)b->stride * 4);
      continue;
    }
    for (int64_t e = b->y_start[rows[i]]; e < b->y_start[rows[i] + 1]; e++) {
      to[b->y_index[e]] = b->y_value == NULL ? 1.0f : b->y_value[e];
    }
  }
  return y;
}

void rpo_boost_wipe(const rpo_boost *b, int thread, const int32_t *rows, int64_t count) {
  if (b->y_start == NULL) return;
  float *const y = rpo_boost_rows(b, thread, RPO_ROW_Y);
  for (int64_t i = 0; i < count; i++) {
    for (int64_t e = b->y_start[rows[i]]; e < b->y_start[rows[i] + 1]; e++) {
      y[i * b->stride + b->y_index[e]] = 0.0f;
    }
  }
}

#define LARGEST_GRADIENT 1e30f /* sums of many fit floats */

/* The callback knows rows of d numbers. */
static rpo_status ask_caller(const rpo_boost *b, const int32_t *rows, int64_t count, const float *f,
                             float *g, float *h, rpo_error *err) {
  float *const own = rpo_new(3 * count * b->d, 4);
  if (own == NULL) return rpo_fail_memory(err, "the gradient");
  float *const own_g = own + count * b->d, *const own_h = own + 2 * count * b->d;
  for (int64_t i = 0; i < count; i++) {
    memcpy(own + i * b->d, f + i * b->stride, (size_t)b->d * 4);
  }
  int32_t const stop = b->callback(b->user, count, rows, own, own_g, h == NULL ? NULL : own_h);
  for (int64_t i = 0; i < count; i++) {
    memcpy(g + i * b->stride, own_g + i * b->d, (size_t)b->d * 4);
    if (h != NULL) memcpy(h + i * b->stride, own_h + i * b->d, (size_t)b->d * 4);
  }
  rpo_status status = stop ? rpo_fail(err, RPO_ECANCELED, "cancelled by the loss") : RPO_OK;
  for (int64_t i = 0; i < count * b->d && status == RPO_OK; i++) {
    int const bad_g = !(fabsf(own_g[i]) <= LARGEST_GRADIENT);
    if (bad_g || (h != NULL && !(fabsf(own_h[i]) <= LARGEST_GRADIENT))) {
      status = rpo_fail(err, RPO_EINVAL, "loss: the %s must be finite, found %g for row %d",
                        bad_g ? "gradient" : "curvature", (double)(bad_g ? own_g[i] : own_h[i]),
                        (int)rows[i / b->d]);
    }
  }
  rpo_delete(own);
  return status;
}

rpo_status rpo_boost_gradient(const rpo_boost *b, int thread, const int32_t *rows, int64_t count,
                              const float *f, int curvature, rpo_error *err) {
  float *const g = rpo_boost_rows(b, thread, RPO_ROW_GRADIENT);
  float *const h = curvature ? rpo_boost_rows(b, thread, RPO_ROW_CURVATURE) : NULL;
  if (b->callback != NULL) {
    RPO_TRY(ask_caller(b, rows, count, f, g, h, err));
  } else {
    const float *const y = rpo_boost_spread(b, thread, rows, count);
    b->kernels->loss(b->loss, count, b->d, b->stride, f, y, b->delta, g, h);
    rpo_boost_wipe(b, thread, rows, count);
  }
  for (int64_t i = 0; b->entry_weight != NULL && i < count; i++) {
    const float *const w = b->entry_weight + rows[i] * b->stride;
    for (int64_t j = 0; j < b->d; j++) g[i * b->stride + j] *= w[j];
    for (int64_t j = 0; curvature && j < b->d; j++) h[i * b->stride + j] *= w[j];
  }
  return RPO_OK;
}

/* ---- Losses ---- */

static double row_loss(const rpo_boost *b, int thread, int32_t row, const float *f) {
  if (b->callback != NULL) return NAN;
  const float *const y = rpo_boost_spread(b, thread, &row, 1);
  double sum = 0.0;
  if (b->entry_weight == NULL || b->loss == RPO_LOSS_SOFTMAX) {
    sum = b->kernels->loss_value(b->loss, b->d, f, y, b->delta);
  } else {
    float *const score = rpo_boost_rows(b, thread, RPO_ROW_SCORE);
    memcpy(score, f, (size_t)b->stride * sizeof *f);
    b->kernels->tell_scores(b->loss, b->d, score);
    for (int64_t j = 0; j < b->d; j++) {
      double const w = (double)b->entry_weight[row * b->stride + j];
      double const delta = b->delta == NULL ? 0.0 : (double)b->delta[j];
      if (w > 0.0) sum += w * rpo_loss_entry(b->loss, (double)score[j], (double)y[j], delta);
    }
  }
  rpo_boost_wipe(b, thread, &row, 1);
  return sum;
}

/* ---- First pass ---- */

typedef struct pass {
  rpo_boost *b;
  const int32_t *rows; /* NULL: all */
  int64_t n, each;
  double *sum, *weight; /* by task: losses and weights; NULL: not wanted */
  int64_t apart;        /* of the sample's rows, one in so many tells its loss */
} pass;

static void project(const rpo_boost *b, const float *g, double *z) {
  if (b->phi == NULL) {
    for (int64_t j = 0; j < b->d; j++) z[j] = (double)g[j];
  } else {
    b->kernels->project_row(b->phi, b->m, b->stride, g, z);
  }
}

static const float *step_of(const rpo_boost *b, int64_t row, int64_t round) {
  return b->tables[rpo_boost_slot(b, round)] + rpo_boost_leaf_of(b, round)[row] * b->stride;
}

/* Trees before `round`, in order; once only: a pass that was cancelled half way can be run again. */
static void settle(const rpo_boost *b, int64_t row, int64_t round) {
  for (int64_t r = b->settled[row]; r < round; r++) {
    b->kernels->take_steps(b->loss, b->d, b->stride, b->kept + row * b->stride, step_of(b, row, r));
    b->settled[row] = r + 1;
  }
}

static void add_loss(const pass *p, int64_t task, int thread, int64_t at) {
  const rpo_boost *const b = p->b;
  int32_t const row = b->bag[at];
  if (p->sum == NULL || at % p->apart != 0) return;
  p->sum[task] += b->weight[row] * row_loss(b, thread, row, b->kept + row * b->stride);
  p->weight[task] += b->weight[row];
}

/* The step to be taken on the way; of softmax none is, rows are changed as a whole. */
static const float *last_step(const rpo_boost *b, int64_t row) {
  if (b->loss == RPO_LOSS_SOFTMAX || b->settled[row] >= b->rounds) return NULL;
  return step_of(b, row, b->rounds - 1);
}

/* Rows of whole lines and one component: no gradient is written down. */
static void update_line(const rpo_boost *b, int thread, int32_t row, int32_t after) {
  rpo_row_pass r = {b->kept + row * b->stride,  last_step(b, row), NULL, b->delta, b->phi,
                    b->kept + after * b->stride};
  settle(b, row, r.step == NULL ? b->rounds : b->rounds - 1);
  r.y = rpo_boost_spread(b, thread, &row, 1);
  b->z[row] = b->kernels->project_loss(b->loss, b->d, b->stride, &r);
  b->settled[row] = b->rounds;
  rpo_boost_wipe(b, thread, &row, 1);
}

static void update_lines(const pass *p, int64_t task, int thread, int64_t next, int64_t first,
                         int64_t end, const rpo_job *job) {
  const rpo_boost *const b = p->b;
  int64_t const ahead = rpo_boost_ahead(b);
  for (; next < b->n_bag && b->bag[next] < end && !rpo_stopped(job); next++) {
    update_line(b, thread, b->bag[next], b->bag[next + ahead < b->n_bag ? next + ahead : next]);
    add_loss(p, task, thread, next);
  }
  for (int64_t i = first; i < end && !rpo_stopped(job); i++) {
    if (b->rounds - b->settled[i] >= b->late) settle(b, i, b->rounds);
  }
}

/* The bag's rows of a block, all of them when rows are short: their scores lie side by side anyway. */
static rpo_status update_block(const pass *p, int64_t task, int thread, int64_t *next,
                               int64_t first, int64_t end, rpo_error *err) {
  rpo_boost *const b = p->b;
  int32_t rows[1024];
  for (int64_t i = first; i < end; i++) {
    settle(b, i, b->rounds);
    rows[i - first] = (int32_t)i;
  }
  int64_t at = *next, bagged = 0;
  while (at + bagged < b->n_bag && b->bag[at + bagged] < end) bagged++;
  *next += bagged;
  if (bagged == 0) return RPO_OK;
  const float *const f = b->kept + first * b->stride;
  RPO_TRY(rpo_boost_gradient(b, thread, rows, end - first, f, 0, err));
  const float *const g = rpo_boost_rows(b, thread, RPO_ROW_GRADIENT);
  for (int64_t i = 0; i < bagged; i++) {
    int64_t const row = b->bag[at + i];
    project(b, g + (row - first) * b->stride, b->z + row * b->z_apart);
    add_loss(p, task, thread, at + i);
  }
  return RPO_OK;
}

static int64_t first_of(const rpo_boost *b, int64_t row) {
  int64_t low = 0, end = b->n_bag; /* the first of the bag not before it */
  while (low < end) {
    int64_t const middle = low + (end - low) / 2;
    if (b->bag[middle] < row) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  return low;
}

static rpo_status update_task(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const pass *const p = context;
  rpo_boost *const b = p->b;
  int64_t const first = task * p->each;
  int64_t const end = first + p->each < b->n ? first + p->each : b->n;
  int64_t next = first_of(b, first);
  if (rpo_boost_projects_lines(b)) {
    update_lines(p, task, thread, next, first, end, job);
    return RPO_OK;
  }
  for (int64_t i = first; i < end; i += b->block) {
    RPO_TRY(update_block(p, task, thread, &next, i, i + b->block < end ? i + b->block : end, err));
    if (rpo_stopped(job)) break;
  }
  return RPO_OK;
}

static double mean_of(const pass *p, int64_t tasks) {
  double sum = 0.0, weight = 0.0;
  for (int64_t t = 0; t < tasks; t++) {
    sum += p->sum[t];
    weight += p->weight[t];
  }
  return sum / weight / (double)(p->b->loss == RPO_LOSS_SOFTMAX ? 1 : p->b->d);
}

static rpo_status start_sums(pass *p, int64_t tasks, rpo_error *err) {
  p->sum = rpo_new_zero(2 * tasks, 8);
  if (p->sum == NULL) return rpo_fail_memory(err, "the loss");
  p->weight = p->sum + tasks;
  return RPO_OK;
}

rpo_status rpo_boost_update(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  pass p = {b, NULL, b->n, task_rows(b), NULL, NULL, 1};
  int64_t const tasks = (b->n + p.each - 1) / p.each;
  p.apart = b->n_bag > LOSS_NUMBERS / b->d ? LOSS_APART : 1;
  if (b->keep_loss) RPO_TRY(start_sums(&p, tasks, err));
  rpo_status const status = rpo_run(control, tasks, update_task, &p, err);
  if (status == RPO_OK && b->keep_loss) b->train_loss[b->rounds] = mean_of(&p, tasks);
  rpo_delete(p.sum);
  return status;
}

static rpo_status settle_task(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const pass *const p = context;
  int64_t const first = task * p->each;
  int64_t const end = first + p->each < p->n ? first + p->each : p->n;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t i = first; i < end; i++) settle(p->b, i, p->b->rounds);
  return RPO_OK;
}

rpo_status rpo_boost_settle(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  pass p = {b, NULL, b->n, task_rows(b), NULL, NULL, 1};
  rpo_control const passes = rpo_boost_control(b, control);
  return rpo_run(&passes, (b->n + p.each - 1) / p.each, settle_task, &p, err);
}

/* ---- Watched rows ---- */

static rpo_status watch_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const pass *const p = context;
  rpo_boost *const b = p->b;
  int64_t const first = task * p->each;
  int64_t const end = first + p->each < p->n ? first + p->each : p->n;
  (void)job;
  (void)err;
  for (int64_t i = first; i < end; i++) {
    int32_t const row = p->rows[i];
    settle(b, row, b->rounds);
    p->sum[task] += b->watch[row] * row_loss(b, thread, row, b->kept + row * b->stride);
    p->weight[task] += b->watch[row];
  }
  return RPO_OK;
}

rpo_status rpo_boost_watch(rpo_boost *b, const rpo_control *control, double *loss, rpo_error *err) {
  pass p = {b, b->watched, b->n_watched, task_rows(b), NULL, NULL, 1};
  *loss = b->low != NULL ? rpo_low_watch(b) : NAN;
  if (b->low != NULL || b->n_watched == 0) return RPO_OK;
  int64_t const tasks = (p.n + p.each - 1) / p.each;
  RPO_TRY(start_sums(&p, tasks, err));
  rpo_status const status = rpo_run(control, tasks, watch_task, &p, err);
  if (status == RPO_OK) *loss = mean_of(&p, tasks);
  rpo_delete(p.sum);
  return status;
}
