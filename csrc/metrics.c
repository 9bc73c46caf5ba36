/* Ranking metrics of dense scores. All rest on one count: how many scores are at least each of some
 * steps, in ascending order. Counts are integers, so any number of threads gives the same result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "kernels.h"
#include "mem.h"
#include "par.h"

#define FEW_STEPS 64 /* up to here a pass over the scores for each few steps is cheapest */
#define MOST_BUCKETS (1 << 20) /* four megabytes */
#define TASK_NUMBERS 131072    /* scores in a block of rows: a megabyte */
#define TASK_ROWS 16
#define SHORT 32 /* sorted by insertion */

/* ---- Steps, found by bucket ---- */

/* Steps lie in buckets of equal width over their range. The bucket never falls when the score rises,
 * rounding included, so a score passes every step of an earlier bucket and none of a later one. */
typedef struct ladder {
  double *step; /* ascending, equal ones kept */
  int64_t steps;
  int32_t *first; /* by bucket, its first step; one more at the end */
  int64_t buckets;
  double low, scale; /* of half the score: differences of halves do not overflow */
} ladder;

static inline int64_t bucket_of(const ladder *l, double score) {
  return (int64_t)((0.5 * score - l->low) * l->scale);
}

/* Number of steps that are at most `score`. */
static inline int64_t climb(const ladder *l, double score) {
  if (score < l->step[0]) return 0;
  if (score >= l->step[l->steps - 1]) return l->steps;
  int64_t const bucket = bucket_of(l, score);
  int64_t from = l->first[bucket], to = l->first[bucket + 1];
  while (from < to) {
    int64_t const middle = (from + to) / 2;
    if (l->step[middle] <= score) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

static int ascending(const void *a, const void *b) {
  double const x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void sort_values(double *v, int64_t count) {
  if (count > SHORT) {
    int64_t i = 1;
    while (i < count && v[i - 1] <= v[i]) i++;
    if (i < count) qsort(v, (size_t)count, sizeof *v, ascending);
    return;
  }
  for (int64_t i = 1; i < count; i++) {
    double const value = v[i];
    int64_t j = i;
    for (; j > 0 && v[j - 1] > value; j--) v[j] = v[j - 1];
    v[j] = value;
  }
}

static int64_t bucket_count(int64_t steps) {
  return steps > MOST_BUCKETS / 8 ? MOST_BUCKETS : 8 * steps; /* most without a step */
}

/* Puts values, at least one, on a ladder with room for them: a counting sort by bucket, then each
 * bucket is sorted. */
static void ladder_set(ladder *l, const double *value, int64_t count) {
  double low = value[0], high = value[0];
  for (int64_t i = 1; i < count; i++) {
    if (value[i] < low) low = value[i];
    if (value[i] > high) high = value[i];
  }
  l->steps = count;
  l->buckets = bucket_count(count);
  l->low = 0.5 * low;
  l->scale = (double)(l->buckets - 1) / (0.5 * high - 0.5 * low);
  if (!(l->scale < 1e300)) l->scale = 0.0; /* hardly a range: one bucket */
  memset(l->first, 0, (size_t)(l->buckets + 1) * sizeof *l->first);
  for (int64_t i = 0; i < count; i++) l->first[bucket_of(l, value[i]) + 1]++;
  for (int64_t b = 0; b < l->buckets; b++) l->first[b + 1] += l->first[b];
  for (int64_t i = 0; i < count; i++) l->step[l->first[bucket_of(l, value[i])]++] = value[i];
  for (int64_t b = l->buckets; b > 0; b--) l->first[b] = l->first[b - 1];
  l->first[0] = 0;
  for (int64_t b = 0; b < l->buckets; b++) {
    sort_values(l->step + l->first[b], l->first[b + 1] - l->first[b]);
  }
}

static int ladder_new(ladder *l, int64_t steps) {
  memset(l, 0, sizeof *l);
  l->step = rpo_new(steps, 8);
  l->first = rpo_new(bucket_count(steps) + 1, 4);
  return l->step != NULL && l->first != NULL;
}

static void ladder_delete(ladder *l) {
  rpo_delete(l->step);
  rpo_delete(l->first);
}

/* From how many scores pass exactly i steps to how many pass i or more. */
static void add_up(int64_t *passed, int64_t steps) {
  for (int64_t i = steps; i > 0; i--) passed[i - 1] += passed[i];
}

/* ---- Blocks of rows ---- */

typedef struct scratch {
  double *x;       /* rows that do not lie ready: TASK_ROWS or fewer, row after row */
  double *value;   /* scores of a row's relevant labels */
  int64_t *passed; /* by number of steps: how many scores pass so many or more */
  ladder ladder;
} scratch;

typedef struct ranking {
  const rpo_matrix *scores, *Y;
  const rpo_kernels *kernels;
  int64_t block; /* rows in a task */
  int64_t tasks;
  int64_t relevant; /* most relevant labels of a row */
  int threads;
  scratch *scratch;     /* by thread */
  const ladder *common; /* one for all rows */
  int64_t k, *index, *ties;
  double *out;
} ranking;

static int lies_ready(const rpo_matrix *a) { return a->dtype == RPO_F64 && a->col_stride == 1; }

/* The rows of a block, in order of memory. */
static void copy_rows(const rpo_matrix *a, int64_t first, int64_t rows, double *x) {
  int64_t const d = a->cols;
  if (a->col_stride != 1) {
    for (int64_t j = 0; j < d; j++) {
      for (int64_t i = 0; i < rows; i++) x[i * d + j] = rpo_dense_at(a, first + i, j);
    }
    return;
  }
  for (int64_t i = 0; i < rows; i++) {
    const float *const row = (const float *)a->data + (first + i) * a->row_stride;
    for (int64_t j = 0; j < d; j++) x[i * d + j] = (double)row[j];
  }
}

static rpo_status check_row(const double *x, int64_t d, rpo_error *err) {
  int bad = 0;
  for (int64_t j = 0; j < d; j++) bad |= !(x[j] - x[j] == 0.0);
  if (!bad) return RPO_OK;
  while (isfinite(*x)) x++;
  return rpo_fail(err, RPO_EINVAL, "scores must be finite, found %g", *x);
}

/* Rows of a task: *x with the row's stride, every number finite. */
static rpo_status load_block(const ranking *r, int64_t task, int thread, int64_t *first,
                             int64_t *rows, const double **x, int64_t *stride, rpo_error *err) {
  const rpo_matrix *const a = r->scores;
  *first = task * r->block;
  *rows = a->rows - *first < r->block ? a->rows - *first : r->block;
  *stride = a->cols;
  if (lies_ready(a)) {
    *x = (const double *)a->data + *first * a->row_stride;
    *stride = a->row_stride;
  } else {
    copy_rows(a, *first, *rows, r->scratch[thread].x);
    *x = r->scratch[thread].x;
  }
  for (int64_t i = 0; i < *rows; i++) {
    RPO_TRY(check_row(*x + i * *stride, a->cols, err));
  }
  return RPO_OK;
}

static rpo_status make_scratch(ranking *r, int64_t steps, rpo_error *err) {
  int64_t const copied = lies_ready(r->scores) ? 0 : r->block * r->scores->cols;
  r->scratch = rpo_new_zero(r->threads, (int64_t)sizeof *r->scratch);
  if (r->scratch == NULL) return rpo_fail_memory(err, "the metric");
  for (int t = 0; t < r->threads; t++) {
    scratch *const s = &r->scratch[t];
    s->x = rpo_new(copied, 8);
    s->value = rpo_new(r->relevant, 8);
    s->passed = rpo_new_zero(steps + 1, 8);
    if (s->x == NULL || s->value == NULL || s->passed == NULL ||
        !ladder_new(&s->ladder, r->relevant)) {
      return rpo_fail_memory(err, "the metric");
    }
  }
  return RPO_OK;
}

static void delete_scratch(ranking *r) {
  for (int t = 0; r->scratch != NULL && t < r->threads; t++) {
    scratch *const s = &r->scratch[t];
    rpo_delete(s->x);
    rpo_delete(s->value);
    rpo_delete(s->passed);
    ladder_delete(&s->ladder);
  }
  rpo_delete(r->scratch);
}

/* Checks the scores and cuts them into tasks. */
static rpo_status start(ranking *r, const rpo_matrix *scores, const rpo_control *control,
                        rpo_error *err) {
  memset(r, 0, sizeof *r);
  RPO_TRY(rpo_matrix_check(scores, "scores", err));
  if (scores->format != RPO_DENSE) return rpo_fail(err, RPO_EINVAL, "scores must be dense");
  r->scores = scores;
  r->kernels = rpo_kernels_pick();
  r->block = TASK_NUMBERS / scores->cols;
  if (r->block > TASK_ROWS) r->block = TASK_ROWS;
  int64_t const least = scores->col_stride == 1 ? 1 : 8; /* a cache line, where rows are strided */
  if (r->block < least) r->block = least;
  r->tasks = (scores->rows + r->block - 1) / r->block;
  r->threads = rpo_threads(control, r->tasks);
  return RPO_OK;
}

/* ---- Average precision, row by row ---- */

static rpo_status not_binary(double found, rpo_error *err) {
  return rpo_fail(err, RPO_EINVAL, "Y must hold zeros and ones only, found %g", found);
}

/* Scores of the labels of a row that are 1. */
static rpo_status find_relevant(const rpo_matrix *Y, int64_t row, const double *x, double *value,
                                int64_t *count, rpo_error *err) {
  *count = 0;
  if (Y->format == RPO_DENSE) {
    for (int64_t j = 0; j < Y->cols; j++) {
      double const y = rpo_dense_at(Y, row, j);
      if (y == 0.0) continue;
      if (y != 1.0) return not_binary(y, err);
      value[(*count)++] = x[j];
    }
    return RPO_OK;
  }
  for (int64_t e = rpo_ptr_at(Y, row); e < rpo_ptr_at(Y, row + 1); e++) {
    double const y = rpo_value_at(Y->data, Y->dtype, e);
    if (y == 0.0) continue;
    if (y != 1.0) return not_binary(y, err);
    value[(*count)++] = x[rpo_index_at(Y->indices, Y->index, e)];
  }
  return RPO_OK;
}

/* s->passed[i] for i = 1 .. the relevant labels; their scores are the steps. */
static void count_row(const ranking *r, scratch *s, const double *x, int64_t relevant) {
  ladder *const l = &s->ladder;
  if (relevant <= FEW_STEPS) {
    memcpy(l->step, s->value, (size_t)relevant * sizeof *l->step);
    sort_values(l->step, relevant);
    r->kernels->count_passed(x, r->scores->cols, l->step, relevant, s->passed + 1);
    return;
  }
  ladder_set(l, s->value, relevant);
  memset(s->passed, 0, (size_t)(relevant + 1) * sizeof *s->passed);
  for (int64_t j = 0; j < r->scores->cols; j++) s->passed[climb(l, x[j])]++;
  add_up(s->passed, relevant);
}

/* Mean over the relevant labels of the share of them among the labels that score as much or more.
 * Equal steps pass together. */
static double average_precision(const double *step, const int64_t *passed, int64_t relevant) {
  double sum = 0.0;
  for (int64_t end = relevant, first; end > 0; end = first) {
    first = end - 1;
    while (first > 0 && step[first - 1] == step[end - 1]) first--;
    double const share = (double)(relevant - first) / (double)passed[first + 1];
    sum += (double)(end - first) * share;
  }
  return sum / (double)relevant;
}

static rpo_status precision_block(void *context, int64_t task, int thread, rpo_job *job,
                                  rpo_error *err) {
  const ranking *const r = context;
  scratch *const s = &r->scratch[thread];
  int64_t first, rows, stride, relevant;
  const double *x;
  (void)job;
  RPO_TRY(load_block(r, task, thread, &first, &rows, &x, &stride, err));
  for (int64_t i = 0; i < rows; i++, x += stride) {
    RPO_TRY(find_relevant(r->Y, first + i, x, s->value, &relevant, err));
    r->out[first + i] = NAN;
    if (relevant == 0) continue;
    count_row(r, s, x, relevant);
    r->out[first + i] = average_precision(s->ladder.step, s->passed, relevant);
  }
  return RPO_OK;
}

static int64_t most_relevant(const rpo_matrix *Y) {
  int64_t most = 0;
  if (Y->format == RPO_DENSE) return Y->cols;
  for (int64_t i = 0; i < Y->rows; i++) {
    int64_t const here = rpo_ptr_at(Y, i + 1) - rpo_ptr_at(Y, i);
    if (here > most) most = here;
  }
  return most;
}

rpo_status rpo_scores_precision(const rpo_matrix *scores, const rpo_matrix *Y,
                                const rpo_control *control, double *out, rpo_error *err) {
  ranking r;
  rpo_status status;
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  RPO_TRY(start(&r, scores, control, err));
  RPO_TRY(rpo_matrix_check(Y, "Y", err));
  if (Y->format == RPO_CSC) return rpo_fail(err, RPO_EINVAL, "Y must be dense or CSR, it is CSC");
  if (Y->rows != scores->rows || Y->cols != scores->cols) {
    return rpo_fail(err, RPO_EINVAL, "Y must be %lld x %lld as scores are, it is %lld x %lld",
                    (long long)scores->rows, (long long)scores->cols, (long long)Y->rows,
                    (long long)Y->cols);
  }
  r.Y = Y;
  r.out = out;
  r.relevant = most_relevant(Y);
  RPO_GOTO(make_scratch(&r, r.relevant, err));
  status = rpo_run(control, r.tasks, precision_block, &r, err);
done:
  delete_scratch(&r);
  return status;
}

/* ---- All rows in one ranking ---- */

static rpo_status reach_block(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const ranking *const r = context;
  int64_t *const passed = r->scratch[thread].passed;
  int64_t first, rows, stride;
  const double *x;
  (void)job;
  RPO_TRY(load_block(r, task, thread, &first, &rows, &x, &stride, err));
  for (int64_t i = 0; i < rows; i++, x += stride) {
    for (int64_t j = 0; j < r->scores->cols; j++) passed[climb(r->common, x[j])]++;
  }
  return RPO_OK;
}

static rpo_status check_thresholds(const double *thresholds, int64_t count, rpo_error *err) {
  if (thresholds == NULL) return rpo_fail(err, RPO_EINVAL, "thresholds is NULL");
  if (count < 1 || count > INT32_MAX - 1) {
    return rpo_fail(err, RPO_EINVAL, "thresholds must be 1 to 2^31 - 2 numbers, got %lld",
                    (long long)count);
  }
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(thresholds[i]) || (i > 0 && thresholds[i] < thresholds[i - 1])) {
      return rpo_fail(err, RPO_EINVAL, "thresholds must be finite and ascend, found %g at %lld",
                      thresholds[i], (long long)i);
    }
  }
  return RPO_OK;
}

rpo_status rpo_scores_reaching(const rpo_matrix *scores, const double *thresholds, int64_t count,
                               const rpo_control *control, int64_t *out, rpo_error *err) {
  ranking r;
  ladder common;
  rpo_status status;
  if (out == NULL) return rpo_fail(err, RPO_EINVAL, "out is NULL");
  RPO_TRY(start(&r, scores, control, err));
  RPO_TRY(check_thresholds(thresholds, count, err));
  if (!ladder_new(&common, count)) {
    status = rpo_fail_memory(err, "the thresholds");
    goto done;
  }
  RPO_GOTO(make_scratch(&r, count, err));
  ladder_set(&common, thresholds, count);
  r.common = &common;
  RPO_GOTO(rpo_run(control, r.tasks, reach_block, &r, err));
  for (int t = 1; t < r.threads; t++) {
    for (int64_t i = 0; i <= count; i++) r.scratch[0].passed[i] += r.scratch[t].passed[i];
  }
  add_up(r.scratch[0].passed, count);
  memcpy(out, r.scratch[0].passed + 1, (size_t)count * sizeof *out);
done:
  ladder_delete(&common);
  delete_scratch(&r);
  return status;
}

/* ---- The best k ---- */

static int64_t count_equal(int dtype, const void *x, int64_t d, double value) {
  int64_t count = 0;
  if (dtype == RPO_F32) {
    for (int64_t j = 0; j < d; j++) count += ((const float *)x)[j] == (float)value;
  } else {
    for (int64_t j = 0; j < d; j++) count += ((const double *)x)[j] == value;
  }
  return count;
}

static rpo_status topk_row(const ranking *r, int dtype, const void *x, int64_t i, rpo_error *err) {
  int64_t const d = r->scores->cols;
  rpo_best best = {r->k, 0, r->out + i * r->k, r->index + i * r->k};
  if (!r->kernels->keep_best(dtype, x, d, &best)) {
    int64_t j = 0;
    while (isfinite(rpo_value_at(x, dtype, j))) j++;
    return rpo_fail(err, RPO_EINVAL, "scores must be finite, found %g", rpo_value_at(x, dtype, j));
  }
  rpo_sort_best(&best);
  if (r->ties != NULL) r->ties[i] = count_equal(dtype, x, d, best.score[r->k - 1]);
  return RPO_OK;
}

/* Rows of next numbers are read where they lie, whatever their type. */
static rpo_status topk_block(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  const ranking *const r = context;
  const rpo_matrix *const a = r->scores;
  int64_t first = task * r->block, rows, stride;
  const double *x;
  (void)job;
  if (a->col_stride == 1) {
    int64_t const end = first + r->block < a->rows ? first + r->block : a->rows;
    int64_t const bytes = a->row_stride * (a->dtype == RPO_F32 ? 4 : 8);
    for (int64_t i = first; i < end; i++) {
      RPO_TRY(topk_row(r, a->dtype, (const char *)a->data + i * bytes, i, err));
    }
    return RPO_OK;
  }
  RPO_TRY(load_block(r, task, thread, &first, &rows, &x, &stride, err));
  for (int64_t i = 0; i < rows; i++) {
    RPO_TRY(topk_row(r, RPO_F64, x + i * stride, first + i, err));
  }
  return RPO_OK;
}

rpo_status rpo_scores_topk(const rpo_matrix *scores, int64_t k, const rpo_control *control,
                           int64_t *out_index, double *out_score, int64_t *out_ties,
                           rpo_error *err) {
  ranking r;
  rpo_status status;
  if (out_index == NULL || out_score == NULL) {
    return rpo_fail(err, RPO_EINVAL, "out_index or out_score is NULL");
  }
  RPO_TRY(start(&r, scores, control, err));
  if (k < 1 || k > scores->cols) {
    return rpo_fail(err, RPO_EINVAL, "k must be between 1 and the number of labels %lld, got %lld",
                    (long long)scores->cols, (long long)k);
  }
  r.k = k;
  r.index = out_index;
  r.out = out_score;
  r.ties = out_ties;
  RPO_GOTO(make_scratch(&r, 0, err));
  status = rpo_run(control, r.tasks, topk_block, &r, err);
done:
  delete_scratch(&r);
  return status;
}
