/* 64-bit checksum of a block: four streams, multiplied and rotated, so that it runs at memory speed. */
#ifndef RPO_CHECKSUM_H
#define RPO_CHECKSUM_H
#include <stdint.h>
uint64_t rpo_checksum(const void *data, int64_t bytes);
#endif
