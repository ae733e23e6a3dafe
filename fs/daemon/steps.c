/* steps.c - the wiring of the rooms, in one table of steps.  Calls go down; what a room below has to tell one
 * above, or to ask it, it calls back, and all such callbacks are set here.
 *
 * Every step has a start and a stop.  Stops run in reverse order, from wherever a start failed or
 * the mount ended, so the table's order says what may use what:
 *
 *   store   claims   loop   session   pfs   placement   onesided   foresight   pools   peers   members   flush   files   queues   stages   report
 *   metrics   control   mount
 *
 * Those up to flush need no mount: they are a recovery, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/flush_recover.h"
#include "flush/lull.h"
#include "fs/ahead.h"
#include "fs/attr_last.h"
#include "fs/backing.h"
#include "fs/belief.h"
#include "fs/daemon/come.h"
#include "fs/daemon/control.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/figures_ask.h"
#include "fs/daemon/options.h"
#include "fs/daemon/supervise.h"
#include "fs/early.h"
#include "fs/handle.h"
#include "fs/known.h"
#include "fs/mount.h"
#include "fs/near.h"
#include "fs/notify.h"
#include "fs/operation.h"
#include "fs/ops.h"
#include "fs/page_walk.h"
#include "fs/settings.h"
#include "fs/stores.h"
#include "placement/borrow.h"
#include "placement/carry.h"
#include "placement/chunks/chunk.h"
#include "placement/chunks/fetch.h"
#include "placement/chunks/former.h"
#include "placement/chunks/keep.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/places.h"
#include "placement/chunks/shelves_here.h"
#include "placement/chunks/stream.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/claims/look.h"
#include "placement/data_pin.h"
#include "placement/foresight/budget.h"
#include "placement/foresight/foresight.h"
#include "placement/foresight/stage.h"
#include "placement/local.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_size.h"
#include "placement/store/cachedir.h"
#include "placement/store/eviction.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_keep.h"
#include "placement/store/store_open.h"
#include "placement/tell.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/onesided.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/view.h"


static const struct options *o;
static void (*on_replaced)(const struct member *by);
static bool ended_clean, reads_only; /* reads_only: of the store alone is read */

/* After an error of a call that makes a file on the cache's disk: may it succeed now? */
static bool has_room_again(int err)
{
    return (err == -ENOSPC || err == -EDQUOT) && store_free_inode();
}

static int start_store(char *err, size_t len)
{
    struct store_config c = {
        .dir = settings.cache_dir,
        .dir_is_default = settings.cache_dir_is_default,
        .size = settings.cache_size,
        .percent = settings.cache_percent,
        .chunk_size = settings.chunk_size,
    };
    /* What a power loss took is said while the store opens, before the log is. */
    log_keep(settings.log_file || !settings.foreground);
    int e = store_open(&c, err, len);
    if (e || (settings.foreground && !settings.log_file)) {
        log_keep(false);
        return e;
    }
    char *path = NULL;
    if (!settings.log_file && asprintf(&path, "%s/eddyfs.log", store_dir()) < 0)
        die("out of memory");
    do
        e = log_open(settings.log_file ? settings.log_file : path, o->log_level, settings.node);
    while (path && has_room_again(e));
    if (e) {
        snprintf(err, len, "log file %s: %s%s", settings.log_file ? settings.log_file : path,
                 strerror(-e), cachedir_hint(e));
        store_close(false);
    } else {
        options_say_notes(); /* standard error may be nobody's */
    }
    free(path);
    return e;
}

/* The texts are settings'. */
static struct mount_entry this_mount(void)
{
    return (struct mount_entry){
        .mountpoint = (char *)settings.mountpoint,
        .cache_dir = (char *)settings.cache_dir,
        .pfs_dir = (char *)settings.pfs_dir,
        .session = (char *)settings.session,
        .session_dir = (char *)settings.session_dir,
        .node = (char *)settings.node,
        .listen = (char *)settings.listen,
    };
}

/* For `eddy wait` and `eddy umount`, which find no cache directory any more. */
static int say_ended(void)
{
    struct mount_entry e = this_mount();
    e.ended = (char *)"clean";
    return mount_map_write(&e);
}

/* What a start that failed has made goes, and the cache in the default's place when all is on the PFS.  Who names a directory
 * keeps what is in it for the next mount. */
static void stop_store(void)
{
    struct store_rest r = store_rest();
    bool goes = !r.owed && !reads_only;
    if (ended_clean)
        goes = goes && (r.empty || settings.cache_dir_is_default) && !say_ended();
    else
        goes = goes && r.empty && r.is_new;
    if (goes)
        store_close_and_remove();
    else
        store_close(ended_clean);
}

static int start_claims(char *err, size_t len)
{
    (void)err;
    (void)len;
    claim_start();
    return 0;
}

static int start_loop(char *err, size_t len)
{
    int e = loop_start();
    if (e)
        snprintf(err, len, "the event loop cannot start: %s", strerror(-e));
    return e;
}

static int start_pfs(char *err, size_t len)
{
    struct rlimit r;
    unsigned fds = 1024;
    if (!getrlimit(RLIMIT_NOFILE, &r))
        fds = (unsigned)MIN(r.rlim_cur / 4, (rlim_t)65536);
    int e = pfs_open(settings.pfs_dir, settings.hidden, fds, err, len);
    if (!e)
        pfs_size_start(session_dirfd(), settings.node);
    return e;
}

static void stop_pfs(void)
{
    pfs_size_stop();
    pfs_close();
}

static void chunks_adopted(const struct view *v)
{
    former_adopted(v);
    places_adopted(v);
    shelves_here_adopted(v);
    onesided_adopted(v);
}

/* Activity is connected before a peer can ask for anything: a request whose begin was not counted would be
 * one too few at its end, and there would never be a lull again. */
static int start_placement(char *err, size_t len)
{
    (void)err;
    (void)len;
    home_start(attr_timeout_ms());
    former_start(settings.redirect);
    chunk_rooms(settings.memory);
    carry_on_activity(lull_begin, lull_end);
    fetch_on_activity(carry_activity_begin, carry_activity_end);
    fetch_start();
    places_start();
    store_keep_at_most(settings.singlets);
    keep_start();
    carry_start();
    claim_on_drop(tell_drop); /* before what the last daemon left is taken up: of a removed file others may have descriptors */
    claim_on_adopted(chunks_adopted);
    eviction_on_owner(places_owned);
    return 0;
}

/* The threads that may evict end first. */
static void stop_placement(void)
{
    claim_on_drop(NULL);
    data_pins_stop();
    carry_stop();
    keep_stop();
    fetch_stop();
    eviction_on_owner(NULL);
    claim_on_adopted(NULL);
    places_stop();
    former_stop();
}

static void on_clean(struct fid fid)
{
    if (foresight_any())
        foresight_flushed(fid);
}

#define HINTS_PART 4 /* of --memory */

static void chunk_left(struct fid fid, uint64_t index)
{
    foresight_left(fid, index);
    places_left(fid, index);
    shelves_here_left(fid, index);
}

static int start_foresight(char *err, size_t len)
{
    (void)err;
    (void)len;
    foresight_start(settings.memory / HINTS_PART);
    eviction_on_hinted(foresight_keeps);
    eviction_on_left(chunk_left);
    eviction_on_farthest(foresight_give_up);
    flush_on_clean(on_clean);
    budget_on_calm(bell_ring);
    stream_on_fetch(budget_guess_begins, budget_guess_ends);
    return 0;
}

static void stop_foresight(void)
{
    eviction_on_farthest(NULL);
    eviction_on_hinted(NULL);
    eviction_on_left(NULL);
    flush_on_clean(NULL);
    foresight_stop();
}

static int start_stages(char *err, size_t len)
{
    (void)err;
    (void)len;
    stages_start();
    return 0;
}

static int start_pools(char *err, size_t len)
{
    int e = pools_start();
    if (e)
        snprintf(err, len, "threads: %s", strerror(-e));
    return e;
}

static int start_peers(char *err, size_t len)
{
    struct peer_config c = {settings.listen, store_node_id(),     store_incarnation(),
                            settings.node,   settings.chunk_size, settings.memory};
    figures_serve();
    return peer_start(&c, err, len);
}

/* Off unless asked for. */
static int start_onesided(char *err, size_t len)
{
    struct onesided_config c = {.size = settings.rdma_memory, .transports = settings.rdma_transports, .id = store_node_id()};
    int e = c.size ? onesided_start(&c, err, len) : 0;
    if (e)
        return e;
    shelves_here_on_activity(carry_activity_begin, carry_activity_end);
    shelves_here_start(c.id);
    return 0;
}

static void stop_onesided(void)
{
    shelves_here_stop();
    onesided_stop();
}

/* From here on no message comes: what waits for one has failed. */
static void stop_peers(void)
{
    peer_stop();
    members_stop();
    home_stop();
}

static int start_members(char *err, size_t len)
{
    return come_in(on_replaced, err, len);
}

/* What the rooms below the flusher tell it. */
static void connect_flush(void)
{
    store_on_dirty(flush_dirtied);
    store_on_deleted(flush_deleted);
    store_on_unsynced(flush_list_changed);
    store_on_kernel_io(flush_kernel_opened, flush_kernel_wrote);
    claim_on_forgotten(flush_forgotten);
}

/* From now on no write waits for bytes to become clean; what asks for that is told that it is over. */
static void stop_flush(void)
{
    static const struct local_needs ended = {.make_room = flush_make_room, .sync_pfs = flush_file};
    store_on_dirty(NULL);
    store_on_deleted(NULL);
    store_on_unsynced(NULL);
    store_on_kernel_io(NULL, NULL);
    claim_on_forgotten(NULL);
    local_on_need(&ended);
    flush_stop();
}

static int start_flush(char *err, size_t len)
{
    static const struct local_needs needs = {
        .make_room = flush_make_room,
        .sync_pfs = flush_file,
        .must_wait = flush_must_wait,
        .admit = flush_admit,
    };
    int e = flush_start(&o->flush);
    if (!e) {
        connect_flush();
        local_on_need(&needs);
        e = flush_recover();
    }
    if (e)
        snprintf(err, len, "the flusher cannot start: %s", strerror(-e));
    return e;
}

/* What the kernel writes is clean only when no program can write it any more, and no run says so then. */
static void on_copied(struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    attr_flushed(f, stx, looked_ms);
    on_clean(f->fid);
}

/* Hints first: what is left of looks at the file counts after it. */
static unsigned on_break(struct fid fid)
{
    if (foresight_any())
        foresight_changed(fid);
    return belief_break(fid);
}

static unsigned on_change(struct fid fid, const struct told_change *c)
{
    if (foresight_any() && c->what != TOLD_ATTR)
        foresight_changed(fid);
    return belief_changed(fid, c);
}

static int start_files(char *err, size_t len)
{
    struct statx stx;
    int e = pfs_stat(pfs_root(), &stx);
    if (e) {
        snprintf(err, len, "PFS directory %s: %s", settings.pfs_dir, strerror(-e));
        return e;
    }
    file_start();
    early_start();
    inode_start(pfs_root(), &stx);
    struct inode *root = inode_get(FUSE_ROOT_ID);
    known_set_immutable(root, NULL);
    inode_put(root);
    request_system_start();
    notify_start();
    walk_start();
    ahead_start();
    near_start();
    flush_on_copied(on_copied);
    look_on_break(on_break);
    told_on_change(on_change);
    return 0;
}

static void stop_files(void)
{
    claim_on_drop(NULL);
    look_on_break(NULL);
    told_on_change(NULL);
    flush_on_copied(NULL);
    near_stop();
    ahead_stop();
    walk_stop();
    notify_stop();
    inode_stop();
    mount_free();
}

/* What shows the daemon from outside. */
static int start_control(char *err, size_t len)
{
    figures_ready(true);
    operation_log_slow(settings.slow_ms);
    return control_start(err, len);
}

static void stop_control(void)
{
    control_stop();
    figures_ready(false);
}

static int start_mount(char *err, size_t len)
{
    struct fid pfs;
    char pfs_text[FID_TEXT];
    struct mount_entry e = this_mount();
    e.pfs_fid = come_pfs_identity(&pfs) ? NULL : fid_text(pfs, pfs_text);
    int code;
    do
        code = mount_entry_write(store_dirfd(), &e);
    while (has_room_again(code));
    if (code) {
        snprintf(err, len, "cache directory %s cannot be written: %s%s", store_dir(),
                 strerror(-code), cachedir_hint(code));
        return code;
    }
    code = mount_map_write(&e);
    if (code) {
        snprintf(err, len, "the list of mounts for `eddy` cannot be written: %s", strerror(-code));
        return code;
    }
    struct fuse_lowlevel_ops ops;
    ops_all(&ops);
    static const struct mount_before before = {daemon_is_gone, clear_way_for_mount};
    code = mount_start(&ops, supervise_restarts() ? &before : NULL, err, len);
    if (code)
        mount_stop();
    else
        backing_try(mount_kernel_passes());
    return code;
}

/* RELEASEs may have been lost with the mount.  A request that waits for a lock uses a handle.  The process
 * that has the lock may be another one on this node, whose RELEASE was lost, too. */
static void stop_mount(void)
{
    mount_stop();
    request_cancel_waits();
    early_stop();
    stores_end();
    file_close_all();
    request_system_stop();
}

static int look_at_settings(char *err, size_t len)
{
    return reads_only ? 0 : come_agrees(err, len);
}

static void nothing(void)
{
}

static const struct step {
    const char *name;
    int (*start)(char *err, size_t len);
    void (*stop)(void);
} steps[] = {
    {"settings", look_at_settings, nothing},
    {"store", start_store, stop_store},
    {"claims", start_claims, claim_stop},
    {"loop", start_loop, loop_stop},
    {"session", come_to_session, come_away},
    {"pfs", start_pfs, stop_pfs},
    {"placement", start_placement, stop_placement},
    {"onesided", start_onesided, stop_onesided},
    {"foresight", start_foresight, stop_foresight},
    {"pools", start_pools, pools_stop},
    {"peers", start_peers, stop_peers},
    {"members", start_members, come_out},
    {"flush", start_flush, stop_flush},
    {"files", start_files, stop_files},
    {"queues", queues_start, queues_stop},
    {"stages", start_stages, stages_stop},
    {"report", report_start, report_stop},
    {"metrics", metrics_start, metrics_stop},
    {"control", start_control, stop_control},
    {"mount", start_mount, stop_mount},
};
static unsigned started;

int steps_start(const struct options *with, const char *last,
                void (*replaced)(const struct member *by))
{
    char err[1024] = "";
    o = with;
    on_replaced = replaced;
    reads_only = last && !strcmp(last, "store");
    while (started < ARRAY_LEN(steps)) {
        const struct step *s = &steps[started];
        int e = s->start(err, sizeof(err));
        if (e) {
            log_error("%s", err[0] ? err : strerror(-e));
            if (log_is_file())
                fprintf(stderr, "eddyfs: %s\n", err[0] ? err : strerror(-e));
            return e;
        }
        log_debug("%s started", s->name);
        started++;
        if (last && !strcmp(s->name, last))
            break;
    }
    return 0;
}

void steps_stop(const char *down_to)
{
    while (started) {
        const struct step *s = &steps[started - 1];
        if (down_to && !strcmp(s->name, down_to))
            return;
        started--;
        s->stop();
        log_debug("%s stopped", s->name);
    }
}

void steps_end_clean(void)
{
    ended_clean = true;
}
