/* slab.c - mapped files of slots: making, checking, mapping, giving slots out. */
#include "placement/store/slab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/store/syncs.h"
#include "transport/base.h"

static const char *kind_name(enum slab_kind kind)
{
    return kind == SLAB_FILES ? "files" : "chunks";
}

static void slab_name(const struct slabs *s, uint32_t n, char name[24])
{
    snprintf(name, 24, "%s.%03u", kind_name(s->kind), (unsigned)n);
}

void slabs_init(struct slabs *s, enum slab_kind kind, uint32_t slot_size, uint32_t chunk_size)
{
    memset(s, 0, sizeof(*s));
    s->kind = kind;
    s->slot_size = slot_size;
    s->per_page = SLAB_PAGE / slot_size;
    s->chunk_size = chunk_size;
}

bool slab_has(const struct slabs *s, uint32_t no)
{
    uint32_t n = no >> SLAB_SHIFT;
    return n < s->n && s->slab[n].map && (no & ((1u << SLAB_SHIFT) - 1)) < s->slab[n].slots;
}

static uint32_t slots_in(const struct slabs *s, uint64_t bytes)
{
    return (uint32_t)(bytes / SLAB_PAGE - 1) * s->per_page;
}

/* ---- opening ---- */

static bool header_fits(const struct slabs *s, const struct slab_header *h, uint64_t file_bytes)
{
    return h->magic == SLAB_MAGIC && h->version == SLAB_VERSION && h->kind == s->kind &&
           h->slot_size == s->slot_size && h->chunk_size == s->chunk_size &&
           h->bytes == file_bytes && !(h->bytes % SLAB_PAGE);
}

/* The page behind the last that was ever written, as far as the file system tells.  Pages that were only
 * preallocated are zeros, and need not be read. */
static uint64_t written_end(int fd, uint64_t bytes)
{
    off_t at = 0, end = 0;
    while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
        at = end = lseek(fd, at, SEEK_HOLE);
        if (at < 0)
            return bytes;
    }
    if (errno != ENXIO)
        return bytes;
    return ((uint64_t)end + SLAB_PAGE - 1) & ~(uint64_t)(SLAB_PAGE - 1);
}

/* Enters the mapping of file n, which has only zeros behind `stored`.  All of its slots are taken. */
static void enter(struct slabs *s, uint32_t n, void *map, uint64_t bytes, uint64_t stored)
{
    struct slab *b = &s->slab[n];
    b->slots = slots_in(s, bytes);
    b->free = xcalloc((b->slots + 63) / 64, sizeof(*b->free));
    b->written = b->slots;
    b->syncs = xmalloc(sizeof(*b->syncs));
    syncs_init(b->syncs);
    b->bytes = bytes;
    b->stored = stored;
    b->map = map;
    s->bytes += bytes;
    s->n = MAX(s->n, n + 1);
}

/* 0: mapped; -EUCLEAN: it is no slab of this cache. */
static int open_one(struct slabs *s, int fd, uint32_t n, const char *boot_id, bool readonly)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    uint64_t bytes = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || bytes < 2 * SLAB_PAGE || bytes > SLAB_MAX_SIZE)
        return -EUCLEAN;
    void *map =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, readonly ? MAP_PRIVATE : MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    struct slab_header h;
    memcpy(&h, map, sizeof(h));
    if (!header_fits(s, &h, bytes)) {
        munmap(map, bytes);
        return -EUCLEAN;
    }
    h.boot_id[sizeof(h.boot_id) - 1] = 0;
    uint64_t stored = MAX(written_end(fd, bytes), (uint64_t)SLAB_PAGE);
    enter(s, n, map, bytes, stored);
    if (!h.clean) {
        bool same_boot = !strcmp(h.boot_id, boot_id);
        s->unclean = true;
        s->other_boot |= !same_boot;
        if (same_boot) /* the kernel does not tell again what it told the daemon before this one */
            s->slab[n].syncs->err = -EIO;
    }
    if (readonly)
        s->slab[n].written = slots_in(s, stored);
    return 0;
}

static void put_aside(struct slabs *s, int slabs_fd, uint32_t n, bool readonly)
{
    char name[24], aside[40];
    slab_name(s, n, name);
    snprintf(aside, sizeof(aside), "%s.damaged", name);
    s->damaged++;
    s->unclean = true;
    if (readonly)
        return;
    if (renameat(slabs_fd, name, slabs_fd, aside) < 0)
        log_error("slabs/%s is damaged and can not be renamed: %s", name, strerror(errno));
    else
        log_error("slabs/%s is damaged: kept as %s: what it said is lost", name, aside);
}

int slabs_open(struct slabs *s, int slabs_fd, const char *boot_id, bool readonly)
{
    for (uint32_t n = 0, missing = 0; n < SLAB_MAX && missing < 64; n++) {
        char name[24];
        slab_name(s, n, name);
        int fd = openat(slabs_fd, name, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) {
            missing++; /* a damaged slab was put aside here, or there are no more slabs */
            continue;
        }
        int err = fd < 0 ? -errno : open_one(s, fd, n, boot_id, readonly);
        if (fd >= 0)
            close(fd);
        if (err == -EUCLEAN || err == -ELOOP)
            put_aside(s, slabs_fd, n, readonly);
        else if (err)
            return err;
    }
    return 0;
}

/* ---- growing ---- */

static int make_file(struct slabs *s, int fd, uint64_t bytes, const char *boot_id)
{
    int err = posix_fallocate(fd, 0, (off_t)bytes);
    if (err)
        return -err;
    struct slab_header h = {.magic = SLAB_MAGIC,
                            .version = SLAB_VERSION,
                            .kind = s->kind,
                            .slot_size = s->slot_size,
                            .chunk_size = s->chunk_size,
                            .bytes = bytes};
    snprintf(h.boot_id, sizeof(h.boot_id), "%s", boot_id);
    ssize_t n = pwrite(fd, &h, sizeof(h), 0);
    if (n != sizeof(h))
        return n < 0 ? -errno : -EIO;
    return fsync(fd) < 0 ? -errno : 0;
}

/* The file is made under another name, so that no half-made slab is ever found. */
static int make_slab(struct slabs *s, int slabs_fd, const char *boot_id, struct slab_made *out)
{
    char name[24];
    slab_name(s, out->n, name);
    if (unlinkat(slabs_fd, "new", 0) < 0 && errno != ENOENT)
        return -errno;
    int fd = openat(slabs_fd, "new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int err = make_file(s, fd, out->bytes, boot_id);
    out->map = MAP_FAILED;
    if (!err) {
        out->map = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = out->map == MAP_FAILED ? -errno : 0;
    }
    if (!err && renameat(slabs_fd, "new", slabs_fd, name) < 0)
        err = -errno;
    if (!err && fsync(slabs_fd) < 0)
        err = -errno;
    close(fd);
    if (!err)
        return 0;
    if (out->map != MAP_FAILED)
        munmap(out->map, out->bytes);
    unlinkat(slabs_fd, "new", 0);
    return err;
}

int slab_make(struct slabs *s, int slabs_fd, uint64_t bytes, const char *boot_id,
              struct slab_made *out)
{
    uint32_t n = 0;
    while (n < SLAB_MAX && s->slab[n].map)
        n++;
    if (n == SLAB_MAX)
        return -ENOSPC;
    out->n = n;
    out->bytes = MIN(MAX(bytes, SLAB_MIN_SIZE), SLAB_MAX_SIZE) & ~(uint64_t)(SLAB_PAGE - 1);
    return make_slab(s, slabs_fd, boot_id, out);
}

void slab_add(struct slabs *s, const struct slab_made *made)
{
    enter(s, made->n, made->map, made->bytes, SLAB_PAGE);
    struct slab *b = &s->slab[made->n];
    for (uint32_t i = 0; i < b->slots; i++)
        b->free[i / 64] |= UINT64_C(1) << i % 64;
    b->nfree = b->slots;
    s->nfree += b->slots;
}

/* ---- slots ---- */

static uint32_t take_from(struct slab *b)
{
    uint32_t words = (b->slots + 63) / 64;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t w = (b->hint + i) % words;
        if (b->free[w]) {
            uint32_t bit = (uint32_t)__builtin_ctzll(b->free[w]);
            b->free[w] &= b->free[w] - 1;
            b->hint = w;
            b->nfree--;
            return w * 64 + bit;
        }
    }
    return SLOT_NONE;
}

uint32_t slab_take(struct slabs *s)
{
    for (uint32_t n = 0; s->nfree && n < s->n; n++) {
        struct slab *b = &s->slab[n];
        if (!b->map || !b->nfree)
            continue;
        uint32_t no = n << SLAB_SHIFT | take_from(b);
        s->nfree--;
        uint8_t *slot = slab_at(s, no);
        uint64_t end = ((uint64_t)(slot - b->map) / SLAB_PAGE + 1) * SLAB_PAGE;
        b->stored = MAX(b->stored, end);
        memset(slot, 0, s->slot_size);
        return no;
    }
    return SLOT_NONE;
}

void slab_put(struct slabs *s, uint32_t no)
{
    struct slab *b = &s->slab[no >> SLAB_SHIFT];
    uint32_t i = no & ((1u << SLAB_SHIFT) - 1);
    b->free[i / 64] |= UINT64_C(1) << i % 64;
    b->nfree++;
    s->nfree++;
}

/* ---- syncing ---- */

struct slab *slab_of(struct slabs *s, const void *p)
{
    for (uint32_t n = 0; n < s->n; n++) {
        struct slab *b = &s->slab[n];
        if (b->map && (const uint8_t *)p >= b->map && (const uint8_t *)p < b->map + b->bytes)
            return b;
    }
    return NULL;
}

static int sync_pages(const void *p, size_t len)
{
    uintptr_t from = (uintptr_t)p & ~(uintptr_t)(SLAB_PAGE - 1);
    return msync((void *)from, (uintptr_t)p + len - from, MS_SYNC) < 0 ? -errno : 0;
}

/* Stores into every page what it has already.  The kernel counts a page that it could not write as written,
 * and would not write it again otherwise. */
static int sync_again(struct slab *b)
{
    struct sync_turn turn;
    sync_begin(b->syncs, &turn);
    for (uint64_t at = 0; at < b->stored; at += SLAB_PAGE)
        __atomic_fetch_or((uint32_t *)(b->map + at), 0, __ATOMIC_RELAXED);
    return sync_end_of_all(b->syncs, &turn, sync_pages(b->map, b->bytes));
}

int slab_sync(struct slab *b, const void *p, size_t len)
{
    struct sync_turn turn;
    if (syncs_failed(b->syncs))
        return sync_again(b);
    sync_begin(b->syncs, &turn);
    return sync_end(b->syncs, &turn, sync_pages(p, len));
}

int slabs_sync(struct slabs *s)
{
    int err = 0;
    for (uint32_t n = 0; n < s->n; n++)
        if (s->slab[n].map && !err)
            err = slab_sync(&s->slab[n], s->slab[n].map, s->slab[n].bytes);
    return err;
}

int slabs_sign(struct slabs *s, const char *boot_id, bool clean)
{
    int err = 0;
    for (uint32_t n = 0; n < s->n; n++) {
        if (!s->slab[n].map)
            continue;
        struct slab_header *h = (struct slab_header *)s->slab[n].map;
        snprintf(h->boot_id, sizeof(h->boot_id), "%s", boot_id);
        h->clean = clean;
        int e = slab_sync(&s->slab[n], h, sizeof(*h));
        err = err ? err : e;
    }
    return err;
}

void slabs_close(struct slabs *s)
{
    for (uint32_t n = 0; n < s->n; n++)
        if (s->slab[n].map) {
            munmap(s->slab[n].map, s->slab[n].bytes);
            free(s->slab[n].free);
            syncs_destroy(s->slab[n].syncs);
            free(s->slab[n].syncs);
        }
    memset(s->slab, 0, sizeof(s->slab));
    s->n = 0;
}
