/* Runs a fuzzed program on kept inputs, with any compiler: replay FILE... */
#include "fuzz.h"

static unsigned char *read_file(const char *path, size_t *size) {
  FILE *const file = fopen(path, "rb");
  size_t room = 1 << 20;
  unsigned char *const block = mini_room((int64_t)room, 1);
  if (file == NULL) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  *size = fread(block, 1, room, file);
  (void)fclose(file);
  return block;
}

int main(int count, char **path) {
  for (int i = 1; i < count; i++) {
    size_t size;
    unsigned char *const whole = read_file(path[i], &size);
    unsigned char *const block = exactly((int64_t)size, 1); /* nothing may be read behind it */
    memcpy(block, whole, size);
    free(whole);
    (void)LLVMFuzzerTestOneInput(block, size);
    free(block);
  }
  printf("%d inputs\n", count - 1);
  return count < 2;
}
