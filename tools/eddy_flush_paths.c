/* eddy_flush_paths.c - eddy flush PATH...: just these files, on whichever node their latest bytes are.
 *
 * The daemon looks at the paths and walks the directories.  It only names symbolic links that it meets: those that lead into
 * the mount are asked for in another round, each once; the others are listed as skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_paths.h"
#include "tools/eddy_talk.h"

struct round {
    const struct flush_asked *asked;
    struct paths *paths;
    struct progress progress;
    uint64_t files, bytes; /* of all rounds */
};

/* One line of the daemon's answer. */
static void take_line(struct round *r, const json_t *line, bool last)
{
    const json_t *file = json_object_get(line, "file"), *link = json_object_get(line, "link");
    if (file)
        paths_failed_below(r->paths, json_text(file, "path"), json_text(file, "error"));
    else if (link)
        paths_add_link(r->paths, json_string_value(link));
    else if (json_object_get(line, "total_bytes"))
        progress_show(&r->progress, json_u64(line, "done_bytes"), json_u64(line, "total_bytes"));
    if (last) {
        r->files += json_u64(line, "files");
        r->bytes += json_u64(line, "bytes");
    }
}

static int hear(struct round *r, struct talk *t)
{
    bool last = false;
    int err = 0;
    while (!err && !last) {
        json_t *line;
        err = flush_next_line(&r->paths->mount, t, r->asked->deadline, &line, &last);
        if (err)
            break;
        if (last && json_object_get(line, "error")) {
            complain("%s: %s", r->paths->mount.mountpoint, json_text(line, "error"));
            err = -EREMOTEIO;
        } else {
            take_line(r, line, last);
        }
        json_decref(line);
    }
    progress_clear();
    return err;
}

static json_t *next_request(struct round *r)
{
    json_t *list = paths_next_part(r->paths);
    return json_pack("{s:o, s:b, s:b}", "paths", list, "wait", r->asked->wait, "more",
                     paths_left(r->paths));
}

static int ask(struct round *r)
{
    struct talk *t;
    int err = talk_begin(&r->paths->mount, "flush_paths", next_request(r), &t);
    if (err)
        return err;
    while (!err && paths_left(r->paths))
        err = talk_more(t, next_request(r));
    if (!err)
        err = hear(r, t);
    talk_end(t);
    return err;
}

static int ask_all(struct round *r)
{
    int err = 0;
    while (!err && paths_left(r->paths))
        err = ask(r);
    return err;
}

static void complain_of(const struct mount_entry *e, int err)
{
    if (err == -ECONNREFUSED)
        complain("%s: no daemon runs: \"eddy wait\" tells what is not on the PFS", e->mountpoint);
    else if (err == -ETIMEDOUT)
        complain("%s: the time is over, and not all is on the PFS", e->mountpoint);
    else if (err == -ECONNRESET)
        complain("%s: the daemon has ended: \"eddy wait\" tells what is not on the PFS",
                 e->mountpoint);
    else if (err != -EREMOTEIO)
        complain("%s: %s", e->mountpoint, talk_error(NULL, err));
}

static void show_text(const struct round *r, bool told)
{
    char size[24];
    const struct paths *p = r->paths;
    paths_print(p);
    if (told && !r->asked->wait && paths_any_good(p))
        printf("%llu file%s, %s: being written to the PFS\n", (unsigned long long)r->files,
               r->files == 1 ? "" : "s", size_format(r->bytes, size, sizeof(size)));
    const char *others = !told || !paths_any_good(p) ? "" : r->asked->wait ? "; all others are on the PFS" : "; all others are being written to it";
    if (json_array_size(p->failed))
        complain("%zu path%s failed, with the reasons above%s", json_array_size(p->failed), json_array_size(p->failed) == 1 ? "" : "s",
                 others);
}

/* told: the daemon has said how much it was. */
static void show_json(const struct round *r, bool told, int code)
{
    const struct paths *p = r->paths;
    json_t *o = json_pack("{s:s?, s:b, s:i, s:o, s:o, s:O, s:O}", "mountpoint", p->mount.mountpoint, "waited", r->asked->wait, "code",
                          code, "files", told ? json_integer((json_int_t)r->files) : json_null(), "bytes",
                          told ? json_integer((json_int_t)r->bytes) : json_null(), "failed", p->failed, "skipped", p->skipped);
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

static int code_of(const struct paths *p, int err)
{
    if (err)
        return err == -ETIMEDOUT ? TIMED_OUT : FAILED;
    size_t failed = json_array_size(p->failed);
    return !failed ? DONE : paths_any_good(p) ? PARTLY : FAILED;
}

int flush_paths(char **names, int n, const struct flush_asked *asked)
{
    struct paths p;
    struct round r = {.asked = asked, .paths = &p, .progress.what = "flushing"};
    paths_begin(&p, names, n);
    int err = ask_all(&r); /* nothing, if all names have failed */
    int code = code_of(&p, err);
    if (err)
        complain_of(&p.mount, err);
    if (asked->json)
        show_json(&r, !err, code);
    else
        show_text(&r, !err);
    paths_end(&p);
    return code;
}
