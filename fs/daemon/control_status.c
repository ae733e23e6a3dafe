/* control_status.c - the answer to `eddy status`: everything from memory.
 *
 * It must come also while the PFS and the network hang.  So it makes no PFS call, sends no message, and takes
 * no lock that any thread holds during one.  Its keys stay the same; new ones may be added.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "flush/flush_status.h"
#include "fs/daemon/control_int.h"
#include "fs/daemon/last_view.h"
#include "fs/daemon/supervise.h"
#include "fs/request.h"
#include "fs/settings.h"
#include "fs/uring.h"
#include "placement/borrow.h"
#include "placement/chunks/shelves_here.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/claims/lost.h"
#include "placement/foresight/foresight.h"
#include "placement/lend.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_open.h"
#include "transport/members.h"
#include "transport/onesided.h"
#include "transport/view.h"

/* ---- the session ---- */

json_t *control_members(const struct view *v)
{
    json_t *list = json_array();
    for (uint32_t i = 0; v && i < v->nmembers; i++) {
        const struct member *m = &v->members[i];
        json_t *o = json_object();
        control_put_text(o, "name", m->name);
        control_put_text(o, "address", m->addr);
        control_put_text(o, "state", members_suspected(m->id) ? "suspected" : "ok");
        control_put_id(o, "id", m->id);
        control_put(o, "weight", m->weight);
        json_object_set_new(o, "self", json_boolean(m->id == members_self()));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *absent_nodes(const struct view *v)
{
    json_t *list = json_array();
    for (uint32_t i = 0; v && i < v->nabsent; i++) {
        json_t *o = json_object();
        control_put_text(o, "name", v->absents[i].name);
        control_put_id(o, "id", v->absents[i].id);
        json_array_append_new(list, o);
    }
    return list;
}

static void put_times(json_t *o)
{
    json_t *t = json_object();
    control_put(t, "suspect_ms", T_SUSPECT);
    control_put(t, "dead_ms", T_DEAD);
    control_put(t, "lease_ms", T_LEASE);
    control_put(t, "wait_ms", T_WAIT);
    control_put(t, "open_ms", T_OPEN);
    json_object_set_new(o, "times", t);
}

static void put_view(json_t *o)
{
    const struct view *v = last_view();
    json_t *view = json_object();
    control_put(view, "number", v ? v->number : 0);
    control_put(view, "newest", members_newest());
    json_object_set_new(view, "joined", json_boolean(members_view() != NULL));
    json_object_set_new(view, "lease", json_boolean(members_lease()));
    json_object_set_new(view, "settled", json_boolean(members_settled()));
    json_object_set_new(o, "view", view);
    json_object_set_new(o, "members", control_members(v));
    json_object_set_new(o, "absent", absent_nodes(v));
}

/* ---- files that are not on the PFS ---- */

struct files {
    json_t *list;
    bool only_failed;
    uint64_t total;
};

static int add_file(void *arg, const struct unflushed_file *u)
{
    struct files *files = arg;
    if (files->only_failed && !u->error && !u->suspect)
        return 0;
    if (++files->total > CONTROL_FILES_MAX)
        return 0;
    json_t *o = json_object();
    control_put_text(o, "path", u->path);
    control_put(o, "bytes", u->bytes);
    control_put(o, "since", u->since_s);
    control_put(o, "tries", u->tries);
    json_object_set_new(o, "error", u->error ? json_string(strerror(abs(u->error))) : json_null());
    json_object_set_new(o, "suspect", json_boolean(u->suspect));
    json_array_append_new(files->list, o);
    return 0;
}

json_t *control_files(bool only_failed, uint64_t *total)
{
    struct files files = {.list = json_array(), .only_failed = only_failed};
    flush_each_unflushed(add_file, &files);
    *total = files.total;
    return files.list;
}

/* ---- the parts of the answer ---- */

static void put_cache(json_t *o)
{
    struct store_usage u;
    store_usage(&u);
    json_t *cache = json_object();
    control_put_text(cache, "dir", settings.cache_dir);
    control_put(cache, "size", u.limit);
    control_put(cache, "used", u.used);
    control_put(cache, "content", u.content);
    control_put(cache, "dirty", u.dirty);
    control_put(cache, "anchored", u.anchored);
    control_put(cache, "ballast", u.ballast);
    control_put(cache, "files", u.files);
    control_put(cache, "chunks", u.chunks);
    json_object_set_new(o, "cache", cache);
}

static void put_flush(json_t *o)
{
    struct flush_status s;
    uint64_t failed;
    flush_status(&s);
    json_t *flush = json_object();
    control_put_text(flush, "policy", s.policy);
    control_put_text(flush, "state", s.state);
    control_put(flush, "flushed_bytes", s.flushed_bytes);
    control_put(flush, "pending_bytes", s.pending_bytes);
    control_put(flush, "pending_files", s.pending_files);
    control_put(flush, "low_bytes", s.low_bytes);
    control_put(flush, "high_bytes", s.high_bytes);
    control_put(flush, "full_bytes", s.full_bytes);
    json_object_set_new(flush, "draining", json_boolean(s.draining));
    control_put(flush, "oldest_ms", s.oldest_ms);
    control_put(flush, "age_ms", s.age_ms);
    control_put(flush, "wait_ms", s.wait_ms);
    json_object_set_new(flush, "wait_auto", json_boolean(s.wait_auto));
    json_object_set_new(flush, "failed_files", control_files(true, &failed));
    control_put(flush, "failed_count", failed);
    json_object_set_new(o, "flush", flush);
}

static void put_reads(json_t *o)
{
    json_t *reads = json_object();
    control_put(reads, "local_bytes", counted(read_local_bytes));
    control_put(reads, "peer_bytes", counted(read_peer_bytes));
    control_put(reads, "pfs_bytes", counted(read_pfs_bytes));
    json_object_set_new(o, "reads", reads);
}

static void put_counters(json_t *o)
{
    json_t *all = json_object();
#define X(name, help) control_put(all, #name, counted(name));
    COUNTERS(X)
#undef X
    json_object_set_new(o, "counters", all);
}

static int add_lost(void *arg, const struct lost_file *l)
{
    json_t *list = arg, *o = json_object();
    control_put_text(o, "path", l->path);
    control_put_text(o, "node", l->node_name);
    control_put(o, "since", (uint64_t)l->since_s);
    json_array_append_new(list, o);
    return 0;
}

static void put_lost(json_t *o)
{
    json_t *list = json_array();
    lost_each(add_lost, list);
    json_object_set_new(o, "lost_files", list);
    control_put(o, "lost_files_left_out", lost_left_out());
}

static void put_home(json_t *o)
{
    struct home_status h;
    home_status(&h);
    control_put(o, "claims", claim_held());
    control_put(o, "home_records", h.records);
    control_put(o, "locks", h.locks);
    control_put(o, "lost", h.lost);
    control_put(o, "open_files", look_open_files());
    control_put(o, "passthrough_files", kernel_io_open_files());
    control_put(o, "lookers", h.lookers);
    control_put(o, "lookers_bytes", h.lookers_bytes);
    control_put(o, "lookers_bytes_max", h.lookers_bytes_max);
}

#define LOANS_MAX 1000 /* in the list */

struct loans {
    json_t *list;
    bool lent;
    uint64_t files[2], bytes[2];
    char last[2][PATH_BYTES_MAX + 1];
};

static void add_loan(void *arg, const struct loan_status *s)
{
    struct loans *l = arg;
    l->files[l->lent] += strcmp(l->last[l->lent], s->path) != 0; /* one file's come one after the other */
    l->bytes[l->lent] += s->bytes;
    snprintf(l->last[l->lent], sizeof(l->last[l->lent]), "%s", s->path);
    if (json_array_size(l->list) >= LOANS_MAX)
        return;
    json_t *o = json_object();
    control_put_text(o, "path", s->path);
    if (s->node)
        control_put_text(o, "node", members_name(s->node));
    control_put(o, "bytes", s->bytes);
    control_put(o, "begin", s->begin);
    control_put(o, "end", s->end);
    json_object_set_new(o, "lent", json_boolean(l->lent));
    json_array_append_new(l->list, o);
}

static void put_loans(json_t *o)
{
    struct loans *l = xcalloc(1, sizeof(*l));
    json_t *loans = json_object();
    l->list = json_array();
    borrow_each(add_loan, l);
    l->lent = true;
    lend_each(add_loan, l);
    control_put(loans, "lent_files", l->files[true]);
    control_put(loans, "lent_bytes", l->bytes[true]);
    control_put(loans, "borrowed_files", l->files[false]);
    control_put(loans, "borrowed_bytes", l->bytes[false]);
    json_object_set_new(loans, "list", l->list);
    json_object_set_new(o, "loans", loans);
    free(l);
}

static void put_hints(json_t *o)
{
    struct foresight_status s;
    foresight_status(&s, true);
    json_t *hints = json_object();
    control_put(hints, "queues", s.queues);
    control_put(hints, "hints", s.hints);
    control_put(hints, "admitted", s.admitted);
    control_put(hints, "ahead", s.ahead);
    control_put(hints, "ready", s.ready);
    control_put(hints, "absent", s.absent);
    control_put(hints, "ahead_bytes", s.ahead_bytes);
    control_put(hints, "staged_bytes", s.staged_bytes);
    control_put(hints, "pinned_bytes", s.pinned_bytes);
    control_put(hints, "memory_bytes", s.memory);
    control_put(hints, "memory_bytes_max", s.memory_max);
    json_object_set_new(o, "hints", hints);
}

static void add_name(void *list, uint64_t node)
{
    json_array_append_new(list, json_string(members_name(node)));
}

/* Memory for one-sided reads: this node's, and the nodes whose it reads. */
static void put_onesided(json_t *o)
{
    struct shelves_figures s;
    json_t *one = json_object(), *nodes = json_array();
    shelves_here_figures(&s);
    onesided_each(add_name, nodes);
    control_put(one, "memory", s.bytes);
    control_put(one, "shelves", s.shelves);
    control_put(one, "shelves_used", s.in_use);
    control_put_text(one, "transports", onesided_transports());
    json_object_set_new(one, "nodes", nodes);
    json_object_set_new(o, "onesided", one);
}

json_t *control_status(struct connection *c, const json_t *request)
{
    (void)c;
    (void)request;
    json_t *o = json_object();
    control_put_text(o, "version", EDDY_VERSION);
    control_put(o, "pid", (uint64_t)getpid());
    control_put(o, "restarts", supervise_restarts());
    control_put_text(o, "node", settings.node);
    control_put_text(o, "session", settings.session);
    control_put_text(o, "session_dir", settings.session_dir);
    control_put_text(o, "pfs", settings.pfs_dir);
    control_put_text(o, "mountpoint", settings.mountpoint);
    json_object_set_new(o, "passthrough", json_boolean(settings.passthrough));
    if (!settings.passthrough)
        control_put_text(o, "passthrough_why", settings.passthrough_why);
    json_object_set_new(o, "uring", json_boolean(!uring_why_not()));
    if (uring_why_not())
        control_put_text(o, "uring_why", uring_why_not());
    control_put(o, "chunk_size", settings.chunk_size);
    put_cache(o);
    put_flush(o);
    put_reads(o);
    put_onesided(o);
    put_view(o);
    put_times(o);
    put_loans(o);
    put_hints(o);
    put_home(o);
    put_lost(o);
    control_put(o, "requests_waiting", requests_waiting());
    control_put(o, "pfs_silent_ms", pfs_waiting_ms());
    put_counters(o);
    return o;
}
