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
    uint8_t known;
    /* another file's hint, or a version that no node reported, was here: "none" does not mean "nothing
     * changed" */
    bool lost;
    struct version version, same_as;
} * hints;

static struct hint *hint_of(struct fid fid)
{
    if (!hints)
        hints = xcalloc(HINTS, sizeof(*hints));
    return &hints[fid.lo % HINTS];
}

void hint_set(struct fid fid, const struct version *v)
{
    struct hint *h = hint_of(fid);
    bool lost = h->lost || !v || (h->known && !fid_eq(h->fid, fid));
    if (v && h->known == 2 && fid_eq(h->fid, fid) && version_eq(&h->version, v))
        return; /* given back unchanged: same_as is still right */
    *h = (struct hint){.fid = fid, .known = v != NULL, .lost = lost};
    if (v)
        h->version = *v;
}

void hint_get(struct fid fid, uint8_t *known, struct version *version, struct version *same_as)
{
    const struct hint *h = hint_of(fid);
    if (!h->known || !fid_eq(h->fid, fid)) {
        *known = h->lost ? KNOWN_LOST : 0;
        return;
    }
    *known = h->known;
    *version = h->version;
    *same_as = h->same_as;
}

void hint_same(const struct body_same *s)
{
    struct hint *h = hint_of(s->fid);
    if (!h->known || !fid_eq(h->fid, s->fid))
        *h = (struct hint){.fid = s->fid,
                           .known = 2,
                           .lost = h->lost || h->known,
                           .version = s->after,
                           .same_as = s->before};
    /* else it is late: a newer version was reported since */
    else if (version_eq(&h->version, &s->before))
        *h = (struct hint){.fid = s->fid,
                           .known = 2,
                           .lost = h->lost,
                           .version = s->after,
                           .same_as = h->known == 2 ? h->same_as : s->before};
}

void hints_drop(void)
{
    free(hints);
    hints = NULL;
}
