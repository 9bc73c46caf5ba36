#include "column.h"

#include <math.h>
#include <string.h>

#include "mem.h"

enum { BITS = 11, DIGITS = 1 << BITS, PASSES = 6 }; /* of the radix sort */
enum { FEW = 256, SLOTS = 1024 };                   /* values of a column that need no sort */

/* The distinct values of a column that has few, in order of appearance. */
typedef struct few {
  uint64_t key[FEW];
  int64_t weight[FEW];
  int32_t run[FEW]; /* its place among the runs */
  int16_t slot[SLOTS];
  int32_t count;
} few;

static uint64_t key_of(double v) {
  uint64_t bits;
  double const value = v == 0.0 ? 0.0 : v; /* -0 and 0 are one value */
  memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}

static double value_of(uint64_t key) {
  uint64_t const bits = key >> 63 ? key & 0x7FFFFFFFFFFFFFFFu : ~key;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Radix sort, least digit first. A digit that all keys share costs nothing: float32 values and small
 * whole numbers leave most digits alike. */
static void sort_column(rpo_sorter *c) {
  memset(c->histogram, 0, PASSES * DIGITS * sizeof *c->histogram);
  for (int64_t i = 0; i < c->count; i++) {
    for (int pass = 0; pass < PASSES; pass++) {
      c->histogram[pass * DIGITS + (int64_t)(c->key[i] >> (BITS * pass) & (DIGITS - 1))]++;
    }
  }
  for (int pass = 0; pass < PASSES && c->count > 0; pass++) {
    int64_t *const h = c->histogram + pass * DIGITS;
    int const shift = BITS * pass;
    if (h[c->key[0] >> shift & (DIGITS - 1)] == c->count) continue;
    int64_t sum = 0;
    for (int d = 0; d < DIGITS; d++) {
      int64_t const here = h[d];
      h[d] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < c->count; i++) {
      int64_t const to = h[c->key[i] >> shift & (DIGITS - 1)]++;
      c->key2[to] = c->key[i];
      c->at2[to] = c->at[i];
    }
    uint64_t *const key = c->key;
    int32_t *const at = c->at;
    c->key = c->key2;
    c->at = c->at2;
    c->key2 = key;
    c->at2 = at;
  }
}

/* Runs of equal keys; `zeros` more zeros take part, listed nowhere. */
typedef struct runs {
  int64_t count;   /* distinct values */
  uint64_t *key;   /* by run */
  int64_t *weight; /* by run */
  int64_t *end;    /* by run: entries up to here belong to it or earlier ones */
} runs;

static void find_runs(const rpo_sorter *c, int64_t zeros, int with_zero, runs *r) {
  uint64_t const zero = key_of(0.0);
  int zero_open = with_zero;
  r->count = 0;
  for (int64_t i = 0; i <= c->count;) {
    int const at_end = i == c->count;
    if (zero_open && (at_end || c->key[i] >= zero)) {
      zero_open = 0;
      if (at_end || c->key[i] != zero) {
        r->key[r->count] = zero;
        r->weight[r->count] = zeros;
        r->end[r->count++] = i;
      }
    }
    if (at_end) break;
    int64_t j = i + 1;
    while (j < c->count && c->key[j] == c->key[i]) j++;
    r->key[r->count] = c->key[i];
    r->weight[r->count] = j - i + (c->key[i] == zero ? zeros : 0);
    r->end[r->count++] = j;
    i = j;
  }
}

/* Groups runs into at most `most` bins of about equal weight: a bin is closed once it holds its share
 * of what is left. Zero keeps a bin of its own in sparse form, where it is not listed. */
static int64_t group_runs(const runs *r, int64_t most, int keep_zero, int32_t *bin_of) {
  int64_t left = 0;
  for (int64_t i = 0; i < r->count; i++) left += r->weight[i];
  uint64_t const zero = key_of(0.0);
  int64_t bin = 0, held = 0;
  for (int64_t i = 0; i < r->count; i++) {
    bin_of[i] = (int32_t)bin;
    held += r->weight[i];
    if (i + 1 == r->count) break;
    int64_t const bins_left = most - bin;
    int const full = r->count <= most || (double)held * (double)bins_left >= (double)left;
    int const at_zero = keep_zero && (r->key[i] == zero || r->key[i + 1] == zero);
    if ((full || at_zero) && bins_left > 1) {
      left -= held;
      held = 0;
      bin++;
    }
  }
  return bin + 1;
}

/* Entries to be sorted; missing ones are coded -1. */
static void load_column(rpo_sorter *c, const double *values, int64_t size, int32_t *codes) {
  c->count = 0;
  for (int64_t i = 0; i < size; i++) {
    if (isnan(values[i])) {
      codes[i] = -1;
      continue;
    }
    c->key[c->count] = key_of(values[i]);
    c->at[c->count++] = (int32_t)i;
  }
}

/* How often each number occurs; four counts a number, since neighbours are often alike and would wait for
 * each other. */
static void weigh_few(few *w, const int32_t *codes, int64_t size) {
  enum { APART = 4 };
  int32_t count[APART][FEW + 1]; /* missing ones first */
  memset(count, 0, sizeof count);
  for (int64_t i = 0; i < size; i++) count[i % APART][codes[i] + 1]++;
  for (int32_t c = 0; c < w->count; c++) {
    w->weight[c] = 0;
    for (int a = 0; a < APART; a++) w->weight[c] += count[a][c + 1];
  }
}

/* Numbers the values as they appear; missing ones -1. Returns 0 when there are too many. */
static int load_few(few *w, const double *values, int64_t size, int32_t *codes) {
  w->count = 0;
  for (int i = 0; i < SLOTS; i++) w->slot[i] = -1;
  for (int64_t i = 0; i < size; i++) {
    if (isnan(values[i])) {
      codes[i] = -1;
      continue;
    }
    uint64_t const key = key_of(values[i]);
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 54);
    while (w->slot[at] >= 0 && w->key[w->slot[at]] != key) at = (at + 1) & (SLOTS - 1);
    if (w->slot[at] < 0) {
      if (w->count == FEW) return 0;
      w->slot[at] = (int16_t)w->count;
      w->key[w->count++] = key;
    }
    codes[i] = w->slot[at];
  }
  weigh_few(w, codes, size);
  return 1;
}

/* Runs of the few values, in ascending order, with `zeros` more zeros. */
static void sort_few(few *w, int64_t zeros, int with_zero, runs *r) {
  static const int32_t gaps[] = {57, 23, 10, 4, 1};
  uint64_t const zero = key_of(0.0);
  int32_t order[FEW];
  int open = with_zero;
  for (int32_t i = 0; i < w->count; i++) order[i] = i;
  for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) { /* Shell's sort */
    int32_t const gap = gaps[g];
    for (int32_t i = gap; i < w->count; i++) {
      int32_t const moved = order[i];
      int32_t j = i;
      for (; j >= gap && w->key[order[j - gap]] > w->key[moved]; j -= gap)
        order[j] = order[j - gap];
      order[j] = moved;
    }
  }
  r->count = 0;
  for (int32_t i = 0; i <= w->count; i++) {
    uint64_t const key = i < w->count ? w->key[order[i]] : UINT64_MAX;
    if (open && key > zero) {
      r->key[r->count] = zero;
      r->weight[r->count++] = zeros;
    }
    open = open && key < zero;
    if (i == w->count) break;
    w->run[order[i]] = (int32_t)r->count;
    r->key[r->count] = key;
    r->weight[r->count++] = w->weight[order[i]] + (key == zero ? zeros : 0);
  }
}

static void note_values(const rpo_entries *e, rpo_column *out) {
  int64_t other = 0, missing = 0; /* NaN is no float's equal either */
  for (int64_t i = 0; i < e->count; i++) {
    double const v = e->values[i];
    missing += v != v;
    other += (double)(float)v != v;
  }
  out->single = other == missing;
  out->missing = missing > 0;
}

/* Bins of the runs; bin_of: by run. */
static rpo_status make_bins(const runs *r, int64_t most, int sparse, int32_t *bin_of,
                            rpo_column *out, rpo_error *err) {
  out->bins = r->count == 0 ? 0 : group_runs(r, most, sparse, bin_of);
  out->low = rpo_new(out->bins, (int64_t)sizeof(double));
  out->high = rpo_new(out->bins, (int64_t)sizeof(double));
  if (out->low == NULL || out->high == NULL) return rpo_fail_memory(err, "features");
  for (int64_t i = 0; i < r->count; i++) {
    if (i == 0 || bin_of[i] != bin_of[i - 1]) out->low[bin_of[i]] = value_of(r->key[i]);
    out->high[bin_of[i]] = value_of(r->key[i]);
  }
  return RPO_OK;
}

rpo_status rpo_column_code(rpo_sorter *sorter, const rpo_entries *e, int32_t max_bins,
                           int32_t *codes, rpo_column *out, rpo_error *err) {
  few w;
  memset(out, 0, sizeof *out);
  note_values(e, out);
  int const is_few = load_few(&w, e->values, e->count, codes);
  if (!is_few) {
    load_column(sorter, e->values, e->count, codes);
    sort_column(sorter);
  }
  int const with_zero = e->sparse || e->zeros > 0;
  int64_t const most = (is_few ? w.count : sorter->count) + 1;
  runs r = {0, rpo_new(most, 8), rpo_new(most, 8), rpo_new(most, 8)};
  int32_t *const bin_of = rpo_new(most, 4);
  rpo_status status;
  if (r.key == NULL || r.weight == NULL || r.end == NULL || bin_of == NULL) {
    status = rpo_fail_memory(err, "features");
    goto done;
  }
  if (is_few) {
    sort_few(&w, e->zeros, with_zero, &r);
  } else {
    find_runs(sorter, e->zeros, with_zero, &r);
  }
  RPO_GOTO(make_bins(&r, max_bins > 0 ? max_bins : r.count, e->sparse, bin_of, out, err));
  if (is_few) {
    for (int32_t i = 0; i < w.count; i++) w.run[i] = bin_of[w.run[i]];
    for (int64_t i = 0; i < e->count; i++) codes[i] = codes[i] < 0 ? codes[i] : w.run[codes[i]];
  } else {
    for (int64_t i = 0, entry = 0; i < r.count; i++) {
      for (; entry < r.end[i]; entry++) codes[sorter->at[entry]] = bin_of[i];
    }
  }
  for (int64_t i = 0; out->missing && i < e->count; i++) {
    if (codes[i] < 0) codes[i] = (int32_t)out->bins;
  }
done:
  rpo_delete(r.key);
  rpo_delete(r.weight);
  rpo_delete(r.end);
  rpo_delete(bin_of);
  return status;
}

void rpo_column_release(rpo_column *column) {
  rpo_delete(column->low);
  rpo_delete(column->high);
}

rpo_status rpo_sorter_new(int64_t longest, rpo_sorter *out, rpo_error *err) {
  out->key = rpo_new(longest, 8);
  out->key2 = rpo_new(longest, 8);
  out->at = rpo_new(longest, 4);
  out->at2 = rpo_new(longest, 4);
  out->histogram = rpo_new(PASSES * DIGITS, 8);
  int const failed = out->key == NULL || out->key2 == NULL || out->at == NULL || out->at2 == NULL ||
                     out->histogram == NULL;
  return failed ? rpo_fail_memory(err, "features") : RPO_OK;
}

void rpo_sorter_release(rpo_sorter *sorter) {
  rpo_delete(sorter->key);
  rpo_delete(sorter->key2);
  rpo_delete(sorter->at);
  rpo_delete(sorter->at2);
  rpo_delete(sorter->histogram);
}
