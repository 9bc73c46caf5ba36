/* A round's sample, drawn beside its projection, and what its rows add to histograms. */
#include <math.h>

#include "boost.h"
#include "mem.h"
#include "par.h"
#include "rng.h"

#define PUT_ROWS 2048 /* of a task */

/* ---- Draws ---- */

/* From the front the sample, from the back the others: a row is written to both places, one of which is
 * written over. */
static int64_t part_rows(uint64_t seed, uint64_t name, double subsample, const double *weight,
                         int64_t n, int32_t *row) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    int const drawn = subsample >= 1.0 || rpo_hash_uniform(seed, name, (uint64_t)i) < subsample;
    row[count] = row[n - 1 - (i - count)] = (int32_t)i;
    count += drawn & (weight[i] > 0.0);
  }
  for (int64_t a = count, z = n - 1; a < z; a++, z--) {
    int32_t const last = row[z];
    row[z] = row[a];
    row[a] = last;
  }
  return count;
}

/* Each row with probability `subsample`, by its own number; all where none was drawn. */
int64_t rpo_boost_sample(uint64_t seed, int64_t round, double subsample, const double *weight,
                         int64_t n, int32_t *row) {
  uint64_t const name = rpo_mix(RPO_DRAW_ROUND ^ rpo_mix((uint64_t)round));
  if (weight == NULL || row == NULL) return 0;
  int64_t const count = part_rows(seed, name, subsample, weight, n, row);
  return count > 0 ? count : part_rows(seed, name, 1.0, weight, n, row);
}

static rpo_status draw_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  rpo_boost *const b = context;
  (void)thread;
  (void)job;
  if (task == 0) return rpo_boost_draw_phi(b, err);
  b->n_bag = rpo_boost_sample(b->grow.seed, b->rounds, b->subsample, b->weight, b->n, b->bag);
  return RPO_OK;
}

rpo_status rpo_boost_draw(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  return rpo_run(control, 2, draw_task, b, err);
}

/* ---- What rows add ---- */

typedef struct putting {
  rpo_boost *b;
  int64_t tasks;
  double *largest; /* by task: weight, and projection times weight */
} putting;

/* The first of the sample's rows that are a task's. */
static int64_t put_begin(const putting *p, int64_t task) { return p->b->n_bag * task / p->tasks; }

static rpo_status largest_task(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  const putting *const p = context;
  const rpo_boost *const b = p->b;
  double weight = 0.0, sum = 0.0;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t i = put_begin(p, task); i < put_begin(p, task + 1); i++) {
    double const w = b->weight[b->bag[i]];
    const double *const z = b->z + b->bag[i] * b->z_apart;
    weight = w > weight ? w : weight;
    for (int64_t c = 0; c < b->m; c++) sum = w * fabs(z[c]) > sum ? w * fabs(z[c]) : sum;
  }
  p->largest[2 * task] = weight;
  p->largest[2 * task + 1] = sum;
  return RPO_OK;
}

static rpo_status put_task(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  const putting *const p = context;
  const rpo_boost *const b = p->b;
  int64_t const first = put_begin(p, task);
  (void)thread;
  (void)job;
  (void)err;
  rpo_hist_put(b->hist, b->bag + first, put_begin(p, task + 1) - first, b->weight, b->z,
               b->z_apart);
  return RPO_OK;
}

rpo_status rpo_boost_put(rpo_boost *b, const rpo_control *control, rpo_error *err) {
  int64_t const tasks = (b->n_bag + PUT_ROWS - 1) / PUT_ROWS;
  putting p = {b, tasks, rpo_new(2 * tasks, 8)};
  double weight = 0.0, sum = 0.0;
  rpo_status status;
  if (p.largest == NULL) return rpo_fail_memory(err, "the histograms");
  RPO_GOTO(rpo_run(control, tasks, largest_task, &p, err));
  for (int64_t t = 0; t < tasks; t++) {
    weight = fmax(weight, p.largest[2 * t]);
    sum = fmax(sum, p.largest[2 * t + 1]);
  }
  rpo_hist_units(b->hist, weight, sum);
  RPO_GOTO(rpo_run(control, tasks, put_task, &p, err));
done:
  rpo_delete(p.largest);
  return status;
}
