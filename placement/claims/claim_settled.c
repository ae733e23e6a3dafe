/* claim_settled.c - see claim_settled.h. */
#include "placement/claims/claim_settled.h"

#include "transport/base.h"
#include "transport/lock.h"

/* The first answer of a home in a view: it is complete, so all members have adopted the view. */
static struct {
    struct lock lock;      /* RANK_LEAF */
    _Atomic uint64_t view; /* only grows */
    uint64_t since_ms;
} settled = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

void claim_note_settled(uint64_t view)
{
    if (view <= settled.view) /* as always but once */
        return;
    lock_take(&settled.lock);
    if (view > settled.view) {
        settled.view = view;
        settled.since_ms = boot_ms();
    }
    lock_drop(&settled.lock);
}

bool claim_settled(uint64_t view, uint64_t looked_ms)
{
    lock_take(&settled.lock);
    bool yes = view && view == settled.view && looked_ms > settled.since_ms;
    lock_drop(&settled.lock);
    return yes;
}

/* The answer came so soon after the look that no view changed in between. */
#define QUICK_MS 50

bool claim_look_counts(const struct location *at, uint64_t looked_ms)
{
    return boot_ms() - looked_ms < QUICK_MS || claim_settled(at->view, looked_ms);
}
