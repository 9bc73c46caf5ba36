#include "boost_low.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "par.h"

#define ROWS 2048   /* of a task: they stay in cache while all rounds add to them */
#define OUTPUTS 512 /* of a task: the same */
#define FEWEST 256  /* outputs, below which passes over scores cost less */
#define FILLED 4    /* Y must have no more than one entry in so many */

/* ---- Ownership ---- */

static void forget(rpo_low *low) {
  rpo_delete(low->asked);
  rpo_delete(low->told);
  low->asked = NULL;
  low->told = NULL;
  low->n_asked = low->told_rounds = 0;
}

void rpo_low_free(rpo_low *low) {
  if (low == NULL) return;
  rpo_delete(low->column);
  rpo_delete(low->row);
  rpo_delete(low->value);
  rpo_delete(low->loss);
  rpo_delete(low->along);
  rpo_delete(low->by_round);
  forget(low);
  rpo_delete(low);
}

static int fits(const rpo_boost *b) {
  int32_t const kind = b->projection.kind;
  return b->loss == RPO_LOSS_SQUARED && !b->relabel && b->y_start != NULL &&
         b->entry_weight == NULL && b->phi != NULL && kind != RPO_PROJECT_TOP &&
         kind != RPO_PROJECT_NORM_SAMPLING && b->d >= FEWEST &&
         b->y_start[b->n] / b->d <= b->n / FILLED;
}

/* Rows of an output ascend. */
static void transpose(const rpo_boost *b, rpo_low *low) {
  int64_t const entries = b->y_start[b->n];
  for (int64_t e = 0; e < entries; e++) low->column[b->y_index[e] + 1]++;
  for (int64_t j = 0; j < b->d; j++) low->column[j + 1] += low->column[j];
  for (int64_t i = 0; i < b->n; i++) {
    for (int64_t e = b->y_start[i]; e < b->y_start[i + 1]; e++) {
      int64_t const to = low->column[b->y_index[e]]++;
      low->row[to] = (int32_t)i;
      if (low->value != NULL) low->value[to] = b->y_value[e];
    }
  }
  memmove(low->column + 1, low->column, (size_t)b->d * sizeof *low->column);
  low->column[0] = 0;
}

rpo_status rpo_low_begin(rpo_boost *b, rpo_error *err) {
  if (!fits(b)) return RPO_OK;
  int64_t const entries = b->y_start[b->n];
  rpo_low *const low = b->low = rpo_new_zero(1, (int64_t)sizeof *low);
  if (low == NULL) return rpo_fail_memory(err, "boosting");
  low->column = rpo_new_zero(b->d + 1, 8);
  low->row = rpo_new(entries, 4);
  if (b->y_value != NULL) low->value = rpo_new(entries, 4);
  low->loss = rpo_new(b->n, 8);
  low->along = rpo_new(b->n, 8);
  if (low->column == NULL || low->row == NULL || (b->y_value != NULL && low->value == NULL) ||
      low->loss == NULL || low->along == NULL) {
    return rpo_fail_memory(err, "boosting");
  }
  transpose(b, low);
  return RPO_OK;
}

void rpo_low_start(rpo_boost *b) {
  double none = 0.0;
  forget(b->low);
  for (int64_t j = 0; j < b->d; j++) none += b->start[j] * b->start[j];
  for (int64_t i = 0; i < b->n; i++) {
    double sum = none;
    for (int64_t e = b->y_start[i]; e < b->y_start[i + 1]; e++) {
      double const y = b->y_value == NULL ? 1.0 : (double)b->y_value[e];
      sum += y * (y - 2.0 * b->start[b->y_index[e]]);
    }
    b->low->loss[i] = 0.5 * sum;
  }
}

static rpo_status reserve_rounds(rpo_boost *b, rpo_error *err) {
  rpo_low *const low = b->low;
  if (b->rounds <= low->room) return RPO_OK;
  rpo_delete(low->by_round);
  low->by_round = rpo_new(b->room, 8);
  low->room = low->by_round == NULL ? 0 : b->room;
  return low->by_round == NULL ? rpo_fail_memory(err, "boosting") : RPO_OK;
}

/* ---- Products ---- */

/* Running sums, added in a fixed order. */
static double dot(const float *a, const float *b, int64_t n) {
  double lane[8] = {0.0}, sum = 0.0;
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (int i = 0; i < 8; i++) lane[i] += (double)a[j + i] * (double)b[j + i];
  }
  for (int i = 0; j < n; j++, i++) lane[i] += (double)a[j] * (double)b[j];
  for (int i = 0; i < 8; i++) sum += lane[i];
  return sum;
}

#define WITH_LEAVES(t, action)                         \
  switch ((t)->leaf_width) {                           \
    case 1: action((const uint8_t *)(t)->leaf) break;  \
    case 2: action((const uint16_t *)(t)->leaf) break; \
    default: action((const int32_t *)(t)->leaf) break; \
  }

/* out -= by times what the tree says of rows first .. end. */
static void subtract(const rpo_boost_tree *t, double by, int64_t first, int64_t end, double *out) {
  const float *const component = t->component;
#define SUBTRACT(leaf)                           \
  for (int64_t i = first; i < end; i++) {        \
    out[i] -= by * (double)component[(leaf)[i]]; \
  }
  WITH_LEAVES(t, SUBTRACT)
#undef SUBTRACT
}

/* The product of what the tree says of all rows with `with`. */
static double product(const rpo_boost_tree *t, const double *with, int64_t n) {
  const float *const component = t->component;
  double lane[4] = {0.0};
  int64_t i = 0;
#define PRODUCT(leaf)                                                                      \
  for (; i + 4 <= n; i += 4) {                                                             \
    for (int k = 0; k < 4; k++) lane[k] += with[i + k] * (double)component[(leaf)[i + k]]; \
  }                                                                                        \
  for (int k = 0; i < n; i++, k++) lane[k] += with[i] * (double)component[(leaf)[i]];
  WITH_LEAVES(t, PRODUCT)
#undef PRODUCT
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

typedef struct pass {
  rpo_boost *b;
  const float *v; /* by output */
  double start;   /* times the constant scores */
  double *out;    /* by row */
} pass;

/* R v */
static rpo_status round_task(void *context, int64_t round, int thread, rpo_job *job,
                             rpo_error *err) {
  const pass *const p = context;
  (void)thread;
  (void)job;
  (void)err;
  p->b->low->by_round[round] = dot(p->b->tree[round].step, p->v, p->b->d);
  return RPO_OK;
}

static rpo_status rows_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  const pass *const p = context;
  const rpo_boost *const b = p->b;
  int64_t const first = task * ROWS, end = first + ROWS < b->n ? first + ROWS : b->n;
  (void)thread;
  (void)err;
  for (int64_t i = first; i < end; i++) {
    double sum = 0.0;
    for (int64_t e = b->y_start[i]; e < b->y_start[i + 1]; e++) {
      double const v = (double)p->v[b->y_index[e]];
      sum += b->y_value == NULL ? v : v * (double)b->y_value[e];
    }
    p->out[i] = sum - p->start;
  }
  for (int64_t r = 0; r < b->rounds && !rpo_stopped(job); r++) {
    subtract(&b->tree[r], b->low->by_round[r], first, end, p->out);
  }
  return RPO_OK;
}

/* (Y - F) v, of all rows. */
static rpo_status residual_along(rpo_boost *b, const float *v, const rpo_control *control,
                                 double *out, rpo_error *err) {
  pass p = {b, v, 0.0, out};
  RPO_TRY(reserve_rounds(b, err));
  for (int64_t j = 0; j < b->d; j++) p.start += b->start[j] * (double)v[j];
  RPO_TRY(rpo_run(control, b->rounds, round_task, &p, err));
  return rpo_run(control, (b->n + ROWS - 1) / ROWS, rows_task, &p, err);
}

/* ---- A round ---- */

rpo_status rpo_low_update(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  double sum = 0.0, weight = 0.0;
  RPO_TRY(residual_along(b, b->phi, control, b->z, err));
  if (!b->keep_loss) return RPO_OK;
  for (int64_t i = 0; i < b->n_bag; i++) {
    double const w = b->weight[b->bag[i]];
    sum += w * b->low->loss[b->bag[i]];
    weight += w;
  }
  b->train_loss[b->rounds] = sum / weight / (double)b->d;
  return RPO_OK;
}

typedef struct stepping {
  rpo_boost *b;
  const double *g; /* weighted; 0 outside the bag */
  double sum, squares;
  float *step;
} stepping;

/* G' g */
static rpo_status product_task(void *context, int64_t round, int thread, rpo_job *job,
                               rpo_error *err) {
  const stepping *const s = context;
  (void)thread;
  (void)job;
  (void)err;
  s->b->low->by_round[round] = product(&s->b->tree[round], s->g, s->b->n);
  return RPO_OK;
}

/* The steps of some outputs. */
static rpo_status step_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  const stepping *const s = context;
  const rpo_boost *const b = s->b;
  const rpo_low *const low = b->low;
  int64_t const first = task * OUTPUTS, rest = b->d - first;
  int64_t const count = rest < OUTPUTS ? rest : OUTPUTS;
  double const below = s->squares + (b->leaf == RPO_LEAF_NEWTON ? b->l2 : 0.0);
  double slope[OUTPUTS];
  (void)thread;
  (void)err;
  for (int64_t j = 0; j < count; j++) {
    double sum = 0.0;
    for (int64_t e = low->column[first + j]; e < low->column[first + j + 1]; e++) {
      sum += low->value == NULL ? s->g[low->row[e]] : s->g[low->row[e]] * (double)low->value[e];
    }
    slope[j] = sum - b->start[first + j] * s->sum;
  }
  for (int64_t r = 0; r < b->rounds && !rpo_stopped(job); r++) {
    const float *const step = b->tree[r].step + first;
    for (int64_t j = 0; j < count; j++) slope[j] -= low->by_round[r] * (double)step[j];
  }
  for (int64_t j = 0; j < count; j++) {
    float const step = below > 0.0 ? (float)(slope[j] / below) : 0.0f;
    s->step[first + j] = (float)b->rate * step;
  }
  return RPO_OK;
}

rpo_status rpo_low_label(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                         rpo_error *err) {
  const rpo_tree *const tree = &t->tree;
  double *const g = b->low->along;
  RPO_TRY(reserve_rounds(b, err));
  RPO_TRY(rpo_boost_component(b, t, err));
  stepping s = {b, g, 0.0, 0.0, t->step};
  memset(g, 0, (size_t)b->n * sizeof *g);
  for (int64_t l = 0; l < tree->n_leaves; l++) {
    double const v = (double)t->component[l];
    for (int64_t i = tree->leaf_start[l]; i < tree->leaf_start[l + 1]; i++) {
      double const weighted = b->weight[tree->rows[i]] * v;
      g[tree->rows[i]] = weighted;
      s.sum += weighted;
      s.squares += weighted * v;
    }
  }
  RPO_TRY(rpo_run(control, b->rounds, product_task, &s, err));
  return rpo_run(control, (b->d + OUTPUTS - 1) / OUTPUTS, step_task, &s, err);
}

static rpo_status keep_leaves(const rpo_boost *b, rpo_boost_tree *t, rpo_error *err) {
  const int32_t *const leaf_of = rpo_boost_leaf_of(b, b->rounds);
  t->leaf_width = t->tree.n_leaves <= 256 ? 1 : t->tree.n_leaves <= 65536 ? 2 : 4;
  t->leaf = rpo_new(b->n, t->leaf_width);
  if (t->leaf == NULL) return rpo_fail_memory(err, "the leaves");
  for (int64_t i = 0; i < b->n; i++) {
    if (t->leaf_width == 1) ((uint8_t *)t->leaf)[i] = (uint8_t)leaf_of[i];
    if (t->leaf_width == 2) ((uint16_t *)t->leaf)[i] = (uint16_t)leaf_of[i];
    if (t->leaf_width == 4) ((int32_t *)t->leaf)[i] = leaf_of[i];
  }
  return RPO_OK;
}

rpo_status rpo_low_take(rpo_boost *b, rpo_boost_tree *t, const rpo_control *control,
                        rpo_error *err) {
  double *const along = b->low->along;
  RPO_TRY(keep_leaves(b, t, err));
  if (!b->keep_loss && b->n_watched == 0) return RPO_OK;
  RPO_TRY(residual_along(b, t->step, control, along, err));
  double const squares = dot(t->step, t->step, b->d);
  for (int64_t i = 0; i < b->n; i++) {
    double const g = (double)t->component[rpo_boost_leaf_of(b, b->rounds)[i]];
    b->low->loss[i] += g * (0.5 * g * squares - along[i]);
  }
  return RPO_OK;
}

double rpo_low_watch(const rpo_boost *b) {
  double sum = 0.0, weight = 0.0;
  for (int64_t i = 0; i < b->n_watched; i++) {
    double const w = b->watch[b->watched[i]];
    sum += w * b->low->loss[b->watched[i]];
    weight += w;
  }
  return b->n_watched == 0 ? NAN : sum / weight / (double)b->d;
}

/* ---- Scores ---- */

typedef struct scoring {
  const rpo_boost *b;
  const int32_t *rows;
  int64_t count, stride, known; /* rounds that out has */
  float *out;
} scoring;

static inline int64_t leaf_at(const rpo_boost_tree *t, int64_t row) {
  if (t->leaf_width == 1) return ((const uint8_t *)t->leaf)[row];
  return t->leaf_width == 2 ? ((const uint16_t *)t->leaf)[row] : ((const int32_t *)t->leaf)[row];
}

/* Some outputs of some rows stay in cache while all rounds add to them. */
static rpo_status score_task(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const scoring *const s = context;
  const rpo_boost *const b = s->b;
  int64_t const first = task * 32, end = first + 32 < s->count ? first + 32 : s->count;
  for (int64_t from = 0; from < b->d; from += OUTPUTS) {
    int64_t const to = from + OUTPUTS < b->d ? from + OUTPUTS : b->d;
    if (rpo_poll(job, thread)) return rpo_fail(err, RPO_ECANCELED, "cancelled");
    for (int64_t i = first; i < end && s->known == 0; i++) {
      for (int64_t j = from; j < to; j++) s->out[i * s->stride + j] = (float)b->start[j];
    }
    for (int64_t r = s->known; r < b->rounds; r++) {
      const rpo_boost_tree *const t = &b->tree[r];
      for (int64_t i = first; i < end; i++) {
        float const g = t->component[leaf_at(t, s->rows == NULL ? i : s->rows[i])];
        float *const f = s->out + i * s->stride;
        for (int64_t j = from; j < to; j++) f[j] += g * t->step[j];
      }
    }
  }
  return RPO_OK;
}

/* Whether there is room for what is told of these rows: they were asked for before, and are likely to
 * be again. Without memory there is none, and no harm. */
static int is_asked_again(rpo_low *low, const int32_t *rows, int64_t count, int64_t d) {
  size_t const bytes = (size_t)count * sizeof *rows;
  if (rows == NULL) return 0;
  if (low->asked != NULL && low->n_asked == count && memcmp(low->asked, rows, bytes) == 0) {
    if (low->told == NULL) low->told = rpo_new(count, 4 * d);
    return low->told != NULL;
  }
  forget(low);
  low->asked = rpo_new(count, (int64_t)sizeof *rows);
  if (low->asked == NULL) return 0;
  memcpy(low->asked, rows, bytes);
  low->n_asked = count;
  return 0;
}

rpo_status rpo_low_scores(const rpo_boost *b, const int32_t *rows, int64_t count, float *out,
                          int64_t stride, const rpo_control *control, rpo_error *err) {
  rpo_low *const low = b->low;
  scoring s = {b, rows, count, stride, 0, out};
  int const again = stride == b->d && is_asked_again(low, rows, count, b->d);
  if (again) {
    s.out = low->told;
    s.known = low->told_rounds;
    low->told_rounds = 0; /* until all is added */
  }
  RPO_TRY(rpo_run(control, (count + 31) / 32, score_task, &s, err));
  if (!again) return RPO_OK;
  low->told_rounds = b->rounds;
  memcpy(out, low->told, (size_t)(count * b->d) * sizeof *out);
  return RPO_OK;
}

int rpo_low_is_over(const rpo_boost *b) { return b->low != NULL && b->rounds >= b->d; }

rpo_status rpo_low_leave(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  float *const score = rpo_new_zero(b->n, 4 * b->stride);
  rpo_status status = score == NULL ? rpo_fail_memory(err, "the scores") : RPO_OK;
  if (status == RPO_OK) status = rpo_low_scores(b, NULL, b->n, score, b->stride, control, err);
  if (status != RPO_OK) {
    rpo_delete(score);
    return status;
  }
  b->kept = score;
  rpo_low_free(b->low);
  b->low = NULL;
  for (int64_t r = 0; r < b->rounds; r++) {
    rpo_delete(b->tree[r].leaf);
    b->tree[r].leaf = NULL;
  }
  for (int64_t i = 0; i < b->n; i++) b->settled[i] = b->rounds;
  return RPO_OK;
}
