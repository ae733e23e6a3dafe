/* entry.c - see entry.h. */
#include "fs/entry.h"

#include <errno.h>

#include "fs/early.h"
#include "fs/known.h"

/* A file that was opened in advance is opened also without a name: not by one that the kernel keeps. */
static double name_timeout(const struct inode *i, double timeout)
{
    return early_is_open(i) ? 0 : timeout;
}

void entry_fill(struct fuse_entry_param *e, struct inode *i, const struct stat *st, struct belief *b)
{
    inode_give(i, (uint64_t)st->st_size);
    *e = (struct fuse_entry_param){
        .ino = i->nodeid,
        .generation = 1, /* the node id holds ours */
        .attr = *st,
        .attr_timeout = belief_begin(b, i, (uint64_t)st->st_size, known_timeout(i)),
        .entry_timeout = name_timeout(i, known_timeout(i)),
    };
}

void entry_fill_known(struct fuse_entry_param *e, struct inode *i, const struct stat *st,
                      double left, struct belief *b)
{
    inode_give(i, (uint64_t)st->st_size);
    *e = (struct fuse_entry_param){
        .ino = i->nodeid,
        .generation = 1,
        .attr = *st,
        .attr_timeout = belief_begin(b, i, (uint64_t)st->st_size, left),
        .entry_timeout = name_timeout(i, left),
    };
}

void reply_entry(struct request *r, struct inode *i, const struct stat *st, struct belief *b)
{
    struct fuse_entry_param e;
    belief_grow(i, b, (uint64_t)st->st_size);
    entry_fill(&e, i, st, b);
    if (!request_take(r) || fuse_reply_entry(r->req, &e) == -ENOENT)
        inode_not_given(i);
    belief_end(b);
    inode_put(i);
    request_done(r);
}

void reply_attr(struct request *r, const struct stat *st, double timeout, struct belief *b)
{
    double left = belief_begin(b, r->inode, (uint64_t)st->st_size, timeout);
    if (request_take(r))
        fuse_reply_attr(r->req, st, left);
    belief_end(b);
    request_done(r);
}
