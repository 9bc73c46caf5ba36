#include "number.h"

#include <math.h>
#include <string.h>

int64_t rpo_type_size(int32_t type) {
  switch (type) {
    case RPO_TYPE_U8: return 1;
    case RPO_TYPE_U16:
    case RPO_TYPE_I16:
    case RPO_TYPE_F16: return 2;
    case RPO_TYPE_I32:
    case RPO_TYPE_F32: return 4;
    case RPO_TYPE_I64:
    case RPO_TYPE_F64: return 8;
    default: return 0;
  }
}

int rpo_type_allowed(int32_t family, int32_t type) {
  switch (family) {
    case RPO_ANY: return type != RPO_TYPE_F16;
    case RPO_INDEX: return type == RPO_TYPE_U16 || type == RPO_TYPE_I32;
    case RPO_CHILD: return type == RPO_TYPE_I16 || type == RPO_TYPE_I32;
    case RPO_REAL: return type == RPO_TYPE_F32 || type == RPO_TYPE_F64;
    case RPO_COUNT: return type == RPO_TYPE_U8 || type == RPO_TYPE_U16 || type == RPO_TYPE_I32;
    default: return type == family;
  }
}

int rpo_family_varies(int32_t family) {
  return family == RPO_ANY || family == RPO_INDEX || family == RPO_REAL || family == RPO_COUNT;
}

int64_t rpo_array_whole(const rpo_array *a, int64_t i) {
  switch (a->type) {
    case RPO_TYPE_U8: return ((const uint8_t *)a->data)[i];
    case RPO_TYPE_U16: return ((const uint16_t *)a->data)[i];
    case RPO_TYPE_I16: return ((const int16_t *)a->data)[i];
    case RPO_TYPE_I32: return ((const int32_t *)a->data)[i];
    case RPO_TYPE_I64: return ((const int64_t *)a->data)[i];
    default: return (int64_t)rpo_array_number(a, i);
  }
}

double rpo_array_number(const rpo_array *a, int64_t i) {
  if (a->type == RPO_TYPE_F32) return (double)((const float *)a->data)[i];
  if (a->type == RPO_TYPE_F64) return ((const double *)a->data)[i];
  if (a->type == RPO_TYPE_F16) return (double)rpo_half_value(((const uint16_t *)a->data)[i]);
  return (double)rpo_array_whole(a, i);
}

rpo_array rpo_array_part(const rpo_array *a, int64_t first, int64_t count) {
  rpo_array const part = {(const char *)a->data + first * rpo_type_size(a->type), count, a->type};
  return part;
}

/* ---- Conversion ---- */

#define CONVERT(to_type, from_type)                                \
  for (int64_t i = 0; i < a->count; i++) {                         \
    ((to_type *)to)[i] = (to_type)((const from_type *)a->data)[i]; \
  }

#define CONVERT_TO(to_type)                              \
  switch (a->type) {                                     \
    case RPO_TYPE_U8: CONVERT(to_type, uint8_t) break;   \
    case RPO_TYPE_U16: CONVERT(to_type, uint16_t) break; \
    case RPO_TYPE_I16: CONVERT(to_type, int16_t) break;  \
    case RPO_TYPE_I32: CONVERT(to_type, int32_t) break;  \
    case RPO_TYPE_I64: CONVERT(to_type, int64_t) break;  \
    case RPO_TYPE_F32: CONVERT(to_type, float) break;    \
    default: CONVERT(to_type, double) break;             \
  }

void rpo_array_convert(const rpo_array *a, int32_t type, void *to) {
  if (type == a->type) {
    memcpy(to, a->data, (size_t)(a->count * rpo_type_size(type)));
    return;
  }
  switch (type) {
    case RPO_TYPE_U8: CONVERT_TO(uint8_t) break;
    case RPO_TYPE_U16: CONVERT_TO(uint16_t) break;
    case RPO_TYPE_I16: CONVERT_TO(int16_t) break;
    case RPO_TYPE_I32: CONVERT_TO(int32_t) break;
    case RPO_TYPE_I64: CONVERT_TO(int64_t) break;
    case RPO_TYPE_F32: CONVERT_TO(float) break;
    default: CONVERT_TO(double) break;
  }
}

/* ---- Ranges ---- */

static void add_bounds(rpo_range *r, double low, double high) {
  r->low = low < r->low ? low : r->low;
  r->high = high > r->high ? high : r->high;
}

#define SINGLE_WHOLE 16777216.0 /* float holds all whole numbers up to here */

/* Of 16 bits at most. */
#define ADD_SMALL(type)                       \
  do {                                        \
    const type *const v = a->data;            \
    type low = 0, high = 0;                   \
    for (int64_t i = 0; i < a->count; i++) {  \
      low = v[i] < low ? v[i] : low;          \
      high = v[i] > high ? v[i] : high;       \
    }                                         \
    add_bounds(r, (double)low, (double)high); \
  } while (0)

#define ADD_LARGE(type)                                                 \
  do {                                                                  \
    const type *const w = a->data;                                      \
    ADD_SMALL(type);                                                    \
    int const large = r->low < -SINGLE_WHOLE || r->high > SINGLE_WHOLE; \
    for (int64_t i = 0; large && i < a->count; i++) {                   \
      r->single &= (double)(float)w[i] == (double)w[i];                 \
    }                                                                   \
  } while (0)

static int is_whole(double v) {
  return fabs(v) < 9e15 && (double)(int64_t)v == v && !(v == 0.0 && signbit(v));
}

/* Bounds are of use while all is whole; then it is enough to know whether float holds the rest. */
#define ADD_REAL(type)                                  \
  do {                                                  \
    const type *const v = a->data;                      \
    double low = 0.0, high = 0.0;                       \
    int64_t i = 0;                                      \
    for (; i < a->count && r->whole; i++) {             \
      r->whole = is_whole((double)v[i]);                \
      r->single &= (double)(float)v[i] == (double)v[i]; \
      low = (double)v[i] < low ? (double)v[i] : low;    \
      high = (double)v[i] > high ? (double)v[i] : high; \
    }                                                   \
    for (; i < a->count && r->single; i++) {            \
      r->single = (double)(float)v[i] == (double)v[i];  \
    }                                                   \
    add_bounds(r, low, high);                           \
  } while (0)

void rpo_range_add(rpo_range *r, const rpo_array *a) {
  switch (a->type) {
    case RPO_TYPE_U8: ADD_SMALL(uint8_t); break;
    case RPO_TYPE_U16: ADD_SMALL(uint16_t); break;
    case RPO_TYPE_I16: ADD_SMALL(int16_t); break;
    case RPO_TYPE_I32: ADD_LARGE(int32_t); break;
    case RPO_TYPE_I64: ADD_LARGE(int64_t); break;
    case RPO_TYPE_F32: ADD_REAL(float); break;
    default: ADD_REAL(double); break;
  }
}

void rpo_range_join(rpo_range *r, const rpo_range *other) {
  add_bounds(r, other->low, other->high);
  r->whole &= other->whole;
  r->single &= other->single;
}

static int32_t whole_type(double low, double high) {
  if (low >= 0 && high <= 255) return RPO_TYPE_U8;
  if (low >= 0 && high <= 65535) return RPO_TYPE_U16;
  if (low >= -32768 && high <= 32767) return RPO_TYPE_I16;
  if (low >= -2147483648.0 && high <= 2147483647.0) return RPO_TYPE_I32;
  return RPO_TYPE_F64;
}

int32_t rpo_range_type(const rpo_range *r, int32_t family) {
  if (!rpo_family_varies(family)) return family;
  int32_t const real = r->single ? RPO_TYPE_F32 : RPO_TYPE_F64;
  int32_t const type = r->whole ? whole_type(r->low, r->high) : RPO_TYPE_F64;
  if (family == RPO_INDEX) return r->high <= 65535 ? RPO_TYPE_U16 : RPO_TYPE_I32;
  return family == RPO_REAL || type == RPO_TYPE_F64 ? real : type;
}
