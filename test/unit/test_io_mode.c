/* The I/O mode of an open: every pair of opens in both orders, and that nothing is left when all
 * are closed. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fs/handle.h"
#include "fs/io_mode.h"
#include "suite.h"

/* What an open can be: how, and where the file's latest bytes are then. */
static const struct kind {
    const char *name;
    int flags;
    bool here;
    enum kernel_part part; /* what the kernel may serve of it */
} kinds[] = {
    {"reads, here", O_RDONLY, true, KERNEL_NOTHING},
    {"writes, here", O_WRONLY, true, KERNEL_NOTHING},
    {"both, here", O_RDWR, true, KERNEL_NOTHING},
    {"appends, here", O_WRONLY | O_APPEND, true, KERNEL_NOTHING},
    {"reads, elsewhere", O_RDONLY, false, KERNEL_NOTHING},
    {"writes, elsewhere", O_WRONLY, false, KERNEL_NOTHING},
    {"both, elsewhere", O_RDWR, false, KERNEL_NOTHING},
    {"appends, elsewhere", O_RDWR | O_APPEND, false, KERNEL_NOTHING},
    {"reads what O_APPEND alone does not make a writer", O_RDONLY | O_APPEND, true, KERNEL_NOTHING},
    {"reads, whole", O_RDONLY, true, KERNEL_ALL},
    {"writes, whole", O_WRONLY, true, KERNEL_ALL},
    {"both, whole", O_RDWR, true, KERNEL_ALL},
    {"empties, whole", O_RDONLY | O_TRUNC, true, KERNEL_ALL},
    {"appends, whole", O_WRONLY | O_APPEND, true, KERNEL_ALL},
    {"reads past the cache, whole", O_RDONLY | O_DIRECT, true, KERNEL_MAPS},
    {"writes and syncs, whole", O_WRONLY | O_DSYNC, true, KERNEL_MAPS},
    {"appends and syncs, whole", O_WRONLY | O_APPEND | O_DSYNC, true, KERNEL_MAPS},
};
#define KINDS_END (kinds + ARRAY_LEN(kinds))

static struct inode *new_inode(void)
{
    struct inode *i = xcalloc(1, sizeof(*i));
    lock_init(&i->lock, RANK_INODE);
    return i;
}

static void free_inode(struct inode *i)
{
    lock_destroy(&i->lock);
    free(i);
}

static enum io_mode enter_as(struct inode *i, const struct kind *k, bool promised)
{
    lock_take(&i->lock);
    bool may = mode_may_kernel_io(i, k->part, promised);
    enum io_mode mode = mode_enter(i, k->flags, k->here, may ? k->part : KERNEL_NOTHING, promised);
    lock_drop(&i->lock);
    return mode;
}

static enum io_mode enter(struct inode *i, const struct kind *k)
{
    return enter_as(i, k, false);
}

static bool promise(struct inode *i)
{
    lock_take(&i->lock);
    bool given = mode_promise(i);
    lock_drop(&i->lock);
    return given;
}

static void end_promise(struct inode *i)
{
    lock_take(&i->lock);
    mode_leave(i, O_RDONLY, IO_PROMISED);
    lock_drop(&i->lock);
}

static void leave(struct inode *i, const struct kind *k, enum io_mode mode)
{
    if (mode == IO_STALE) /* not counted */
        return;
    lock_take(&i->lock);
    mode_leave(i, k->flags, mode);
    lock_drop(&i->lock);
}

/* What is carried, and appends, each of which is to be one request. */
static bool goes_past(const struct kind *k)
{
    return !k->here || (k->flags & O_APPEND && (k->flags & O_ACCMODE) != O_RDONLY);
}

static void each_pair(void (*check)(const struct kind *a, const struct kind *b))
{
    for (const struct kind *a = kinds; a < KINDS_END; a++)
        for (const struct kind *b = kinds; b < KINDS_END; b++)
            check(a, b);
}

static unsigned opens(const struct inode *i)
{
    return i->mode.cached + i->mode.direct + i->mode.passthrough + i->mode.beside;
}

START_TEST(what_is_carried_and_appends_go_past_the_page_cache)
{
    for (const struct kind *k = kinds; k < KINDS_END; k++) {
        struct inode *i = new_inode();
        enum io_mode mode = enter(i, k);
        enum io_mode right = k->part == KERNEL_ALL ? IO_PASSTHROUGH
                             : goes_past(k)        ? IO_DIRECT
                                                   : IO_CACHED;
        ck_assert_msg(mode == right, "%s: mode %d", k->name, mode);
        leave(i, k, mode);
        free_inode(i);
    }
}
END_TEST

/* Of an append by passthrough it counts the place by the data file. */
START_TEST(whose_place_the_kernel_counts_by_the_size_is_known)
{
    for (const struct kind *k = kinds; k < KINDS_END; k++) {
        struct inode *i = new_inode();
        enum io_mode mode = enter(i, k);
        bool appends = k->flags & O_APPEND && (k->flags & O_ACCMODE) != O_RDONLY;
        ck_assert_uint_eq(i->mode.appends, appends && mode != IO_PASSTHROUGH);
        leave(i, k, mode);
        ck_assert_uint_eq(i->mode.appends, 0);
        free_inode(i);
    }
}
END_TEST

static void open_and_close(const struct kind *a, const struct kind *b, bool a_first)
{
    struct inode *i = new_inode();
    enum io_mode first = enter(i, a), second = enter(i, b);
    bool kernel = first == IO_PASSTHROUGH;
    ck_assert_msg(!kernel || (!i->mode.cached && !i->mode.direct), "%s, then %s", a->name, b->name);
    ck_assert_msg((second == IO_STALE) == (kernel && b->part == KERNEL_NOTHING),
                  "%s, then %s: mode %d", a->name, b->name, second);
    ck_assert_msg((second == IO_BESIDE) == (kernel && b->part == KERNEL_MAPS),
                  "%s, then %s: mode %d", a->name, b->name, second);
    ck_assert_msg(second != IO_CACHED || !goes_past(b), "%s, then %s: such an open is cached",
                  a->name, b->name);
    ck_assert_uint_eq(opens(i), second == IO_STALE ? 1 : 2);

    leave(i, a_first ? a : b, a_first ? first : second);
    leave(i, a_first ? b : a, a_first ? second : first);
    ck_assert_uint_eq(opens(i), 0);
    free_inode(i);
}

static void in_both_orders(const struct kind *a, const struct kind *b)
{
    open_and_close(a, b, true);
    open_and_close(a, b, false);
}

/* What the kernel answers with EIO: a cached open, or a direct one without the backing file, beside a
 * passthrough one. */
START_TEST(no_pair_mixes_kernel_io_with_others)
{
    each_pair(in_both_orders);
}
END_TEST

/* The inode has the backing file as long as one of the two is open. */
START_TEST(what_is_open_beside_keeps_the_backing_file)
{
    struct inode *i = new_inode();
    const struct kind reads = {"", O_RDONLY, true, KERNEL_ALL},
                      syncs = {"", O_DSYNC, true, KERNEL_MAPS},
                      absent = {"", O_RDONLY, true, KERNEL_NOTHING};
    ck_assert_int_eq(enter(i, &reads), IO_PASSTHROUGH);
    ck_assert_int_eq(enter(i, &syncs), IO_BESIDE);
    leave(i, &reads, IO_PASSTHROUGH);
    ck_assert(mode_has_kernel_io(i));
    ck_assert_int_eq(enter(i, &absent), IO_STALE);
    ck_assert_int_eq(enter(i, &syncs), IO_BESIDE);
    ck_assert_int_eq(enter(i, &reads), IO_PASSTHROUGH);
    leave(i, &reads, IO_PASSTHROUGH);
    leave(i, &syncs, IO_BESIDE);
    leave(i, &syncs, IO_BESIDE);
    ck_assert(!mode_has_kernel_io(i));
    ck_assert_int_eq(enter(i, &syncs), IO_CACHED);
    leave(i, &syncs, IO_CACHED);
    free_inode(i);
}
END_TEST

static void b_after_a_is_as_b_alone(const struct kind *a, const struct kind *b)
{
    struct inode *used = new_inode(), *fresh = new_inode();
    leave(used, a, enter(used, a));
    enum io_mode after = enter(used, b), alone = enter(fresh, b);
    ck_assert_msg(after == alone, "%s after %s: %d, alone %d", b->name, a->name, after, alone);
    free_inode(used);
    free_inode(fresh);
}

START_TEST(an_open_that_follows_all_closes_depends_on_none_of_them)
{
    each_pair(b_after_a_is_as_b_alone);
}
END_TEST

/* A cached read beside a carried write could bring older bytes back into the page cache. */
START_TEST(no_cached_open_follows_a_writer_past_the_page_cache)
{
    for (const struct kind *k = kinds; k < KINDS_END; k++) {
        struct inode *i = new_inode();
        enum io_mode writer = enter(i, &kinds[5]), after = enter(i, k);
        ck_assert_int_eq(writer, IO_DIRECT);
        ck_assert_msg(after == IO_DIRECT, "%s: mode %d", k->name, after);
        leave(i, &kinds[5], writer);
        leave(i, k, after);
        free_inode(i);
    }
}
END_TEST

static void promise_of_b_beside_a(const struct kind *a, const struct kind *b)
{
    for (int before = 0; before < 2; before++) {
        struct inode *i = new_inode();
        enum io_mode other = before ? enter(i, a) : IO_STALE;
        bool given = promise(i);
        ck_assert_msg(given == (other != IO_PASSTHROUGH), "%s: it is promised", a->name);
        other = before ? other : enter(i, a);
        ck_assert_int_ne(other, IO_STALE);
        if (given) {
            enum io_mode own = enter_as(i, b, true);
            ck_assert_msg(own != IO_STALE, "%s, then %s", a->name, b->name);
            leave(i, b, own);
            end_promise(i);
        }
        leave(i, a, other);
        ck_assert_uint_eq(i->mode.promised, 0);
        free_inode(i);
    }
}

/* What a promise holds against: an open before it, by anybody, and one after it, by another task. */
START_TEST(a_promised_open_of_any_kind_finds_a_mode)
{
    each_pair(promise_of_b_beside_a);
}
END_TEST

START_TEST(a_promised_open_alone_is_as_without_the_promise)
{
    for (const struct kind *k = kinds; k < KINDS_END; k++) {
        struct inode *i = new_inode(), *fresh = new_inode();
        ck_assert(promise(i));
        enum io_mode own = enter_as(i, k, true), alone = enter(fresh, k);
        ck_assert_msg(own == alone, "%s: mode %d, without %d", k->name, own, alone);
        leave(i, k, own);
        end_promise(i);
        ck_assert(promise(i));
        ck_assert(promise(i)); /* to another task, too: neither begins passthrough */
        ck_assert_int_ne(enter_as(i, k, true), IO_PASSTHROUGH);
        free_inode(i);
        free_inode(fresh);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mode");
    tcase_add_test(t, a_promised_open_of_any_kind_finds_a_mode);
    tcase_add_test(t, a_promised_open_alone_is_as_without_the_promise);
    tcase_add_test(t, what_is_carried_and_appends_go_past_the_page_cache);
    tcase_add_test(t, whose_place_the_kernel_counts_by_the_size_is_known);
    tcase_add_test(t, no_pair_mixes_kernel_io_with_others);
    tcase_add_test(t, what_is_open_beside_keeps_the_backing_file);
    tcase_add_test(t, an_open_that_follows_all_closes_depends_on_none_of_them);
    tcase_add_test(t, no_cached_open_follows_a_writer_past_the_page_cache);
    return run_case("mode", t);
}
