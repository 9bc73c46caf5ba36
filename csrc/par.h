/* Threads, time and cancelling: the only user of OpenMP. Work is a number of tasks, handed out one
 * by one; a task owns what it writes, so results never depend on who ran it. Each thread begins with
 * tasks of a share of its own, the same in every run of as many tasks, so that what it touched is
 * still in its caches; then it takes what others have left. */
#ifndef RPO_PAR_H
#define RPO_PAR_H
#include "status.h"

typedef struct rpo_job rpo_job;

/* One task; `thread` is below the job's thread count. */
typedef rpo_status (*rpo_task_fn)(void *context, int64_t task, int thread, rpo_job *job,
                                  rpo_error *err);

enum { RPO_SHARES = 64 }; /* threads beyond share one */

typedef struct rpo_share { /* tasks next .. end - 1 are free; alone in its cache line */
  int64_t next, end;
  int64_t apart[6];
} rpo_share;

struct rpo_job {
  const rpo_control *control; /* NULL: one thread, no progress */
  int64_t total;              /* tasks, as told to progress */
  int64_t done, failed, gone; /* shared counters: tasks, errors, threads that found no more */
  int threads, shares;
  int stop; /* set once, on error or cancel: everybody leaves; read by rpo_stopped */
  double last_poll;
  rpo_status status;
  rpo_error error;
  rpo_share share[RPO_SHARES];
};

/* True once everybody should leave. As cheap as a plain reading, but no data race. */
static inline int rpo_stopped(const rpo_job *job) {
  int stop;
#ifdef _OPENMP
#pragma omp atomic read
#endif
  stop = job->stop;
  return stop;
}

/* Adds to a counter that threads share; returns what it was. What was written before is seen by whoever
 * sees the sum. */
int64_t rpo_add(int64_t *counter, int64_t by);

/* Tasks that one thread makes while others do them, in the order they are made in. */
typedef struct rpo_feed {
  int64_t made, taken, over;
} rpo_feed;

void rpo_feed_add(rpo_feed *feed); /* what the task needs is written before */
void rpo_feed_end(rpo_feed *feed); /* no more are made */
/* The number of a task, for this thread alone; waits for it to be made. -1: there are no more, or
 * everybody leaves. */
int64_t rpo_feed_take(rpo_feed *feed, rpo_job *job, int thread);

double rpo_now(void); /* seconds on a clock that only goes forward */

/* Threads a call may use: the control's, 1 without OpenMP or in the child of a fork. */
int rpo_threads(const rpo_control *control, int64_t tasks);

/* Runs all tasks; the first error wins. */
rpo_status rpo_run(const rpo_control *control, int64_t tasks, rpo_task_fn run, void *context,
                   rpo_error *err);

/* For long tasks: true when the task should give up with RPO_ECANCELED. Asks the caller's progress
 * function when it is due and this is the calling thread (0). Costs a clock reading: call it about
 * every 50 microseconds of work. */
int rpo_poll(rpo_job *job, int thread);
/* The same as a status: RPO_ECANCELED when the caller has had enough. */
rpo_status rpo_keep_on(rpo_job *job, int thread, rpo_error *err);

#ifdef RPO_TEST_HOOKS
extern double rpo_poll_seconds; /* least time between two calls of progress; 0: each poll is one */
#endif
#endif
