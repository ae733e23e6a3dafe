/* borrow_list.c - the files of which something is borrowed. */
#include "placement/borrow_loan.h"

static struct {
    struct lock lock; /* RANK_CLAIM: a file of the list is referenced under it */
    struct borrow *first;
} all = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_CLAIM}};

void borrow_list_add(struct borrow *b)
{
    lock_take(&all.lock);
    b->next = all.first;
    b->prev = &all.first;
    if (b->next)
        b->next->prev = &b->next;
    all.first = b;
    lock_drop(&all.lock);
}

void borrow_list_remove(struct borrow *b)
{
    lock_take(&all.lock);
    *b->prev = b->next;
    if (b->next)
        b->next->prev = b->prev;
    lock_drop(&all.lock);
}

struct file *borrow_list_at(size_t place)
{
    struct file *f = NULL;
    lock_take(&all.lock);
    for (struct borrow *b = all.first; b && !f; b = b->next)
        if (!place--)
            f = file_ref(b->f); /* borrow_forget takes it off the list first */
    lock_drop(&all.lock);
    return f;
}
