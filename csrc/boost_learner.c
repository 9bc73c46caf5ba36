/* Rounds of the caller's own learner (boosting paper, Algorithms 2 and 3, section 6): it is given the
 * sample and its gradients, and gives back what it says of every row. To the passes this is a tree
 * each of whose leaves holds one row. */
#include <math.h>
#include <string.h>

#include "boost_low.h"
#include "mem.h"

rpo_status rpo_boost_project(rpo_boost *b, const rpo_control *control, int32_t *row, int64_t *count,
                             double *z, rpo_error *err) {
  if (b == NULL || row == NULL || count == NULL || z == NULL) {
    return rpo_fail(err, RPO_EINVAL, "boost, row, count or z is NULL");
  }
  if (b->phi != NULL && b->relabel) {
    return rpo_fail(err, RPO_EINVAL, "relabel must be 0 with a projection: there are no leaves");
  }
  if (b->rounds > b->others) {
    return rpo_fail(err, RPO_EINVAL, "boost has rounds of its own trees");
  }
  RPO_TRY(rpo_boost_threads(b, control, err));
  if (b->low != NULL) RPO_TRY(rpo_low_leave(b, control, err));
  if (b->rounds == 0) b->late = 1; /* a learner's table has a leaf for each row */
  RPO_TRY(rpo_boost_begin_round(b, control, err));
  for (int64_t i = 0; i < b->n_bag; i++) {
    row[i] = b->bag[i];
    memcpy(z + i * b->m, b->z + b->bag[i] * b->z_apart, (size_t)b->m * sizeof *z);
  }
  *count = b->n_bag;
  b->projected = b->rounds + 1;
  return RPO_OK;
}

/* The table's rows: those of v, times the steps (NULL: ones). */
static void fill_table(rpo_boost *b, const float *v, int64_t columns, const float *step) {
  for (int64_t i = 0; i < b->n; i++) {
    float *const to = b->table + i * b->stride;
    for (int64_t j = 0; j < b->d; j++) {
      to[j] = v[columns == 1 ? i : i * b->d + j] * (step == NULL ? 1.0f : step[j]);
    }
    for (int64_t j = b->d; j < b->stride; j++) to[j] = 0.0f;
  }
}

/* Row i is a leaf of its own, empty where it is not in the sample. */
static rpo_status read_learner(rpo_boost *b, const float *v, int64_t columns, rpo_boost_tree *t,
                               rpo_error *err) {
  for (int64_t i = 0; i < b->n * columns; i++) {
    if (!isfinite(v[i])) {
      return rpo_fail(err, RPO_EINVAL, "v must be finite, found %g", (double)v[i]);
    }
  }
  RPO_TRY(rpo_boost_table(b, b->n, err));
  fill_table(b, v, columns, NULL);
  t->tree.n_leaves = b->n;
  t->tree.leaf_start = rpo_new(b->n + 1, 4);
  t->tree.rows = rpo_new(b->n_bag, 4);
  t->step = rpo_new_zero(b->stride, 4);
  if (t->tree.leaf_start == NULL || t->tree.rows == NULL || t->step == NULL) {
    return rpo_fail_memory(err, "the learner");
  }
  int32_t at = 0;
  t->tree.n_rows = b->n_bag;
  memcpy(t->tree.rows, b->bag, (size_t)b->n_bag * sizeof *b->bag);
  for (int32_t i = 0; i < (int32_t)b->n; i++) {
    t->tree.leaf_start[i] = at;
    at += at < b->n_bag && b->bag[at] == i;
  }
  t->tree.leaf_start[b->n] = at;
  return RPO_OK;
}

static rpo_status check_add(const rpo_boost *b, const float *v, int64_t columns, const float *step,
                            rpo_error *err) {
  if (b == NULL || v == NULL || step == NULL) {
    return rpo_fail(err, RPO_EINVAL, "boost, v or step is NULL");
  }
  if (columns != 1 && columns != b->d) {
    return rpo_fail(err, RPO_EINVAL, "columns must be 1 or %lld, got %lld", (long long)b->d,
                    (long long)columns);
  }
  if (b->projected != b->rounds + 1) {
    return rpo_fail(err, RPO_EINVAL, "boost: rpo_boost_project comes before rpo_boost_add");
  }
  return RPO_OK;
}

rpo_status rpo_boost_add(rpo_boost *b, const float *v, int64_t columns, const rpo_control *control,
                         float *step, rpo_error *err) {
  rpo_boost_tree t;
  rpo_status status;
  double loss;
  RPO_TRY(check_add(b, v, columns, step, err));
  RPO_TRY(rpo_boost_threads(b, control, err));
  rpo_control const passes = rpo_boost_control(b, control);
  memset(&t, 0, sizeof t);
  RPO_GOTO(rpo_boost_make_room(b, b->rounds + 1, err));
  RPO_GOTO(read_learner(b, v, columns, &t, err));
  RPO_GOTO(rpo_boost_chunks(b, t.tree.rows, t.tree.leaf_start, b->n, err));
  RPO_GOTO(rpo_boost_step(b, &t, 0, t.step, &passes, err));
  for (int64_t j = 0; j < b->d; j++) t.step[j] *= (float)b->rate;
  fill_table(b, v, columns, t.step);
  RPO_GOTO(rpo_boost_keep_steps(b, b->n, &passes, err));
  int32_t *const leaf_of = rpo_boost_leaf_of(b, b->rounds);
  for (int64_t i = 0; i < b->n; i++) leaf_of[i] = (int32_t)i;
  memcpy(step, t.step, (size_t)b->d * sizeof *step);
  memset(&b->tree[b->rounds], 0, sizeof *b->tree);
  b->others = ++b->rounds;
  b->train_loss[b->rounds] = b->watch_loss[b->rounds] = NAN;
  RPO_GOTO(rpo_boost_watch(b, NULL, &loss, err));
  b->watch_loss[b->rounds] = loss;
done:
  rpo_boost_tree_release(&t);
  return status;
}

const double *rpo_boost_start(const rpo_boost *b) { return b == NULL ? NULL : b->start; }
