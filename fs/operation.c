/* operation.c - see operation.h. */
#include "fs/operation.h"

#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/lock.h"

#define NOTED_NS     10000000u /* what took less is never among the slowest */
#define LINES_SECOND 20        /* of the log */

/* Those that a process waits for. */
static const struct {
    uint32_t opcode;
    const char *name;
} names[] = {
    {FUSE_COPY_FILE_RANGE, "copy_file_range"}, {FUSE_CREATE, "create"}, {FUSE_FALLOCATE, "fallocate"}, {FUSE_FLUSH, "flush"},
    {FUSE_FSYNC, "fsync"}, {FUSE_FSYNCDIR, "fsyncdir"}, {FUSE_GETATTR, "getattr"}, {FUSE_GETLK, "getlk"},
    {FUSE_GETXATTR, "getxattr"}, {FUSE_LINK, "link"}, {FUSE_LISTXATTR, "listxattr"}, {FUSE_LOOKUP, "lookup"},
    {FUSE_LSEEK, "lseek"}, {FUSE_MKDIR, "mkdir"}, {FUSE_MKNOD, "mknod"}, {FUSE_OPEN, "open"}, {FUSE_OPENDIR, "opendir"},
    {FUSE_READ, "read"}, {FUSE_READDIR, "readdir"}, {FUSE_READDIRPLUS, "readdirplus"}, {FUSE_READLINK, "readlink"},
    {FUSE_RELEASE, "release"}, {FUSE_RELEASEDIR, "releasedir"}, {FUSE_REMOVEXATTR, "removexattr"}, {FUSE_RENAME2, "rename"},
    {FUSE_RENAME, "rename"}, {FUSE_RMDIR, "rmdir"}, {FUSE_SETATTR, "setattr"}, {FUSE_SETLK, "setlk"}, {FUSE_SETLKW, "setlkw"},
    {FUSE_SETXATTR, "setxattr"}, {FUSE_STATFS, "statfs"}, {FUSE_SYMLINK, "symlink"}, {FUSE_UNLINK, "unlink"},
    {FUSE_WRITE, "write"},
};

#define OPCODES 64 /* all that Linux has, and some more */

static struct latency latencies[OPCODES]; /* by opcode */
static uint64_t log_ns = UINT64_MAX;

static struct {
    struct lock lock; /* RANK_LEAF */
    struct slow_operation list[SLOWEST];
    unsigned n;
    _Atomic uint64_t least_ns; /* what takes no longer is not one of them */
} slowest = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .least_ns = NOTED_NS};

static const char *name_of(uint32_t opcode)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].opcode == opcode)
            return names[i].name;
    return NULL;
}

void operation_log_slow(uint32_t ms)
{
    log_ns = ms ? (uint64_t)ms * 1000000 : UINT64_MAX;
}

/* ---- the slow ones ---- */

char *operation_waits_text(const struct slow_operation *s, char *buf, size_t len)
{
    size_t n = 0;
    *buf = '\0';
    for (unsigned i = 0; i < WAIT_KINDS; i++)
        if (s->waits.ns[i] >= 1000000 && n < len)
            n += (size_t)snprintf(buf + n, len - n, "%s%s %llu ms", n ? ", " : "", wait_names[i],
                                  (unsigned long long)s->waits.ns[i] / 1000000);
    return buf;
}

static void log_it(const struct slow_operation *s)
{
    static _Atomic uint64_t second, left_out;
    static _Atomic unsigned lines;
    char waits[256];
    if (log_every(&second, 1000)) {
        uint64_t n = atomic_exchange(&left_out, 0);
        atomic_store(&lines, 0);
        if (n)
            log_info("slow: %llu more operations, more than %d lines a second", (unsigned long long)n, LINES_SECOND);
    }
    if (atomic_fetch_add(&lines, 1) >= LINES_SECOND) {
        atomic_fetch_add(&left_out, 1);
        return;
    }
    operation_waits_text(s, waits, sizeof(waits));
    log_info("slow: %s took %llu ms: %s: process %d%s%s", s->name, (unsigned long long)s->took_ns / 1000000,
             s->path ? s->path : "?", (int)s->pid, *waits ? ": it waited for " : "", waits);
}

static void free_slow(struct slow_operation *s)
{
    free(s->path);
}

/* Takes it over. */
static void keep(struct slow_operation *s)
{
    lock_take(&slowest.lock);
    unsigned at = slowest.n;
    while (at && slowest.list[at - 1].took_ns < s->took_ns)
        at--;
    if (at == SLOWEST) {
        free_slow(s);
    } else {
        if (slowest.n == SLOWEST)
            free_slow(&slowest.list[--slowest.n]);
        memmove(&slowest.list[at + 1], &slowest.list[at], (slowest.n - at) * sizeof(*s));
        slowest.list[at] = *s;
        if (++slowest.n == SLOWEST)
            slowest.least_ns = slowest.list[SLOWEST - 1].took_ns;
    }
    lock_drop(&slowest.lock);
}

void operation_each_slowest(void (*fn)(void *arg, const struct slow_operation *s), void *arg)
{
    lock_take(&slowest.lock);
    for (unsigned i = 0; i < slowest.n; i++)
        fn(arg, &slowest.list[i]);
    lock_drop(&slowest.lock);
}

/* ---- an operation ---- */

static _Thread_local struct operation here;

void operation_begin(uint32_t opcode)
{
    here.opcode = opcode;
    here.began_ns = boot_ns();
}

struct operation operation_take(void)
{
    struct operation taken = here;
    here.began_ns = 0;
    return taken;
}

/* Notes how long it took.  True: that is long enough for the log, or for the list of the slowest. */
static bool measure(const struct operation *op, uint64_t *took_ns)
{
    *took_ns = boot_ns() - op->began_ns;
    if (op->opcode < OPCODES)
        latency_add(&latencies[op->opcode], *took_ns);
    return *took_ns >= log_ns || *took_ns > slowest.least_ns;
}

void operation_served(void)
{
    uint64_t took_ns;
    if (here.began_ns)
        measure(&here, &took_ns);
    here.began_ns = 0;
}

void operation_end(const struct operation *op, char *(*path)(void *arg), void *arg, pid_t pid)
{
    uint64_t took_ns;
    if (!op->began_ns || !measure(op, &took_ns) || !name_of(op->opcode))
        return;
    struct slow_operation s = {.name = name_of(op->opcode),
                               .path = path(arg),
                               .pid = pid,
                               .ended_ns = real_ns(),
                               .took_ns = took_ns,
                               .waits = op->waits};
    if (took_ns >= log_ns)
        log_it(&s);
    if (took_ns > slowest.least_ns)
        keep(&s);
    else
        free_slow(&s);
}

int operation_each(int (*fn)(void *arg, const char *name, const struct latency_copy *l), void *arg)
{
    struct latency_copy l;
    int stop = 0;
    for (size_t i = 0; i < ARRAY_LEN(names) && !stop; i++) {
        latency_copy(&latencies[names[i].opcode], &l);
        if (l.count)
            stop = fn(arg, names[i].name, &l);
    }
    return stop;
}
