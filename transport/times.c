/* times.c - the times that a site may tune, and what must hold between them. */
#include "transport/times.h"

#include <errno.h>
#include <stdio.h>

#define LOOK_MS    1000 /* a look at the session directory on a PFS that is not slow */
#define JOINING_MS 5000 /* ADOPTED from all, records copied, with a try more */

struct times times = TIMES_DEFAULT;

static double s(uint32_t ms)
{
    return (double)ms / 1000;
}

static int check_silence(const struct times *t, char *err, size_t errlen)
{
    if (t->suspect < 2 * T_PING) {
        snprintf(err, errlen,
                 "--suspect-after %g: must be at least %g: nodes are asked once in %g s, and one "
                 "lost answer is no reason to suspect a node",
                 s(t->suspect), s(2 * T_PING), s(T_PING));
        return -EINVAL;
    }
    if (t->dead < t->suspect + T_TRIES) {
        snprintf(err, errlen,
                 "--dead-after %g: must be at least --suspect-after %g and %g s more: a silent "
                 "node is asked twice more",
                 s(t->dead), s(t->suspect), s(T_TRIES));
        return -EINVAL;
    }
    return 0;
}

int times_check(const struct times *t, char *err, size_t errlen)
{
    uint32_t wait = t->lease + t->lease / 4;
    int e = check_silence(t, err, errlen);
    if (e)
        return e;
    if (t->lease < 2 * T_PING + LOOK_MS) {
        snprintf(err, errlen,
                 "--lease %g: must be at least %g: two pings and a look at the session directory",
                 s(t->lease), s(2 * T_PING + LOOK_MS));
        return -EINVAL;
    }
    if (t->open < t->dead + wait + JOINING_MS) {
        snprintf(err, errlen,
                 "--open-wait %g: must be at least %g: --dead-after %g, the wait of %g s that "
                 "follows from --lease, and %d s to make the next view",
                 s(t->open), s(t->dead + wait + JOINING_MS), s(t->dead), s(wait),
                 JOINING_MS / 1000);
        return -EINVAL;
    }
    return 0;
}

char *times_print(const struct times *t, char *buf, size_t len)
{
    snprintf(buf, len, "--suspect-after %g --dead-after %g --lease %g --open-wait %g",
             s(t->suspect), s(t->dead), s(t->lease), s(t->open));
    return buf;
}
