/* store_lend_back.c - what borrowers say of the parts that they have, and what they give back (store_lend.h). */
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lending.h"
#include "placement/store/store_version.h"

/* With f->lock. */
static void take_word(struct file *f, uint64_t size, int64_t mtime_ns)
{
    struct file_core *c = core_change(f->rec);
    c->size = MAX(c->size, size);
    if (mtime_ns > c->mtime_ns) {
        c->mtime_ns = mtime_ns;
        c->ctime_ns = MAX(c->ctime_ns + 1, real_ns());
        c->flags &= ~(uint32_t)CORE_MTIME_SET;
    }
    store_commit(f);
    store_changed(f);
}

bool store_lent_is(struct file *f, uint64_t epoch, uint64_t size, int64_t mtime_ns)
{
    lock_take(&f->lock);
    const struct file_core *now = core(f);
    bool counts = epoch == (f->lending ? f->lending->epoch : 0);
    if (counts && f->rec->lent && (size > now->size || mtime_ns > now->mtime_ns))
        take_word(f, size, mtime_ns);
    lock_drop(&f->lock);
    return counts;
}

static void nothing_is_lent(struct file *f)
{
    f->lending->known = true;
    __atomic_store_n(&f->rec->lent, 0, __ATOMIC_RELEASE);
    lending_look_shared(f);
}

void store_lend_void(struct file *f)
{
    lock_take(&f->lock);
    if (f->rec->lent) {
        struct lending *l = lending_of(f);
        unit_clear_all(&l->map);
        l->n = 0;
        l->epoch++;
        nothing_is_lent(f);
    }
    lock_drop(&f->lock);
}

uint64_t store_pfs_looks(struct file *f)
{
    lock_take(&f->lock);
    uint64_t looks = f->lending ? f->lending->looks : 0;
    lock_drop(&f->lock);
    return looks;
}

void lend_flush_looks(struct file *f)
{
    if (f->lending)
        f->lending->flush_looks = f->lending->looks;
}

bool lend_flush_looked(struct file *f)
{
    if (!f->lending)
        return true;
    if (f->lending->looks != f->lending->flush_looks)
        return false;
    f->lending->looks++;
    return true;
}

/* The PFS file is v, by the writes of borrowers.  With f->lock; true: it became dirty. */
static bool rebase(struct file *f, const struct version *v)
{
    bool became = store_mark_dirty(f);
    struct file_core *c = core_change(f->rec);
    c->base = *v;
    c->base_end = v->size;
    c->size = MAX(c->size, v->size);
    c->flags |= CORE_BASE;
    store_commit(f);
    f->lending->looks++;
    return became;
}

/* With f->lock.  The node has nothing any more, and what it has written is on the PFS.  True: the file became dirty. */
static bool take_back(struct file *f, uint16_t number, const struct lent_back *b)
{
    struct lending *l = f->lending;
    bool became = rebase(f, &b->v);
    take_word(f, b->size, b->mtime_ns);
    crash_order();
    unit_clear(&l->map, number);
    l->who[number - 1].node.id = 0;
    return became;
}

/* With f->lock.  0: it has nothing, or RETURN was long on its way, and speaks of what it had before. */
static uint16_t returner(const struct lending *l, uint64_t node, const struct lent_back *b)
{
    uint16_t number = l && l->known ? lending_number_of(l, node) : 0;
    const struct borrower *who = number ? &l->who[number - 1] : NULL;
    return who && b->began >= who->since && (!b->inc || b->inc == who->node.inc) ? number : 0;
}

bool store_lent_returned(struct file *f, uint64_t node, const struct lent_back *b, uint64_t *epoch)
{
    bool became = false;
    lock_take(&f->lock);
    struct lending *l = f->lending;
    uint16_t number = returner(l, node, b);
    bool newest = !number || b->looks == l->looks;
    if (number && newest) {
        became = take_back(f, number, b);
        if (!l->map.set)
            nothing_is_lent(f);
    }
    *epoch = l && newest ? ++l->epoch : 0;
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return newest;
}

bool store_lent_held(struct file *f, uint64_t node, uint64_t epoch, const struct lend_units *parts, size_t n,
                     const struct lent_back *b, int *err)
{
    bool became = false;
    *err = 0;
    lock_take(&f->lock);
    struct lending *l = f->lending;
    uint16_t number = l && l->known ? lending_number_of(l, node) : 0;
    bool counts = !number || (l->epoch == epoch && b->looks == l->looks);
    if (number && counts) {
        became = take_back(f, number, b);
        for (size_t i = 0; i < n && !*err; i++)
            *err = lending_note(l, (struct lend_node){node, b->inc}, parts[i].first, parts[i].last);
        l->known = !*err;
        if (!*err && !l->map.set)
            nothing_is_lent(f);
        l->epoch++;
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
    return counts;
}

bool store_lent_is_known(struct file *f)
{
    lock_take(&f->lock);
    bool known = !lending_is_vague(f);
    lock_drop(&f->lock);
    return known;
}

void store_lent_known(struct file *f, const struct version *v)
{
    bool became = false;
    lock_take(&f->lock);
    if (lending_is_vague(f)) {
        lending_of(f)->known = true;
        became = rebase(f, v); /* what has come back since then is on the PFS */
        store_changed(f);
        crash_order();
        if (!f->lending->map.set)
            nothing_is_lent(f);
    }
    lock_drop(&f->lock);
    store_tell_dirty(f, became);
}
