/* state.h - records of files and of their chunks' pages, in mapped slabs, and their indexes.
 *
 * What a record says is true at any instant, so that `kill -9` leaves a usable store (docs/store.md
 * has the format).  What belongs together (size, base, cut, claim ...) is a struct file_core; there
 * are two, and one word tells which counts: a change fills the other and then turns the word.  Page
 * bits are set and cleared in an order of which every prefix is true (placement/store/pages.c).
 *
 * Locks: a file's record, its chunk records and their list belong to the file's lock (RANK_FILE),
 * but for the LRU links, which belong to placement/store/eviction.c.  The indexes and free slots have a lock
 * of their own in here (RANK_STATE).
 */
#ifndef EDDY_PLACEMENT_STORE_STATE_H
#define EDDY_PLACEMENT_STORE_STATE_H

#include "placement/store/slab.h"
#include "placement/store/trace.h"
#include "transport/base.h"

#define FILE_MAGIC     0x31454c46u /* "FLE1" */
#define PATH_MAGIC     0x31485450u /* "PTH1" */
#define CHUNK_MAGIC    0x314b4843u /* "CHK1" */
#define FILE_SLOT      576u
#define INLINE_PATH    120u
#define PATH_PIECE     552u
#define STATE_PATH_MAX ((size_t)PATH_BYTES_MAX)

/* ---- a file ---- */

enum core_flags {
    CORE_BASE = 1,    /* base is known */
    CORE_CLAIMED = 2, /* this node has the claim: claim_inc, claim_number */
    CORE_DIRTY = 4, /* something is not on the PFS: pages, size, cut or times.  Set before the first
                       dirty page */
    CORE_MTIME_SET = 8, /* utimens after the last write; a loan: or no write at all */
    CORE_DELETED = 16,  /* unlinked: never flushed, dropped at the last put and at start */
    CORE_RACY = 32,     /* clean pages were filled while the version was racy */
    CORE_FLUSHING =
        64, /* a run has begun to change the PFS file: its version differs by this node's own doing */
    CORE_KERNEL_IO =
        128, /* applications may have stored through the kernel since the last flush that counts:
                the data file itself is the record (kernel_io.c).  Set together with CORE_DIRTY */
    CORE_ALL = 255,
};

struct file_core {
    uint64_t size, base_end, cut;
    struct version base;
    int64_t mtime_ns, ctime_ns;
    uint64_t claim_inc, claim_number;
    uint32_t flags;
    uint32_t raised_mode; /* STORE_NO_MODE */
    uint64_t check;       /* XXH3 of what is before, seeded by the fid */
};

/* file_record.data_made.  A data file is made while this is DATA_BEGUN.  If there is none then, it was never
 * made: the daemon died, or the disk was full. */
enum { DATA_NONE, DATA_BEGUN, DATA_MADE };

enum { DOUBLED = 1, DOUBLED_COVERED }; /* file_record.doubled; the latter: by both of them */

enum { UNCUT_END = 1, UNCUT_PAGES = 2 }; /* file_record.uncut */

struct file_record {
    uint32_t magic; /* live: FILE_MAGIC; first of the slot */
    uint32_t check; /* of the fid */
    struct fid fid;
    /* Where the path is: slot (SLOT_NONE: path[]) in the upper half, length (16 bits), checksum
     * (16). */
    uint64_t path_where;
    uint32_t core_now;  /* 0 or 1 */
    uint32_t data_made; /* is there a data file? */
    struct file_core core[2];
    struct file_core
        covered; /* as it was at the last fsync, with the pages that are covered; check 0: none */
    /* made again at start: */
    uint32_t self;
    uint32_t first_chunk, last_chunk; /* list through chunk_record's file_next */
    uint32_t busy_next, busy_prev;    /* list of the busy records */
    uint32_t data_synced;             /* its directory entry is on disk */
    uint64_t valid, zero, dirty;      /* pages */
    /* descriptors or mappings that the kernel serves may be left; kept over starts */
    uint32_t passed;
    /* made again at start: one of its chunks had two records (DOUBLED); records of its chunks were
     * freed since the last state_sync_freed */
    uint8_t doubled;
    /* bytes of path[] that are a path, this one or the one before; 0: not known; kept over starts */
    uint8_t inline_len;
    uint16_t pad;
    uint8_t freed;
    /* a sync of the data file failed, and the PFS does not have what it was to bring to the disk; kept
     * over starts of one boot */
    uint8_t unsynced;
    /* a page that is not valid is a hole: it is zeros here, and on the PFS, but for a truncation that is owed
     * (cut); kept over starts of one boot (store_int.h) */
    uint8_t whole;
    /* parts of it may be lent to other nodes (store_lend.h); kept over starts */
    uint8_t lent;
    /* made again at start: a power loss took something of it, and the log says so */
    uint8_t loss_told;
    /* it has no name, or this node is removing its last one: if it is gone from the PFS, the cache may drop it; kept
     * over starts */
    uint8_t leaving;
    uint8_t policy; /* what flush noted (store_set_policy); kept over starts */
    /* the data file may have bytes where it should have none, after a failed truncation (UNCUT_END) or a
     * failed punch (UNCUT_PAGES, in pages that are not valid); kept over starts */
    uint8_t uncut;
    struct file_trace trace; /* kept over starts */
    /* of a loan: the node that has lent (claim_inc, claim_number: its claim); kept over starts */
    uint64_t lender;
    char path[INLINE_PATH];
};

/* A piece of a longer path. */
struct path_record {
    uint32_t magic;
    uint32_t next;   /* slot or SLOT_NONE */
    uint32_t used;   /* bytes */
    uint32_t marked; /* start only */
    uint32_t pad[2];
    char bytes[PATH_PIECE];
};
_Static_assert(sizeof(struct file_core) == 96, "disk format");
_Static_assert(sizeof(struct file_record) == FILE_SLOT, "disk format");
_Static_assert(sizeof(struct path_record) == FILE_SLOT, "disk format");

static inline const struct file_core *core_of(const struct file_record *r)
{
    return &r->core[__atomic_load_n(&r->core_now, __ATOMIC_RELAXED) & 1];
}
/* Does this node owe something for the file: bytes or times to the PFS, the claim to its home, the mode to
 * the PFS file? */
static inline bool core_busy(const struct file_core *c)
{
    return !!(c->flags & CORE_CLAIMED) || (c->flags & (CORE_DIRTY | CORE_DELETED)) == CORE_DIRTY ||
           c->raised_mode != UINT32_MAX;
}
/* A change of the core: fill what core_change gives, then core_commit.  After a crash, either all of the
 * change is found or nothing of it.  File's lock. */
struct file_core *core_change(struct file_record *r);
void core_commit(struct file_record *r);
uint64_t core_check(const struct file_core *c, struct fid fid);

/* Stores before it are in the mapping before stores after it. */
static inline void crash_order(void)
{
#ifndef __SANITIZE_THREAD__ /* it knows no fences, and takes a thread's order as it stands */
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- a chunk ---- */

enum chunk_flags {
    CHUNK_OWNED = 1,   /* this node keeps the session's copy (else a replica): as its owner on the ring, or for it */
    CHUNK_HASH = 2,    /* hash is XXH3-64 of the chunk's bytes */
    CHUNK_WRITTEN = 4, /* written since the base version was set: its bytes are not on the PFS under
                          that version */
    /* made again at start: */
    CHUNK_SYNCED = 8,   /* the disk has its bits as they are, since the last fsync */
    CHUNK_COVERED = 16, /* the disk may have it with covered pages */
    CHUNK_ALL = 31,
};

struct chunk_record {
    uint32_t magic;
    uint16_t flags;
    uint16_t touched; /* eviction.c */
    struct fid fid;
    uint64_t index;
    uint64_t hash;
    uint32_t check; /* of fid and index */
    uint32_t self;  /* from here to bits: made again at start */
    uint32_t file_next, file_prev;
    uint32_t lru_next, lru_prev; /* eviction.c */
    /* Four bitmaps of one bit per page, each of state_words() words:
     * valid    the page's bytes are in the data file
     * dirty    they are not on the PFS
     * covered  they were fsynced while they were dirty; a flush leaves it until the next fsync
     * zero     valid, and zeros without blocks in the data file */
    uint64_t bits[];
};
_Static_assert(sizeof(struct chunk_record) == 64, "disk format");
enum { BITS_VALID, BITS_DIRTY, BITS_COVERED, BITS_ZERO, BITS_KINDS };

uint32_t state_pages(void); /* pages of a chunk */
uint32_t state_words(void); /* words of a bitmap */
static inline uint64_t *chunk_bits(struct chunk_record *c, unsigned kind, uint32_t words)
{
    return c->bits + kind * words;
}

#endif
