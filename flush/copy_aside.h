/* copy_aside.h - all that is here of a file, into a new file (copy_aside.c). */
#ifndef EDDY_FLUSH_COPY_ASIDE_H
#define EDDY_FLUSH_COPY_ASIDE_H

#include "placement/pfs/pfs_new.h"
#include "placement/store/file.h"

struct copying {
    struct file *f;
    struct pfs_new *to;
    /* NULL, or gets *n bytes that are not here into buf; -ENODATA: no node has them */
    int (*fill)(struct copying *c, uint64_t off, size_t *n);
    char *buf;        /* PIECE */
    uint64_t missing; /* bytes that are not here, and that `fill` did not get: they are holes */
};
/* Nobody changes f meanwhile.  0 or -errno; what is written of `to` then is the caller's to remove.  Blocking. */
int copy_aside(struct copying *c);
/* Do other nodes have, or may they have, parts of it that are not here?  Then nobody fills what is missing. */
bool copy_aside_is_part(struct file *f);

#endif
