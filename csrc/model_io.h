/* Model files of any kind as bytes: reading, writing with a note. */
#ifndef RPO_MODEL_IO_H
#define RPO_MODEL_IO_H
#include "file.h"
#include "format.h"

rpo_status rpo_model_read(const char *path, int mapped, rpo_bytes *out, rpo_error *err);

/* Writes a block whose sections lie in the machine's order of bytes; a note takes the place of one that
 * is there. */
rpo_status rpo_model_write(const char *block, const char *path, const void *note,
                           int64_t note_bytes, rpo_error *err);
#endif
