/* The only caller of malloc. Sizes are checked products; blocks are 64-byte aligned so that rows of
 * numbers fall on cache lines. */
#ifndef RPO_MEM_H
#define RPO_MEM_H
#include <stdint.h>

/* count * size bytes, uninitialised (rpo_new) or zero (rpo_new_zero). NULL when the memory is not
 * there, when a size is negative or when the product overflows. A count of 0 gives a valid block. */
void *rpo_new(int64_t count, int64_t size);
void *rpo_new_zero(int64_t count, int64_t size);
/* Moves a block of used * size bytes to a larger one; the old block stays valid on failure. */
void *rpo_grow(void *block, int64_t used, int64_t count, int64_t size);
void rpo_delete(void *block); /* NULL allowed */
/* Asks for huge pages, before a large block of count * size bytes is written to: what lies far apart in it
 * is found sooner. Nothing is lost where they are refused. For blocks that are written to as a whole:
 * they are cleared so. */
void rpo_expect_jumps(void *block, int64_t count, int64_t size);

#ifdef RPO_TEST_HOOKS
extern int64_t rpo_mem_fail_after; /* allocations until one fails; negative: never */
extern int64_t rpo_mem_live;       /* blocks not yet freed */
extern int64_t rpo_mem_asked;      /* bytes of all allocations together */
#endif

/* Asks for a line ahead of its turn: into the first cache, or into the second, which waits for several
 * times as many lines at once. */
#if defined(__GNUC__)
#define RPO_PREFETCH(address) __builtin_prefetch(address)
#define RPO_PREFETCH_MANY(address) __builtin_prefetch((address), 0, 2)
#else
#define RPO_PREFETCH(address) (void)(address)
#define RPO_PREFETCH_MANY(address) (void)(address)
#endif
#endif
