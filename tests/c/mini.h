/* A tiny test harness: every failed check is reported with its place and the run goes on; the
 * program ends with 1 when any failed. */
#ifndef MINI_H
#define MINI_H
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINI_MOST 100 /* reports printed: a broken loop must not fill the log */

static int64_t mini_checks = 0, mini_failures = 0;
static char mini_where[200] = ""; /* which case of a loop is running */

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static inline void mini_context(const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(mini_where, sizeof mini_where, format, args);
  va_end(args);
}

static inline int mini_report(int good, const char *file, int line, const char *text) {
  mini_checks++;
  if (good) return 1;
  if (mini_failures++ < MINI_MOST) {
    fprintf(stderr, "%s:%d: failed: %s%s%s\n", file, line, text, mini_where[0] ? " -- " : "",
            mini_where);
  }
  return 0;
}

static inline int mini_equal(int64_t a, int64_t b, const char *file, int line, const char *text) {
  char full[300];
  if (a == b) return mini_report(1, file, line, text);
  (void)snprintf(full, sizeof full, "%s: %lld is not %lld", text, (long long)a, (long long)b);
  return mini_report(0, file, line, full);
}

static inline int mini_near(double a, double b, double by, const char *file, int line,
                            const char *text) {
  char full[300];
  if (fabs(a - b) <= by || a == b) return mini_report(1, file, line, text);
  (void)snprintf(full, sizeof full, "%s: %.17g is not %.17g within %g", text, a, b, by);
  return mini_report(0, file, line, full);
}

#define CHECK(condition) mini_report((condition) ? 1 : 0, __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(a, b) mini_equal((int64_t)(a), (int64_t)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, by) mini_near((a), (b), (by), __FILE__, __LINE__, #a " ~ " #b)

#define RUN(test)           \
  do {                      \
    mini_context("%s", ""); \
    test();                 \
  } while (0)

static inline int mini_done(const char *name) {
  printf("%s: %lld checks, %lld failed\n", name, (long long)mini_checks, (long long)mini_failures);
  return mini_failures > 0;
}

/* Memory for tests, apart from the library's counted one. */
static inline void *mini_room(int64_t count, size_t size) {
  void *const block = calloc((size_t)(count > 0 ? count : 1), size);
  if (block == NULL) {
    fprintf(stderr, "the test itself has no memory\n");
    exit(1);
  }
  return block;
}

#endif
