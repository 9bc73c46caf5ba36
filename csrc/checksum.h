/* 64-bit checksum of a block: four streams, multiplied and rotated, so that it runs at memory speed. */
#ifndef RPO_CHECKSUM_H
#define RPO_CHECKSUM_H
#include <stdint.h>
uint64_t rpo_checksum(const void *data, int64_t bytes);
/* Whether a sum is the one that a file tells. */
int rpo_checksum_agrees(uint64_t sum, uint64_t told);

#ifdef RPO_TEST_HOOKS
extern int rpo_checksum_ignored; /* 1: every sum agrees, so that fuzzing gets past it */
#endif
#endif
