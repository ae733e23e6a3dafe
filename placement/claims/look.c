/* look.c - this node's own looks: tickets, and the table of files that are open here (look.h).
 *
 * A slot counts its breaks, and the answers that are being given under a ticket.  These are counted apart for
 * odd and even numbers of breaks: a break makes the number one more, and waits for the answers of the kind
 * before.  So answers that begin meanwhile, with tickets that hold, do not hold it up.  Breaks of one slot come
 * one after the other.  A new view adds two: nobody waits, and the kind stays.
 */
#include "placement/claims/look.h"

#include "placement/claims/look_int.h"
#include "transport/lock.h"
#include "transport/members.h"

#include <stdlib.h>

#define SLOTS       4096 /* a power of two */
#define PARTS       64   /* a power of two; each has a lock */
#define BUCKETS_MIN 64   /* of a part */

static struct slot {
    _Atomic uint64_t breaks;
    _Atomic unsigned answers[2]; /* being given, under tickets of even and odd breaks */
    bool breaking;               /* the part's lock */
} slots[SLOTS];

struct open_file {
    struct open_file *next;
    struct fid fid;
    unsigned count;
    unsigned goes; /* of those: names that are about to go */
};

static struct part {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    _Atomic unsigned waiting; /* breaks that wait here */
    struct open_file **table;
    unsigned nbuckets, nfiles;
} parts[PARTS];

static _Atomic uint64_t last_number;

static uint64_t mix(struct fid fid)
{
    return (fid.lo ^ fid.hi * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
}

static struct slot *slot_of(struct fid fid)
{
    return &slots[mix(fid) >> 32 & (SLOTS - 1)];
}

static struct part *part_of_slot(const struct slot *s)
{
    return &parts[(size_t)(s - slots) & (PARTS - 1)];
}

static struct part *part_of(struct fid fid)
{
    return part_of_slot(slot_of(fid));
}

/* ---- answers ---- */

struct look_ticket look_now(struct fid fid)
{
    return (struct look_ticket){slot_of(fid)->breaks, boot_ms()};
}

/* The lease's end is the end of all answers: nobody waits for longer than that for a node that is out of the
 * view.  Alone in its view, this node has nobody who changes files without it. */
uint64_t look_left_ms(struct look_ticket t)
{
    const struct view *v = members_view();
    uint64_t end = t.ms + LOOK_STAT_MS, now = boot_ms(), left = end > now ? end - now : 0;
    if (!v)
        return 0;
    return v->nmembers == 1 ? left : MIN(left, members_lease_left());
}

bool look_unbroken(struct fid fid, struct look_ticket t)
{
    return slot_of(fid)->breaks == t.breaks;
}

bool look_holds(struct fid fid, struct look_ticket t)
{
    return look_unbroken(fid, t) && look_left_ms(t);
}

bool look_answer_begin(struct fid fid, struct look_ticket t)
{
    slot_of(fid)->answers[t.breaks & 1]++;
    bool holds = look_holds(fid, t);
    if (!holds)
        look_answer_end(fid, t);
    return holds;
}

void look_answer_end(struct fid fid, struct look_ticket t)
{
    struct slot *s = slot_of(fid);
    struct part *p = part_of_slot(s);
    if (--s->answers[t.breaks & 1] || !p->waiting)
        return;
    lock_take(&p->lock);
    pthread_cond_broadcast(&p->changed);
    lock_drop(&p->lock);
}

void look_break(struct fid fid)
{
    struct slot *s = slot_of(fid);
    struct part *p = part_of_slot(s);
    lock_take(&p->lock);
    p->waiting++;
    while (s->breaking)
        lock_wait(&p->lock, &p->changed, 0);
    s->breaking = true;
    unsigned before = s->breaks++ & 1;
    while (s->answers[before])
        lock_wait(&p->lock, &p->changed, 0);
    s->breaking = false;
    p->waiting--;
    pthread_cond_broadcast(&p->changed);
    lock_drop(&p->lock);
}

void look_adopted(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        slots[i].breaks += 2;
}

/* ---- open files ---- */

uint64_t look_number(void)
{
    return atomic_fetch_add(&last_number, 1) + 1;
}

static struct open_file **place_of(struct part *p, struct fid fid)
{
    struct open_file **o = &p->table[mix(fid) & (p->nbuckets - 1)];
    while (*o && !fid_eq((*o)->fid, fid))
        o = &(*o)->next;
    return o;
}

static void grow(struct part *p)
{
    struct open_file **old = p->table;
    unsigned n = p->nbuckets;
    p->nbuckets = 2 * n;
    p->table = xcalloc(p->nbuckets, sizeof(*p->table));
    for (unsigned b = 0; b < n; b++) {
        struct open_file *o;
        while ((o = old[b])) {
            struct open_file **at = &p->table[mix(o->fid) & (p->nbuckets - 1)];
            old[b] = o->next;
            o->next = *at;
            *at = o;
        }
    }
    free(old);
}

static void add(struct fid fid, unsigned goes)
{
    struct part *p = part_of(fid);
    lock_take(&p->lock);
    if (p->nfiles == p->nbuckets)
        grow(p);
    struct open_file **o = place_of(p, fid);
    if (!*o) {
        *o = xcalloc(1, sizeof(**o));
        (*o)->fid = fid;
        p->nfiles++;
    }
    (*o)->count++;
    (*o)->goes += goes;
    lock_drop(&p->lock);
}

void look_opened(struct fid fid)
{
    add(fid, 0);
}

void look_goes(struct fid fid)
{
    add(fid, 1);
}

/* The number is read under the lock: a WHERE of an open that comes later has a higher one. */
static void take(struct fid fid, unsigned goes)
{
    struct part *p = part_of(fid);
    struct open_file *gone = NULL;
    lock_take(&p->lock);
    struct open_file **o = place_of(p, fid);
    if (!*o)
        die("look: a file was closed that was never opened");
    uint64_t number = last_number;
    (*o)->goes -= goes;
    if (!--(*o)->count) {
        gone = *o;
        *o = gone->next;
        p->nfiles--;
    }
    lock_drop(&p->lock);
    if (gone)
        look_left(fid, number);
    free(gone);
}

void look_closed(struct fid fid)
{
    take(fid, 0);
}

void look_goes_end(struct fid fid)
{
    take(fid, 1);
}

bool look_name_goes(struct fid fid)
{
    struct part *p = part_of(fid);
    lock_take(&p->lock);
    const struct open_file *o = *place_of(p, fid);
    bool goes = o && o->goes;
    lock_drop(&p->lock);
    return goes;
}

bool look_is_open(struct fid fid)
{
    struct part *p = part_of(fid);
    lock_take(&p->lock);
    bool is = *place_of(p, fid);
    lock_drop(&p->lock);
    return is;
}

unsigned look_left_here(struct fid fid, unsigned kinds)
{
    return kinds | (look_is_open(fid) ? LOOKER_OPEN : 0);
}

unsigned look_open_files(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        lock_take(&parts[i].lock);
        n += parts[i].nfiles;
        lock_drop(&parts[i].lock);
    }
    return n;
}

void look_list(bool goes, uint32_t *n, struct item_fid_item **out)
{
    *n = 0;
    *out = NULL;
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *p = &parts[i];
        lock_take(&p->lock);
        *out = xrealloc(*out, ((size_t)*n + p->nfiles + 1) * sizeof(**out));
        for (unsigned b = 0; b < p->nbuckets; b++)
            for (const struct open_file *o = p->table[b]; o; o = o->next)
                if (!goes || o->goes)
                    (*out)[(*n)++].fid = o->fid;
        lock_drop(&p->lock);
    }
}

/* ---- start, end ---- */

void look_start(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *p = &parts[i];
        lock_init(&p->lock, RANK_LEAF);
        lock_cond_init(&p->changed);
        p->nbuckets = BUCKETS_MIN;
        p->table = xcalloc(p->nbuckets, sizeof(*p->table));
    }
}

void look_stop(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *p = &parts[i];
        for (unsigned b = 0; b < p->nbuckets; b++) {
            struct open_file *o;
            while ((o = p->table[b])) {
                p->table[b] = o->next;
                free(o);
            }
        }
        free(p->table);
        p->table = NULL;
        p->nbuckets = p->nfiles = 0;
        lock_destroy(&p->lock);
        pthread_cond_destroy(&p->changed);
    }
}
