/* data_removed.c - a file whose last name this node removes, while another node has its claim.
 *
 * This node tells the claimant at once.  For the claimant may have no descriptor of the file (the last flush
 * has dropped it), and bytes that are carried there from now on would be dirty in a file without a path.
 *
 * When a claimant hears or finds that a file is gone, it drops the file's bytes as soon as no open writes
 * them.  So if the file is open here, if only for reading, this node pins it at the claimant before it
 * removes the name.  The claimant then keeps the bytes until the last close here, or until this node leaves
 * the view.
 */
#include "placement/claims/claim.h"
#include "placement/data_int.h"
#include "placement/pfs/pfs_data.h"

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

static bool is_kept(struct file *f)
{
    struct file_data *d = (struct file_data *)file_part_if(f, FILE_DATA);
    if (!d)
        return false;
    lock_take(&d->lock);
    bool kept = d->keeper;
    lock_drop(&d->lock);
    return kept;
}

static bool pin_at(struct file *f, uint64_t node)
{
    uint64_t number = random_u64() | 1;
    if (is_kept(f) || data_pin(f, node, number))
        return false;
    bool keeps = keep(f, node, number);
    if (!keeps)
        data_unpin(f, node, number);
    return keeps;
}

bool data_keep(struct file *f)
{
    struct location at;
    return !claim_where(f->fid, LOOK_NONE, &at) && at.where == WHERE_NODE && pin_at(f, at.node);
}

/* As long as the claimant has the file's bytes, no other file may get its inode number. */
void data_removed(struct file *f)
{
    struct location at;
    if (claim_where(f->fid, LOOK_NONE, &at) || at.where != WHERE_NODE)
        return;
    bool held = pfs_keep_number(f);
    if (pfs_has_a_name(f)) { /* another node has given it one between the look at the PFS and the removal */
        file_set_unlinked(f, false);
    } else {
        pin_at(f, at.node); /* for a file that was opened, or claimed, since data_keep */
        claim_named(f->fid, at.node, NULL);
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

void data_release(struct file *f)
{
    bool held = is_kept(f) && pfs_keep_number(f);
    pfs_release(f);
    end_of_keeping(f, false);
    if (held)
        pfs_unhold_number(f);
}
