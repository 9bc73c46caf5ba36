/* Calls that run out of memory at every allocation in turn. */
#ifndef STARVE_H
#define STARVE_H
#include "mem.h"
#include "mini.h"
#include "rpo.h"

typedef rpo_status (*attempt)(void *context, rpo_error *err);

/* Runs `call` until it succeeds. The call checks its own outputs. */
static inline void until_it_succeeds(attempt call, void *context) {
  int64_t const live = rpo_mem_live;
  for (int64_t n = 0; n < 5000; n++) {
    rpo_error err;
    char where[sizeof mini_where];
    memset(&err, 0, sizeof err);
    memcpy(where, mini_where, sizeof where);
    rpo_mem_fail_after = n;
    rpo_status const status = call(context, &err);
    rpo_mem_fail_after = -1;
    if (status == RPO_OK) {
      CHECK(n > 0); /* the hook was met at least once */
      return;
    }
    mini_context("%.150s, allocation %lld fails", where, (long long)n);
    CHECK_EQUAL(status, RPO_ENOMEM);
    CHECK_EQUAL(err.code, RPO_ENOMEM);
    CHECK(strlen(err.message) > 0);
    CHECK_EQUAL(rpo_mem_live, live);
    mini_context("%s", where);
  }
  CHECK(0); /* never enough */
}

#endif
