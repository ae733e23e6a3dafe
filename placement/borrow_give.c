/* borrow_give.c - a loan that cannot be flushed, as its file has no name any more, and this node no descriptor of it (its daemon
 * was started again).  Other nodes may have the file open.  So before RETURN the claimant gets the bytes themselves (GIVE): it
 * has what nodes without a name still need, and drops it when none of them has it open.
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow_int.h"
#include "placement/carry.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_loan.h"
#include "placement/store/store_read.h"

/* -ENOENT: the claimant has no such file any more.  -EREMOTE: it has taken the part back.  Neither needs the bytes.  -EINVAL: its
 * eddyfs is older (9.2), and knows no GIVE. */
static int give_bytes(struct file *f, uint64_t lender, const void *buf, size_t len, uint64_t off)
{
    struct change c = {.op = CARRY_GIVE, .buf = buf, .len = len, .off = off};
    int err = carry_write(lender, f, &c, NULL);
    return err == -ENOENT || err == -EREMOTE || err == -EINVAL ? 0 : err;
}

/* The pages in [off, end) that are here. */
static int give_range(struct file *f, uint64_t lender, struct file *loan, uint8_t *buf, uint64_t off, uint64_t end)
{
    int err = 0;
    while (!err && off < end) {
        uint64_t miss, len;
        ssize_t got = store_read(loan, buf, end - off, off);
        if (got > 0) {
            err = give_bytes(f, lender, buf, (size_t)got, off);
            off += (size_t)got;
        } else if (!got && store_missing(loan, off, end - off, &miss, &len)) {
            off = miss == off ? off + len : off;
        } else {
            err = got < 0 ? (int)got : -EIO;
        }
    }
    return err;
}

int borrow_give(struct file *f, uint64_t lender, struct file *loan)
{
    struct file_info info;
    store_info(loan, &info);
    if (!info.deleted || !info.only_here)
        return 0;
    uint8_t *buf = xmalloc(LOAN_UNIT);
    int err = 0;
    for (uint64_t unit = 0; !err && store_loan_valid(loan, &unit); unit++) {
        uint64_t off = unit * LOAN_UNIT, end = MIN(off + LOAN_UNIT, info.size);
        err = give_range(f, lender, loan, buf, off, end);
    }
    free(buf);
    return err ? -EIO : 0; /* as of RETURN: it is tried again */
}
