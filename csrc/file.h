/* Files: reading them whole, mapping them, replacing them at once. Knows nothing of what is in them. */
#ifndef RPO_FILE_H
#define RPO_FILE_H
#include "status.h"

/* Bytes of a file in memory. */
typedef struct rpo_bytes {
  char *data;
  int64_t bytes;
  int mapped; /* 1: the file itself, read-only; else owned memory */
} rpo_bytes;

/* How long a file is that begins like this; RPO_EFORMAT: it need not be read on. */
typedef rpo_status (*rpo_length_fn)(const void *start, int64_t have, int64_t *bytes,
                                    rpo_error *err);

#define RPO_FILE_START 64 /* bytes that rpo_length_fn gets, unless the file is shorter */

/* Reads at most as many bytes as the file's beginning promises, and no memory is asked for that the file
 * does not fill at least half. */
rpo_status rpo_file_read(const char *path, rpo_length_fn length, rpo_bytes *out, rpo_error *err);
/* Maps it, or reads it where that is not possible. */
rpo_status rpo_file_map(const char *path, rpo_length_fn length, rpo_bytes *out, rpo_error *err);
void rpo_bytes_release(rpo_bytes *bytes);

typedef struct rpo_piece {
  const void *data;
  int64_t bytes;
} rpo_piece;

/* Writes pieces one behind the other to a new file, which then takes the place of `path`. */
rpo_status rpo_file_write(const char *path, const rpo_piece *pieces, int count, rpo_error *err);
#endif
