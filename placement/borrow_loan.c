/* borrow_loan.c - a loan is made, is used, and ends: the store's file (FID_LOAN) in which this node keeps what it has borrowed
 * of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "placement/borrow_int.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_keep.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "transport/members.h"
#include "transport/view.h"

int borrow_file(struct file *same, struct fid fid, struct file **out)
{
    char *path = file_path(same);
    int err = file_get(fid, path, out);
    free(path);
    return err;
}

/* The loan's descriptor is the one by which the application's open writes: no name is needed. */
static void open_loan(struct file *f, struct file *loan)
{
    int fd, dup = -1;
    if (!pfs_borrow_fd(f, true, &fd)) {
        dup = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        pfs_return_fd(f);
    }
    if (dup >= 0) {
        pfs_adopt_fd(loan, dup, true);
        return;
    }
    pfs_open_known(loan);
    pfs_open_late(loan, NULL);
}

struct file *borrow_loan_make(struct file *f)
{
    struct file *loan;
    if (borrow_file(f, fid_of_loan(f->fid), &loan))
        return NULL;
    open_loan(f, loan);
    return loan;
}

uint64_t borrow_incarnation(uint64_t node)
{
    const struct view *v = members_view();
    const struct member *m = v ? view_member(v, node) : NULL;
    return m ? m->incarnation : 0;
}

void borrow_note_sure(struct borrow *b)
{
    const struct view *v = members_view();
    b->lender_inc = borrow_incarnation(b->lender);
    b->sure_in = v ? v->number : 0;
}

bool borrow_is_sure(const struct borrow *b)
{
    const struct view *v = members_view();
    return v && b->lender_inc == borrow_incarnation(b->lender) && b->sure_in == v->number;
}

/* What was read of the marks L/2 ago is good enough (rule 17). */
bool borrow_marks_are_known(const struct borrow *b)
{
    uint64_t read = b->marks_ms;
    return read && boot_ms() - read < T_LEASE / 2;
}

bool borrow_is_known(const struct borrow *b)
{
    const struct view *v = members_view();
    bool marked = !v || !members_lease() || view_absent(v, b->lender);
    return marked ? borrow_marks_are_known(b) : borrow_is_sure(b);
}

void borrow_loan_unmake(struct file *loan)
{
    store_set_deleted(loan);
    pfs_release(loan);
    file_put_removed(loan);
}

/* ---- what it is ---- */

/* of: of which claim; NULL: of any. */
static struct file *loan_of(struct file *f, const struct overtaken *of)
{
    struct borrow *b = borrow_if(f);
    if (!b)
        return NULL;
    lock_take(&b->lock);
    while (b->making)
        lock_wait(&b->lock, &b->changed, 0);
    bool is = !of || (b->lender == of->lender && loan_id_eq(b->id, of->id));
    struct file *loan = is ? b->loan : NULL;
    b->using += loan != NULL; /* until it has a reference of its own */
    lock_drop(&b->lock);
    if (!loan)
        return NULL;
    file_ref(loan);
    borrow_use_end(f);
    return loan;
}

struct file *borrow_loan(struct file *f, uint64_t lender, struct loan_id id)
{
    return loan_of(f, &(struct overtaken){lender, id, 0});
}

struct file *borrow_loan_now(struct file *f)
{
    return loan_of(f, NULL);
}

void borrow_is(struct file *loan, uint64_t *size, int64_t *mtime_ns)
{
    struct file_info info;
    store_info(loan, &info);
    *size = info.size;
    *mtime_ns = info.mtime_set ? INT64_MIN : info.mtime_ns;
}

int borrow_timed(struct borrow *b, struct file *loan)
{
    store_loan_timed(loan); /* first: a RETURN that begins after this look says so */
    lock_take(&b->lock);
    bool sent = b->sent && !b->unanswered;
    lock_drop(&b->lock);
    return sent ? -EAGAIN : 0;
}

/* ---- its end ---- */

void borrow_forget_begin(struct borrow *b)
{
    b->returning = true;
    while (b->using)
        lock_wait(&b->lock, &b->changed, 0);
}

void borrow_stay(struct borrow *b, bool unanswered)
{
    lock_take(&b->lock);
    b->returning = b->unanswered = unanswered;
    b->sent = false;
    pthread_cond_broadcast(&b->changed);
    lock_drop(&b->lock);
}

void borrow_forget(struct borrow *b, const struct overtaken *o)
{
    borrow_list_remove(b);
    lock_take(&b->lock);
    struct file *loan = b->loan, *f = b->f;
    unit_clear_all(&b->map);
    b->loan = b->f = NULL;
    if (o)
        borrow_set_overtaken(b, o);
    b->base_end = 0;
    b->unsure = b->is_void = b->beside = false;
    while (b->using) /* by a LOAN: those do not wait for a return */
        lock_wait(&b->lock, &b->changed, 0);
    lock_drop(&b->lock);
    borrow_loan_unmake(loan);
    borrow_stay(b, false);
    file_put(f);
}
