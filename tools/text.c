#include "text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line: [at, end) without its end. The text goes on behind it with a CR or LF, so that one
 * character past a token may always be looked at. */
typedef struct cursor {
  const char *at, *end;
} cursor;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int fail(text_reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(r->message, sizeof r->message, format, args);
  va_end(args);
  r->failed = 1;
  return 0;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_space(char c) { return c == ' ' || c == '\t'; }

static void skip_spaces(cursor *c) {
  while (c->at < c->end && is_space(*c->at)) c->at++;
}

/* "expected ..., found 'token'": the token at `from`, cut short, without what would spoil a terminal. */
static int unexpected(text_reader *r, const char *expected, cursor c, const char *from) {
  char found[32];
  size_t used = 0;
  while (from < c.end && !is_space(*from) && used + 4 < sizeof found) {
    unsigned char const byte = (unsigned char)*from++;
    found[used++] = (char)(isprint(byte) ? byte : '?');
  }
  found[used] = 0;
  int const more = from < c.end && !is_space(*from);
  if (used == 0) return fail(r, "expected %s, found the end of the line", expected);
  return fail(r, "expected %s, found '%s%s'", expected, found, more ? "..." : "");
}

/* ---- Numbers ---- */

/* A whole number, at most `most`; what is larger becomes most + 1. 0: there is none. */
static int read_whole(cursor *c, int64_t most, int64_t *out) {
  const char *const from = c->at;
  int64_t value = 0;
  for (; c->at < c->end && is_digit(*c->at); c->at++) {
    int64_t const digit = *c->at - '0';
    value = value > (most - digit) / 10 ? most + 1 : 10 * value + digit;
    if (value > most) value = most + 1;
  }
  *out = value;
  return c->at > from;
}

/* Digits of a decimal number: up to 19 of them in `digits`, the others counted in `exponent`. */
static int64_t read_digits(cursor *c, uint64_t *digits, int *exact, int64_t *exponent, int behind) {
  const char *const from = c->at;
  for (; c->at < c->end && is_digit(*c->at); c->at++) {
    if (*digits < 1000000000000000000u) {
      *digits = 10 * *digits + (uint64_t)(*c->at - '0');
      *exponent -= behind;
    } else {
      *exact = 0;
    }
  }
  return c->at - from;
}

static int read_nan(cursor *c) {
  if (c->end - c->at < 3) return 0;
  for (int i = 0; i < 3; i++) {
    if (tolower((unsigned char)c->at[i]) != "nan"[i]) return 0;
  }
  c->at += 3;
  return 1;
}

/* [+-] digits [. digits] [e [+-] digits], or nan. 0: this is none; the cursor is then anywhere. Numbers
 * of up to 2^53 and 22 decimal places are a product or quotient of two exact doubles, rounded once; the
 * others are strtod's, which reads what was looked through here: it cannot run past the token. */
static int read_number(cursor *c, double *out) {
  static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *const from = c->at;
  uint64_t digits = 0;
  int64_t exponent = 0, count;
  int exact = 1;
  int const negative = c->at < c->end && *c->at == '-';
  if (c->at < c->end && (*c->at == '-' || *c->at == '+')) c->at++;
  if (read_nan(c)) {
    *out = NAN;
    return 1;
  }
  count = read_digits(c, &digits, &exact, &exponent, 0);
  if (c->at < c->end && *c->at == '.') {
    c->at++;
    count += read_digits(c, &digits, &exact, &exponent, 1);
  }
  if (count == 0) return 0;
  if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
    int64_t shift;
    c->at++;
    int const down = c->at < c->end && *c->at == '-';
    if (c->at < c->end && (*c->at == '-' || *c->at == '+')) c->at++;
    if (!read_whole(c, 1000000, &shift)) return 0;
    exponent += down ? -shift : shift;
  }
  if (FLT_EVAL_METHOD == 0 && exact && digits <= 9007199254740992u && exponent >= -22 &&
      exponent <= 22) {
    double const whole = (double)digits;
    double const size = exponent < 0 ? whole / power[-exponent] : whole * power[exponent];
    *out = negative ? -size : size;
  } else {
    *out = strtod(from, NULL);
  }
  return 1;
}

/* ---- Rows ---- */

/* Numbers with commas between them, if there are any before the features. */
static int read_labels(text_reader *r, cursor *c) {
  const char *const from = c->at;
  const char *end = from;
  double label;
  while (end < c->end && !is_space(*end) && *end != ':' && *end != '#') end++;
  if (end == from || (end < c->end && *end == ':')) return 1;
  cursor labels = {from, end};
  while (read_number(&labels, &label) && !isnan(label)) {
    if (labels.at == end) {
      c->at = end;
      return 1;
    }
    if (*labels.at++ != ',') break;
  }
  return unexpected(r, "'label,label' or 'feature:value'", *c, from);
}

static int read_feature(text_reader *r, cursor *c, int64_t *feature, double *value) {
  const char *const from = c->at;
  if (!read_whole(c, INT32_MAX, feature) || c->at == c->end || *c->at != ':') {
    return unexpected(r, "'feature:value'", *c, from);
  }
  if (*feature < r->first) return fail(r, "features are counted from 1, found 0");
  if (*feature - r->first >= r->inputs) {
    const char *const beyond = *feature > INT32_MAX ? "2147483648 or more" : NULL;
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)*feature);
    return fail(r, "feature %s is beyond the last of the model, %lld",
                beyond == NULL ? number : beyond, (long long)(r->inputs - 1 + r->first));
  }
  c->at++;
  const char *const number = c->at;
  if (!read_number(c, value) || (c->at < c->end && !is_space(*c->at) && *c->at != '#')) {
    return unexpected(r, "a number", *c, number);
  }
  if (isinf(*value)) return unexpected(r, "a number that doubles can hold", *c, number);
  return 1;
}

static void swap_entries(int64_t *index, double *value, int64_t a, int64_t b) {
  int64_t const i = index[a];
  double const v = value[a];
  index[a] = index[b];
  value[a] = value[b];
  index[b] = i;
  value[b] = v;
}

static void sift_down(int64_t *index, double *value, int64_t root, int64_t count) {
  for (;;) {
    int64_t child = 2 * root + 1;
    if (child >= count) return;
    if (child + 1 < count && index[child + 1] > index[child]) child++;
    if (index[root] >= index[child]) return;
    swap_entries(index, value, root, child);
    root = child;
  }
}

/* Heap sort: in place, and no order of features is slow. */
static void sort_entries(int64_t *index, double *value, int64_t count) {
  for (int64_t i = count / 2 - 1; i >= 0; i--) sift_down(index, value, i, count);
  for (int64_t i = count - 1; i > 0; i--) {
    swap_entries(index, value, 0, i);
    sift_down(index, value, 0, i);
  }
}

static int keep_distinct(text_reader *r, int64_t *index, double *value, int64_t count) {
  int ascending = 1;
  for (int64_t i = 1; i < count; i++) ascending &= index[i - 1] < index[i];
  if (ascending) return 1;
  sort_entries(index, value, count);
  for (int64_t i = 1; i < count; i++) {
    if (index[i - 1] == index[i]) {
      return fail(r, "feature %lld occurs twice", (long long)(index[i] + r->first));
    }
  }
  return 1;
}

static int at_comment(const text_reader *r, cursor c) { return r->announced < 0 && *c.at == '#'; }

static int read_row(text_reader *r, cursor c, text_rows *out) {
  int64_t const start = out->indptr[out->rows];
  int64_t used = start;
  if (!read_labels(r, &c)) return 0;
  for (skip_spaces(&c); c.at < c.end && !at_comment(r, c); skip_spaces(&c)) {
    int64_t feature;
    if (!read_feature(r, &c, &feature, &out->values[used])) return 0;
    out->indices[used++] = feature - r->first;
  }
  if (!keep_distinct(r, out->indices + start, out->values + start, used - start)) return 0;
  out->indptr[++out->rows] = used;
  r->rows++;
  return 1;
}

/* ---- Lines ---- */

/* Three whole numbers and nothing else. */
static int is_header(cursor c, int64_t *sizes) {
  for (int i = 0; i < 3; i++) {
    skip_spaces(&c);
    if (!read_whole(&c, INT64_MAX - 1, &sizes[i])) return 0;
    if (c.at < c.end && !is_space(*c.at)) return 0;
  }
  skip_spaces(&c);
  return c.at == c.end;
}

static int take_header(text_reader *r, const int64_t *sizes) {
  if (r->first != 0) {
    return fail(r, "a file with a header counts features from 0, not from 1");
  }
  if (sizes[1] != r->inputs) {
    return fail(r, "the header says %lld features, the model has %lld", (long long)sizes[1],
                (long long)r->inputs);
  }
  r->announced = sizes[0];
  return 1;
}

static int is_blank(cursor c) {
  skip_spaces(&c);
  return c.at == c.end;
}

static int read_line(text_reader *r, cursor c, text_rows *out) {
  int64_t sizes[3];
  if (r->line == 1) {
    if (c.end - c.at >= 3 && memcmp(c.at, "\xef\xbb\xbf", 3) == 0) c.at += 3; /* byte-order mark */
    if (is_header(c, sizes)) return take_header(r, sizes);
  }
  if (r->announced < 0) {
    cursor rest = c;
    skip_spaces(&rest);
    return rest.at == rest.end || at_comment(r, rest) ? 1 : read_row(r, c, out);
  }
  if (r->rows < r->announced) return read_row(r, c, out);
  return is_blank(c) ? 1 : fail(r, "more rows than the header's %lld", (long long)r->announced);
}

void text_start(text_reader *r, int64_t inputs, int one_based) {
  memset(r, 0, sizeof *r);
  r->inputs = inputs;
  r->first = one_based ? 1 : 0;
  r->announced = -1;
}

int64_t text_read(text_reader *r, const char *text, int64_t length, text_rows *out) {
  int64_t used = 0;
  out->rows = 0;
  out->indptr[0] = 0;
  while (!r->failed && used < length && out->rows < out->most) {
    const char *const from = text + used;
    const char *const end = memchr(from, '\n', (size_t)(length - used));
    if (end == NULL) break;
    cursor const line = {from, end > from && end[-1] == '\r' ? end - 1 : end};
    r->line++;
    if (!read_line(r, line, out)) break;
    used = end + 1 - text;
  }
  return used;
}

void text_finish(text_reader *r) {
  if (r->failed || r->announced < 0 || r->rows >= r->announced) return;
  (void)fail(r, "the header says %lld rows, the file ends after %lld", (long long)r->announced,
             (long long)r->rows);
}
