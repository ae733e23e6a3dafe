/* Which chunks this node keeps as their owner. */
#include "placement/chunks/owner.c"
#include "transport/view.h"

#include <check.h>

#include "suite.h"

/* ---- the world around owner.c: node 1 is this one, 3, 1, 2 own all chunks in this order ---- */

static const uint64_t owners[] = {3, 1, 2};
static struct view view;
static const struct view *now = &view;
static uint64_t suspect;

const struct view *members_view(void)
{
    return now;
}

uint64_t members_self(void)
{
    return 1;
}

bool members_suspected(uint64_t id)
{
    return id == suspect;
}

const struct ring *ring_of(const struct view *v)
{
    return (const struct ring *)(const void *)v;
}

static unsigned first; /* of owners: others have left */

uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n)
{
    (void)r;
    (void)fid;
    (void)index;
    return first + n < ARRAY_LEN(owners) ? owners[first + n] : 0;
}

static bool here(void)
{
    return owner_is_here((struct fid){1, 1}, 0);
}

/* ---- tests ---- */

START_TEST(the_owner_and_who_stands_in_for_it_keep_a_chunk)
{
    ck_assert(!here()); /* 3 owns it */
    suspect = 2;
    ck_assert(!here());
    suspect = 3;
    ck_assert(here()); /* for 3, and in the view that is made without it */
    first = 1;
    ck_assert(here());
    suspect = 0;
    ck_assert(here());
    first = 2;
    ck_assert(!here());
    suspect = 2;
    ck_assert(!here()); /* there is no other */
    first = 1;
    now = NULL;
    ck_assert(!here());
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, the_owner_and_who_stands_in_for_it_keep_a_chunk);
    return run_case("owner", t);
}
