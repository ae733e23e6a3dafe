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

/* `close` begins while the file is written, so that close has less to wait for.  But it does not begin so
 * early that a small file, which is closed by then, is written in two runs. */
#define CLOSE_AHEAD_MS 10

/* Time until it is flushed whatever else happens.  `end` is for files that may never be wanted on the PFS:
 * time alone does not send them there. */
static uint64_t most_wait_ms(const struct situation *s)
{
    const uint64_t most[FLUSH_POLICIES] = {
        [FLUSH_IDLE] = s->most_dirty_ms,
        [FLUSH_IMMEDIATE] = 0,
        [FLUSH_CLOSE] = MIN((uint64_t)CLOSE_AHEAD_MS, s->most_dirty_ms),
        [FLUSH_END] = NEVER,
    };
    uint64_t at = most[s->policy];
    return at == NEVER ? NEVER : at - MIN(at, s->dirty_ms);
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
    uint64_t lull_ms = s->policy == FLUSH_IDLE ? s->lull_ms : NEVER, most_ms = most_wait_ms(s);
    if (!lull_ms)
        return WHY_LULL;
    if (!most_ms)
        return s->policy == FLUSH_IDLE ? WHY_AGE : WHY_POLICY;
    if (s->level == MARK_DRAIN)
        return WHY_DRAIN;
    *wait_ms = MIN(lull_ms, most_ms);
    return WHY_NOT;
}
