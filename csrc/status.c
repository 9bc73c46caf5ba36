#include "status.h"

#include <stdarg.h>
#include <stdio.h>

rpo_status rpo_fail(rpo_error *err, rpo_status code, const char *format, ...) {
  if (err != NULL) {
    va_list arguments;
    err->code = (int32_t)code;
    va_start(arguments, format);
    (void)vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
  }
  return code;
}

rpo_status rpo_fail_memory(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_ENOMEM, "out of memory for %s", what);
}

void rpo_error_clear(rpo_error *err) {
  if (err != NULL) {
    err->code = RPO_OK;
    err->message[0] = '\0';
  }
}
