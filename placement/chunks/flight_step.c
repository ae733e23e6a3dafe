/* flight_step.c - the changes of a flight's state (flight_int.h describes them).
 *
 * Each function takes the shard's lock for the change; it calls FETCHes back and submits jobs without it.
 */
#include "placement/chunks/flight_int.h"

#include <errno.h>

#include "transport/loop.h"

static void tell_peers(struct flight_peer *p, int err, struct chunk *c)
{
    for (struct flight_peer *next; p; p = next) {
        next = p->next;
        p->done(p, err, c);
    }
}

/* Shard locked. */
static struct flight_peer *take_peers(struct flight *fl)
{
    struct flight_peer *all = fl->peers;
    fl->peers = NULL;
    return all;
}

/* Shard locked.  Those that were sent here, too. */
static struct flight_peer *take_all(struct flight *fl)
{
    struct flight_peer *all = take_peers(fl), **end = &all;
    while (*end)
        end = &(*end)->next;
    *end = fl->sent_here;
    fl->sent_here = NULL;
    return all;
}

/* Shard locked, and no FETCH waits any more; the caller drops the table's reference. */
static void end_flight(struct flight *fl, int err)
{
    flight_leave_table(fl);
    flight_end_readers(fl, err, true);
}

/* ---- a node is asked ---- */

bool flight_asks(struct flight *fl, uint64_t node)
{
    flight_lock(fl);
    bool asks =
        !fl->peers && fl->readers && (fl->state == FLIGHT_BEGUN || fl->state == FLIGHT_ASKED);
    if (asks) {
        fl->state = FLIGHT_ASKED;
        fl->node = node;
        fl->ask_idle = !fl->busy;
        fl->asked = fl->spare;
        fl->spare = NULL;
        fl->refs++;
    }
    flight_unlock(fl);
    return asks;
}

void flight_answered(struct flight *fl, int err)
{
    fl->answer_err = err;
    flight_lock(fl);
    flight_find_checker(fl);
    flight_unlock(fl);
}

void flight_unasked(struct flight *fl)
{
    flight_lock(fl);
    struct chunk *c = fl->asked;
    fl->asked = NULL;
    if (fl->state == FLIGHT_ASKED) {
        fl->spare = c;
        c = NULL;
    }
    flight_unlock(fl);
    chunk_put(c);
}

/* ---- the PFS is read ---- */

void flight_begin_read(struct flight *fl, enum flight_why why)
{
    fl->state = FLIGHT_READ;
    fl->why = why;
    fl->read_idle = !fl->busy;
    fl->read = fl->spare;
    fl->spare = NULL;
    fl->hasty = fl->leader && fl->leader->takes ? fl->leader : NULL;
    fl->refs++;
}

void flight_reads(struct flight *fl, enum flight_why why)
{
    flight_lock(fl);
    bool idle = fl->state < FLIGHT_READ, reads = idle && (fl->readers || fl->peers);
    if (reads)
        flight_begin_read(fl, why);
    else if (idle)
        flight_leave_table(fl);
    struct flight_peer *sent = idle && !reads ? take_all(fl) : NULL;
    flight_unlock(fl);
    tell_peers(sent, -ENOENT, NULL);
    if (reads)
        pool_submit(pool_data, flight_read, fl);
    else if (idle)
        flight_drop(fl);
}

bool flight_read_begins(struct flight *fl)
{
    flight_lock(fl);
    fl->by_file = fl->file;
    fl->by_path = fl->path;
    bool hasty = fl->hasty;
    flight_unlock(fl);
    return hasty;
}

bool flight_unproven(struct flight *fl)
{
    flight_lock(fl);
    struct flight_reader *r = fl->state == FLIGHT_READ && !fl->asked ? fl->hasty : NULL;
    if (r) {
        fl->state = FLIGHT_UNPROVEN;
        fl->source = FROM_PFS;
        fl->bytes = chunk_ref(fl->read);
        flight_credit(fl);
        r->early = true;
        flight_end_reader(fl, r, 0);
    }
    flight_unlock(fl);
    return r;
}

/* Shard locked.  True: the flight goes on after a failed read, as the readers may still get the bytes.  c:
 * the buffer of the failed read; if *again, the caller submits another read, which has taken *c over. */
static bool go_on(struct flight *fl, int err, struct chunk **c, bool *again)
{
    if (fl->asked) {
        fl->state = FLIGHT_ASKED;
        return true;
    }
    *again = err == -ENOENT && !fl->by_file && fl->file && fl->readers;
    if (!*again)
        return false;
    fl->spare = *c;
    *c = NULL;
    flight_begin_read(fl, fl->why);
    return true;
}

void flight_read_failed(struct flight *fl, int err)
{
    bool again = false;
    flight_lock(fl);
    struct chunk *c = fl->read;
    fl->read = NULL;
    bool matters = fl->state < FLIGHT_HERE;
    struct flight_peer *peers = matters ? take_peers(fl) : NULL;
    bool ends = matters && !go_on(fl, err, &c, &again);
    struct flight_peer *sent = ends ? take_all(fl) : NULL;
    if (ends)
        end_flight(fl, err);
    flight_unlock(fl);
    chunk_put(c);
    tell_peers(peers, err, NULL);
    tell_peers(sent, err, NULL);
    if (again)
        pool_submit(pool_data, flight_read, fl);
    if (ends)
        flight_drop(fl);
}

/* ---- the bytes are here ---- */

bool flight_here(struct flight *fl, struct chunk **buffer, enum source source)
{
    flight_lock(fl);
    bool first = fl->state < FLIGHT_HERE;
    struct chunk *c = *buffer;
    *buffer = NULL;
    struct flight_peer *peers = NULL;
    bool unchecked = fl->checker;
    if (first) {
        if (!fl->bytes) { /* else fl->bytes is this buffer already, unproven until now */
            fl->bytes = c;
            c = NULL;
        }
        fl->state = FLIGHT_HERE;
        fl->source = source;
        fl->checker = NULL;
        flight_credit(fl);
        flight_end_readers(fl, 0, false);
        peers = take_all(fl);
    }
    flight_unlock(fl);
    chunk_put(c);
    if (first && source == FROM_PFS && fl->why == NOBODY_ELSE)
        count(fallback_reads, 1);
    tell_peers(peers, 0, fl->bytes);
    if (first && unchecked) { /* an answer that is not needed any more */
        flight_unasked(fl);
        flight_drop(fl);
    }
    return first;
}

void flight_kept(struct flight *fl, int kept)
{
    flight_lock(fl);
    end_flight(fl, kept);
    flight_unlock(fl);
    flight_drop(fl);
}
