/* How much memory the process holds, where that can be told. */
#ifndef MEMORY_H
#define MEMORY_H
#include <stdint.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_IS_TOLD 0 /* what was freed is kept for a while */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMORY_IS_TOLD 0
#endif
#endif
#ifndef MEMORY_IS_TOLD
#define MEMORY_IS_TOLD 1
#endif

/* Bytes in memory (Linux); 0: not known. */
static inline int64_t memory_held(void) {
  long long size = 0, resident = 0;
  FILE *const file = MEMORY_IS_TOLD ? fopen("/proc/self/statm", "r") : NULL;
  if (file == NULL) return 0;
  if (fscanf(file, "%lld %lld", &size, &resident) != 2) resident = 0;
  (void)fclose(file);
  return (int64_t)resident * 4096;
}

#endif
