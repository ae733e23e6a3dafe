/* claim_forgotten.c - this node's claims that an operator has forgotten while it was away
 * (docs/protocol.md, rule 17): found in the session's marks, at the start before they are taken up,
 * while this node is fenced before each piece that it flushes, and before it joins again.
 *
 * What is marked is never flushed: flush/conflict.c puts it beside its file.
 */
#include "placement/claim_int.h"

#include "placement/claim_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct lock lock;  /* RANK_LEAF */
    struct mark *list; /* this node's; only more as long as the daemon runs */
    uint32_t n;
    uint64_t read_ms; /* boot_ms before they were read last; 0: never */
} marks = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

int claim_marks_read(void)
{
    struct mark *list;
    uint32_t n;
    uint64_t t = boot_ms();
    int err = session_read_marks(members_self(), &list, &n);

    if (err)
        return err;
    lock_take(&marks.lock);
    free(marks.list);
    marks.list = list;
    marks.n = n;
    marks.read_ms = t;
    lock_drop(&marks.lock);
    return 0;
}

bool claim_is_marked(struct fid fid, uint64_t inc, uint64_t number)
{
    bool marked = false;

    lock_take(&marks.lock);
    for (uint32_t i = 0; i < marks.n && !marked; i++)
        marked = mark_covers(&marks.list[i], fid, inc, number);
    lock_drop(&marks.lock);
    return marked;
}

/* From now on its word is not the truth, and nothing of it is flushed into the file. */
void claim_set_forgotten(struct file *f)
{
    char *path;

    if (atomic_exchange(&f->forgotten, true))
        return;
    __atomic_store_n(&f->unchecked, true, __ATOMIC_RELAXED);
    own_remove(f->fid);
    path = file_path(f);
    log_error("%s: was forgotten by an operator (eddy forget) while this node was away: what it "
              "has of it is not flushed into the file, but put beside it",
              path ? path : "(removed)");
    free(path);
}

static bool have_marks(void)
{
    lock_take(&marks.lock);
    bool have = marks.n > 0;
    lock_drop(&marks.lock);
    return have;
}

static bool check_one(struct file *f)
{
    uint64_t inc, number;

    if (have_marks() && own_has(f->fid, &inc, &number) && claim_is_marked(f->fid, inc, number))
        claim_set_forgotten(f);
    return f->forgotten;
}

static void void_one(struct file *f)
{
    check_one(f);
}

void claim_marks_void(void)
{
    if (own_count() && !claim_marks_read())
        own_each(void_one);
}

int claim_may_flush(struct file *f)
{
    bool fresh;
    int err;

    if (f->forgotten)
        return -EIO;
    if (members_lease())
        return 0;
    lock_take(&marks.lock);
    fresh = marks.read_ms && boot_ms() - marks.read_ms < T_LEASE / 2;
    lock_drop(&marks.lock);
    err = fresh ? 0 : claim_marks_read();
    if (err)
        return err;
    return check_one(f) ? -EIO : 0;
}

/* At the start, when all that was marked has been put aside.  A mark that stays does no harm: this
 * incarnation's requests are not covered. */
void claim_marks_done(void)
{
    for (uint32_t i = 0; i < marks.n; i++) {
        int err = session_remove_mark(&marks.list[i]);

        if (err)
            log_warn("a mark of eddy forget cannot be removed from the session directory: %s",
                     strerror(-err));
    }
}
