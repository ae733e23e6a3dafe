/* data.c - opens a file, with or without a look at the PFS, looks at it again, and closes it; and tells what
 * is known of an open file without a message.
 *
 * It uses data_io.c (reading and changing), and both use data_where.c (where the bytes are).
 */
#include "placement/borrow_flush.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/look.h"
#include "placement/data_int.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/chunks/proof.h"
#include "placement/chunks/stream.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_read.h"

/* ---- the part ---- */

static void part_begin(struct file *f, struct file_part *part)
{
    (void)f;
    lock_init(&((struct file_data *)part)->lock, RANK_DATA);
}

static void part_end(struct file_part *part)
{
    lock_destroy(&((struct file_data *)part)->lock);
}

const struct file_part_ops file_data_ops = {
    .size = sizeof(struct file_data), .begin = part_begin, .end = part_end};

/* ---- open and close ---- */

/* From here on this node looks at the file: its home must tell it, in this view and in later ones. */
static struct data_handle *handle_new(struct file *f, bool write)
{
    struct data_handle *h = xcalloc(1, sizeof(*h));
    look_opened(f->fid);
    h->f = file_ref(f);
    data_of(f); /* data_of_open */
    h->writes = write;
    lock_init(&h->lock, RANK_LEAF);
    owed_init(&h->owed);
    h->voided_seen = borrow_voided(f);
    lock_cond_init(&h->moved);
    return h;
}

int data_open(struct file *f, enum data_use use, bool trunc, const struct statx *stx, uint64_t looked_ms,
              bool named, struct data_handle **out)
{
    bool write = use != DATA_READS;
    struct patience p = data_patience();
    if (claim_is_void(f) || claim_aside_wait(f, p.end_ms))
        return -EIO;
    struct data_handle *h = handle_new(f, write);
    h->appends = use == DATA_APPENDS;
    struct version v = version_of(stx);
    uint64_t drops = data_drops(f);
    h->looked_ms = looked_ms;
    h->opening = named;
    int err = write ? data_locate_writer(h, &v, &p) : data_locate_reader(h, &v, &p);
    h->opening = false;
    h->drops_seen = drops;
    if (!err && h->appends && h->counted)
        lend_append_begins(f);
    if (!err && trunc)
        err = data_cut(h, 0, &p);
    if (err) {
        data_close(h);
        return err;
    }
    data_tag(h, &h->good);
    uint64_t node;
    if (!write && data_where(h, &node) == WHERE_PFS)
        stream_opened(data_stream(h));
    *out = h;
    return 0;
}

int data_open_known(struct file *f, const struct data_known *k, bool fixed,
                    struct data_handle **out)
{
    struct patience p = data_patience();
    if (claim_is_forgotten(f) || claim_aside_wait(f, p.end_ms)) /* as in data_open */
        return -EIO;
    struct data_handle *h = handle_new(f, false);
    h->drops_seen = data_drops(f);
    int err = data_locate_known(h, k, fixed, &p);
    if (err) {
        data_close(h);
        return err;
    }
    data_tag(h, &h->good);
    *out = h;
    return 0;
}

void data_close(struct data_handle *h)
{
    struct location nowhere = {.where = WHERE_PFS};
    if (h->stream)
        stream_close(h->stream);
    data_move_writer(h, &nowhere);
    if (h->borrows)
        borrow_closed(h->f);
    if (h->anchored)
        store_unanchor(h->f, h->anchored_bytes);
    pthread_cond_destroy(&h->moved);
    owed_free(&h->owed);
    lock_destroy(&h->lock);
    look_closed(h->f->fid);
    file_put(h->f);
    free(h);
}

/* ---- what is known without asking ---- */

void data_look(struct data_handle *h, struct location *out, struct data_tag *tag)
{
    data_attr(h, out);
    if (out->where == WHERE_PFS)
        *tag = (struct data_tag){.version = out->version, .counter = h->unlike};
    else
        *tag = (struct data_tag){.node = out->node, .counter = out->counter};
}

void data_tag(struct data_handle *h, struct data_tag *out)
{
    struct location at;
    data_look(h, &at, out);
}

/* ---- asking again ---- */

/* From now on the kernel caches the bytes that `now` names.  True: it cached other bytes before.  The counter
 * does not matter for a writer that is counted here: this node made every change, or told the kernel of it
 * (carry_on_changed). */
static bool take_tag(struct data_handle *h, const struct data_tag *now)
{
    lock_take(&h->lock);
    const struct data_tag *good = &h->good;
    bool same = good->node == now->node && version_eq(&good->version, &now->version) &&
                (good->counter == now->counter || (h->counted && now->node == members_self()));
    h->good = *now;
    lock_drop(&h->lock);
    return !same;
}

void data_dropping(struct data_handle *h)
{
    uint64_t drops = atomic_fetch_add(&data_of(h->f)->drops, 1);
    /* if there was another drop since this handle asked, it asks once more */
    atomic_compare_exchange_strong(&h->drops_seen, &drops, drops + 1);
}

int data_revalidate(struct data_handle *h, bool *changed, struct data_tag *now)
{
    uint64_t drops = data_drops(h->f);
    struct patience p = data_patience();
    int err = data_relocate(h, &p);
    if (!err)
        h->drops_seen = drops;
    data_tag(h, now);
    *changed = take_tag(h, now);
    return err;
}

/* ---- passthrough ---- */

int data_kernel_io_open(struct data_handle *h, int *fd, unsigned *life)
{
    uint64_t node;
    struct file_info info;
    enum where w = data_where(h, &node);
    lock_take(&h->lock);
    bool counted = h->counted;
    lock_drop(&h->lock);
    if (h->writes ? !counted : w != WHERE_HERE && w != WHERE_PFS)
        return -ENODATA;
    store_info(h->f, &info);
    if (w == WHERE_PFS && proofs_now(h->f).any) /* each read of the file must look at the proofs first */
        return -ENODATA;
    int err = kernel_io_open(h->f, h->writes, fd, life);
    carry_activity_begin(); /* I/O follows, which this daemon does not see */
    carry_activity_end();
    if (err || h->writes)
        return err;
    stream_count(atomic_load(&h->stream), &(struct fetched){.local = info.size});
    return 0;
}

void data_kernel_io_close(struct data_handle *h, unsigned life)
{
    kernel_io_close(h->f, life, h->writes);
}
