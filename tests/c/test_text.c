/* The reader of svmlight and extreme classification text, beside strtod and a reader that reads line by
 * line; every malformed line, and lines cut anywhere. */
#include "../../tools/text.h"

#include "data.h"
#include "mini.h"

enum { INPUTS = 12 };

typedef struct result {
  text_reader reader;
  text_rows rows;
  int64_t used;
} result;

/* Reads a text from memory that is exactly as long, so that a sanitizer sees every step too far. */
static result read_text(const char *text, int64_t length, int one_based, int64_t most) {
  result r;
  char *const copy = mini_room(length, 1);
  int64_t const room = text_room(length);
  memcpy(copy, text, (size_t)length);
  text_start(&r.reader, INPUTS, one_based);
  r.rows.most = most;
  r.rows.indptr = mini_room(most + 1, 8);
  r.rows.indices = mini_room(room, 8);
  r.rows.values = mini_room(room, 8);
  r.used = text_read(&r.reader, copy, length, &r.rows);
  free(copy);
  return r;
}

static void release(result *r) {
  free(r->rows.indptr);
  free(r->rows.indices);
  free(r->rows.values);
}

static result read_string(const char *text) {
  return read_text(text, (int64_t)strlen(text), 0, 10);
}

static int entry_is(const result *r, int64_t e, int64_t index, double value) {
  double const found = r->rows.values[e];
  return r->rows.indices[e] == index && (found == value || (isnan(found) && isnan(value)));
}

static void test_rows(void) {
  result r = read_string(
      "1,2 0:1 3:0.5\n"
      " 11:-2e-3\t4:nan \r\n"
      "5:+7 1:.25\n"
      "3\n"
      "\n"
      "  # a remark\n"
      "-1.5 2:1e2# another\n");
  CHECK(!r.reader.failed);
  CHECK_EQUAL(r.reader.line, 7);
  CHECK_EQUAL(r.rows.rows, 5);
  CHECK_EQUAL(r.rows.indptr[1], 2);
  CHECK_EQUAL(r.rows.indptr[2], 4);
  CHECK_EQUAL(r.rows.indptr[3], 6);
  CHECK_EQUAL(r.rows.indptr[4], 6);
  CHECK_EQUAL(r.rows.indptr[5], 7);
  CHECK(entry_is(&r, 0, 0, 1.0) && entry_is(&r, 1, 3, 0.5));
  CHECK(entry_is(&r, 2, 4, NAN) && entry_is(&r, 3, 11, -2e-3)); /* sorted */
  CHECK(entry_is(&r, 4, 1, 0.25) && entry_is(&r, 5, 5, 7.0));
  CHECK(entry_is(&r, 6, 2, 100.0));
  release(&r);
}

static void test_one_based(void) {
  result r = read_text("1:5 12:6\n", 9, 1, 1);
  CHECK(!r.reader.failed && entry_is(&r, 0, 0, 5.0) && entry_is(&r, 1, 11, 6.0));
  release(&r);
}

static void test_header(void) {
  result r = read_string("\xef\xbb\xbf 3 12 100 \r\n5,6 1:2\n\n 2:3\n\n");
  CHECK(!r.reader.failed);
  CHECK_EQUAL(r.reader.announced, 3);
  CHECK_EQUAL(r.rows.rows, 3);
  CHECK_EQUAL(r.rows.indptr[2], 1); /* an empty line is a row */
  text_finish(&r.reader);
  CHECK(!r.reader.failed);
  release(&r);
  r = read_string("3 12 100\n5,6 1:2\n");
  text_finish(&r.reader);
  CHECK(r.reader.failed && strstr(r.reader.message, "3 rows, the file ends after 1"));
  release(&r);
}

/* The message, and that the rows before the malformed line are there. */
static void refused(const char *line, int one_based, const char *message) {
  char text[400];
  (void)snprintf(text, sizeof text, "1 1:1\n%s\n1 1:1\n", line);
  result r = read_text(text, (int64_t)strlen(text), one_based, 10);
  mini_context("'%s': %s", line, r.reader.message);
  CHECK(r.reader.failed && strstr(r.reader.message, message) != NULL);
  CHECK_EQUAL(r.reader.line, 2);
  CHECK_EQUAL(r.rows.rows, 1);
  CHECK_EQUAL(r.used, 6);
  release(&r);
}

static void test_malformed(void) {
  refused("x 1:1", 0, "expected 'label,label' or 'feature:value', found 'x'");
  refused("1,,2 1:1", 0, "found '1,,2'");
  refused("1, 1:1", 0, "found '1,'");
  refused(",1 1:1", 0, "found ',1'");
  refused("nan 1:1", 0, "found 'nan'");
  refused("1;2 1:1", 0, "found '1;2'");
  refused("1 2 1:1", 0, "expected 'feature:value', found '2'");
  refused("1 1", 0, "expected 'feature:value', found '1'");
  refused("1 -1:1", 0, "found '-1:1'");
  refused("1 +1:1", 0, "found '+1:1'");
  refused("1 1.0:1", 0, "found '1.0:1'");
  refused("1 :1", 0, "found ':1'");
  refused("1 qid:1", 0, "found 'qid:1'");
  refused("1 1:", 0, "expected a number, found the end of the line");
  refused("1 1: 2", 0, "expected a number");
  refused("1 1 :2", 0, "expected 'feature:value', found '1'");
  refused("1 1:x", 0, "expected a number, found 'x'");
  refused("1 1:0x10", 0, "expected a number, found '0x10'");
  refused("1 1:1_0", 0, "found '1_0'");
  refused("1 1:1e", 0, "found '1e'");
  refused("1 1:1e+", 0, "found '1e+'");
  refused("1 1:.", 0, "found '.'");
  refused("1 1:--1", 0, "found '--1'");
  refused("1 1:1.2.3", 0, "found '1.2.3'");
  refused("1 1:2,3", 0, "found '2,3'");
  refused("1 1:inf", 0, "expected a number, found 'inf'");
  refused("1 1:nano", 0, "expected a number, found 'nano'");
  refused("1 1:na", 0, "expected a number, found 'na'");
  refused("1 1:1e999", 0, "doubles can hold, found '1e999'");
  refused("1 1:-1e999999999999999999999", 0, "doubles can hold");
  refused("1 12:1", 0, "feature 12 is beyond the last of the model, 11");
  refused("1 13:1", 1, "feature 13 is beyond the last of the model, 12");
  refused("1 0:1", 1, "features are counted from 1, found 0");
  refused("1 2147483647:1", 0, "feature 2147483647 is beyond");
  refused("1 4294967297:1", 0, "feature 2147483648 or more is beyond");
  refused("1 99999999999999999999999999:1", 0, "feature 2147483648 or more is beyond");
  refused("1 3:1 3:2", 0, "feature 3 occurs twice");
  refused("1 5:1 3:1 4:1 5:2", 0, "feature 5 occurs twice");
  refused("1 1:1\r2:2", 0, "found '1?2:2'");
  refused("1 1:\033[31m", 0, "found '?[31m'");
  refused("1 1:123456789012345678901234567890x", 0, "'1234567890123456789012345678...'");
}

static void test_malformed_header(void) {
  result r = read_string("3 11 100\n");
  CHECK(r.reader.failed && strstr(r.reader.message, "11 features, the model has 12") != NULL);
  release(&r);
  r = read_text("3 12 100\n", 9, 1, 1);
  CHECK(r.reader.failed && strstr(r.reader.message, "from 0, not from 1") != NULL);
  release(&r);
  r = read_string("1 12 9\n1 1:1\n1 1:1\n");
  CHECK(r.reader.failed && strstr(r.reader.message, "more rows than the header's 1") != NULL);
  CHECK_EQUAL(r.rows.rows, 1);
  release(&r);
  r = read_string("9 12 9\n# none here\n");
  CHECK(r.reader.failed && r.reader.line == 2);
  release(&r);
  r = read_string("99999999999999999999 12 9\n");
  CHECK(!r.reader.failed && r.reader.announced > 0);
  release(&r);
}

static void test_zero_byte(void) {
  result r = read_text("1 1:1\0 2:1\n", 11, 0, 3);
  CHECK(r.reader.failed && strstr(r.reader.message, "expected a number, found '1?'") != NULL);
  release(&r);
}

/* Every value as strtod reads it, to the bit. */
static void test_numbers(void) {
  static const char *const shapes[] = {"%.17g", "%.3f", "%.15e", "%.1g", "%.25e", "%.40f", "%.0f"};
  dice d = {5};
  for (int i = 0; i < 20000; i++) {
    char text[420], value[400];
    double const size = pow(10.0, 40.0 * dice_real(&d) - 20.0);
    double const far = i % 10 == 0 ? pow(10.0, 600.0 * dice_real(&d) - 310.0) : size;
    double const x = (dice_real(&d) - 0.5) * far;
    if (!isfinite(x)) continue;
    (void)snprintf(value, sizeof value, shapes[i % 7], x);
    (void)snprintf(text, sizeof text, "7:%s\n", value);
    result r = read_string(text);
    double const expected = strtod(value, NULL);
    mini_context("%s", value);
    CHECK(!r.reader.failed && r.rows.rows == 1);
    CHECK(memcmp(r.rows.values, &expected, sizeof expected) == 0);
    release(&r);
  }
}

/* However a text is cut and whatever the room, the rows are the same. */
static void test_pieces(void) {
  const char *const text = "4 12 5\r\n1 0:1 5:2\r\n2,3 7:4 3:3\n\n 11:nan 1:0.1";
  char whole[80];
  int64_t const length = snprintf(whole, sizeof whole, "%s\n", text);
  result all = read_text(whole, length, 0, 10);
  CHECK_EQUAL(all.used, length);
  for (int64_t cut = 0; cut <= length; cut++) {
    for (int64_t most = 1; most <= 3; most++) {
      result r = read_text(whole, 0, 0, most);
      int64_t used = 0, entry = 0, rows = 0;
      release(&r);
      r.rows.indices = mini_room(text_room(length), 8);
      r.rows.values = mini_room(text_room(length), 8);
      r.rows.indptr = mini_room(most + 1, 8);
      mini_context("cut at %d, %d rows", (int)cut, (int)most);
      for (int piece = 0; piece < 2; piece++) {
        int64_t const end = piece == 0 ? cut : length;
        for (;;) {
          int64_t const line = r.reader.line;
          used += text_read(&r.reader, whole + used, end - used, &r.rows);
          for (int64_t e = 0; e < r.rows.indptr[r.rows.rows]; e++, entry++) {
            CHECK(entry_is(&r, e, all.rows.indices[entry], all.rows.values[entry]));
          }
          rows += r.rows.rows;
          if (r.reader.line == line) break;
        }
      }
      CHECK(!r.reader.failed && used == length);
      CHECK_EQUAL(rows, 4);
      CHECK_EQUAL(entry, all.rows.indptr[4]);
      release(&r);
    }
  }
  release(&all);
}

/* Bytes at random, mostly of those that mean something: nothing but rows within bounds comes out. */
static void test_noise(void) {
  static const char bytes[] = "0123456789::::,,  \t..eE+-naNinf#\r\n\n\n";
  dice d = {9};
  for (int i = 0; i < 20000; i++) {
    char text[60];
    int64_t const length = (int64_t)(dice_real(&d) * sizeof text);
    for (int64_t j = 0; j < length; j++) {
      double const u = dice_real(&d);
      text[j] = u < 0.02 ? (char)(256.0 * dice_real(&d) - 128.0)
                         : bytes[(int)(dice_real(&d) * (double)(sizeof bytes - 1))];
    }
    result r = read_text(text, length, i % 2, 1 + i % 4);
    CHECK(r.used >= 0 && r.used <= length);
    CHECK(r.rows.rows <= r.rows.most && r.rows.indptr[r.rows.rows] <= text_room(length));
    for (int64_t e = 0; e < r.rows.indptr[r.rows.rows]; e++) {
      CHECK(r.rows.indices[e] >= 0 && r.rows.indices[e] < INPUTS && !isinf(r.rows.values[e]));
    }
    release(&r);
  }
}

/* Features in falling, rising and random order. */
static void test_order(void) {
  dice d = {3};
  for (int i = 0; i < 300; i++) {
    int order[INPUTS];
    char text[200] = "";
    for (int j = 0; j < INPUTS; j++) order[j] = i % 3 == 0 ? INPUTS - 1 - j : j;
    for (int j = INPUTS - 1; j > 0 && i % 3 == 2; j--) {
      int const other = (int)(dice_real(&d) * (j + 1)), keep = order[j];
      order[j] = order[other];
      order[other] = keep;
    }
    for (int j = 0; j < INPUTS; j++) {
      size_t const at = strlen(text);
      (void)snprintf(text + at, sizeof text - at, "%d:%d%s", order[j], 10 * order[j],
                     j == INPUTS - 1 ? "\n" : " ");
    }
    result r = read_string(text);
    CHECK(!r.reader.failed);
    CHECK_EQUAL(r.rows.indptr[1], INPUTS);
    for (int32_t j = 0; j < INPUTS; j++) CHECK(entry_is(&r, j, j, 10.0 * j));
    release(&r);
  }
}

int main(void) {
  RUN(test_rows);
  RUN(test_one_based);
  RUN(test_header);
  RUN(test_malformed);
  RUN(test_malformed_header);
  RUN(test_zero_byte);
  RUN(test_numbers);
  RUN(test_pieces);
  RUN(test_noise);
  RUN(test_order);
  return mini_done("text");
}
