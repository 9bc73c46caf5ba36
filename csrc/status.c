#include "status.h"

#include <stdarg.h>
#include <stdio.h>

void rpo_error_fill(rpo_error *err, rpo_status code, const char *format, ...) {
  va_list arguments;
  if (err == NULL) return;
  err->code = (int32_t)code;
  va_start(arguments, format);
  (void)vsnprintf(err->message, sizeof err->message, format, arguments);
  va_end(arguments);
}

void rpo_error_clear(rpo_error *err) {
  if (err != NULL) {
    err->code = RPO_OK;
    err->message[0] = '\0';
  }
}
