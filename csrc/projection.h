/* Random subspaces of the output space (forest paper, section 2.2): drawing Phi, and Z = Y Phi^T.
 *
 * An entry of Phi depends on (seed, stream, component, output) only; columns are made for the outputs
 * that occur in Y and stored transposed, dense or as lists of non-zeros. */
#ifndef RPO_PROJECTION_H
#define RPO_PROJECTION_H
#include "par.h"
#include "target.h"

rpo_status rpo_projection_check(const rpo_projection *projection, int64_t d, rpo_error *err);
/* d: columns of the caller's Y. `target` is Y as read by rpo_target_new. Polls as part of a task. */
rpo_status rpo_project(const rpo_projection *projection, int64_t d, const rpo_target *target,
                       rpo_target *out, rpo_job *job, int thread, rpo_error *err);
/* The same as a job of its own. */
rpo_status rpo_project_all(const rpo_projection *projection, int64_t d, const rpo_target *target,
                           const rpo_control *control, rpo_target *out, rpo_error *err);
#endif
