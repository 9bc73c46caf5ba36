/* Where AVX-512 is at hand: the walk over classes (loop_classes.h) by one instruction that looks 64 bytes
 * up among 64 (VBMI), of a row of at most 128 packed codes those of four features, each for its sixteen
 * cuts; and nodes divided sixteen rows at a time. */
#if defined(__AVX512BW__)
#define LOOKS_UP 1
#include <immintrin.h>

#define VBMI __attribute__((target("avx512vbmi")))
enum { MOST_PACKED = 128, PER_LOOK = 4, LOOKS = BATCH / PER_LOOK };
typedef uint16_t wide16 __attribute__((vector_size(64), may_alias)); /* lanes of two features */

/* The cut before code t begins at t, in the upper half of a byte at 16 t; none before code 16. */
#define LOW_CUTS 255, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1
#define HIGH_CUTS 255, 240, 224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32, 16

typedef struct look { /* by lane: which byte of a row, which half of it, where the cut begins */
  counts8 at[PER_LOOK], half[PER_LOOK], cut[PER_LOOK];
} look;

ALWAYS_INLINE void set_look(const int32_t *feature, look *out) {
  counts8 const none = {0}, cuts[2] = {{LOW_CUTS}, {HIGH_CUTS}};
  for (int c = 0; c < PER_LOOK; c++) {
    int const upper = feature[c] & 1;
    out->at[c] = none + (uint8_t)(feature[c] >> 1);
    out->half[c] = none + (uint8_t)(upper ? 0xF0 : 0x0F);
    out->cut[c] = cuts[upper];
  }
}

/* Sums of 16 bits to those of 32. */
ALWAYS_INLINE VBMI void add_wide(wide16 from, int add, counts32 *to) {
  wide16 const both[1] = {from};
  for (int c = 0; c < 2; c++) {
    counts32 s = (counts32)_mm512_cvtepu16_epi32(((const __m256i *)both)[c]);
    if (add) s += to[c];
    to[c] = s;
  }
}

/* What follows is written once for each look, so that sums have names and stay in registers. */
#define EACH_LOOK(DO) DO(0) DO(1) DO(2) DO(3)
#define DECLARE(k)                                                                     \
  const look *const own##k = &own[k < looks ? k : 0];                                  \
  __m512i const at##k = _mm512_loadu_si512(own##k->at);                                \
  __m512i const half##k = _mm512_loadu_si512(own##k->half);                            \
  __m512i const cut##k = _mm512_loadu_si512(own##k->cut);                              \
  wide16 square##k##a = none, square##k##b = none, dot##k##a = none, dot##k##b = none; \
  wide16 weight##k##a = none, weight##k##b = none;
#define BEGIN_CLASS(k) __m512i s##k = _mm512_setzero_si512();
#define ADD_ROW(k)                                                                             \
  if (looks > k) {                                                                             \
    __m512i const code = _mm512_and_si512(_mm512_permutexvar_epi8(at##k, codes), half##k);     \
    s##k = _mm512_mask_add_epi8(s##k, _mm512_cmpge_epu8_mask(code, cut##k), s##k, row_weight); \
  }
#define END_CLASS(k)                                                                      \
  if (looks > k) {                                                                        \
    wide16 const front = (wide16)_mm512_cvtepu8_epi16(_mm512_castsi512_si256(s##k));      \
    wide16 const back = (wide16)_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(s##k, 1)); \
    square##k##a += front * front;                                                        \
    square##k##b += back * back;                                                          \
    dot##k##a += front * (uint16_t)total;                                                 \
    dot##k##b += back * (uint16_t)total;                                                  \
    weight##k##a += front;                                                                \
    weight##k##b += back;                                                                 \
  }
#define FLUSH_SUM(sum, k)                                     \
  add_wide(sum##k##a, flushed, sums->sum + PER_LOOK * k);     \
  add_wide(sum##k##b, flushed, sums->sum + PER_LOOK * k + 2); \
  sum##k##a = sum##k##b = none;
#define FLUSH(k)         \
  if (looks > k) {       \
    FLUSH_SUM(square, k) \
    FLUSH_SUM(dot, k)    \
    FLUSH_SUM(weight, k) \
  }

/* As walk_of; what it reads again and again has a name here. */
ALWAYS_INLINE VBMI void walk_of_looks(int looks, const int32_t *feature, class_walk *a,
                                      cut_sums *sums) {
  const int32_t *const rows = a->rows, *const weights = a->row_weight;
  const uint8_t *const packed = a->sorted->packed;
  int64_t const stride = a->sorted->stride, node = a->node;
  wide16 const none = {0};
  uint32_t room = UINT16_MAX;
  int flushed = 0;
  int64_t i = 0;
  look own[LOOKS];
  for (int k = 0; k < looks; k++) set_look(feature + PER_LOOK * k, &own[k]);
  EACH_LOOK(DECLARE)
  while (i < node) {
    int32_t const end = end_of_class(a, rows[i]);
    uint32_t total = 0;
    EACH_LOOK(BEGIN_CLASS)
    for (; i < node && rows[i] < end; i++) {
      uint32_t const weight = weights == NULL ? 1 : (uint32_t)weights[rows[i]];
      if (total + weight > MOST_COUNTED) break;
      total += weight;
      int64_t const later = i + AHEAD < node ? i + AHEAD : node - 1;
      RPO_PREFETCH(packed + rows[later] * stride);
      __m512i const codes = _mm512_loadu_si512(packed + rows[i] * stride);
      __m512i const row_weight = _mm512_set1_epi8((char)weight);
      EACH_LOOK(ADD_ROW)
    }
    int const is_large = i < node && rows[i] < end;
    if (is_large || room < total * total) {
      EACH_LOOK(FLUSH)
      room = UINT16_MAX;
      flushed = 1;
    }
    if (is_large) {
      __m512i counts[LOOKS] = {s0, s1, s2, s3};
      a->next = i;
      a->end = end;
      walk_large_class(PER_LOOK * looks, feature, a, (counts8 *)counts, total, sums);
      i = a->next;
      continue;
    }
    room -= total * total;
    EACH_LOOK(END_CLASS)
  }
  EACH_LOOK(FLUSH)
}

VBMI static void walk_looking_up(int n, const int32_t *feature, class_walk *a, cut_sums *sums) {
  switch ((n + PER_LOOK - 1) / PER_LOOK) {
    case 1: walk_of_looks(1, feature, a, sums); break;
    case 2: walk_of_looks(2, feature, a, sums); break;
    case 3: walk_of_looks(3, feature, a, sums); break;
    default: walk_of_looks(4, feature, a, sums); break;
  }
}

/* As in loop_classes.h, where nothing compares sixteen scores at once. */
static void find_above(const float *score, int n, float limit, promise *out) {
  out->differ = 0;
  for (int c = 0; c < n; c++) {
    __m512 const own = _mm512_loadu_ps(score + c * RPO_CUTS);
    uint32_t const differ = _mm512_cmp_ps_mask(own, _mm512_setzero_ps(), _CMP_GT_OQ) != 0;
    out->above[c] = _mm512_cmp_ps_mask(own, _mm512_set1_ps(limit), _CMP_GT_OQ);
    out->differ |= differ << c;
  }
}

static int may_look_up(const rpo_grower *g) {
  return g->f->cols <= MOST_PACKED && __builtin_cpu_supports("avx512vbmi");
}

/* Of packed codes: in 32 bits, with what is read beyond. */
static int offsets_fit(const rpo_grower *g) {
  return g->f->rows * g->o.by_class->stride <= INT32_MAX - RPO_READ_BEYOND;
}

/* Rows of codes up to `below` to the front of the node; returns where the others begin. */
static int32_t divide_by_lanes(rpo_grower *g, int32_t start, int32_t end, int32_t feature,
                               int32_t below) {
  int const shift = 4 * (feature & 1);
  const uint8_t *const packed = g->o.by_class->packed + (feature >> 1);
  __m512i const stride = _mm512_set1_epi32((int32_t)g->o.by_class->stride);
  __m512i const half = _mm512_set1_epi32(15 << shift), most = _mm512_set1_epi32(below << shift);
  int32_t left = start, right = 0;
  for (int32_t i = start; i < end; i += 16) {
    __mmask16 const here = (__mmask16)(end - i < 16 ? (1u << (end - i)) - 1u : 0xFFFFu);
    __m512i const row = _mm512_maskz_loadu_epi32(here, g->samples + i);
    __m512i const at = _mm512_mullo_epi32(row, stride);
    __m512i const code =
        _mm512_and_si512(_mm512_mask_i32gather_epi32(row, here, at, packed, 1), half);
    __mmask16 const to_left = _mm512_mask_cmple_epi32_mask(here, code, most);
    __mmask16 const to_right = (__mmask16)(here & ~to_left);
    int const n_left = __builtin_popcount(to_left);
    _mm512_mask_storeu_epi32(g->samples + left, (__mmask16)((1u << n_left) - 1u),
                             _mm512_maskz_compress_epi32(to_left, row));
    _mm512_storeu_si512(g->scratch + right, _mm512_maskz_compress_epi32(to_right, row));
    left += n_left;
    right += __builtin_popcount(to_right);
  }
  memcpy(g->samples + left, g->scratch, (size_t)right * sizeof *g->samples);
  return left;
}
#else
#define LOOKS_UP 0
#endif
