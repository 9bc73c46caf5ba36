#include "checksum.h"

#include <string.h>

#include "format.h"
#include "rng.h"

#ifdef RPO_TEST_HOOKS
int rpo_checksum_ignored = 0;
int rpo_checksum_agrees(uint64_t sum, uint64_t told) { return rpo_checksum_ignored || sum == told; }
#else
int rpo_checksum_agrees(uint64_t sum, uint64_t told) { return sum == told; }
#endif

static uint64_t stir(uint64_t state, uint64_t word) {
  state ^= word * 0x9E3779B97F4A7C15u;
  return (state << 27 | state >> 37) * 0xD1B54A32D192ED03u;
}

/* Eight bytes of a file as a little-endian number. */
static inline uint64_t word_at(const unsigned char *at, int64_t size) {
  unsigned char turned[8];
  uint64_t word;
  memcpy(turned, at, 8);
  if (rpo_is_big_endian()) {
    for (int64_t i = 0; i < 8; i++) turned[7 - i] = at[i / size * size + size - 1 - i % size];
  }
  memcpy(&word, turned, 8);
  return word;
}

uint64_t rpo_checksum(const void *data, int64_t bytes, int64_t size) {
  const unsigned char *const at = data;
  uint64_t lane[4] = {1, 2, 3, 4};
  int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    for (int k = 0; k < 4; k++) lane[k] = stir(lane[k], word_at(at + i + 8 * k, size));
  }
  for (; i < bytes; i++) lane[0] = stir(lane[0], at[i]);
  uint64_t sum = (uint64_t)bytes;
  for (int k = 0; k < 4; k++) sum = rpo_mix(sum ^ lane[k]);
  return sum;
}
