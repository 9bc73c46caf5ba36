#define _DEFAULT_SOURCE /* madvise */
#include "mem.h"

#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef RPO_TEST_HOOKS
#include "par.h"
#endif

#define ALIGNMENT 64

#ifdef RPO_TEST_HOOKS
int64_t rpo_mem_fail_after = -1;
int64_t rpo_mem_live = 0;
int64_t rpo_mem_asked = 0;

static int test_allows(int64_t bytes) {
  (void)rpo_add(&rpo_mem_asked, bytes);
  int64_t const left = rpo_add(&rpo_mem_fail_after, 0);
  if (left == 0) return 0;
  if (left > 0) (void)rpo_add(&rpo_mem_fail_after, -1);
  (void)rpo_add(&rpo_mem_live, 1);
  return 1;
}
#endif

/* The block handed out starts at the next multiple of ALIGNMENT behind a copy of malloc's pointer:
 * C99 has no aligned allocation. */
static void *allocate(int64_t count, int64_t size, int zero) {
  if (count < 0 || size <= 0 || count > (INT64_MAX - 2 * ALIGNMENT) / size) return NULL;
  uint64_t const total = (uint64_t)(count * size) + ALIGNMENT + sizeof(void *);
  if (total > SIZE_MAX / 2) return NULL;
#ifdef RPO_TEST_HOOKS
  if (!test_allows(count * size)) return NULL;
#endif
  char *const raw = zero ? calloc(1, (size_t)total) : malloc((size_t)total);
  if (raw == NULL) {
#ifdef RPO_TEST_HOOKS
    (void)rpo_add(&rpo_mem_live, -1);
#endif
    return NULL;
  }
  uintptr_t const first = (uintptr_t)(raw + sizeof(void *));
  uintptr_t const skip = (ALIGNMENT - first % ALIGNMENT) % ALIGNMENT;
  char *const block = raw + sizeof(void *) + skip;
  memcpy(block - sizeof(void *), &raw, sizeof(void *));
  return block;
}

void *rpo_new(int64_t count, int64_t size) { return allocate(count, size, 0); }

void *rpo_new_zero(int64_t count, int64_t size) { return allocate(count, size, 1); }

void *rpo_grow(void *block, int64_t used, int64_t count, int64_t size) {
  void *const larger = rpo_new(count, size);
  if (larger == NULL) return NULL;
  if (block != NULL) memcpy(larger, block, (size_t)(used * size));
  rpo_delete(block);
  return larger;
}

void rpo_delete(void *block) {
  if (block == NULL) return;
#ifdef RPO_TEST_HOOKS
  (void)rpo_add(&rpo_mem_live, -1);
#endif
  void *raw;
  memcpy(&raw, (char *)block - sizeof(void *), sizeof(void *));
  free(raw);
}

void rpo_expect_jumps(void *block, int64_t count, int64_t size) {
#ifdef MADV_HUGEPAGE
  uint64_t const huge = (uint64_t)1 << 21, bytes = (uint64_t)(count * size);
  uint64_t const skip = (huge - (uintptr_t)block % huge) % huge;
  if (block == NULL || bytes < 2 * huge) return;
  (void)madvise((char *)block + skip, (size_t)((bytes - skip) / huge * huge), MADV_HUGEPAGE);
#else
  (void)block;
  (void)count;
  (void)size;
#endif
}
