/* Any bytes as lines for rpo-predict: rows within bounds or a reason, and the same however the text is
 * cut and whatever the room for rows. The first two bytes choose these; they are not of the text. */
#include "../../tools/text.h"

#include "fuzz.h"

/* A text in memory of exactly its length, and all that a reader makes of it. */
typedef struct lines {
  text_reader reader;
  int64_t rows, entries;
  int64_t *row; /* of each entry, counted from 0 */
  int64_t *index;
  double *value;
} lines;

static lines lines_new(int64_t inputs, int one_based, int64_t room) {
  lines l;
  memset(&l, 0, sizeof l);
  text_start(&l.reader, inputs, one_based);
  l.row = exactly(room, 8);
  l.index = exactly(room, 8);
  l.value = exactly(room, 8);
  return l;
}

static void lines_free(lines *l) {
  free(l->row);
  free(l->index);
  free(l->value);
}

/* Rows: in order, each feature once, ascending, within the model; values that doubles hold. */
static void take(lines *l, const text_rows *rows) {
  MUST(rows->indptr[0] == 0 && rows->rows >= 0 && rows->rows <= rows->most);
  for (int64_t i = 0; i < rows->rows; i++) {
    MUST(rows->indptr[i] <= rows->indptr[i + 1]);
    for (int64_t e = rows->indptr[i]; e < rows->indptr[i + 1]; e++) {
      MUST(rows->indices[e] >= 0 && rows->indices[e] < l->reader.inputs);
      MUST(e == rows->indptr[i] || rows->indices[e - 1] < rows->indices[e]);
      MUST(!isinf(rows->values[e]));
      l->row[l->entries] = l->rows + i;
      l->index[l->entries] = rows->indices[e];
      l->value[l->entries++] = rows->values[e];
    }
  }
  l->rows += rows->rows;
  MUST(l->rows == l->reader.rows);
}

/* As rpo-predict does: blocks of rows out of what is held, until no line is complete. */
static int64_t read_piece(lines *l, const uint8_t *text, int64_t length, int64_t most) {
  char *const held = exactly(length, 1);
  int64_t const room = text_room(length);
  text_rows rows = {0, most, exactly(most + 1, 8), exactly(room, 8), exactly(room, 8)};
  int64_t used = 0, line = -1;
  if (length > 0) memcpy(held, text, (size_t)length);
  while (!l->reader.failed && l->reader.line != line) {
    line = l->reader.line;
    int64_t const step = text_read(&l->reader, held + used, length - used, &rows);
    MUST(step >= 0 && step <= length - used);
    used += step;
    take(l, &rows);
  }
  MUST(used == 0 || held[used - 1] == '\n');
  free(rows.indptr);
  free(rows.indices);
  free(rows.values);
  free(held);
  return used;
}

static void finish(lines *l) {
  text_finish(&l->reader);
  if (!l->reader.failed) return;
  const char *const message = l->reader.message;
  MUST(message[0] != 0 && memchr(message, 0, sizeof l->reader.message) != NULL);
  for (int i = 0; message[i] != 0; i++) MUST(message[i] >= ' ' && message[i] <= '~');
}

static void check_same(const lines *a, const lines *b) {
  size_t const bytes = (size_t)a->entries * 8;
  MUST(a->rows == b->rows && a->entries == b->entries && a->reader.line == b->reader.line);
  MUST(a->reader.failed == b->reader.failed && strcmp(a->reader.message, b->reader.message) == 0);
  if (bytes == 0) return;
  MUST(memcmp(a->row, b->row, bytes) == 0 && memcmp(a->index, b->index, bytes) == 0);
  MUST(memcmp(a->value, b->value, bytes) == 0);
}

/* In one piece into one block, and cut in two into blocks of a few rows. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int64_t const inputs[] = {12, 1, 300, INT32_MAX};
  if (size < 2) return 0;
  int const one_based = data[0] % 2;
  int64_t const below = inputs[data[0] / 2 % 4], most = 1 + data[0] / 8 % 4;
  const uint8_t *const text = data + 2;
  int64_t const length = (int64_t)size - 2, cut = data[1] < length ? data[1] : length;
  lines whole = lines_new(below, one_based, text_room(length));
  lines pieces = lines_new(below, one_based, text_room(length));
  (void)read_piece(&whole, text, length, length + 1);
  finish(&whole);
  int64_t const used = read_piece(&pieces, text, cut, most);
  if (!pieces.reader.failed) (void)read_piece(&pieces, text + used, length - used, most);
  finish(&pieces);
  check_same(&whole, &pieces);
  lines_free(&whole);
  lines_free(&pieces);
  return 0;
}
