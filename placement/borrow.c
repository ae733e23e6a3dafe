/* borrow.c - all that this node has borrowed: how much of it is dirty, what `eddy status` says of it, and its end when the
 * node leaves; and what a directory says of sharing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/borrow_int.h"
#include "placement/local.h"
#include "placement/store/store_read.h"
#include "transport/members.h"

void borrow_set_policy(struct file *f, bool always, bool never)
{
    struct borrow *b = always || never ? borrow_of(f) : borrow_if(f);
    if (!b)
        return;
    b->always = always;
    b->never = never;
}

bool borrow_is_refused(const struct file *f)
{
    const struct borrow *b = borrow_if(f);
    return b && b->never;
}

unsigned borrow_dirty(void)
{
    struct file *f;
    unsigned n = 0;
    for (size_t place = 0; (f = borrow_list_at(place)); place++) {
        struct file *loan = borrow_loan_now(f);
        struct file_info info = {0};
        if (loan) {
            store_info(loan, &info);
            file_put(loan);
        }
        n += info.dirty;
        file_put(f);
    }
    return n;
}

void borrow_each(loan_status_fn *fn, void *arg)
{
    struct file *f;
    for (size_t place = 0; (f = borrow_list_at(place)); place++) {
        char *path = file_path(f);
        struct borrow *b = borrow_of(f);
        loan_tell(fn, arg, path, b->lender, borrow_units(b));
        free(path);
        file_put(f);
    }
}

static int leave_one(struct file *f)
{
    uint64_t end_ms = boot_ms() + T_OPEN;
    int err = -EBUSY;
    while (err == -EBUSY && boot_ms() < end_ms) {
        struct file *loan = borrow_loan_now(f);
        err = loan ? local_sync_pfs(loan) : 0;
        if (loan)
            file_put(loan);
        if (!err)
            err = borrow_give_back(f, true);
    }
    return err;
}

int borrow_leave(void)
{
    struct file *f;
    int err = 0;
    for (size_t place = 0; (f = borrow_list_at(place));) {
        int e = leave_one(f);
        if (e) {
            log_warn("what this node has borrowed of a file of node %s was not returned: %s",
                     members_name(borrow_of(f)->lender), strerror(-e));
            err = e;
            place++;
        }
        file_put(f);
    }
    return err;
}
