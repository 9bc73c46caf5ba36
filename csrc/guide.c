#include "guide.h"

#include <string.h>

#include "mem.h"
#include "par.h"

enum {
  WALKERS = 8,          /* rows under way at a time: no step waits for another's outcome */
  ROOM_CODES = 1 << 20, /* of sparse rows, spread */
  ROOM_ROWS = 64,       /* most of them */
  TASK_ROWS = 512
};

typedef struct guide_node {
  int32_t feature;
  int32_t below;   /* the last code that goes left */
  int32_t missing; /* the code of missing values if they go left, else -1 */
  int32_t child[2];
} guide_node;

struct rpo_guide {
  const rpo_features *f;
  int64_t n_inner, depth;
  guide_node *node;
};

static int32_t below_of(const rpo_features *f, int32_t feature, double threshold) {
  const double *const high = f->high + f->bin_start[feature];
  int32_t below = -1, count = rpo_bins(f, feature) + 1; /* the answer is in below .. + count - 1 */
  while (count > 1) {
    int32_t const half = count / 2;
    below += high[below + half] <= threshold ? half : 0;
    count -= half;
  }
  return below;
}

/* Inner nodes on the longest way to a leaf: children come after their parents. */
static int64_t depth_of(const rpo_tree *tree, int32_t *level) {
  int64_t most = 0;
  if (tree->n_inner > 0) level[0] = 1;
  for (int64_t i = 0; i < tree->n_inner; i++) {
    if (level[i] > most) most = level[i];
    if (tree->left[i] >= 0) level[tree->left[i]] = level[i] + 1;
    if (tree->right[i] >= 0) level[tree->right[i]] = level[i] + 1;
  }
  return most;
}

rpo_status rpo_guide_new(const rpo_features *f, const rpo_tree *tree, rpo_guide **out,
                         rpo_error *err) {
  rpo_guide *const g = rpo_new_zero(1, (int64_t)sizeof *g);
  int32_t *const level = rpo_new(tree->n_inner, 4);
  if (g != NULL) g->node = rpo_new(tree->n_inner, (int64_t)sizeof *g->node);
  if (g == NULL || g->node == NULL || level == NULL) {
    rpo_delete(level);
    rpo_guide_free(g);
    return rpo_fail_memory(err, "a tree");
  }
  g->f = f;
  g->n_inner = tree->n_inner;
  g->depth = depth_of(tree, level);
  rpo_delete(level);
  for (int64_t i = 0; i < tree->n_inner; i++) {
    int32_t const feature = tree->feature[i];
    guide_node const node = {feature,
                             below_of(f, feature, tree->threshold[i]),
                             tree->missing_left[i] ? rpo_bins(f, feature) : -1,
                             {tree->right[i], tree->left[i]}};
    g->node[i] = node;
  }
  *out = g;
  return RPO_OK;
}

void rpo_guide_free(rpo_guide *g) {
  if (g == NULL) return;
  rpo_delete(g->node);
  rpo_delete(g);
}

/* Row number rows[i] of the codes, or row i where rows is NULL. A row that has arrived makes room for
 * the next. */
#define DEFINE_WALK(name, type)                                                                  \
  static void name(const guide_node *node, const type *codes, int64_t cols, const int32_t *rows, \
                   int64_t n, int32_t *leaf) {                                                   \
    const type *row[WALKERS];                                                                    \
    int64_t who[WALKERS], next = 0;                                                              \
    int32_t at[WALKERS];                                                                         \
    int walkers = 0;                                                                             \
    for (; walkers < WALKERS && next < n; walkers++, next++) {                                   \
      at[walkers] = 0;                                                                           \
      who[walkers] = next;                                                                       \
      row[walkers] = codes + (rows == NULL ? next : rows[next]) * cols;                          \
    }                                                                                            \
    for (int k = 0; walkers > 0; k = k + 1 < walkers ? k + 1 : 0) {                              \
      const guide_node *const here = &node[at[k]];                                               \
      int32_t const code = (int32_t)row[k][here->feature];                                       \
      at[k] = here->child[(code <= here->below) | (code == here->missing)];                      \
      if (at[k] >= 0) continue;                                                                  \
      leaf[who[k]] = ~at[k];                                                                     \
      if (next < n) {                                                                            \
        at[k] = 0;                                                                               \
        who[k] = next;                                                                           \
        row[k] = codes + (rows == NULL ? next : rows[next]) * cols;                              \
        next++;                                                                                  \
      } else {                                                                                   \
        walkers--;                                                                               \
        at[k] = at[walkers];                                                                     \
        who[k] = who[walkers];                                                                   \
        row[k] = row[walkers];                                                                   \
      }                                                                                          \
    }                                                                                            \
  }
DEFINE_WALK(walk_1, uint8_t)
DEFINE_WALK(walk_2, uint16_t)
DEFINE_WALK(walk_4, int32_t)

static void walk(const rpo_guide *g, const void *codes, const int32_t *rows, int64_t n,
                 int32_t *leaf) {
  int64_t const cols = g->f->cols;
  if (g->f->width == 1) {
    walk_1(g->node, codes, cols, rows, n, leaf);
  } else if (g->f->width == 2) {
    walk_2(g->node, codes, cols, rows, n, leaf);
  } else {
    walk_4(g->node, codes, cols, rows, n, leaf);
  }
}

/* ---- Sparse features: rows are spread into the room, a few at a time ---- */

static int64_t room_rows(const rpo_features *f) {
  int64_t const rows = ROOM_CODES / f->cols;
  return rows < 1 ? 1 : rows < ROOM_ROWS ? rows : ROOM_ROWS;
}

#define SPREAD(type, code_of_entry)               \
  do {                                            \
    type *const to = (type *)room + at * f->cols; \
    for (int64_t e = begin; e < end; e++) {       \
      to[f->row_cols[e]] = (type)(code_of_entry); \
    }                                             \
  } while (0)

/* A row's codes into a place of the room where all are the common ones; or these back there. */
static void spread(const rpo_features *f, int32_t row, void *room, int64_t at) {
  int64_t const begin = f->row_start[row], end = f->row_start[row + 1];
  if (f->binary) {
    SPREAD(uint8_t, 1 - f->rest[f->row_cols[e]]);
  } else if (f->width == 1) {
    SPREAD(uint8_t, ((const uint8_t *)f->row_codes)[e]);
  } else if (f->width == 2) {
    SPREAD(uint16_t, ((const uint16_t *)f->row_codes)[e]);
  } else {
    SPREAD(int32_t, ((const int32_t *)f->row_codes)[e]);
  }
}

static void take_back(const rpo_features *f, int32_t row, void *room, int64_t at) {
  int64_t const begin = f->row_start[row], end = f->row_start[row + 1];
  if (f->width == 1) {
    SPREAD(uint8_t, f->rest[f->row_cols[e]]);
  } else if (f->width == 2) {
    SPREAD(uint16_t, f->rest[f->row_cols[e]]);
  } else {
    SPREAD(int32_t, f->rest[f->row_cols[e]]);
  }
}

rpo_status rpo_guide_room(const rpo_features *f, void **out, rpo_error *err) {
  int64_t const row_bytes = f->cols * f->width;
  *out = NULL;
  if (!f->sparse) return RPO_OK;
  char *const room = rpo_new(room_rows(f) * f->cols, f->width);
  if (room == NULL) return rpo_fail_memory(err, "rows");
  for (int64_t j = 0; j < f->cols; j++) rpo_code_put(room, f->width, j, f->rest[j]);
  for (int64_t i = 1; i < room_rows(f); i++) memcpy(room + i * row_bytes, room, (size_t)row_bytes);
  *out = room;
  return RPO_OK;
}

/* A row's code of one feature: columns ascend in a row. */
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

static int32_t look_up(const rpo_guide *g, int32_t row) {
  int32_t at = 0;
  while (at >= 0) {
    const guide_node *const here = &g->node[at];
    int32_t const code = listed_code(g->f, row, here->feature);
    at = here->child[(code <= here->below) | (code == here->missing)];
  }
  return ~at;
}

/* Whether a few questions cost less than to spread a row and take it back. */
static int is_cheap(const rpo_guide *g, int32_t row) {
  int64_t const entries = g->f->row_start[row + 1] - g->f->row_start[row];
  int64_t steps = 1;
  for (int64_t left = entries; left > 0; left /= 2) steps++;
  return g->depth * steps < entries;
}

void rpo_guide_leaves(const rpo_guide *g, void *room, const int32_t *rows, int64_t n,
                      int32_t *leaf) {
  const rpo_features *const f = g->f;
  if (g->n_inner == 0) {
    memset(leaf, 0, (size_t)n * sizeof *leaf);
    return;
  }
  if (!f->sparse) {
    walk(g, f->row_codes, rows, n, leaf);
    return;
  }
  for (int64_t first = 0; first < n; first += room_rows(f)) {
    int64_t const count = n - first < room_rows(f) ? n - first : room_rows(f);
    const int32_t *const row = rows + first;
    if (is_cheap(g, row[0])) { /* and most likely the others, too */
      for (int64_t i = 0; i < count; i++) leaf[first + i] = look_up(g, row[i]);
      continue;
    }
    for (int64_t i = 0; i < count; i++) spread(f, row[i], room, i);
    walk(g, room, NULL, count, leaf + first);
    for (int64_t i = 0; i < count; i++) take_back(f, row[i], room, i);
  }
}

/* ---- All threads ---- */

typedef struct finding {
  const rpo_guide *guide;
  void **room; /* by thread */
  const int32_t *rows;
  int64_t n;
  int32_t *leaf;
} finding;

static rpo_status leaves_task(void *context, int64_t task, int thread, rpo_job *job,
                              rpo_error *err) {
  const finding *const k = context;
  int64_t const first = task * TASK_ROWS;
  (void)job;
  if (k->room[thread] == NULL) RPO_TRY(rpo_guide_room(k->guide->f, &k->room[thread], err));
  rpo_guide_leaves(k->guide, k->room[thread], k->rows + first,
                   k->n - first < TASK_ROWS ? k->n - first : TASK_ROWS, k->leaf + first);
  return RPO_OK;
}

rpo_status rpo_guide_all(const rpo_features *f, const rpo_tree *tree, const int32_t *rows,
                         int64_t n, const rpo_control *control, int32_t *leaf, rpo_error *err) {
  int64_t const tasks = (n + TASK_ROWS - 1) / TASK_ROWS;
  int const threads = rpo_threads(control, tasks);
  rpo_guide *guide = NULL;
  void **const room = rpo_new_zero(threads, (int64_t)sizeof *room);
  rpo_status status = RPO_OK;
  if (room == NULL) return rpo_fail_memory(err, "rows");
  RPO_GOTO(rpo_guide_new(f, tree, &guide, err));
  finding k = {guide, room, rows, n, leaf};
  RPO_GOTO(rpo_run(control, tasks, leaves_task, &k, err));
done:
  for (int t = 0; t < threads; t++) rpo_delete(room[t]);
  rpo_delete(room);
  rpo_guide_free(guide);
  return status;
}
