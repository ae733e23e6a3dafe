/* unflushed_list.c - which files are not on the PFS: in a cache directory without a daemon, and
 * those set aside as suspect.
 *
 * For the tool: reads the slabs of another directory than the open store's, private copies, without
 * indexes and without repairing anything.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/store/datafile_int.h"
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "transport/fid.h"

struct unflushed {
    struct fid fid;
    uint32_t slot;
    uint64_t bytes;
};

struct listing {
    struct slabs files, chunks;
    struct unflushed *list;
    size_t n, room;
    bool in_doubt; /* there was a power loss */
    bool damaged;  /* there may be files whose names are not known any more */
};

static bool owed(struct file_record *r)
{
    return !(core_of(r)->flags & CORE_DELETED) && (core_of(r)->flags & CORE_DIRTY || r->lent);
}

static void collect(struct listing *l, uint32_t no)
{
    struct file_record *r = slab_at(&l->files, no);
    if (r->magic != FILE_MAGIC)
        return;
    if (file_record_check(r)) {
        l->damaged = true;
        return;
    }
    if (!owed(r))
        return;
    if (l->n == l->room)
        l->list = xrealloc(l->list, (l->room = l->room * 2 + 64) * sizeof(*l->list));
    l->list[l->n++] = (struct unflushed){r->fid, no, 0};
}

static int by_fid(const void *a, const void *b)
{
    const struct unflushed *x = a, *y = b;
    if (x->fid.hi != y->fid.hi)
        return x->fid.hi < y->fid.hi ? -1 : 1;
    return x->fid.lo < y->fid.lo ? -1 : x->fid.lo > y->fid.lo;
}

static void add_bytes(struct listing *l, uint32_t no)
{
    struct chunk_record *c = slab_at(&l->chunks, no);
    uint32_t words = (l->chunks.chunk_size / PAGE + 63) / 64;
    if (c->magic != CHUNK_MAGIC || c->check != chunk_check(c->fid, c->index))
        return;
    struct unflushed key = {.fid = c->fid};
    struct unflushed *u = l->n ? bsearch(&key, l->list, l->n, sizeof(*l->list), by_fid) : NULL;
    for (uint32_t w = 0; u && w < words; w++)
        u->bytes += (uint64_t)__builtin_popcountll(chunk_bits(c, BITS_DIRTY, words)[w] &
                                                   chunk_bits(c, BITS_VALID, words)[w]) *
                    PAGE;
}

static void each_slot(struct listing *l, struct slabs *s,
                      void (*fn)(struct listing *l, uint32_t no))
{
    for (uint32_t n = 0; n < s->n; n++)
        for (uint32_t i = 0; s->slab[n].map && i < s->slab[n].written; i++)
            fn(l, n << SLAB_SHIFT | i);
}

/* Bytes of kernel I/O are in no chunk's record: they may be all that the data file has. */
static void add_stored(struct cachedir *d, struct file_record *r, struct unflushed *u)
{
    char name[DATAFILE_NAME_BYTES], path[sizeof("data/") + DATAFILE_NAME_BYTES];
    struct stat st;
    if (!(core_of(r)->flags & CORE_KERNEL_IO))
        return;
    datafile_name(r->fid, name);
    snprintf(path, sizeof(path), "data/%s", name);
    if (!fstatat(d->fd, path, &st, AT_SYMLINK_NOFOLLOW))
        u->bytes = MAX(u->bytes, (uint64_t)st.st_size);
}

static enum unflushed_why why(const struct listing *l, struct file_record *r)
{
    if (!(core_of(r)->flags & CORE_DIRTY))
        return UNFLUSHED_LENT;
    return l->in_doubt && !r->covered.check ? UNFLUSHED_SUSPECT : UNFLUSHED_DIRTY;
}

static int list_records(struct cachedir *d, store_unflushed_fn *cb, void *arg)
{
    struct listing *l = xcalloc(1, sizeof(*l));
    slabs_init(&l->files, SLAB_FILES, FILE_SLOT, d->chunk_size);
    slabs_init(&l->chunks, SLAB_CHUNKS, chunk_slot_size(d->chunk_size), d->chunk_size);
    int err = slabs_open(&l->files, d->slabs_fd, d->boot_id, true);
    if (!err)
        err = slabs_open(&l->chunks, d->slabs_fd, d->boot_id, true);
    if (!err) {
        l->in_doubt = l->files.other_boot || l->chunks.other_boot;
        l->damaged = l->files.damaged || l->chunks.damaged;
        each_slot(l, &l->files, collect);
    }
    if (l->n) {
        qsort(l->list, l->n, sizeof(*l->list), by_fid);
        each_slot(l, &l->chunks, add_bytes);
    }
    for (size_t i = 0; i < l->n && !err; i++) {
        char path[STATE_PATH_MAX + 1];
        struct file_record *r = slab_at(&l->files, l->list[i].slot);
        path_get(&l->files, r, path);
        add_stored(d, r, &l->list[i]);
        err = cb(arg, r->fid, path, l->list[i].bytes, why(l, r));
    }
    if (!err && l->damaged)
        err = -EUCLEAN;
    slabs_close(&l->files);
    slabs_close(&l->chunks);
    free(l->list);
    free(l);
    return err;
}

/* ---- suspect/ ---- */

struct note {
    uint64_t bytes, size;
    int64_t mtime_ns;
    char path[STATE_PATH_MAX + 1];
};

/* One note: lines of "what number", and last the path, which may hold anything. */
static bool read_note(int dirfd, const char *name, struct note *out)
{
    char text[STATE_PATH_MAX + 512]; /* a path and the lines before it */
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    unsigned long long bytes, size;
    long long mtime_ns;
    const char *at = strstr(text, "\npath ");
    if (!at || sscanf(text, "bytes %llu\nsize %llu\nmtime %lld\n", &bytes, &size, &mtime_ns) != 3 || size > INT64_MAX)
        return false;
    *out = (struct note){.bytes = bytes, .size = size, .mtime_ns = mtime_ns};
    size_t len = strlen(at + 6);
    if (!len || len > STATE_PATH_MAX + 1 || at[6 + len - 1] != '\n')
        return false;
    memcpy(out->path, at + 6, len - 1);
    return true;
}

static int list_suspects(int dirfd, store_unflushed_fn *cb, void *arg)
{
    int fd = openat(dirfd, "suspect", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return errno == ENOENT ? 0 : -errno;
    for (struct dirent *e; !err && (e = readdir(dir));) {
        struct note note;
        char hex[FID_TEXT];
        struct fid fid;
        snprintf(hex, sizeof(hex), "%.32s", e->d_name);
        if (strlen(e->d_name) == FID_TEXT - 1 + 4 && !fid_parse(hex, &fid) && read_note(fd, e->d_name, &note))
            err = cb(arg, fid, note.path, note.bytes, UNFLUSHED_SUSPECT);
    }
    closedir(dir);
    return err;
}

int store_each_suspect(store_unflushed_fn *cb, void *arg)
{
    return list_suspects(store.dir.fd, cb, arg);
}

int store_suspect_open(struct fid fid, uint64_t *size, int64_t *mtime_ns)
{
    struct note note;
    char hex[FID_TEXT], name[FID_TEXT + 4];
    int dirfd = openat(store.dir.fd, "suspect", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    snprintf(name, sizeof(name), "%s.txt", fid_text(fid, hex));
    bool found = read_note(dirfd, name, &note);
    int fd = found ? openat(dirfd, hex, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1, err = found ? -errno : -ENOENT;
    close(dirfd);
    *size = found ? note.size : 0;
    *mtime_ns = found ? note.mtime_ns : 0;
    return fd < 0 ? err : fd;
}

int store_each_unflushed(const char *dirname, store_unflushed_fn *cb, void *arg)
{
    struct cachedir d;
    int err = cachedir_open_readonly(&d, dirname);
    if (err)
        return err;
    err = list_records(&d, cb, arg);
    if (!err || err == -EUCLEAN) {
        int more = list_suspects(d.fd, cb, arg);
        err = more ? more : err;
    }
    cachedir_close(&d);
    return err;
}
