/* eddy_flush.c - eddy flush MNT, and the flush before an unmount; eddy flush PATH...: eddy_flush_paths.c. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"

#define SILENT_MS 5000

int parse_timeout(const char *text, uint64_t *deadline)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !isfinite(seconds) || seconds < 0 || seconds > 1e9)
        return -EINVAL;
    *deadline = boot_ms() + (uint64_t)(seconds * 1000);
    return 0;
}

/* One line of the daemon's answer. */
static void take_line(const json_t *line, struct progress *progress, struct unflushed_list *failed)
{
    const json_t *file = json_object_get(line, "file");
    if (file)
        unflushed_add_json(failed, file);
    else if (json_object_get(line, "total_bytes"))
        progress_show(progress, json_u64(line, "done_bytes"), json_u64(line, "total_bytes"));
}

/* A few times a second the daemon says how much it has done, also while the PFS hangs. */
int flush_next_line(const struct mount_entry *e, struct talk *t, uint64_t deadline, json_t **line,
                    bool *last)
{
    bool silent = false;
    for (;;) {
        uint64_t look = MIN(deadline, boot_ms() + SILENT_MS);
        int err = talk_next(t, look, line, last);
        if (err != -ETIMEDOUT || look == deadline)
            return err;
        if (!silent)
            complain("%s: its daemon does not answer: waiting for it", e->mountpoint);
        silent = true;
    }
}

int flush_by_daemon(const struct mount_entry *e, const char *what, json_t *args, uint64_t deadline,
                    struct unflushed_list *failed)
{
    struct progress progress = {.what = "flushing"};
    struct talk *t;
    bool last = false;
    int err = talk_begin(e, what, args, &t);
    if (err)
        return err;
    while (!err && !last) {
        json_t *line;
        err = flush_next_line(e, t, deadline, &line, &last);
        if (err)
            break;
        take_line(line, &progress, failed);
        if (last && json_object_get(line, "error")) {
            complain("%s: %s", e->mountpoint, json_text(line, "error"));
            err = -EREMOTEIO;
        }
        json_decref(line);
        if (!err && failed->n > CONTROL_FILES_MAX)
            err = -EPROTO; /* no daemon of ours */
    }
    progress_clear();
    talk_end(t);
    return err;
}

static const char *interrupt_text;

/* Nothing is left to do: the daemon sees that nobody waits any more. */
static void interrupted(int signal)
{
    (void)signal;
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, "\r\033[K", 4) < 0)
        _exit(INTERRUPTED);
    if (write(STDERR_FILENO, interrupt_text, strlen(interrupt_text)) < 0)
        _exit(INTERRUPTED);
    _exit(INTERRUPTED);
}

void await_interrupt(const char *text)
{
    struct sigaction before;
    interrupt_text = text;
    if (!sigaction(SIGINT, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &(struct sigaction){.sa_handler = interrupted}, NULL);
}

static void show_mount_json(const struct mount_entry *e, const struct unflushed_list *failed, int code)
{
    json_t *list = json_array();
    for (size_t i = 0; i < failed->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "path", failed->files[i].path, "bytes",
                                              (json_int_t)failed->files[i].bytes, "reason",
                                              failed->files[i].reason));
    json_t *o = json_pack("{s:s, s:b, s:i, s:o}", "mountpoint", e->mountpoint, "waited", true, "code", code,
                          "failed", list);
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

static int flush_mount(const struct mount_entry *e, bool retry, const struct flush_asked *asked)
{
    struct unflushed_list failed = {0};
    json_t *args = retry ? json_pack("{s:b}", "retry", true) : NULL;
    int err = flush_by_daemon(e, "flush", args, asked->deadline, &failed);
    int code = err == -ETIMEDOUT ? TIMED_OUT : err ? FAILED : failed.n ? NOT_ON_PFS : DONE;
    if (err == -ECONNREFUSED)
        complain("%s: no daemon runs: \"eddy wait\" tells what is not on the PFS", e->mountpoint);
    else if (err == -ETIMEDOUT)
        complain("%s: the time is over, and not all is on the PFS", e->mountpoint);
    else if (err && err != -EREMOTEIO)
        complain("%s: the daemon has not finished: %s", e->mountpoint, strerror(-err));
    if (asked->json)
        show_mount_json(e, &failed, code);
    else
        unflushed_print(&failed);
    if (failed.n)
        complain("%zu file%s not on the PFS; the data stays in the cache and is tried again",
                 failed.n, failed.n == 1 ? " is" : "s are");
    unflushed_free(&failed);
    return code;
}

/* ---- the command ---- */

/* One name that is or was a mount: all that this node has. */
static bool is_mount(const char *name, struct mount_entry *e)
{
    return !mount_map_find(name, e);
}

static int flush_named(char **names, int n, bool retry, const struct flush_asked *asked)
{
    struct mount_entry e;
    if (n == 1 && is_mount(names[0], &e)) {
        int code = flush_mount(&e, retry, asked);
        mount_entry_free(&e);
        return code;
    }
    if (!retry)
        return flush_paths(names, n, asked);
    if (n == 1)
        find_mount(names[0], &e); /* complains */
    return n == 1 ? FAILED : usage_of("flush");
}

int flush_main(int argc, char **argv)
{
    static const struct option options[] = {{"retry", no_argument, NULL, 'r'},
                                            {"wait", no_argument, NULL, 'w'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct flush_asked asked = {.deadline = NO_DEADLINE};
    bool retry = false;
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("flush");
        if (c == '?')
            return usage_of("flush");
        if (c == 't' && parse_timeout(optarg, &asked.deadline)) {
            complain("--timeout %s: give a number of seconds", optarg);
            return WRONG_USAGE;
        }
        retry |= c == 'r';
        asked.wait |= c == 'w' || c == 't';
        asked.json |= c == 'j';
    }
    if (argc == optind)
        return usage_of("flush");
    await_interrupt("eddy: interrupted: what is being written now is written to its end; the rest is written when its "
                    "time comes\n");
    return flush_named(argv + optind, argc - optind, retry, &asked);
}
