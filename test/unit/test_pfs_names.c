/* test_pfs_names.c - operations on names and attributes on the PFS, tried on a plain directory. */
#include "pfs_names_env.h"
#include "refuse.h"

#include "placement/pfs/pfs_dir.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <sys/xattr.h>

START_TEST(lookup_and_stat)
{
    put("f", "hello");
    ck_assert_int_eq(pfs_lookup(pfs_root(), "f", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 5);
    ck_assert_int_eq(pfs_lookup(pfs_root(), "none", &stx), -ENOENT);
    ck_assert_int_eq(pfs_lookup(pfs_root(), "", &stx), -EINVAL);
    ck_assert_int_eq(pfs_lookup(pfs_root(), "..", &stx), -EINVAL);
    ck_assert_int_eq(pfs_lookup(pfs_root(), "a/b", &stx), -EINVAL);
    char lang[300];
    memset(lang, 'x', 299);
    lang[256] = 0;
    ck_assert_int_eq(pfs_lookup(pfs_root(), lang, &stx), -ENAMETOOLONG);
    struct pfs_node *n = look(pfs_root(), "f");
    put("f", "longer than that");
    ck_assert_int_eq(pfs_stat(n, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 16);
    ck_assert_int_eq(pfs_stat(pfs_root(), &stx), 0);
    ck_assert(S_ISDIR(stx.stx_mode));
    pfs_unref(n);
}
END_TEST

/* Also one of several names. */
static int unlink_it(struct pfs_node *parent, const char *name, const struct cred *c)
{
    int held, err = pfs_unlink(parent, name, NULL, false, c, &stx, &held);
    struct fid fid = fid_of(&stx);
    if (err == -EMLINK)
        err = pfs_unlink(parent, name, &fid, true, c, &stx, &held);
    pfs_unlink_done(held);
    return err;
}

START_TEST(the_hidden_name_is_nowhere)
{
    mkdir(at(HIDDEN), 0700);
    mkdir(at("d"), 0755);
    mkdir(at("d/" HIDDEN), 0755); /* only the root's is hidden */
    struct pfs_made made;
    struct pfs_node *root = pfs_root(), *d = look(root, "d");
    put("f", "");
    struct pfs_node *f = look(root, "f");
    ck_assert_int_eq(pfs_lookup(root, HIDDEN, &stx), -ENOENT);
    ck_assert_int_eq(pfs_mkdir(root, HIDDEN, 0755, NULL, &stx), -EPERM);
    ck_assert_int_eq(pfs_mknod(root, HIDDEN, S_IFREG | 0644, 0, NULL, &stx), -EPERM);
    ck_assert_int_eq(pfs_create(root, HIDDEN, O_RDWR, 0644, NULL, &made), -EPERM);
    ck_assert_int_eq(pfs_symlink("x", root, HIDDEN, NULL, &stx), -EPERM);
    ck_assert_int_eq(pfs_link(f, root, HIDDEN, NULL, &stx), -EPERM);
    ck_assert_int_eq(unlink_it(root, HIDDEN, NULL), -ENOENT);
    ck_assert_int_eq(pfs_rmdir(root, HIDDEN, NULL), -ENOENT);
    ck_assert_int_eq(pfs_rename(root, HIDDEN, root, "x", 0, NULL), -ENOENT);
    ck_assert_int_eq(pfs_rename(root, "d", root, HIDDEN, 0, NULL), -EPERM);
    ck_assert_int_eq(pfs_rename(root, "d", root, HIDDEN, RENAME_EXCHANGE, NULL), -ENOENT);
    ck_assert_int_eq(pfs_lookup(d, HIDDEN, &stx), 0);
    ck_assert(!pfs_path_ok(HIDDEN "/s/secret"));
    ck_assert(!pfs_path_ok(HIDDEN));
    ck_assert(pfs_path_ok(HIDDEN "x"));
    ck_assert(pfs_path_ok("d/" HIDDEN));
    struct pfs_dir *dp;
    struct pfs_dirent e;
    int64_t off = 0;
    unsigned seen = 0;
    ck_assert_int_eq(pfs_opendir(root, false, &dp), 0);
    while (pfs_readdir(dp, off, &e) == 0) {
        ck_assert_str_ne(e.name, HIDDEN);
        off = e.next;
        seen++;
    }
    ck_assert_uint_eq(seen, 4); /* . .. d f */
    ck_assert_int_eq(pfs_stat_at(dp, HIDDEN, &stx), -ENOENT);
    pfs_closedir(dp);
    pfs_unref(d);
    pfs_unref(f);
}
END_TEST

START_TEST(paths_of_peers_stay_below_the_root)
{
    ck_assert(pfs_path_ok("a"));
    ck_assert(pfs_path_ok("a/b.c/..d/..."));
    ck_assert(!pfs_path_ok(""));
    ck_assert(!pfs_path_ok("/etc/passwd"));
    ck_assert(!pfs_path_ok("a//b"));
    ck_assert(!pfs_path_ok("a/"));
    ck_assert(!pfs_path_ok("a/../b"));
    ck_assert(!pfs_path_ok(".."));
    ck_assert(!pfs_path_ok("./a"));
    ck_assert_int_eq(pfs_open_beneath(pfs_root_fd(), "../..", O_PATH, 0), -EXDEV);
    ck_assert_int_eq(symlink("/etc", at("out")), 0);
    ck_assert_int_eq(pfs_open_beneath(pfs_root_fd(), "out/passwd", O_RDONLY, 0), -ELOOP);
}
END_TEST

START_TEST(making_things)
{
    struct pfs_made made;
    struct pfs_node *root = pfs_root();
    ck_assert_int_eq(pfs_mkdir(root, "d", 0750, NULL, &stx), 0);
    ck_assert(S_ISDIR(stx.stx_mode));
    ck_assert_uint_eq(stx.stx_mode & 07777, 0750);
    ck_assert_int_eq(pfs_mkdir(root, "d", 0750, NULL, &stx), -EEXIST);
    struct pfs_node *d = look(root, "d");
    ck_assert_int_eq(pfs_mknod(d, "p", S_IFIFO | 0600, 0, NULL, &stx), 0);
    ck_assert(S_ISFIFO(stx.stx_mode));
    ck_assert_int_eq(pfs_symlink("where/to", d, "l", NULL, &stx), 0);
    ck_assert(S_ISLNK(stx.stx_mode));
    struct pfs_node *l = look(d, "l");
    char *text;
    ck_assert_int_eq(pfs_readlink(l, &text), 0);
    ck_assert_str_eq(text, "where/to");
    free(text);
    ck_assert_int_eq(pfs_readlink(d, &text), -EINVAL);
    /* a file that its owner may not write is still made writable */
    ck_assert_int_eq(pfs_create(d, "f", O_WRONLY | O_TRUNC | O_APPEND, 0444, NULL, &made), 0);
    ck_assert(made.created);
    ck_assert_uint_eq(made.stx.stx_mode & 07777, 0444);
    ck_assert_int_eq(pwrite(made.fd, "abc", 3, 0), 3);
    ck_assert_int_eq(pwrite(made.fd, "x", 1, 0), 1); /* no O_APPEND */
    close(made.fd);
    char back[4] = "";
    FILE *f = fopen(at("d/f"), "r");
    ck_assert_ptr_nonnull(fgets(back, 4, f));
    fclose(f);
    ck_assert_str_eq(back, "xbc");
    pfs_unref(l);
    pfs_unref(d);
}
END_TEST

START_TEST(creating_what_is_there)
{
    struct pfs_made made = {.created = true};
    struct pfs_node *root = pfs_root();
    put("f", "keep");
    mkdir(at("d"), 0755);
    mkfifo(at("p"), 0666);
    ck_assert_int_eq(symlink("f", at("l")), 0);
    ck_assert_int_eq(pfs_create(root, "f", O_RDWR | O_EXCL, 0644, NULL, &made), -EEXIST);
    ck_assert_int_eq(pfs_create(root, "f", O_RDWR | O_TRUNC, 0644, NULL, &made), 0);
    ck_assert(!made.created);
    ck_assert_uint_eq(made.stx.stx_size, 4); /* truncating is the data's business */
    close(made.fd);
    ck_assert_int_eq(pfs_create(root, "d", O_RDWR, 0644, NULL, &made), -ESTALE);
    ck_assert_int_eq(pfs_create(root, "p", O_RDWR, 0644, NULL, &made), -ESTALE);
    ck_assert_int_eq(pfs_create(root, "l", O_RDWR, 0644, NULL, &made), -ESTALE);
}
END_TEST

/* So that who unlinks is not kept waiting for its blocks, and a new file is not taken for it. */
START_TEST(an_unlinked_file_is_there_until_its_unlink_is_done)
{
    struct pfs_node *root = pfs_root();
    struct statx gone;
    int held, made;
    put("a", "x");
    put("two", "x");
    ck_assert_int_eq(link(at("two"), at("names")), 0);
    mkfifo(at("fifo"), 0600);
    ck_assert_int_eq(symlink("a", at("link")), 0);
    ck_assert_int_eq(pfs_unlink(root, "a", NULL, false, NULL, &gone, &held), 0);
    if (!pfs_is_local(pfs_root_fd())) {
        ck_assert_int_eq(held, -1);
        NOT_CHECKED("only files of a local file system are held");
    }
    ck_assert_int_ge(held, 0);
    ck_assert_int_eq(pfs_statx_fd(held, &stx), 0);
    ck_assert_uint_eq(stx.stx_nlink, 0);
    ck_assert_uint_eq(stx.stx_ino, gone.stx_ino);
    ck_assert_uint_eq(stx.stx_size, 1);
    for (made = 0; made < 20; made++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", made);
        put(name, "y");
        ck_assert_int_eq(pfs_lookup(root, name, &stx), 0);
        ck_assert_uint_ne(stx.stx_ino, gone.stx_ino);
    }
    pfs_unlink_done(held);
    ck_assert_int_eq(fcntl(held, F_GETFD), -1);

    static const char *const others[] = {"two", "fifo", "link"}; /* another name is left; no data */
    for (size_t n = 0; n < 3; n++) {
        ck_assert_int_eq(pfs_lookup(root, others[n], &stx), 0);
        struct fid fid = fid_of(&stx);
        ck_assert_int_eq(pfs_unlink(root, others[n], &fid, true, NULL, &gone, &held), 0);
        ck_assert_int_eq(held, -1);
    }
    ck_assert_int_eq(pfs_unlink(root, "nothing", NULL, false, NULL, &gone, &held), -ENOENT);
    ck_assert_int_eq(held, -1);
}
END_TEST

START_TEST(unlink_tells_the_last_name)
{
    struct pfs_node *root = pfs_root();
    put("a", "x");
    mkdir(at("d"), 0755);
    struct pfs_node *a = look(root, "a");
    struct fid fid;
    ck_assert(pfs_fid_known(a, &fid));
    ck_assert_int_eq(pfs_link(a, root, "b", NULL, &stx), 0);
    ck_assert_uint_eq(stx.stx_nlink, 2);
    ck_assert_int_eq(pfs_link(a, root, "b", NULL, &stx), -EEXIST);
    int held;
    struct fid other = {1, 2};
    ck_assert_int_eq(pfs_unlink(root, "a", NULL, false, NULL, &stx, &held), -EMLINK); /* it has another name */
    ck_assert(fid_eq(fid_of(&stx), fid));
    ck_assert_int_eq(pfs_unlink(root, "a", &other, true, NULL, &stx, &held), -EMLINK);
    ck_assert_int_eq(pfs_unlink(root, "a", &fid, true, NULL, &stx, &held), 0);
    ck_assert_int_eq(held, -1);
    ck_assert_uint_eq(stx.stx_nlink, 2);
    ck_assert(fid_eq(fid_of(&stx), fid));
    ck_assert_int_eq(unlink_it(root, "b", NULL), 0);
    ck_assert_uint_eq(stx.stx_nlink, 1);
    ck_assert_int_eq(unlink_it(root, "b", NULL), -ENOENT);
    ck_assert_int_eq(unlink_it(root, "d", NULL), -EISDIR);
    ck_assert_int_eq(pfs_rmdir(root, "d", NULL), 0);
    ck_assert_int_eq(pfs_stat(a, &stx), -ESTALE); /* known, and gone */
    pfs_unref(a);
}
END_TEST

START_TEST(links_to_links)
{
    ck_assert_int_eq(symlink("nowhere", at("l")), 0);
    struct pfs_node *l = look(pfs_root(), "l");
    ck_assert_int_eq(pfs_link(l, pfs_root(), "m", NULL, &stx), 0);
    ck_assert(S_ISLNK(stx.stx_mode));
    ck_assert_uint_eq(stx.stx_nlink, 2);
    pfs_unref(l);
}
END_TEST

START_TEST(renames)
{
    struct pfs_node *root = pfs_root();
    put("a", "aa");
    put("b", "b");
    mkdir(at("d"), 0755);
    struct pfs_node *d = look(root, "d"), *a = look(root, "a");
    ck_assert_int_eq(pfs_rename(root, "a", root, "b", RENAME_NOREPLACE, NULL), -EEXIST);
    ck_assert_int_eq(pfs_rename(root, "a", root, "b", RENAME_EXCHANGE, NULL), 0);
    ck_assert_int_eq(pfs_lookup(root, "b", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 2);
    ck_assert_int_eq(pfs_rename(root, "b", d, "c", 0, NULL), 0);
    pfs_moved(a, d, "c");
    ck_assert_int_eq(pfs_stat(a, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 2);
    char *path = pfs_path(a);
    ck_assert_str_eq(path, "d/c");
    free(path);
    ck_assert_int_eq(pfs_rename(root, "a", root, "x", RENAME_WHITEOUT, NULL), -EINVAL);
    ck_assert_int_eq(pfs_rename(root, "none", root, "x", 0, NULL), -ENOENT);
    /* a directory with known children: they move along, with descriptors kept or not */
    ck_assert_int_eq(pfs_rename(root, "d", root, "e", 0, NULL), 0);
    pfs_moved(d, root, "e");
    path = pfs_path(a);
    ck_assert_str_eq(path, "e/c");
    free(path);
    ck_assert_int_eq(pfs_stat(a, &stx), 0);
    pfs_unref(a);
    pfs_unref(d);
}
END_TEST

/* MooseFS, old NFS: flags are EINVAL. */
START_TEST(noreplace_where_the_pfs_does_not_know_it)
{
    if (!refuse(SYS_renameat2, 4, EINVAL))
        NOT_CHECKED("no seccomp here");
    struct pfs_node *root = pfs_root();
    put("a", "aa");
    put("b", "b");
    mkdir(at("d"), 0755);
    mkdir(at("e"), 0755);
    ck_assert_int_eq(symlink("nowhere", at("l")), 0);
    struct pfs_node *d = look(root, "d");
    ck_assert_int_eq(pfs_rename(root, "a", root, "b", RENAME_EXCHANGE, NULL), -EINVAL);
    ck_assert_int_eq(pfs_rename(root, "a", root, "b", RENAME_NOREPLACE, NULL), -EEXIST);
    ck_assert_int_eq(pfs_rename(root, "d", root, "e", RENAME_NOREPLACE, NULL), -EEXIST);
    ck_assert_int_eq(pfs_rename(root, "none", root, "x", RENAME_NOREPLACE, NULL), -ENOENT);
    ck_assert_int_eq(pfs_rename(root, "a", d, "c", RENAME_NOREPLACE, NULL), 0);
    ck_assert_int_eq(pfs_rename(root, "l", d, "l", RENAME_NOREPLACE, NULL), 0);
    ck_assert_int_eq(pfs_rename(root, "d", root, "f", RENAME_NOREPLACE, NULL), 0);
    ck_assert_int_eq(access(at("a"), F_OK), -1);
    ck_assert_int_eq(access(at("d"), F_OK), -1);
    pfs_moved(d, root, "f");
    ck_assert_int_eq(pfs_lookup(d, "c", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 2);
    ck_assert_uint_eq(stx.stx_nlink, 1);
    ck_assert_int_eq(pfs_lookup(d, "l", &stx), 0);
    ck_assert_int_eq(pfs_lookup(root, "b", &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 1);
    pfs_unref(d);
}
END_TEST

START_TEST(chmod_on_an_older_kernel)
{
    if (!refuse(452, -1, ENOSYS)) /* fchmodat2 */
        NOT_CHECKED("no seccomp here");
    put("f", "x");
    ck_assert_int_eq(symlink("f", at("l")), 0);
    struct pfs_node *f = look(pfs_root(), "f"), *l = look(pfs_root(), "l");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pfs_chmod(f, 0604, NULL), 0);
        ck_assert_int_eq(pfs_stat(f, &stx), 0);
        ck_assert_uint_eq(stx.stx_mode & 07777, 0604);
        ck_assert_int_eq(pfs_chmod(l, 0777, NULL), -EOPNOTSUPP);
    }
    ck_assert_int_eq(pfs_stat(f, &stx), 0);
    ck_assert_uint_eq(stx.stx_mode & 07777, 0604);
    pfs_unref(f);
    pfs_unref(l);
}
END_TEST

START_TEST(attributes)
{
    put("f", "x");
    ck_assert_int_eq(symlink("f", at("l")), 0);
    struct pfs_node *f = look(pfs_root(), "f"), *l = look(pfs_root(), "l");
    ck_assert_int_eq(pfs_chmod(f, 0604, NULL), 0);
    ck_assert_int_eq(pfs_stat(f, &stx), 0);
    ck_assert_uint_eq(stx.stx_mode & 07777, 0604);
    ck_assert_int_eq(pfs_chmod(l, 0604, NULL), -EOPNOTSUPP);
    struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, {1234567890, 123456789}};
    ck_assert_int_eq(pfs_utimens(l, ts, NULL), 0); /* the link itself */
    ck_assert_int_eq(pfs_stat(l, &stx), 0);
    ck_assert_int_eq(stx.stx_mtime.tv_sec, 1234567890);
    ck_assert_int_eq(stx.stx_mtime.tv_nsec, 123456789);
    ck_assert_int_eq(pfs_stat(f, &stx), 0);
    ck_assert_int_ne(stx.stx_mtime.tv_sec, 1234567890);
    if (geteuid() == 0) {
        ck_assert_int_eq(pfs_chown(l, 12, 34, NULL), 0);
        ck_assert_int_eq(pfs_stat(l, &stx), 0);
        ck_assert_uint_eq(stx.stx_uid, 12);
        ck_assert_uint_eq(stx.stx_gid, 34);
        ck_assert_int_eq(pfs_stat(f, &stx), 0);
        ck_assert_uint_eq(stx.stx_uid, 0);
    }
    struct statvfs v;
    ck_assert_int_eq(pfs_statfs(&v), 0);
    ck_assert_uint_gt(v.f_blocks, 0);
    ck_assert_int_eq(pfs_access(f, R_OK, NULL), 0);
    pfs_unref(f);
    pfs_unref(l);
}
END_TEST

START_TEST(extended_attributes)
{
    put("f", "x");
    struct pfs_node *f = look(pfs_root(), "f");
    char buf[64];
    size_t n;
    int err = pfs_setxattr(f, "user.eddy", "value", 5, XATTR_CREATE, NULL);
    if (err == -EOPNOTSUPP) {
        pfs_unref(f);
        NOT_CHECKED("this file system has no user.*");
    }
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(pfs_setxattr(f, "user.eddy", "value", 5, XATTR_CREATE, NULL), -EEXIST);
    ck_assert_int_eq(pfs_getxattr(f, "user.eddy", NULL, 0, &n), 0);
    ck_assert_uint_eq(n, 5);
    ck_assert_int_eq(pfs_getxattr(f, "user.eddy", buf, 2, &n), -ERANGE);
    ck_assert_int_eq(pfs_getxattr(f, "user.eddy", buf, sizeof(buf), &n), 0);
    ck_assert_mem_eq(buf, "value", 5);
    ck_assert_int_eq(pfs_listxattr(f, buf, sizeof(buf), &n), 0);
    ck_assert_str_eq(buf, "user.eddy");
    ck_assert_int_eq(pfs_removexattr(f, "user.eddy", NULL), 0);
    ck_assert_int_eq(pfs_getxattr(f, "user.eddy", buf, sizeof(buf), &n), -ENODATA);
    pfs_unref(f);
}
END_TEST

START_TEST(xattrs_of_a_link_are_its_own)
{
    if (geteuid() != 0)
        NOT_CHECKED("trusted.* is root's");
    put("f", "x");
    ck_assert_int_eq(symlink("f", at("l")), 0);
    struct pfs_node *l = look(pfs_root(), "l"), *f = look(pfs_root(), "f");
    char buf[16];
    size_t n;
    int err = pfs_setxattr(l, "trusted.eddy", "L", 1, 0, NULL);
    if (err == -EOPNOTSUPP || err == -EPERM) {
        pfs_unref(l);
        pfs_unref(f);
        NOT_CHECKED("no trusted.* can be set here");
    }
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(pfs_getxattr(l, "trusted.eddy", buf, sizeof(buf), &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(pfs_getxattr(f, "trusted.eddy", buf, sizeof(buf), &n), -ENODATA);
    ck_assert_int_eq(lgetxattr(at("l"), "trusted.eddy", buf, sizeof(buf)), 1);
    pfs_unref(l);
    pfs_unref(f);
}
END_TEST

/* Several users: what is made belongs to the caller, and the thread is itself again afterwards. */
START_TEST(callers_make_their_own)
{
    if (geteuid() != 0)
        NOT_CHECKED("needs root");
    gid_t groups[] = {7001};
    struct cred c = {4001, 4002, 1, groups};
    struct pfs_node *root = pfs_root();
    struct pfs_made made;
    ck_assert_int_eq(pfs_create(root, "f", O_RDWR, 0644, &c, &made), -EACCES); /* root's, 0755 */
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_int_eq(pfs_create(root, "f", O_RDWR, 04644, &c, &made), 0);
    close(made.fd);
    ck_assert_uint_eq(made.stx.stx_uid, 4001);
    ck_assert_uint_eq(made.stx.stx_gid, 4002);
    ck_assert_int_eq(pfs_mkdir(root, "d", 0755, &c, &stx), 0);
    ck_assert_uint_eq(stx.stx_uid, 4001);
    ck_assert_int_eq(chmod(dir, 01777), 0); /* sticky: root's file is not his to remove */
    put("rootfile", "x");
    ck_assert_int_eq(unlink_it(root, "rootfile", &c), -EPERM);
    ck_assert_int_eq(pfs_rename(root, "rootfile", root, "x", 0, &c), -EPERM);
    ck_assert_int_eq(unlink_it(root, "f", &c), 0);
    /* a supplementary group opens a directory */
    mkdir(at("g"), 0770);
    ck_assert_int_eq(chown(at("g"), 0, 7001), 0);
    struct pfs_node *g = look(root, "g");
    ck_assert_int_eq(pfs_mkdir(g, "sub", 0755, &c, &stx), 0);
    c.ngroups = 0;
    ck_assert_int_eq(pfs_mkdir(g, "sub2", 0755, &c, &stx), -EACCES);
    ck_assert_int_eq(pfs_mkdir(root, "mine", 0755, NULL, &stx), 0);
    ck_assert_uint_eq(stx.stx_uid, 0);
    pfs_unref(g);
}
END_TEST

START_TEST(reading_a_directory)
{
    char name[32];
    enum { FILES = 3000 };
    mkdir(at("d"), 0755);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "d/file-%04d", i);
        int fd = open(at(name), O_CREAT | O_WRONLY, 0644);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    struct pfs_node *d = look(pfs_root(), "d");
    struct pfs_dir *dp;
    ck_assert_int_eq(pfs_opendir(d, false, &dp), 0);
    static bool seen[FILES];
    memset(seen, 0, sizeof(seen));
    struct pfs_dirent e, again;
    int64_t off = 0, middle = 0;
    unsigned n = 0;
    int err;
    while ((err = pfs_readdir(dp, off, &e)) == 0) {
        int i;
        if (sscanf(e.name, "file-%d", &i) == 1) {
            ck_assert(!seen[i]);
            seen[i] = true;
            n++;
            ck_assert_int_eq(e.type, DT_REG);
            char first[64];
            strcpy(first, e.name);
            /* no room in the answer: the same entry is asked for again */
            ck_assert_int_eq(pfs_readdir(dp, off, &again), 0);
            ck_assert_str_eq(again.name, first);
        }
        if (n == FILES / 2)
            middle = e.next;
        off = again.next = e.next;
    }
    ck_assert_int_eq(err, -ENODATA);
    ck_assert_uint_eq(n, FILES);
    ck_assert_int_eq(pfs_readdir(dp, off, &e), -ENODATA);
    n = 0; /* from the middle, by cookie */
    for (off = middle; pfs_readdir(dp, off, &e) == 0; off = e.next)
        n++;
    ck_assert_uint_ge(n, FILES / 2 - 2);
    ck_assert_uint_le(n, FILES / 2 + 2);
    ck_assert_int_eq(pfs_readdir(dp, 0, &e), 0); /* rewound */
    ck_assert_int_eq(pfs_stat_at(dp, "file-0007", &stx), 0);
    ck_assert_int_eq(pfs_fsyncdir(dp), 0);
    pfs_closedir(dp);
    pfs_unref(d);
}
END_TEST

START_TEST(a_mount_below_is_shown_and_not_entered)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        NOT_CHECKED("no mounts can be made");
    char err[256];
    pfs_close(); /* its root belongs to the mount namespace before */
    ck_assert_int_eq(pfs_open(dir, HIDDEN, 8, err, sizeof(err)), 0);
    mkdir(at("m"), 0755);
    if (mount("none", at("m"), "tmpfs", 0, "mode=0711") != 0)
        NOT_CHECKED("no mounts can be made");
    mkdir(at("m/inside"), 0755);
    struct pfs_node *m = look(pfs_root(), "m");
    ck_assert_int_eq(pfs_stat(m, &stx), 0);
    ck_assert_uint_eq(stx.stx_mode & 07777, 0711); /* of what is mounted */
    ck_assert_int_eq(pfs_lookup(m, "inside", &stx), -EXDEV);
    struct pfs_dir *dp;
    ck_assert_int_eq(pfs_opendir(m, false, &dp), -EXDEV);
    ck_assert_int_eq(pfs_mkdir(m, "x", 0755, NULL, &stx), -EXDEV);
    ck_assert_int_eq(pfs_rmdir(pfs_root(), "m", NULL), -EBUSY);
    pfs_unref(m);
    umount2(at("m"), MNT_DETACH);
}
END_TEST

START_TEST(silence_is_measured)
{
    ck_assert_uint_eq(pfs_waiting_ms(), 0);
    uint64_t a = pfs_call_begin();
    usleep(60000);
    ck_assert_uint_ge(pfs_waiting_ms(), 50);
    ck_assert(pfs_silent(boot_ms(), 50));
    ck_assert(!pfs_silent(boot_ms(), 60000));
    uint64_t b = pfs_call_begin();
    pfs_call_end(b); /* an answer: the PFS is not silent, one call is slow */
    ck_assert_uint_lt(pfs_waiting_ms(), 50);
    ck_assert(!pfs_silent(boot_ms(), 50));
    pfs_call_end(a);
    ck_assert_uint_eq(pfs_waiting_ms(), 0);
    usleep(60000);
    ck_assert(!pfs_silent(boot_ms(), 50)); /* nothing waits */
    uint64_t many[300];
    for (int i = 0; i < 300; i++)
        many[i] = pfs_call_begin();
    for (int i = 0; i < 300; i++)
        pfs_call_end(many[i]);
    ck_assert_uint_eq(pfs_waiting_ms(), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pfs_names");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, lookup_and_stat);
    tcase_add_test(t, the_hidden_name_is_nowhere);
    tcase_add_test(t, paths_of_peers_stay_below_the_root);
    tcase_add_test(t, making_things);
    tcase_add_test(t, creating_what_is_there);
    tcase_add_test(t, an_unlinked_file_is_there_until_its_unlink_is_done);
    tcase_add_test(t, unlink_tells_the_last_name);
    tcase_add_test(t, links_to_links);
    tcase_add_test(t, renames);
    tcase_add_test(t, noreplace_where_the_pfs_does_not_know_it);
    tcase_add_test(t, chmod_on_an_older_kernel);
    tcase_add_test(t, attributes);
    tcase_add_test(t, extended_attributes);
    tcase_add_test(t, xattrs_of_a_link_are_its_own);
    tcase_add_test(t, callers_make_their_own);
    tcase_add_test(t, reading_a_directory);
    tcase_add_test(t, a_mount_below_is_shown_and_not_entered);
    tcase_add_test(t, silence_is_measured);
    return run_case("pfs_names", t);
}
