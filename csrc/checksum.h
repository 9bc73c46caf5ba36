/* 64-bit checksum of a block: four streams, multiplied and rotated, so that it runs at memory speed. */
#ifndef RPO_CHECKSUM_H
#define RPO_CHECKSUM_H
#include <stdint.h>

/* Of an array of numbers of `size` bytes each as it lies in a file, little-endian, whatever the order
 * of bytes in memory is; docs/format.md has the recipe. `bytes` is a multiple of 32, or size is 1. */
uint64_t rpo_checksum(const void *data, int64_t bytes, int64_t size);
/* Whether a sum is the one that a file tells. */
int rpo_checksum_agrees(uint64_t sum, uint64_t told);

#ifdef RPO_TEST_HOOKS
extern int rpo_checksum_ignored; /* 1: every sum agrees, so that fuzzing gets past it */
#endif
#endif
