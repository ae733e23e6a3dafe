/* pfs_names_env.h - a plain directory as the PFS, for the tests of placement/pfs/pfs_names.h. */
#ifndef EDDY_TEST_PFS_NAMES_ENV_H
#define EDDY_TEST_PFS_NAMES_ENV_H

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

#define HIDDEN ".eddyfs-0"

static char dir[64];
static struct statx stx;

static inline void open_dir(unsigned max_fds)
{
    char err[256];
    umask(0);
    strcpy(dir, "/tmp/eddy-names-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_msg(pfs_open(dir, HIDDEN, max_fds, err, sizeof(err)) == 0, "%s", err);
}

static inline void setup(void)
{
    open_dir(64);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void teardown(void)
{
    pfs_close();
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline char *at(const char *name)
{
    static char path[4][PATH_MAX];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], PATH_MAX, "%s/%s", dir, name);
    return path[i];
}

static inline void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* Looked up and made known, as fs/ does. */
static inline struct pfs_node *look(struct pfs_node *parent, const char *name)
{
    struct statx s;
    int err = pfs_lookup(parent, name, &s);
    ck_assert_msg(err == 0, "lookup %s: %s", name, strerror(-err));
    return pfs_child_as(parent, name, fid_of(&s), NULL);
}

static inline unsigned open_fds(void)
{
    unsigned n = 0;
    struct stat st;
    for (int fd = 0; fd < 1024; fd++)
        n += fstat(fd, &st) == 0;
    return n;
}

#endif
