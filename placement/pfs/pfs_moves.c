/* pfs_moves.c - follows a path through the session's log of moves.
 *
 *     path in a record      log                    guesses, the last first
 *     a/b/f                 1  a/b   -> a/c
 *                           2  x     -> a/b
 *                           3  a     -> d          3        d/b/f     recorded after 2
 *                                                  1, 3     d/c/f     recorded before 1
 *
 * A record does not say how old its path is.  So each entry that concerns the path begins a guess, with those
 * after it.  The caller looks at the guesses, and the fid decides.
 */
#include "placement/pfs/pfs_moves.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/lock.h"
#include "transport/members.h"
#include "transport/moves.h"
#include "transport/session.h"
#include "transport/view.h"

static struct {
    struct lock lock; /* RANK_LEAF: all that follows */
    struct session_move *v;
    size_t n, room;
    uint64_t newest;
} moves = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static int take_entry(void *arg, const struct session_move *m)
{
    (void)arg;
    lock_take(&moves.lock);
    if (m->number > moves.newest) { /* another thread may have read it meanwhile */
        if (moves.n == moves.room)
            moves.v = xrealloc(moves.v, (moves.room = moves.room * 2 + 16) * sizeof(*moves.v));
        moves.v[moves.n] = *m;
        moves.v[moves.n].from = xstrdup(m->from);
        moves.v[moves.n++].to = xstrdup(m->to);
        moves.newest = m->number;
    }
    lock_drop(&moves.lock);
    return 0;
}

static uint64_t newest(void)
{
    lock_take(&moves.lock);
    uint64_t number = moves.newest;
    lock_drop(&moves.lock);
    return number;
}

uint64_t moves_read(void)
{
    static _Atomic uint64_t said;
    int err = session_dirfd() < 0 ? 0 : session_each_move(newest(), take_entry, NULL);
    if (err && log_every(&said, 60000))
        log_warn("the session's log of moves cannot be read: %s: files below directories that other nodes have "
                 "moved may not be found",
                 strerror(-err));
    return newest();
}

bool moves_are_shared(uint64_t *view)
{
    const struct view *v = members_view();
    *view = v ? v->number : 0;
    return !v || v->nmembers > 1 || v->nabsent;
}

/* Malloc'd: what leads to `path` after `from` was moved to `to`; NULL: it is not at or below `from`. */
static char *below(const char *path, const char *from, const char *to)
{
    size_t len = strlen(from);
    char *moved;
    if (!*to || strncmp(path, from, len) || (path[len] && path[len] != '/'))
        return NULL;
    if (asprintf(&moved, "%s%s", to, path + len) < 0)
        die("out of memory");
    return moved;
}

/* The same after one entry.  An entry of a file concerns no other file. */
static char *after(const struct session_move *m, const char *path, struct fid fid)
{
    if (!strcmp(path, m->from) && !fid_eq(fid, m->fid) && !m->exchange)
        return NULL;
    char *moved = below(path, m->from, m->to);
    return moved || !m->exchange ? moved : below(path, m->to, m->from);
}

/* Lock held: after the entries from first on; NULL if the first one does not concern it. */
static char *guess_from(size_t first, const char *path, struct fid fid)
{
    char *at = after(&moves.v[first], path, fid);
    for (size_t k = first + 1; at && k < moves.n; k++) {
        char *next = after(&moves.v[k], at, fid);
        if (!next)
            continue;
        free(at);
        at = next;
    }
    return at;
}

char *moves_guess(const char *path, struct fid fid, uint64_t since, size_t n)
{
    char *guess = NULL;
    lock_take(&moves.lock);
    for (size_t k = moves.n; k-- && moves.v[k].number > since;) {
        guess = guess_from(k, path, fid);
        if (guess && !n--)
            break;
        free(guess);
        guess = NULL;
    }
    lock_drop(&moves.lock);
    return guess;
}

bool moves_say_removed(const char *path, struct fid fid)
{
    bool removed = false;
    lock_take(&moves.lock);
    for (size_t k = 0; k < moves.n && !removed; k++) {
        const struct session_move *m = &moves.v[k];
        removed = !*m->to && !m->last && fid_eq(m->fid, fid) && !strcmp(m->from, path);
    }
    lock_drop(&moves.lock);
    return removed;
}

/* An absent node may be cut off, and come back as it was.  Without a view nothing is known. */
static bool may_run(const struct view *v, uint64_t node, uint64_t incarnation)
{
    return !v || view_has(v, node, incarnation) || (!view_member(v, node) && view_absent(v, node));
}

enum moves_gone moves_say_gone(struct fid fid)
{
    const struct view *v = members_view();
    enum moves_gone gone = MOVES_NOT_GONE;
    lock_take(&moves.lock);
    for (size_t k = 0; k < moves.n && gone != MOVES_GONE; k++) {
        const struct session_move *m = &moves.v[k];
        if (m->last && fid_eq(m->fid, fid))
            gone = m->open_at && may_run(v, m->open_at, m->open_inc) ? MOVES_GONE_MAY_BE_OPEN : MOVES_GONE;
    }
    lock_drop(&moves.lock);
    return gone;
}

void moves_log_gone(struct fid fid, const char *path, bool open)
{
    uint64_t view;
    struct session_move m = {
        .fid = fid, .from = (char *)(path ? path : "?"), .to = (char *)"", .last = true};
    if (open) {
        m.open_at = members_self();
        m.open_inc = members_incarnation();
    }
    int err = moves_are_shared(&view) ? session_write_move(&m) : 0;
    if (err)
        log_warn("the session's log of moves cannot be written: %s: the node that has unflushed bytes "
                 "of a file that was removed while it was away will keep them: %s",
                 strerror(-err), m.from);
    if (!err && m.number && m.number % MOVES_TRIM_EVERY == 0)
        session_trim_moves(); /* what is left is trimmed with a later entry */
}
