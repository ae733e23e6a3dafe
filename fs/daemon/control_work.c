/* control_work.c - the requests of `eddy` that do something or look at the PFS: flush, unflushed,
 * where, check. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flush/flush.h"
#include "fs/daemon/control_int.h"
#include "fs/daemon/last_view.h"
#include "fs/mount.h"
#include "fs/settings.h"
#include "placement/claims/claim.h"
#include "placement/lend.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/ring/ring.h"
#include "placement/store/store_open.h"
#include "transport/marks.h"
#include "transport/members.h"
#include "transport/session.h"
#include "transport/view.h"

/* ---- flush ---- */

static bool on_progress(void *arg, const struct flush_progress *p)
{
    struct connection *c = arg;
    if (control_unwanted(c))
        return false;
    json_t *o = json_object();
    control_put(o, "done_bytes", p->done_bytes);
    control_put(o, "total_bytes", p->total_bytes);
    control_put(o, "files_left", p->files_left);
    return control_say(c, o) == 0;
}

static int say_each(struct connection *c, const char *key, json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        json_t *line = json_object();
        json_object_set(line, key, item);
        int err = control_say(c, line);
        if (err)
            return err;
    }
    return 0;
}

static void say_files(struct connection *c, bool only_failed, json_t *end)
{
    uint64_t total;
    json_t *list = control_files(only_failed, &total);
    say_each(c, "file", list);
    control_put(end, "files", total);
    json_decref(list);
}

/* The file is whole on the PFS when its borrower has come back: nobody else has those bytes. */
static void add_away(void *arg, const struct loan_status *s)
{
    const struct view *v = members_view();
    json_t *o, *list = arg;
    if (s->node && !(v && view_absent(v, s->node)))
        return;
    o = json_object();
    control_put_text(o, "path", s->path);
    control_put(o, "bytes", s->bytes);
    control_put_text(o, "borrower", s->node ? members_name(s->node) : "?");
    json_array_append_new(list, o);
}

static size_t say_away(struct connection *c)
{
    json_t *list = json_array();
    lend_each(add_away, list);
    size_t n = json_array_size(list);
    say_each(c, "file", list);
    json_decref(list);
    return n;
}

json_t *control_flush(struct connection *c, const json_t *request)
{
    bool retry = json_is_true(json_object_get(request, "retry"));
    if (!retry)
        lend_finish();
    int err = retry ? flush_retry(on_progress, c) : flush_all(on_progress, c);
    if (err == -ECANCELED)
        return control_error("the daemon is ending, or nobody waits for the answer");
    json_t *end = json_object();
    if (err)
        say_files(c, true, end);
    size_t away = say_away(c);
    json_object_set_new(end, "flushed", json_boolean(!err && !away));
    return end;
}

/* The flush before an unmount.  The end also waits for the cache's disk, so writing to that disk begins now,
 * while the PFS gets the data. */
json_t *control_umount(struct connection *c, const json_t *request)
{
    store_write_out_begin();
    return control_flush(c, request);
}

json_t *control_unflushed(struct connection *c, const json_t *request)
{
    (void)request;
    json_t *end = json_object();
    say_files(c, false, end);
    return end;
}

/* ---- abort ---- */

json_t *control_abort(struct connection *c, const json_t *request)
{
    (void)c;
    (void)request;
    if (mount_is_up())
        log_warn("eddy removes the mount: processes that use it get errors");
    mount_abort();
    return json_object();
}

/* ---- where ---- */

int control_find(const char *path, struct statx *stx, struct pfs_node **out)
{
    struct pfs_node *node = pfs_ref(pfs_root());
    int err = pfs_stat(node, stx);
    char *copy = xstrdup(path), *rest = copy;
    for (char *name; !err && (name = strsep(&rest, "/"));) {
        if (!*name || !strcmp(name, "."))
            continue;
        err = strcmp(name, "..") ? pfs_lookup(node, name, stx) : -EINVAL;
        if (err)
            break;
        struct pfs_node *child = pfs_child_as(node, name, fid_of(stx), NULL);
        pfs_unref(node);
        node = child;
    }
    free(copy);
    if (err)
        pfs_unref(node);
    else
        *out = node;
    return err;
}

int control_find_file(const char *path, struct statx *stx)
{
    struct pfs_node *node;
    int err = control_find(path, stx, &node);
    if (!err)
        pfs_unref(node);
    return err;
}

/* Where the latest bytes are, and how many. */
static void put_latest(json_t *o, struct fid fid, uint64_t pfs_size)
{
    struct location at;
    int err = claim_where(fid, LOOK_NONE, &at);
    bool lost = !err && at.where == WHERE_LOST;
    control_put(o, "size",
                !err && (at.where == WHERE_HERE || at.where == WHERE_NODE) ? at.size : pfs_size);
    if (err)
        control_put_text(o, "latest", "not known now");
    else if (at.where == WHERE_PFS)
        control_put_text(o, "latest", "PFS");
    else
        control_put_text(o, "latest",
                         members_name(at.where == WHERE_HERE ? members_self() : at.node));
    json_object_set_new(o, "lost", json_boolean(lost));
}

json_t *control_where(struct connection *c, const json_t *request)
{
    (void)c;
    const char *path = json_string_value(json_object_get(request, "path"));
    json_t *o = json_object();
    const struct view *v = last_view();
    json_object_set_new(o, "members", control_members(v));
    control_put(o, "view", v ? v->number : 0);
    control_put(o, "chunk_size", settings.chunk_size);
    if (!path || !*path)
        return o;
    struct statx stx;
    char text[FID_TEXT];
    int err = control_find_file(path, &stx);
    if (err || !S_ISREG(stx.stx_mode)) {
        json_decref(o);
        return control_error("%s: %s", path,
                             err ? strerror(-err) : "is not a regular file: it has no chunks");
    }
    control_put_text(o, "fid", fid_text(fid_of(&stx), text));
    put_latest(o, fid_of(&stx), stx.stx_size);
    return o;
}

/* ---- check ---- */

static int add_dirty(void *arg, const char *session, uint64_t node, const char *node_name,
                     struct fid fid, const char *path)
{
    (void)fid;
    json_t *list = arg, *o = json_object();
    control_put_text(o, "session", session);
    control_put_text(o, "node", node_name);
    control_put_id(o, "id", node);
    control_put_text(o, "path", path);
    json_array_append_new(list, o);
    return 0;
}

static int add_unfinished(void *arg, const char *session, uint64_t node, const char *node_name)
{
    json_t *list = arg, *o = json_object();
    control_put_text(o, "session", session);
    control_put_text(o, "node", node_name);
    control_put_id(o, "id", node);
    json_array_append_new(list, o);
    return 0;
}

/* The sessions beside this one.  If the mount lies over the PFS directory, the tool itself cannot
 * see them.  The daemon's descriptor leads below the mount. */
json_t *control_check(struct connection *c, const json_t *request)
{
    (void)request;
    char dir[64];
    snprintf(dir, sizeof(dir), "/proc/self/fd/%d/..", session_dirfd());
    json_t *files = json_array(), *nodes = json_array();
    int err = session_each_dirty(dir, add_dirty, files);
    if (!err)
        err = session_each_unfinished(dir, add_unfinished, nodes);
    if (!err) {
        say_each(c, "unflushed", files);
        say_each(c, "unfinished", nodes);
    }
    json_decref(files);
    json_decref(nodes);
    return err ? control_error("%s: %s", settings.session_dir, strerror(-err)) : json_object();
}
