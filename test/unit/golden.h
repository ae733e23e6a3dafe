/* golden.h - files of test/golden: bytes as they were when a format was fixed. */
#ifndef EDDY_TEST_GOLDEN_H
#define EDDY_TEST_GOLDEN_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base.h"

/* In EDDY_GOLDEN_DIR, or as seen from this source file, the top or a build directory. */
static inline void golden_path(const char *name, char *path, size_t size)
{
    const char *slash = strrchr(__FILE__, '/');
    char beside[2048];
    snprintf(beside, sizeof(beside), "%.*s/../golden", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".");
    const char *dirs[] = {getenv("EDDY_GOLDEN_DIR"), beside, "test/golden", "../test/golden"};
    size_t i = 0;
    while (i < ARRAY_LEN(dirs) - 1 && (!dirs[i] || access(dirs[i], F_OK)))
        i++;
    snprintf(path, size, "%s/%s.bin", dirs[i], name);
}

/* Reads NAME.bin into buf and returns its length, `size` at most.  It is written first from `now`
 * with EDDY_GOLDEN_WRITE=1: after a wanted change of the format. */
static inline size_t golden(const char *name, const void *now, size_t len, void *buf, size_t size)
{
    char path[4096];
    golden_path(name, path, sizeof(path));
    FILE *f;
    if (getenv("EDDY_GOLDEN_WRITE")) {
        f = fopen(path, "wb");
        ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
        ck_assert_uint_eq(fwrite(now, 1, len, f), len);
        ck_assert_int_eq(fclose(f), 0);
    }
    f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s: %s (EDDY_GOLDEN_DIR names the directory)", path, strerror(errno));
    size_t got = fread(buf, 1, size, f);
    fclose(f);
    return got;
}

#endif
