/* state_table.h - all records: mapped, found, made, freed (state_open.c, state_index.c, state_path.c).
 * state.h says what one is, and has the locks. */
#ifndef EDDY_PLACEMENT_STORE_STATE_TABLE_H
#define EDDY_PLACEMENT_STORE_STATE_TABLE_H

#include "placement/store/slab.h"
#include "placement/store/state.h"

struct state_report {
    uint32_t torn_files, torn_chunks, torn_paths, damaged_slabs; /* dropped */
    uint32_t stray_chunks; /* dropped, too: of no file, or the second one of a chunk */
    bool unclean;          /* the last daemon did not end cleanly ... */
    bool power_loss;       /* ... and the node was booted since */
};

/* Maps the slabs below slabs_fd (kept by the caller) and makes the indexes; torn records are
 * logged, dropped and counted. */
int state_open(int slabs_fd, uint32_t chunk_size, const char *boot_id, struct state_report *rep);
/* Recovery is done: from now on this boot's daemon is writing. */
int state_start(void);
/* clean: sets the marks and syncs. */
int state_close(bool clean);
uint64_t state_slab_bytes(void);

/* Writes the pages of a record, or of a part of one, to the disk.  Without the state's lock.  -errno: it
 * is not there; the next call tries again, also for what was stored before. */
int state_sync(const void *record, size_t len);

/* Slots.  state_reserve sets n free slots of a kind aside, for that many *_new calls; false:
 * state_grow, or free some. */
bool state_reserve(enum slab_kind kind, uint32_t n);
void state_unreserve(enum slab_kind kind, uint32_t n);
/* n: as many as were wanted. */
int state_grow(enum slab_kind kind, uint32_t n, uint64_t slab_bytes);

struct file_record *state_file_find(struct fid fid);
struct file_record *state_file_new(struct fid fid); /* takes one reserved file slot */
void state_file_free(struct file_record *r);        /* it has no chunks */
/* The path has STATE_PATH_MAX bytes at most.  Takes reserved file slots, state_path_slots(len) at most; returns how many.  A crash leaves the
 * old path or the new one. */
uint32_t state_path_set(struct file_record *r, const char *path);
uint32_t state_path_slots(size_t len);
/* The slots of the path's pieces, which are to be on the disk for a record that is to survive a power
 * loss, each FILE_SLOT bytes; returns how many. */
#define PATH_PIECES_MAX ((STATE_PATH_MAX + PATH_PIECE - 1) / PATH_PIECE)
unsigned state_path_pieces(const struct file_record *r, const void *piece[PATH_PIECES_MAX]);
size_t state_path_get(const struct file_record *r, char buf[STATE_PATH_MAX + 1]); /* "" if torn */
/* Makes sure that freed records are gone on the disk, too, where they may still be as they were.  An fsync
 * counts only after that: else the file, or one of its chunks, could have two records after a power loss.
 * chunks: some of the file's chunk records were freed (file_record.freed).  -errno: they may be left. */
int state_sync_freed(bool chunks);
uint64_t state_files(void), state_chunks(void);

struct chunk_record *state_chunk_find(struct fid fid, uint64_t index);
struct chunk_record *state_chunk_new(struct file_record *r,
                                     uint64_t index); /* takes one reserved chunk slot */
void state_chunk_free(struct file_record *r, struct chunk_record *c);
struct chunk_record *state_chunk_at(uint32_t no); /* NULL for SLOT_NONE */
/* Moves it to the front of its file's list, where dirty ones are kept. */
void state_chunk_front(struct file_record *r, struct chunk_record *c);

/* Puts the record on the list of busy ones (core_busy), or takes it off. */
void state_busy_set(struct file_record *r, bool busy);
/* Fids of the busy ones, malloc'd; *n of them. */
struct fid *state_busy(size_t *n);
/* All live records, for start: no locks, no other thread. */
void state_each_file(void (*fn)(struct file_record *r, void *arg), void *arg);

#endif
