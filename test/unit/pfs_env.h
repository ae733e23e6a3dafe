/* pfs_env.h - for tests of write-back: a plain directory as the PFS, a real store, files as fs/
 * would make them. */
#ifndef EDDY_TEST_PFS_ENV_H
#define EDDY_TEST_PFS_ENV_H

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "suite.h"

#define NOBODY 65534

static char env_dir[64];
static char env_chunk[1 << 20];

static char *env_path(const char *name)
{
    static char path[8][PATH_MAX];
    static int i;
    i = (i + 1) % 8;
    snprintf(path[i], PATH_MAX, "%s/pfs/%s", env_dir, name);
    return path[i];
}

static void env_open_store(void)
{
    char err[512] = "", cache[128];
    snprintf(cache, sizeof(cache), "%s/cache", env_dir);
    struct store_config c = {.dir = cache, .size = 512 << 20, .chunk_size = sizeof(env_chunk)};
    ck_assert_msg(store_open(&c, err, sizeof(err)) == 0, "%s", err);
}

static void env_open_pfs(void)
{
    char err[512] = "", pfs[128];
    snprintf(pfs, sizeof(pfs), "%s/pfs", env_dir);
    ck_assert_msg(pfs_open(pfs, ".eddyfs-0", 64, err, sizeof(err)) == 0, "%s", err);
}

static void env_make(void)
{
    umask(0);
    log_open("/dev/null", LOG_LEVEL_ERROR, "test");
    strcpy(env_dir, "/tmp/eddy-flush-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(env_dir));
    ck_assert_int_eq(chmod(env_dir, 0755), 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/pfs", env_dir);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/cache", env_dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static int env_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void env_remove(void)
{
    if (seteuid(getuid()) == 0)
        nftw(env_dir, env_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void env_claim(struct file *f, const struct version *base)
{
    store_set_claim(f, 1, 1, base);
}

/* Made, open for writing, claimed: pfs_release ends the open. */
__attribute__((unused)) static struct file *env_create(const char *name, mode_t mode)
{
    struct pfs_made made;
    struct file *f;
    int err = pfs_create(pfs_root(), name, O_RDWR | O_EXCL, mode, NULL, &made);
    ck_assert_msg(err == 0, "%s: %s", name, strerror(-err));
    ck_assert_int_eq(file_get(fid_of(&made.stx), name, &f), 0);
    pfs_adopt_fd(f, made.fd, true);
    struct version v = version_of(&made.stx);
    env_claim(f, &v);
    return f;
}

/* A file of the PFS, open; write: claimed. */
__attribute__((unused)) static struct file *env_open(const char *name, bool write)
{
    struct statx stx;
    struct file *f;
    ck_assert_int_eq(pfs_lookup(pfs_root(), name, &stx), 0);
    struct pfs_node *n = pfs_child_as(pfs_root(), name, fid_of(&stx), NULL);
    ck_assert_int_eq(file_get(fid_of(&stx), name, &f), 0);
    ck_assert_int_eq(pfs_open_file(f, n, write, NULL, &stx), 0);
    pfs_unref(n);
    struct version v = version_of(&stx);
    int err = store_set_version(f, &v, NULL);
    ck_assert(err == 0 || err == -EBUSY);
    if (write)
        env_claim(f, &v);
    return f;
}

/* A page that is written in part is first filled from the PFS, as local.c does. */
static void env_fill(struct file *f, uint64_t off)
{
    struct file_info info;
    store_info(f, &info);
    uint64_t index = off / sizeof(env_chunk);
    struct pfs_chunk_read r = {.index = index, .version = info.base, .buf = env_chunk};
    int err = pfs_read_chunk(f, &r, NULL);
    if (err ==
        -ESTALE) { /* our own flush is changing the file: what is not valid here is as it was */
        size_t got;
        r.version = info.base;
        r.len = (size_t)MIN(sizeof(env_chunk), r.version.size - index * sizeof(env_chunk));
        err = pfs_read(f, env_chunk, r.len, index * sizeof(env_chunk), &got);
        memset(env_chunk + got, 0, r.len - got);
        r.racy = true;
    }
    ck_assert_msg(err == 0, "fill: %s", strerror(-err));
    err = store_fill(f, &(struct clean_chunk){.index = index,
                                              .version = r.version,
                                              .buf = env_chunk,
                                              .len = r.len,
                                              .hash = XXH3_64bits(env_chunk, r.len),
                                              .owned = true,
                                              .racy = r.racy});
    ck_assert_msg(err == 0 || err == -ESTALE, "store_fill: %s", strerror(-err));
}

__attribute__((unused)) static void env_write(struct file *f, const void *buf, size_t len,
                                              uint64_t off)
{
    uint64_t fill;
    int err;
    while ((err = store_write(f, buf, len, off, SPACE_CACHE, &fill)) == -ENODATA)
        env_fill(f, fill);
    ck_assert_msg(err == 0, "store_write: %s", strerror(-err));
}

__attribute__((unused)) static void env_truncate(struct file *f, uint64_t size)
{
    uint64_t fill;
    int err;
    while ((err = store_truncate(f, size, &fill)) == -ENODATA)
        env_fill(f, fill);
    ck_assert_msg(err == 0, "store_truncate: %s", strerror(-err));
}

__attribute__((unused)) static void env_punch(struct file *f, uint64_t off, uint64_t len)
{
    uint64_t fill;
    int err;
    while ((err = store_punch(f, off, len, SPACE_CACHE, &fill)) == -ENODATA)
        env_fill(f, fill);
    ck_assert_msg(err == 0, "store_punch: %s", strerror(-err));
}

/* What is on the PFS, read beside us. */
__attribute__((unused)) static void env_expect(const char *name, const void *bytes, size_t len)
{
    struct stat st;
    FILE *in = fopen(env_path(name), "r");
    ck_assert_msg(in != NULL, "%s is not on the PFS", name);
    ck_assert_int_eq(fstat(fileno(in), &st), 0);
    ck_assert_msg((size_t)st.st_size == len, "%s: %zu bytes, must be %zu", name, (size_t)st.st_size,
                  len);
    char *got = malloc(len + 1);
    ck_assert_uint_eq(fread(got, 1, len, in), len);
    fclose(in);
    size_t i = 0; /* one assertion, not one per byte: Check notes each */
    while (i < len && got[i] == ((const char *)bytes)[i])
        i++;
    ck_assert_msg(i == len, "%s: byte %zu is %02x, must be %02x", name, i, (unsigned char)got[i],
                  ((const unsigned char *)bytes)[MIN(i, len - 1)]);
    free(got);
}

__attribute__((unused)) static void env_put(const char *name, const void *bytes, size_t len,
                                            mode_t mode)
{
    int fd = open(env_path(name), O_CREAT | O_TRUNC | O_WRONLY, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

__attribute__((unused)) static mode_t env_mode(const char *name)
{
    struct stat st;
    ck_assert_int_eq(lstat(env_path(name), &st), 0);
    return st.st_mode & 07777;
}

/* Everything from now on as an ordinary user, whom permissions bind: between env_make and
 * env_open_store. */
__attribute__((unused)) static void env_be_user(void)
{
    char path[128];
    if (geteuid() != 0)
        return;
    const char *const ours[] = {"", "/pfs", "/cache"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        snprintf(path, sizeof(path), "%s%s", env_dir, ours[i]);
        ck_assert_int_eq(chown(path, NOBODY, NOBODY), 0);
    }
    ck_assert_int_eq(seteuid(NOBODY), 0);
}

#endif
