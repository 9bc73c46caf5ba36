/* Status codes and error sentences. Neighbours: every other file. */
#ifndef RPO_STATUS_H
#define RPO_STATUS_H
#include <stddef.h>

#include "rpo.h"

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void rpo_error_fill(rpo_error *err, rpo_status code, const char *format, ...);

/* Fills *err (NULL allowed) and is `code`: in sight of whoever calls, so that compilers and analysers
 * know that what follows is not reached. */
#define rpo_fail(err, code, ...) (rpo_error_fill(err, code, __VA_ARGS__), (code))

static inline rpo_status rpo_fail_memory(rpo_error *err, const char *what) {
  return rpo_fail(err, RPO_ENOMEM, "out of memory for %s", what);
}

void rpo_error_clear(rpo_error *err);

#define RPO_TRY(call)                                    \
  do {                                                   \
    rpo_status const rpo_try_status = (call);            \
    if (rpo_try_status != RPO_OK) return rpo_try_status; \
  } while (0)

/* For functions that own something: leaves through the label `done` with `status` set. */
#define RPO_GOTO(call)               \
  do {                               \
    status = (call);                 \
    if (status != RPO_OK) goto done; \
  } while (0)
#endif
