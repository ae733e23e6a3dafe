/* come.c - how this node comes to its session, joins it, and leaves it.
 *
 * The last of the other nodes may end the session at any moment before this one has joined it (transport/session_end.h).  Each step
 * until then may find that: then the new session of that name is opened, and the step is done again.
 */
#include "fs/daemon/come.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flush/flush_recover.h"
#include "fs/daemon/guard.h"
#include "fs/settings.h"
#include "placement/borrow.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_life.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_size.h"
#include "placement/store/store_open.h"
#include "transport/fid.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/session.h"
#include "transport/session_end.h"

#define LEAVE_MS      10000
#define SESSION_TRIES 8

static bool left; /* the session: in order, or this node never joined it */

int come_pfs_identity(struct fid *out)
{
    int fd = open(settings.pfs_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fid_of_fd(fd, out);
    close(fd);
    return err;
}

/* PFS_DIR/.eddyfs-UID */
static bool session_dir_is_default(void)
{
    size_t len = strlen(settings.pfs_dir);
    const char *d = settings.session_dir;
    return settings.hidden && !strncmp(d, settings.pfs_dir, len) && d[len] == '/' && !strcmp(d + len + 1, settings.hidden);
}

static struct session_config session_config(void)
{
    struct session_config c = {.dir = settings.session_dir,
                               .dir_is_default = session_dir_is_default(),
                               .name = settings.session,
                               .chunk_size = settings.chunk_size};
    (void)come_pfs_identity(&c.pfs); /* looked at by start_session */
    return c;
}

/* The session may end between the two. */
static int probe_session(char *err, size_t len)
{
    struct session_config c = session_config();
    int e = session_probe(fid_of_fd, err, len);
    for (int tries = 0; e == -ESTALE && tries < SESSION_TRIES; tries++) {
        e = session_open_again(&c, err, len);
        if (!e)
            e = session_probe(fid_of_fd, err, len);
    }
    return e;
}

void come_away(void)
{
    if (left)
        session_end(store_node_id());
    session_close();
}

int come_agrees(char *err, size_t len)
{
    struct session_config c = session_config();
    return session_agrees(&c, err, len);
}

int come_to_session(char *err, size_t len)
{
    struct session_config c = session_config();
    int e = come_pfs_identity(&c.pfs);
    if (e) {
        snprintf(err, len, "PFS directory %s: %s", settings.pfs_dir, strerror(-e));
        return e;
    }
    e = guard_cache_of(c.pfs, err, len);
    if (!e)
        e = session_open(&c, err, len);
    if (e)
        return e;
    left = true; /* it has not come to it yet */
    e = probe_session(err, len);
    if (e)
        come_away();
    return e;
}

static struct member self(void)
{
    struct member m = {
        .id = store_node_id(), .incarnation = store_incarnation(), .weight = store_weight()};
    snprintf(m.name, sizeof(m.name), "%s", settings.node);
    snprintf(m.addr, sizeof(m.addr), "%s", peer_address());
    return m;
}

static void say_waits(const char *why, unsigned seconds)
{
    static const char text[] = "waits to join the session, for at most %u s (--wait-timeout): %s";
    log_warn(text, seconds, why);
    if (!log_is_file())
        return;
    fputs("eddyfs: ", stderr);
    fprintf(stderr, text, seconds, why);
    fputc('\n', stderr);
}

/* With unflushed data the node does not leave: the others must know that its files are lost until
 * it is back. */
void come_out(void)
{
    unsigned held = claim_give_back_all() + borrow_dirty();
    int err = held ? 0 : members_leave(LEAVE_MS);
    left = !held && !err;
    if (held)
        log_warn("%u files are not on the PFS: this node stays absent in the session until it is "
                 "started again",
                 held);
    else if (err)
        log_warn("the session was not told in time that this node leaves");
}

static int open_session_again(char *err, size_t len)
{
    struct session_config c = session_config();
    int e = session_open_again(&c, err, len);
    if (!e)
        e = probe_session(err, len);
    if (!e) {
        pfs_size_stop();
        pfs_size_start(session_dirfd(), settings.node);
    }
    return e;
}

/* ---- the steps of coming to a session: the last of the others may end it before this node has joined ---- */

static int look_for_twin(char *err, size_t len)
{
    return members_look_for_twin(settings.wait_timeout, err, len);
}

static int recover_claims(char *err, size_t len)
{
    int e = claim_recover();
    if (e)
        snprintf(err, len, "the cache directory's claims cannot be taken up: %s", strerror(-e));
    return e;
}

static int recover_borrowed(char *err, size_t len)
{
    int e = borrow_recover();
    if (e)
        snprintf(err, len, "what this node has borrowed cannot be taken up: %s", strerror(-e));
    return e;
}

static int check_recovered(char *err, size_t len)
{
    int e = flush_check_recovered(settings.node);
    if (e)
        snprintf(err, len, "what the last daemon left cannot be looked at: %s", strerror(-e));
    else
        claim_marks_done();
    return e;
}

static int join(char *err, size_t len)
{
    left = false;
    return members_join(settings.wait_nodes, settings.wait_timeout, err, len);
}

/* A node that does not get in leaves again. */
static void leave_after(int e)
{
    if (members_view())
        come_out();
    else
        left = e != -ETIMEDOUT; /* else a view may still be made with it, or the PFS hangs */
}

int come_in(void (*replaced)(const struct member *by), char *err, size_t len)
{
    static int (*const all[])(char *err, size_t len) = {look_for_twin, recover_claims, recover_borrowed, check_recovered, join};
    struct members_config c = {self(), store_former_incarnation(), claim_members_ops};
    int e = 0;
    c.ops.waits = say_waits;
    c.ops.replaced = replaced;
    members_start(&c);
    for (size_t i = 0, tries = 0; i < ARRAY_LEN(all) && !e; i++) {
        e = all[i](err, len);
        for (; session_is_over(NULL, e) && tries < SESSION_TRIES; tries++) {
            e = open_session_again(err, len);
            if (!e)
                e = all[i](err, len);
        }
    }
    if (e)
        leave_after(e);
    return e;
}
