/* A short list of the best, kept sorted by insertion. */
#ifndef RPO_TOPK_H
#define RPO_TOPK_H
#include <stdint.h>

/* Puts (score, output) into a list of the best, best first, ties by lower output. */
static inline void rpo_keep_best(double score, int64_t output, int64_t k, int64_t *kept,
                                 int64_t *index, double *best) {
  if (*kept == k && !(score > best[k - 1] || (score == best[k - 1] && output < index[k - 1])))
    return;
  int64_t i = *kept < k ? (*kept)++ : k - 1;
  for (; i > 0 && (best[i - 1] < score || (best[i - 1] == score && index[i - 1] > output)); i--) {
    best[i] = best[i - 1];
    index[i] = index[i - 1];
  }
  best[i] = score;
  index[i] = output;
}
#endif
