/* test_pfs_tree.c - the objects of the tree: one for each name, other ones for names used again, and
 * the descriptors that they keep. */
#include "pfs_names_env.h"

#include <pthread.h>

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

START_TEST(one_object_per_name)
{
    struct pfs_node *a = pfs_child(pfs_root(), "a"), *b = pfs_child(a, "b"),
                    *again = pfs_child(pfs_root(), "a");
    ck_assert_ptr_eq(a, again);
    char *path = pfs_path(b), *root = pfs_path(pfs_root());
    ck_assert_str_eq(path, "a/b");
    ck_assert_str_eq(root, "");
    free(path);
    free(root);
    pfs_unref(again);
    pfs_unref(a); /* b holds it */
    path = pfs_path(b);
    ck_assert_str_eq(path, "a/b");
    free(path);
    pfs_unref(b);
}
END_TEST

START_TEST(a_name_used_again_is_another_object)
{
    struct pfs_node *root = pfs_root();
    put("a", "one");
    put("b", "another");
    struct pfs_node *old = look(root, "a");
    ck_assert_int_eq(rename(at("b"), at("a")), 0); /* another node did it */
    ck_assert_int_eq(pfs_stat(old, &stx), -ESTALE);
    struct pfs_node *new = look(root, "a");
    ck_assert_ptr_ne(old, new);
    ck_assert_int_eq(pfs_stat(new, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 7);
    ck_assert_int_eq(pfs_stat(old, &stx), -ESTALE);
    ck_assert_int_eq(pfs_chmod(old, 0777, NULL), -ESTALE); /* not the new one */
    ck_assert_int_eq(pfs_stat(new, &stx), 0);
    ck_assert_uint_ne(stx.stx_mode & 07777, 0777);
    pfs_unref(old);
    pfs_unref(new);
}
END_TEST

START_TEST(a_directory_replaced_behind_our_back)
{
    struct pfs_node *root = pfs_root();
    mkdir(at("d"), 0755);
    put("d/f", "old");
    struct pfs_node *d = look(root, "d"), *f = look(d, "f");
    ck_assert_int_eq(rename(at("d"), at("e")), 0);
    mkdir(at("d"), 0755);
    put("d/f", "newer");
    /* d's descriptor is kept: it still is the directory that the kernel means */
    ck_assert_int_eq(pfs_lookup(d, "f", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 3);
    struct pfs_node *d2 = look(root, "d"), *f2 = look(d2, "f");
    ck_assert_ptr_ne(d, d2);
    ck_assert_ptr_ne(f, f2);
    ck_assert_int_eq(pfs_stat(f2, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 5);
    /* who works in the old one goes on there; without its descriptor it is nowhere */
    ck_assert_int_eq(pfs_lookup(d, "f", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 3);
    pfs_gone(d);
    ck_assert_int_eq(pfs_lookup(d, "f", &stx), -ESTALE);
    pfs_unref(f);
    pfs_unref(d);
    pfs_unref(f2);
    pfs_unref(d2);
}
END_TEST

START_TEST(a_removed_directory_is_stale)
{
    mkdir(at("d"), 0755);
    struct pfs_node *d = look(pfs_root(), "d");
    ck_assert_int_eq(pfs_lookup(d, "x", &stx), -ENOENT); /* keeps d's descriptor */
    ck_assert(pfs_has_fd(d));
    rmdir(at("d"));
    ck_assert_int_eq(pfs_stat(d, &stx), -ESTALE);
    pfs_unref(d);
}
END_TEST

/* 60 levels of 255 bytes: four times PATH_MAX. */
START_TEST(very_deep_trees)
{
    char name[NAME_BYTES];
    memset(name, 'n', 255);
    name[255] = 0;
    struct pfs_node *n = pfs_ref(pfs_root());
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(pfs_mkdir(n, name, 0755, NULL, &stx), 0);
        struct pfs_node *next = pfs_child_as(n, name, fid_of(&stx), NULL);
        pfs_unref(n);
        n = next;
    }
    struct pfs_made made;
    ck_assert_int_eq(pfs_create(n, "f", O_RDWR, 0644, NULL, &made), 0);
    ck_assert_int_eq(pwrite(made.fd, "deep", 4, 0), 4);
    close(made.fd);
    struct fid fid = fid_of(&made.stx);
    struct pfs_node *f = pfs_child_as(n, "f", fid, NULL);
    char *path = pfs_path(f);
    ck_assert_uint_eq(strlen(path), 60 * 256 + 1);
    char dir_was[sizeof(dir)];
    strcpy(dir_was, dir);
    pfs_unref(f);
    pfs_unref(n);
    /* nothing is cached any more: opened by path in pieces */
    int fd;
    ck_assert_int_eq(pfs_open_path(fid, path, O_RDONLY, &fd, &stx), 0);
    char back[4];
    ck_assert_int_eq(pread(fd, back, 4, 0), 4);
    ck_assert_mem_eq(back, "deep", 4);
    close(fd);
    /* and by nodes that have no descriptors but the root's */
    n = pfs_ref(pfs_root());
    for (int i = 0; i < 60; i++) {
        struct pfs_node *next = pfs_child(n, name);
        pfs_unref(n);
        n = next;
    }
    f = pfs_child_as(n, "f", fid, NULL);
    ck_assert_int_eq(pfs_stat(f, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 4);
    free(path);
    /* nftw can not remove it */
    int held;
    ck_assert_int_eq(pfs_unlink(n, "f", NULL, false, NULL, &stx, &held), 0);
    pfs_unlink_done(held);
    pfs_unref(f);
    for (int i = 0; i < 60; i++) {
        char last[NAME_BYTES];
        struct pfs_node *parent = pfs_parent_of(n, last);
        ck_assert_int_eq(pfs_rmdir(parent, last, NULL), 0);
        pfs_gone(n);
        pfs_unref(n);
        n = parent;
    }
    pfs_unref(n);
}
END_TEST

START_TEST(descriptors_are_bounded)
{
    pfs_close();
    rmdir(dir);
    open_dir(8);
    unsigned before = open_fds();
    struct pfs_node *n[50];
    char name[16];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        ck_assert_int_eq(pfs_mkdir(pfs_root(), name, 0755, NULL, &stx), 0);
        n[i] = pfs_child_as(pfs_root(), name, fid_of(&stx), NULL);
        ck_assert_int_eq(pfs_lookup(n[i], "x", &stx), -ENOENT);
    }
    ck_assert_uint_le(open_fds(), before + 8);
    ck_assert_uint_ge(open_fds(), before + 8); /* and they are kept */
    ck_assert(pfs_has_fd(n[49]));
    ck_assert(!pfs_has_fd(n[0]));
    for (int i = 0; i < 50; i++)
        pfs_unref(n[i]);
    ck_assert_uint_eq(open_fds(), before);
}
END_TEST

/* Looking up, moving and forgetting at the same time, with far fewer descriptors than directories.
 */
static void *walk_and_move(void *arg)
{
    uint32_t x = (uint32_t)(uintptr_t)arg;
    struct statx s;
    for (int i = 0; i < 1500; i++) {
        char top[8], sub[8];
        x = x * 1664525 + 1013904223;
        snprintf(top, sizeof(top), "d%u", (x >> 10) % 6);
        snprintf(sub, sizeof(sub), "s%u", (x >> 20) % 6);
        struct pfs_node *d = pfs_child(pfs_root(), top), *n = NULL;
        if (pfs_lookup(d, sub, &s) == 0) {
            n = pfs_child_as(d, sub, fid_of(&s), NULL);
            pfs_lookup(n, "none", &s);
        }
        if (n && i % 5 == 0) {
            char to[8];
            snprintf(to, sizeof(to), "d%u", (x >> 15) % 6);
            struct pfs_node *e = pfs_child(pfs_root(), to);
            if (pfs_rename(d, sub, e, sub, RENAME_NOREPLACE, NULL) == 0)
                pfs_moved(n, e, sub);
            pfs_unref(e);
        }
        if (n) {
            char *path = pfs_path(n);
            int err = pfs_stat(n, &s);
            ck_assert_msg(err == 0 || err == -ESTALE || err == -ENOENT, "%s: %s", path,
                          strerror(-err));
            free(path);
            pfs_unref(n);
        }
        pfs_unref(d);
    }
    return NULL;
}

START_TEST(threads_that_walk_and_move)
{
    pfs_close();
    rmdir(dir);
    open_dir(3);
    unsigned before = open_fds();
    for (int i = 0; i < 36; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%d", i / 6);
        mkdir(at(name), 0755);
        snprintf(name, sizeof(name), "d%d/s%d", i / 6, i % 6);
        if (i % 2)
            mkdir(at(name), 0755);
    }
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, walk_and_move, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(open_fds(), before); /* all objects are gone */
    unsigned there = 0;
    for (int i = 0; i < 36; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%d/s%d", i / 6, i % 6);
        there += access(at(name), F_OK) == 0;
    }
    ck_assert_uint_eq(there, 18); /* moved about, and none lost over another */
}
END_TEST

static uint64_t seen(struct pfs_node *dir, const char *name)
{
    uint64_t ms;
    pfs_child_tag(dir, name, &ms);
    return ms;
}

/* When a name was seen goes with the name as it leads to a file: not on to another file of that name. */
START_TEST(when_a_name_was_seen_goes_with_it)
{
    struct pfs_node *root = pfs_root(), *other;
    uint64_t ms;
    put("a", "one");
    put("b", "another");
    ck_assert_uint_eq(pfs_child_tag(root, "a", &ms), 0);
    struct pfs_node *a = look(root, "a");
    pfs_tag_set(a, 7);
    ck_assert_uint_eq(pfs_child_tag(root, "a", &ms), 7);
    ck_assert_uint_eq(ms, 0);
    pfs_child_seen(root, "a", 8, 1000); /* was found to be another file */
    pfs_child_seen(root, "none", 7, 1000);
    ck_assert_uint_eq(seen(root, "a"), 0);
    pfs_child_seen(root, "a", 7, 1000);
    pfs_child_seen(root, "a", 7, 900); /* came late */
    ck_assert_uint_eq(seen(root, "a"), 1000);

    pfs_child_absent(root, "a");
    ck_assert_uint_eq(seen(root, "a"), 0);
    pfs_child_seen(root, "a", 7, 1001); /* began before that look */
    ck_assert_uint_eq(seen(root, "a"), 0);
    uint64_t later = boot_ms() + 1;
    pfs_child_seen(root, "a", 7, later);
    ck_assert_uint_eq(seen(root, "a"), later);

    pfs_child_told(root, "a");
    ck_assert_uint_eq(seen(root, "a"), 0);
    pfs_child_seen(root, "a", 7, ++later);
    ck_assert_uint_eq(seen(root, "a"), later);

    pfs_moved(a, root, "c");
    ck_assert_uint_eq(seen(root, "a"), 0);
    ck_assert_uint_eq(seen(root, "c"), later);
    pfs_child_seen(root, "a", 7, later + 1); /* began before the rename */
    ck_assert_uint_eq(seen(root, "c"), later);

    ck_assert_int_eq(pfs_lookup(root, "b", &stx), 0);
    struct pfs_node *b = pfs_child_as(root, "c", fid_of(&stx), &other); /* is there now */
    ck_assert_ptr_eq(other, a);
    ck_assert_uint_eq(pfs_child_tag(root, "c", &ms), 0);
    ck_assert_uint_eq(ms, 0);
    pfs_unref(other);
    pfs_unref(b);
    pfs_unref(a);
}
END_TEST

/* Another node has moved b out of a, which is not known here, and a into b is a rename like others. */
START_TEST(a_directory_never_gets_below_itself)
{
    struct pfs_node *root = pfs_root(), *a = pfs_child(root, "a"), *b = pfs_child(a, "b"), *c;
    pfs_moved(a, b, "a");
    ck_assert_ptr_null(pfs_parent(a)); /* it has no name until it is found again */
    c = pfs_child(b, "c");
    char *path = pfs_path(c);
    ck_assert_str_eq(path, "a/b/c");
    free(path);
    pfs_moved(b, b, "b");
    ck_assert_ptr_null(pfs_parent(b));
    pfs_unref(c);
    pfs_unref(b);
    pfs_unref(a);
}
END_TEST

START_TEST(what_is_no_directory_is_refused)
{
    char err[256] = "";
    pfs_close();
    put("f", "");
    ck_assert_int_eq(pfs_open(at("f"), HIDDEN, 8, err, sizeof(err)), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err, at("f")));
    ck_assert_int_eq(pfs_open(at("none"), HIDDEN, 8, err, sizeof(err)), -ENOENT);
    ck_assert_int_eq(pfs_open(dir, HIDDEN, 8, err, sizeof(err)), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pfs_tree");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_object_per_name);
    tcase_add_test(t, a_name_used_again_is_another_object);
    tcase_add_test(t, a_directory_replaced_behind_our_back);
    tcase_add_test(t, a_removed_directory_is_stale);
    tcase_add_test(t, very_deep_trees);
    tcase_add_test(t, descriptors_are_bounded);
    tcase_add_test(t, threads_that_walk_and_move);
    tcase_add_test(t, when_a_name_was_seen_goes_with_it);
    tcase_add_test(t, what_is_no_directory_is_refused);
    tcase_add_test(t, a_directory_never_gets_below_itself);
    return run_case("pfs_tree", t);
}
