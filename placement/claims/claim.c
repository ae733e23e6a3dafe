/* claim.c - a file's claim on this node: it is taken for an open for writing, stays while anything is
 * dirty, and is given back (docs/protocol.md, rules 10, 12-14).
 *
 *     NONE --WANT--> ASKING --GRANT, persisted--> HELD --clean, no writer, cleared on disk--> NONE (+ FREE)
 *               '--AT another node, LOST, deadline--> NONE
 *
 * While it is HELD the claim keeps a reference on struct file, and this node's word is the truth in
 * every view.  The claim's lock (RANK_CLAIM) is held while the store clears the claim, and never
 * while a message or the PFS is waited for.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_int.h"
#include "placement/claims/claim_settled.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/pfs/pfs_data.h"
#include "placement/ring/ring.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/peer.h"
#include "transport/view.h"
#include "transport/waits.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the part ---- */

static void part_begin(struct file *f, struct file_part *part)
{
    struct file_claim *c = (struct file_claim *)part;
    (void)f;
    lock_init(&c->lock, RANK_CLAIM);
    lock_cond_init(&c->changed);
}

static void part_end(struct file_part *part)
{
    struct file_claim *c = (struct file_claim *)part;
    lock_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c->watchers);
}

const struct file_part_ops file_claim_ops = {
    .size = sizeof(struct file_claim), .begin = part_begin, .end = part_end};

bool claim_is_held(struct file *f)
{
    struct file_claim *c = claim_if(f);
    if (!c)
        return false;
    lock_take(&c->lock);
    bool held = c->state == CLAIM_HELD;
    lock_drop(&c->lock);
    return held;
}

bool claim_has_writers(struct file *f)
{
    struct file_claim *c = claim_if(f);
    if (!c)
        return false;
    lock_take(&c->lock);
    bool writers = c->writers > 0;
    lock_drop(&c->lock);
    return writers;
}

uint64_t claim_carried(struct file *f)
{
    struct file_claim *c = claim_if(f);
    return c ? c->carried : 0;
}

uint64_t claim_others(struct file *f)
{
    struct file_claim *c = claim_if(f);
    return c ? c->others : 0;
}

void claim_other_wrote(struct file *f)
{
    claim_of(f)->others++;
}

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

/* Another node may have flushed between the look and the grant. */
static bool still_so(const struct claim_seen *seen, const struct body_grant *g, uint64_t view)
{
    if (g->known == 1)
        return version_eq(&g->version, seen->version);
    return !g->known && claim_settled(view, seen->looked_ms);
}

static void take_watchers(struct file *f, const struct watchers *w)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    watchers_set(c, w);
    c->watchers_unknown = c->drop_told = false;
    lock_drop(&c->lock);
}

/* Its last name went at another node.  True for an opener, who looks the name up again; and for who has it open, if the PFS never
 * had its latest bytes. */
static bool is_lost(struct file *f, const struct claim_seen *seen, const struct body_grant *g)
{
    struct location at = {.where = WHERE_PFS, .known = g->known, .version = g->version};
    return !file_is_unlinked(f) && (seen->named || claim_dropped(&at));
}

static void note_begun(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    claim_of(f)->begun = info.base_known ? version_mark(&info.base) : 0;
}

/* The claim is in this node's list; now it is written to disk, with the PFS's version as its base. */
static int keep_grant(struct file *f, const struct claim_seen *seen, const struct granted *g)
{
    struct version v = *seen->version;
    int err = 0;
    if (!still_so(seen, &g->body, g->view)) {
        struct statx stx;
        err = pfs_file_stat(f, &stx);
        if (!err && !stx.stx_nlink && is_lost(f, seen, &g->body))
            err = -ESTALE;
        if (!err)
            v = version_of(&stx);
    }
    if (!err)
        err = store_set_claim(f, claim_of(f)->inc, claim_of(f)->number, &v);
    if (!err) {
        note_begun(f);
        if (g->body.known && version_eq(&g->body.version, &v))
            store_tell(f, &v, &g->body.told);
        file_ref(f);
        take_watchers(f, &g->watchers);
        own_ready(f->fid);
        count(claims_granted, 1);
        return 0;
    }
    own_remove(f->fid);
    claim_tell_free(f->fid, claim_of(f)->inc, claim_of(f)->number, NULL, NULL, NULL);
    return err;
}

/* FREE covered the number, and this is a late answer to it; or there was no answer, and a GRANT may have been lost.
 * With a higher number the home knows that this node does not have the claim, so that nobody is sent here for
 * the file's bytes before the next GRANT. */
static void take_new_number(struct file *f)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    c->number = claim_next_number();
    lock_drop(&c->lock);
}

/* Granted: this node has the claim, if it is still in the view in which it asked for it. */
static int take_grant(struct file *f, const struct claim_seen *seen, const struct view *v,
                      const struct granted *g, struct location *out)
{
    if (g->view != v->number || !own_add(f->fid, claim_of(f)->inc, claim_of(f)->number, v->number))
        return -EAGAIN;
    int err = keep_grant(f, seen, g);
    if (!err)
        claim_own_word(f, out);
    return err;
}

/* Another node has the claim: asks that node, if it still has it. */
static int ask_claimant(struct file *f, uint64_t end, struct location *out)
{
    struct location l;
    int err = claim_where_until(f->fid, LOOK_NONE, end, &l);
    if (err || l.where != WHERE_NODE)
        return -EAGAIN;
    *out = l;
    return 0;
}

int claim_want(struct file *f, const struct view *v, bool held, struct granted *out)
{
    uint64_t home = view_home(v, f->fid);
    struct msg *reply = NULL;
    *out = (struct granted){.view = v->number};
    if (home == members_self() &&
        home_want_here(v->number, f->fid, claim_of(f)->number, &out->body))
        return 0;
    struct msg *m = msg_new(MSG_WANT);
    m->want.fid = f->fid;
    m->want.number = claim_of(f)->number;
    m->want.held = held;
    m->want.look_number = look_number();
    int err = peer_call(home, m, T_PING, NULL, 0, &reply);
    if (members_no_contact(err))
        members_doubt(home);
    if (reply && !err) {
        out->body = reply->grant;
        out->watchers = watchers_granted(&reply->grant);
        out->view = reply->head.view;
    }
    if (reply)
        msg_free(reply);
    return err;
}

/* 0: *out says where; -EAGAIN: once more; else the open's error. */
static int want_once(struct file *f, const struct claim_seen *seen, const struct view *v, uint64_t end,
                     struct location *out)
{
    struct granted g;
    int err = claim_want(f, v, false, &g);
    if (err == -ESTALE || members_no_contact(err))
        take_new_number(f);
    if (err)
        return -EAGAIN;
    claim_note_settled(g.view);
    if (g.body.where == AT_GRANTED)
        return take_grant(f, seen, v, &g, out);
    if (g.body.where == AT_LOST) {
        say_lost(f, g.body.node);
        return -EIO;
    }
    return ask_claimant(f, end, out);
}

static void say_not_granted(void)
{
    if (!members_view())
        log_warn("this node is outside the session: the claim of a file cannot be granted: its "
                 "open for writing fails with EIO");
    else
        log_warn("the claim of a file was not granted within %d s: its open for writing fails with "
                 "EIO",
                 T_OPEN / 1000);
}

static int ask_for_claim(struct file *f, const struct claim_seen *seen, uint64_t end,
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
    claim_tell_free(f->fid, claim_of(f)->inc, claim_of(f)->number, NULL, NULL, NULL);
    say_not_granted();
    return -EIO;
}

/* ---- writers ---- */

static void set_state(struct file *f, enum claim_state s, unsigned more_writers)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    c->state = s;
    c->writers += more_writers;
    pthread_cond_broadcast(&c->changed);
    lock_drop(&c->lock);
}

/* Counted as a writer of the claim that this node has. */
static int open_held(struct file *f, uint64_t end_ms, struct location *out)
{
    int err = claim_know_watchers(f, end_ms);
    if (err)
        claim_close_writer(f);
    else
        claim_own_word(f, out);
    return err;
}

int claim_open_writer(struct file *f, const struct claim_seen *seen, uint64_t end_ms, struct location *out)
{
    struct file_claim *c = claim_of(f);
    uint64_t t;
    lock_take(&c->lock);
    while ((c->state == CLAIM_ASKING || c->aside) && (t = boot_ms()) < end_ms)
        wait_on(WAIT_NODES, &c->lock, &c->changed, end_ms - t);
    if (c->state == CLAIM_ASKING || c->aside) {
        lock_drop(&c->lock);
        return -EIO; /* the writers before this one waited as long, and logged the reason */
    }
    if (c->state == CLAIM_HELD) {
        c->writers++;
        lock_drop(&c->lock);
        return open_held(f, end_ms, out);
    }
    c->state = CLAIM_ASKING;
    c->inc = members_incarnation();
    c->number = claim_next_number();
    lock_drop(&c->lock);
    int err = ask_for_claim(f, seen, end_ms, out);
    if (!err && out->where == WHERE_HERE)
        set_state(f, CLAIM_HELD, 1);
    else
        set_state(f, CLAIM_NONE, 0);
    return err;
}

void claim_close_writer(struct file *f)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    if (!c->writers)
        die("claim: a writer closed that was never counted");
    bool last = !--c->writers;
    lock_drop(&c->lock);
    if (last)
        claim_give_back(f);
}

int claim_pin_begin(struct file *f)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    while (c->aside)
        wait_on(WAIT_NODES, &c->lock, &c->changed, 0);
    bool ours = c->state == CLAIM_HELD && !c->forgotten;
    c->writers += ours;
    lock_drop(&c->lock);
    return ours ? 0 : -ENOENT;
}

int claim_carry_begin(struct file *f)
{
    int err = claim_pin_begin(f);
    if (!err)
        claim_of(f)->carried++;
    return err;
}

void claim_carry_end(struct file *f)
{
    claim_close_writer(f);
    claim_closed(f);
}

/* ---- its data is put beside it ---- */

bool claim_aside_begin(struct file *f)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    bool may = !c->writers && c->state != CLAIM_ASKING;
    c->aside = may;
    lock_drop(&c->lock);
    return may;
}

void claim_aside_end(struct file *f)
{
    struct file_claim *c = claim_of(f);
    lock_take(&c->lock);
    c->aside = false;
    pthread_cond_broadcast(&c->changed);
    lock_drop(&c->lock);
}

int claim_aside_wait(struct file *f, uint64_t end_ms)
{
    struct file_claim *c = claim_if(f);
    uint64_t t;
    if (!c)
        return 0;
    lock_take(&c->lock);
    while (c->aside && (t = boot_ms()) < end_ms)
        wait_on(WAIT_NODES, &c->lock, &c->changed, end_ms - t);
    int err = c->aside ? -EIO : 0;
    lock_drop(&c->lock);
    return err;
}

int claim_change_begin(struct file *f, uint64_t end_ms)
{
    int err = claim_carry_begin(f);
    if (err)
        return err;
    err = claim_know_watchers(f, end_ms);
    if (err)
        claim_carry_end(f);
    return err;
}
