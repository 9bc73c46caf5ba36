/* Arrays of numbers of one type among a few, as sections of models are: reading, ranges, the narrowest
 * type, conversion. */
#ifndef RPO_NUMBER_H
#define RPO_NUMBER_H
#include <stdint.h>
#include <string.h>

/* As in files: never renumbered. */
typedef enum rpo_type {
  RPO_TYPE_U8 = 1,
  RPO_TYPE_U16 = 2,
  RPO_TYPE_I16 = 3,
  RPO_TYPE_I32 = 4,
  RPO_TYPE_I64 = 5,
  RPO_TYPE_F32 = 6,
  RPO_TYPE_F64 = 7,
  RPO_TYPE_F16 = 8 /* IEEE half precision */
} rpo_type;

/* What a section may be, so that readers in hot loops know a few types only; or one rpo_type. RPO_ANY
 * is any but RPO_TYPE_F16. */
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

/* 16-bit floating point numbers: to nearest, ties to even, beyond the largest (65504) the largest. */
uint16_t rpo_half_of(float x);
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
