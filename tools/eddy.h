/* eddy.h - what the files of `eddy` share.  One thread, and no state that outlives a command.
 *
 *   eddy.c           the commands, their help, messages
 *   eddy_status.c    eddy status
 *   eddy_stats.c     eddy stats, eddy metrics (eddy_stats.h)
 *   eddy_report.c    eddy report (eddy_report.h)
 *   eddy_figures.c   what these two share (eddy_figures.h)
 *   eddy_flush.c     eddy flush MNT
 *   eddy_flush_paths.c  eddy flush PATH...; eddy_paths.c: the paths of a command
 *   eddy_umount.c    eddy umount, eddy wait
 *   eddy_check.c     eddy check
 *   eddy_clean.c     eddy clean
 *   eddy_forget.c    eddy forget
 *   eddy_recover.c   eddy recover
 *   eddy_hint.c      eddy hint (tools/lib/eddy.h)
 *   eddy_stage.c     eddy stage, eddy unstage; eddy_stage_ask.c: --status, --cancel
 *   eddy_ring.c      eddy ring
 *   eddy_mounts.c    finding a mount, unmounting it, aborting its connection
 *   eddy_busy.c      which processes keep a mount busy
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
#include "tools/eddy_files.h"
#include "transport/base.h"

enum exit_code { DONE = 0, FAILED = 1, WRONG_USAGE = 2, NOT_ON_PFS = 3, CONFLICT = 4, PARTLY = 5, DOES_NOT_FIT = 6, TIMED_OUT = 124,
                 INTERRUPTED = 130 };

#define NO_DEADLINE UINT64_MAX /* deadlines are boot_ms() */

/* ---- eddy.c ---- */
/* "eddy: ...\n" on standard error, on one line and printable; the progress line is cleared first. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says how the command is used on standard error; returns WRONG_USAGE. */
int usage_of(const char *command);
/* As getopt_long; at '?' it has complained. */
struct option;
int next_option(int argc, char **argv, const char *shorts, const struct option *longs);
/* Prints the command's help; returns DONE. */
int help_of(const char *command);

int status_main(int argc, char **argv);
int stats_main(int argc, char **argv);
int metrics_main(int argc, char **argv);
int report_main(int argc, char **argv);
int flush_main(int argc, char **argv);
int umount_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int clean_main(int argc, char **argv);
int check_main(int argc, char **argv);
int forget_main(int argc, char **argv);
int recover_main(int argc, char **argv);
int ring_main(int argc, char **argv);
int hint_main(int argc, char **argv);
int stage_main(int argc, char **argv);
int unstage_main(int argc, char **argv);

/* ---- eddy_flush.c ---- */
struct unflushed_list;
/* Lets the daemon flush everything, with a progress line.  what: "flush" or "umount"; args may be NULL, and
 * are dropped.  The files that it could not flush are put into failed.  0: it has answered; -ETIMEDOUT;
 * -ECONNREFUSED, -ECONNRESET: there is no daemon, or it has ended; -EREMOTEIO: a message was printed. */
int flush_by_daemon(const struct mount_entry *e, const char *what, json_t *args, uint64_t deadline,
                    struct unflushed_list *failed);
/* A number of seconds from now on as a deadline.  -EINVAL */
int parse_timeout(const char *text, uint64_t *deadline);
/* On SIGINT, from now on: the text, a line, and the end with INTERRUPTED.  A shell's job in the background ignores it, and so does
 * this. */
void await_interrupt(const char *text);
/* As talk_next; complains once of a daemon that says nothing. */
struct talk;
int flush_next_line(const struct mount_entry *e, struct talk *t, uint64_t deadline, json_t **line,
                    bool *last);

/* ---- eddy_flush_paths.c ---- */
struct flush_asked {
    bool wait, json;
    uint64_t deadline;
};
/* The whole command; returns its exit code. */
int flush_paths(char **names, int n, const struct flush_asked *asked);

#endif
