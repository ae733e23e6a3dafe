/* pins.c - the list of pins, and a look at the view every few seconds while there are any.
 *
 * A pin is dropped when its node, in that incarnation, was in this node's view and is not in it any more.  A
 * node that was never in this view may be in a newer one; its pin stays for a minute.  A pin that is dropped
 * wrongly costs little: its node's next write gets "not mine", and the node pins again.
 *
 * A pin is an open file here, too: it has a descriptor of the PFS file from its beginning to its end.  So
 * whatever happens meanwhile to the file's names, and to those of the directories above it, the bytes that
 * are not here yet can be read, and what is dirty can be flushed.
 */
#include "placement/claims/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/claim.h"
#include "placement/pfs/pfs_data.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/view.h"

#define LOOK_MS  3000
#define GRACE_MS 60000

struct pin {
    struct pin *next;
    struct pin_id id;
    bool writer;    /* claim_change_begin was called */
    struct file *f; /* referenced, open on the PFS */
    uint64_t since_ms;
    bool seen; /* in this node's view */
};

static struct {
    struct lock lock; /* RANK_LEAF: the list */
    struct pin *list;
    bool refused; /* this node leaves: no new ones */
    struct pool *pool;
    struct loop_timer *timer; /* network thread */
    bool armed;               /* network thread */
} pins = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* The descriptor of a file without a name is closed after the claim was given back: see claim_unlinked. */
static void release(void *arg)
{
    struct pin *p = arg;
    bool held = file_is_unlinked(p->f) && pfs_keep_number(p->f);
    pfs_release(p->f);
    if (p->writer)
        claim_carry_end(p->f);
    if (file_is_unlinked(p->f) && pfs_open_ends(p->f))
        claim_unlinked(p->f);
    if (held)
        pfs_unhold_number(p->f);
    file_put(p->f);
    free(p);
}

static void open_file(struct file *f)
{
    pfs_open_known(f); /* first: a descriptor that is there stays */
    int err = pfs_open_late(f, NULL);
    if (err)
        log_debug("a file that another node has open cannot be opened on the PFS here: %s",
                  strerror(-err));
}

/* With the lock: takes it out. */
static struct pin *take_out(const struct pin_id *id, const struct file *f)
{
    for (struct pin **pp = &pins.list; *pp; pp = &(*pp)->next) {
        struct pin *p = *pp;
        if (p->id.node == id->node && p->id.incarnation == id->incarnation &&
            p->id.number == id->number && p->f == f) {
            *pp = p->next;
            return p;
        }
    }
    return NULL;
}

static bool left(struct pin *p, const struct view *v)
{
    if (!v)
        return false; /* fenced: nothing is known */
    if (view_has(v, p->id.node, p->id.incarnation)) {
        p->seen = true;
        return false;
    }
    return p->seen || boot_ms() - p->since_ms > GRACE_MS;
}

static void on_timer(void *arg)
{
    (void)arg;
    const struct view *v = members_view();
    struct pin *gone = NULL;
    lock_take(&pins.lock);
    for (struct pin **pp = &pins.list; *pp;) {
        struct pin *p = *pp;
        if (left(p, v)) {
            *pp = p->next;
            p->next = gone;
            gone = p;
        } else {
            pp = &p->next;
        }
    }
    bool idle = !pins.list;
    lock_drop(&pins.lock);
    for (struct pin *p = gone, *next; p; p = next) {
        next = p->next;
        pool_submit(pins.pool, release, p);
    }
    if (idle) {
        loop_timer_stop(pins.timer);
        pins.armed = false;
    }
}

static void arm(void *arg)
{
    (void)arg;
    if (!pins.timer)
        pins.timer = loop_timer_new(on_timer, NULL);
    if (!pins.armed)
        loop_timer_set(pins.timer, LOOK_MS, LOOK_MS);
    pins.armed = true;
}

/* The claim stays until the file is open and the pin in the list: from then on a file that loses its name keeps it, and
 * FREE names the pin's node (claim.c). */
int pin_add(const struct pin_id *id, bool writer, struct file *f)
{
    int err = writer ? claim_change_begin(f, boot_ms() + T_OPEN) : claim_pin_begin(f);
    if (err)
        return err;
    open_file(f);
    struct pin *p = xcalloc(1, sizeof(*p));
    *p = (struct pin){.id = *id, .writer = writer, .since_ms = boot_ms()};
    p->f = file_ref(f);
    left(p, members_view()); /* notes a node that is in the view now, and may be gone at the first look */
    lock_take(&pins.lock);
    struct pin *gone = p;
    bool refused = pins.refused;
    if (!refused) {
        gone = take_out(id, f); /* it came twice */
        p->next = pins.list;
        pins.list = p;
    }
    lock_drop(&pins.lock);
    if (!writer)
        claim_close_writer(f);
    if (gone)
        release(gone);
    loop_post(arm, NULL);
    return refused ? -ENOENT : 0;
}

void pin_drop(const struct pin_id *id, struct file *f)
{
    lock_take(&pins.lock);
    struct pin *p = take_out(id, f);
    lock_drop(&pins.lock);
    if (p)
        release(p);
}

void pins_of(const struct file *f, void (*fn)(void *arg, const struct pin_id *id), void *arg)
{
    lock_take(&pins.lock);
    for (const struct pin *p = pins.list; p; p = p->next)
        if (p->f == f)
            fn(arg, &p->id);
    lock_drop(&pins.lock);
}

void pins_start(struct pool *p)
{
    pins.pool = p;
    pins.refused = false;
}

static void free_timer(void *arg)
{
    (void)arg;
    if (pins.timer)
        loop_timer_free(pins.timer);
    pins.timer = NULL;
    pins.armed = false;
}

void pins_refuse(void)
{
    lock_take(&pins.lock);
    struct pin *list = pins.list;
    pins.list = NULL;
    pins.refused = true;
    lock_drop(&pins.lock);
    for (struct pin *p = list, *next; p; p = next) {
        next = p->next;
        release(p);
    }
}

void pins_stop(void)
{
    loop_call(free_timer, NULL);
    pins_refuse();
}
