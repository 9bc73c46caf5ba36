/* Runs a fuzzed program on the kept inputs of a folder, with any compiler: fuzz_NAME FOLDER. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>

#include "fuzz.h"

/* In a block of its own length: nothing may be read behind it. */
static void run(const char *path) {
  unsigned char *const whole = mini_room(1 << 20, 1);
  FILE *const file = fopen(path, "rb");
  MUST(file != NULL);
  size_t const size = fread(whole, 1, 1 << 20, file);
  (void)fclose(file);
  unsigned char *const block = exactly((int64_t)size, 1);
  memcpy(block, whole, size);
  free(whole);
  (void)LLVMFuzzerTestOneInput(block, size);
  free(block);
}

int main(int count, char **argument) {
  DIR *const folder = count == 2 ? opendir(argument[1]) : NULL;
  int inputs = 0;
  MUST(folder != NULL);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char path[1000];
    if (entry->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "%.500s/%.255s", argument[1], entry->d_name);
    run(path);
    inputs++;
  }
  (void)closedir(folder);
  printf("%d inputs\n", inputs);
  return inputs == 0;
}
