/* complaint.c - the sources that were complained about in the last minute.
 *
 * There is a fixed number of sources.  If a minute has more, the others share one line: a
 * stranger with many addresses must not fill the log either.
 */
#include "transport/complaint.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define AGAIN_MS 60000
#define SOURCES  32
#define WHO_MAX  80

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct source {
    char who[WHO_MAX];
    uint64_t logged_ms; /* 0: free */
    unsigned since;     /* not logged since then */
} sources[SOURCES], others;

/* Mutex held.  The source's own entry; else the entry that was logged longest ago, if that was over a minute
 * ago; else the entry of all others. */
static struct source *source_of(const char *who, uint64_t now)
{
    struct source *oldest = sources;
    for (struct source *s = sources; s < sources + SOURCES; s++) {
        if (s->logged_ms && !strncmp(s->who, who, WHO_MAX - 1))
            return s;
        if (s->logged_ms < oldest->logged_ms)
            oldest = s;
    }
    if (oldest->logged_ms && now - oldest->logged_ms < AGAIN_MS)
        return &others;
    *oldest = (struct source){0};
    snprintf(oldest->who, sizeof(oldest->who), "%s", who);
    return oldest;
}

bool complaint_due(const char *who, char more[COMPLAINT_MORE])
{
    uint64_t now = boot_ms() + 1; /* never 0 */
    more[0] = 0;
    pthread_mutex_lock(&mutex);
    struct source *s = source_of(who, now);
    bool due = !s->logged_ms || now - s->logged_ms >= AGAIN_MS;
    if (!due) {
        s->since++;
    } else {
        if (s->since)
            snprintf(more, COMPLAINT_MORE, " (and %u more since the last line)", s->since);
        s->logged_ms = now;
        s->since = 0;
    }
    pthread_mutex_unlock(&mutex);
    return due;
}

void complain_of_node(const char *name, const char *fmt, ...)
{
    char what[512], who[WHO_MAX], more[COMPLAINT_MORE];
    snprintf(who, sizeof(who), "node %s", name);
    if (!complaint_due(who, more))
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    log_warn("node %s: %s: refused%s", name, what, more);
}
