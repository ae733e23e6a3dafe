/* session_env.h - a session directory in a temporary place, for the tests of transport/session.h. */
#ifndef EDDY_TEST_SESSION_ENV_H
#define EDDY_TEST_SESSION_ENV_H

#include "transport/session.h"
#include "transport/times.h"
#include "transport/view.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

#define CHUNK (1u << 20)

static char top[64], base[128];
static char err_text[1024];

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void make_top(void)
{
    log_open("/dev/null", LOG_LEVEL_ERROR, "test");
    strcpy(top, "/tmp/eddy-test-session-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(base, sizeof(base), "%s/sessions", top);
    err_text[0] = 0;
}

static inline void remove_top(void)
{
    session_close();
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int open_as(const char *name, uint32_t chunk)
{
    struct session_config c = {.dir = base, .name = name, .chunk_size = chunk};
    return session_open(&c, err_text, sizeof(err_text));
}

static inline void open_job(void)
{
    ck_assert_msg(open_as("job", CHUNK) == 0, "%s", err_text);
}

static inline void assert_says(const char *what)
{
    ck_assert_msg(strstr(err_text, what), "\"%s\" does not say \"%s\"", err_text, what);
}

/* A path below the session "job". */
static inline const char *in_job(const char *file)
{
    static char path[4][512];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof(path[i]), "%s/job/%s", base, file);
    return path[i];
}

static inline void write_file(const char *path, const void *text, size_t len)
{
    FILE *f = fopen(path, "w");
    ck_assert_msg(f, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    fclose(f);
}

static inline void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static inline void read_text(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    ck_assert_msg(f, "%s: %s", path, strerror(errno));
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
}

static inline int count_files(const char *path, const char *prefix)
{
    int n = 0;
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
             !strncmp(e->d_name, prefix, strlen(prefix));
    closedir(d);
    return n;
}

/* Runs fn(i) in n processes at once; all must end with 0. */
static inline void in_processes(int n, int (*fn)(int i))
{
    int go[2];
    pid_t pids[32];
    ck_assert_int_le(n, 32);
    ck_assert_int_eq(pipe(go), 0);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            char c;
            close(go[1]);
            if (read(go[0], &c, 1)) /* until the parent closes it */
                _exit(100);
            _exit(fn(i));
        }
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < n; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "process %d: status %x", i,
                      status);
    }
}

/* Members and absent nodes that the id tells all of; a view of three and two. */
static inline struct member member(uint64_t id)
{
    struct member m = {.id = id, .incarnation = id * 3 + 1, .weight = 100};
    snprintf(m.name, sizeof(m.name), "node%03u", (unsigned)id);
    snprintf(m.addr, sizeof(m.addr), "10.0.0.%u:40123", (unsigned)id);
    return m;
}

static inline struct absent absent(uint64_t id)
{
    struct absent a = {.id = id, .incarnation = 5};
    snprintf(a.name, sizeof(a.name), "gone%u", (unsigned)id);
    return a;
}

static inline int make_view(uint64_t number)
{
    struct member members[] = {member(1), member(7), member(200)};
    struct absent absents[] = {absent(3), absent(0xffffffffffffffff)};
    struct view v = {
        .number = number, .nmembers = 3, .nabsent = 2, .members = members, .absents = absents};
    return session_make_view(&v);
}

/* Each test in a directory of its own. */
static inline TCase *new_case(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_top, remove_top);
    suite_add_tcase(s, t);
    return t;
}

#endif
