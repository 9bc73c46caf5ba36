/* Arrays of numbers of one type among a few, as sections of models are: reading, ranges, the narrowest
 * type, conversion. */
#ifndef RPO_NUMBER_H
#define RPO_NUMBER_H
#include <stdint.h>
#include <string.h>

#include "rpo.h"

/* What a section may be, so that readers in hot loops know a few types only; or one rpo_type. None
 * has F16, which few readers know. */
enum { RPO_ANY = 0, RPO_INDEX = 101, RPO_CHILD = 102, RPO_REAL = 103, RPO_COUNT = 104 };

typedef struct rpo_array {
  const void *data; /* NULL: the section is absent */
  int64_t count;
  int32_t type;
} rpo_array;

int64_t rpo_type_size(int32_t type); /* 0: no type */
int rpo_type_allowed(int32_t family, int32_t type);
/* Whether the type depends on the numbers. */
int rpo_family_varies(int32_t family);

/* Number i of any array, as double or integer. */
double rpo_array_number(const rpo_array *a, int64_t i);
int64_t rpo_array_whole(const rpo_array *a, int64_t i);

/* Numbers first .. first + count of an array. */
rpo_array rpo_array_part(const rpo_array *a, int64_t first, int64_t count);
/* Writes all numbers of the array as `type`, which must hold them. */
void rpo_array_convert(const rpo_array *a, int32_t type, void *to);

/* What numbers need of a type; begins as {0, 0, 1, 1}. */
typedef struct rpo_range {
  double low, high; /* with 0 among them; known while whole */
  int whole;        /* all are whole numbers that fit 53 bits, and none is -0 */
  int single;       /* float holds all */
} rpo_range;

void rpo_range_add(rpo_range *range, const rpo_array *a);
void rpo_range_join(rpo_range *range, const rpo_range *other);
/* The narrowest type of a family. */
int32_t rpo_range_type(const rpo_range *range, int32_t family);

/* 16-bit floating point numbers: to nearest, ties to even, beyond the largest (65504) the largest. No
 * branches: rows are converted at once. */
static inline uint16_t rpo_half_of(float x) {
  uint32_t bits, low;
  memcpy(&bits, &x, sizeof bits);
  uint32_t const sign = bits >> 16 & 0x8000u;
  int32_t size = (int32_t)(bits & 0x7FFFFFFFu);
  size = size < 0x477FE000 ? size : 0x477FE000;
  /* Below 2^-14 multiples of 2^-24, which is the last bit of 0.5. */
  float shifted;
  memcpy(&shifted, &size, sizeof shifted);
  shifted += 0.5f;
  memcpy(&low, &shifted, sizeof low);
  low -= 0x3F000000u;
  uint32_t const rounded = (uint32_t)size + 0xFFFu + ((uint32_t)size >> 13 & 1u);
  uint32_t const high = (rounded - 0x38000000u) >> 13;
  return (uint16_t)(sign | (size < 0x38800000 ? low : high));
}

static inline float rpo_half_value(uint16_t h) {
  uint32_t bits = (uint32_t)(h & 0x7FFFu) << 13;
  float x;
  memcpy(&x, &bits, sizeof x);
  x *= 0x1p112f; /* from the exponents of 16 bits to those of 32 */
  memcpy(&bits, &x, sizeof bits);
  bits |= (uint32_t)(h & 0x8000u) << 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif
