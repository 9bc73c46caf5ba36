/* Allocation: checked products, empty blocks, alignment, the test hook itself. */
#include "mem.h"
#include "mini.h"

static void overflow_is_refused(void) {
  static const int64_t cases[][2] = {{INT64_MAX, 1},
                                     {INT64_MAX, 8},
                                     {INT64_MAX / 8 + 1, 8},
                                     {(int64_t)1 << 32, (int64_t)1 << 32},
                                     {(int64_t)1 << 31, (int64_t)1 << 33},
                                     {-1, 8},
                                     {INT64_MIN, 1},
                                     {8, -1},
                                     {8, 0}};
  int64_t const live = rpo_mem_live;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mini_context("%lld x %lld", (long long)cases[i][0], (long long)cases[i][1]);
    CHECK(rpo_new(cases[i][0], cases[i][1]) == NULL);
    CHECK(rpo_new_zero(cases[i][0], cases[i][1]) == NULL);
    CHECK(rpo_grow(NULL, 0, cases[i][0], cases[i][1]) == NULL);
  }
  CHECK_EQUAL(rpo_mem_live, live);
}

static void empty_blocks_are_valid(void) {
  void *const a = rpo_new(0, 8), *const b = rpo_new_zero(0, 1);
  CHECK(a != NULL && b != NULL && a != b);
  rpo_delete(a);
  rpo_delete(b);
  rpo_delete(NULL);
}

static void blocks_are_aligned_and_zero(void) {
  for (int64_t size = 1; size < 3000; size = size * 3 / 2 + 1) {
    unsigned char *const a = rpo_new(size, 1), *const b = rpo_new_zero(size, 1);
    CHECK((uintptr_t)a % 64 == 0);
    CHECK((uintptr_t)b % 64 == 0);
    memset(a, 1, (size_t)size);
    for (int64_t i = 0; i < size; i++) CHECK_EQUAL(b[i], 0);
    rpo_delete(a);
    rpo_delete(b);
  }
}

static void growing_keeps_the_content(void) {
  int32_t *a = rpo_new(5, 4);
  for (int i = 0; i < 5; i++) a[i] = i;
  a = rpo_grow(a, 5, 1000, 4);
  CHECK(a != NULL && (uintptr_t)a % 64 == 0);
  for (int i = 0; i < 5; i++) CHECK_EQUAL(a[i], i);
  rpo_mem_fail_after = 0;
  CHECK(rpo_grow(a, 1000, 2000, 4) == NULL);
  rpo_mem_fail_after = -1;
  for (int i = 0; i < 5; i++) CHECK_EQUAL(a[i], i); /* the old block stays */
  rpo_delete(a);
}

static void the_hook_counts(void) {
  int64_t const live = rpo_mem_live;
  rpo_mem_fail_after = 2;
  void *const a = rpo_new(1, 1), *const b = rpo_new(1, 1), *const c = rpo_new(1, 1);
  rpo_mem_fail_after = -1;
  CHECK(a != NULL && b != NULL && c == NULL);
  CHECK_EQUAL(rpo_mem_live, live + 2);
  rpo_delete(a);
  rpo_delete(b);
  CHECK_EQUAL(rpo_mem_live, live);
}

int main(void) {
  RUN(overflow_is_refused);
  RUN(empty_blocks_are_valid);
  RUN(blocks_are_aligned_and_zero);
  RUN(growing_keeps_the_content);
  RUN(the_hook_counts);
  return mini_done("mem");
}
