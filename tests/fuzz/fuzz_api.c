/* Every public function with arguments made of bytes: of any form, now and then wrong, with memory that
 * runs out and callbacks that cancel. A call succeeds or says why; nothing is lost. */
#include "making.h"
#include "reading.h"

#define FILE_NAME "fuzz_api.rpo"

typedef struct play {
  source *s;
  limits may;
  rpo_control control;
  rpo_error err;
  crafted X, Y, labels;
  double *weight, *matrix;
  rpo_projection projection;
  rpo_features *features;
  rpo_options *options;
  rpo_forest *forest;
} play;

static int went(play *p, rpo_status status) { return fine(status, &p->err, &p->may); }

/* What fits this play's X and Y, or nearly. */
static int64_t a_size(source *s, int64_t most) {
  int64_t const n = 1 + choose(s, most);
  return rarely(s, 60) ? n * 40 : n;
}

/* Beside `n`: of two sides one may be long, so that calls stay quick. */
static int64_t beside(int64_t n, int64_t other) {
  int64_t const most = 3000 / n;
  return other < most ? other : most < 1 ? 1 : most;
}

static void start(play *p, source *s) {
  memset(p, 0, sizeof *p);
  p->s = s;
  p->may.patience = rarely(s, 12) ? 1 + choose(s, 60) : 0;
  p->may.starved = rarely(s, 12);
  p->control.n_threads = choose(s, 8) == 7 ? 3 : 1;
  p->control.progress = p->may.patience > 0 || choose(s, 4) == 3 ? patience : NULL;
  p->control.user = &p->may;
  rpo_mem_fail_after = p->may.starved ? choose(s, 256) : -1;
  int64_t const n = a_size(s, 40), cols = beside(n, a_size(s, 9));
  int64_t const d = beside(n, choose(s, 4) ? a_size(s, 30) : 1);
  int const one = choose(s, 4) == 3;
  p->X = make_matrix(s, n, cols, rarely(s, 6) ? 3 : 2, (int)choose(s, STYLES), 0);
  int const style = choose(s, 3) == 0 ? BINARY : (int)choose(s, STYLES);
  p->Y = make_matrix(s, rarely(s, 40) ? n + 1 : n, d, rarely(s, 30) ? 3 : 2, style, one);
  p->weight = make_weights(s, n);
  p->projection = make_projection(s, d, &p->matrix);
  p->options = make_options(s, &p->err);
  int32_t const bins = choose(s, 2) ? (int32_t)choose(s, 256) : 0;
  (void)went(p, rpo_features_new(&p->X.view, bins, &p->control, &p->features, &p->err));
}

static void finish(play *p) {
  rpo_mem_fail_after = -1;
  rpo_forest_free(p->forest);
  rpo_features_free(p->features);
  rpo_options_free(p->options);
  crafted_free(&p->X);
  crafted_free(&p->Y);
  crafted_free(&p->labels);
  free(p->weight);
  free(p->matrix);
}

/* ---- Features ---- */

static void play_features(play *p) {
  rpo_features *again = NULL;
  rpo_features *const f = p->features;
  int64_t const col = choose(p->s, 12) - 1, bins = rpo_features_bins(f, col);
  MUST(rpo_features_bytes(f) >= 0 && rpo_features_is_sparse(f) >= 0);
  double *const low = exactly(bins, 8), *const high = exactly(bins, 8);
  int32_t *const codes = exactly(rpo_features_rows(f), 4);
  if (went(p, rpo_features_edges(f, col, low, high, &p->err))) {
    for (int64_t b = 0; b < bins; b++) MUST(low[b] <= high[b]);
  }
  if (went(p, rpo_features_codes(f, col, codes, &p->err))) {
    for (int64_t i = 0; i < rpo_features_rows(f); i++) MUST(codes[i] >= 0 && codes[i] <= bins);
  }
  free(low);
  free(high);
  free(codes);
  crafted other =
      make_matrix(p->s, beside(rpo_features_cols(f) + 1, a_size(p->s, 20)),
                  rpo_features_cols(f) + rarely(p->s, 20), 3, (int)choose(p->s, STYLES), 0);
  (void)went(p, rpo_features_like(&other.view, f, &p->control, &again, &p->err));
  rpo_features_free(again);
  crafted_free(&other);
}

/* ---- Projections ---- */

static void play_projection(play *p) {
  int64_t const d = p->Y.view.cols, m = p->projection.components, n = p->Y.view.rows;
  if (m > 300 || d > 5000 || d < 1 || n < 1 || n > 5000) return;
  double *const phi = exactly(m < 1 ? 1 : m * d, 8), *const z = exactly(m < 1 ? 1 : m * n, 8);
  (void)went(p, rpo_projection_draw(&p->projection, d, phi, &p->err));
  (void)went(p, rpo_projection_apply(&p->projection, &p->Y.view, &p->control, z, &p->err));
  free(phi);
  free(z);
}

/* ---- Forests ---- */

/* Another X for a forest: as in the fit, or of any rows, or wrong. */
static crafted an_x(play *p, int64_t cols) {
  return make_matrix(p->s, beside(cols, a_size(p->s, 40)), rarely(p->s, 40) ? cols + 1 : cols,
                     rarely(p->s, 30) ? 3 : 2, (int)choose(p->s, STYLES), 0);
}

static void read_all(play *p, const rpo_forest *f) {
  crafted X = an_x(p, rpo_forest_inputs(f));
  reading r = {f, &p->X.view, p->weight, &p->control, &p->may, {0, 0, {0}}};
  if (rpo_forest_rows(f) == p->X.view.rows) {
    read_forest(&r, p->labels.block[0] == NULL ? &p->Y.view : &p->labels.view);
  }
  r.X = &X.view;
  r.weight = NULL;
  read_forest(&r, NULL);
  crafted_free(&X);
}

static void play_forest(play *p) {
  const rpo_matrix *labels = NULL;
  double *fallback = NULL;
  if (rarely(p->s, 4)) { /* labels of their own */
    p->labels = make_matrix(p->s,
                            p->Y.view.rows > 5000 ? 1
                            : p->Y.view.rows < 1  ? 1
                                                  : p->Y.view.rows,
                            2 * a_size(p->s, 8), 2, (int)choose(p->s, STYLES), 0);
    labels = &p->labels.view;
    fallback =
        exactly(p->labels.view.cols < 0 || p->labels.view.cols > 5000 ? 1 : p->labels.view.cols, 8);
    for (int64_t j = 0; j < p->labels.view.cols && p->labels.view.cols <= 5000; j++)
      fallback[j] = 0.5;
  }
  double work = 0.0;
  p->control.work = choose(p->s, 2) ? &work : NULL;
  const rpo_projection *const projection = choose(p->s, 2) ? &p->projection : NULL;
  rpo_status const status = rpo_forest_fit(p->options, p->features, &p->Y.view, labels, fallback,
                                           p->weight, projection, &p->control, &p->forest, &p->err);
  if (went(p, status)) read_all(p, p->forest);
  p->control.work = NULL;
  free(fallback);
}

/* ---- Files ---- */

static void play_inspect(play *p, const char *path) {
  rpo_model_info info;
  rpo_section_info section[4];
  if (!went(p, rpo_model_inspect(path, &info, section, choose(p->s, 5), &p->err))) return;
  MUST(info.damaged == 0 && info.sections > 0 && info.bytes > 0);
}

static void play_loaded(play *p, const rpo_forest *forest, int mapped) {
  rpo_forest *again = NULL;
  if (went(p, mapped ? rpo_forest_open_mapped(FILE_NAME, &again, &p->err)
                     : rpo_forest_load(FILE_NAME, &again, &p->err))) {
    MUST(rpo_forest_trees(again) == rpo_forest_trees(forest));
    MUST(rpo_forest_bytes(again) >= rpo_forest_bytes(forest));
    MUST(!rpo_forest_is_mapped(again) || mapped);
    if (mapped) read_all(p, again);
  }
  rpo_forest_free(again);
}

/* A model through a file and back, read and mapped. */
static void play_file(play *p, const rpo_forest *forest) {
  rpo_forest *bare = NULL;
  if (forest == NULL) return;
  rpo_status const status = rpo_forest_save(forest, FILE_NAME, "a note", choose(p->s, 7), &p->err);
  if (went(p, status)) {
    play_loaded(p, forest, 0);
    play_loaded(p, forest, 1);
    play_inspect(p, FILE_NAME);
    (void)remove(FILE_NAME);
  }
  if (went(p, rpo_forest_drop_labels(forest, &p->control, &bare, &p->err))) {
    MUST(rpo_forest_is_boosted(bare) || !rpo_forest_has_rows(bare));
  }
  rpo_forest_free(bare);
}

static void same_arrays(const rpo_named_array *array, int64_t count, const rpo_arrays *loaded) {
  rpo_named_array got;
  int64_t note = -1;
  MUST(rpo_arrays_count(loaded) == count);
  MUST((rpo_arrays_note(loaded, &note) != NULL) == (note > 0));
  for (int64_t i = 0; i < count; i++) {
    MUST(rpo_arrays_get(loaded, i, &got, NULL) == RPO_OK);
    MUST(strcmp(got.name, array[i].name) == 0 && got.type == array[i].type);
    MUST(memcmp(got.shape, array[i].shape, sizeof got.shape) == 0);
  }
}

static void play_arrays(play *p) {
  static const char *const names[6] = {"a", "b", "longer", "", "b", NULL};
  static const uint8_t numbers[8 * 6 * 6];
  source *const s = p->s;
  rpo_named_array array[4];
  int64_t const count = choose(s, 5);
  rpo_arrays *loaded = NULL;
  for (int64_t i = 0; i < count; i++) {
    int32_t const dims = (int32_t)choose(s, 3);
    rpo_named_array const a = {
        names[rarely(s, 10) ? choose(s, 6) : i % 3], /* four of three: refused */
        1 + (int32_t)choose(s, rarely(s, 20) ? 12 : 8),
        rarely(s, 40) ? 7 : dims,
        {dims > 0 ? choose(s, 6) : 1, dims > 1 ? choose(s, 6) : 1, 1, rarely(s, 40) ? -2 : 1},
        rarely(s, 40) ? NULL : numbers};
    array[i] = a;
  }
  if (!went(p, rpo_arrays_save(array, count, FILE_NAME, "a note", choose(s, 7), &p->err))) return;
  if (went(p, rpo_arrays_load(FILE_NAME, (int32_t)choose(s, 2), &loaded, &p->err))) {
    same_arrays(array, count, loaded);
  }
  rpo_arrays_free(loaded);
  play_inspect(p, FILE_NAME);
  loaded = NULL;
  uint8_t block[4096];
  FILE *const file = fopen(FILE_NAME, "rb");
  MUST(file != NULL);
  int64_t const bytes = (int64_t)fread(block, 1, sizeof block, file);
  (void)fclose(file);
  (void)remove(FILE_NAME);
  if (rarely(s, 4)) block[choose(s, 256) * 8 % bytes] ^= 5; /* damaged: refused, or a gap */
  if (went(p, rpo_arrays_parse(block, bytes, &loaded, &p->err))) same_arrays(array, count, loaded);
  rpo_arrays_free(loaded);
}

/* ---- Boosting ---- */

typedef struct own {
  source *s;
  int64_t d;
} own;

static int32_t own_loss(void *user, int64_t count, const int32_t *row, const float *f, float *g,
                        float *h) {
  const own *const o = user;
  for (int64_t i = 0; i < count * o->d; i++) {
    g[i] = (float)(row[i / o->d] % 3) - f[i];
    if (h != NULL) h[i] = 1.0f;
  }
  return rarely(o->s, 40);
}

static void play_scores(play *p, rpo_boost *boost, int64_t n, int64_t d) {
  int64_t const rounds = rpo_boost_rounds(boost), count = 1 + choose(p->s, 9);
  double *const train = exactly(rounds + 1, 8), *const watched = exactly(rounds + 1, 8);
  float *const out = exactly(count * d, 4);
  int32_t *const row = exactly(count, 4);
  for (int64_t i = 0; i < count; i++) row[i] = (int32_t)(rarely(p->s, 30) ? n : choose(p->s, n));
  (void)went(p, rpo_boost_losses(boost, train, watched, &p->err));
  (void)went(p, rpo_boost_scores(boost, row, count, &p->control, out, &p->err));
  free(train);
  free(watched);
  free(out);
  free(row);
}

/* A run of a learner of the caller's, one that predicts the row's number. */
static void play_learner(play *p, const rpo_boost_data *data, const rpo_projection *projection) {
  int64_t const n = rpo_features_rows(p->features), d = data->Y->cols, most = 300;
  int64_t const columns = choose(p->s, 3) == 2 ? d : 1;
  int32_t *const row = exactly(n, 4);
  double *const z = exactly(n * most, 8);
  float *const v = exactly(n * columns, 4), *const step = exactly(d, 4);
  rpo_boost *boost = NULL;
  int64_t count = 0;
  for (int64_t i = 0; i < n * columns; i++) v[i] = (float)(i % 7) - 3.0f;
  int const made = p->projection.components < most && d < most &&
                   went(p, rpo_boost_new(p->options, p->features, data, projection, &p->control,
                                         &boost, &p->err));
  for (int64_t round = made ? 1 + choose(p->s, 3) : 0; round > 0; round--) {
    if (!went(p, rpo_boost_project(boost, &p->control, row, &count, z, &p->err))) break;
    MUST(count >= 0 && count <= n);
    (void)went(p, rpo_boost_add(boost, v, columns, &p->control, step, &p->err));
  }
  if (made) play_scores(p, boost, n, d);
  rpo_boost_free(boost);
  free(row);
  free(z);
  free(v);
  free(step);
}

static void play_models(play *p, rpo_boost *boost, const rpo_boost_data *data,
                        const rpo_projection *projection) {
  const rpo_boost *const twice[2] = {boost, boost};
  int64_t const rounds[2] = {rpo_boost_rounds(boost), choose(p->s, 4)};
  rpo_forest *joined = NULL;
  rpo_boost *next = NULL;
  if (went(p, rpo_boost_join(twice, 2, rounds, &joined, &p->err))) read_all(p, joined);
  rpo_forest_free(joined);
  if (!went(p, rpo_boost_forest(boost, rounds[0] + rarely(p->s, 30), &p->forest, &p->err))) return;
  read_all(p, p->forest);
  if (went(p,
           rpo_boost_new(p->options, p->features, data, projection, &p->control, &next, &p->err)) &&
      went(p, rpo_boost_resume(next, p->forest, &p->control, &p->err))) {
    (void)went(p, rpo_boost_run(next, 1, &p->control, &p->err));
    MUST(rpo_boost_resume(next, p->forest, &p->control, &p->err) == RPO_EINVAL ||
         rpo_boost_rounds(next) == 0);
  }
  rpo_boost_free(next);
}

static void play_boosting(play *p) {
  source *const s = p->s;
  int64_t const n = rpo_features_rows(p->features), d = p->Y.view.cols;
  if (p->features == NULL || d < 1 || d > 5000) return;
  own mine = {s, d};
  p->may.hook = 1;
  crafted entry = make_matrix(s, n, d, 1, choose(s, 4) == 0 ? (int)choose(s, STYLES) : BINARY, 0);
  uint8_t *const watched = exactly(n, 1);
  double *const start_at = exactly(d, 8);
  dice random = choose_dice(s);
  for (int64_t i = 0; i < n; i++) watched[i] = (uint8_t)(i % 4 == 3);
  for (int64_t j = 0; j < d; j++) start_at[j] = dice_real(&random);
  if (rarely(s, 20)) start_at[0] = INFINITY;
  int64_t const loss = choose(s, 7);
  (void)rpo_options_set(p->options, RPO_OPT_LOSS, (double)loss, NULL);
  if (choose(s, 2)) (void)rpo_options_set(p->options, RPO_OPT_RELABEL, 0.0, NULL);
  if (choose(s, 2)) (void)rpo_options_set(p->options, RPO_OPT_MAX_DEPTH, 3.0, NULL);
  rpo_boost_data const data = {&p->Y.view,
                               p->weight,
                               choose(s, 4) == 3 ? &entry.view : NULL,
                               choose(s, 3) == 2 ? watched : NULL,
                               choose(s, 4) == 3 ? start_at : NULL,
                               (loss == RPO_LOSS_CUSTOM) != rarely(s, 40) ? own_loss : NULL,
                               &mine};
  const rpo_projection *const projection = choose(s, 2) ? &p->projection : NULL;
  rpo_boost *boost = NULL;
  if (went(p, rpo_boost_new(p->options, p->features, &data, projection, &p->control, &boost,
                            &p->err))) {
    for (int64_t round = choose(s, 4); round > 0; round--) {
      (void)went(p, rpo_boost_run(boost, choose(s, 3), &p->control, &p->err));
    }
    MUST(rpo_boost_start(boost) != NULL);
    play_scores(p, boost, n, d);
    play_models(p, boost, &data, projection);
  }
  play_learner(p, &data, projection);
  int32_t *const row = exactly(n, 4);
  int64_t const count =
      rpo_boost_sample(9, choose(s, 5), (double)choose(s, 256) / 255.0, p->weight, n, row);
  MUST(count >= 0 && count <= n);
  free(row);
  rpo_boost_free(boost);
  crafted_free(&entry);
  free(watched);
  free(start_at);
}

/* ---- Metrics ---- */

static void play_metrics(play *p) {
  source *const s = p->s;
  int64_t const n = p->Y.view.rows, d = p->Y.view.cols, k = choose(s, 5);
  if (n < 1 || d < 1 || n > 5000 || d > 5000) return;
  crafted scores = make_matrix(s, n, d, rarely(s, 30) ? 3 : 1, (int)choose(s, STYLES), 0);
  double *const out = exactly(n, 8), *const best = exactly(n * k, 8),
                cut[4] = {-0.5, 0.0, 0.5, 1e9};
  int64_t *const index = exactly(n * k, 8), *const ties = exactly(n, 8), counts[4];
  (void)went(p, rpo_scores_precision(&scores.view, &p->Y.view, &p->control, out, &p->err));
  (void)went(p, rpo_scores_reaching(&scores.view, cut, choose(s, 5), &p->control, counts, &p->err));
  if (went(p, rpo_scores_topk(&scores.view, k, &p->control, index, best, ties, &p->err))) {
    for (int64_t i = 0; i < n * k && scores.view.rows == n; i++)
      MUST(index[i] >= 0 && index[i] < d);
  }
  free(out);
  free(best);
  free(index);
  free(ties);
  crafted_free(&scores);
}

/* ---- Products ---- */

static void play_products(play *p) {
  source *const s = p->s;
  int64_t const n = a_size(s, 30), cols = beside(n, a_size(s, 30));
  int64_t const width = beside(n > cols ? n : cols, a_size(s, 30));
  int const style = choose(s, 3) == 0 ? BINARY : (int)choose(s, STYLES);
  crafted A = make_matrix(s, n, cols, rarely(s, 20) ? 3 : 2, style, 0);
  crafted B = make_matrix(s, choose(s, 2) ? n : cols, width, rarely(s, 30) ? 2 : 1,
                          (int)choose(s, STYLES), 0);
  double *const w = make_weights(s, n);
  int64_t const most = n > cols ? n : cols;
  void *const out = exactly(most * width, 8);
  (void)went(p, rpo_sparse_product(&A.view, w, &B.view, &p->control, out, &p->err));
  (void)went(p, rpo_sparse_transposed_product(&A.view, w, &B.view, &p->control, out, &p->err));
  (void)went(p, rpo_sparse_gram_product(&A.view, w, &B.view, &p->control, out, &p->err));
  free(out);
  free(w);
  crafted_free(&A);
  crafted_free(&B);
}

/* What a process asks first, and answers that are always there. */
static void play_facts(void) {
  MUST(rpo_version()[0] != 0 && rpo_instruction_set()[0] != 0);
  MUST(rpo_has_openmp() == 0 || rpo_has_openmp() == 1);
}

/* A forest, a boosted model or neither; then everything else, with the bytes that are left. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  source s = {data, data + size};
  play p;
  rpo_poll_seconds = 0.0;
  int64_t const which = choose(&s, 16);
  if (which == 15) {
    memset(&p, 0, sizeof p);
    p.s = &s;
    rpo_mem_fail_after = -1;
    play_products(&p);
    play_products(&p);
  } else {
    start(&p, &s);
    play_features(&p);
    if (which < 5 || which == 13) {
      play_forest(&p);
    } else if (which != 12) {
      play_boosting(&p);
    }
    play_projection(&p);
    play_file(&p, p.forest);
    play_metrics(&p);
    play_products(&p);
    play_arrays(&p);
    play_facts();
    finish(&p);
  }
  MUST(rpo_mem_live == 0);
  return 0;
}
