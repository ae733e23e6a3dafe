/* decide.c - whether a dirty file is written to the PFS now. */
#include "flush/decide.h"

#include "transport/base.h"

#include <errno.h>
#include <string.h>

static const char *const names[FLUSH_POLICIES] = {"idle", "immediate", "close", "end"};

int flush_policy_parse(const char *name, size_t len, enum flush_policy *out)
{
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        if (strlen(names[p]) == len && !memcmp(names[p], name, len)) {
            *out = (enum flush_policy)p;
            return 0;
        }
    return -EINVAL;
}

const char *flush_policy_name(enum flush_policy p)
{
    return names[p];
}

static bool uses_lulls(enum flush_policy p)
{
    return p == FLUSH_IDLE || p == FLUSH_CLOSE;
}

/* `end` keeps what may never be wanted on the PFS: time alone does not send it there. */
static bool has_age(const struct situation *s)
{
    return s->policy != FLUSH_END && s->most_dirty_ms != NEVER;
}

enum flush_why flush_decide(const struct situation *s, uint64_t *wait_ms)
{
    *wait_ms = 0;
    if (s->asked)
        return WHY_ASKED;
    if (s->retry_ms) {
        *wait_ms = s->retry_ms;
        return WHY_NOT;
    }
    if (s->level == MARK_HIGH)
        return WHY_HIGH;
    if (uses_lulls(s->policy) && !s->lull_ms)
        return WHY_LULL;
    if (s->policy == FLUSH_IMMEDIATE)
        return WHY_POLICY;
    if (has_age(s) && s->dirty_ms >= s->most_dirty_ms)
        return WHY_AGE;
    if (s->level == MARK_DRAIN)
        return WHY_DRAIN;
    uint64_t lull = uses_lulls(s->policy) ? s->lull_ms : NEVER,
             age = has_age(s) ? s->most_dirty_ms - s->dirty_ms : NEVER;
    *wait_ms = MIN(lull, age);
    return WHY_NOT;
}
