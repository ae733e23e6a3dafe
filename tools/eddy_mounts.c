/* eddy_mounts.c - finding a mount, and unmounting it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/unmount_helper.h"
#include "fs/user.h"
#include "tools/eddy.h"
#include "tools/eddy_mounts.h"

/* Nobody whose mount it is says where its cache directory is.  doubted: somebody else does. */
static void complain_unknown(const char *path, bool doubted)
{
    struct mounted m;
    char *whole = mount_path(path);
    bool mounted = whole && mounted_eddyfs(whole, &m);
    if (mounted && m.user != geteuid() && geteuid())
        complain("%s: is another user's eddyfs", path);
    else if (mounted)
        complain("%s: is an eddyfs of uid %u, and no list of that user's mounts names it: was it "
                 "mounted with another XDG_RUNTIME_DIR or TMPDIR? Set them as they were then",
                 path, (unsigned)m.user);
    else if (doubted)
        complain("%s: is not mounted, and does not belong to the user who says that it was: \"eddy "
                 "recover --list CACHE_DIR\" tells what is in a cache directory",
                 path);
    else
        complain(
            "%s: no eddyfs of yours is or was mounted there (\"eddy status --all\" lists them)",
            path);
    if (mounted)
        mounted_free(&m);
    free(whole);
}

/* ... or a bind mount of one: its name is in no list. */
static int find_original(const char *path, struct mount_entry *out)
{
    struct mounted copy;
    if (!find_copied(path, &copy, out))
        return -ENOENT;
    mounted_free(&copy);
    return 0;
}

int find_mount(const char *path, struct mount_entry *out)
{
    int err = mount_map_find(path, out);
    if (err == -ENOENT)
        err = find_original(path, out);
    if (err == -ENOENT || err == -EPERM)
        complain_unknown(path, err == -EPERM);
    else if (err)
        complain("%s: %s", path, strerror(-err));
    return err;
}

/* ---- of a file ---- */

/* The mounts, as they are when the command looks for the first time: it may look for many paths. */
static struct known {
    struct mount_entry e;
    bool mounted;
} * known;
static size_t nknown;

static struct mount_entry copy_of(const struct mount_entry *e)
{
    return (struct mount_entry){.mountpoint = xstrdup(e->mountpoint),
                                .cache_dir = xstrdup(e->cache_dir),
                                .pfs_dir = xstrdup(e->pfs_dir),
                                .session = xstrdup(e->session),
                                .session_dir = xstrdup(e->session_dir),
                                .node = xstrdup(e->node),
                                .owner = e->owner};
}

static int note(void *arg, const struct mount_entry *e)
{
    (void)arg;
    known = xrealloc(known, (nknown + 1) * sizeof(*known));
    known[nknown++] = (struct known){copy_of(e), mounted_eddyfs(e->mountpoint, NULL)};
    return 0;
}

/* The mount in which a path is, or in whose PFS directory it is; the longest path counts.  Whose mount it is
 * says the kernel, but only its user says what its PFS directory is: root believes that of its own mounts. */
struct search {
    char *path;
    const struct mount_entry *entry;
    bool mounted; /* one that is not mounted counts only if no other one fits */
    size_t len;
    const char *below; /* in path: that below the mount */
};

static bool is_below(const char *path, const char *dir, size_t *len)
{
    *len = strlen(dir);
    return !strncmp(path, dir, *len) && (!path[*len] || path[*len] == '/' || *len == 1);
}

static void consider(struct search *s, const struct known *k)
{
    size_t len;
    bool in_mount = k->mounted && is_below(s->path, k->e.mountpoint, &len);
    if (!in_mount && (k->e.owner != geteuid() || !is_below(s->path, k->e.pfs_dir, &len)))
        return;
    if (s->below && (k->mounted != s->mounted ? s->mounted : len <= s->len))
        return;
    s->mounted = k->mounted;
    s->len = len;
    s->below = s->path + len + strspn(s->path + len, "/");
    s->entry = &k->e;
}

int find_mount_of_file(const char *path, struct mount_entry *out, char **below)
{
    struct search s = {.path = mount_path(path)};
    *below = NULL;
    if (!s.path)
        return -errno;
    if (!known)
        mount_map_each(note, NULL);
    for (size_t i = 0; i < nknown; i++)
        consider(&s, &known[i]);
    *out = s.entry ? copy_of(s.entry) : (struct mount_entry){0};
    *below = s.below ? xstrdup(s.below) : NULL;
    free(s.path);
    return *below ? 0 : -ENOENT;
}

/* Root follows a map that a user wrote, but only to what belongs to that user. */
int open_cache_dir(const struct mount_entry *e)
{
    struct stat st;
    int fd = open(e->cache_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fstat(fd, &st) ? -errno : st.st_uid == e->owner ? 0 : -EPERM;
    if (!err)
        return fd;
    close(fd);
    return err;
}

int become_owner(const struct mount_entry *e)
{
    return !geteuid() && e->owner ? become_user(e->owner, false) : 0;
}

/* ---- unmounting ---- */

static int is_same(void *arg, const struct mounted *m)
{
    const struct mounted *wanted = arg;
    return m->id == wanted->id && m->minor == wanted->minor && m->major == wanted->major;
}

bool is_still_mounted(const struct mounted *m)
{
    return mounted_each(is_same, (void *)m) != 0; /* also if that cannot be read */
}

/* A mount whose connection was aborted is also unmounted by its daemon, as it ends. */
static int unmount_by_user(const struct mounted *m, bool lazily)
{
    char said[512];
    int err = unmount_by_helper(m->path, lazily, said, sizeof(said));
    if (!err || !is_still_mounted(m)) /* another process was first */
        return 0;
    if (err != -EBUSY)
        complain("%s", said);
    return err;
}

int unmount(const struct mounted *m, bool lazily)
{
    int err = unmount_just(m, lazily ? MNT_DETACH : 0);
    if (!err || err == -EBUSY || err == -ESTALE)
        return err;
    if (err == -EINVAL || err == -ENOENT) /* another process was first */
        return 0;
    if (geteuid())
        return unmount_by_user(m, lazily);
    complain("%s: %s", m->path, strerror(-err));
    return err;
}

struct copied {
    const struct mounted *copy;
    struct mount_entry *original;
};

static int is_original(void *arg, const struct mounted *m)
{
    struct copied *c = arg;
    return m->id != c->copy->id && m->major == c->copy->major && m->minor == c->copy->minor &&
           !mount_map_find(m->path, c->original);
}

bool find_copied(const char *path, struct mounted *copy, struct mount_entry *original)
{
    struct copied c = {copy, original};
    struct mount_entry own;
    char *whole = mount_path(path);
    bool mounted = whole && mounted_eddyfs(whole, copy), found = false;
    if (mounted && !mount_map_find(whole, &own))
        mount_entry_free(&own);
    else if (mounted)
        found = mounted_each(is_original, &c) == 1;
    if (mounted && !found)
        mounted_free(copy);
    free(whole);
    return found;
}

/* For root, where sysfs has no fusectl: a forced unmount first aborts the connection, and may then fail as
 * busy. */
static int force(const struct mounted *m)
{
    int err = unmount_just(m, MNT_FORCE);
    return err == -EBUSY ? 0 : err;
}

int abort_connection(const struct mounted *m)
{
    char path[64];
    snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", m->minor);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return force(m);
    int err = write(fd, "1", 1) == 1 ? 0 : -errno;
    close(fd);
    return err;
}
