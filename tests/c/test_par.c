/* Tasks and the threads that run them. */
#if defined(__linux__)
#define _DEFAULT_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include "par.h"
#include "problem.h"

enum { TASKS = 64, THREADS = 4 };

typedef struct visits {
  int count[TASKS], thread[TASKS];
  long system[TASKS]; /* the system's number of the thread */
} visits;

static rpo_status visit(void *context, int64_t task, int thread, rpo_job *job, rpo_error *err) {
  visits *const v = context;
  double const began = rpo_now();
  (void)job;
  (void)err;
  v->count[task]++;
  v->thread[task] = thread;
#if defined(__linux__)
  v->system[task] = syscall(SYS_gettid);
#endif
  while (rpo_now() - began < 1e-4) continue; /* so that others come to theirs */
  return RPO_OK;
}

/* Each task is run once, by a thread that has scratch. */
static void tasks_once(void) {
  for (int threads = 1; threads <= 9; threads += 2) {
    rpo_control const control = threads_of(threads);
    for (int64_t tasks = 0; tasks <= TASKS; tasks = 2 * tasks + 1) {
      visits v;
      rpo_error err;
      memset(&v, 0, sizeof v);
      mini_context("%d threads, %d tasks", threads, (int)tasks);
      CHECK_OK(rpo_run(&control, tasks, visit, &v, &err), &err);
      for (int64_t t = 0; t < TASKS; t++) {
        CHECK_EQUAL(v.count[t], t < tasks);
        CHECK(v.thread[t] >= 0 && v.thread[t] < rpo_threads(&control, tasks));
      }
    }
  }
}

/* Jobs of few tasks and of many, in turn, are run by the same threads of the system. */
static void one_team(void) {
  static int const sizes[] = {TASKS, 2, 3, TASKS, 1};
  rpo_control const control = threads_of(THREADS);
  long known[THREADS + 1] = {0};
  int count = 0;
  for (int round = 0; round < 30; round++) {
    visits v;
    rpo_error err;
    memset(&v, 0, sizeof v);
    int const tasks = sizes[round % 5];
    CHECK_OK(rpo_run(&control, tasks, visit, &v, &err), &err);
    for (int t = 0; t < tasks && count <= THREADS; t++) {
      int at = 0;
      while (at < count && known[at] != v.system[t]) at++;
      if (at == count) known[count++] = v.system[t];
    }
  }
  CHECK(count >= 1 && count <= THREADS);
}

int main(void) {
  RUN(tasks_once);
  RUN(one_team);
  return mini_done("par");
}
