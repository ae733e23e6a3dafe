/* budget.c - who has the PFS now: what is fetched ahead, or what is flushed. */
#include "placement/foresight/budget.h"

#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints.h"
#include "transport/base.h"

#define SOON_MS 500 /* so long before it is read, a file is fetched before anything is flushed */

static struct {
    _Atomic bool pressed;  /* dirty bytes are at the high mark */
    _Atomic unsigned soon; /* targets that are worked on, and read soon; and guesses that are fetched */
    void (*wake)(void), (*on_calm)(void);
} budget;

void budget_start(void (*wake)(void))
{
    budget.wake = wake;
    budget.pressed = false;
}

static bool is_soon(const struct target *t)
{
    return !t->queue->staged && t->first != NO_ENTRY && hints_distance(t->queue, t->first) <= SOON_MS;
}

void budget_flush_presses(bool presses)
{
    budget.pressed = presses;
    if (!presses && budget.wake)
        budget.wake();
}

bool budget_is_soon(void)
{
    return budget.soon;
}

void budget_on_calm(void (*fn)(void))
{
    budget.on_calm = fn;
}

uint64_t budget_distance(struct fid fid)
{
    uint64_t least = UINT64_MAX;
    lock_take(&hints_lock);
    const struct hinted *h = hints_by_fid(fid);
    for (const struct target *t = h ? h->targets : NULL; t; t = t->file_next)
        if (t->first != NO_ENTRY && !t->queue->staged)
            least = MIN(least, hints_distance(t->queue, t->first));
    lock_drop(&hints_lock);
    return least;
}

bool budget_may_fetch(const struct target *t)
{
    return !budget.pressed || is_soon(t);
}

bool budget_begins(const struct target *t)
{
    bool soon = is_soon(t);
    budget.soon += soon;
    return soon;
}

void budget_ends(bool was_soon)
{
    if (was_soon && !--budget.soon && budget.on_calm)
        budget.on_calm();
}

void budget_guess_begins(void)
{
    budget.soon++;
}

void budget_guess_ends(void)
{
    budget_ends(true);
}
