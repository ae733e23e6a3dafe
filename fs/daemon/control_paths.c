/* control_paths.c - `eddy flush PATH...`: these files are written to the PFS now, by the nodes that have them.
 *
 *     control_walk.h --> on the PFS: done; here, at a node: asked.h
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "flush/asked.h"
#include "fs/daemon/control_walk.h"
#include "placement/pfs/pfs_fid.h"

#define SAY_MS 200

struct flushing {
    struct walk_said said;
    struct asked *asked;
};

/* ---- what is said meanwhile ---- */

static void say_progress(struct flushing *w, const struct flush_progress *p)
{
    json_t *line = json_object();
    control_put(line, "done_bytes", p->done_bytes);
    control_put(line, "total_bytes", p->total_bytes);
    control_put(line, "files_left", p->files_left);
    walk_say(&w->said, line);
    w->said.said_ms = boot_ms();
}

static bool goes_on(void *arg)
{
    struct flushing *w = arg;
    if (!w->said.gone && boot_ms() - w->said.said_ms >= SAY_MS) {
        struct flush_progress p = {.done_bytes = 0};
        asked_count(w->asked, &p.files_left, &p.total_bytes);
        say_progress(w, &p);
    }
    w->said.gone |= control_unwanted(w->said.c);
    return !w->said.gone;
}

/* ---- the request ---- */

static int say_each_failed(void *arg, const char *path, uint64_t node, int err)
{
    char why[512];
    struct flushing *w = arg;
    const char *text = err == -EAGAIN      ? "it does not answer: try again in a few seconds"
                       : err == -ECANCELED ? "the daemon is ending"
                                           : strerror(-err);
    snprintf(why, sizeof(why), "%s%s%s%s", node ? "node " : "", node ? members_name(node) : "",
             node ? ": " : "", text);
    walk_say_failed(&w->said, path, why);
    return w->said.gone;
}

static void wait_for_all(struct flushing *w)
{
    struct flush_progress p;
    while (!asked_wait(w->asked, SAY_MS, &p) && !w->said.gone) {
        say_progress(w, &p);
        w->said.gone |= control_unwanted(w->said.c);
    }
    if (!w->said.gone)
        asked_each_failed(w->asked, say_each_failed, w);
}

/* Takes the walk's asked files. */
static json_t *flush_found(struct flushing *w, bool wait)
{
    uint64_t files, bytes;
    asked_count(w->asked, &files, &bytes);
    if (!w->said.gone)
        asked_begin(w->asked);
    if (wait && !w->said.gone)
        wait_for_all(w);
    asked_leave(w->asked, !wait || !w->said.gone);
    if (w->said.gone)
        return control_error("the daemon is ending, or nobody waits for the answer");
    json_t *end = json_object();
    control_put(end, "files", files);
    control_put(end, "bytes", bytes);
    control_put(end, "failed", w->said.failed);
    return end;
}

static void add_file(void *arg, const char *path, const struct statx *stx, const struct location *at)
{
    struct flushing *w = arg;
    if (at->where != WHERE_PFS)
        asked_add(w->asked, fid_of(stx), path, at);
}

static json_t *walk_and_flush(struct connection *c, const struct walk_paths *p, bool wait)
{
    struct flushing w = {.said = {.c = c, .said_ms = boot_ms()}, .asked = asked_new()};
    const struct walk_calls calls = {
        .arg = &w, .file = add_file, .goes_on = goes_on, .said = &w.said};
    walk_all(p, &calls);
    return flush_found(&w, wait);
}

json_t *control_flush_paths(struct connection *c, const json_t *request)
{
    struct walk_paths p = {.n = 0};
    json_t *end = walk_take_paths(c, request, SIZE_MAX, &p)
                      ? walk_and_flush(c, &p, json_is_true(json_object_get(request, "wait")))
                      : control_error("this is no list of paths");
    walk_paths_free(&p);
    return end;
}
