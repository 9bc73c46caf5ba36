/* The loop: pop a node, split it, look for its children's cuts. Of more threads than one, small nodes
 * near the root become branches, which other threads grow while the trunk is. */
#include <math.h>
#include <string.h>

#include "hist.h"
#include "kernels.h"
#include "mem.h"
#include "rng.h"

#define POOLED_BYTES (64 << 20) /* a larger set of slots is made feature by feature */
#define BRANCH_BYTES (64 << 20) /* of slots that wait with branches; of a set for each thread */
#define BRANCHED_WORK 100000    /* additions of a tree worth branches */

/* ---- Nodes ---- */

#define WIDE 16 /* numbers of a slot: adding a row's up costs more than asking whose it is */

/* Subtraction pays where the sums of all features are wanted anyway (sparse rows list them together,
 * which is beaten where sums are wide and one feature in eight is drawn; of dense ones half have to be
 * drawn), and where there are many more rows than slots. */
static int is_pooled(const rpo_hist *h, int64_t rows) {
  if (h->f->sparse) return 8 * h->o.max_features > h->f->cols || h->stride < WIDE;
  return 2 * h->o.max_features > h->f->cols && h->slots <= POOLED_BYTES / 8 / h->stride &&
         rows * h->f->cols >= 4 * h->slots;
}

static int64_t slot_bytes(const rpo_hist *h) { return 8 * h->slots * h->stride; }

static void add_total(const rpo_hist *h, rpo_hist_node *node) {
  rpo_kernels_pick()->hist_total(h, h->samples + node->start, node->end - node->start, node->total);
}

static double square_over_weight(const rpo_hist *h, const double *total) {
  double square = 0.0;
  for (int64_t c = 1; c <= h->m; c++) square += total[c] * total[c];
  return square / total[0];
}

/* In the caller's units: decrease of the sum of variances, times weight over all weight. */
static double gain_of(const rpo_hist *h, const rpo_hist_node *node) {
  double const parent = square_over_weight(h, node->total);
  double const unit = h->unit / h->weight_unit;
  return (node->cut.score - parent) / h->total_weight * unit * unit;
}

static int may_split(const rpo_hist *h, const rpo_hist_node *node) {
  int64_t const n = node->end - node->start;
  return node->depth < h->o.max_depth && n >= h->o.min_split && n >= 2 * h->o.min_leaf &&
         node->total[0] >= 2.0 * h->min_leaf_weight;
}

static int split_pays(const rpo_hist *h, const rpo_hist_node *node) {
  if (node->cut.feature < 0 || !(node->cut.score > -INFINITY)) return 0;
  double const parent = square_over_weight(h, node->total);
  return node->cut.score > parent * (1.0 + 1e-12) && gain_of(h, node) >= h->o.min_decrease;
}

/* Marks the rows of a sparse column that go to the side its unlisted rows do not go to. */
static void mark_column(rpo_hist_hand *w, const rpo_cut *cut, int rest_left, uint8_t value) {
  const rpo_features *const f = w->h->f;
  int32_t const bins = rpo_bins(f, cut->feature);
  for (int64_t e = f->col_start[cut->feature]; e < f->col_start[cut->feature + 1]; e++) {
    int32_t const code =
        f->binary ? 1 - f->rest[cut->feature] : rpo_code_at(f->col_codes, f->width, e);
    int const left = code == bins ? cut->missing_left == 1 : code <= cut->below;
    if (left != rest_left) w->mark[f->col_rows[e]] = value;
  }
}

/* Rows of the left side to the front, each side in its order. Returns where the right begins. */
static int32_t partition(rpo_hist_hand *w, const rpo_hist_node *node) {
  const rpo_hist *const h = w->h;
  const rpo_features *const f = h->f;
  const rpo_cut *const cut = &node->cut;
  int32_t const bins = rpo_bins(f, cut->feature);
  int const rest_left = f->sparse && f->rest[cut->feature] <= cut->below;
  int32_t *const scratch = h->scratch + node->start;
  int32_t at = node->start, away = 0;
  if (f->sparse) mark_column(w, cut, rest_left, 1);
  for (int32_t i = node->start; i < node->end; i++) {
    int32_t const row = h->samples[i];
    int left;
    if (f->sparse) {
      left = rest_left ^ w->mark[row];
    } else {
      int32_t const code = rpo_code_at(f->codes, f->width, (int64_t)cut->feature * f->rows + row);
      left = code == bins ? cut->missing_left == 1 : code <= cut->below;
    }
    h->samples[at] = row; /* at <= i */
    scratch[away] = row;
    at += left;
    away += !left;
  }
  memcpy(h->samples + at, scratch, (size_t)away * 4);
  if (f->sparse) mark_column(w, cut, rest_left, 0);
  return at;
}

static rpo_status node_room(rpo_hist_hand *w, int64_t wanted, rpo_error *err) {
  if (wanted <= w->node_room) return RPO_OK;
  int64_t const room = wanted < 128 ? 256 : 2 * wanted;
  rpo_node *const nodes = rpo_grow(w->nodes, w->n_nodes, room, (int64_t)sizeof *nodes);
  if (nodes == NULL) return rpo_fail_memory(err, "a tree");
  w->nodes = nodes;
  w->node_room = room;
  return RPO_OK;
}

static rpo_status new_node(rpo_hist_hand *w, int32_t parent, int side, int32_t start, int32_t end,
                           int32_t *id, rpo_error *err) {
  RPO_TRY(node_room(w, w->n_nodes + 1, err));
  rpo_node const node = {0.0, 0.0, parent, {-1, -1}, -1, start, end, 0};
  *id = (int32_t)w->n_nodes++;
  w->nodes[*id] = node;
  if (parent >= 0) w->nodes[parent].child[side] = *id;
  return RPO_OK;
}

static rpo_status push(rpo_hist_hand *w, rpo_hist_node node, rpo_error *err) {
  if (w->n_waiting == w->waiting_room) {
    int64_t const room = 2 * w->waiting_room + 64;
    rpo_hist_node *const waiting =
        rpo_grow(w->waiting, w->n_waiting, room, (int64_t)sizeof *waiting);
    if (waiting == NULL) return rpo_fail_memory(err, "a tree");
    w->waiting = waiting;
    w->waiting_room = room;
  }
  w->waiting[w->n_waiting++] = node;
  return RPO_OK;
}

/* Best first: the largest decrease, the earlier node of equal ones. Depth first: the last. */
static rpo_hist_node pop(rpo_hist_hand *w) {
  int64_t best = w->n_waiting - 1;
  for (int64_t i = 0; w->h->o.max_leaves > 0 && i < w->n_waiting; i++) {
    const rpo_hist_node *const a = &w->waiting[i], *const b = &w->waiting[best];
    double const x = a->cut.score, y = b->cut.score;
    if (x > y || (x == y && a->id < b->id)) best = i;
  }
  rpo_hist_node const node = w->waiting[best];
  w->waiting[best] = w->waiting[--w->n_waiting];
  return node;
}

static void release_node(rpo_hist_hand *w, rpo_hist_node *node, rpo_status *status,
                         rpo_error *err) {
  rpo_delete(node->total);
  rpo_status const given = rpo_hist_give(w, node->sums, err);
  if (*status == RPO_OK) *status = given;
  node->total = node->sums = NULL;
}

/* ---- Branches ---- */

/* A branch has no more rows than a thread's share; each keeps a set of slots until its turn, and each
 * thread some of its own. */
static void plan_branches(rpo_hist *h, int64_t n) {
  int const pays = rpo_hist_work(h, n) * (double)h->stride > BRANCHED_WORK;
  int const fits = !is_pooled(h, n) || h->threads * slot_bytes(h) <= BRANCH_BYTES;
  memset(&h->branches, 0, sizeof h->branches);
  h->branch_rows = h->threads > 1 && h->o.max_leaves == 0 && pays && fits ? n / h->threads : 0;
}

static int is_branch(const rpo_hist_hand *w, const rpo_hist_node *node) {
  const rpo_hist *const h = w->h;
  int64_t const bytes = node->sums == NULL ? 0 : slot_bytes(h);
  return w == h->hand && node->end - node->start <= h->branch_rows &&
         h->branches.made < RPO_BRANCHES && (h->branches.made + 1) * bytes <= BRANCH_BYTES;
}

static void put_off(rpo_hist *h, const rpo_hist_node *node) {
  rpo_hist_branch const branch = {*node, node->sums != NULL, 0, 0, 0};
  h->branch[h->branches.made] = branch;
  rpo_feed_add(&h->branches);
}

/* ---- Growing ---- */

/* Queues a node that a split pays in; its score becomes its gain. Takes the node over. */
static rpo_status consider(rpo_hist_hand *w, rpo_hist_node node, rpo_error *err) {
  rpo_status status = rpo_hist_search(w, &node, err);
  if (status == RPO_OK && split_pays(w->h, &node)) {
    node.cut.score = gain_of(w->h, &node);
    if (is_branch(w, &node)) {
      put_off(w->h, &node);
      return RPO_OK;
    }
    status = push(w, node, err);
    if (status == RPO_OK) return RPO_OK;
  }
  release_node(w, &node, &status, err);
  return status;
}

static rpo_status child_of(rpo_hist_hand *w, const rpo_hist_node *parent, int side, int32_t start,
                           int32_t end, rpo_hist_node *child, rpo_error *err) {
  memset(child, 0, sizeof *child);
  RPO_TRY(new_node(w, parent->id, side, start, end, &child->id, err));
  child->depth = parent->depth + 1;
  child->start = start;
  child->end = end;
  child->path = rpo_path(parent->path, side);
  child->total = rpo_new(w->h->stride, 8);
  return child->total == NULL ? rpo_fail_memory(err, "a tree") : RPO_OK;
}

static rpo_status split(rpo_hist_hand *w, rpo_hist_node *node, rpo_error *err) {
  const rpo_hist *const h = w->h;
  rpo_hist_node child[2];
  rpo_status status;
  memset(child, 0, sizeof child);
  int32_t const middle = partition(w, node);
  rpo_node *const made = &w->nodes[node->id];
  made->feature = node->cut.feature;
  made->threshold = rpo_cut_between(h->f, node->cut.feature, node->cut.below, node->cut.above);
  made->missing_left =
      (uint8_t)(node->cut.missing_left >= 0 ? node->cut.missing_left
                                            : middle - node->start > node->end - middle);
  RPO_GOTO(child_of(w, node, 0, node->start, middle, &child[0], err));
  RPO_GOTO(child_of(w, node, 1, middle, node->end, &child[1], err));
  int const small = middle - node->start <= node->end - middle ? 0 : 1;
  add_total(h, &child[small]);
  for (int64_t c = 0; c < h->stride; c++) {
    child[1 - small].total[c] = node->total[c] - child[small].total[c];
  }
  int const wanted[2] = {may_split(h, &child[0]), may_split(h, &child[1])};
  int64_t const most = child[1 - small].end - child[1 - small].start;
  if (node->sums != NULL && (wanted[0] || wanted[1]) && is_pooled(h, most)) {
    rpo_hist_node *const few = &child[small], *const many = &child[1 - small];
    RPO_GOTO(rpo_hist_take(w, &few->sums, err));
    RPO_GOTO(rpo_hist_build(w, h->samples + few->start, few->end - few->start, few->sums, err));
    if (wanted[1 - small]) {
      many->sums = node->sums;
      node->sums = NULL;
      int64_t const numbers = h->slots * h->stride;
      for (int64_t i = 0; i < numbers; i++) many->sums[i] -= few->sums[i];
    }
  }
  for (int c = 0; c < 2; c++) {
    rpo_hist_node const taken = child[c];
    if (!wanted[c]) continue;
    child[c].sums = child[c].total = NULL;
    RPO_GOTO(consider(w, taken, err));
  }
done:
  for (int c = 0; c < 2; c++) release_node(w, &child[c], &status, err);
  return status;
}

/* Splits what waits, and what that makes wait, until `enough` branches wait for other threads. */
static rpo_status work_off(rpo_hist_hand *w, int64_t enough, rpo_job *job, int thread,
                           rpo_error *err) {
  int64_t const most = w->h->o.max_leaves;
  for (int64_t leaves = 1; w->n_waiting > 0 && (most == 0 || leaves < most); leaves++) {
    if (enough < INT64_MAX && w->h->branches.made >= enough) break;
    rpo_hist_node node = pop(w);
    rpo_status status = rpo_keep_on(job, thread, err);
    if (status == RPO_OK) status = split(w, &node, err);
    release_node(w, &node, &status, err);
    RPO_TRY(status);
  }
  return RPO_OK;
}

/* The trunk, as far as it keeps all threads busy with the sums of one node. */
static rpo_status grow_trunk(rpo_hist *h, int64_t n, uint64_t path, rpo_error *err) {
  rpo_hist_hand *const w = h->hand;
  rpo_hist_node root;
  rpo_status status = RPO_OK;
  rpo_job job; /* splits are jobs too short to poll: this one outlives them */
  memset(&job, 0, sizeof job);
  job.control = w->control;
  job.total = n;
  job.last_poll = rpo_now();
  memset(&root, 0, sizeof root);
  RPO_TRY(new_node(w, -1, 0, 0, (int32_t)n, &root.id, err));
  root.end = (int32_t)n;
  root.path = path;
  root.total = rpo_new(h->stride, 8);
  if (root.total == NULL) return rpo_fail_memory(err, "a tree");
  add_total(h, &root);
  h->total_weight = root.total[0];
  h->min_leaf_weight = h->o.min_leaf_share * h->total_weight;
  if (!may_split(h, &root)) {
    release_node(w, &root, &status, err);
    return status;
  }
  if (is_pooled(h, n)) {
    status = rpo_hist_take(w, &root.sums, err);
    if (status == RPO_OK) status = rpo_hist_build(w, h->samples, n, root.sums, err);
  }
  if (status != RPO_OK) {
    release_node(w, &root, &status, err);
    return status;
  }
  RPO_TRY(consider(w, root, err));
  int64_t const enough = h->threads <= RPO_BRANCHES ? h->threads - 1 : RPO_BRANCHES;
  return work_off(w, h->branch_rows > 0 ? enough : INT64_MAX, &job, 0, err);
}

static rpo_status grow_branch(rpo_hist_hand *w, rpo_hist_branch *branch, rpo_job *job, int thread,
                              rpo_error *err) {
  rpo_hist_node node = branch->node;
  rpo_status status;
  branch->node.sums = branch->node.total = NULL;
  branch->hand = 1 + thread;
  branch->first = w->n_nodes;
  RPO_GOTO(new_node(w, -1, 0, node.start, node.end, &node.id, err));
  RPO_GOTO(push(w, node, err));
  node.sums = node.total = NULL;
  RPO_GOTO(work_off(w, INT64_MAX, job, thread, err));
  branch->end = w->n_nodes;
done:
  release_node(w, &node, &status, err);
  return status;
}

/* Of as many tasks as threads the first is the rest of the trunk, which makes branches for all. */
static rpo_status grow_rest(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  rpo_hist *const h = context;
  const rpo_control *const polled = thread == 0 ? &h->alone : NULL;
  h->hand[1 + thread].control = polled;
  if (task == 0) {
    h->hand[0].control = polled;
    RPO_TRY(work_off(h->hand, INT64_MAX, job, thread, err));
    rpo_feed_end(&h->branches);
  }
  for (;;) {
    int64_t const next = rpo_feed_take(&h->branches, job, thread);
    if (next < 0) return RPO_OK;
    RPO_TRY(grow_branch(&h->hand[1 + thread], &h->branch[next], job, thread, err));
  }
}

/* A branch's nodes become the trunk's. */
static rpo_status graft(rpo_hist *h, const rpo_hist_branch *branch, rpo_error *err) {
  rpo_hist_hand *const w = h->hand;
  const rpo_node *const from = h->hand[branch->hand].nodes + branch->first;
  int64_t const count = branch->end - branch->first;
  RPO_TRY(node_room(w, w->n_nodes + count - 1, err));
  /* Node i there, behind the first, is node i + ahead here. */
  int32_t const ahead = (int32_t)(w->n_nodes - branch->first - 1);
  for (int64_t i = 0; i < count; i++) {
    rpo_node node = from[i];
    for (int c = 0; c < 2; c++) node.child[c] += node.child[c] < 0 ? 0 : ahead;
    if (i == 0) {
      node.parent = w->nodes[branch->node.id].parent;
      w->nodes[branch->node.id] = node;
      continue;
    }
    node.parent = node.parent == branch->first ? branch->node.id : node.parent + ahead;
    w->nodes[w->n_nodes++] = node;
  }
  return RPO_OK;
}

static rpo_status grow(rpo_hist *h, int64_t n, uint64_t path, const rpo_control *control,
                       rpo_error *err) {
  for (int64_t i = 0; i < h->hands; i++) h->hand[i].n_nodes = 0;
  plan_branches(h, n);
  RPO_TRY(grow_trunk(h, n, path, err));
  if (h->branches.made > 0) {
    h->alone = *control;
    h->alone.n_threads = 1;
    RPO_TRY(rpo_run(control, h->threads, grow_rest, h, err));
  }
  for (int64_t i = 0; i < h->branches.made; i++) RPO_TRY(graft(h, &h->branch[i], err));
  return RPO_OK;
}

/* Nodes that were not split; slots that went to branches come back. */
static rpo_status put_away(rpo_hist *h, rpo_status status, rpo_error *err) {
  for (int64_t i = 0; i < h->hands; i++) {
    rpo_hist_hand *const w = &h->hand[i];
    while (w->n_waiting > 0) release_node(w, &w->waiting[--w->n_waiting], &status, err);
  }
  for (int64_t i = 0; i < h->branches.made; i++) {
    rpo_hist_hand *const from = &h->hand[h->branch[i].hand];
    release_node(h->hand, &h->branch[i].node, &status, err);
    if (!h->branch[i].lent || from == h->hand || from->n_spare == 0) continue;
    rpo_status const given = rpo_hist_give(h->hand, from->spare[--from->n_spare], err);
    if (status == RPO_OK) status = given;
  }
  return status;
}

/* Adds weight, sums and sums of squares of a leaf's rows. */
static inline void add_moments_of(const rpo_hist *h, const rpo_node *leaf, int64_t m,
                                  double *restrict to) {
  for (int32_t s = leaf->start; s < leaf->end; s++) {
    const double *restrict const stat = h->stat + (int64_t)h->samples[s] * h->stride;
    to[0] += stat[0];
    for (int64_t c = 1; c <= m; c++) {
      to[c] += stat[c];
      to[m + c] += stat[c] * stat[c] / stat[0];
    }
  }
}

static void add_moments(const rpo_hist *h, const rpo_node *leaf, double *to) {
  if (h->m == 1) {
    add_moments_of(h, leaf, 1, to); /* in registers */
  } else {
    add_moments_of(h, leaf, h->m, to);
  }
}

/* Impurities, children before their parents: those of leaves from their rows. */
static rpo_status note_impurities(const rpo_hist *h, rpo_error *err) {
  int64_t const m = h->m, each = 2 * m + 1; /* weight, sums, squares */
  const rpo_hist_hand *const w = h->hand;
  double *const of = rpo_new_zero(w->n_nodes * each, 8);
  if (of == NULL) return rpo_fail_memory(err, "a tree");
  for (int64_t i = w->n_nodes - 1; i >= 0; i--) {
    rpo_node *const node = &w->nodes[i];
    double *const at = of + i * each;
    if (node->feature < 0) add_moments(h, node, at);
    double impurity = 0.0;
    for (int64_t c = 1; c <= m; c++) impurity += at[m + c] - at[c] * at[c] / at[0];
    impurity *= h->unit / h->weight_unit * h->unit / h->weight_unit / at[0];
    node->impurity = impurity > 0.0 ? impurity : 0.0;
    double *const parent = of + (int64_t)node->parent * each;
    for (int64_t c = 0; c < each && node->parent >= 0; c++) parent[c] += at[c];
  }
  rpo_delete(of);
  return RPO_OK;
}

rpo_status rpo_hist_run(rpo_hist *h, const int32_t *rows, int64_t n, const double *weight,
                        uint64_t name, const rpo_control *control, rpo_tree *out, rpo_error *err) {
  RPO_TRY(rpo_hist_hands(h, control, err));
  memcpy(h->samples, rows, (size_t)n * 4);
  rpo_status const status = grow(h, n, rpo_mix(name), control, err);
  RPO_TRY(put_away(h, status, err));
  RPO_TRY(note_impurities(h, err));
  const rpo_hist_hand *const w = h->hand;
  return rpo_tree_from_nodes(w->nodes, w->n_nodes, h->samples, n, weight, out, err);
}
