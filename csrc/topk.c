/* The best k outputs of each row, in memory and time that follow the labels a row meets. */
#include "readout.h"
#include "sums.h"
#include "topk.h"

/* Scores of all outputs, for dense labels. */
static void keep_all(const rpo_forest *m, int64_t count, double *sum, rpo_best *b) {
  rpo_finish_row(m, sum, count, sum);
  for (int64_t j = 0; j < m->outputs; j++) rpo_keep(b, sum[j], j);
  for (int64_t j = 0; j < m->columns; j++) sum[j] = 0.0;
}

/* Sparse labels: the k first outputs that no label touched, which score 0, and those touched; their
 * sums are wiped on the way. */
static void keep_touched(const rpo_forest *m, int64_t count, const rpo_scratch *s, int64_t found,
                         rpo_best *b) {
  int64_t zeros = 0;
  for (int64_t j = 0; j < m->outputs && zeros < b->k; j++) {
    if (s->sum[j] != 0.0) continue;
    rpo_keep(b, 0.0, j);
    zeros++;
  }
  for (int64_t i = 0; i < found; i++) {
    for (int64_t e = m->value_start[s->pick[i]]; e < m->value_start[s->pick[i] + 1]; e++) {
      int64_t const j = rpo_array_whole(&m->value_index, e);
      if (s->sum[j] != 0.0) rpo_keep(b, rpo_finish(m, s->sum[j], (double)count), j);
      s->sum[j] = 0.0;
    }
  }
}

static rpo_status topk_block(void *context, int64_t task, int thread, rpo_job *job,
                             rpo_error *err) {
  rpo_reading *const r = context;
  const rpo_forest *const m = r->m;
  rpo_scratch *const s = &r->scratch[thread];
  int64_t first, rows;
  RPO_TRY(rpo_find_leaves(r, task, thread, job, &first, &rows, err));
  for (int64_t i = 0; i < rows; i++) {
    int64_t found;
    RPO_TRY(rpo_keep_on(job, thread, err));
    rpo_best b = {r->k, 0, r->out + (first + i) * r->k, r->index + (first + i) * r->k};
    RPO_TRY(rpo_rows_check(r, s, i, err));
    int64_t const count = rpo_pick_values(r, s, i, NULL, &found);
    RPO_TRY(rpo_values_check(m, s->pick, found, err));
    rpo_add_values(m, s->pick, s->share, found, s->sum);
    if (m->value_start != NULL && !m->ratio) {
      keep_touched(m, count, s, found, &b);
    } else {
      keep_all(m, count, s->sum, &b);
    }
    rpo_sort_best(&b);
  }
  return RPO_OK;
}

rpo_status rpo_forest_predict_topk(const rpo_forest *m, const rpo_matrix *X, int64_t k,
                                   const rpo_control *control, int64_t *out_index,
                                   double *out_score, rpo_error *err) {
  rpo_reading r;
  RPO_TRY(rpo_reading_start(&r, m, X, out_index, err));
  if (out_score == NULL) return rpo_fail(err, RPO_EINVAL, "out_score is NULL");
  if (k < 1 || k > m->outputs) {
    return rpo_fail(err, RPO_EINVAL, "k must be between 1 and the number of outputs %lld, got %lld",
                    (long long)m->outputs, (long long)k);
  }
  r.k = k;
  r.index = out_index;
  r.out = out_score;
  r.sums = 1;
  if (m->start != NULL) return rpo_sums_read(&r, control, err);
  return rpo_read_blocks(&r, control, topk_block, err);
}
