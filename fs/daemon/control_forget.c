/* control_forget.c - `eddy forget`: gives up, on purpose, what absent nodes have (docs/protocol.md,
 * rule 17).  For a file its home does it.  For a node this node does it: the mark, the wait, the view
 * without the other node.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fs/daemon/control_int.h"
#include "placement/claims/claim_forget.h"
#include "placement/pfs/pfs_fid.h"
#include "transport/marks.h"
#include "transport/members.h"
#include "transport/view.h"

#define SAY_MS  1000
#define VIEW_MS 200

/* Called once a second; false: nobody waits for the answer any more. */
static bool say_waiting(struct connection *c, const char *node, uint64_t ms)
{
    json_t *o = json_object();
    control_put_text(o, "node", node);
    control_put(o, "waiting_ms", ms);
    if (control_say(c, o))
        return false;
    poll(NULL, 0, (int)MIN(MAX(ms, (uint64_t)1), (uint64_t)SAY_MS));
    return !control_unwanted(c);
}

static json_t *done(const char *node)
{
    json_t *o = json_object();
    control_put_text(o, "node", node);
    return o;
}

/* ---- a file ---- */

static json_t *refuse_file(const char *path, int err, uint64_t node)
{
    if (err == -ENODATA)
        return control_error("%s: no node that left has unflushed data of it", path);
    if (err == -EBUSY)
        return control_error("%s: node %s has it, and is in the session: it is not lost (what it has lent to a node "
                             "that left is given up with all of that node: --node)",
                             path, members_name(node));
    return control_error("%s: %s", path, strerror(-err));
}

static json_t *forget_file(struct connection *c, const char *path)
{
    struct statx stx;
    uint64_t node = 0;
    uint32_t wait_ms = 0;
    int err = control_find_file(path, &stx);
    if (err)
        return control_error("%s: %s", path, strerror(-err));
    while ((err = claim_forget(fid_of(&stx), &node, &wait_ms)) == -EAGAIN)
        if (!say_waiting(c, members_name(node), wait_ms))
            return control_error("nobody waits for the answer: ask again");
    if (err)
        return refuse_file(path, err, node);
    log_warn("%s: forgotten by an operator: node %s does not flush its data into it any more", path,
             members_name(node));
    return done(members_name(node));
}

/* ---- a node ---- */

/* By name or id, in this view. */
static const struct absent *find_absent(const struct view *v, const char *name)
{
    for (uint32_t i = 0; v && i < v->nabsent; i++) {
        char id[17];
        snprintf(id, sizeof(id), "%016" PRIx64, v->absents[i].id);
        if (!strcmp(name, v->absents[i].name) || !strcmp(name, id))
            return &v->absents[i];
    }
    return NULL;
}

static bool is_absent(const struct absent *a)
{
    const struct view *v = members_view();
    for (uint32_t i = 0; v && i < v->nabsent; i++)
        if (v->absents[i].id == a->id && v->absents[i].incarnation == a->incarnation)
            return true;
    return false;
}

static json_t *is_back(const struct mark *m, const char *name)
{
    session_remove_mark(m); /* a mark that stays does no harm: its data is being flushed */
    return control_error("node %s is back in the session, or this node is not: nothing was "
                         "forgotten",
                         name);
}

/* Waits until the newest view does not have it any more. */
static json_t *take_out(struct connection *c, const struct absent *a, const struct mark *m)
{
    uint64_t end = boot_ms() + T_OPEN;
    while (members_view() && is_absent(a)) {
        if (boot_ms() > end)
            return control_error("the session has made no view without it for %d s: ask again",
                                 T_OPEN / 1000);
        members_forget(a->id, a->incarnation);
        poll(NULL, 0, VIEW_MS);
        if (control_unwanted(c))
            return control_error("nobody waits for the answer: ask again");
    }
    if (!members_view() || view_member(members_view(), a->id))
        return is_back(m, a->name);
    log_warn("node %s was forgotten by an operator: nothing waits for its data any more", a->name);
    return done(a->name);
}

static json_t *forget_node(struct connection *c, const char *name)
{
    const struct absent *a = find_absent(members_view(), name);
    if (!a)
        return control_error("node %s has not left the session with unflushed data (\"eddy "
                             "status\" names those that did)",
                             name);
    for (uint64_t end = boot_ms() + T_OPEN; !members_lease() || !members_settled();)
        if (boot_ms() > end || !say_waiting(c, a->name, T_WAIT + T_PIECE))
            return control_error("the session is changing: ask again in a few seconds");
    struct mark m = {.node = a->id, .incarnation = a->incarnation, .number = UINT64_MAX};
    int err = session_write_mark(&m);
    if (err)
        return control_error("the session directory cannot be written: %s", strerror(-err));
    uint64_t due = boot_ms() + T_WAIT + T_PIECE;
    for (uint64_t now; (now = boot_ms()) < due;) {
        if (!say_waiting(c, a->name, due - now))
            return control_error("nobody waits for the answer: ask again");
        if (!is_absent(a))
            return is_back(&m, a->name);
    }
    return take_out(c, a, &m);
}

json_t *control_forget(struct connection *c, const json_t *request)
{
    const char *path = json_string_value(json_object_get(request, "path")),
               *node = json_string_value(json_object_get(request, "node"));
    if (node)
        return forget_node(c, node);
    return path && *path ? forget_file(c, path) : control_error("forget what?");
}
