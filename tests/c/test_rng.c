/* Random numbers: known answers, ranges, moments, independence of streams. */
#include "mini.h"
#include "rng.h"

/* Vectors of Random123 (kat_vectors, philox4x32-10). */
static void known_answers(void) {
  static const struct {
    uint32_t counter[4], key[2], expected[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
      {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
       {0xffffffffu, 0xffffffffu},
       {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
      {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
       {0xa4093822u, 0x299f31d0u},
       {0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    uint32_t out[4];
    rpo_philox(cases[c].counter, cases[c].key, out);
    for (int i = 0; i < 4; i++) CHECK_EQUAL(out[i], cases[c].expected[i]);
  }
}

static void words_follow_the_counter(void) {
  rpo_rng rng = rpo_rng_new(0x0123456789abcdefu, RPO_DRAW_TEST, 3, 4);
  uint32_t const key[2] = {0x89abcdefu, 0x01234567u};
  uint32_t counter[4] = {0, 0, rng.counter[2], rng.counter[3]};
  for (uint32_t block = 0; block < 5; block++) {
    uint32_t expected[4];
    counter[0] = block;
    rpo_philox(counter, key, expected);
    for (int i = 0; i < 4; i++) CHECK_EQUAL(rpo_next(&rng), expected[i]);
  }
}

/* The position is 64 bits wide: word 0 carries into word 1. */
static void counter_carries(void) {
  rpo_rng rng = rpo_rng_new(1, RPO_DRAW_TEST, 0, 0);
  rng.counter[0] = 0xffffffffu;
  (void)rpo_next(&rng);
  CHECK_EQUAL(rng.counter[0], 0);
  CHECK_EQUAL(rng.counter[1], 1);
}

static void below_is_uniform(void) {
  static const uint32_t bounds[] = {1, 2, 3, 7, 10, 64, 1000};
  for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
    enum { DRAWS = 200000 };
    int64_t *const count = mini_room(bounds[b], sizeof *count);
    rpo_rng rng = rpo_rng_new(7, RPO_DRAW_TEST, b, 0);
    double chi = 0.0;
    double const expected = (double)DRAWS / bounds[b];
    mini_context("bound %u", bounds[b]);
    for (int i = 0; i < DRAWS; i++) {
      uint32_t const v = rpo_below(&rng, bounds[b]);
      if (CHECK(v < bounds[b])) count[v]++;
    }
    for (uint32_t v = 0; v < bounds[b]; v++) {
      double const off = (double)count[v] - expected;
      chi += off * off / expected;
    }
    /* chi square has mean bound - 1 and variance 2 (bound - 1): five deviations */
    CHECK(chi < bounds[b] - 1.0 + 5.0 * sqrt(2.0 * bounds[b]));
    free(count);
  }
}

/* Bounds that do not divide 2^32 by far would be biased without rejection: 3/4 of 2^32 doubles the
 * chance of every third value. */
static void large_bounds_have_no_bias(void) {
  static const uint32_t bounds[] = {0x7fffffffu, 0x80000000u, 0xc0000000u, 0xffffffffu};
  for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
    enum { DRAWS = 300000 };
    rpo_rng rng = rpo_rng_new(11, RPO_DRAW_TEST, b, 1);
    double sum = 0.0, squares = 0.0;
    int64_t third[3] = {0, 0, 0};
    mini_context("bound %u", bounds[b]);
    for (int i = 0; i < DRAWS; i++) {
      uint32_t const v = rpo_below(&rng, bounds[b]);
      double const u = ((double)v + 0.5) / bounds[b];
      CHECK(v < bounds[b]);
      sum += u;
      squares += u * u;
      third[v % 3]++;
    }
    CHECK_NEAR(sum / DRAWS, 0.5, 5.0 * sqrt(1.0 / 12.0 / DRAWS));
    CHECK_NEAR(squares / DRAWS, 1.0 / 3.0, 5.0 * sqrt(4.0 / 45.0 / DRAWS));
    for (int i = 0; i < 3; i++) {
      CHECK_NEAR((double)third[i] / DRAWS, 1.0 / 3.0, 5.0 * sqrt(2.0 / 9.0 / DRAWS));
    }
  }
}

static void uniform_moments(void) {
  enum { DRAWS = 400000 };
  rpo_rng rng = rpo_rng_new(42, RPO_DRAW_TEST, 1, 2);
  double power[4] = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < DRAWS; i++) {
    double const u = rpo_uniform(&rng);
    double x = 1.0;
    CHECK(u >= 0.0 && u < 1.0);
    for (int k = 0; k < 4; k++) power[k] += x *= u;
  }
  for (int k = 1; k <= 4; k++) {
    double const mean = 1.0 / (k + 1), variance = 1.0 / (2 * k + 1) - mean * mean;
    mini_context("moment %d", k);
    CHECK_NEAR(power[k - 1] / DRAWS, mean, 5.0 * sqrt(variance / DRAWS));
  }
}

/* Streams that differ in one part of their name only are uncorrelated, and never start alike. */
static void streams_are_independent(void) {
  enum { DRAWS = 100000 };
  static const struct {
    uint64_t seed, a, b;
    rpo_purpose purpose;
  } names[] = {
      {0, 0, 0, RPO_DRAW_TEST}, {1, 0, 0, RPO_DRAW_TEST}, {(uint64_t)1 << 32, 0, 0, RPO_DRAW_TEST},
      {0, 1, 0, RPO_DRAW_TEST}, {0, 0, 1, RPO_DRAW_TEST}, {0, 0, 0, RPO_DRAW_NODE},
      {0, 1, 1, RPO_DRAW_TEST}};
  size_t const count = sizeof names / sizeof *names;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = i + 1; j < count; j++) {
      rpo_rng x = rpo_rng_new(names[i].seed, names[i].purpose, names[i].a, names[i].b);
      rpo_rng y = rpo_rng_new(names[j].seed, names[j].purpose, names[j].a, names[j].b);
      double product = 0.0;
      int64_t alike = 0;
      mini_context("streams %d and %d", (int)i, (int)j);
      for (int k = 0; k < DRAWS; k++) {
        uint32_t const u = rpo_next(&x), v = rpo_next(&y);
        product += ((double)u * 0x1p-32 - 0.5) * ((double)v * 0x1p-32 - 0.5);
        alike += u == v;
      }
      CHECK_NEAR(product / DRAWS, 0.0, 5.0 / 12.0 / sqrt(DRAWS));
      CHECK(alike <= 2);
    }
  }
}

static void streams_repeat(void) {
  rpo_rng x = rpo_rng_new(5, RPO_DRAW_NODE, 6, 7), y = rpo_rng_new(5, RPO_DRAW_NODE, 6, 7);
  for (int i = 0; i < 100; i++) CHECK_EQUAL(rpo_next(&x), rpo_next(&y));
}

/* Paths name the nodes of trees far deeper than 64: no two of a few thousand may collide. */
static int by_value(const void *a, const void *b) {
  uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void paths_are_distinct(void) {
  enum { NODES = 20000 };
  uint64_t *const path = mini_room(NODES, sizeof *path);
  path[0] = rpo_mix(0);
  path[1] = rpo_mix(1);
  for (int i = 2; i < NODES; i++)
    path[i] = rpo_path(path[i < NODES / 2 ? i / 2 - 1 : i - 2], i & 1);
  qsort(path, NODES, sizeof *path, by_value);
  for (int i = 1; i < NODES; i++) CHECK(path[i] != path[i - 1]);
  free(path);
}

int main(void) {
  RUN(known_answers);
  RUN(words_follow_the_counter);
  RUN(counter_carries);
  RUN(below_is_uniform);
  RUN(large_bounds_have_no_bias);
  RUN(uniform_moments);
  RUN(streams_are_independent);
  RUN(streams_repeat);
  RUN(paths_are_distinct);
  return mini_done("rng");
}
