/* home_hint.c - the version of a file on the PFS, as the last node that knew it said.  It is only a hint, and
 * is dropped with the view.
 *
 * There is one place per hash value.  If another file's hint takes a hint's place, the hint is lost, and the
 * place says so.
 */
#include <stdlib.h>

#include "placement/claims/home_answer.h"

#define HINTS 65536

static struct hint {
    struct fid fid;
    /* another file's hint, or a version that no node reported, was here: "none" does not mean "nothing
     * changed" */
    bool lost;
    struct hinted is;
} * hints;

static struct hint *hint_of(struct fid fid)
{
    if (!hints)
        hints = xcalloc(HINTS, sizeof(*hints));
    return &hints[fid.lo % HINTS];
}

void hint_set(struct fid fid, const struct version *v, const struct told *told)
{
    struct hint *h = hint_of(fid);
    bool lost = h->lost || !v || (h->is.known && !fid_eq(h->fid, fid));
    if (v && h->is.known == 2 && fid_eq(h->fid, fid) && version_eq(&h->is.version, v)) {
        h->is.told = *told;
        return; /* given back unchanged: same_as is still right */
    }
    *h = (struct hint){.fid = fid, .lost = lost};
    if (v)
        h->is = (struct hinted){.known = 1, .version = *v, .told = *told};
}

struct hinted hint_get(struct fid fid)
{
    const struct hint *h = hint_of(fid);
    if (h->is.known && fid_eq(h->fid, fid))
        return h->is;
    return (struct hinted){.known = h->lost ? KNOWN_LOST : 0};
}

/* The ctime that is told moves with the PFS's; the mtime only if the PFS's does. */
static struct told told_after(const struct hinted *was, const struct body_same *s)
{
    struct told t = {s->after.mtime_ns, s->after.ctime_ns};
    if (was && s->before.mtime_ns == s->after.mtime_ns)
        t.mtime_ns = was->told.mtime_ns;
    return t;
}

void hint_same(const struct body_same *s)
{
    struct hint *h = hint_of(s->fid);
    bool is_its = h->is.known && fid_eq(h->fid, s->fid);
    if (is_its && !version_eq(&h->is.version, &s->before))
        return; /* it is late: a newer version was reported since */
    *h = (struct hint){.fid = s->fid,
                       .lost = h->lost || (!is_its && h->is.known),
                       .is = {.known = 2,
                              .version = s->after,
                              .same_as = is_its && h->is.known == 2 ? h->is.same_as : s->before,
                              .told = told_after(is_its ? &h->is : NULL, s)}};
}

void hints_drop(void)
{
    free(hints);
    hints = NULL;
}
