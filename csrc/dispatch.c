/* Picks the table of hot loops once a call: the widest instruction set that this processor has and
 * this library was built with. The variable RPO_ISA names a lower one, for tests. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

extern const rpo_kernels rpo_kernels_baseline;
#ifdef RPO_HAVE_AVX2
extern const rpo_kernels rpo_kernels_avx2;
#endif
#ifdef RPO_HAVE_AVX512
extern const rpo_kernels rpo_kernels_avx512;
#endif

static int allowed(const char *name, const char *wanted) {
  return wanted == NULL || strcmp(name, wanted) == 0;
}

const rpo_kernels *rpo_kernels_pick(void) {
  const char *const wanted = getenv("RPO_ISA");
#ifdef RPO_HAVE_AVX512
  if (allowed("avx512", wanted) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    return &rpo_kernels_avx512;
  }
#endif
#ifdef RPO_HAVE_AVX2
  if (allowed("avx2", wanted) && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")) {
    return &rpo_kernels_avx2;
  }
#endif
  (void)allowed;
  (void)wanted;
  return &rpo_kernels_baseline;
}
