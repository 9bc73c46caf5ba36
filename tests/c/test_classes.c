/* One class a row and features of few values, whose cuts are summed side by side (loop_classes.h):
 * the same trees as the general loops find, which take over where a row weighs more than 15, and from the
 * start where weights are not whole. */
#define _POSIX_C_SOURCE 200112L
#include <stdlib.h>

#include "forest.h"
#include "problem.h"

typedef struct shape {
  int64_t rows, cols, classes, k, min_leaf;
  int64_t levels;   /* values of a feature */
  int64_t odd;      /* every so many a feature of many values; 0: none */
  int64_t heaviest; /* weights 1 .. this */
  double noise;     /* chance of a value that says nothing of the class */
} shape;

/* Features are shifted classes, coarse and noisy, one in eight of them constant; one in four has a value
 * of more than half of the rows, whose cuts are tried from both ends. */
static problem make(dice *d, const shape *s) {
  table x = table_new(s->rows, s->cols), y = table_new(s->rows, s->classes);
  for (int64_t i = 0; i < s->rows; i++) {
    int64_t const class = dice_below(d, s->classes);
    y.v[i * s->classes + class] = 1.0;
    for (int64_t j = 0; j < s->cols; j++) {
      int const many = s->odd > 0 && j % s->odd == 1;
      int64_t const levels = many ? 100 : s->levels;
      int64_t const told = (class * (j + 3) + j) % levels;
      int64_t const value = dice_real(d) < s->noise ? dice_below(d, levels) : told;
      x.v[i * s->cols + j] = j % 8 == 5 ? 1.0 : (double)(value * value);
      if (j % 4 == 2 && dice_real(d) < 0.6) x.v[i * s->cols + j] = 4.0; /* a value apart: rest */
    }
  }
  problem p = problem_new(x, y);
  p.sparse_y = 1;
  p.weight = mini_room(s->rows, 8);
  for (int64_t i = 0; i < s->rows; i++) p.weight[i] = 1.0 + (double)dice_below(d, s->heaviest);
  problem_set(&p, RPO_OPT_MAX_FEATURES, (double)s->k);
  problem_set(&p, RPO_OPT_MIN_SAMPLES_LEAF, (double)s->min_leaf);
  return p;
}

static void compare(const rpo_forest *light, const rpo_forest *heavy, int64_t tree, double by) {
  flat_tree a = tree_read(light, tree), b = tree_read(heavy, tree);
  CHECK_EQUAL(a.nodes, b.nodes);
  for (int64_t i = 0; i < a.nodes && i < b.nodes; i++) {
    CHECK_EQUAL(a.a.left[i], b.a.left[i]);
    CHECK_EQUAL(a.a.feature[i], b.a.feature[i]);
    CHECK(a.a.threshold[i] == b.a.threshold[i] || a.a.left[i] < 0);
    CHECK_EQUAL(a.a.n_samples[i], b.a.n_samples[i]);
    CHECK(a.a.weight[i] * by == b.a.weight[i]);
  }
  tree_free(&a);
  tree_free(&b);
}

static void scale(problem *p, double by) {
  for (int64_t i = 0; i < p->x.rows; i++) p->weight[i] *= by;
}

static void trees_are_those_of_the_general_loops(void) {
  static const shape shapes[] = {
      {1500, 20, 40, 4, 1, 9, 0, 3, 0.4},   /* few rows a class */
      {5000, 20, 9, 5, 1, 16, 0, 1, 0.7},   /* classes of more than 255 rows */
      {3000, 16, 12, 4, 1, 16, 0, 15, 0.8}, /* heavy rows, squares of more than 16 bits */
      {1200, 128, 60, 11, 1, 7, 0, 2, 0.5}, /* as many codes a row as are looked up at once */
      {900, 150, 30, 12, 1, 7, 0, 2, 0.5},  /* and more */
      {800, 40, 25, 40, 1, 5, 0, 2, 0.5},   /* features in several batches */
      {900, 24, 12, 6, 3, 8, 0, 4, 0.5},    /* leaves of a least size: rows are counted, too */
      {900, 24, 12, 6, 1, 8, 3, 4, 0.5},    /* features of many values among them */
      {700, 24, 300, 5, 1, 16, 5, 15, 0.2}, /* hardly two rows a class */
      {400, 3, 9, 1, 1, 2, 0, 1, 0.3},
      {300, 1, 5, 1, 1, 9, 0, 2, 0.3},
      {14, 5, 3, 3, 1, 4, 0, 2, 0.5},     /* fewer rows than are divided at once */
      {400, 127, 20, 9, 1, 7, 0, 2, 0.5}, /* half a byte left over */
      {400, 129, 20, 9, 1, 7, 0, 2, 0.5},
      {5000, 20, 9, 5, 4, 16, 0, 1, 0.7}, /* large classes whose rows are counted, too */
  };
  static const int sizes = (int)(sizeof shapes / sizeof *shapes);
  dice d = {77};
  for (int k = 0; k < sizes; k++) {
    for (int seed = 0; seed < 3; seed++) {
      problem p = make(&d, &shapes[k]);
      problem_set(&p, RPO_OPT_SEED, seed);
      if (seed == 1) problem_set(&p, RPO_OPT_MIN_WEIGHT_FRACTION_LEAF, 0.01);
      if (seed == 2) problem_set(&p, RPO_OPT_MAX_LEAF_NODES, 30);
      mini_context("shape %d, seed %d", k, seed);
      rpo_forest *const light = problem_forest(&p, 1);
      scale(&p, 16.0);
      rpo_forest *const heavy = problem_forest(&p, 1);
      scale(&p, 1.0 / 512.0); /* parts of 1: rows are not even laid class after class */
      rpo_forest *const plain = problem_forest(&p, 1);
      CHECK(rpo_forest_tree_nodes(light, 0) > 3);
      compare(light, heavy, 0, 16.0);
      compare(light, plain, 0, 1.0 / 32.0);
      rpo_forest_free(light);
      rpo_forest_free(heavy);
      rpo_forest_free(plain);
      problem_free(&p);
    }
  }
}

/* Whether the heaviest row of a tree's sample is among the light ones. */
static int is_light(const problem *p, int64_t tree) {
  double sums[400] = {0.0}, drawn[400], sum = 0.0;
  int64_t const n = p->x.rows;
  int light = 1;
  for (int64_t i = 0; i < n; i++) sums[i] = sum += p->weight[i];
  rpo_bootstrap(0, (uint64_t)tree, n, sums, n, drawn);
  for (int64_t i = 0; i < n; i++) light &= drawn[i] <= 15.0;
  return light;
}

/* Of trees that one thread grows in turn some have a row that weighs too much, by the sample: nothing of
 * one kind of growth may be left to the other. Several threads come by another turn. */
static void kinds_of_growth_take_turns(void) {
  static const shape some = {400, 24, 12, 6, 1, 8, 0, 2, 0.5};
  dice d = {5};
  int64_t light = 0;
  problem p = make(&d, &some);
  p.weight[7] = 24.0;
  problem_set(&p, RPO_OPT_SEED, 0);
  problem_set(&p, RPO_OPT_N_TREES, 12);
  problem_set(&p, RPO_OPT_BOOTSTRAP, 1);
  for (int64_t t = 0; t < 12; t++) light += is_light(&p, t);
  CHECK(light > 2 && light < 10);
  rpo_forest *const one = problem_forest(&p, 1), *const several = problem_forest(&p, 5);
  for (int64_t t = 0; t < 12; t++) compare(one, several, t, 1.0);
  rpo_forest_free(one);
  rpo_forest_free(several);
  problem_free(&p);
}

int main(void) {
  static const char *const sets[] = {"avx512", "avx2", "baseline"};
  for (int i = 0; i < 3; i++) {
    CHECK_EQUAL(setenv("RPO_ISA", sets[i], 1), 0); /* those that are not here: the baseline */
    RUN(trees_are_those_of_the_general_loops);
    RUN(kinds_of_growth_take_turns);
  }
  return mini_done("classes");
}
