/* eddy_flush.c - eddy flush, and the flush before an unmount. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static int next_line(const struct mount_entry *e, struct talk *t, uint64_t deadline, json_t **line,
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
        err = next_line(e, t, deadline, &line, &last);
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

static int flush_mount(const struct mount_entry *e, bool retry)
{
    struct unflushed_list failed = {0};
    json_t *args = retry ? json_pack("{s:b}", "retry", true) : NULL;
    int err = flush_by_daemon(e, "flush", args, NO_DEADLINE, &failed);
    int code = err ? FAILED : failed.n ? NOT_ON_PFS : DONE;
    if (err == -ECONNREFUSED)
        complain("%s: no daemon runs: \"eddy wait\" tells what is not on the PFS", e->mountpoint);
    else if (err && err != -EREMOTEIO)
        complain("%s: the daemon has not finished: %s", e->mountpoint, strerror(-err));
    unflushed_print(&failed);
    if (failed.n)
        complain("%zu file%s not on the PFS; the data stays in the cache and is tried again",
                 failed.n, failed.n == 1 ? " is" : "s are");
    unflushed_free(&failed);
    return code;
}

int flush_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"retry", no_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct mount_entry e;
    bool retry = false;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h')
            return help_of("flush");
        if (c != 'r')
            return usage_of("flush");
        retry = true;
    }
    if (argc - optind != 1)
        return usage_of("flush");
    if (find_mount(argv[optind], &e))
        return FAILED;
    int code = flush_mount(&e, retry);
    mount_entry_free(&e);
    return code;
}
