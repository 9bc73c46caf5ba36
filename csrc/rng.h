/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011) and their keys.
 *
 * A stream is named by (seed, purpose, a, b): no two uses share one, and a number depends on its name
 * and position only, never on who drew it or when. Everything is inline: draws sit in hot loops. */
#ifndef RPO_RNG_H
#define RPO_RNG_H
#include <stdint.h>

typedef enum rpo_purpose {
  RPO_DRAW_BOOTSTRAP = 1,
  RPO_DRAW_NODE = 2,
  RPO_DRAW_PROJECTION = 3,
  RPO_DRAW_TEST = 4,
  RPO_DRAW_ROUND = 5
} rpo_purpose;

typedef struct rpo_rng {
  uint32_t key[2];
  uint32_t counter[4]; /* [0], [1]: position; [2], [3]: stream */
  uint32_t block[4];
  int used;
} rpo_rng;

static inline void rpo_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t const p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t const p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t const n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    uint32_t const n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* A bijection of 64-bit words that scatters (the finaliser of splitmix64). */
static inline uint64_t rpo_mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Name of the node on side `side` (0 left, 1 right) below the node `path`. */
static inline uint64_t rpo_path(uint64_t path, int side) {
  return rpo_mix(path ^ (side ? 0xA5A5F00DCAFE1234u : 0x5A5A0FF135011235u));
}

/* One uniform number on [0, 1) that depends on the three names only: what a stream would cost too much
 * for. `path` is scattered already. */
static inline double rpo_hash_uniform(uint64_t seed, uint64_t path, uint64_t name) {
  return (double)(rpo_mix(rpo_mix(path ^ seed * 0xD1342543DE82EF95u) + name) >> 11) * 0x1p-53;
}

static inline rpo_rng rpo_rng_new(uint64_t seed, rpo_purpose purpose, uint64_t a, uint64_t b) {
  uint64_t const stream = rpo_mix(rpo_mix(rpo_mix((uint64_t)purpose) + a) + b);
  rpo_rng rng = {{(uint32_t)seed, (uint32_t)(seed >> 32)},
                 {0, 0, (uint32_t)stream, (uint32_t)(stream >> 32)},
                 {0, 0, 0, 0},
                 4};
  return rng;
}

/* A uniform 32-bit word. */
static inline uint32_t rpo_next(rpo_rng *rng) {
  if (rng->used == 4) {
    rpo_philox(rng->counter, rng->key, rng->block);
    if (++rng->counter[0] == 0) rng->counter[1]++;
    rng->used = 0;
  }
  return rng->block[rng->used++];
}

/* Uniform on [0, 1), 53 bits. */
static inline double rpo_uniform(rpo_rng *rng) {
  uint64_t const high = rpo_next(rng);
  uint64_t const low = rpo_next(rng);
  return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

/* Uniform on {0, ..., bound - 1}, without bias (Lemire 2019); 1 <= bound < 2^32. */
static inline uint32_t rpo_below(rpo_rng *rng, uint32_t bound) {
  uint64_t product = (uint64_t)rpo_next(rng) * bound;
  if ((uint32_t)product < bound) {
    uint32_t const reject = (0u - bound) % bound;
    while ((uint32_t)product < reject) product = (uint64_t)rpo_next(rng) * bound;
  }
  return (uint32_t)(product >> 32);
}
#endif
