/* rpo-predict: scores of the rows of a text file by a saved model, in blocks of rows, so that memory
 * follows the longest line and not the file. Uses nothing but rpo.h and the reader beside it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpo.h"
#include "text.h"

enum { DONE = 0, FAILED = 1, MISUSED = 2 };

#define FIRST_BUFFER (1 << 20)     /* bytes of text read at a time */
#define LARGEST_BUFFER (1LL << 28) /* a longer line is refused */
#define MOST_ROWS 4096             /* of a block */
#define MOST_SCORES (1LL << 22)    /* of a block, with --all */

static const char help[] =
    "usage: rpo-predict [options] MODEL FILE\n"
    "       rpo-predict --info MODEL\n"
    "\n"
    "Reads rows of features from FILE (-: standard input) and prints, a line for each row, what\n"
    "MODEL (a file saved by librpo or pyrpo) predicts: its best labels as label:score, best "
    "first.\n"
    "\n"
    "FILE is in svmlight's form, 'label,label feature:value ...', labels being left out, or in "
    "that\n"
    "of the extreme classification repository, which begins with a header 'rows features labels'.\n"
    "\n"
    "  -k, --k N          labels a row (default: 5, or all when there are fewer)\n"
    "  -a, --all          the scores of all outputs instead, separated by spaces\n"
    "  -t, --threads N    threads (default: 1)\n"
    "  -1, --one-based    features are counted from 1, not from 0; output labels always from 0\n"
    "  -s, --single       round values to single precision, as pyrpo.datasets does by default\n"
    "  -d, --digits N     significant digits of scores, 1 to 17 (default: 6)\n"
    "  -p, --sigmoid      print 1 / (1 + e^-score): the probabilities of a boosted classifier\n"
    "      --info         what the model is\n"
    "  -h, --help         this text\n"
    "  -V, --version      the version of librpo\n"
    "\n"
    "Ends with 0, with 1 when a file is unreadable or malformed, with 2 when misused.\n";

typedef struct options {
  const char *model, *file;
  int64_t k; /* 0: not given */
  int32_t threads;
  int all, one_based, single, digits, sigmoid, info;
} options;

/* What scoring needs at hand, made once and as large as a block. */
typedef struct scoring {
  const options *o;
  const rpo_forest *forest;
  int64_t outputs, k;
  text_reader reader;
  text_rows rows;
  char *buffer;
  int64_t room; /* of buffer */
  int64_t *label;
  double *score;
} scoring;

static int complain(const char *what, const char *why) {
  (void)fflush(stdout);
  fprintf(stderr, "rpo-predict: %s%s%s\n", what, why[0] ? ": " : "", why);
  return FAILED;
}

/* ---- Options ---- */

/* What was printed has arrived. */
static int told(int printed) { return printed < 0 || fflush(stdout) != 0 ? FAILED : DONE; }

static int misuse(const char *what, const char *value) {
  fprintf(stderr, "rpo-predict: %s %s (--help tells the options)\n", what, value);
  return MISUSED;
}

static int parse_count(const char *name, const char *text, long long most, long long *out) {
  char *end;
  if (text == NULL) return misuse("a number must follow", name);
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (end == text || *end != 0 || errno != 0 || *out < 1 || *out > most) {
    fprintf(stderr, "rpo-predict: %s must be a whole number from 1 to %lld, got '%s'\n", name, most,
            text);
    return MISUSED;
  }
  return DONE;
}

static int is(const char *argument, const char *brief, const char *full) {
  return strcmp(argument, brief) == 0 || strcmp(argument, full) == 0;
}

/* One argument, and the next when it is its value: *used. */
static int parse_option(options *o, const char *name, const char *next, int *used) {
  long long number;
  int status = DONE;
  *used = 1;
  if (is(name, "-a", "--all")) {
    o->all = 1;
  } else if (is(name, "-1", "--one-based")) {
    o->one_based = 1;
  } else if (is(name, "-s", "--single")) {
    o->single = 1;
  } else if (is(name, "-p", "--sigmoid")) {
    o->sigmoid = 1;
  } else if (strcmp(name, "--info") == 0) {
    o->info = 1;
  } else if (is(name, "-k", "--k")) {
    status = parse_count(name, next, INT32_MAX, &number);
    if (status == DONE) o->k = number;
    *used = 2;
  } else if (is(name, "-t", "--threads")) {
    status = parse_count(name, next, 4096, &number);
    if (status == DONE) o->threads = (int32_t)number;
    *used = 2;
  } else if (is(name, "-d", "--digits")) {
    status = parse_count(name, next, 17, &number);
    if (status == DONE) o->digits = (int)number;
    *used = 2;
  } else {
    status = misuse("there is no option", name);
  }
  return status;
}

static int parse_arguments(options *o, int argc, char **argv) {
  int only_names = 0; /* after -- */
  for (int i = 1; i < argc;) {
    const char *const name = argv[i];
    int used = 1, status = DONE;
    if (!only_names && strcmp(name, "--") == 0) {
      only_names = 1;
    } else if (!only_names && name[0] == '-' && name[1] != 0) {
      status = parse_option(o, name, i + 1 < argc ? argv[i + 1] : NULL, &used);
    } else if (o->model == NULL) {
      o->model = name;
    } else if (o->file == NULL) {
      o->file = name;
    } else {
      status = misuse("one file at a time, not also", name);
    }
    if (status != DONE) return status;
    i += used;
  }
  if (o->model == NULL) return misuse("which", "MODEL?");
  if (o->file == NULL && !o->info) return misuse("which", "FILE? (-: standard input)");
  if (o->all && o->k > 0) return misuse("either --all or", "--k");
  return DONE;
}

/* ---- Printing ---- */

static double shown(const options *o, double score) {
  return o->sigmoid ? 1.0 / (1.0 + exp(-score)) : score;
}

static void print_rows(const scoring *s) {
  int const digits = s->o->digits;
  for (int64_t i = 0; i < s->rows.rows; i++) {
    for (int64_t j = 0; j < s->k; j++) {
      int64_t const at = i * s->k + j;
      double const score = shown(s->o, s->score[at]);
      if (j > 0) (void)putchar(' ');
      if (s->o->all) {
        printf("%.*g", digits, score);
      } else {
        printf("%lld:%.*g", (long long)s->label[at], digits, score);
      }
    }
    (void)putchar('\n');
  }
}

static int print_info(const rpo_forest *forest) {
  int64_t note = 0;
  int64_t const trees = rpo_forest_trees(forest);
  int64_t nodes = 0;
  for (int64_t t = 0; t < trees; t++) nodes += rpo_forest_tree_nodes(forest, t);
  (void)rpo_forest_note(forest, &note);
  printf("kind: %s\n", rpo_forest_is_boosted(forest) ? "boosted trees" : "forest");
  printf("features: %lld\n", (long long)rpo_forest_inputs(forest));
  printf("outputs: %lld\n", (long long)rpo_forest_outputs(forest));
  printf("trees: %lld\n", (long long)trees);
  printf("nodes: %lld\n", (long long)nodes);
  printf("training rows: %lld\n", (long long)rpo_forest_rows(forest));
  printf("keeps training labels: %s\n", rpo_forest_has_rows(forest) ? "yes" : "no");
  printf("bytes: %lld\n", (long long)rpo_forest_bytes(forest));
  printf("bytes of the saver's own: %lld\n", (long long)note);
  return DONE;
}

/* ---- Scoring ---- */

static int predict_block(scoring *s) {
  text_rows const *const rows = &s->rows;
  rpo_control const control = {s->o->threads, 0, NULL, NULL, NULL};
  rpo_error err;
  rpo_status status;
  int64_t const entries = rows->indptr[rows->rows];
  if (rows->rows == 0) return DONE;
  for (int64_t e = 0; s->o->single && e < entries; e++) {
    rows->values[e] = (double)(float)rows->values[e];
  }
  rpo_matrix X = {rows->rows, s->reader.inputs, RPO_CSR,      RPO_F64, RPO_I64, 0, rows->values, 0,
                  0,          rows->indptr,     rows->indices};
  status = s->o->all
               ? rpo_forest_predict(s->forest, &X, &control, s->score, &err)
               : rpo_forest_predict_topk(s->forest, &X, s->k, &control, s->label, s->score, &err);
  if (status != RPO_OK) return complain("cannot predict", err.message);
  print_rows(s);
  return ferror(stdout) ? complain("cannot write", strerror(errno)) : DONE;
}

/* Memory for text, and for the features that so much of it can hold. */
static int make_room(scoring *s, int64_t room) {
  size_t const entries = (size_t)text_room(room) + 1;
  char *const buffer = realloc(s->buffer, (size_t)room + 1);
  if (buffer != NULL) s->buffer = buffer;
  int64_t *const indices = realloc(s->rows.indices, entries * sizeof *indices);
  if (indices != NULL) s->rows.indices = indices;
  double *const values = realloc(s->rows.values, entries * sizeof *values);
  if (values != NULL) s->rows.values = values;
  if (buffer == NULL || indices == NULL || values == NULL) {
    return complain("out of memory", s->o->file);
  }
  s->room = room;
  return DONE;
}

static int make_block(scoring *s) {
  int64_t most = MOST_ROWS;
  s->outputs = rpo_forest_outputs(s->forest);
  s->k = s->o->all ? s->outputs : s->o->k > 0 ? s->o->k : s->outputs < 5 ? s->outputs : 5;
  if (s->k > s->outputs) {
    fprintf(stderr, "rpo-predict: --k must be at most the model's %lld outputs, got %lld\n",
            (long long)s->outputs, (long long)s->k);
    return MISUSED;
  }
  if (most > MOST_SCORES / s->k) most = s->k < MOST_SCORES ? MOST_SCORES / s->k : 1;
  s->rows.most = most;
  s->rows.indptr = malloc((size_t)(most + 1) * sizeof *s->rows.indptr);
  s->score = malloc((size_t)(most * s->k) * sizeof *s->score);
  s->label = s->o->all ? NULL : malloc((size_t)(most * s->k) * sizeof *s->label);
  if (s->rows.indptr == NULL || s->score == NULL || (s->label == NULL && !s->o->all)) {
    return complain("out of memory", s->o->file);
  }
  text_start(&s->reader, rpo_forest_inputs(s->forest), s->o->one_based);
  return make_room(s, FIRST_BUFFER);
}

static int malformed(const scoring *s, int64_t line) {
  char place[64];
  const char *const file = strcmp(s->o->file, "-") == 0 ? "standard input" : s->o->file;
  (void)snprintf(place, sizeof place, "line %lld", (long long)line);
  (void)fflush(stdout);
  fprintf(stderr, "rpo-predict: %s, %s: %s\n", file, place, s->reader.message);
  return FAILED;
}

/* Scores the complete lines of the buffer and keeps the rest of its *held bytes. */
static int score_lines(scoring *s, int64_t *held) {
  int64_t used = 0;
  for (;;) {
    int64_t const lines = s->reader.line;
    int64_t const step = text_read(&s->reader, s->buffer + used, *held - used, &s->rows);
    used += step;
    int const status = predict_block(s);
    if (status != DONE) return status;
    if (s->reader.failed) return malformed(s, s->reader.line);
    if (s->reader.line == lines) break;
  }
  *held -= used;
  memmove(s->buffer, s->buffer + used, (size_t)*held);
  return DONE;
}

static int is_gzip(const char *text, int64_t length) {
  return length >= 2 && text[0] == '\x1f' && text[1] == '\x8b';
}

static int score_file(scoring *s, FILE *file) {
  int64_t held = 0;
  int status = DONE, ended = 0, begun = 0;
  while (status == DONE && !ended) {
    if (held == s->room) {
      if (s->room >= LARGEST_BUFFER) {
        (void)snprintf(s->reader.message, sizeof s->reader.message, "is longer than %lld bytes",
                       LARGEST_BUFFER);
        return malformed(s, s->reader.line + 1);
      }
      status = make_room(s, 2 * s->room);
      if (status != DONE) break;
    }
    held += (int64_t)fread(s->buffer + held, 1, (size_t)(s->room - held), file);
    if (ferror(file)) return complain(s->o->file, strerror(errno));
    if (!begun && is_gzip(s->buffer, held)) {
      return complain(s->o->file, "is compressed: gzip -dc FILE | rpo-predict MODEL -");
    }
    begun = 1;
    ended = held < s->room;
    if (ended && held > 0 && s->buffer[held - 1] != '\n') s->buffer[held++] = '\n';
    status = score_lines(s, &held);
  }
  if (status != DONE) return status;
  text_finish(&s->reader);
  return s->reader.failed ? malformed(s, s->reader.line + 1) : DONE;
}

static int score(const options *o, const rpo_forest *forest) {
  scoring s;
  memset(&s, 0, sizeof s);
  s.o = o;
  s.forest = forest;
  int const standard = strcmp(o->file, "-") == 0;
  FILE *const file = standard ? stdin : fopen(o->file, "rb");
  if (file == NULL) return complain(o->file, strerror(errno));
  int status = make_block(&s);
  if (status == DONE) status = score_file(&s, file);
  if (!standard) (void)fclose(file);
  free(s.buffer);
  free(s.rows.indptr);
  free(s.rows.indices);
  free(s.rows.values);
  free(s.label);
  free(s.score);
  return status;
}

int main(int argc, char **argv) {
  options o = {NULL, NULL, 0, 1, 0, 0, 0, 6, 0, 0};
  rpo_forest *forest = NULL;
  rpo_error err;
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (is(argv[i], "-h", "--help")) return told(fputs(help, stdout));
    if (is(argv[i], "-V", "--version")) return told(printf("%s\n", rpo_version()));
  }
  int status = parse_arguments(&o, argc, argv);
  if (status != DONE) return status;
  if (rpo_forest_load(o.model, &forest, &err) != RPO_OK) return complain(o.model, err.message);
  status = o.info ? print_info(forest) : score(&o, forest);
  rpo_forest_free(forest);
  if (fflush(stdout) != 0 && status == DONE) status = complain("cannot write", strerror(errno));
  return status;
}
