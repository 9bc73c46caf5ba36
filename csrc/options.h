/* The table of options: ids, names, defaults, bounds, one line of text each. */
#ifndef RPO_OPTIONS_H
#define RPO_OPTIONS_H
#include "status.h"

#define RPO_OPTION_COUNT 28

struct rpo_options {
  double value[RPO_OPTION_COUNT];
};

double rpo_option_get(const rpo_options *options, rpo_option id);
int64_t rpo_option_whole(const rpo_options *options, rpo_option id);
void rpo_options_default(rpo_options *options);
/* Position of an id in the table, -1 when there is none. */
int rpo_option_find(int32_t id);
rpo_status rpo_options_check(int position, double value, rpo_error *err);
typedef struct rpo_option_row {
  rpo_option id;
  int whole; /* 1: whole numbers only */
  const char *name;
  double fallback, low, high;
  const char *text;
} rpo_option_row;
const rpo_option_row *rpo_option_table(void);
#endif
