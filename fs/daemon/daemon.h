/* daemon.h - the daemon as a process: what main.c does, in this order.  Main thread only.
 *
 *   directories.c   checks the directories; guard.c: is the PFS there?
 *   daemonise.c     goes into the background; limits
 *   supervise.c     starts the daemon again when it dies (supervise.h)
 *   steps.c         starts the parts, in order; come.c: comes to the session
 *   signals.c       asks for the end, or ends the process
 *   finish.c        flushes, and stops the parts
 */
#ifndef EDDY_FS_DAEMON_DAEMON_H
#define EDDY_FS_DAEMON_DAEMON_H

#include "flush/flush_status.h"
#include "flush/flush.h"
#include "fs/daemon/options.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_ON_PFS = 3 };

/* ---- directories.c ---- */
/* Resolves the paths of `settings`, clears a dead mount.  0, or -errno after a message on standard
 * error. */
int check_directories(void);
/* For a daemon that is started again.  The dead mount stays as long as possible: programs that write there
 * meanwhile get an error, and do not fill the directory below it.  If it hides the PFS
 * directory itself, or if nothing will be mounted, it is cleared now.  0, or -errno after a message. */
int check_directories_again(bool will_mount);
/* Directly before the mount is made: clears what check_directories_again left.  0, or -errno
 * after a message. */
int clear_way_for_mount(void);
/* Is what is mounted there an eddyfs without a daemon?  Waits for a daemon that does not answer 5 s at most: then it lives. */
bool daemon_is_gone(const char *mountpoint);

/* ---- daemonise.c ---- */
/* Does nothing in the foreground.  Else it returns in the child only; the parent waits for say_ready, or ends
 * with the child's code. */
void daemonise(void);
/* In the supervisor, when it has started the first daemon: that daemon talks to the process that waits. */
void daemonise_supervisor(void);
/* The mount answers: says so, and closes the terminal. */
void say_ready(void);
/* umask, working directory, descriptors; no core dumps of the secret.  -ENOMEM after a message: its limits are too narrow. */
int set_up_process(void);

/* ---- steps.c ---- */
struct member;
/* Starts the parts up to step `last` (NULL: all).  0, or -errno after a message; started parts stay started.
 * replaced: called in the network thread when another daemon is in this node's place: it must end the
 * process. */
int steps_start(const struct options *with, const char *last,
                void (*replaced)(const struct member *by));
/* Stops the started parts, last first; the step down_to (may be NULL) and those before it stay. */
void steps_stop(const char *down_to);
/* The store is going to be closed in order, and all of it is then marked as on disk. */
void steps_end_clean(void);

/* ---- control.c: the socket CACHE_DIR/control for `eddy` ---- */
int control_start(char *err, size_t errlen);
void control_stop(void);

/* ---- queues.c: the socket for hints (placement/foresight/) ---- */
int queues_start(char *err, size_t errlen);
void queues_stop(void);

/* ---- report.c: --report ---- */
/* Refuses a directory that no report can be written to.  0, or -errno with a message in err. */
int report_start(char *err, size_t errlen);
void report_stop(void);
/* The report of this mount, which ends with so many files not on the PFS.  An error is logged: the mount ends all the same. */
void report_write(unsigned not_on_pfs);

/* ---- metrics_serve.c: --metrics ---- */
int metrics_start(char *err, size_t errlen);
void metrics_stop(void);

/* ---- finish.c ---- */
/* Without a mount: flushes all (progress and each get arg), calls each for every file that is not on the PFS
 * then, and stops all parts.  Returns the exit code: EXIT_OK or EXIT_NOT_ON_PFS. */
int flush_and_leave(bool (*progress)(void *arg, const struct flush_progress *p), unflushed_fn *each,
                    void *arg);
/* All parts are started: waits until the mount is gone, or a signal came.  Returns the exit code. */
int serve(void);
/* Without a mount, steps up to "flush" started: flushes what a dead daemon left.  Returns the exit
 * code. */
int recover(void);
/* For signals_start: logs what is not on the PFS, and ends the process. */
void leave_now(int signal);
/* For steps_start: the same, with a code that is not EXIT_OK.  Returns at once. */
void leave_to_other(const struct member *by);

#endif
