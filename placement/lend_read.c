/* lend_read.c - reads of a file of which parts may be lent: bytes of this node, or of whoever has borrowed them. */
#include <errno.h>
#include <string.h>

#include "placement/lend_int.h"
#include "placement/store/store_read.h"

/* How many of len bytes from off on no other node has; 0: *node has the first. */
static size_t own_len(struct file *f, uint64_t off, size_t len, uint64_t *node)
{
    uint64_t first = off / LOAN_UNIT, last = (off + len - 1) / LOAN_UNIT, until;
    *node = store_lent_to(f, first, last, &until);
    if (*node)
        return 0;
    return until >= last ? len : (size_t)((until + 1) * LOAN_UNIT - off);
}

int lend_read(struct file *f, struct local_read *r, uint64_t *lent_to)
{
    struct local_read part = *r;
    bool pulled = false;
    uint64_t away;
    *lent_to = r->got = 0;
    int known = lend_know_soon(f);
    if (known)
        return known;
    while (r->got < r->len) {
        part.buf = (uint8_t *)r->buf + r->got;
        part.off = r->off + r->got;
        part.len = own_len(f, part.off, r->len - r->got, lent_to);
        if (!part.len)
            return 0;
        int err = local_read(f, &part);
        r->got += part.got;
        r->from = part.from;
        if (err && err != -EREMOTE)
            return err;
        if (err || part.got == part.len)
            continue; /* lent meanwhile, or the next part */
        if (pulled || !store_is_lent(f))
            return 0;
        err = lend_pull(f, &away); /* the file's end, as far as it is known here */
        if (err)
            return err;
        pulled = true;
    }
    return 0;
}

/* The next bytes are lent: from their borrower, and zeros where that has none.  0 bytes: it has given them back, or
 * *end: the file ends. */
static int read_lent(struct file *f, struct local_read *r, uint64_t node, bool *end)
{
    struct file_info info;
    struct carry_range part = {.buf = (uint8_t *)r->buf + r->got, .off = r->off + r->got};
    uint64_t first = part.off / LOAN_UNIT, last = (r->off + r->len - 1) / LOAN_UNIT, until, away;
    if (store_lent_to(f, first, last, &until) != node)
        return 0;
    part.len = (size_t)(MIN(r->off + r->len, (until + 1) * LOAN_UNIT) - part.off);
    int err = carry_read(node, f, &part);
    if (!err && part.got < part.len)
        err = lend_pull(f, &away);
    store_info(f, &info);
    if (!err && part.got < part.len) /* what has made it longer meanwhile is no zeros */
        err = carry_read(node, f, &part);
    if (err == -ENOENT || (err && lend_is_out(node)))
        return lend_recall_from(f, node);
    if (err)
        return err;
    uint64_t stop = MIN(part.off + part.len, MAX(info.size, part.off + part.got));
    size_t n = (size_t)(stop - part.off);
    memset((uint8_t *)part.buf + part.got, 0, n - part.got);
    *end = n < part.len;
    r->got += n;
    r->from.peer += n;
    return 0;
}

int lend_read_all(struct file *f, struct local_read *r)
{
    struct local_read part = *r;
    bool end = false;
    r->got = 0;
    for (;;) {
        uint64_t node = 0;
        part.buf = (uint8_t *)r->buf + r->got;
        part.off = r->off + r->got;
        part.len = r->len - r->got;
        if (!part.len)
            return 0;
        int err = lend_read(f, &part, &node);
        r->got += part.got;
        r->from = part.from;
        if (err || !node)
            return err;
        size_t before = r->got;
        err = read_lent(f, r, node, &end);
        part.from = r->from;
        if (err || end)
            return err;
        if (r->got == before && boot_ms() >= r->end_ms)
            return -EIO;
    }
}
