/* priority.c - copying in a lull runs at idle CPU and I/O priority, and only the copying.
 *
 * If a thread takes a lock at idle priority, an application that then waits for the lock may itself keep
 * the thread from running.  So writers have idle priority only during the PFS write itself, which takes none
 * of our locks.
 *
 * Leaving SCHED_IDLE needs CAP_SYS_NICE, or an RLIMIT_NICE that allows the thread's nice value
 * (sched(7)).  As a rule a user has neither.  Then SCHED_BATCH is used, which a thread may always leave.
 * I/O priority may always be changed.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flush/flush_int.h"

#define IOPRIO_WHO_THREAD  1
#define IOPRIO_CLASS_NONE  0
#define IOPRIO_CLASS_IDLE  3
#define IOPRIO_CLASS_SHIFT 13

static int idle_policy = SCHED_BATCH;
static pthread_once_t tried = PTHREAD_ONCE_INIT;

static int set_policy(int policy)
{
    struct sched_param p = {.sched_priority = 0};
    return pthread_setschedparam(pthread_self(), policy, &p);
}

/* In a thread of its own, which may stay idle for the rest of its short life. */
static void *try_idle(void *arg)
{
    if (set_policy(SCHED_IDLE) == 0 && set_policy(SCHED_OTHER) == 0)
        *(int *)arg = SCHED_IDLE;
    return NULL;
}

static void find_policy(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, try_idle, &idle_policy) == 0)
        pthread_join(t, NULL);
}

static void set_io(int class)
{
    syscall(SYS_ioprio_set, IOPRIO_WHO_THREAD, 0, class << IOPRIO_CLASS_SHIFT);
}

void priority_idle(void)
{
    pthread_once(&tried, find_policy);
    set_policy(idle_policy);
    set_io(IOPRIO_CLASS_IDLE);
}

void priority_normal(void)
{
    set_policy(SCHED_OTHER);
    set_io(IOPRIO_CLASS_NONE);
}
