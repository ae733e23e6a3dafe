/* Which former owner is asked for a chunk: the last one that may have it. */
#include "placement/chunks/former.c"
#include "transport/view.h"

#include <check.h>

#include "suite.h"

/* ---- the world around former.c: node 1 is this one, and view n's owner of all chunks is owners[n] ---- */

#define VIEWS 20

static struct member members[4] = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}};
static struct view views[VIEWS];
static uint64_t owners[VIEWS];

const struct view *members_view_number(uint64_t n)
{
    return n < VIEWS && views[n].number ? &views[n] : NULL;
}

uint64_t members_self(void)
{
    return 1;
}

bool members_suspected(uint64_t id)
{
    (void)id;
    return false;
}

const struct member *view_member(const struct view *v, uint64_t id)
{
    for (uint32_t i = 0; v && i < v->nmembers; i++)
        if (v->members[i].id == id)
            return &v->members[i];
    return NULL;
}

bool view_absent(const struct view *v, uint64_t id)
{
    (void)v;
    (void)id;
    return false;
}

const struct ring *ring_of(const struct view *v)
{
    return (const struct ring *)(const void *)v;
}

uint64_t ring_owner(const struct ring *r, struct fid fid, uint64_t index, unsigned n)
{
    (void)fid;
    (void)index;
    (void)n;
    return owners[((const struct view *)(const void *)r)->number];
}

/* Views 1 to n, whose owners are given; the last one is adopted. */
static void adopt(unsigned n, const uint64_t *list)
{
    memset(views, 0, sizeof(views));
    for (unsigned i = 1; i <= n; i++) {
        views[i] = (struct view){.number = i, .nmembers = 4, .members = members};
        owners[i] = list[i - 1];
    }
    former_adopted(&views[n]);
}

static uint64_t ask(void)
{
    return former_owner((struct fid){1, 1}, 0);
}

/* ---- tests ---- */

START_TEST(the_last_former_owner_is_asked)
{
    adopt(4, (const uint64_t[]){4, 2, 3, 1});
    ck_assert_uint_eq(ask(), 3);
    adopt(4, (const uint64_t[]){4, 2, 1, 1}); /* this node has owned it since */
    ck_assert_uint_eq(ask(), 0);
    former_stop();
}
END_TEST

START_TEST(who_has_nothing_is_asked_now_and_then)
{
    unsigned asked = 0, before = 0;
    adopt(17, (const uint64_t[]){2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1});
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(ask(), 3);
        former_answered(3, false);
    }
    for (unsigned i = 0; i < 160; i++) {
        uint64_t node = ask();
        asked += node == 3;
        before += node == 2; /* who owned it before that one may have it still */
        former_answered(node, node == 2);
    }
    ck_assert_uint_eq(asked, 10);
    ck_assert_uint_eq(before, 150);
    former_stop();
}
END_TEST

START_TEST(who_has_one_again_is_asked_again)
{
    adopt(3, (const uint64_t[]){2, 3, 1});
    for (unsigned i = 0; i < 100; i++)
        former_answered(3, false);
    ck_assert_uint_eq(ask(), 2);
    former_answered(3, true);
    ck_assert_uint_eq(ask(), 3);
    for (unsigned i = 0; i < 100; i++)
        former_answered(3, false);
    ck_assert_uint_eq(ask(), 2);
    adopt(3, (const uint64_t[]){2, 3, 1}); /* a new view: it may be another's word */
    ck_assert_uint_eq(ask(), 3);
    former_stop();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_test(t, the_last_former_owner_is_asked);
    tcase_add_test(t, who_has_nothing_is_asked_now_and_then);
    tcase_add_test(t, who_has_one_again_is_asked_again);
    return run_case("former", t);
}
