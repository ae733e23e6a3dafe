/* home_here.c - this node's own requests to itself as a home, answered in the thread that makes them.  Two
 * hand-overs, to the network thread and back, cost more than all the rest of a small file's open.
 *
 * Messages of one node to itself stay in order (a FREE that is on its way comes before the WHERE
 * that follows it).  An answer given here overtakes them.  So an answer that could be older than
 * one of them is not given here: answers that name this node.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/view.h"

bool home_where_here(uint64_t view, struct fid fid, enum look look, struct item_at *at)
{
    lock_take(&home_lock);
    bool told = home_may_tell_where(view, fid);
    if (told) {
        const struct asker who = {home.self, look, home.view->nmembers > 1 ? look_number() : 0};
        told = look != LOOK_GOES || home_goes_here(fid, &who);
        if (told)
            home_where_is(fid, &who, at);
    }
    lock_drop(&home_lock);
    return told && at->node != members_self();
}

/* Does this grant take the claim from no node, and need no other node hear of it first? */
static bool is_free(struct fid fid, const struct record *r, uint64_t number)
{
    if (home.view->nmembers > 1) /* next must hear of it, and those that look at the file */
        return false;
    if (r && r->claimant)
        return home_is_claim(r, members_self(), members_incarnation(), number);
    return !home_blind_claim(r, fid) &&
           !home_is_freed(r, members_self(), members_incarnation(), number);
}

bool home_want_here(uint64_t view, struct fid fid, uint64_t number, struct body_grant *out)
{
    lock_take(&home_lock);
    bool granted = home_may_grant(view, fid) && is_free(fid, record_find(fid), number);
    if (granted) {
        struct record *r = record_make(fid);
        r->claimant = members_self();
        r->number_inc = members_incarnation();
        r->number = number;
        home_changed(r);
        struct hinted h = hint_get(fid);
        *out = (struct body_grant){.where = AT_GRANTED,
                                   .node = members_self(),
                                   .known = h.known,
                                   .version = h.version,
                                   .told = h.told};
    }
    lock_drop(&home_lock);
    return granted;
}

/* With the lock. */
static bool is_unclaimed(struct fid fid, uint64_t view, const struct record *r)
{
    return home_may_grant(view, fid) && !(r && r->claimant) && !home_blind_claim(r, fid);
}

static bool was_changed(const struct record *r, const struct home_moment *then)
{
    return r && r->stamp_view == then->view && r->stamp_count > then->count;
}

bool home_unclaimed_here(struct fid fid, struct home_moment *now)
{
    const struct view *v = members_view();
    lock_take(&home_lock);
    bool is = v && is_unclaimed(fid, v->number, record_find(fid));
    if (is)
        *now = (struct home_moment){v->number, home.count, boot_ms()};
    lock_drop(&home_lock);
    return is;
}

/* If a claim was given back meanwhile, its record is still there: it stays for some time. */
bool home_unclaimed_since(struct fid fid, const struct home_moment *then)
{
    lock_take(&home_lock);
    const struct record *r = record_find(fid);
    bool is = is_unclaimed(fid, then->view, r) && !was_changed(r, then) &&
              boot_ms() - then->ms < HOME_FORGET_MS;
    lock_drop(&home_lock);
    return is;
}

bool home_free_here(uint64_t view, const struct body_free *f)
{
    lock_take(&home_lock);
    bool taken = home_may_tell(view, f->fid);
    if (taken)
        home_take_free(members_self(), f);
    lock_drop(&home_lock);
    return taken;
}
