/* Rule 7: what a new home makes of what the members report, when other nodes died before, during or
 * after earlier views. */
#include "placement/claims/collect_self.c"
#include "placement/claims/collect_report.c"
#include "placement/claims/collect_stamp.c"
#include "placement/claims/collect.c"
#include "transport/view.h"

#include <check.h>

#include "suite.h"

/* ---- the world around collect.c ---- */

#define VIEWS 8

static struct view *views[VIEWS];
static struct view *made[4 * VIEWS]; /* rings refer to views: they stay */
static unsigned nmade;
static uint64_t me;
static struct record *records;

const struct view *members_view_number(uint64_t n)
{
    return n < VIEWS ? views[n] : NULL;
}

uint64_t members_self(void)
{
    return me;
}

const char *members_name(uint64_t id)
{
    (void)id;
    return "?";
}

const struct member *view_member(const struct view *v, uint64_t id)
{
    for (uint32_t i = 0; v && i < v->nmembers; i++)
        if (v->members[i].id == id)
            return &v->members[i];
    return NULL;
}

bool view_has(const struct view *v, uint64_t id, uint64_t incarnation)
{
    const struct member *m = view_member(v, id);

    return m && m->incarnation == incarnation;
}

struct record *record_find(struct fid fid)
{
    struct record *r = records;

    while (r && !fid_eq(r->fid, fid))
        r = r->hash_next;
    return r;
}

struct record *record_make(struct fid fid)
{
    struct record *r = record_find(fid);

    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    r->fid = fid;
    r->hash_next = records;
    records = r;
    return r;
}

void record_each(void (*fn)(struct record *r, void *arg), void *arg)
{
    for (struct record *r = records; r; r = r->hash_next)
        fn(r, arg);
}

void record_sweep(bool (*drop)(const struct record *r, void *arg), void *arg)
{
    for (struct record **p = &records; *p;) {
        struct record *r = *p;

        if (!drop(r, arg)) {
            p = &r->hash_next;
            continue;
        }
        *p = r->hash_next;
        lock_list_free(&r->locks);
        free(r);
    }
}

static bool every(const struct record *r, void *arg)
{
    (void)r;
    (void)arg;
    return true;
}

/* Members and absent nodes by their bits: node n is 1 << n.  Incarnation 1; those in `again` have
 * 2. */
#define N(n) (1u << (n))

static struct view *add_view(uint64_t number, unsigned members, unsigned absents, unsigned again)
{
    struct view *v = xcalloc(1, sizeof(*v));

    v->number = number;
    v->members = xcalloc(32, sizeof(*v->members));
    v->absents = xcalloc(32, sizeof(*v->absents));
    for (unsigned i = 1; i < 32; i++) {
        if (members & N(i))
            v->members[v->nmembers++] =
                (struct member){.id = i, .incarnation = again & N(i) ? 2 : 1, .weight = 100};
        if (absents & N(i))
            v->absents[v->nabsent++] = (struct absent){.id = i, .incarnation = 1};
    }
    views[number] = made[nmade++] = v;
    return v;
}

/* A file with these homes (and nexts, 0: any) in views 1, 2 ...; home 0: any. */
static struct fid file_with(const uint64_t (*want)[2], unsigned n)
{
    for (uint64_t i = 1; i < 200000; i++) {
        struct fid fid = {i * 0x9e3779b97f4a7c15u, i};
        bool fits = true;

        for (unsigned k = 0; k < n && fits; k++) {
            const struct ring *ring = ring_of(views[k + 1]);

            fits = (!want[k][0] || ring_home(ring, fid, 0) == want[k][0]) &&
                   (!want[k][1] || ring_home(ring, fid, 1) == want[k][1]);
        }
        if (fits)
            return fid;
    }
    ck_abort_msg("no such file");
    return (struct fid){0, 0};
}
#define FILE_WITH(...)                                                                             \
    file_with((const uint64_t[][2]){__VA_ARGS__}, sizeof((const uint64_t[][2]){__VA_ARGS__}) / 16)

/* ---- what nodes say ---- */

struct words {
    uint64_t id, incarnation, last;
    struct item_nextof nextof[16];
    uint32_t nnextof;
    struct item_record record;
    struct item_claim claim;
    struct item_lock lock;
    struct item_blind blind;
};

/* Had all records of these homes in that view (with its own id: was complete). */
static void had(struct words *w, uint64_t view, unsigned homes)
{
    for (unsigned i = 1; i < 32; i++)
        if (homes & N(i))
            w->nextof[w->nnextof++] = (struct item_nextof){i, view};
}

static void report(const struct view *v, struct words *w)
{
    struct body_adopted b = {.view = v->number, .last = w->last};

    b.nextof.n = w->nnextof;
    b.nextof.v = w->nextof;
    b.records.n = !fid_is_zero(w->record.fid);
    b.records.v = &w->record;
    b.claims.n = !fid_is_zero(w->claim.fid);
    b.claims.v = &w->claim;
    b.locks.n = !fid_is_zero(w->lock.fid);
    b.locks.v = &w->lock;
    b.blinds.n = w->blind.at != 0;
    b.blinds.v = &w->blind;
    collect_report(v, w->id, w->incarnation, &b);
}

static void collect_all(const struct view *v)
{
    while (!collect_some(v))
        ;
}

static void begin_at_home_of(const struct view *v, struct fid fid)
{
    me = ring_home(ring_of(v), fid, 0);
    collect_begin(v);
}

static struct item_record claimed(struct fid fid, uint64_t by, uint64_t view, uint64_t count)
{
    return (struct item_record){.fid = fid,
                                .claimant = by,
                                .number_inc = 1,
                                .number = 7,
                                .stamp_view = view,
                                .stamp_count = count};
}

static uint64_t claimant(struct fid fid)
{
    const struct record *r = record_find(fid);

    return r ? r->claimant : 0;
}

static void end(void)
{
    record_sweep(every, NULL);
    collect_stop();
    memset(views, 0, sizeof(views));
}

/* ---- */

START_TEST(a_member_is_asked_and_an_absent_node_is_remembered)
{
    add_view(1, N(1) | N(2) | N(3), 0, 0);
    struct view *v = add_view(2, N(1) | N(2), N(3), 0);
    struct fid lost = FILE_WITH({1, 2}), given_back = FILE_WITH({2, 1}),
               free_one = FILE_WITH({1, 3});
    struct words a = {.id = 1, .incarnation = 1, .last = 1, .record = claimed(lost, 3, 1, 5)};
    struct words b = {.id = 2, .incarnation = 1, .last = 1, .record = claimed(given_back, 1, 1, 5)};

    had(&a, 1, N(1) | N(2) | N(3));
    had(&b, 1, N(1) | N(2) | N(3));
    begin_at_home_of(v, lost);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_uint_eq(claimant(lost), 3);
    ck_assert_uint_eq(collect_blind(v, free_one), 0);
    end();

    add_view(1, N(1) | N(2) | N(3), 0, 0);
    v = add_view(2, N(1) | N(2), N(3), 0);
    begin_at_home_of(v, given_back);
    report(v, &a);
    report(v, &b); /* node 1 is a member, and its list does not have it */
    collect_all(v);
    ck_assert_uint_eq(claimant(given_back), 0);
    end();
}
END_TEST

START_TEST(next_remembers_when_home_and_claimant_die)
{
    add_view(1, N(1) | N(2) | N(3) | N(4), 0, 0);
    struct view *v = add_view(2, N(1) | N(2), N(3) | N(4), 0);
    struct fid f = FILE_WITH({3, 1});
    struct words a = {.id = 1, .incarnation = 1, .last = 1, .record = claimed(f, 4, 1, 5)};
    struct words b = {.id = 2, .incarnation = 1, .last = 1};

    had(&a, 1, N(1) | N(2) | N(3) | N(4));
    had(&b, 1, N(1) | N(2) | N(3) | N(4));
    begin_at_home_of(v, f);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_uint_eq(claimant(f), 4);
    end();
}
END_TEST

START_TEST(files_whose_home_and_next_die_are_blind_and_no_others)
{
    add_view(1, N(1) | N(2) | N(3) | N(4), 0, 0);
    struct view *v = add_view(2, N(1) | N(2), N(3) | N(4), 0);
    struct fid blind = FILE_WITH({3, 4}), known = FILE_WITH({3, 2}),
               own = FILE_WITH({4, 3}, {1, 0});
    struct words a = {
        .id = 1, .incarnation = 1, .last = 1, .claim = {.fid = own, .number_inc = 1, .number = 9}};
    struct words b = {.id = 2, .incarnation = 1, .last = 1};

    had(&a, 1, N(1) | N(2) | N(3) | N(4));
    had(&b, 1, N(1) | N(2) | N(3) | N(4));
    begin_at_home_of(v, own);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_uint_ne(collect_blind(v, blind), 0);
    ck_assert_uint_eq(collect_blind(v, known), 0);
    ck_assert_uint_eq(claimant(own), 1); /* who is here says so itself */
    ck_assert_uint_eq(record_find(own)->unknown, RECORD_LOCKS_UNKNOWN);

    /* They are back, started again: they say themselves what they hold. */
    struct view *w = add_view(3, N(1) | N(2) | N(3) | N(4), 0, N(3) | N(4));
    collect_begin(w);
    ck_assert_uint_eq(collect_blind(w, blind), 0);
    end();
}
END_TEST

START_TEST(blindness_goes_on_until_the_absent_nodes_are_back)
{
    add_view(1, N(1) | N(2) | N(3) | N(4), 0, 0);
    struct view *v = add_view(2, N(1) | N(2), N(3) | N(4), 0);
    struct fid blind = FILE_WITH({3, 4});
    struct words a = {.id = 1, .incarnation = 1, .last = 1},
                 b = {.id = 2, .incarnation = 1, .last = 1};

    had(&a, 1, N(1) | N(2) | N(3) | N(4));
    had(&b, 1, N(1) | N(2) | N(3) | N(4));
    begin_at_home_of(v, blind);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    struct view *w = add_view(3, N(1) | N(2) | N(3), N(4), N(3)); /* one of them */
    collect_begin(w);
    a.last = b.last = 2;
    had(&a, 2, N(1) | N(2));
    had(&b, 2, N(1) | N(2));
    report(w, &a);
    report(w, &b);
    report(w, &(struct words){.id = 3, .incarnation = 2});
    collect_all(w);
    ck_assert_uint_eq(collect_blind(w, blind), 4);
    end();
}
END_TEST

/* View 2 ended when node 1 had all reports and node 5, which had just joined, did not. */
START_TEST(a_view_that_some_homes_completed_does_not_hide_the_one_before)
{
    add_view(1, N(1) | N(2) | N(3) | N(4), 0, 0);
    add_view(2, N(1) | N(2) | N(3) | N(4) | N(5), 0, 0);
    struct view *v = add_view(3, N(1) | N(2) | N(3) | N(5), N(4), 0);
    struct fid f = FILE_WITH({1, 2}, {5, 1}); /* granted in view 1 to node 4 */
    struct words a = {.id = 1, .incarnation = 1, .last = 2, .record = claimed(f, 4, 1, 5)};
    struct words b = {.id = 2, .incarnation = 1, .last = 2, .record = claimed(f, 4, 1, 5)};
    struct words c = {.id = 3, .incarnation = 1, .last = 2},
                 e = {.id = 5, .incarnation = 1, .last = 2};

    had(&a, 1, N(1) | N(2) | N(3) | N(4));
    had(&b, 1, N(1) | N(2) | N(3) | N(4));
    had(&c, 1, N(1) | N(2) | N(3) | N(4));
    had(&a, 2, N(1)); /* complete, and its copies have arrived */
    had(&b, 2, N(1));
    had(&c, 2, N(1));
    had(&e, 2, N(1));
    begin_at_home_of(v, f);
    report(v, &a);
    report(v, &b);
    report(v, &c);
    report(v, &e);
    collect_all(v);
    ck_assert_uint_eq(claimant(f), 4);
    end();
}
END_TEST

/* Its home of view 1 died, then its home of view 2, before it had sent its records to its next. */
START_TEST(a_home_that_died_before_its_first_copy_makes_blind)
{
    add_view(1, N(1) | N(2) | N(3) | N(4) | N(5), 0, 0);
    add_view(2, N(1) | N(2) | N(3) | N(4), N(5), 0);
    struct view *v = add_view(3, N(1) | N(2) | N(3), N(4) | N(5), 0);
    struct fid f = FILE_WITH({5, 4}, {4, 0}); /* only nodes 5 and 4 have ever known who has it */
    struct words w[] = {{.id = 1, .incarnation = 1, .last = 2},
                        {.id = 2, .incarnation = 1, .last = 2},
                        {.id = 3, .incarnation = 1, .last = 2}};

    begin_at_home_of(v, f);
    for (unsigned i = 0; i < 3; i++) {
        had(&w[i], 1, N(1) | N(2) | N(3) | N(4) | N(5));
        had(&w[i], 2, N(1) | N(2) | N(3)); /* all but those of node 4 */
        report(v, &w[i]);
    }
    collect_all(v);
    ck_assert_uint_ne(collect_blind(v, f), 0);
    end();
}
END_TEST

START_TEST(a_view_that_a_present_node_never_adopted_granted_nothing)
{
    add_view(1, N(1) | N(2) | N(3) | N(4), 0, 0);
    /* node 3 made it, and died with node 4; node 2 slept */
    add_view(2, N(2) | N(3) | N(4), N(1), 0);
    struct view *v = add_view(3, N(1) | N(2), N(3) | N(4), 0);
    struct fid f = FILE_WITH({1, 3}, {3, 4}), unclaimed = FILE_WITH({1, 4}, {4, 3});
    struct words a = {.id = 1, .incarnation = 1, .last = 1, .record = claimed(f, 3, 1, 5)};
    struct words b = {.id = 2, .incarnation = 1, .last = 1};

    had(&a, 1, N(1) | N(2) | N(3) | N(4));
    had(&b, 1, N(1) | N(2) | N(3) | N(4));
    begin_at_home_of(v, f);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_uint_eq(claimant(f), 3);
    ck_assert_uint_eq(collect_blind(v, unclaimed), 0);
    end();
}
END_TEST

START_TEST(after_the_last_one_left_all_is_blind_while_a_node_is_absent)
{
    add_view(1, N(1) | N(2), 0, 0);
    add_view(2, 0, N(2), 0);
    struct view *v = add_view(3, N(1), N(2), N(1));
    struct fid f = FILE_WITH({1, 2});

    begin_at_home_of(v, f);
    report(v, &(struct words){.id = 1, .incarnation = 2});
    collect_all(v);
    ck_assert_uint_eq(collect_blind(v, f), 2);
    end();

    add_view(1, N(1) | N(2), 0, 0);
    add_view(2, 0, 0, 0); /* both left cleanly */
    v = add_view(3, N(1), 0, N(1));
    begin_at_home_of(v, f);
    report(v, &(struct words){.id = 1, .incarnation = 2});
    collect_all(v);
    ck_assert_uint_eq(collect_blind(v, f), 0);
    end();
}
END_TEST

START_TEST(a_farewell_speaks_for_who_has_left)
{
    add_view(1, N(1) | N(2) | N(3), 0, 0);
    struct view *v = add_view(2, N(1), N(3), 0); /* node 2 left cleanly, node 3 is dead */
    struct fid f = FILE_WITH({3, 2}), other = FILE_WITH({2, 3});
    struct words a = {.id = 1, .incarnation = 1, .last = 1},
                 b = {.id = 2, .incarnation = 1, .last = 1, .record = claimed(f, 3, 1, 5)};

    had(&a, 1, N(1) | N(2) | N(3));
    had(&b, 1, N(1) | N(2) | N(3));
    begin_at_home_of(v, f);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_uint_eq(claimant(f), 3);
    ck_assert_uint_eq(collect_blind(v, other), 0);
    end();
}
END_TEST

START_TEST(locks_of_absent_nodes_stay_and_those_of_members_are_their_own_word)
{
    add_view(1, N(1) | N(2) | N(3), 0, 0);
    struct view *v = add_view(2, N(1) | N(2), N(3), 0);
    struct fid f = FILE_WITH({1, 2});
    struct words a = {.id = 1,
                      .incarnation = 1,
                      .last = 1,
                      .record = claimed(f, 0, 1, 5),
                      .lock = {.fid = f,
                               .node = 3,
                               .incarnation = 1,
                               .owner = 5,
                               .type = HELD_WRITE,
                               .start = 1,
                               .end = 2}};
    struct words b = {.id = 2,
                      .incarnation = 1,
                      .last = 1,
                      .lock = {.fid = f,
                               .node = 2,
                               .incarnation = 1,
                               .owner = 6,
                               .type = HELD_READ,
                               .start = 8,
                               .end = 9}};
    const struct held_lock *l;

    had(&a, 1, N(1) | N(2) | N(3));
    had(&b, 1, N(1) | N(2) | N(3));
    begin_at_home_of(v, f);
    report(v, &a);
    report(v, &b);
    collect_all(v);
    ck_assert_ptr_nonnull(record_find(f));
    l = record_find(f)->locks;
    ck_assert_ptr_nonnull(l);
    ck_assert_ptr_nonnull(l->next);
    ck_assert_ptr_null(l->next->next);
    ck_assert_uint_eq(l->node + l->next->node, 5);
    ck_assert_uint_eq(l->owner + l->next->owner, 11);
    end();
}
END_TEST

/* Home and next of f died in view 2, and only f's holder, a member, spoke of its lock there.  What
 * the record of view 2 did not know is not known in view 3, and what it knew is not lost. */
START_TEST(what_a_blind_record_says_goes_on_with_what_it_does_not)
{
    add_view(1, N(1) | N(2) | N(3) | N(4) | N(5), 0, 0);
    add_view(2, N(1) | N(2) | N(3), N(4) | N(5), 0);
    struct fid f = FILE_WITH({4, 5}, {1, 2});

    for (unsigned back = 0; back < 2; back++) { /* do nodes 4 and 5 come back? */
        unsigned again = back ? N(4) | N(5) : 0;
        struct view *v = add_view(3, N(1) | N(2) | again, back ? N(3) : N(3) | N(4) | N(5), again);
        struct words a = {.id = 1, .incarnation = 1, .last = 2, .blind = {1, 2}};
        struct words b = {.id = 2, .incarnation = 1, .last = 2, .record = claimed(f, 0, 2, 5)};

        b.record.unknown = RECORD_CLAIM_UNKNOWN | RECORD_LOCKS_UNKNOWN;
        b.lock = (struct item_lock){.fid = f, .node = 3, .incarnation = 1, .end = 9};
        had(&a, 2, N(1) | N(2) | N(3));
        had(&b, 2, N(1) | N(2) | N(3));
        begin_at_home_of(v, f);
        report(v, &a);
        report(v, &b);
        collect_all(v);
        const struct record *r = record_find(f);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r->unknown, back ? 0 : RECORD_CLAIM_UNKNOWN | RECORD_LOCKS_UNKNOWN);
        ck_assert_ptr_nonnull(r->locks);
        ck_assert_uint_eq(r->locks->node, 3);
        record_sweep(every, NULL);
        collect_stop();
    }
    end();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_test(t, a_member_is_asked_and_an_absent_node_is_remembered);
    tcase_add_test(t, next_remembers_when_home_and_claimant_die);
    tcase_add_test(t, files_whose_home_and_next_die_are_blind_and_no_others);
    tcase_add_test(t, blindness_goes_on_until_the_absent_nodes_are_back);
    tcase_add_test(t, a_view_that_some_homes_completed_does_not_hide_the_one_before);
    tcase_add_test(t, a_home_that_died_before_its_first_copy_makes_blind);
    tcase_add_test(t, a_view_that_a_present_node_never_adopted_granted_nothing);
    tcase_add_test(t, after_the_last_one_left_all_is_blind_while_a_node_is_absent);
    tcase_add_test(t, a_farewell_speaks_for_who_has_left);
    tcase_add_test(t, locks_of_absent_nodes_stay_and_those_of_members_are_their_own_word);
    tcase_add_test(t, what_a_blind_record_says_goes_on_with_what_it_does_not);
    return run_case("collect", t);
}
