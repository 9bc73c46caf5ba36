/* The rows that a round sees, and the others behind them. */
#include "mini.h"
#include "rpo.h"

enum { ROWS = 4000 };

static double weight_of(int kind, int64_t row) {
  if (kind == 0) return 1.0;
  if (kind == 1) return 0.0;
  return row % 3 == 0 ? 0.0 : 0.5 + (double)(row % 5);
}

/* How many rows are drawn, ascending; behind them, ascending, are the others, so that each is there
 * once; those of weight 0 are never drawn. */
static int64_t check_parts(double subsample, const double *weight, int64_t n, int32_t *row) {
  int64_t const count = rpo_boost_sample(5, 2, subsample, weight, n, row);
  int64_t drawable = 0, drawn = 0, other = 0;
  for (int64_t i = 0; i < n; i++) drawable += weight[i] > 0.0;
  CHECK(count <= drawable && (count > 0 || drawable == 0));
  if (subsample >= 1.0) CHECK_EQUAL(count, drawable);
  for (int64_t i = 0; i < n; i++) {
    int const is_drawn = drawn < count && row[drawn] == i;
    drawn += is_drawn;
    if (is_drawn) {
      CHECK(weight[i] > 0.0);
    } else {
      CHECK(count + other < n && row[count + other] == i);
      other++;
    }
  }
  CHECK_EQUAL(drawn, count);
  CHECK_EQUAL(drawn + other, n);
  return count;
}

static void parts(void) {
  static int64_t const sizes[] = {1, 2, 3, 8, 129, ROWS};
  static double const shares[] = {0.0, 1e-9, 0.1, 0.7, 1.0};
  static double weight[ROWS];
  static int32_t row[ROWS];
  for (int kind = 0; kind < 3; kind++) {
    for (int64_t i = 0; i < ROWS; i++) weight[i] = weight_of(kind, i);
    for (int s = 0; s < 6; s++) {
      for (int share = 0; share < 5; share++) {
        mini_context("weights %d, %d rows, %g", kind, (int)sizes[s], shares[share]);
        int64_t const count = check_parts(shares[share], weight, sizes[s], row);
        if (sizes[s] < ROWS || kind != 0 || share < 2) continue;
        double const by = 4.0 * sqrt(shares[share] * (1.0 - shares[share]) / ROWS) + 1e-12;
        CHECK_NEAR((double)count / ROWS, shares[share], by);
      }
    }
  }
}

/* A row is drawn by its own number: neither other rows nor their weights change that. */
static void rows_for_themselves(void) {
  static double weight[ROWS];
  static int32_t all[ROWS], some[ROWS];
  for (int64_t i = 0; i < ROWS; i++) weight[i] = 1.0;
  int64_t const many = rpo_boost_sample(5, 2, 0.3, weight, ROWS, all);
  int64_t const few = rpo_boost_sample(5, 2, 0.3, weight, ROWS / 2, some);
  CHECK(few > 0 && few < many && memcmp(all, some, (size_t)few * sizeof *all) == 0);
  CHECK(all[few] >= ROWS / 2);
  for (int64_t i = 0; i < ROWS; i += 2) weight[i] = 0.0;
  int64_t const odd = rpo_boost_sample(5, 2, 0.3, weight, ROWS, some);
  int64_t next = 0;
  for (int64_t i = 0; i < many; i++) {
    if (all[i] % 2 == 0) continue;
    CHECK(next < odd && some[next] == all[i]);
    next++;
  }
  CHECK_EQUAL(next, odd);
  CHECK_EQUAL(rpo_boost_sample(5, 2, 0.3, NULL, 4, some), 0);
  CHECK_EQUAL(rpo_boost_sample(5, 2, 0.3, weight, 4, NULL), 0);
}

/* Another round, or another seed, draws other rows. */
static void rounds_differ(void) {
  static double weight[ROWS];
  static int32_t first[ROWS], second[ROWS];
  for (int64_t i = 0; i < ROWS; i++) weight[i] = 1.0;
  for (int other = 0; other < 2; other++) {
    rpo_boost_sample(5, 2, 0.5, weight, ROWS, first);
    rpo_boost_sample(5 + (other == 0), 2 + (other == 1), 0.5, weight, ROWS, second);
    CHECK(memcmp(first, second, 1000 * sizeof *first) != 0);
  }
}

int main(void) {
  RUN(parts);
  RUN(rows_for_themselves);
  RUN(rounds_differ);
  return mini_done("sample");
}
