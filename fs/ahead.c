/* ahead.c - looks ahead: a program that looks at many files of a directory, one after the other, finds the
 * attributes of the next files here.
 *
 *   LOOKUP of a known file -> counted in its directory's scan; when there are enough
 *       -> the directory is listed.  Files that the kernel knows, and that were not looked at lately, are
 *          looked at, several at a time (looks.c).  Their homes are asked, with one message to each
 *       -> known_note, as after any look; and the name's node has the time of the look (pfs_child_seen)
 *   LOOKUP of one of these -> answered without the PFS, for what is left of --attr-timeout since that look
 *
 * So a scan of a directory does not wait for the PFS at each file.  `make`, `git status`,
 * `find -newer` and the second `ls -l` make such scans.  No answer is older than it would be without looking
 * ahead.
 *
 * Per attribute time-out, the PFS is asked at most AHEAD times as often as applications ask here.  If less
 * than one in AHEAD looks ahead helped in a directory, nothing is looked at ahead there for a while, at last
 * for a minute.  In the order of the listing each look ahead helps.  In another order most looks help when
 * the rest of the directory has been looked at; AHEAD allows this when a fifth of it was asked for.
 *
 * Where a look takes a few microseconds, because the PFS's client has the attributes in memory, nothing is
 * looked at ahead: a second thread would disturb the application's own looks.
 *
 * Only files are looked at, because directories have many of them, and only known files, because others have
 * no inode that could remember the look.  Linux does this for Lustre (statahead), in the order of the
 * listing.
 *
 * Threads: FUSE's ask and find; one job of pool_names at a time for each directory, and looks.c's.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ahead.h"
#include "fs/attr_last.h"
#include "fs/attr_look.h"
#include "fs/known.h"
#include "fs/looks.h"
#include "fs/settings.h"
#include "fs/xattr.h"
#include "placement/claims/claim.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_dir.h"
#include "placement/pfs/pfs_node.h"
#include "transport/loop.h"

#define FIRST       8     /* files asked for, before any look ahead */
#define AHEAD       4     /* looks ahead for each file asked for */
#define ENOUGH      64    /* so many looks ahead show whether they help */
#define BATCH       64    /* looks at once */
#define NAMES_MAX   16384 /* names passed over to find them */
#define RUNS_MAX    4     /* directories at a time */
#define SILENT_MS   200   /* the PFS may hang: no request waits for a look ahead */
#define REST_MIN_MS 1000u
#define REST_MAX_MS 60000u

struct scan {
    uint64_t began_ms; /* of this turn, an attribute time-out long */
    unsigned asked, helped, ahead, rest_ms;
    uint64_t rest_until_ms;
    bool running;
    bool whole;   /* in this turn all of the directory has been listed */
    int64_t next; /* for the thread that is running: where the listing goes on */
};

struct ahead_look {
    char *name;
    struct inode *inode; /* referenced */
    bool found;          /* the inode is still there, as stx */
    unsigned absent;     /* extended attributes */
    struct statx stx;
};

struct run {
    struct inode *dir; /* referenced */
    struct pfs_dir *listing;
    bool whole;         /* there are no more */
    uint64_t looked_ms; /* boot_ms before the first look of the batch */
    unsigned xattrs;    /* that are asked for here */
    unsigned n;
    struct ahead_look v[BATCH];
};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
    _Atomic unsigned running; /* with the lock */
    _Atomic bool stopping;
} all;

/* ---- what was found ---- */

bool ahead_may_answer(const struct inode *dir)
{
    return looks_are_slow() || attr_left(dir->ahead_ms) > 0;
}

struct inode *ahead_find(struct inode *dir, const char *name, double *left)
{
    uint64_t seen_ms, nodeid = pfs_child_tag(dir->node, name, &seen_ms);
    struct inode *i = nodeid ? inode_get(nodeid) : NULL;
    if (i && (!S_ISREG(i->type) || i->gone)) {
        inode_put(i);
        i = NULL;
    }
    bool seen = i && seen_ms > i->doubted_ms;
    *left = seen ? attr_left(seen_ms) : 0;
    return i;
}

/* ---- one run ---- */

/* The kernel, or an earlier look ahead, can still answer for it. */
static bool lately(uint64_t ms, uint64_t now)
{
    return ms && now - ms < attr_timeout_ms();
}

/* Is the file by this name one to look at?  Referenced, or NULL. */
static struct inode *wanted(struct inode *dir, const struct pfs_dirent *e, uint64_t now)
{
    uint64_t seen_ms;
    if (e->type != DT_REG && e->type != DT_UNKNOWN)
        return NULL;
    uint64_t nodeid = pfs_child_tag(dir->node, e->name, &seen_ms);
    struct inode *i = nodeid && !lately(seen_ms, now) ? inode_get(nodeid) : NULL;
    if (!i)
        return NULL;
    lock_take(&i->lock);
    bool known = lately(i->known.looked_ms, now);
    lock_drop(&i->lock);
    if (!known && S_ISREG(i->type) && !i->gone)
        return i;
    inode_put(i);
    return NULL;
}

/* The next entry; after the last one, the first.  false: there have been all of them. */
static bool next_entry(struct run *run, struct scan *s, bool *from_start, struct pfs_dirent *e)
{
    int err = pfs_readdir(run->listing, s->next, e);
    if (err && !*from_start) {
        *from_start = true;
        err = pfs_readdir(run->listing, 0, e);
    }
    if (err) {
        run->whole = true;
        s->next = 0;
        return false;
    }
    s->next = e->next;
    return true;
}

static void collect(struct run *run, struct scan *s)
{
    struct pfs_dirent e;
    uint64_t now = boot_ms();
    bool from_start = !s->next;
    run->n = 0;
    for (unsigned names = 0; run->n < BATCH && names < NAMES_MAX; names++) {
        if (!next_entry(run, s, &from_start, &e))
            return;
        struct inode *i = wanted(run->dir, &e, now);
        if (i)
            run->v[run->n++] = (struct ahead_look){.name = xstrdup(e.name), .inode = i};
    }
    run->whole = !run->n; /* a large directory, with nothing to look at for a long stretch */
}

static void look(void *arg, unsigned k)
{
    struct run *run = arg;
    struct ahead_look *l = &run->v[k];
    l->found = !pfs_stat_at(run->listing, l->name, &l->stx) && S_ISREG(l->stx.stx_mode) &&
               fid_eq(fid_of(&l->stx), l->inode->fid);
    if (l->found)
        l->absent = xattr_look(run->listing, l->name, &l->stx, run->xattrs, l->inode);
}

/* Something newer may be known already, or the claimant gave the file back in between: then this look
 * is of no use. */
static void note(struct run *run, struct ahead_look *l, const struct location *at)
{
    if (at->where == WHERE_LOST || attr_overtaken(&l->stx, at, run->looked_ms))
        return;
    attr_seen(l->inode, &l->stx, at, run->looked_ms);
    known_note(l->inode, &l->stx, at, run->looked_ms);
    xattr_absent(l->inode, &l->stx, l->absent);
    pfs_child_seen(run->dir->node, l->name, l->inode->nodeid, run->looked_ms);
    run->dir->ahead_ms = run->looked_ms;
}

static void ask_homes(struct run *run)
{
    struct fid fids[BATCH];
    struct location *at = xcalloc(BATCH, sizeof(*at));
    int errs[BATCH];
    unsigned of[BATCH], n = 0;
    for (unsigned k = 0; k < run->n; k++)
        if (run->v[k].found) {
            fids[n] = run->v[k].inode->fid;
            of[n++] = k;
        }
    if (n)
        claim_where_many(fids, n, LOOK_STAT, at, errs);
    for (unsigned k = 0; k < n; k++)
        if (!errs[k])
            note(run, &run->v[of[k]], &at[k]);
    free(at);
}

static void let_go(struct run *run)
{
    for (unsigned k = 0; k < run->n; k++) {
        inode_put(run->v[k].inode);
        free(run->v[k].name);
    }
    run->n = 0;
}

/* ---- how far ---- */

/* Directory locked. */
static bool may_go_on(const struct scan *s)
{
    return !all.stopping && looks_are_slow() && pfs_waiting_ms() < SILENT_MS && s->asked >= FIRST &&
           s->ahead < AHEAD * s->asked && !s->whole && boot_ms() >= s->rest_until_ms;
}

/* Directory locked: pauses longer each time, as long as looks ahead do not help. */
static void rest(struct scan *s, uint64_t now, bool useless)
{
    s->rest_ms = useless ? MIN(MAX(2 * s->rest_ms, REST_MIN_MS), REST_MAX_MS) : 0;
    s->rest_until_ms = now + s->rest_ms;
}

/* Directory locked: begins a new turn if one is over. */
static void turn(struct scan *s, uint64_t now)
{
    if (now - s->began_ms < attr_timeout_ms())
        return;
    if (s->ahead >= ENOUGH)
        rest(s, now, s->helped * AHEAD < s->ahead);
    s->began_ms = now;
    s->asked = s->helped = s->ahead = 0;
    s->whole = false;
}

static bool goes_on(const struct run *run, unsigned looked)
{
    lock_take(&run->dir->lock);
    struct scan *s = run->dir->scan;
    s->ahead += looked;
    s->whole |= run->whole;
    s->running = may_go_on(s);
    bool running = s->running;
    lock_drop(&run->dir->lock);
    return running;
}

static void run_end(struct run *run)
{
    if (run->listing)
        pfs_closedir(run->listing);
    inode_put(run->dir);
    free(run);
    lock_take(&all.lock);
    all.running--;
    pthread_cond_broadcast(&all.ended);
    lock_drop(&all.lock);
}

static void looked(void *arg);

static void batch(void *arg)
{
    struct run *run = arg;
    collect(run, run->dir->scan);
    run->looked_ms = boot_ms();
    run->xattrs = xattr_wanted(run->dir);
    looks_run(run->n, look, looked, run);
}

static void looked(void *arg)
{
    struct run *run = arg;
    unsigned n = run->n;
    ask_homes(run);
    count(looks_ahead, n);
    let_go(run);
    if (goes_on(run, n))
        pool_submit(pool_names, batch, run);
    else
        run_end(run);
}

static void begin(void *arg)
{
    struct run *run = arg;
    run->whole = pfs_opendir(run->dir->node, false, &run->listing) != 0; /* not again in this turn */
    if (!run->whole) {
        batch(run);
        return;
    }
    goes_on(run, 0); /* no */
    run_end(run);
}

static void start(struct inode *dir)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->dir = inode_ref(dir);
    lock_take(&all.lock);
    all.running++;
    lock_drop(&all.lock);
    pool_submit(pool_names, begin, run);
}

void ahead_asked(struct inode *dir, bool helped)
{
    if (!attr_timeout_ms())
        return;
    lock_take(&dir->lock);
    if (!dir->scan)
        dir->scan = xcalloc(1, sizeof(*dir->scan));
    struct scan *s = dir->scan;
    turn(s, boot_ms());
    s->asked++;
    s->helped += helped;
    bool starts = !s->running && all.running < RUNS_MAX && may_go_on(s);
    s->running |= starts;
    lock_drop(&dir->lock);
    if (helped)
        count(looks_saved, 1);
    if (starts)
        start(dir);
}

/* ---- start and end ---- */

void ahead_start(void)
{
    lock_init(&all.lock, RANK_LEAF);
    lock_cond_init(&all.ended);
    all.stopping = false;
}

void ahead_stop(void)
{
    all.stopping = true;
    lock_take(&all.lock);
    while (all.running)
        lock_wait(&all.lock, &all.ended, 0);
    lock_drop(&all.lock);
    pthread_cond_destroy(&all.ended);
    lock_destroy(&all.lock);
}
