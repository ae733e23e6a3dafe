/* The table of node ids: one inode per file whatever its names, exact counts, node ids that never
 * mean another file. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/inode.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"

#include "suite.h"

static char dir[] = "/tmp/eddy-test-inode-XXXXXX";

/* What the PFS would say of file number `ino`. */
static struct statx stat_of(uint64_t ino, mode_t mode)
{
    return (struct statx){.stx_ino = ino, .stx_mode = (uint16_t)mode, .stx_nlink = 1};
}

static struct inode *found(struct pfs_node *parent, const char *name, uint64_t ino, mode_t mode)
{
    struct statx stx = stat_of(ino, mode);
    return inode_found(pfs_child(parent, name), fid_of(&stx), mode);
}

/* Looked up, and not held: as after the answer to the kernel. */
static uint64_t looked_up(const char *name, uint64_t ino, mode_t mode)
{
    struct inode *i = found(pfs_root(), name, ino, mode);
    uint64_t id = i->nodeid;
    inode_put(i);
    return id;
}

static struct fid fid_of_ino(uint64_t ino)
{
    struct statx stx = stat_of(ino, S_IFREG);
    return fid_of(&stx);
}

static bool is_known(uint64_t nodeid)
{
    struct inode *i = inode_get(nodeid);
    inode_put(i);
    return i;
}

static unsigned count_of(struct fid fid)
{
    struct inode **all = inode_all_of(fid);
    unsigned n = 0;
    for (; all[n]; n++)
        inode_put(all[n]);
    free(all);
    return n;
}

static void start(void)
{
    char err[256];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(pfs_open(dir, ".hidden", 16, err, sizeof(err)), 0);
    struct statx stx = stat_of(1, S_IFDIR | 0755);
    inode_start(pfs_root(), &stx);
}

static void stop(void)
{
    inode_stop();
    pfs_close();
    rmdir(dir);
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
}

START_TEST(one_file_has_one_node_id_under_all_its_names)
{
    uint64_t a = looked_up("a", 10, S_IFREG), again = looked_up("a", 10, S_IFREG),
             b = looked_up("b", 10, S_IFREG);
    ck_assert_uint_eq(a, again);
    ck_assert_uint_eq(a, b);
    ck_assert_uint_ne(a, looked_up("c", 11, S_IFREG));
    ck_assert_uint_gt(a, 1);
}
END_TEST

START_TEST(forget_is_exact)
{
    uint64_t a = looked_up("a", 10, S_IFREG);
    looked_up("a", 10, S_IFREG);
    looked_up("a", 10, S_IFREG);
    inode_forget(a, 2);
    ck_assert(is_known(a));
    inode_forget(a, 1);
    ck_assert(!is_known(a));
    ck_assert_ptr_null(inode_known(fid_of_ino(10)));
}
END_TEST

START_TEST(a_held_inode_outlives_forget)
{
    struct inode *i = found(pfs_root(), "a", 10, S_IFREG);
    uint64_t id = i->nodeid;
    inode_forget(id, 1);
    ck_assert(is_known(id));
    ck_assert_uint_eq(i->nodeid, id);
    inode_put(i);
    ck_assert(!is_known(id));
}
END_TEST

START_TEST(a_forgotten_node_id_never_means_another_file)
{
    uint64_t ids[100];
    for (unsigned n = 0; n < 100; n++) {
        ids[n] = looked_up("a", 10, S_IFREG); /* the same file: the same shard and slot */
        for (unsigned k = 0; k < n; k++)
            ck_assert(ids[k] != ids[n] && !is_known(ids[k]));
        inode_forget(ids[n], 1);
    }
    ck_assert(!is_known(0));
    ck_assert(!is_known(UINT64_MAX));
}
END_TEST

START_TEST(a_removed_file_is_not_found_again_but_still_served)
{
    uint64_t old = looked_up("a", 10, S_IFREG);
    struct inode *i = inode_get(old);
    inode_gone(i);
    ck_assert(i->gone);
    ck_assert(!inode_look_again(i));
    ck_assert_ptr_null(inode_known(fid_of_ino(10)));
    uint64_t new = looked_up("a", 10, S_IFREG); /* the number was used again */
    ck_assert_uint_ne(old, new);
    ck_assert(is_known(old));
    inode_put(i);
    inode_forget(old, 1);
    ck_assert(!is_known(old));
    ck_assert(is_known(new));
    i = inode_known(fid_of_ino(10));
    ck_assert_uint_eq(i->nodeid, new);
    inode_put(i);
}
END_TEST

START_TEST(a_retired_one_leads_to_what_has_taken_its_place)
{
    uint64_t old = looked_up("a", 10, S_IFREG);
    struct inode *i = inode_get(old);
    ck_assert_ptr_null(inode_beside_retired(i));
    inode_retire(i);
    ck_assert(i->retired && !i->gone && !inode_look_again(i));
    ck_assert_ptr_null(inode_beside_retired(i));
    uint64_t next = looked_up("a", 10, S_IFREG), other = looked_up("b", 11, S_IFREG);
    ck_assert(next != old && other != next);
    struct inode *beside = inode_beside_retired(i);
    ck_assert_uint_eq(beside->nodeid, next);
    ck_assert_ptr_null(inode_beside_retired(beside));
    inode_gone(beside); /* the kernel goes on with what it has open */
    inode_put(beside);
    beside = inode_beside_retired(i);
    ck_assert_uint_eq(beside->nodeid, next);
    inode_retire(beside);
    inode_put(beside);
    ck_assert_ptr_null(inode_beside_retired(i));
    inode_put(i);
    inode_forget(old, 1);
    inode_forget(next, 1);
    ck_assert(!is_known(old) && !is_known(next));
}
END_TEST

/* What the kernel believes of them ends with the belief about the file. */
START_TEST(all_of_a_file_are_found_while_they_are_in_use)
{
    uint64_t gone = looked_up("a", 10, S_IFREG);
    struct inode *i = inode_get(gone);
    inode_gone(i);
    inode_put(i);
    uint64_t retired = looked_up("b", 10, S_IFREG);
    i = inode_get(retired);
    inode_retire(i);
    inode_put(i);
    uint64_t now = looked_up("b", 10, S_IFREG);
    looked_up("c", 11, S_IFREG);
    ck_assert_uint_eq(count_of(fid_of_ino(10)), 3);
    inode_forget(gone, 1);
    inode_forget(now, 1);
    ck_assert_uint_eq(count_of(fid_of_ino(10)), 1);
    inode_forget(retired, 1);
    ck_assert_uint_eq(count_of(fid_of_ino(10)), 0);
    ck_assert_uint_eq(count_of(fid_of_ino(11)), 1);
}
END_TEST

START_TEST(another_type_is_another_file)
{
    uint64_t file = looked_up("a", 10, S_IFREG), directory = looked_up("a", 10, S_IFDIR);
    ck_assert_uint_ne(file, directory);
    struct inode *i = inode_get(file);
    ck_assert(i->gone);
    inode_put(i);
}
END_TEST

START_TEST(a_lost_name_is_replaced_by_another)
{
    uint64_t id = looked_up("a", 10, S_IFREG);
    looked_up("b", 10, S_IFREG);
    struct inode *i = inode_get(id);
    struct pfs_node *a = pfs_child(pfs_root(), "a"), *b = pfs_child(pfs_root(), "b");
    ck_assert_ptr_eq(i->node, b);
    ck_assert(inode_lost_name(i, b));
    ck_assert_ptr_eq(i->node, a);
    ck_assert_ptr_null(inode_of_node(b));
    struct inode *by_name = inode_child(inode_get(1), "a");
    ck_assert_ptr_eq(by_name, i);
    inode_put(by_name);
    ck_assert(!inode_lost_name(i, a)); /* the last one */
    ck_assert_ptr_nonnull(i->node);    /* still safe to use */
    char *path = pfs_path(i->node);
    ck_assert_str_eq(path, "a");
    free(path);
    pfs_unref(a);
    pfs_unref(b);
    inode_put(i);
}
END_TEST

START_TEST(a_name_belongs_to_the_file_found_last)
{
    uint64_t old = looked_up("a", 10, S_IFREG), new = looked_up("a", 11, S_IFREG);
    struct inode *root = inode_get(1), *i = inode_child(root, "a");
    ck_assert_uint_eq(i->nodeid, new);
    inode_put(i);
    ck_assert_ptr_null(inode_child(root, "b"));
    ck_assert(is_known(old)); /* the kernel still holds it */
    inode_forget(new, 1);
    ck_assert_ptr_null(inode_child(root, "a"));
    inode_put(root);
}
END_TEST

START_TEST(children_follow_a_renamed_directory)
{
    struct inode *d = found(pfs_root(), "d", 20, S_IFDIR), *f = found(d->node, "f", 21, S_IFREG);
    pfs_moved(d->node, pfs_root(), "e");
    char *path = pfs_path(f->node);
    ck_assert_str_eq(path, "e/f");
    free(path);
    struct inode *root = inode_get(1), *e = inode_child(root, "e"), *ef = inode_child(e, "f");
    ck_assert_ptr_eq(e, d);
    ck_assert_ptr_eq(ef, f);
    ck_assert_ptr_null(inode_child(root, "d"));
    inode_put(root);
    inode_put(e);
    inode_put(ef);
    inode_put(d);
    inode_put(f);
}
END_TEST

START_TEST(names_of_one_file_are_bounded_while_nobody_uses_it)
{
    uint64_t id = 0;
    char name[16];
    for (int n = 0; n < 1000; n++) {
        snprintf(name, sizeof(name), "link%d", n);
        id = looked_up(name, 10, S_IFREG);
    }
    struct inode *root = inode_get(1);
    unsigned known = 0;
    for (int n = 0; n < 1000; n++) {
        snprintf(name, sizeof(name), "link%d", n);
        struct inode *i = inode_child(root, name);
        known += i != NULL;
        inode_put(i);
    }
    ck_assert_uint_ge(known, 2);
    ck_assert_uint_le(known, 20);
    inode_put(root);
    inode_forget(id, 1000);
    ck_assert(!is_known(id));
}
END_TEST

START_TEST(a_hundred_thousand_come_and_go)
{
    enum { N = 100000 };
    uint64_t *ids = calloc(N, sizeof(*ids));
    char name[16];
    for (int turn = 0; turn < 2; turn++) {
        for (int n = 0; n < N; n++) {
            snprintf(name, sizeof(name), "%d", n);
            uint64_t id = looked_up(name, 100 + (uint64_t)n, S_IFREG);
            ck_assert_uint_ne(id, ids[n]);
            ids[n] = id;
        }
        for (int n = 0; n < N; n++)
            ck_assert(is_known(ids[n]));
        for (int n = 0; n < N; n++)
            inode_forget(ids[n], 1);
        for (int n = 0; n < N; n++)
            ck_assert(!is_known(ids[n]));
    }
    free(ids);
}
END_TEST

START_TEST(the_root_stays)
{
    inode_forget(1, 1000);
    struct inode *root = inode_get(1);
    ck_assert_uint_eq(root->nodeid, 1);
    ck_assert_ptr_eq(root->node, pfs_root());
    inode_put(root);
}
END_TEST

/* What threads do at once: the same few files and names, found, held, removed, forgotten. */
static void *churn(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int n = 0; n < 20000; n++) {
        uint64_t ino = 10 + (unsigned)rand_r(&seed) % 4;
        char name[2] = {(char)('a' + rand_r(&seed) % 4), 0};
        struct inode *i = found(pfs_root(), name, ino, S_IFREG);
        char *path = pfs_path(i->node); /* a name is usable while the inode is held */
        if (strlen(path) != 1)
            abort();
        free(path);
        if (n % 7 == 0)
            inode_gone(i);
        if (n % 5 == 0)
            inode_lost_name(i, i->node);
        uint64_t id = i->nodeid;
        inode_put(i);
        inode_forget(id, 1);
    }
    return NULL;
}

START_TEST(threads_leave_nothing_behind)
{
    pthread_t threads[4];
    for (uintptr_t n = 0; n < 4; n++)
        ck_assert_int_eq(pthread_create(&threads[n], NULL, churn, (void *)(n + 1)), 0);
    for (int n = 0; n < 4; n++)
        pthread_join(threads[n], NULL);
    for (uint64_t ino = 10; ino < 14; ino++)
        ck_assert_ptr_null(inode_known(fid_of_ino(ino)));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("table");
    tcase_add_checked_fixture(t, start, stop);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_file_has_one_node_id_under_all_its_names);
    tcase_add_test(t, forget_is_exact);
    tcase_add_test(t, a_held_inode_outlives_forget);
    tcase_add_test(t, a_forgotten_node_id_never_means_another_file);
    tcase_add_test(t, a_removed_file_is_not_found_again_but_still_served);
    tcase_add_test(t, a_retired_one_leads_to_what_has_taken_its_place);
    tcase_add_test(t, another_type_is_another_file);
    tcase_add_test(t, all_of_a_file_are_found_while_they_are_in_use);
    tcase_add_test(t, a_lost_name_is_replaced_by_another);
    tcase_add_test(t, a_name_belongs_to_the_file_found_last);
    tcase_add_test(t, children_follow_a_renamed_directory);
    tcase_add_test(t, names_of_one_file_are_bounded_while_nobody_uses_it);
    tcase_add_test(t, a_hundred_thousand_come_and_go);
    tcase_add_test(t, the_root_stays);
    tcase_add_test(t, threads_leave_nothing_behind);
    return run_case("inode", t);
}
