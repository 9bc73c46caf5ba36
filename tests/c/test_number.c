/* Numbers of any type against one double at a time: ranges, the narrowest type, conversion. */
#include "data.h"
#include "number.h"

enum { N = 40 };

static const double singles[] = {
    0,      1,        255,        256,          65535,         65536, -1,
    -32768, -32769,   16777216.0, 2147483647.0, -2147483648.0, 0.5,   -0.0,
    1e30,   INFINITY, 0.1,        16777217.0,   2147483648.0,  1e18};

/* Numbers that `type` holds, among them as many of the list as it does. */
static int64_t fill(dice *d, int32_t type, int kinds, double *out) {
  static const double low[] = {0, 0, 0, -32768, -2147483648.0, -1e15, 0, 0};
  static const double high[] = {0, 255, 65535, 32767, 2147483647.0, 1e15, 0, 0};
  int64_t const count = dice_below(d, N);
  for (int64_t i = 0; i < count; i++) {
    double const v = singles[dice_below(d, kinds)];
    int const whole = type < RPO_TYPE_F32;
    int const held = whole ? v >= low[type] && v <= high[type] && v == floor(v) && !signbit(v)
                           : type == RPO_TYPE_F64 || (double)(float)v == v;
    out[i] = held ? v : 3.0;
    if (whole && v < 0 && v >= low[type]) out[i] = v;
  }
  return count;
}

static int32_t slow_type(const double *v, int64_t count, int32_t family) {
  double low = 0.0, high = 0.0;
  int whole = 1, single = 1;
  for (int64_t i = 0; i < count; i++) {
    whole &= fabs(v[i]) < 9e15 && v[i] == floor(v[i]) && !(v[i] == 0.0 && signbit(v[i]));
    single &= (double)(float)v[i] == v[i];
    low = fmin(low, v[i]);
    high = fmax(high, v[i]);
  }
  int32_t const real = single ? RPO_TYPE_F32 : RPO_TYPE_F64;
  if (family == RPO_INDEX) return high <= 65535 ? RPO_TYPE_U16 : RPO_TYPE_I32;
  if (family == RPO_REAL || !whole) return real;
  if (low >= 0 && high <= 255) return RPO_TYPE_U8;
  if (low >= 0 && high <= 65535) return RPO_TYPE_U16;
  if (low >= -32768 && high <= 32767) return RPO_TYPE_I16;
  return low >= -2147483648.0 && high <= 2147483647.0 ? RPO_TYPE_I32 : real;
}

static rpo_array array_of(const double *v, int64_t count, int32_t type, void *room) {
  rpo_array const from = {v, count, RPO_TYPE_F64};
  rpo_array_convert(&from, type, room);
  rpo_array const a = {room, count, type};
  return a;
}

static void conversion_keeps_numbers(void) {
  dice d = {1};
  double v[N], room[N], back[N];
  for (int32_t type = RPO_TYPE_U8; type <= RPO_TYPE_F64; type++) {
    mini_context("type %d", (int)type);
    for (int round = 0; round < 200; round++) {
      int64_t const count = fill(&d, type, 1 + round % 20, v);
      rpo_array const a = array_of(v, count, type, room);
      for (int64_t i = 0; i < count; i++) {
        CHECK(rpo_array_number(&a, i) == v[i]);
        if (fabs(v[i]) < 9e15) CHECK_EQUAL(rpo_array_whole(&a, i), (int64_t)v[i]);
      }
      int64_t const first = count > 0 ? dice_below(&d, count) : 0;
      rpo_array const part = rpo_array_part(&a, first, count - first);
      rpo_array_convert(&part, RPO_TYPE_F64, back);
      for (int64_t i = first; i < count; i++) {
        CHECK(back[i - first] == v[i] && signbit(back[i - first]) == signbit(v[i]));
      }
    }
  }
}

/* From any type to any other that holds the numbers. */
static void conversion_between_any_two_types(void) {
  dice d = {7};
  double v[N], from[N], to[N];
  for (int32_t a = RPO_TYPE_U8; a <= RPO_TYPE_F64; a++) {
    for (int32_t b = RPO_TYPE_U8; b <= RPO_TYPE_F64; b++) {
      int64_t const count = 1 + fill(&d, a, 8, v + 1) % (N - 1);
      v[0] = 200.0; /* of no negative type, nor of 8 bits with a sign */
      for (int64_t i = 0; i < count; i++) {
        if (b == RPO_TYPE_U8 || b == RPO_TYPE_U16) v[i] = fabs(v[i]);
        if (v[i] > (b == RPO_TYPE_U8 || a == RPO_TYPE_U8 ? 255.0 : 32767.0)) v[i] = 7.0;
      }
      rpo_array const held = array_of(v, count, a, from);
      rpo_array_convert(&held, b, to);
      rpo_array const converted = {to, count, b};
      mini_context("type %d to %d", (int)a, (int)b);
      for (int64_t i = 0; i < count; i++) CHECK(rpo_array_number(&converted, i) == v[i]);
    }
  }
}

/* Of several arrays of several types, however they are put together. */
static void ranges_find_the_narrowest_type(void) {
  static const int32_t families[] = {RPO_ANY, RPO_REAL, RPO_COUNT};
  dice d = {2};
  double v[3 * N], room[N];
  for (int round = 0; round < 3000; round++) {
    rpo_range joint = {0.0, 0.0, 1, 1}, all = joint;
    int64_t count = 0;
    int const kinds = 1 + round % 20;
    for (int k = 0; k < 3; k++) {
      int32_t const type = k == 2 ? RPO_TYPE_F32 : RPO_TYPE_U8 + (int32_t)dice_below(&d, 7);
      rpo_range range = {0.0, 0.0, 1, 1};
      int64_t const more = fill(&d, type, kinds, v + count);
      rpo_array const a = array_of(v + count, more, type, room);
      rpo_range_add(&range, &a);
      rpo_range_add(&all, &a);
      rpo_range_join(&joint, &range);
      count += more;
    }
    mini_context("round %d", round);
    for (int k = 0; k < 3; k++) {
      int32_t const expected = slow_type(v, count, families[k]);
      CHECK_EQUAL(rpo_range_type(&all, families[k]), expected);
      CHECK_EQUAL(rpo_range_type(&joint, families[k]), expected);
    }
    CHECK_EQUAL(rpo_range_type(&all, RPO_TYPE_I64), RPO_TYPE_I64);
  }
}

static void indices_are_of_two_types(void) {
  int32_t const v[] = {65535, 65536};
  for (int64_t count = 0; count <= 2; count++) {
    rpo_range range = {0.0, 0.0, 1, 1};
    rpo_array const a = {v, count, RPO_TYPE_I32};
    rpo_range_add(&range, &a);
    CHECK_EQUAL(rpo_range_type(&range, RPO_INDEX), count < 2 ? RPO_TYPE_U16 : RPO_TYPE_I32);
  }
}

/* The number that the bits of a half stand for, by its definition. */
static double half_number(int bits) {
  int const exponent = bits >> 10 & 31, fraction = bits & 1023;
  double const size =
      exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 15 - 10);
  return bits >> 15 ? -size : size;
}

static uint16_t half_of(double x) { return rpo_half_of((float)x); }

/* Every half, and on both sides of every boundary between two of them. */
static void halves(void) {
  for (int bits = 0; bits < 1 << 16; bits++) {
    if ((bits >> 10 & 31) == 31) continue; /* infinities and NaN are never made */
    double const value = half_number(bits);
    mini_context("half %04x", (unsigned)bits);
    CHECK((double)rpo_half_value((uint16_t)bits) == value);
    CHECK(!signbit(rpo_half_value((uint16_t)bits)) == !signbit(value));
    CHECK_EQUAL(half_of(value), bits);
    int const next = bits + 1;
    if ((next >> 10 & 31) == 31) continue;
    double const middle = 0.5 * (value + half_number(next)); /* a float */
    CHECK_EQUAL(half_of(middle), bits % 2 == 0 ? bits : next);
    CHECK_EQUAL(rpo_half_of(nextafterf((float)middle, (float)value)), bits);
    CHECK_EQUAL(rpo_half_of(nextafterf((float)middle, 2.0f * (float)half_number(next))), next);
  }
  for (int sign = 0; sign < 2; sign++) { /* no infinity: the largest */
    static const float beyond[] = {65505.0f, 65519.0f, 65520.0f, 65536.0f, 1e30f, INFINITY};
    for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++) {
      CHECK_EQUAL(rpo_half_of(sign ? -beyond[k] : beyond[k]), sign ? 0xFBFF : 0x7BFF);
    }
  }
  CHECK_EQUAL(rpo_half_of(1e-30f), 0);
  CHECK_EQUAL(rpo_half_of(-1e-45f), 0x8000);
}

int main(void) {
  RUN(conversion_keeps_numbers);
  RUN(conversion_between_any_two_types);
  RUN(ranges_find_the_narrowest_type);
  RUN(indices_are_of_two_types);
  RUN(halves);
  return mini_done("number");
}
