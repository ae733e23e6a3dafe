/* pins.c - pins come and go; and a look at each view that is adopted while there are any.
 *
 * A pin is dropped when its node, in that incarnation, was in this node's view and is not in it any more: at once, since as
 * long as it is there the claim stays, and with it this node's word against whoever changes the file on the PFS.  A
 * node that was never in this view may be in a newer one; its pin stays for a minute or two.  A pin that is dropped
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
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_watch.h"
#include "placement/claims/pin_list.h"
#include "placement/pfs/pfs_data.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/view.h"

#define GRACE_MS 60000

static struct pool *pool;
static struct loop_timer *timer; /* network thread */
static bool armed;               /* network thread */

/* The descriptor of a file without a name is closed after the claim was given back: see claim_unlinked. */
static void release(void *arg)
{
    struct pin *p = arg;
    bool held = file_is_unlinked(p->f) && pfs_keep_number(p->f);
    pfs_release(p->f);
    if (p->writer)
        claim_carry_end(p->f);
    claim_drop_unlinked(p->f);
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

static bool left(struct pin *p, const void *view)
{
    const struct view *v = view;
    if (!v)
        return false; /* fenced: nothing is known */
    if (view_has(v, p->id.node, p->id.incarnation)) {
        p->seen = true;
        return false;
    }
    return p->seen || boot_ms() - p->since_ms > GRACE_MS;
}

void pins_adopted(const struct view *v)
{
    struct pin *next;
    for (struct pin *p = pin_list_take_all(left, v); p; p = next) {
        next = p->next;
        pool_submit(pool, release, p);
    }
}

static void on_timer(void *arg)
{
    (void)arg;
    pins_adopted(members_view());
    if (pin_list_is_empty()) {
        loop_timer_stop(timer);
        armed = false;
    }
}

static void arm(void *view)
{
    if (members_view() != view) /* it was adopted before the pin was in the list */
        pins_adopted(members_view());
    if (!timer)
        timer = loop_timer_new(on_timer, NULL);
    if (!armed)
        loop_timer_set(timer, GRACE_MS, GRACE_MS);
    armed = true;
}

/* The claim stays until the file is open and the pin in the list: from then on a file that loses its name keeps it, and
 * FREE names the pin's node (claim_give.c). */
int pin_add(const struct pin_id *id, bool writer, struct file *f)
{
    int err = writer ? claim_change_begin(f, boot_ms() + T_OPEN) : claim_pin_begin(f);
    if (err)
        return err;
    open_file(f);
    struct pin *p = xcalloc(1, sizeof(*p));
    *p = (struct pin){.id = *id, .writer = writer, .since_ms = boot_ms()};
    p->f = file_ref(f);
    const struct view *view = members_view();
    left(p, view); /* notes a node that is in the view now */
    struct pin *gone = pin_list_put(p);
    bool refused = gone == p;
    if (!writer)
        claim_close_writer(f);
    if (gone)
        release(gone);
    loop_post(arm, (void *)view);
    return refused ? -ENOENT : 0;
}

void pin_drop(const struct pin_id *id, struct file *f)
{
    struct pin *p = pin_list_take(id, f);
    if (p)
        release(p);
}

void pins_start(struct pool *p)
{
    pool = p;
    pin_list_refuse(false);
}

static void free_timer(void *arg)
{
    (void)arg;
    if (timer)
        loop_timer_free(timer);
    timer = NULL;
    armed = false;
}

static bool each(struct pin *p, const void *arg)
{
    (void)p;
    (void)arg;
    return true;
}

void pins_refuse(void)
{
    struct pin *next;
    pin_list_refuse(true);
    struct pin *all = pin_list_take_all(each, NULL);
    for (struct pin *p = all; p; p = p->next)
        claim_watch_open(p->f, p->id.node, p->id.incarnation);
    for (struct pin *p = all; p; p = next) {
        next = p->next;
        release(p);
    }
}

void pins_stop(void)
{
    loop_call(free_timer, NULL);
    pins_refuse();
}
