/* Rows of features from text, in svmlight's form or that of the extreme classification repository:
 *
 *   label,label feature:value feature:value ...
 *
 * Labels are numbers, checked and left out; a row may have none, beginning with a space or with its
 * first feature. Features come in any order, each once. Values are decimal numbers or nan (missing).
 * Between them stand spaces and tabs; lines end with LF or CRLF.
 *
 * When the first line is three whole numbers, those of rows, features and labels, it is the header of
 * an extreme classification file: then every line is a row, also an empty one, and there must be as
 * many as it says. Otherwise lines that are empty but for a comment, # to the end of the line, are
 * skipped.
 *
 * Pure computation on the caller's memory: nothing is read, allocated or printed here. */
#ifndef RPO_TEXT_H
#define RPO_TEXT_H
#include <stdint.h>

typedef struct text_reader {
  int64_t inputs;    /* numbers of features are below this, ... */
  int64_t first;     /* ... counted from 0 or 1 */
  int64_t line;      /* lines read so far */
  int64_t rows;      /* rows read so far */
  int64_t announced; /* rows that the header says, -1: there was no header */
  int failed;        /* 1: the last line read is malformed, message says how */
  char message[160];
} text_reader;

/* A block of rows in CSR form. */
typedef struct text_rows {
  int64_t rows;     /* filled */
  int64_t most;     /* room for this many rows */
  int64_t *indptr;  /* most + 1 */
  int64_t *indices; /* text_room(length) of each call */
  double *values;   /* the same */
} text_rows;

/* Most features that a text of `length` bytes can hold: each takes four, as in "1:2\n". */
static inline int64_t text_room(int64_t length) { return length / 4; }

/* `inputs` is at most 2^31 - 1, one_based 0 or 1. */
void text_start(text_reader *reader, int64_t inputs, int one_based);

/* Replaces `out` by the rows of the first complete lines of text, at most out->most, and returns the
 * bytes they took; the rest is to be given again with what follows it. At the end of the input the last
 * line must end like all others. Stops before a malformed line and sets reader->failed: the rows before
 * it are good. */
int64_t text_read(text_reader *reader, const char *text, int64_t length, text_rows *out);

/* After the last line: sets reader->failed when rows are missing. */
void text_finish(text_reader *reader);

#endif
