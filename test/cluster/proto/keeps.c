/* keeps.c - commands of a member that says that it has chunks, and that it keeps them, and does neither; and that asks others to
 * keep what it does not own. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/chunks/places.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/ring/ring.h"
#include "placement/store/eviction.h"
#include "transport/members.h"
#include "transport/peer.h"

#define CHUNK (1u << 20)

static int item_of(const char *path, struct item_place *out)
{
    struct statx stx;

    if (statx(pfs_fd, path, AT_STATX_FORCE_SYNC, PFS_STATX_MASK, &stx))
        return -errno;
    *out = (struct item_place){.fid = fid_of(&stx), .version = version_of(&stx)};
    return 0;
}

/* ---- having ---- */

/* Whoever asks an owner is in the chunk's row; what it gets is not looked at. */
static int fetch(uint64_t owner, const struct item_place *p, const char *path, void *buf)
{
    struct msg *m = msg_new(MSG_FETCH), *reply = NULL;

    m->fetch.fid = p->fid;
    m->fetch.index = p->index;
    m->fetch.version = p->version;
    m->fetch.path = path;
    int err = peer_call(owner, m, 10000, buf, CHUNK, &reply);
    msg_free(reply);
    return err;
}

static void say_has(uint64_t owner, struct item_place *p)
{
    struct msg *m = msg_new(MSG_PLACES);

    m->places.chunks.n = 1;
    m->places.chunks.v = p;
    peer_send(owner, m);
}

void do_has(void *arg)
{
    struct command *c = arg;
    struct item_place p;
    const char *path = word(c, 1);
    uint64_t n = number(c, 2), said = 0;
    void *buf = xmalloc(CHUNK);
    int err = item_of(path, &p);

    for (p.index = 0; !err && p.index < n; p.index++) {
        uint64_t owner = ring_owner(ring_of(members_view()), p.fid, p.index, 0);

        if (owner == members_self() || fetch(owner, &p, path, buf))
            continue;
        say_has(owner, &p);
        said++;
    }
    free(buf);
    if (err)
        answer_code(c, err);
    else
        answer(c, "said %" PRIu64, said);
}

/* ---- being asked to keep ---- */

static _Atomic unsigned asked; /* KEEPs */
static char how[16] = "yes";   /* network thread, but for a command while nobody asks */

static void on_keep(struct msg *m)
{
    asked++;
    if (!strcmp(how, "die"))
        raise(SIGKILL);
    if (!strcmp(how, "yes") || !strcmp(how, "other")) {
        struct msg *r = msg_new(how[0] == 'y' ? MSG_KEPT : MSG_PONG);

        if (how[0] == 'y')
            r->kept.kept = UINT32_MAX;
        peer_reply(m, r);
    } else if (!strcmp(how, "error")) {
        peer_reply_error(m, -EIO);
    } /* else it is silent */
    msg_free(m);
}

void keeps_start(void)
{
    peer_handle(MSG_KEEP, on_keep);
}

void do_says(struct command *c)
{
    strncpy(how, word(c, 1), sizeof(how) - 1);
    answer_code(c, 0);
}

void do_asked(struct command *c)
{
    answer(c, "%u", asked);
}

/* ---- asking ---- */

/* The i-th of a flood: a chunk in its version, one in another version, one of no file, one far beyond the end. */
static struct item_place wanted(const struct item_place *of, uint64_t i, uint64_t chunks)
{
    struct item_place p = *of;

    p.index = i / 4 % chunks;
    switch (i % 4) {
    case 1:
        p.version.ctime_ns--;
        break;
    case 2:
        p.fid.lo ^= 1;
        break;
    case 3:
        p.index = UINT64_MAX / CHUNK + 1 + p.index;
        break;
    default:
        break;
    }
    return p;
}

static struct {
    _Atomic uint64_t open;    /* questions without an answer */
    _Atomic uint64_t yes, lies; /* to the first kind, to all others */
} flood;

static void on_kept(void *arg, int err, struct msg *reply, bool *keeps)
{
    (void)arg;
    (void)keeps;
    for (unsigned i = 0; !err && i < KEEP_ASKED; i++)
        if (reply->kept.kept >> i & 1)
            (*(i % 4 ? &flood.lies : &flood.yes))++;
    flood.open--;
}

void do_keep(void *arg)
{
    struct command *c = arg;
    uint64_t node = node_named(word(c, 1)), chunks = number(c, 3), n = number(c, 4), most = 0;
    struct item_place of, items[KEEP_ASKED];
    int err = node ? item_of(word(c, 2), &of) : -ENOENT;

    flood.open = flood.yes = flood.lies = 0;
    for (uint64_t i = 0; !err && i < n; i++) {
        struct msg *m = msg_new(MSG_KEEP);

        for (unsigned k = 0; k < KEEP_ASKED; k++)
            items[k] = wanted(&of, i * KEEP_ASKED + k, chunks);
        m->keep.chunks.n = KEEP_ASKED;
        m->keep.chunks.v = items;
        uint64_t open = ++flood.open;

        most = MAX(most, open);
        peer_request(node, m, 60000, NULL, 0, on_kept, NULL);
    }
    while (flood.open)
        usleep(1000);
    if (err)
        answer_code(c, err);
    else
        answer(c, "yes %" PRIu64 " lies %" PRIu64 " at once %" PRIu64, flood.yes, flood.lies, most);
}
