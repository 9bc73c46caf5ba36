/* From a run to a model and back: leaves hold a number each, to be multiplied with their tree's step
 * (Algorithm 3), or all outputs, dense or sparse, whichever is smaller, of 32 or 16 bits. */
#include <math.h>
#include <string.h>

#include "boost_low.h"
#include "guide.h"
#include "mem.h"

/* One tree of the model: of a run, or of one of several, each of one output. */
typedef struct picked {
  const rpo_boost_tree *t;
  int64_t output; /* the only one; -1: all */
} picked;

typedef struct packing {
  picked *pick;
  int64_t trees, outputs, leaves, entries;
  int half, component;
  rpo_tree *tree;
  int64_t *sampling;
  double *start;
  float *step;
  int64_t *value_start;
  int32_t *index;
  void *value; /* float or 16 bits */
} packing;

static void release(packing *p) {
  rpo_delete(p->pick);
  rpo_delete(p->tree);
  rpo_delete(p->sampling);
  rpo_delete(p->start);
  rpo_delete(p->step);
  rpo_delete(p->value_start);
  rpo_delete(p->index);
  rpo_delete(p->value);
}

static int64_t entries_of(const picked *k) {
  return k->t->component != NULL ? k->t->tree.n_leaves : k->t->start[k->t->tree.n_leaves];
}

static float entry_of(const rpo_boost_tree *t, int64_t e) {
  if (t->component != NULL) return t->component[e];
  return t->half != NULL ? rpo_half_value(t->half[e]) : t->single[e];
}

static void put_number(const packing *p, int64_t at, float v) {
  if (p->half) {
    ((uint16_t *)p->value)[at] = rpo_half_of(v);
  } else {
    ((float *)p->value)[at] = v;
  }
}

/* Trees and their leaves, one behind the other. */
static rpo_status fill_values(packing *p, int dense, rpo_error *err) {
  int64_t const numbers = p->component ? p->leaves : dense ? p->leaves * p->outputs : p->entries;
  p->value = rpo_new_zero(numbers, p->half ? 2 : 4);
  if (!dense) {
    p->value_start = rpo_new(p->leaves + 1, 8);
    p->index = rpo_new(p->entries, 4);
  }
  if (p->value == NULL || (!dense && (p->value_start == NULL || p->index == NULL))) {
    return rpo_fail_memory(err, "the model");
  }
  int64_t leaf = 0, entry = 0;
  for (int64_t i = 0; i < p->trees; i++) {
    const rpo_boost_tree *const t = p->pick[i].t;
    for (int64_t l = 0; l < t->tree.n_leaves; l++, leaf++) {
      if (p->component) {
        put_number(p, leaf, t->component[l]);
        continue;
      }
      if (!dense) p->value_start[leaf] = entry;
      for (int64_t e = t->start[l]; e < t->start[l + 1]; e++) {
        int64_t const j = p->pick[i].output >= 0 ? p->pick[i].output : t->index[e];
        if (dense) {
          put_number(p, leaf * p->outputs + j, entry_of(t, e));
        } else {
          p->index[entry] = (int32_t)j;
          put_number(p, entry++, entry_of(t, e));
        }
      }
    }
    if (p->component) memcpy(p->step + i * p->outputs, t->step, (size_t)p->outputs * 4);
  }
  if (!dense) p->value_start[leaf] = entry;
  return RPO_OK;
}

static rpo_status pack(packing *p, const rpo_boost *b, rpo_forest **out, rpo_error *err) {
  rpo_boosted boosted;
  p->tree = rpo_new(p->trees, (int64_t)sizeof *p->tree);
  p->sampling = rpo_new_zero(3 * p->trees, 8);
  if (p->component) {
    p->step = p->trees > INT64_MAX / p->outputs ? NULL : rpo_new(p->trees * p->outputs, 4);
  }
  if (p->tree == NULL || p->sampling == NULL || (p->component && p->step == NULL)) {
    return rpo_fail_memory(err, "the model");
  }
  for (int64_t i = 0; i < p->trees; i++) {
    p->tree[i] = p->pick[i].t->tree;
    p->sampling[3 * i] = (int64_t)b->grow.seed;
    p->sampling[3 * i + 1] = i;
    p->leaves += p->tree[i].n_leaves;
    p->entries += entries_of(&p->pick[i]);
  }
  int64_t const each = p->half ? 2 : 4, index = p->outputs <= 65536 ? 2 : 4;
  double const sparse = (double)p->entries * (double)(each + index) + 8.0 * (double)p->leaves;
  int const dense = p->component || (double)p->leaves * (double)p->outputs * (double)each <= sparse;
  RPO_TRY(fill_values(p, dense, err));
  memset(&boosted, 0, sizeof boosted);
  rpo_array const start = {p->start, p->outputs, RPO_TYPE_F64};
  rpo_array const step = {p->step, p->trees * p->outputs, RPO_TYPE_F32};
  rpo_array const values = {p->value,
                            p->component ? p->leaves
                            : dense      ? p->leaves * p->outputs
                                         : p->entries,
                            p->half ? RPO_TYPE_F16 : RPO_TYPE_F32};
  rpo_array const offsets = {p->value_start, p->leaves + 1, RPO_TYPE_I64};
  rpo_array const indices = {p->index, p->entries, RPO_TYPE_I32};
  boosted.start = start;
  boosted.value = values;
  if (p->component) boosted.step = step;
  if (!dense) {
    boosted.value_start = offsets;
    boosted.value_index = indices;
  }
  rpo_model_parts parts;
  memset(&parts, 0, sizeof parts);
  parts.trees = p->trees;
  parts.inputs = b->features->cols;
  parts.outputs = p->outputs;
  parts.rows = b->n;
  parts.tree = p->tree;
  parts.sampling = p->sampling;
  parts.boosted = &boosted;
  return rpo_model_pack(&parts, NULL, out, err);
}

static rpo_status check_rounds(int64_t rounds, int64_t most, rpo_error *err) {
  if (rounds >= 1 && rounds <= most) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL, "rounds must be between 1 and %lld, got %lld", (long long)most,
                  (long long)rounds);
}

rpo_status rpo_boost_forest(const rpo_boost *b, int64_t rounds, rpo_forest **out, rpo_error *err) {
  packing p;
  rpo_status status;
  memset(&p, 0, sizeof p);
  if (b == NULL || out == NULL) return rpo_fail(err, RPO_EINVAL, "boost or out is NULL");
  if (b->others > 0) {
    return rpo_fail(err, RPO_EINVAL, "boost has rounds of the caller's learner: no trees");
  }
  RPO_TRY(check_rounds(rounds, b->rounds, err));
  p.trees = rounds;
  p.outputs = b->d;
  p.component = !b->relabel;
  p.half = b->half && b->relabel;
  p.pick = rpo_new(rounds, (int64_t)sizeof *p.pick);
  p.start = rpo_new(b->d, 8);
  if (p.pick == NULL || p.start == NULL) {
    status = rpo_fail_memory(err, "the model");
  } else {
    memcpy(p.start, b->start, (size_t)b->d * sizeof *p.start);
    for (int64_t i = 0; i < rounds; i++) {
      picked const k = {&b->tree[i], -1};
      p.pick[i] = k;
    }
    status = pack(&p, b, out, err);
  }
  release(&p);
  return status;
}

/* Round after round, an output's tree in each while it has one. */
rpo_status rpo_boost_join(const rpo_boost *const *boosts, int64_t n_boosts, const int64_t *rounds,
                          rpo_forest **out, rpo_error *err) {
  packing p;
  int64_t most = 0;
  rpo_status status;
  memset(&p, 0, sizeof p);
  p.half = 1;
  if (boosts == NULL || rounds == NULL || out == NULL || n_boosts < 1) {
    return rpo_fail(err, RPO_EINVAL, "boosts, rounds or out is NULL, or there are no boosts");
  }
  for (int64_t j = 0; j < n_boosts; j++) {
    if (boosts[j] == NULL || boosts[j]->d != 1 || boosts[j]->features != boosts[0]->features ||
        !boosts[j]->relabel || boosts[j]->others > 0) {
      return rpo_fail(err, RPO_EINVAL,
                      "boosts must have one output each, relabelled, and the same features");
    }
    RPO_TRY(check_rounds(rounds[j], boosts[j]->rounds, err));
    p.trees += rounds[j];
    p.half &= boosts[j]->half; /* singles hold halves, too */
    most = rounds[j] > most ? rounds[j] : most;
  }
  p.outputs = n_boosts;
  p.pick = rpo_new(p.trees, (int64_t)sizeof *p.pick);
  p.start = rpo_new(n_boosts, 8);
  if (p.pick == NULL || p.start == NULL) {
    status = rpo_fail_memory(err, "the model");
  } else {
    int64_t at = 0;
    for (int64_t j = 0; j < n_boosts; j++) p.start[j] = boosts[j]->start[0];
    for (int64_t r = 0; r < most; r++) {
      for (int64_t j = 0; j < n_boosts; j++) {
        picked const k = {&boosts[j]->tree[r], j};
        if (r < rounds[j]) p.pick[at++] = k;
      }
    }
    status = pack(&p, boosts[0], out, err);
  }
  release(&p);
  return status;
}

/* ---- Going on ---- */

/* The leaves of a model's tree, as a run keeps them; b->table has room for them. */
static rpo_status unpack_leaves(rpo_boost *b, const rpo_model *m, int64_t tree, rpo_boost_tree *t,
                                const rpo_control *control, rpo_error *err) {
  int64_t const leaves = t->tree.n_leaves, first = m->leaf_start[tree];
  memset(b->table, 0, (size_t)(leaves * b->stride) * sizeof *b->table);
  if (m->step != NULL) {
    t->component = rpo_new(leaves, 4);
    t->step = rpo_new_zero(b->stride, 4);
    if (t->component == NULL || t->step == NULL) return rpo_fail_memory(err, "the leaves");
    memcpy(t->step, m->step + tree * b->d, (size_t)b->d * 4);
    for (int64_t l = 0; l < leaves; l++) {
      t->component[l] = (float)rpo_array_number(&m->value, first + l);
      for (int64_t j = 0; j < b->d; j++) b->table[l * b->stride + j] = t->component[l] * t->step[j];
    }
    return rpo_boost_keep_steps(b, leaves, control, err);
  }
  for (int64_t l = 0; l < leaves; l++) {
    float *const row = b->table + l * b->stride;
    if (m->value_start == NULL) {
      for (int64_t j = 0; j < b->d; j++) {
        row[j] = (float)rpo_array_number(&m->value, (first + l) * b->d + j);
      }
      continue;
    }
    for (int64_t e = m->value_start[first + l]; e < m->value_start[first + l + 1]; e++) {
      row[rpo_array_whole(&m->value_index, e)] = (float)rpo_array_number(&m->value, e);
    }
  }
  return rpo_boost_keep(b, t, control, err);
}

/* Scores and rounds as before the first round. */
static void begin_again(rpo_boost *b, const double *start) {
  while (b->rounds > 0) rpo_boost_tree_release(&b->tree[--b->rounds]);
  memmove(b->start, start, (size_t)b->d * sizeof *start);
  rpo_boost_restart(b);
  b->train_loss[0] = NAN;
}

static rpo_status take_tree(rpo_boost *b, const rpo_model *m, int64_t tree, const int32_t *all,
                            const rpo_control *control, rpo_error *err) {
  rpo_boost_tree t;
  double *weight = NULL;
  rpo_status status;
  memset(&t, 0, sizeof t);
  RPO_GOTO(rpo_model_tree(m, tree, &t.tree, &weight, err));
  RPO_GOTO(rpo_boost_table(b, t.tree.n_leaves, err));
  RPO_GOTO(unpack_leaves(b, m, tree, &t, control, err));
  RPO_GOTO(rpo_guide_all(b->features, &t.tree, all, b->n, control, rpo_boost_leaf_of(b, b->rounds),
                         err));
  if (b->low != NULL) RPO_GOTO(rpo_low_take(b, &t, control, err));
  b->tree[b->rounds++] = t;
  memset(&t, 0, sizeof t);
  if (b->low == NULL) RPO_GOTO(rpo_boost_settle(b, control, err));
  b->train_loss[b->rounds] = b->watch_loss[b->rounds] = NAN;
  status = rpo_boost_watch(b, control, &b->watch_loss[b->rounds], err);
done:
  rpo_delete(weight);
  rpo_boost_tree_release(&t);
  return status;
}

rpo_status rpo_boost_resume(rpo_boost *b, const rpo_forest *m, const rpo_control *control,
                            rpo_error *err) {
  rpo_status status = RPO_OK;
  if (b == NULL || m == NULL) return rpo_fail(err, RPO_EINVAL, "boost or forest is NULL");
  RPO_TRY(rpo_model_check(m, err));
  if (b->rounds > 0)
    return rpo_fail(err, RPO_EINVAL, "boost has begun: it has %lld rounds", (long long)b->rounds);
  if (m->start == NULL || m->outputs != b->d || m->inputs != b->features->cols ||
      (m->step != NULL) == (b->relabel != 0)) {
    return rpo_fail(err, RPO_EINVAL, "forest is not the model of such a run");
  }
  RPO_TRY(rpo_boost_threads(b, control, err));
  int32_t *const all = rpo_new(b->n, 4);
  double *const own = rpo_new(b->d, 8);
  if (all == NULL || own == NULL) {
    rpo_delete(all);
    rpo_delete(own);
    return rpo_fail_memory(err, "boosting");
  }
  memcpy(own, b->start, (size_t)b->d * sizeof *own);
  for (int64_t i = 0; i < b->n; i++) all[i] = (int32_t)i;
  RPO_GOTO(rpo_boost_make_room(b, m->trees, err));
  double const own_loss = b->watch_loss[0];
  begin_again(b, m->start);
  status = rpo_boost_watch(b, control, &b->watch_loss[0], err);
  for (int64_t t = 0; t < m->trees && status == RPO_OK; t++) {
    status = take_tree(b, m, t, all, control, err);
  }
  if (status != RPO_OK) {
    begin_again(b, own);
    b->watch_loss[0] = own_loss;
  }
done:
  rpo_delete(all);
  rpo_delete(own);
  return status;
}
