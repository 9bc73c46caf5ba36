#include "projection.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "mem.h"
#include "rng.h"
#include "vmath.h"

/* Columns of Phi for some outputs: dense (phi, count x stride, padded with zeros) or lists (start, component, value). */
typedef struct columns {
  int64_t count, m, stride;
  double *phi;
  int64_t *start;
  int32_t *component;
  double *value;
} columns;

static void columns_release(columns *c) {
  rpo_delete(c->phi);
  rpo_delete(c->start);
  rpo_delete(c->component);
  rpo_delete(c->value);
}

static int64_t hadamard_order(int64_t d) {
  int64_t order = 1;
  while (order < d) order *= 2;
  return order;
}

static int is_subsample(int32_t kind) {
  return kind == RPO_PROJECT_SUBSAMPLE || kind == RPO_PROJECT_SUBSAMPLE_REPLACED;
}

rpo_status rpo_projection_check(const rpo_projection *p, int64_t d, rpo_error *err) {
  if (p->kind < RPO_PROJECT_GAUSSIAN || p->kind > RPO_PROJECT_MATRIX) {
    return rpo_fail(err, RPO_EINVAL, "projection: unknown kind %d", (int)p->kind);
  }
  if (p->components < 1) {
    return rpo_fail(err, RPO_EINVAL, "n_components must be at least 1, got %lld",
                    (long long)p->components);
  }
  if (p->components > INT32_MAX) {
    return rpo_fail(err, RPO_EINVAL, "n_components must be below 2^31, got %lld",
                    (long long)p->components);
  }
  if (p->kind == RPO_PROJECT_RADEMACHER && !(p->sparsity >= 1.0 && isfinite(p->sparsity))) {
    return rpo_fail(err, RPO_EINVAL, "sparsity must be at least 1, got %g", p->sparsity);
  }
  int64_t const most = p->kind == RPO_PROJECT_SUBSAMPLE  ? d
                       : p->kind == RPO_PROJECT_HADAMARD ? hadamard_order(d)
                                                         : INT64_MAX;
  if (p->components > most) {
    return rpo_fail(
        err, RPO_EINVAL,
        "n_components must be at most %lld for this projection of %lld outputs, got %lld",
        (long long)most, (long long)d, (long long)p->components);
  }
  if (p->kind == RPO_PROJECT_MATRIX) {
    if (p->matrix == NULL) return rpo_fail(err, RPO_EINVAL, "projection: matrix is NULL");
    for (int64_t i = 0; i < p->components * d; i++) {
      if (!isfinite(p->matrix[i])) {
        return rpo_fail(err, RPO_EINVAL, "projection: matrix must be finite, found %g",
                        p->matrix[i]);
      }
    }
  }
  return RPO_OK;
}

/* m of `total` numbers, in the order drawn: without replacement by Fisher and Yates. */
static rpo_status choose(const rpo_projection *p, int64_t total, int64_t *chosen, rpo_error *err) {
  rpo_rng rng = rpo_rng_new(p->seed, RPO_DRAW_PROJECTION, p->stream, 0);
  if (p->kind == RPO_PROJECT_SUBSAMPLE_REPLACED) {
    for (int64_t i = 0; i < p->components; i++) chosen[i] = rpo_below(&rng, (uint32_t)total);
    return RPO_OK;
  }
  int64_t *const all = rpo_new(total, 8);
  if (all == NULL) return rpo_fail_memory(err, "the projection");
  for (int64_t j = 0; j < total; j++) all[j] = j;
  for (int64_t i = 0; i < p->components; i++) {
    int64_t const j = i + rpo_below(&rng, (uint32_t)(total - i));
    chosen[i] = all[j];
    all[j] = all[i];
  }
  rpo_delete(all);
  return RPO_OK;
}

static double hadamard_sign(int64_t row, int64_t col) {
  uint64_t bits = (uint64_t)(row & col);
  for (int shift = 32; shift > 0; shift /= 2) bits ^= bits >> shift;
  return bits & 1 ? -1.0 : 1.0;
}

static double rademacher(uint32_t word, double sparsity) {
  double const u = (double)word * 0x1p-32 * 2.0 * sparsity;
  return u < 1.0 ? 1.0 : u < 2.0 ? -1.0 : 0.0;
}

/* Column `output` of Phi, m numbers. `chosen`: rows of the Hadamard matrix. */
static void draw_column(const rpo_projection *p, int64_t d, int64_t output, const int64_t *chosen,
                        double *phi) {
  int64_t const m = p->components;
  if (p->kind == RPO_PROJECT_MATRIX) {
    for (int64_t i = 0; i < m; i++) phi[i] = p->matrix[i * d + output];
    return;
  }
  if (p->kind == RPO_PROJECT_HADAMARD) {
    double const unit = 1.0 / sqrt((double)m);
    for (int64_t i = 0; i < m; i++) phi[i] = unit * hadamard_sign(chosen[i], output);
    return;
  }
  rpo_rng rng = rpo_rng_new(p->seed, RPO_DRAW_PROJECTION, p->stream, (uint64_t)output + 1);
  if (p->kind == RPO_PROJECT_GAUSSIAN) {
    double const unit = 1.0 / sqrt((double)m);
    for (int64_t i = 0; i < m; i++) phi[i] = unit * rpo_normal(rpo_next(&rng));
  } else {
    double const unit = sqrt(p->sparsity / (double)m);
    for (int64_t i = 0; i < m; i++) phi[i] = unit * rademacher(rpo_next(&rng), p->sparsity);
  }
}

/* Polls once so many numbers were added or drawn since the last time. `job` NULL: never. */
typedef struct watch {
  rpo_job *job;
  int thread;
  int64_t work;
} watch;

#define WORK_BETWEEN_POLLS 32768

static rpo_status go_on(watch *w, int64_t work, rpo_error *err) {
  w->work += work;
  if (w->job == NULL || w->work < WORK_BETWEEN_POLLS) return RPO_OK;
  w->work = 0;
  return rpo_keep_on(w->job, w->thread, err);
}

static rpo_status dense_columns(const rpo_projection *p, int64_t d, const int64_t *outputs,
                                int64_t count, watch *w, columns *c, rpo_error *err) {
  int64_t *chosen = NULL;
  rpo_status status = RPO_OK;
  if (count > INT64_MAX / c->stride || (c->phi = rpo_new_zero(count * c->stride, 8)) == NULL) {
    return rpo_fail_memory(err, "the projection");
  }
  if (p->kind == RPO_PROJECT_HADAMARD) {
    chosen = rpo_new(c->m, 8);
    if (chosen == NULL) return rpo_fail_memory(err, "the projection");
    RPO_GOTO(choose(p, hadamard_order(d), chosen, err));
  }
  for (int64_t j = 0; j < count; j++) {
    RPO_GOTO(go_on(w, 4 * c->m, err));
    draw_column(p, d, outputs == NULL ? j : outputs[j], chosen, c->phi + j * c->stride);
  }
done:
  rpo_delete(chosen);
  return status;
}

/* Subsampled identity: each component is one output; outputs nobody has are left out. */
static rpo_status subsample_columns(const rpo_projection *p, int64_t d, const int64_t *outputs,
                                    int64_t count, columns *c, rpo_error *err) {
  int64_t *const chosen = rpo_new(c->m, 8);
  int64_t *const place = rpo_new(d, 8);
  rpo_status status = RPO_OK;
  c->start = rpo_new_zero(count + 2, 8);
  c->component = rpo_new(c->m, 4);
  c->value = rpo_new(c->m, 8);
  if (chosen == NULL || place == NULL || c->start == NULL || c->component == NULL ||
      c->value == NULL) {
    status = rpo_fail_memory(err, "the projection");
    goto done;
  }
  RPO_GOTO(choose(p, d, chosen, err));
  for (int64_t j = 0; j < d; j++) place[j] = outputs == NULL ? j : -1;
  for (int64_t j = 0; outputs != NULL && j < count; j++) place[outputs[j]] = j;
  int64_t *const fill = c->start + 1;
  for (int64_t i = 0; i < c->m; i++) {
    if (place[chosen[i]] >= 0) fill[place[chosen[i]] + 1]++;
  }
  for (int64_t j = 0; j < count; j++) fill[j + 1] += fill[j];
  double const unit = sqrt((double)d / (double)c->m);
  for (int64_t i = 0; i < c->m; i++) {
    if (place[chosen[i]] < 0) continue;
    int64_t const to = fill[place[chosen[i]]]++;
    c->component[to] = (int32_t)i;
    c->value[to] = unit;
  }
done:
  rpo_delete(chosen);
  rpo_delete(place);
  return status;
}

/* Lists of the non-zeros of dense columns. */
static rpo_status list_columns(columns *c, rpo_error *err) {
  int64_t stored = 0;
  for (int64_t i = 0; i < c->count * c->stride; i++) stored += c->phi[i] != 0.0;
  c->start = rpo_new(c->count + 1, 8);
  c->component = rpo_new(stored, 4);
  c->value = rpo_new(stored, 8);
  if (c->start == NULL || c->component == NULL || c->value == NULL) {
    return rpo_fail_memory(err, "the projection");
  }
  int64_t e = 0;
  for (int64_t j = 0; j < c->count; j++) {
    c->start[j] = e;
    for (int64_t i = 0; i < c->m; i++) {
      if (c->phi[j * c->stride + i] == 0.0) continue;
      c->component[e] = (int32_t)i;
      c->value[e++] = c->phi[j * c->stride + i];
    }
  }
  c->start[c->count] = e;
  rpo_delete(c->phi);
  c->phi = NULL;
  return RPO_OK;
}

static rpo_status make_columns(const rpo_projection *p, int64_t d, const int64_t *outputs,
                               int64_t count, watch *w, columns *c, rpo_error *err) {
  memset(c, 0, sizeof *c);
  c->count = count;
  c->m = p->components;
  c->stride = rpo_target_stride(c->m);
  if (is_subsample(p->kind)) return subsample_columns(p, d, outputs, count, c, err);
  RPO_TRY(dense_columns(p, d, outputs, count, w, c, err));
  if (p->kind == RPO_PROJECT_RADEMACHER && p->sparsity > 4.0) return list_columns(c, err);
  return RPO_OK;
}

/* z += Phi y, for a row with entries y at `index` (NULL: 0, 1, ...); values NULL: ones. */
static void add_row(const columns *c, const rpo_kernels *kernels, const int32_t *index,
                    const double *y, int64_t entries, double *z) {
  if (c->phi != NULL) {
    kernels->add_columns(c->phi, c->stride, index, y, entries, z);
    return;
  }
  for (int64_t i = 0; i < entries; i++) {
    int64_t const j = index == NULL ? i : index[i];
    double const v = y == NULL ? 1.0 : y[i];
    for (int64_t e = c->start[j]; e < c->start[j + 1]; e++) z[c->component[e]] += v * c->value[e];
  }
}

/* Fast Walsh-Hadamard transform of v, in place; order a power of 2. */
static void transform(double *v, int64_t order) {
  for (int64_t half = 1; half < order; half *= 2) {
    for (int64_t block = 0; block < order; block += 2 * half) {
      for (int64_t i = block; i < block + half; i++) {
        double const a = v[i], b = v[i + half];
        v[i] = a + b;
        v[i + half] = a - b;
      }
    }
  }
}

/* Dense rows by the fast transform: O(D log D) a row, no matrix at all. */
static rpo_status project_hadamard(const rpo_projection *p, int64_t d, const rpo_target *y,
                                   rpo_target *out, watch *w, rpo_error *err) {
  int64_t const order = hadamard_order(d);
  int64_t *const chosen = rpo_new(p->components, 8);
  double *const v = rpo_new(order, 8);
  rpo_status status = RPO_OK;
  if (chosen == NULL || v == NULL) {
    status = rpo_fail_memory(err, "the projection");
    goto done;
  }
  RPO_GOTO(choose(p, order, chosen, err));
  double const unit = 1.0 / sqrt((double)p->components);
  for (int64_t i = 0; i < y->rows; i++) {
    RPO_GOTO(go_on(w, 16 * order, err));
    memset(v, 0, (size_t)order * 8);
    memcpy(v, y->z + i * y->stride, (size_t)d * 8);
    transform(v, order);
    for (int64_t c = 0; c < p->components; c++) out->z[i * out->stride + c] = unit * v[chosen[c]];
  }
done:
  rpo_delete(chosen);
  rpo_delete(v);
  return status;
}

rpo_status rpo_project(const rpo_projection *p, int64_t d, const rpo_target *y, rpo_target *out,
                       rpo_job *job, int thread, rpo_error *err) {
  watch w = {job, thread, 0};
  columns c;
  memset(&c, 0, sizeof c);
  RPO_TRY(rpo_target_sums(y->rows, p->components, out, err));
  rpo_status status = RPO_OK;
  if (y->z != NULL && p->kind == RPO_PROJECT_HADAMARD) {
    RPO_GOTO(project_hadamard(p, d, y, out, &w, err));
  } else {
    RPO_GOTO(make_columns(p, d, y->origin, y->width, &w, &c, err));
    const rpo_kernels *const kernels = rpo_kernels_pick();
    for (int64_t i = 0; i < y->rows; i++) {
      double *const z = out->z + i * out->stride;
      int64_t const entries = y->z != NULL ? y->width : y->start[i + 1] - y->start[i];
      RPO_GOTO(go_on(&w, entries * (c.phi != NULL ? c.stride : 1), err));
      if (y->z != NULL) {
        add_row(&c, kernels, NULL, y->z + i * y->stride, y->width, z);
      } else {
        int64_t const first = y->start[i];
        add_row(&c, kernels, y->index + first, y->value == NULL ? NULL : y->value + first, entries,
                z);
      }
    }
  }
  rpo_target_norms(out);
done:
  columns_release(&c);
  if (status != RPO_OK) rpo_target_release(out);
  return status;
}

typedef struct whole {
  const rpo_projection *p;
  int64_t d;
  const rpo_target *y;
  rpo_target *out;
} whole;

static rpo_status project_task(void *context, int64_t task, int thread, rpo_job *job,
                               rpo_error *err) {
  const whole *const k = context;
  (void)task;
  return rpo_project(k->p, k->d, k->y, k->out, job, thread, err);
}

rpo_status rpo_project_all(const rpo_projection *p, int64_t d, const rpo_target *y,
                           const rpo_control *control, rpo_target *out, rpo_error *err) {
  whole k = {p, d, y, out};
  memset(out, 0, sizeof *out);
  rpo_status const status = rpo_run(control, 1, project_task, &k, err);
  if (status != RPO_OK) rpo_target_release(out); /* cancelled once it was there */
  return status;
}

rpo_status rpo_projection_draw(const rpo_projection *p, int64_t d, double *phi, rpo_error *err) {
  if (p == NULL || phi == NULL) return rpo_fail(err, RPO_EINVAL, "projection or phi is NULL");
  if (d < 1 || d > INT32_MAX) {
    return rpo_fail(err, RPO_EINVAL, "d must be between 1 and 2^31 - 1, got %lld", (long long)d);
  }
  RPO_TRY(rpo_projection_check(p, d, err));
  watch w = {NULL, 0, 0};
  columns c;
  rpo_status status;
  RPO_GOTO(make_columns(p, d, NULL, d, &w, &c, err));
  memset(phi, 0, (size_t)(p->components * d) * 8);
  for (int64_t j = 0; j < d; j++) {
    if (c.phi != NULL) {
      for (int64_t i = 0; i < c.m; i++) phi[i * d + j] = c.phi[j * c.stride + i];
    } else {
      for (int64_t e = c.start[j]; e < c.start[j + 1]; e++) {
        phi[c.component[e] * d + j] = c.value[e];
      }
    }
  }
done:
  columns_release(&c);
  return status;
}
