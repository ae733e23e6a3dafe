/* control_stage.c - `eddy stage` and `eddy unstage`: which files, and what they are told
 * (placement/foresight/stage.h).
 *
 *     the paths --> control_walk.h --> "round": the tool says where links lead, again and again
 *         --> does it fit? --> stage_begin, and its number
 *         '-> what is where
 *         '-> these files are let go
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/daemon/control_walk.h"
#include "placement/foresight/stage.h"
#include "placement/pfs/pfs_fid.h"

#define ROUND_PATHS 65536 /* the tool sends more in another round */
#define SAY_MS  200
#define PIN_MAX (UINT64_C(100) * 365 * 86400 * 1000) /* ms */

struct staging {
    struct walk_said said;
    struct stage *stage;
    bool check;               /* files of other nodes are looked at, too */
    int err;                  /* there is no memory for more files */
};

/* ---- what is said meanwhile ---- */

static void say_progress(struct staging *g)
{
    struct stage_status s;
    stage_status(g->stage, &s);
    json_t *line = json_object();
    control_put(line, "done_bytes", s.done_bytes);
    control_put(line, "total_bytes", s.bytes);
    walk_say(&g->said, line);
}

/* Says something now and then, so that the tool knows that the daemon lives. */
static bool goes_on(void *arg)
{
    struct staging *g = arg;
    if (!g->said.gone && boot_ms() - g->said.said_ms >= SAY_MS) {
        say_progress(g);
        g->said.said_ms = boot_ms();
    }
    g->said.gone |= control_unwanted(g->said.c);
    return !g->said.gone && !g->err;
}

/* ---- the files ---- */

static void say_unflushed(struct staging *g, const char *path, uint64_t node)
{
    char why[512];
    snprintf(why, sizeof(why),
             "node %s has bytes of it that are not on the PFS: they are neither fetched nor "
             "flushed for this (\"eddy flush\" does)",
             members_name(node));
    walk_say_failed(&g->said, path, why);
}

static void add_file(void *arg, const char *path, const struct statx *stx,
                     const struct location *at)
{
    struct staging *g = arg;
    struct version v = version_of(stx);
    if (at->where == WHERE_NODE && !g->check)
        say_unflushed(g, path, at->node);
    else if (!g->err)
        g->err = stage_add(g->stage, path, fid_of(stx), &v);
}

/* -EINVAL: no list of paths. */
static int take_round(struct staging *g, const json_t *line, bool *any)
{
    const struct walk_calls calls = {
        .arg = g, .file = add_file, .goes_on = goes_on, .said = &g->said};
    struct walk_paths p = {.n = 0};
    int err = walk_take_paths(g->said.c, line, ROUND_PATHS, &p) ? 0 : -EINVAL;
    *any = p.n;
    for (size_t i = 0; i < p.n && !err; i++)
        err = stage_add_root(g->stage, p.v[i]);
    if (!err)
        walk_all(&p, &calls);
    walk_paths_free(&p);
    return err ? err : g->err;
}

static int take_all(struct staging *g, const json_t *request)
{
    bool any = true;
    int err = take_round(g, request, &any);
    while (!err && any && !g->said.gone) {
        walk_say(&g->said, json_pack("{s:b}", "round", true));
        json_t *line = control_next(g->said.c);
        err = line ? take_round(g, line, &any) : -EINVAL;
        json_decref(line);
    }
    return g->said.gone ? -ECANCELED : err;
}

static json_t *error_of(int err)
{
    switch (err) {
    case -EINVAL:
        return control_error("this is no list of paths");
    case -ENOBUFS:
        return control_error("there is no memory for so many paths: stage fewer at a time, or "
                             "start eddyfs with more --memory");
    case -ECANCELED:
        return control_error("the daemon is ending, or nobody waits for the answer");
    case -EAGAIN:
        return control_error("this node is in no session now, or too many stages go on: try again");
    default:
        return control_error("%s", strerror(-err));
    }
}

static struct staging begin(struct connection *c, const json_t *request)
{
    json_int_t pin = json_integer_value(json_object_get(request, "pin_ms"));
    const struct stage_how how = {.spread = json_is_true(json_object_get(request, "spread")),
                                  .pin_ms = pin < 0 ? UINT64_MAX : MIN((uint64_t)pin, PIN_MAX)};
    return (struct staging){.said = {.c = c, .said_ms = boot_ms()}, .stage = stage_new(&how)};
}

/* ---- stage ---- */

static void put_id(json_t *o, uint32_t id)
{
    char text[16];
    snprintf(text, sizeof(text), "%08x", id);
    control_put_text(o, "id", text);
}

static void put_fit(json_t *o, const struct stage_fit *fit)
{
    control_put(o, "files", fit->files);
    control_put(o, "bytes", fit->bytes);
    control_put(o, "here", fit->here);
    json_object_set_new(o, "fits", json_boolean(fit->fits));
    if (!fit->files)
        return;
    control_put_text(o, "node", members_name(fit->node));
    control_put(o, "needed", fit->needed);
    control_put(o, "room", fit->room);
}

static json_t *does_not_fit(const struct stage_fit *fit)
{
    char needed[24], room[24];
    json_t *o = control_error(
        "it does not fit: %s would have to keep %s of it, and has room for %s; nothing was fetched",
        members_name(fit->node), size_format(fit->needed, needed, sizeof(needed)),
        size_format(fit->room, room, sizeof(room)));
    put_fit(o, fit);
    return o;
}

static void why_failed(uint64_t node, int err, char why[512])
{
    const char *text = err == -ENOENT      ? "it was removed meanwhile"
                       : err == -ESTALE    ? "it changes on the PFS again and again"
                       : err == -ENOSPC    ? "it has no room for it any more: others have filled the disk, or what it keeps may not leave"
                       : err == -EHOSTDOWN ? "its latest bytes are on a node that has left"
                                           : strerror(-err);
    if (err == -EBUSY)
        snprintf(why, 512,
                 "a node has bytes of it that are not on the PFS: they are neither fetched "
                 "nor flushed for this");
    else
        snprintf(why, 512, "node %s: %s", members_name(node), text);
}

static void say_each_failed(void *arg, const char *path, uint64_t node, int err)
{
    char why[512];
    why_failed(node, err, why);
    struct staging *g = arg;
    walk_say_failed(&g->said, path, why);
}

/* Ended, or nobody waits: then it is cancelled. */
static void wait_for(struct staging *g)
{
    while (!stage_wait(g->stage, SAY_MS) && !g->said.gone) {
        say_progress(g);
        g->said.gone |= control_unwanted(g->said.c);
    }
    if (g->said.gone)
        stage_cancel(g->stage);
    else
        stage_each_failed(g->stage, say_each_failed, g);
}

static json_t *go(struct staging *g, bool wait, const struct stage_fit *fit)
{
    struct stage_status s;
    int err = stage_begin(g->stage);
    if (err)
        return error_of(err);
    stage_status(g->stage, &s);
    json_t *line = json_object(), *end = json_object();
    put_id(line, s.id);
    walk_say(&g->said, line);
    if (wait)
        wait_for(g);
    else if (g->said.gone)
        stage_cancel(g->stage); /* it has no number for anybody */
    stage_status(g->stage, &s);
    put_id(end, s.id);
    put_fit(end, fit);
    control_put(end, "failed", g->said.failed);
    json_object_set_new(end, "cancelled", json_boolean(s.cancelled));
    return end;
}

json_t *control_stage(struct connection *c, const json_t *request)
{
    struct staging g = begin(c, request);
    struct stage_fit fit;
    int err = take_all(&g, request);
    if (!err)
        err = stage_look(g.stage, goes_on, &g, &fit);
    json_t *end = err         ? error_of(err)
                  : !fit.fits ? does_not_fit(&fit)
                              : go(&g, json_is_true(json_object_get(request, "wait")), &fit);
    stage_put(g.stage);
    return end;
}

/* ---- what is where ---- */

struct checking {
    struct staging *g;
    json_t *file; /* the one whose nodes come now; NULL: none yet */
};

static void say_file(struct checking *k)
{
    if (!k->file)
        return;
    json_t *line = json_object();
    json_object_set_new(line, "has", k->file);
    k->file = NULL;
    if (!k->g->said.gone)
        walk_say(&k->g->said, line);
    else
        json_decref(line);
}

static void add_has(void *arg, const char *path, uint64_t size, uint64_t node, uint64_t bytes)
{
    struct checking *k = arg;
    if (!node) {
        say_file(k);
        k->file = json_object();
        control_put_text(k->file, "path", path);
        control_put(k->file, "bytes", size);
        json_object_set_new(k->file, "nodes", json_array());
        return;
    }
    json_t *o = json_object();
    control_put_text(o, "node", members_name(node));
    control_put(o, "bytes", bytes);
    json_array_append_new(json_object_get(k->file, "nodes"), o);
}

json_t *control_stage_check(struct connection *c, const json_t *request)
{
    struct staging g = begin(c, request);
    struct checking k = {.g = &g};
    struct stage_fit fit;
    g.check = true;
    int err = take_all(&g, request);
    if (!err)
        err = stage_look(g.stage, goes_on, &g, &fit);
    if (!err)
        err = stage_check(g.stage, goes_on, &g, add_has, &k);
    say_file(&k);
    json_t *end = err ? error_of(err) : json_object();
    if (!err)
        put_fit(end, &fit);
    control_put(end, "failed", g.said.failed);
    stage_put(g.stage);
    return end;
}

/* ---- stages that go on ---- */

static void add_failed(void *list, const char *path, uint64_t node, int err)
{
    char why[512];
    json_t *o = json_object();
    why_failed(node, err, why);
    control_put_text(o, "path", path);
    control_put_text(o, "error", why);
    json_array_append_new(list, o);
}

static json_t *stage_json(struct stage *stage)
{
    struct stage_status s;
    stage_status(stage, &s);
    json_t *o = json_object();
    put_id(o, s.id);
    control_put_text(o, "state",
                     !s.ended      ? (s.cancelled ? "ending" : "going on")
                     : s.cancelled ? "cancelled"
                                   : "ended");
    json_object_set_new(o, "spread", json_boolean(s.spread));
    json_object_set_new(o, "pinned", json_boolean(s.pin_ms != 0));
    control_put(o, "files", s.files);
    control_put(o, "total_bytes", s.bytes);
    control_put(o, "done_bytes", s.done_bytes);
    control_put(o, "failed", s.failed);
    json_t *failed = json_array();
    if (s.ended)
        stage_each_failed(stage, add_failed, failed);
    json_object_set_new(o, "failed_files", failed);
    return o;
}

static void add_stage(void *list, struct stage *s)
{
    json_array_append_new(list, stage_json(s));
}

static void cancel_stage(void *list, struct stage *s)
{
    stage_cancel(s);
    add_stage(list, s);
}

/* "id" or "path": calls fn, and says which. */
static json_t *each(const json_t *request, void (*fn)(void *list, struct stage *s))
{
    const char *id = json_string_value(json_object_get(request, "id"));
    const char *escaped = json_string_value(json_object_get(request, "path"));
    char *path = escaped ? control_unescape(escaped) : NULL;
    json_t *list = json_array();
    struct stage *s = id ? stage_find((uint32_t)strtoul(id, NULL, 16)) : NULL;
    if (s) {
        fn(list, s);
        stage_put(s);
    } else if (path) {
        stages_each(path, fn, list);
    }
    free(path);
    json_t *end = id || escaped ? json_object() : control_error("neither a stage nor a path");
    json_object_set_new(end, "stages", list);
    return end;
}

json_t *control_stages(struct connection *c, const json_t *request)
{
    (void)c;
    bool cancels = !strcmp(json_string_value(json_object_get(request, "do")), "stage_cancel");
    return each(request, cancels ? cancel_stage : add_stage);
}

/* ---- unstage ---- */

static void cancel_only(void *arg, struct stage *s)
{
    (void)arg;
    stage_cancel(s);
}

json_t *control_unstage(struct connection *c, const json_t *request)
{
    struct staging g = begin(c, request);
    bool all = json_is_true(json_object_get(request, "all"));
    g.check = true;
    if (all)
        stages_each("", cancel_only, NULL);
    int err = all ? 0 : take_all(&g, request);
    if (!err)
        err = stage_drop(all ? NULL : g.stage, goes_on, &g);
    json_t *end = err ? error_of(err) : json_object();
    if (!err && !all) {
        struct stage_status s;
        stage_status(g.stage, &s);
        control_put(end, "files", s.files);
        control_put(end, "bytes", s.bytes);
    }
    control_put(end, "failed", g.said.failed);
    stage_put(g.stage);
    return end;
}
