/* protolie.h - a member that knows the secret and answers FETCH wrong: each time in another way.
 *
 * All but the last but one are to be noticed by who asked; the last but one is no lie.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/peer_in.h"
#include "transport/peer_int.h"
#include "transport/ucx_peer.h"

#define LIES 9

/* What the chunk is on the PFS: as many bytes of it as there are. */
static size_t lie_read(int pfs_fd, const struct body_fetch *b, uint8_t *buf, size_t size)
{
    int fd = openat(pfs_fd, b->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, buf, size, (off_t)(b->index * size));
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* Not a message, through the connection that it proved. */
static void lie_garbage(uint64_t to)
{
    struct peer *p = peer_find(to);
    struct send *s = xcalloc(1, sizeof(*s));
    *s = (struct send){.to = to, .frame = xcalloc(1, 300), .frame_len = 300};
    memset(s->frame, 0x45, 300);
    if (p && p->ep)
        ucx_send(p->ep, s);
    else
        send_free(s);
}

/* Which is next for that node: each one hears all. */
static unsigned next_lie(uint64_t node)
{
    static struct {
        uint64_t node;
        unsigned turn;
    } asked[16];
    unsigned i = 0;
    while (i < 15 && asked[i].node && asked[i].node != node)
        i++;
    asked[i].node = node;
    return asked[i].turn++ % LIES;
}

/* Network thread. */
static void lie_about(struct msg *m, int pfs_fd, size_t chunk_size)
{
    unsigned how = next_lie(m->head.sender);
    struct msg *r = msg_new(how == 0 ? MSG_PONG : MSG_CHUNK);
    if (how == 0) { /* another kind */
        lie_garbage(m->head.sender);
        peer_reply(m, r);
        msg_free(m);
        return;
    }
    if (how == 8) { /* it sends the asker to itself */
        msg_free(r);
        r = msg_new(MSG_ELSEWHERE);
        r->elsewhere.fid = m->fetch.fid;
        r->elsewhere.index = m->fetch.index;
        r->elsewhere.version = m->fetch.version;
        r->elsewhere.node = m->head.sender;
        peer_reply(m, r);
        msg_free(m);
        return;
    }
    r->chunk.fid = m->fetch.fid;
    r->chunk.index = m->fetch.index;
    r->chunk.version = m->fetch.version;
    r->data = peer_buffer_always(chunk_size + 1);
    r->free_data = peer_buffer_free_data;
    r->head.data_len = lie_read(pfs_fd, &m->fetch, r->data, chunk_size);
    uint8_t *first = r->data;
    if (how == 1 && r->head.data_len > 1)
        r->head.data_len--; /* too short */
    if (how == 2)
        r->head.data_len = chunk_size + 1; /* longer than the room for it */
    r->chunk.hash = data_hash(r->data, r->head.data_len);
    if (how == 3)
        first[r->head.data_len / 2] ^= 1; /* one wrong bit */
    if (how == 4)
        memset(r->data, 0, r->head.data_len);
    if (how == 5)
        r->chunk.index++;
    if (how == 6)
        r->chunk.fid.lo ^= 1;
    peer_reply(m, r);
    msg_free(m);
}
