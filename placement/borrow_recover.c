/* borrow_recover.c - what a dead daemon of this node had borrowed, and had not brought to the PFS. */
#include "placement/borrow_int.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_loan.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

/* Its pages are dirty, or it would not be found: these units are this node's for certain.  Of others the claimant
 * knows. */
static void take_up(struct file *f, struct file *loan)
{
    struct borrow *b = borrow_of(f);
    struct file_info info;
    store_info(loan, &info);
    b->lender = store_loan_of(loan, &b->id.inc, &b->id.number);
    b->base_end = info.base_end;
    b->loan = file_ref(loan);
    b->f = f;
    b->unsure = true;
    for (uint64_t unit = 0; store_loan_dirty(loan, &unit); unit++)
        unit_set(&b->map, unit, UNIT_MINE);
    pfs_open_known(loan);
    borrow_list_add(b);
}

static int recover_one(void *arg, struct file *loan)
{
    unsigned *n = arg;
    struct file *f;
    if (!fid_is_loan(loan->fid))
        return 0;
    int err = borrow_file(loan, fid_real(loan->fid), &f);
    if (err)
        return err;
    take_up(f, loan);
    ++*n;
    return 0;
}

int borrow_recover(void)
{
    unsigned n = 0;
    int err = store_each_claimed(recover_one, &n);
    if (n)
        log_info("parts of %u files of other nodes, which this one had borrowed, were not on the "
                 "PFS when the daemon ended: they are served and flushed now",
                 n);
    return err;
}
