/* origin.c - a flight's read of the PFS, one for all that wait for the chunk; and the bytes on their way into
 * the store.
 *
 *   pool_data:  did this node become the chunk's owner by a change of view, or let it go to a caretaker (keep.h)?
 *                    | no                             | yes
 *                    | <--not there, or silent--  ask the former owner, or the caretaker
 *                    v                                | there: check
 *               read the PFS, hash                    |
 *                    v                                |
 *               give the bytes to all that wait <-----'
 *                    v
 *   filler:     store them
 *
 * That node answers from its store alone, and no thread waits for it here.  No job waits for
 * another node.
 */
#include "placement/chunks/flight_int.h"

#include <errno.h>

#include "placement/chunks/chunk_answer.h"
#include "placement/chunks/filler.h"
#include "placement/chunks/former.h"
#include "placement/chunks/owner.h"
#include "placement/chunks/places.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/hash.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define SILENCE_MS 3000 /* of the former owner */

/* ---- into the store ---- */

/* The file to which the bytes belong: made here if only FETCHes came for it, and this node did not know
 * it. */
static int keeping_file(struct flight *fl, struct file **f)
{
    *f = flight_file(fl);
    if (*f)
        return 0;
    struct file *made;
    int err = file_get(fl->key.fid, fl->path, &made);
    if (!err)
        *f = flight_give_file(fl, made);
    return err;
}

/* Gives the store's pages the chunk's version, which the PFS had before and after the read.  Pages of the
 * version that the store had before are dropped, and racy ones.
 * -ESTALE: the store got another version meanwhile, and its pages stay: after a chmod all other chunks may
 *          be here under the newer version by now.
 * -EBUSY:  the file is dirty or claimed here, so that its base version must not change; or it is held:
 *          opens of the file may have no other way to its bytes (store_anchor). */
static int follow_version(const struct flight *fl, struct file *f)
{
    const struct version *v = &fl->key.version;
    struct file_info info;
    store_info(f, &info);
    bool same = info.base_known && version_eq(&info.base, v);
    if (!same && store_is_held(f))
        return -EBUSY;
    if (same && !(info.racy && !fl->bytes->racy))
        return 0;
    int err = store_follow_version(f, v, fl->before_known ? &fl->before : NULL, NULL);
    return err == -EBUSY && same ? 0 : err;
}

/* A replica is stored only if the store's file has its version already. */
static int keep(struct flight *fl)
{
    const struct chunk *c = fl->bytes;
    struct file *f;
    if (!fl->replica && former_is_redirected(fl->key.fid, fl->key.index))
        return -ENOSPC;
    int err = keeping_file(fl, &f);
    if (!err && !fl->replica)
        err = follow_version(fl, f);
    if (err)
        return err;
    struct clean_chunk clean = {.index = fl->key.index,
                                .version = fl->key.version,
                                .buf = c->data,
                                .len = c->len,
                                .hash = c->hash,
                                .owned = !fl->replica && fl->owns,
                                .racy = c->racy};
    return store_fill(f, &clean);
}

void flight_keep(void *arg)
{
    struct flight *fl = arg;
    int err = keep(fl);
    if (!err && fl->replica)
        places_has(&fl->key);
    flight_kept(fl, err);
}

/* fl->read has the bytes: gives them to all that wait, then submits the job that stores them. */
static void give_and_keep(struct flight *fl, enum source source)
{
    if (flight_here(fl, &fl->read, source)) {
        fl->replica = source == FROM_PEER && fl->kept_there;
        filler_submit(fl->key.fid, flight_keep, fl);
    }
    flight_drop(fl);
}

/* ---- from the PFS ---- */

static void take_read(struct chunk *c, const struct pfs_chunk_read *r)
{
    c->len = r->len;
    c->racy = r->racy;
}

/* Gives the bytes to the reader without proof, unless the file was claimed since the read began: then another
 * node's flush may have written meanwhile, and the bytes may be of no version. */
static void give_unproven(void *arg, const struct pfs_chunk_read *r)
{
    struct flight *fl = arg;
    take_read(fl->read, r);
    if (fl->read->len != chunk_key_len(&fl->key) || !home_unclaimed_since(fl->key.fid, &fl->began))
        return;
    proof_begin(fl->by_file, &fl->proof);
    fl->given = flight_unproven(fl);
    if (!fl->given)
        proof_end(fl->by_file, &fl->proof, &fl->key.version,
                  0); /* the reader has given up: no reader has the bytes */
}

/* If a reader was given the bytes, the chunk has them already.  pfs_read_chunk returns -ESTALE for another
 * file and for another version; flight.h has -ENOENT for the former. */
static int end_read(struct flight *fl, const struct pfs_chunk_read *r, int err)
{
    if (!err && !fl->given)
        take_read(fl->read, r);
    if (err == -ESTALE)
        return version_eq(&fl->key.version, &r->version) ? -ENOENT : -ESTALE;
    return err;
}

static struct pfs_chunk_read read_of(const struct flight *fl)
{
    return (struct pfs_chunk_read){
        .index = fl->key.index, .version = fl->key.version, .buf = fl->read->data};
}

static int read_by_file(struct flight *fl, bool hasty)
{
    struct pfs_chunk_read r = read_of(fl);
    struct pfs_unproven u = {.here = give_unproven, .arg = fl};
    bool early = hasty && home_unclaimed_here(fl->key.fid, &fl->began);
    return end_read(fl, &r, pfs_read_chunk(fl->by_file, &r, early ? &u : NULL));
}

static int read_by_path(struct flight *fl)
{
    struct pfs_chunk_read r = read_of(fl);
    return end_read(fl, &r, pfs_read_chunk_at(fl->key.fid, fl->by_path, &r));
}

static int read_pfs(struct flight *fl)
{
    bool hasty = flight_read_begins(fl);
    int err = fl->by_file ? read_by_file(fl, hasty) : -ENOENT;
    if (err == -ENOENT && fl->by_path && !fl->given)
        err = read_by_path(fl);
    if (!err && fl->read->len != chunk_key_len(&fl->key))
        err = -ESTALE; /* fewer bytes than the version has: the file is being truncated */
    if (fl->given)
        proof_end(fl->by_file, &fl->proof, &fl->key.version, err);
    return err;
}

static void run_pfs(struct flight *fl)
{
    int err = read_pfs(fl);
    if (err) {
        flight_read_failed(fl, err);
        flight_drop(fl);
        return;
    }
    fl->read->hash = data_hash(fl->read->data, fl->read->len);
    give_and_keep(fl, FROM_PFS);
}

/* ---- the former owner, or the caretaker ---- */

static void learn_of_former(struct flight *fl, int err)
{
    if (members_no_contact(err))
        members_doubt(fl->former);
    else if (!fl->kept_there)
        former_answered(fl->former, !err);
    if (err && fl->kept_there)
        places_lost(&fl->key, fl->former);
}

static void run_answered(void *arg)
{
    struct flight *fl = arg;
    int err = fl->former_err ? fl->former_err : chunk_answer_check(fl->read, &fl->key, fl->former);
    learn_of_former(fl, err);
    if (err) {
        run_pfs(fl);
        return;
    }
    /* A node that has the file open in an older version may have asked.  Then the store's newer version
     * stays. */
    if (fl->before_known && fl->before.ctime_ns > fl->key.version.ctime_ns)
        fl->before_known = false;
    count(former_bytes, fl->kept_there ? 0 : fl->read->len);
    give_and_keep(fl, FROM_PEER);
}

/* Network thread. */
static void on_former(void *arg, int err, struct msg *reply, bool *keep)
{
    struct flight *fl = arg;
    (void)keep;
    fl->former_err = err ? err : chunk_answer_take(fl->read, &fl->key, reply, fl->former);
    pool_submit(pool_data, run_answered, fl);
}

static void ask_former(struct flight *fl)
{
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.fid = fl->key.fid;
    m->fetch.index = fl->key.index;
    m->fetch.version = fl->key.version;
    m->fetch.only_cached = 1;
    m->fetch.ahead = fl->read_idle;
    m->fetch.way = FETCH_HERE;
    m->fetch.path = "";
    peer_request(fl->former, m, SILENCE_MS, fl->read->data, fl->read->size, on_former, fl);
}

void flight_read(void *arg)
{
    struct flight *fl = arg;
    fl->owns = fl->why == OWNED_HERE || owner_is_here(fl->key.fid, fl->key.index);
    fl->former = fl->owns ? former_owner(fl->key.fid, fl->key.index) : 0;
    fl->kept_there = false;
    if (!fl->former && fl->owns) {
        fl->former = places_caretaker(&fl->key);
        fl->kept_there = fl->former;
    }
    if (fl->former)
        ask_former(fl);
    else
        run_pfs(fl);
}
