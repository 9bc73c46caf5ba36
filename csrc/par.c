#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif
#include "par.h"

#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <time.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#if !defined(_WIN32)
#include <pthread.h>
#endif
#endif

#ifdef RPO_TEST_HOOKS
double rpo_poll_seconds = 0.05;
#define POLL_SECONDS rpo_poll_seconds
#else
#define POLL_SECONDS 0.05
#endif

double rpo_now(void) {
#if defined(_WIN32)
  LARGE_INTEGER count, rate;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&rate);
  return (double)count.QuadPart / (double)rate.QuadPart;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
}

#ifdef _OPENMP
static void nap(long nanoseconds) {
#if defined(_WIN32)
  Sleep(nanoseconds < 1000000 ? 0 : 1);
#else
  struct timespec const length = {0, nanoseconds};
  nanosleep(&length, NULL);
#endif
}

/* libgomp's threads do not survive fork(): a child that used them would wait for ever. The flag is
 * the library's only state; it is set in the child of a process that has run in parallel. */
#if !defined(_WIN32)
static volatile int forked = 0;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static void in_child(void) { forked = 1; }
static void watch_fork(void) { (void)pthread_atfork(NULL, NULL, in_child); }
#endif
#endif

#ifdef _OPENMP
/* A process that asks OpenMP for more threads than the system gives is ended by it. */
static int most_threads(void) {
  int const limit = omp_get_thread_limit(), procs = omp_get_num_procs();
  int const enough = procs < 4 ? 16 : procs > 1024 ? 4096 : 4 * procs;
  return limit < enough ? limit : enough;
}
#endif

int rpo_threads(const rpo_control *control, int64_t tasks) {
#ifdef _OPENMP
  int threads = control != NULL && control->n_threads > 1 ? control->n_threads : 1;
  if (threads > 1 && threads > most_threads()) threads = most_threads();
#if !defined(_WIN32)
  if (threads > 1) {
    (void)pthread_once(&fork_once, watch_fork);
    if (forked) threads = 1;
  }
#endif
  return tasks < threads ? (tasks < 1 ? 1 : (int)tasks) : threads;
#else
  (void)control;
  (void)tasks;
  return 1;
#endif
}

int64_t rpo_add(int64_t *counter, int64_t by) {
  int64_t value;
#ifdef _OPENMP
#pragma omp atomic capture seq_cst
#endif
  {
    value = *counter;
    *counter += by;
  }
  return value;
}

static int64_t read_before(const int64_t *counter) {
  int64_t value;
#ifdef _OPENMP
#pragma omp atomic read seq_cst
#endif
  value = *counter;
  return value;
}

void rpo_feed_add(rpo_feed *feed) { (void)rpo_add(&feed->made, 1); }

void rpo_feed_end(rpo_feed *feed) { (void)rpo_add(&feed->over, 1); }

static void stop(rpo_job *job) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
  job->stop = 1;
}

int rpo_poll(rpo_job *job, int thread) {
  if (rpo_stopped(job)) return 1;
  const rpo_control *const control = job->control;
  if (thread != 0 || control == NULL || control->progress == NULL) return 0;
  double const now = rpo_now();
  if (now - job->last_poll < POLL_SECONDS) return 0;
  job->last_poll = now;
  int64_t done;
#ifdef _OPENMP
#pragma omp atomic read
#endif
  done = job->done;
  if (control->progress(control->user, done, job->total) == 0) return 0;
  stop(job);
  return 1;
}

#define SPINS 2000 /* tens of microseconds */

int64_t rpo_feed_take(rpo_feed *feed, rpo_job *job, int thread) {
  int64_t const task = rpo_add(&feed->taken, 1);
  for (int64_t spins = 0; !rpo_poll(job, thread); spins++) {
    int64_t const over = read_before(&feed->over); /* first: what is made before it counts */
    if (task < read_before(&feed->made)) return task;
    if (over > 0) return -1;
#ifdef _OPENMP
    if (spins > SPINS) nap(50000);
#endif
  }
  return -1;
}

rpo_status rpo_keep_on(rpo_job *job, int thread, rpo_error *err) {
  if (!rpo_poll(job, thread)) return RPO_OK;
  return rpo_fail(err, RPO_ECANCELED, "cancelled by the progress callback");
}

/* Not a critical section: a named one exports a symbol that is not ours. */
static void keep_first_error(rpo_job *job, rpo_status status, const rpo_error *error) {
  if (rpo_add(&job->failed, 1) == 0) {
    job->status = status;
    job->error = *error;
  }
  stop(job);
}

/* The next task of a thread, -1 when there is none: of its own share first, then of those after it. */
static int64_t next_task(rpo_job *job, int thread) {
  for (int i = 0; i < job->shares; i++) {
    rpo_share *const share = &job->share[(thread + i) % job->shares];
    int64_t const task = rpo_add(&share->next, 1);
    if (task < share->end) return task;
  }
  return -1;
}

/* Threads without a share have none of the callers' scratch. */
static void work(rpo_job *job, rpo_task_fn run, void *context, int thread) {
  while (thread < job->threads) {
    int64_t const task = rpo_poll(job, thread) ? -1 : next_task(job, thread);
    if (task < 0) break;
    rpo_error error = {RPO_OK, 0, {0}};
    rpo_status const status = run(context, task, thread, job, &error);
    if (status != RPO_OK) keep_first_error(job, status, &error);
    (void)rpo_add(&job->done, 1);
  }
  (void)rpo_add(&job->gone, 1);
}

static void share_out(rpo_job *job) {
  job->shares = job->threads < RPO_SHARES ? job->threads : RPO_SHARES;
  for (int i = 0; i < job->shares; i++) {
    job->share[i].next = job->total / job->shares * i + job->total % job->shares * i / job->shares;
    if (i > 0) job->share[i - 1].end = job->share[i].next;
  }
  job->share[job->shares - 1].end = job->total;
}

#ifdef _OPENMP
/* The calling thread has run out of tasks: it goes on polling while the others finish theirs, which
 * may be soon, or not. */
static void wait_polling(rpo_job *job, int threads) {
  for (long length = 10000;; length = length < 500000 ? 2 * length : 1000000) {
    int64_t gone;
#pragma omp atomic read
    gone = job->gone;
    if (gone >= threads) break;
    (void)rpo_poll(job, 0);
    nap(length);
  }
}
#endif

rpo_status rpo_run(const rpo_control *control, int64_t tasks, rpo_task_fn run, void *context,
                   rpo_error *err) {
  rpo_job job;
  memset(&job, 0, sizeof job);
  job.control = control;
  job.total = tasks;
  job.threads = rpo_threads(control, tasks);
  job.last_poll = rpo_now();
  share_out(&job);
#ifdef _OPENMP
  if (job.threads > 1) {
    /* Always the same team: OpenMP ends threads that a smaller one has no use for, and the next larger
     * one would make them again. */
    int const team = rpo_threads(control, INT32_MAX);
#pragma omp parallel num_threads(team)
    {
      int const thread = omp_get_thread_num();
      work(&job, run, context, thread);
      if (thread == 0 && control->progress != NULL) wait_polling(&job, omp_get_num_threads());
    }
  } else
#endif
  {
    work(&job, run, context, 0);
  }
  if (job.status != RPO_OK) {
    if (err != NULL) *err = job.error;
    return job.status;
  }
  if (job.stop) return rpo_fail(err, RPO_ECANCELED, "cancelled by the progress callback");
  return RPO_OK;
}
