#include "balance.h"

#include <math.h>
#include <string.h>

rpo_status rpo_balance_check(const rpo_labels *labels, int64_t kind, rpo_error *err) {
  if (labels->start == NULL || labels->value != NULL) {
    return rpo_fail(err, RPO_EINVAL, "balance needs labels in CSR form whose entries are all 1");
  }
  for (int64_t i = 0; i < labels->rows && kind == RPO_BALANCE_CLASSES; i++) {
    int64_t const classes = labels->start[i + 1] - labels->start[i];
    if (classes != 1) {
      return rpo_fail(err, RPO_EINVAL, "balance of classes needs 1 in each row, row %lld has %lld",
                      (long long)i, (long long)classes);
    }
  }
  return RPO_OK;
}

/* How often each column occurs in the sample; returns the draws in all. */
static double count_columns(const rpo_labels *labels, const double *counts, double *frequency) {
  double draws = 0.0;
  memset(frequency, 0, (size_t)labels->columns * sizeof *frequency);
  for (int64_t i = 0; i < labels->rows; i++) {
    if (counts[i] == 0.0) continue;
    draws += counts[i];
    for (int64_t e = labels->start[i]; e < labels->start[i + 1]; e++) {
      frequency[labels->index[e]] += counts[i];
    }
  }
  return draws;
}

/* One output: a class weighs draws / (classes in the sample * its frequency). */
static void balance_classes(const rpo_labels *labels, double draws, const double *frequency,
                            double *counts) {
  double classes = 0.0;
  for (int64_t j = 0; j < labels->columns; j++) classes += frequency[j] > 0.0;
  for (int64_t i = 0; i < labels->rows; i++) {
    if (counts[i] > 0.0)
      counts[i] *= draws / (classes * frequency[labels->index[labels->start[i]]]);
  }
}

/* A product whose factors may leave the range of doubles on the way: mantissa and exponent. */
typedef struct product {
  double mantissa;
  int64_t exponent;
} product;

static product times(product a, double factor) {
  int shift = 0;
  a.mantissa = frexp(a.mantissa * factor, &shift);
  a.exponent += shift;
  return a;
}

static product row_product(const rpo_labels *labels, int64_t row, product weight,
                           const double *ratio) {
  for (int64_t e = labels->start[row]; e < labels->start[row + 1]; e++) {
    weight = times(weight, ratio[labels->index[e]]);
  }
  return weight;
}

/* What is added to all exponents. Weights matter up to a common factor, and very many labels make
 * products outside the range of doubles: then the largest is brought to about 1. */
static int64_t common_shift(const rpo_labels *labels, product zeros, const double *ratio,
                            const double *counts) {
  int64_t largest = -INT64_MAX;
  for (int64_t i = 0; i < labels->rows; i++) {
    if (counts[i] == 0.0) continue;
    int64_t const exponent = row_product(labels, i, zeros, ratio).exponent;
    largest = exponent > largest ? exponent : largest;
  }
  return largest > 300 || largest < -300 ? -largest : 0;
}

/* Each column j is an output of two classes. With f of D draws in the sample, 1 weighs D / 2f and
 * 0 weighs D / 2(D - f), or either 1 where the other is absent. A row's weight is the product over
 * all columns: that of a row of zeros, and for each of its entries a ratio (D - f) / f. */
static void balance_labels(const rpo_labels *labels, double draws, double *frequency,
                           double *counts) {
  double *const ratio = frequency;
  product zeros = {1.0, 0};
  for (int64_t j = 0; j < labels->columns; j++) {
    double const f = frequency[j];
    int const both = f > 0.0 && f < draws;
    if (both) zeros = times(zeros, draws / (2.0 * (draws - f)));
    ratio[j] = both ? (draws - f) / f : 1.0;
  }
  zeros.exponent += common_shift(labels, zeros, ratio, counts);
  for (int64_t i = 0; i < labels->rows; i++) {
    if (counts[i] == 0.0) continue;
    product const weight = row_product(labels, i, zeros, ratio);
    int64_t const e = weight.exponent < -2000 ? -2000 : weight.exponent; /* 0 from here on */
    counts[i] *= ldexp(weight.mantissa, (int)e);
  }
}

void rpo_balance_sample(const rpo_labels *labels, int64_t kind, double *room, double *counts) {
  double const draws = count_columns(labels, counts, room);
  if (kind == RPO_BALANCE_LABELS) {
    balance_labels(labels, draws, room, counts);
  } else {
    balance_classes(labels, draws, room, counts);
  }
}
