/* slab.h - preallocated, mapped files of fixed-size slots: where the records of files and chunks
 * live.
 *
 *   slabs/files.000, files.001 ...    slots of file records and of long paths
 *   slabs/chunks.000 ...              slots of chunk records
 *
 *   | header, 4096 bytes | page: slot slot slot .. (rest unused) | page: slot slot .. | ...
 *
 * Each is mapped once, shared.  The mapping is the state in memory, so it is still there after the
 * daemon's death.  The blocks are allocated when the file is made: a store into a hole on a full disk
 * would be SIGBUS.  A slot does not cross a page, because the kernel writes back whole pages.
 *
 * A slot's number is (slab << SLAB_SHIFT | place).  Its first word is its magic: 0 = free.  A
 * record becomes live by storing the magic last and dies by clearing it first.
 *
 * Only placement/store/state*.c uses this.  Lock: the state's (RANK_STATE), held by the caller, but for
 * slab_at, slab_make and the syncs.
 */
#ifndef EDDY_PLACEMENT_STORE_SLAB_H
#define EDDY_PLACEMENT_STORE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct syncs; /* placement/store/syncs.h */

#define SLAB_PAGE     4096u
#define SLAB_SHIFT    20
#define SLAB_MAX      4096u /* slabs of a kind */
#define SLAB_MIN_SIZE (256u << 10)
#define SLAB_MAX_SIZE (64u << 20)
#define SLOT_NONE     UINT32_MAX
#define SLOT_OFF_LIST (UINT32_MAX - 1) /* a link of what is on no list */

#define SLAB_MAGIC   UINT64_C(0x42414c5359444445) /* "EDDYSLAB" */
#define SLAB_VERSION 2u

struct slab_header {
    uint64_t magic;
    uint32_t version;
    uint32_t kind; /* enum slab_kind */
    uint32_t slot_size, chunk_size;
    uint64_t bytes; /* of the whole file */
    uint32_t clean; /* 1: everything in it and in the data files was synced at the end */
    uint32_t pad;
    char boot_id[40]; /* text of the kernel's boot id, under which it was last open */
};

enum slab_kind { SLAB_FILES = 1, SLAB_CHUNKS };

struct slab {
    uint8_t *map; /* NULL: an empty place (the slab was damaged) */
    uint64_t bytes;
    uint32_t slots, nfree, hint;
    uint64_t *free; /* a bit per slot: in memory, so that an unused slot's page is never touched */
    struct syncs *syncs;     /* of its file */
    _Atomic uint64_t stored; /* bytes: nothing was ever stored behind them */
    uint32_t written; /* opened readonly: slots from here on are all zeros; else: all of them */
};

/* All slabs of a kind. */
struct slabs {
    enum slab_kind kind;
    uint32_t slot_size, per_page, chunk_size;
    struct slab slab[SLAB_MAX];
    uint32_t n;       /* places in slab[] that are in use; some may be empty (damaged ones) */
    uint32_t damaged; /* slabs that were put aside */
    bool unclean;     /* one was not marked clean ... */
    bool other_boot;  /* ... and its boot id is not this one */
    uint64_t bytes;
    uint32_t nfree;
};

void slabs_init(struct slabs *s, enum slab_kind kind, uint32_t slot_size, uint32_t chunk_size);
/* Maps what is in the directory slabs_fd.  A slab that is not one (wrong header, short) is renamed
 * to NAME.damaged and counted (readonly: only counted).  No slot is free yet: slab_put those that
 * are.  readonly: maps private.  -errno. */
int slabs_open(struct slabs *s, int slabs_fd, const char *boot_id, bool readonly);
/* One more, of about `bytes`: slab_make makes the file (without the lock, one at a time), slab_add
 * enters it; its slots are free.  -ENOSPC, -errno. */
struct slab_made {
    uint32_t n;
    uint64_t bytes;
    void *map;
};
int slab_make(struct slabs *s, int slabs_fd, uint64_t bytes, const char *boot_id,
              struct slab_made *out);
void slab_add(struct slabs *s, const struct slab_made *made);
/* Sets boot id and clean mark of all headers, and syncs them. */
int slabs_sign(struct slabs *s, const char *boot_id, bool clean);
int slabs_sync(struct slabs *s); /* all of it */
void slabs_close(struct slabs *s);

static inline void *slab_at(const struct slabs *s, uint32_t no)
{
    uint32_t place = no & ((1u << SLAB_SHIFT) - 1);
    return s->slab[no >> SLAB_SHIFT].map + SLAB_PAGE + (size_t)(place / s->per_page) * SLAB_PAGE +
           (size_t)(place % s->per_page) * s->slot_size;
}
/* Is it the number of a slot that exists? */
bool slab_has(const struct slabs *s, uint32_t no);

uint32_t slab_take(struct slabs *s); /* a free slot, all zeros; SLOT_NONE */
void slab_put(struct slabs *s, uint32_t no);
/* The slab whose mapping p points into; NULL. */
struct slab *slab_of(struct slabs *s, const void *p);
/* Syncs the pages of [p, p + len).  -errno: they are not on the disk, and perhaps other pages of the slab are
 * not either.  So the next sync of any part of the slab stores and syncs all of it. */
int slab_sync(struct slab *b, const void *p, size_t len);

#endif
