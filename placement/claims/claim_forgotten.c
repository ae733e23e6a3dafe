/* claim_forgotten.c - this node's claims that an operator has forgotten while the node was away
 * (docs/protocol.md, rule 17).  They are found in the session's marks: at the start before claims are taken
 * up, before each piece that this node flushes while it is fenced, and before it joins again.
 *
 * A file that is marked is never flushed: flush/conflict.c puts its data beside it, when the file is not
 * open.  Processes that have it open read and write it as it is.  Until it is put aside, no other open of it
 * succeeds here: it would read data that is not the file's any more, or its writes would be lost to the file.
 * The mark is removed then and not before, since the next start must find it.  Until then it is made to cover
 * only this claim, since claims that come later are not void.  A mark that covers nothing comes from a forget
 * that this node's return has ended; it is removed when this node is a member again.
 */
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_int.h"

#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A list of marks, in no order. */
struct marks {
    struct mark *v;
    uint32_t n;
};

static struct {
    struct lock lock; /* RANK_LEAF */
    struct marks read;
    uint64_t read_ms;     /* boot_ms before they were read last; 0: never */
    struct marks pending; /* void and not put aside yet, as marks of just that */
} marks = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static void (*on_forgotten)(struct file *f);

void claim_on_forgotten(void (*fn)(struct file *f))
{
    on_forgotten = fn;
}

int claim_marks_read(void)
{
    struct mark *list;
    uint32_t n;
    uint64_t t = boot_ms();
    int err = session_read_marks(members_self(), &list, &n);
    if (err)
        return err;
    lock_take(&marks.lock);
    free(marks.read.v);
    marks.read = (struct marks){list, n};
    marks.read_ms = t;
    lock_drop(&marks.lock);
    return 0;
}

static bool is_among(const struct marks *l, struct fid fid, uint64_t inc, uint64_t number)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (mark_covers(&l->v[i], fid, inc, number))
            return true;
    return false;
}

bool claim_is_marked(struct fid fid, uint64_t inc, uint64_t number)
{
    lock_take(&marks.lock);
    bool marked = is_among(&marks.read, fid, inc, number);
    lock_drop(&marks.lock);
    return marked;
}

static void note_pending(struct file *f)
{
    struct marks *p = &marks.pending;
    lock_take(&marks.lock);
    p->v = xrealloc(p->v, (p->n + 1) * sizeof(*p->v));
    p->v[p->n++] = (struct mark){f->fid, members_self(), claim_of(f)->inc, claim_of(f)->number};
    lock_drop(&marks.lock);
}

/* From now on this node's data is not the file's, and nothing of it is flushed into the file. */
void claim_set_forgotten(struct file *f)
{
    if (atomic_exchange(&claim_of(f)->forgotten, true))
        return;
    own_remove(f->fid);
    note_pending(f);
    char *path = file_path(f);
    log_error("%s: was forgotten by an operator (eddy forget) while this node was away: this "
              "node's data is not flushed into the file, but put beside it",
              path ? path : "(removed)");
    free(path);
    if (on_forgotten)
        on_forgotten(f);
}

bool claim_is_forgotten(const struct file *f)
{
    const struct file_claim *c = claim_if(f);
    return c && c->forgotten;
}

void claim_closed(struct file *f)
{
    if (claim_is_forgotten(f) && on_forgotten)
        on_forgotten(f);
}

bool claim_is_void(struct file *f)
{
    if (!claim_is_forgotten(f))
        return false;
    char *path = file_path(f);
    log_warn(
        "%s: cannot be opened: EIO. An operator has forgotten it; its data is put beside it when "
        "the processes of this node that have it open close it",
        path ? path : "(removed)");
    free(path);
    return true;
}

static bool have_marks(void)
{
    lock_take(&marks.lock);
    bool have = marks.read.n > 0;
    lock_drop(&marks.lock);
    return have;
}

/* ---- marks that are needed no more ---- */

static int remove_mark(const struct mark *m)
{
    int err = session_remove_mark(m);
    if (err)
        log_warn("a mark of eddy forget cannot be removed from the session directory: %s",
                 strerror(-err));
    return err;
}

void claim_forgotten_settled(struct file *f)
{
    struct marks *p = &marks.pending;
    struct mark done = {.fid = f->fid, .node = members_self()};
    lock_take(&marks.lock);
    for (uint32_t i = 0; i < p->n;) {
        if (fid_eq(p->v[i].fid, f->fid))
            p->v[i] = p->v[--p->n];
        else
            i++;
    }
    lock_drop(&marks.lock);
    remove_mark(&done);
    claim_of(f)->forgotten = false;
}

static struct marks copy_of(const struct marks *l)
{
    struct marks c = {0};
    lock_take(&marks.lock);
    c.n = l->n;
    c.v = xcalloc(c.n + 1, sizeof(*c.v));
    for (uint32_t i = 0; i < c.n; i++)
        c.v[i] = l->v[i];
    lock_drop(&marks.lock);
    return c;
}

/* Pending claims that this mark covers get marks of their own.  *same: one of them has this mark's name. */
static int narrow(const struct mark *m, const struct marks *pending, bool *same)
{
    int err = 0;
    *same = false;
    for (uint32_t i = 0; i < pending->n && !err; i++) {
        const struct mark *p = &pending->v[i];
        bool named = fid_eq(p->fid, m->fid);
        if (!mark_covers(m, p->fid, p->incarnation, p->number))
            continue;
        if (!named || p->incarnation != m->incarnation || p->number != m->number)
            err = session_write_mark(p);
        *same |= named;
    }
    return err;
}

/* All claims that these marks cover have been made void. */
static void end_marks(const struct marks *list)
{
    struct marks pending = copy_of(&marks.pending);
    for (uint32_t i = 0; i < list->n; i++) {
        bool same;
        int err = narrow(&list->v[i], &pending, &same);
        if (err)
            log_warn("a mark of eddy forget cannot be written in the session directory: %s",
                     strerror(-err));
        else if (!same)
            remove_mark(&list->v[i]);
    }
    if (list->n)
        claim_marks_read();
    free(pending.v);
}

void claim_marks_done(void)
{
    struct marks list = copy_of(&marks.read);
    end_marks(&list);
    free(list.v);
}

/* ---- a member again ----
 *
 * A mark that was made while this node was on its way back does not end its claims: the home has given the
 * forget up.  When no home acts any more for which this node was absent, such marks are removed.  They are
 * removed once more after T_piece, since one may still have been on its way to the PFS. */

static struct {
    bool due;
    unsigned looks;
    uint64_t at_ms;
} tidy = {.due = true}; /* network thread */

static void tidy_job(void *arg)
{
    (void)arg;
    if (members_lease() && !claim_marks_read())
        claim_marks_done();
}

static void tidy_later(void *arg)
{
    if (!members_view()) /* fenced: this begins again when the node is back */
        return;
    if (!members_settled() || boot_ms() < tidy.at_ms) {
        home_later(tidy_later, NULL, arg);
        return;
    }
    pool_submit(pool_session, tidy_job, NULL);
    tidy.at_ms = boot_ms() + T_PIECE;
    if (++tidy.looks < 2)
        home_later(tidy_later, NULL, arg);
}

void claim_marks_adopted(const struct view *v)
{
    tidy.due |= !v;
}

void claim_marks_all_adopted(void)
{
    if (!tidy.due)
        return;
    tidy.due = false;
    tidy.looks = 0;
    tidy.at_ms = 0;
    home_later(tidy_later, NULL, NULL);
}

static bool check_one(struct file *f)
{
    uint64_t inc, number;
    if (have_marks() && own_has(f->fid, &inc, &number) && claim_is_marked(f->fid, inc, number))
        claim_set_forgotten(f);
    return claim_is_forgotten(f);
}

static void void_one(struct file *f)
{
    check_one(f);
}

void claim_marks_void(void)
{
    if (!own_count() || claim_marks_read() || !have_marks())
        return;
    bool all = own_all_ready(); /* none is still on its way to the disk */
    struct marks list = copy_of(&marks.read);
    own_each(void_one);
    if (all)
        end_marks(&list);
    free(list.v);
}

int claim_may_flush(struct file *f)
{
    if (claim_is_forgotten(f))
        return -EIO;
    if (members_lease())
        return 0;
    lock_take(&marks.lock);
    bool fresh = marks.read_ms && boot_ms() - marks.read_ms < T_LEASE / 2;
    lock_drop(&marks.lock);
    int err = fresh ? 0 : claim_marks_read();
    if (err)
        return err;
    return check_one(f) ? -EIO : 0;
}
