/* Reading boosted models out: sums of trees instead of means. */
#ifndef RPO_SUMS_H
#define RPO_SUMS_H
#include "readout.h"

/* Predictions into r->out, or with r->k the best k. */
rpo_status rpo_sums_read(rpo_reading *reading, const rpo_control *control, rpo_error *err);
/* RPO_EINVAL for a boosted model, to which `what` does not apply. */
rpo_status rpo_refuse_boosted(const rpo_model *model, const char *what, rpo_error *err);
#endif
