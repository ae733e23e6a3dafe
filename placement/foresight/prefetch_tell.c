/* prefetch_tell.c - the store and the claims hear what changed for files that are hinted, in order. */
#include "placement/claims/look.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/prefetch_int.h"
#include "placement/foresight/shares.h"
#include "placement/store/store_hint.h"

/* With hints_lock. */
static struct {
    bool now; /* a thread tells: one at a time */
    pthread_cond_t ended;
} telling;

void prefetch_start(void)
{
    static bool made;
    if (!made)
        lock_cond_init(&telling.ended);
    made = true;
}

/* Returns when all that was to be told until now is told. */
void prefetch_tell_store(void)
{
    static const enum eviction_time time_of[] = {[NEWS_UNKNOWN] = TIME_UNKNOWN,
                                                 [NEWS_NEVER] = TIME_NEVER,
                                                 [NEWS_HINTED] = TIME_HINTED};
    struct hint_news n;
    lock_take(&hints_lock);
    while (telling.now)
        lock_wait(&hints_lock, &telling.ended, 0);
    while (hints_next_news(&n)) {
        enum pinned pinned = n.of_queue && n.time != NEWS_HINTED ? shares_pin(n.fid) : PINNED_NONE;
        if (pinned == PINNED_ALL)
            continue;
        telling.now = true;
        lock_drop(&hints_lock);
        if (n.time == NEWS_NOT_LOOKED_AT)
            look_closed(n.fid);
        else if (pinned)
            store_hint_others(n.fid, n.off, n.len, time_of[n.time]);
        else
            store_hint(n.fid, n.off, n.len, time_of[n.time]);
        lock_take(&hints_lock);
    }
    if (telling.now)
        pthread_cond_broadcast(&telling.ended);
    telling.now = false;
    lock_drop(&hints_lock);
}
