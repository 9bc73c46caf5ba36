/* The best k of many scores. */
#ifndef RPO_TOPK_H
#define RPO_TOPK_H
#include <stdint.h>

/* A heap of the best so far, the worst of them on top; ties go to the lower output. */
typedef struct rpo_best {
  int64_t k, kept;
  double *score;
  int64_t *output;
} rpo_best;

static inline int rpo_worse(const rpo_best *b, int64_t i, int64_t j) {
  return b->score[i] < b->score[j] || (b->score[i] == b->score[j] && b->output[i] > b->output[j]);
}

static inline void rpo_swap(rpo_best *b, int64_t i, int64_t j) {
  double const score = b->score[i];
  int64_t const output = b->output[i];
  b->score[i] = b->score[j];
  b->output[i] = b->output[j];
  b->score[j] = score;
  b->output[j] = output;
}

static inline void rpo_sink(rpo_best *b, int64_t i, int64_t count) {
  for (;;) {
    int64_t least = i;
    for (int64_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
      if (rpo_worse(b, child, least)) least = child;
    }
    if (least == i) return;
    rpo_swap(b, i, least);
    i = least;
  }
}

static inline void rpo_keep(rpo_best *b, double score, int64_t output) {
  if (b->kept < b->k) {
    int64_t i = b->kept++;
    b->score[i] = score;
    b->output[i] = output;
    for (; i > 0 && rpo_worse(b, i, (i - 1) / 2); i = (i - 1) / 2) rpo_swap(b, i, (i - 1) / 2);
    return;
  }
  if (score < b->score[0] || (score == b->score[0] && output > b->output[0])) return;
  b->score[0] = score;
  b->output[0] = output;
  rpo_sink(b, 0, b->kept);
}

/* The worst leaves first and goes last. */
static inline void rpo_sort_best(rpo_best *b) {
  for (int64_t count = b->kept - 1; count > 0; count--) {
    rpo_swap(b, 0, count);
    rpo_sink(b, 0, count);
  }
}
#endif
