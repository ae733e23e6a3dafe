/*
 * Birth times. libfuse has no request for them, so the kernel's STATX is answered here,
 * before libfuse sees it (it would say that there is none, and the kernel would ask for
 * plain attributes from then on).
 */
#include "ops.h"

#include "counts.h"
#include "faults.h"
#include "nodes.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define OPCODE_STATX 52 /* Linux 6.6; older headers do not have it and what follows */

struct sx_time {
    int64_t sec;
    uint32_t nsec;
    int32_t reserved;
};

struct sx_out {
    struct fuse_out_header header;
    uint64_t valid;
    uint32_t valid_nsec, flags;
    uint64_t spare[2];
    uint32_t mask, blksize;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare0;
    uint64_t ino, size, blocks, attributes_mask;
    struct sx_time atime, btime, ctime, mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t spare2[14];
};

static struct sx_time time_of(const struct statx_timestamp *t)
{
    return (struct sx_time){.sec = t->tv_sec, .nsec = t->tv_nsec};
}

/* Those that a file system may keep in whole seconds. */
static void fill_times(const struct statx *s, struct sx_out *out)
{
    struct stat times = {
        .st_atim = {.tv_sec = s->stx_atime.tv_sec, .tv_nsec = s->stx_atime.tv_nsec},
        .st_ctim = {.tv_sec = s->stx_ctime.tv_sec, .tv_nsec = s->stx_ctime.tv_nsec},
        .st_mtim = {.tv_sec = s->stx_mtime.tv_sec, .tv_nsec = s->stx_mtime.tv_nsec},
    };

    faults_shape(&times);
    out->atime = (struct sx_time){times.st_atim.tv_sec, (uint32_t)times.st_atim.tv_nsec, 0};
    out->ctime = (struct sx_time){times.st_ctim.tv_sec, (uint32_t)times.st_ctim.tv_nsec, 0};
    out->mtime = (struct sx_time){times.st_mtim.tv_sec, (uint32_t)times.st_mtim.tv_nsec, 0};
}

static int fill(struct node *node, struct sx_out *out)
{
    struct statx s;
    int err = error_of(statx(node->fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW,
                             STATX_BASIC_STATS | STATX_BTIME, &s));

    if (err)
        return err;
    out->mask = s.stx_mask & (STATX_BASIC_STATS | STATX_BTIME);
    out->blksize = s.stx_blksize;
    out->nlink = s.stx_nlink;
    out->uid = s.stx_uid;
    out->gid = s.stx_gid;
    out->mode = s.stx_mode;
    out->ino = s.stx_ino;
    out->size = s.stx_size;
    out->blocks = s.stx_blocks;
    out->btime = time_of(&s.stx_btime);
    fill_times(&s, out);
    out->rdev_major = s.stx_rdev_major;
    out->rdev_minor = s.stx_rdev_minor;
    out->dev_major = s.stx_dev_major;
    out->dev_minor = s.stx_dev_minor;
    return 0;
}

bool statx_answered(struct fuse_session *session, const struct fuse_buf *buf)
{
    const struct fuse_in_header *in = buf->mem;
    struct sx_out out;
    struct iovec v = {.iov_base = &out};
    struct node *node;
    int err;

    if (buf->flags & FUSE_BUF_IS_FD || buf->size < sizeof(*in) || in->opcode != OPCODE_STATX)
        return false;
    memset(&out, 0, sizeof(out));
    node = node_get(in->nodeid);
    err = -fault_check(OP_getattr, node, NULL);
    if (!err)
        err = fill(node, &out);
    out.header.unique = in->unique;
    out.header.error = -err;
    out.header.len = v.iov_len = err ? sizeof(out.header) : sizeof(out);
    if (writev(fuse_session_fd(session), &v, 1) < 0 && errno != ENOENT)
        perror("faultfs: statx");
    return true;
}
