/* Predictions of boosted models: constants and the sums of the trees' leaves, in single precision and
 * in the order of the rounds, as they were added up in the fit: the same rows get the same bits. */
#include "sums.h"

#include <string.h>

#include "mem.h"
#include "topk.h"

#define SUM_NUMBERS 131072 /* scores of some rows that stay in cache while all trees add to them */

#define ENTRIES 256 /* of a leaf at a time: first made floats, then added where they belong */

#define SCATTER(type)                                                \
  do {                                                               \
    const type *const index = (const type *)m->value_index.data + e; \
    for (int64_t i = 0; i < count; i++) sum[index[i]] += v[i];       \
  } while (0)

static void add_entries(const rpo_model *m, int64_t leaf, float *restrict sum) {
  int64_t const end = m->value_start[leaf + 1];
  float room[ENTRIES];
  for (int64_t e = m->value_start[leaf]; e < end; e += ENTRIES) {
    int64_t const count = end - e < ENTRIES ? end - e : ENTRIES;
    const float *v = room;
    if (m->value.type == RPO_TYPE_F16) {
      const uint16_t *const half = (const uint16_t *)m->value.data + e;
      for (int64_t i = 0; i < count; i++) room[i] = rpo_half_value(half[i]);
    } else {
      v = (const float *)m->value.data + e;
    }
    if (m->value_index.type == RPO_TYPE_U16) {
      SCATTER(uint16_t);
    } else {
      SCATTER(int32_t);
    }
  }
}

static void add_halves(const uint16_t *restrict v, int64_t d, float *restrict sum) {
  for (int64_t j = 0; j < d; j++) sum[j] += rpo_half_value(v[j]);
}

static void add_singles(const float *restrict v, int64_t d, float *restrict sum) {
  for (int64_t j = 0; j < d; j++) sum[j] += v[j];
}

static void add_multiple(float a, const float *restrict v, int64_t d, float *restrict sum) {
  for (int64_t j = 0; j < d; j++) sum[j] += a * v[j];
}

/* A leaf's row of the table: `leaf` counts through all trees. */
static void add_leaf(const rpo_model *m, int64_t tree, int64_t leaf, float *sum) {
  int64_t const d = m->outputs;
  if (m->step != NULL) {
    add_multiple((float)rpo_array_number(&m->value, leaf), m->step + tree * d, d, sum);
  } else if (m->value_start != NULL) {
    add_entries(m, leaf, sum);
  } else if (m->value.type == RPO_TYPE_F16) {
    add_halves((const uint16_t *)m->value.data + leaf * d, d, sum);
  } else {
    add_singles((const float *)m->value.data + leaf * d, d, sum);
  }
}

static void give_row(const rpo_reading *r, int64_t row, const float *sum) {
  int64_t const d = r->m->outputs;
  if (r->scores != NULL) {
    memcpy(r->scores + row * d, sum, (size_t)d * sizeof *sum);
    return;
  }
  if (r->k == 0) {
    for (int64_t j = 0; j < d; j++) r->out[row * d + j] = (double)sum[j];
    return;
  }
  rpo_best b = {r->k, 0, r->out + row * r->k, r->index + row * r->k};
  for (int64_t j = 0; j < d; j++) rpo_keep(&b, (double)sum[j], j);
  rpo_sort_best(&b);
}

static rpo_status sum_block(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_model *const m = r->m;
  const rpo_scratch *const s = &r->scratch[thread];
  int64_t const d = m->outputs;
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  int64_t const most = d >= SUM_NUMBERS ? 1 : SUM_NUMBERS / d, each = rows < most ? rows : most;
  float *const sum = rpo_new(each * d, 4);
  rpo_status status = sum == NULL ? rpo_fail_memory(err, "the predictions") : RPO_OK;
  for (int64_t from = 0; from < rows && status == RPO_OK; from += each) {
    int64_t const count = rows - from < each ? rows - from : each;
    for (int64_t j = 0; j < d && r->scores == NULL; j++) sum[j] = (float)m->start[j];
    for (int64_t i = 1; i < count && r->scores == NULL; i++) {
      memcpy(sum + i * d, sum, (size_t)d * sizeof *sum);
    }
    if (r->scores != NULL) {
      memcpy(sum, r->scores + (first + from) * d, (size_t)(count * d) * sizeof *sum);
    }
    for (int64_t t = 0; t < m->trees && status == RPO_OK; t++) {
      const int32_t *const leaf = s->leaf + t * r->block + from;
      for (int64_t i = 0; i < count && status == RPO_OK; i++) {
        int64_t const pick = m->leaf_start[t] + leaf[i];
        if (!m->trusted) status = rpo_values_check(m, &pick, 1, err);
        if (status == RPO_OK) add_leaf(m, t, pick, sum + i * d);
      }
      if (t % 16 == 0 && status == RPO_OK) status = rpo_keep_on(job, thread, err);
    }
    for (int64_t i = 0; i < count; i++) give_row(r, first + from + i, sum + i * d);
  }
  rpo_delete(sum);
  return status;
}

rpo_status rpo_sums_read(rpo_reading *r, const rpo_control *control, rpo_error *err) {
  return rpo_read_blocks(r, control, sum_block, err);
}

rpo_status rpo_forest_add_trees(const rpo_forest *m, const rpo_matrix *X, int64_t first,
                                int64_t end, const rpo_control *control, float *scores,
                                rpo_error *err) {
  rpo_reading r;
  RPO_TRY(rpo_reading_start(&r, m, X, scores, err));
  if (m->start == NULL) return rpo_fail(err, RPO_EINVAL, "forest is not a boosted model");
  if (first < 0 || first > end || end > m->trees) {
    return rpo_fail(err, RPO_EINVAL, "first and end must rise within 0 .. %lld, got %lld, %lld",
                    (long long)m->trees, (long long)first, (long long)end);
  }
  if (first == end) return RPO_OK;
  rpo_model part = *m; /* looks at those trees only */
  part.trees = end - first;
  part.inner_start += first;
  part.leaf_start += first;
  if (m->step != NULL) part.step += first * m->outputs;
  r.m = &part;
  r.scores = scores;
  return rpo_sums_read(&r, control, err);
}

rpo_status rpo_refuse_boosted(const rpo_model *m, const char *what, rpo_error *err) {
  if (m == NULL || m->start == NULL) return RPO_OK;
  return rpo_fail(err, RPO_EINVAL, "%s: not of a boosted model, whose trees are sums", what);
}
