/* pfs_call.c - what every call to the PFS needs: a note of its start, the caller's credentials, and opening
 * only below the root.
 *
 * Tickets: a fixed table of start times.  A call takes a free slot with one compare-and-swap, and
 * clears it at its end.  There are more slots than threads that may call; a call that finds no free slot is
 * not seen.
 */
#include "placement/pfs/pfs.h"

#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_names.h"
#include "transport/waits.h"

#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <grp.h>
#include <limits.h>

/* ---- tickets ---- */

#define TICKETS 256

static _Atomic uint64_t started_ms[TICKETS]; /* 0: free */
static _Atomic uint64_t last_end_ms;
static _Atomic unsigned next_hint;
static _Atomic unsigned used; /* slots from here on were never taken */

static void note_used(unsigned n)
{
    unsigned was = atomic_load_explicit(&used, memory_order_relaxed);
    while (was < n && !atomic_compare_exchange_weak_explicit(&used, &was, n, memory_order_relaxed,
                                                             memory_order_relaxed))
        ;
}

static _Thread_local uint64_t began_ns; /* boot_ns: this thread's outermost call, ... */
static _Thread_local unsigned depth;    /* ... of so many that are under way */

uint64_t pfs_call_begin(void)
{
    static _Thread_local unsigned hint; /* a thread finds its own slot free again */
    static _Thread_local bool hinted;
    if (!hinted) {
        hint = atomic_fetch_add_explicit(&next_hint, 1, memory_order_relaxed);
        hinted = true;
    }
    uint64_t now_ns = wait_begin();
    if (!depth++)
        began_ns = now_ns;
    uint64_t now = MAX(now_ns / 1000000, (uint64_t)1);
    for (unsigned i = 0; i < TICKETS; i++) {
        unsigned slot = (hint + i) % TICKETS;
        uint64_t free_slot = 0;
        if (atomic_compare_exchange_strong_explicit(&started_ms[slot], &free_slot, now,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            note_used(slot + 1);
            return slot + 1;
        }
    }
    return 0;
}

void pfs_call_end(uint64_t ticket)
{
    uint64_t now = boot_ns();
    if (!--depth)
        waits_here.ns[WAIT_PFS] += now - began_ns;
    atomic_store_explicit(&last_end_ms, now / 1000000, memory_order_relaxed);
    if (ticket)
        atomic_store_explicit(&started_ms[ticket - 1], 0, memory_order_relaxed);
}

uint64_t pfs_waiting_ms(void)
{
    uint64_t oldest = 0;
    unsigned n = atomic_load_explicit(&used, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) {
        uint64_t t = atomic_load_explicit(&started_ms[i], memory_order_relaxed);
        if (t && (!oldest || t < oldest))
            oldest = t;
    }
    if (!oldest)
        return 0;
    uint64_t since = MAX(oldest, atomic_load_explicit(&last_end_ms, memory_order_relaxed));
    uint64_t now = boot_ms();
    return now > since ? now - since : 0;
}

bool pfs_silent(uint64_t now, uint64_t ms)
{
    uint64_t last = atomic_load_explicit(&last_end_ms, memory_order_relaxed);
    return now >= last + ms && pfs_waiting_ms() >= ms;
}

/* ---- credentials ---- */

static gid_t *own_groups;
static int own_ngroups;

void pfs_cred_start(void)
{
    int n = getgroups(0, NULL);
    free(own_groups);
    own_groups = xcalloc((size_t)MAX(n, 1), sizeof(gid_t));
    own_ngroups = n > 0 ? getgroups(n, own_groups) : 0;
    if (own_ngroups < 0)
        die("getgroups: %s", strerror(errno));
}

/* The raw call: glibc's setgroups would change every thread of the process. */
static int thread_setgroups(size_t n, const gid_t *groups)
{
    return syscall(SYS_setgroups, n, groups) < 0 ? -errno : 0;
}

/* With fsuid != 0 the kernel removes CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_CHOWN and
 * CAP_MKNOD from this thread's effective set; with fsuid 0 it gives them back.  So new files
 * belong to the caller, under the PFS's own rules for quota, setgid directories and sticky
 * directories. */
int pfs_cred_take(const struct cred *c)
{
    if (!c)
        return 0;
    int err = thread_setgroups(c->ngroups, c->groups);
    if (err)
        return err;
    setfsgid(c->gid);
    setfsuid(c->uid);
    if ((uid_t)setfsuid((uid_t)-1) == c->uid && (gid_t)setfsgid((gid_t)-1) == c->gid)
        return 0;
    pfs_cred_back(c);
    return -EPERM;
}

void pfs_cred_back(const struct cred *c)
{
    if (!c)
        return;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    setfsuid(uid);
    setfsgid(gid);
    int err = thread_setgroups((size_t)own_ngroups, own_groups);
    /* The process ends, because going on with another user's rights would be worse. */
    if (err || (uid_t)setfsuid((uid_t)-1) != uid || (gid_t)setfsgid((gid_t)-1) != gid)
        die("this thread can not take its own user and groups back: %s", strerror(-err));
}

/* ---- opening below the root ---- */

static int open_piece(int dirfd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = flags & O_CREAT ? mode & 07777 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
    };
    long fd;
    do
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : (int)fd;
}

/* Opens the part of *path that fits into one call, as a directory, and moves *path behind that part. */
static int open_front(int dirfd, const char **path)
{
    char piece[PATH_MAX];
    size_t len = PATH_MAX - 1;
    while (len && (*path)[len] != '/')
        len--;
    if (!len)
        return -ENAMETOOLONG;
    memcpy(piece, *path, len);
    piece[len] = 0;
    *path += len + 1;
    return open_piece(dirfd, piece, O_PATH | O_DIRECTORY, 0);
}

int pfs_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    int at = dirfd;
    while (at >= 0 && strlen(path) >= PATH_MAX) {
        int next = open_front(at, &path);
        if (at != dirfd)
            close(at);
        at = next;
    }
    int fd = at;
    if (at >= 0) {
        fd = open_piece(at, *path ? path : ".", flags, mode);
        if (at != dirfd)
            close(at);
    }
    pfs_call_end(ticket);
    return fd;
}

static int statx_at(int dirfd, const char *name, int flags, struct statx *stx)
{
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    int err = 0;
    if (statx(dirfd, name, flags | AT_STATX_FORCE_SYNC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              PFS_STATX_MASK, stx) < 0)
        err = -errno;
    pfs_call_end(ticket);
    if (!err)
        pfs_mode_patch(stx);
    return err;
}

int pfs_statx_fd(int fd, struct statx *stx)
{
    return statx_at(fd, "", AT_EMPTY_PATH, stx);
}

int pfs_type_fd(int fd, struct statx *stx)
{
    int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
    uint64_t ticket = pfs_call_begin();
    int err = statx(fd, "", flags, STATX_TYPE, stx) < 0 ? -errno : 0;
    pfs_call_end(ticket);
    return err;
}

int pfs_statx_at(int dirfd, const char *name, struct statx *stx)
{
    return statx_at(dirfd, name, 0, stx);
}

static bool component_ok(const char *s, size_t len)
{
    if (len == 0 || len >= NAME_BYTES)
        return false;
    return !(s[0] == '.' && (len == 1 || (len == 2 && s[1] == '.')));
}

bool pfs_path_ok(const char *path)
{
    bool first = true;
    for (;;) {
        size_t len = strcspn(path, "/");
        if (!component_ok(path, len))
            return false;
        if (first && pfs_hidden && strlen(pfs_hidden) == len && memcmp(path, pfs_hidden, len) == 0)
            return false;
        if (!path[len])
            return true;
        path += len + 1;
        first = false;
    }
}

char *pfs_proc_fd(int fd, char buf[PROC_FD])
{
    snprintf(buf, PROC_FD, "/proc/self/fd/%d", fd);
    return buf;
}

int pfs_reopen(int fd, int flags)
{
    char proc[PROC_FD];
    uint64_t ticket = pfs_call_begin();
    count(pfs_name_ops, 1);
    int out;
    do
        out = open(pfs_proc_fd(fd, proc), flags | O_CLOEXEC | O_NOCTTY);
    while (out < 0 && errno == EINTR);
    if (out < 0)
        out = -errno;
    pfs_call_end(ticket);
    return out;
}
