/* data_removed.c - a file of which this node removes a name, while it may have bytes that the PFS does not
 * have.
 *
 * It keeps other names, and this node knows none of them.  The claimant may have been led to it by the
 * name that goes, and no other name may be known to any node.  So what is dirty is flushed before the name
 * goes (data_flush).  Then the file's bytes are on the PFS under each name, whichever node dies when.
 *
 * It was its last name, and another node has its claim:
 *
 * This node tells the claimant at once.  For the claimant may have no descriptor of the file (the last flush
 * has dropped it), and bytes that are carried there from now on would be dirty in a file without a path.
 *
 * When a claimant hears or finds that a file is gone, it drops the file's bytes as soon as no open writes
 * them.  So if the file is open here, if only for reading, this node pins it at the claimant before it
 * removes the name.  The claimant then keeps the bytes until the last close here, or until this node leaves
 * the view.
 *
 * A claimant that is away does not hear it.  Then the session's log of moves says so: at once, that it is gone and open here,
 * and at the last close here, that nobody needs it.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/data_int.h"
#include "placement/data_pin.h"
#include "placement/lend.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_moves.h"

#include <errno.h>
#include <stdlib.h>

/* ---- it keeps other names ---- */

static int flush_here(struct file *f, struct change *c)
{
    if (claim_carry_begin(f))
        return -ENOENT;
    int err = lend_change(f, c);
    claim_carry_end(f);
    return err == -ENOENT ? -EIO : err;
}

int data_flush(struct file *f)
{
    struct patience p = data_patience();
    struct change c = {.op = CARRY_SYNC, .mode = 1, .end_ms = p.end_ms};
    struct location at;
    int err;
    do {
        err = claim_where_until(f->fid, LOOK_NONE, p.end_ms, &at);
        if (!err && at.where == WHERE_HERE)
            err = flush_here(f, &c);
        else if (!err && at.where == WHERE_NODE)
            err = carry_write(at.node, f, &c, NULL);
        else if (!err && at.where == WHERE_LOST)
            err = -EIO;
    } while ((err == -ENOENT || err == -EAGAIN) && boot_ms() < p.end_ms);
    return err;
}

/* ---- it was its last name ---- */

/* True: the last close ends this pin.  False: the file is closed already, or has another pin. */
static bool keep(struct file *f, uint64_t node, uint64_t number)
{
    struct file_data *d = data_of(f);
    lock_take(&d->lock);
    bool keeps = pfs_is_open(f) && !d->keeper;
    if (keeps) {
        d->keeper = node;
        d->keeper_pin = number;
    }
    lock_drop(&d->lock);
    return keeps;
}

static bool pin_at(struct file *f, uint64_t node)
{
    uint64_t number = random_u64() | 1;
    if (data_is_kept(f) || data_pin(f, node, number))
        return false;
    bool keeps = keep(f, node, number);
    if (!keeps)
        data_unpin(f, node, number);
    return keeps;
}

bool data_keep(struct file *f, bool dropping)
{
    struct location at;
    if (dropping)
        data_of(f)->drop_said = true;
    return !claim_where(f->fid, LOOK_NONE, &at) && at.where == WHERE_NODE && pin_at(f, at.node);
}

static void log_removed(struct file *f, bool open)
{
    char *path = file_path(f);
    moves_log_gone(f->fid, path, open);
    free(path);
}

/* Should this node end before the last close, nobody would say later that the file was removed. */
static void set_unheard(struct file *f, bool unheard)
{
    data_of(f)->unheard = unheard;
    if (unheard)
        log_removed(f, true);
}

/* As long as the claimant has the file's bytes, no other file may get its inode number. */
void data_removed(struct file *f)
{
    struct location at;
    int err = claim_where(f->fid, LOOK_NONE, &at);
    if (err || at.where != WHERE_NODE) {
        set_unheard(f, err || at.where == WHERE_LOST);
        return;
    }
    bool held = pfs_keep_number(f);
    if (pfs_has_a_name(f)) { /* another node has given it one between the look at the PFS and the removal */
        file_set_unlinked(f, false);
    } else {
        pin_at(f, at.node); /* for a file that was opened, or claimed, since data_keep */
        set_unheard(f, claim_named(f->fid, at.node, NULL));
    }
    if (held)
        pfs_unhold_number(f);
}

/* open: ends the pin even if the file is open here. */
static void end_of_keeping(struct file *f, bool open)
{
    struct file_data *d = (struct file_data *)file_part_if(f, FILE_DATA);
    if (!d)
        return;
    lock_take(&d->lock);
    uint64_t node = open || !pfs_is_open(f) ? d->keeper : 0, number = d->keeper_pin;
    if (node)
        d->keeper = 0;
    lock_drop(&d->lock);
    if (node)
        data_unpin(f, node, number);
}

void data_keep_end(struct file *f)
{
    end_of_keeping(f, true);
}

/* The last close here: nobody reads on this node what the claimant has. */
static void say_removed(struct file *f)
{
    struct file_data *d = (struct file_data *)file_part_if(f, FILE_DATA);
    if (d && !pfs_is_open(f) && atomic_exchange(&d->unheard, false))
        log_removed(f, false);
}

void data_release(struct file *f)
{
    bool held = (file_is_unlinked(f) || data_is_kept(f)) && pfs_keep_number(f);
    pfs_release(f);
    end_of_keeping(f, false);
    say_removed(f);
    claim_drop_unlinked(f);
    if (held)
        pfs_unhold_number(f);
}
