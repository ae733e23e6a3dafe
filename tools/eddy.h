/* eddy.h - what the files of `eddy` share.  One thread, and no state that outlives a command.
 *
 *   eddy.c           the commands, their help, messages
 *   eddy_status.c    eddy status
 *   eddy_flush.c     eddy flush
 *   eddy_umount.c    eddy umount, eddy wait
 *   eddy_check.c     eddy check
 *   eddy_forget.c    eddy forget
 *   eddy_recover.c   eddy recover
 *   eddy_ring.c      eddy ring; --simulate: eddy_simulate.h
 *   eddy_mounts.c    finding a mount, unmounting it, aborting its connection
 *   eddy_busy.c      who keeps a mount busy
 *   eddy_lock.c      waiting for the end of a daemon
 *   eddy_talk.c      asking a daemon
 *   eddy_progress.c  the progress line
 *   eddy_files.c     the files that are not on the PFS, as they are shown
 */
#ifndef EDDY_TOOLS_EDDY_H
#define EDDY_TOOLS_EDDY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/daemon/control.h"
#include "fs/mountinfo.h"
#include "transport/base.h"

enum exit_code { DONE = 0, FAILED = 1, WRONG_USAGE = 2, NOT_ON_PFS = 3, CONFLICT = 4 };

#define NO_DEADLINE UINT64_MAX /* deadlines are boot_ms() */

/* ---- eddy.c ---- */
/* "eddy: ...\n" on standard error; the progress line is cleared first. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says how the command is used on standard error; returns WRONG_USAGE. */
int usage_of(const char *command);
/* Prints the command's help; returns DONE. */
int help_of(const char *command);

int status_main(int argc, char **argv);
int flush_main(int argc, char **argv);
int umount_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int check_main(int argc, char **argv);
int forget_main(int argc, char **argv);
int recover_main(int argc, char **argv);
int ring_main(int argc, char **argv);

/* ---- eddy_flush.c ---- */
struct unflushed_list;
/* Has the daemon flush everything (what: "flush" or "umount"; args may be NULL, and are dropped), with
 * a progress line.  The files
 * that it could not flush come into failed.  0: it has answered; -ETIMEDOUT; -ECONNREFUSED,
 * -ECONNRESET: there is no daemon, it has gone; -EREMOTEIO: complained of. */
int flush_by_daemon(const struct mount_entry *e, const char *what, json_t *args, uint64_t deadline,
                    struct unflushed_list *failed);
/* A number of seconds from now on as a deadline.  -EINVAL */
int parse_timeout(const char *text, uint64_t *deadline);

/* ---- eddy_mounts.c ---- */
/* The mount at this path, mounted now or before; complains.  0 or -errno. */
int find_mount(const char *path, struct mount_entry *out);
/* The mount that a file is in, or in the PFS directory of which it is (the longest counts), and its
 * path below that in *below (malloc'd).  -ENOENT: none of this user's; -errno. */
int find_mount_of_file(const char *path, struct mount_entry *out, char **below);
/* 0; -EBUSY; -errno, complained of (but EBUSY). */
int unmount(const char *path, bool lazily);
/* Ends the mount's connection to its daemon: whoever waits for it gets ENOTCONN.  -errno. */
int abort_connection(const struct mounted *m);
/* Descriptor of the cache directory, checked to be its owner's.  -errno. */
int open_cache_dir(const struct mount_entry *e);

/* ---- eddy_busy.c ---- */
/* Complains of each process that uses the mount, as far as they can be seen; returns how many. */
unsigned complain_of_users(const struct mounted *m);

/* ---- eddy_lock.c ---- */
/* Does a daemon have this cache directory's lock, or is one to be started again?  -ENOENT: there is
 * no such directory, or no lock in it. */
int daemon_runs(const struct mount_entry *e, bool *runs);
/* None serves the mount now: what is mounted there does not work. */
bool daemon_is_dead(const struct mount_entry *e);
/* Waits until none has; tick (may be NULL) is called about once a second, and ends the wait by false.
 * 0, -ETIMEDOUT, -ECANCELED (by tick), -errno. */
int wait_for_daemon(const struct mount_entry *e, uint64_t deadline, bool (*tick)(void *arg),
                    void *arg);

/* ---- eddy_talk.c ---- */
struct talk;
/* Asks the daemon of this mount; args are dropped (may be NULL).  -ECONNREFUSED: no daemon answers
 * there. */
int talk_begin(const struct mount_entry *e, const char *what, json_t *args, struct talk **out);
/* The next line; *last: no other comes.  0; -ETIMEDOUT; -ECONNRESET: the daemon has gone; -EPROTO.
 */
int talk_next(struct talk *t, uint64_t deadline, json_t **line, bool *last);
void talk_end(struct talk *t);
/* A request with one line of answer.  0; -EREMOTEIO: the daemon says why not in *answer's "error";
 * -errno. */
int talk_once(const struct mount_entry *e, const char *what, json_t *args, uint64_t timeout_ms,
              json_t **answer);
/* The text of the answer's "error", else that of err. */
const char *talk_error(const json_t *answer, int err);

uint64_t json_u64(const json_t *o, const char *key);     /* 0 if there is none */
const char *json_text(const json_t *o, const char *key); /* "" */

/* ---- eddy_progress.c ---- */
struct progress {
    const char *what; /* "flushing" */
    uint64_t last_ms, last_bytes, shown_ms;
    double rate; /* bytes per second */
};
/* On a terminal: "flushing: 1.0 GiB of 3.2 GiB, 500.0 MiB/s, 5 s left". */
void progress_show(struct progress *p, uint64_t done, uint64_t total);
void progress_clear(void);

/* ---- eddy_files.c ---- */
/* With the cache directory: the store says -EUCLEAN of what is unflushed in it. */
#define UNFLUSHED_DAMAGED                                                                          \
    "%s: some of its records (slabs/) are damaged: more files than are named here may not be on "  \
    "the PFS; compare those that were written with what the PFS has"

struct unflushed {
    char *path; /* escaped: one line */
    char *reason;
    uint64_t bytes;
};
struct unflushed_list {
    struct unflushed *files;
    size_t n;
};
void unflushed_add(struct unflushed_list *l, const char *escaped_path, uint64_t bytes,
                   const char *reason);
/* From {"file": {...}} or an element of failed_files. */
void unflushed_add_json(struct unflushed_list *l, const json_t *file);
/* One line each on standard output. */
void unflushed_print(const struct unflushed_list *l);
void unflushed_sort(struct unflushed_list *l);
const char *unflushed_reason(const struct unflushed_list *sorted,
                             const char *escaped_path); /* NULL: not in it */
void unflushed_free(struct unflushed_list *l);
/* Asks the daemon what is not on the PFS now.  timeout_ms: of its silence. */
int unflushed_ask(const struct mount_entry *e, uint64_t timeout_ms, struct unflushed_list *l);

#endif
