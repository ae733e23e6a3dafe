/* moves.h - the log of moves: SESSION/moves/, which directories and files the session gave other paths, or
 * removed.
 *
 * A path in a record or a list is a hint; the fid decides.  Where the path does not lead to the file any
 * more, the log says where it may be (placement/pfs/pfs_moves.c).  A node writes an entry before it renames,
 * and drops it if the rename fails: so the entry of each rename that was done is there, whichever node died
 * when.
 *
 * All functions block on the PFS.  0 or -errno.
 */
#ifndef EDDY_TRANSPORT_MOVES_H
#define EDDY_TRANSPORT_MOVES_H

#include "transport/base.h"

#define MOVES_TRIM_EVERY 64 /* entries: who makes such a one trims the log */

struct session_move {
    uint64_t number;  /* entries are numbered in the order in which they were made, from 1 on */
    struct fid fid;   /* of what was moved */
    bool exchange;    /* what was at `to` is at `from` now */
    char *from, *to;  /* relative to the PFS directory; to "": the name was removed */
    bool last;        /* ... and it was the file's last one; written after that was done */
    /* ... and this node, in this incarnation, had the file open then; 0: none had that it knows */
    uint64_t open_at, open_inc;
};

/* Makes an entry; sets m->number. */
int session_write_move(struct session_move *m);
int session_drop_move(uint64_t number); /* the entry stays, empty: its number is not given again */
/* Calls cb for each entry with a number above `after`, in order; malformed ones are left out.  A return other
 * than 0 ends it and is returned. */
int session_each_move(uint64_t after, int (*cb)(void *arg, const struct session_move *m), void *arg);
/* Removes entries that no node needs any more: those that are older than each list of dirty files, and than
 * an hour.  A node that writes its list has taken the paths from the log before. */
int session_trim_moves(void);

/* ---- for tests and the fuzzer ---- */
char *move_print(const struct session_move *m, size_t *len);                  /* malloc'd */
int move_parse(const char *text, size_t len, struct session_move *out);      /* -EPROTO */
void move_free(struct session_move *m);                                      /* its paths */

#endif
