/* claim.c - a file's claim on this node: taken for an open for writing, kept while anything is
 * dirty, given back (docs/protocol.md, rules 10, 12-14).
 *
 *     NONE --WANT--> ASKING --GRANT, persisted--> HELD --clean, no writer, cleared on disk--> NONE (+ FREE)
 *               '--AT another node, LOST, deadline--> NONE
 *
 * While it is HELD the claim keeps a reference on struct file, and this node's word is the truth in
 * every view.  Lock order: f->claim_lock (RANK_CLAIM) is held while the store clears the claim, and
 * never while a message or the PFS is waited for; f->lock is taken alone.
 */
#include "placement/claims/claim_int.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs_data.h"
#include "placement/ring/ring.h"
#include "placement/store/store.h"
#include "transport/peer.h"

#include <errno.h>
#include <stdlib.h>

/* ---- request numbers ---- */

static _Atomic uint64_t last_number;

uint64_t claim_next_number(void)
{
    return atomic_fetch_add(&last_number, 1) + 1;
}

uint64_t claim_last_number(void)
{
    return last_number;
}

/* ---- asking for it ---- */

static void say_lost(struct file *f, uint64_t node)
{
    char *path = file_path(f);

    count(lost_opens, 1);
    log_warn(
        "%s: its latest bytes are on node %s, which left the session: EIO until that node is back",
        path, members_name(node));
    free(path);
}

static bool file_unlinked(struct file *f)
{
    lock_take(&f->lock);
    bool unlinked = f->unlinked;
    lock_drop(&f->lock);
    return unlinked;
}

/* What the opener saw of the PFS.  Another node may have flushed between the look and the grant. */
struct seen {
    const struct version *version;
    uint64_t looked_ms;
};

static bool still_so(const struct seen *seen, const struct body_grant *g, uint64_t view)
{
    if (g->known == 1)
        return version_eq(&g->version, seen->version);
    return !g->known && claim_settled(view, seen->looked_ms);
}

/* The claim is in our list; now it goes to disk, with what the PFS has as its base. */
static int keep_grant(struct file *f, const struct seen *seen, const struct body_grant *g,
                      uint64_t view)
{
    struct version v = *seen->version;
    struct statx stx;
    int err = 0;

    if (!still_so(seen, g, view)) {
        err = pfs_file_stat(f, &stx);
        if (!err && !stx.stx_nlink && !file_unlinked(f))
            /* or removed it, and what was not flushed is gone: the opener looks its name up
             * again */
            err = -ESTALE;
        if (!err)
            v = version_of(&stx);
    }
    if (!err)
        err = store_set_claim(f, f->number_inc, f->number, &v);
    if (!err) {
        file_ref(f);
        own_ready(f->fid);
        count(claims_granted, 1);
        return 0;
    }
    own_remove(f->fid);
    claim_tell_free(f->fid, f->number_inc, f->number, NULL);
    return err;
}

/* FREE covered the number: it was a late answer's. */
static void take_new_number(struct file *f)
{
    lock_take(&f->claim_lock);
    f->number = claim_next_number();
    lock_drop(&f->claim_lock);
}

/* Granted: ours, if the view in which it was asked for is still ours. */
static int take_grant(struct file *f, const struct seen *seen, const struct view *v,
                      const struct body_grant *grant, uint64_t granted_in, struct location *out)
{
    int err;

    if (granted_in != v->number || !own_add(f->fid, f->number_inc, f->number, v->number))
        return -EAGAIN;
    err = keep_grant(f, seen, grant, granted_in);
    if (!err)
        claim_own_word(f, out);
    return err;
}

/* Another node has it: its word, if it still has it. */
static int ask_claimant(struct file *f, uint64_t end, struct location *out)
{
    struct location l;
    int err = claim_where_until(end, &f->fid, 1, &l, NULL);

    if (err || l.where != WHERE_NODE)
        return -EAGAIN;
    *out = l;
    return 0;
}

/* One WANT.  0: *out is the answer, given in *view. */
static int ask_home(struct file *f, const struct view *v, struct body_grant *out, uint64_t *view)
{
    uint64_t home = view_home(v, f->fid);
    struct msg *m, *reply = NULL;
    int err;

    *view = v->number;
    if (home == members_self() && home_want_here(v->number, f->fid, f->number, out))
        return 0;
    m = msg_new(MSG_WANT);
    m->want.fid = f->fid;
    m->want.number = f->number;
    err = peer_call(home, m, T_PING, NULL, 0, &reply);
    if (members_no_contact(err))
        members_doubt(home);
    if (reply) {
        *out = reply->grant;
        *view = reply->head.view;
        msg_free(reply);
    }
    return err;
}

/* 0: *out says where; -EAGAIN: once more; else the open's error. */
static int want_once(struct file *f, const struct seen *seen, const struct view *v, uint64_t end,
                     struct location *out)
{
    struct body_grant grant;
    uint64_t view;
    int err = ask_home(f, v, &grant, &view);

    if (err == -ESTALE)
        take_new_number(f);
    if (err)
        return -EAGAIN;
    claim_note_settled(view);
    if (grant.where == AT_GRANTED)
        return take_grant(f, seen, v, &grant, view, out);
    if (grant.where == AT_LOST) {
        say_lost(f, grant.node);
        return -EIO;
    }
    return ask_claimant(f, end, out);
}

static void say_not_granted(void)
{
    if (!members_view())
        log_warn("this node is outside the session: the claim of a file can not be had: its open "
                 "for writing fails with EIO");
    else
        log_warn("the claim of a file was not granted within %d s: its open for writing fails with "
                 "EIO",
                 T_OPEN / 1000);
}

static int ask_for_claim(struct file *f, const struct seen *seen, uint64_t end,
                         struct location *out)
{
    unsigned wait = 5;
    int err = -EAGAIN;

    for (;;) {
        const struct view *v = members_view();

        if (v)
            err = want_once(f, seen, v, end, out);
        if (err != -EAGAIN)
            return err;
        if (boot_ms() >= end)
            break;
        claim_wait(wait);
        wait = MIN(2 * wait, 100);
    }
    claim_tell_free(f->fid, f->number_inc, f->number, NULL);
    say_not_granted();
    return -EIO;
}

/* ---- writers ---- */

static void set_state(struct file *f, enum claim_state s, unsigned more_writers)
{
    lock_take(&f->claim_lock);
    f->claim = s;
    f->writers += more_writers;
    pthread_cond_broadcast(&f->claim_changed);
    lock_drop(&f->claim_lock);
}

int claim_open_writer(struct file *f, const struct version *base, uint64_t looked_ms,
                      struct location *out)
{
    struct seen seen = {base, looked_ms};
    uint64_t end = boot_ms() + members_patience(), t;
    int err;

    lock_take(&f->claim_lock);
    while (f->claim == CLAIM_ASKING && (t = boot_ms()) < end)
        lock_wait(&f->claim_lock, &f->claim_changed, end - t);
    if (f->claim == CLAIM_ASKING) {
        lock_drop(&f->claim_lock);
        return -EIO; /* those before us waited as long, and said why */
    }
    if (f->claim == CLAIM_HELD) {
        f->writers++;
        lock_drop(&f->claim_lock);
        claim_own_word(f, out);
        return 0;
    }
    f->claim = CLAIM_ASKING;
    f->number_inc = members_incarnation();
    f->number = claim_next_number();
    lock_drop(&f->claim_lock);
    err = ask_for_claim(f, &seen, end, out);
    if (!err && out->where == WHERE_HERE)
        set_state(f, CLAIM_HELD, 1);
    else
        set_state(f, CLAIM_NONE, 0);
    return err;
}

void claim_close_writer(struct file *f)
{
    bool last;

    lock_take(&f->claim_lock);
    if (!f->writers)
        die("claim: a writer closed that was never counted");
    last = !--f->writers;
    lock_drop(&f->claim_lock);
    if (last)
        claim_give_back(f);
}

int claim_carry_begin(struct file *f)
{
    int err = -ENOENT;

    lock_take(&f->claim_lock);
    if (f->claim == CLAIM_HELD && !f->forgotten) {
        f->writers++;
        f->last_carried++;
        err = 0;
    }
    lock_drop(&f->claim_lock);
    return err;
}

void claim_carry_end(struct file *f)
{
    claim_close_writer(f);
    claim_closed(f);
}

/* ---- giving it back ---- */

/* Of a removed file nobody is to believe that the PFS has what was here: no version is this one, so
 * who asks looks at the PFS. */
static const struct version removed = {UINT64_MAX, INT64_MAX, INT64_MAX};

/* What was written to it, and will not be flushed, is only here, and who has it open may open it again
 * (/proc/self/fd, /dev/stdin): until the last close.  Not without a descriptor: see claim_unlinked. */
static bool is_open_without_name(struct file *f)
{
    lock_take(&f->lock);
    bool open = f->unlinked && f->opens > 0 && f->pfs_fd >= 0;
    lock_drop(&f->lock);
    return open;
}

void claim_give_back(struct file *f)
{
    struct file_info info;
    uint64_t inc, number;
    bool given = false;

    lock_take(&f->claim_lock);
    if (f->claim == CLAIM_HELD && !f->writers && !is_open_without_name(f)) {
        store_info(f, &info);
        if (!info.dirty && store_clear_claim(f, info.base_known ? &info.base : NULL)) {
            own_remove(f->fid);
            inc = f->number_inc;
            number = f->number;
            f->claim = CLAIM_NONE;
            given = true;
            pthread_cond_broadcast(&f->claim_changed);
        }
    }
    lock_drop(&f->claim_lock);
    if (!given)
        return;
    if (file_unlinked(f)) {
        claim_tell_free(f->fid, inc, number, &removed);
        pfs_drop(f); /* unless it is open; kept for a flush that does not come */
    } else {
        claim_tell_free(f->fid, inc, number, info.base_known ? &info.base : NULL);
    }
    file_put(f); /* the claim's own reference: the caller has another one */
}

/* The descriptor on the PFS goes last: while it is open the PFS does not give the inode's number to
 * a new file, which would have the same fid where the PFS tells no birth time. */
void claim_unlinked(struct file *f)
{
    bool held, open;

    lock_take(&f->lock);
    f->unlinked = true;
    open = f->opens > 0;
    lock_drop(&f->lock);
    store_set_deleted(f);
    claim_give_back(f);
    lock_take(&f->claim_lock);
    held = f->claim != CLAIM_NONE;
    lock_drop(&f->claim_lock);
    if (!open && !held)
        pfs_drop(f);
}
