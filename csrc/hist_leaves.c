/* Leaves of rows that a tree was not grown on. */
#include "hist.h"
#include "mem.h"
#include "par.h"

#define TASK_ROWS 512

static int32_t below_of(const rpo_features *f, int32_t feature, double threshold) {
  const double *const high = f->high + f->bin_start[feature];
  int32_t low = -1, end = rpo_bins(f, feature);
  while (end - low > 1) {
    int32_t const middle = low + (end - low) / 2;
    if (high[middle] <= threshold) {
      low = middle;
    } else {
      end = middle;
    }
  }
  return low;
}

/* A row's code of a sparse feature: columns ascend in a row. */
static int32_t listed_code(const rpo_features *f, int32_t row, int32_t col) {
  int64_t low = f->row_start[row], end = f->row_start[row + 1];
  while (low < end) {
    int64_t const middle = low + (end - low) / 2;
    if (f->row_cols[middle] < col) {
      low = middle + 1;
    } else {
      end = middle;
    }
  }
  if (low == f->row_start[row + 1] || f->row_cols[low] != col) return f->rest[col];
  return f->binary ? 1 - f->rest[col] : rpo_code_at(f->row_codes, f->width, low);
}

typedef struct finding {
  const rpo_features *f;
  const rpo_tree *tree;
  const int32_t *below; /* of inner nodes: the last code that goes left */
  const int32_t *rows;
  int64_t n;
  int32_t *leaf;
} finding;

static rpo_status leaves_task(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const finding *const k = context;
  const rpo_features *const f = k->f;
  const rpo_tree *const tree = k->tree;
  int64_t const first = task * TASK_ROWS;
  int64_t const end = first + TASK_ROWS < k->n ? first + TASK_ROWS : k->n;
  (void)thread;
  (void)job;
  (void)err;
  for (int64_t i = first; i < end; i++) {
    int32_t node = tree->n_inner > 0 ? 0 : ~0;
    while (node >= 0) {
      int32_t const feature = tree->feature[node];
      int64_t const dense = (int64_t)k->rows[i] * f->cols + feature;
      int32_t const code = f->sparse ? listed_code(f, k->rows[i], feature)
                                     : rpo_code_at(f->row_codes, f->width, dense);
      int const left =
          code == rpo_bins(f, feature) ? tree->missing_left[node] : code <= k->below[node];
      node = left ? tree->left[node] : tree->right[node];
    }
    k->leaf[i] = ~node;
  }
  return RPO_OK;
}

rpo_status rpo_hist_leaves(const rpo_features *f, const rpo_tree *tree, const int32_t *rows,
                           int64_t n, const rpo_control *control, int32_t *leaf, rpo_error *err) {
  int32_t *const below = rpo_new(tree->n_inner, 4);
  if (below == NULL) return rpo_fail_memory(err, "a tree");
  for (int64_t i = 0; i < tree->n_inner; i++) {
    below[i] = below_of(f, tree->feature[i], tree->threshold[i]);
  }
  finding k = {f, tree, below, rows, n, leaf};
  rpo_status const status = rpo_run(control, (n + TASK_ROWS - 1) / TASK_ROWS, leaves_task, &k, err);
  rpo_delete(below);
  return status;
}
