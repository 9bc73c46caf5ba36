#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message that was cut short ends with a whole character of UTF-8. */
static void cut_whole(char *message) {
  size_t end = strlen(message), begin = end;
  while (begin > 0 && ((unsigned char)message[begin - 1] & 0xc0) == 0x80) begin--;
  if (begin == 0) return;
  unsigned char const lead = (unsigned char)message[begin - 1];
  size_t const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (end - begin + 1 < wanted) message[begin - 1] = 0;
}

void rpo_error_fill(rpo_error *err, rpo_status code, const char *format, ...) {
  va_list arguments;
  if (err == NULL) return;
  err->code = (int32_t)code;
  va_start(arguments, format);
  int const length = vsnprintf(err->message, sizeof err->message, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof err->message) cut_whole(err->message);
}
