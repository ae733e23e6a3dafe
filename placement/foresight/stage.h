/* stage.h - staging: files are brought before anybody reads them, to this node or each chunk to its
 * owner (`eddy stage`).
 *
 *     stage_new --> stage_add, each file --> stage_look: does it fit? --> stage_begin
 *                                                                    it goes on in a thread
 *
 * A stage asks nodes (BRING, bring.h) for *portions*: a portion is a file, or 16 chunks of one, at
 * one node, which brings of it what it owns; or all of it, if the files are to be here.  When a
 * node dies, the portions for which it was asked are asked of the nodes that own their chunks then;
 * what others have brought stays.  What stages have in memory is bounded with the hints
 * (`--memory`): about 140 bytes and its path for a file.
 *
 * Any thread, no lock held; nothing blocks but what says so.  Paths are relative to the root of the
 * mount.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_STAGE_H
#define EDDY_PLACEMENT_FORESIGHT_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/fid.h"

struct stage;
struct stage_how {
    bool spread;     /* each chunk at its owner; else all on this node */
    uint64_t pin_ms; /* how long it stays at least; 0: as long as there is room, UINT64_MAX: until
                        stage_drop */
};
struct stage *stage_new(const struct stage_how *how); /* referenced */
void stage_put(struct stage *s);
/* -ENOBUFS: there is no memory for it.  Before stage_look. */
int stage_add(struct stage *s, const char *path, struct fid fid, const struct version *v);
/* A path that the user has named, by which the stage is found; the first 1000.  -ENOBUFS */
int stage_add_root(struct stage *s, const char *path);

struct stage_fit {
    uint64_t files, bytes; /* of the files */
    uint64_t here;         /* bytes of these that are where they are to be */
    uint64_t needed, room; /* of the node that has the least room for what it is to have: `node` */
    uint64_t node;
    bool fits;
};
/* Asks the nodes what they have, and have room for.  Blocks as long as goes_on returns true, but
 * for a moment.  0; -ECANCELED; -ENOBUFS; -EAGAIN: this node is in no session now. */
int stage_look(struct stage *s, bool (*goes_on)(void *arg), void *arg, struct stage_fit *fit);
/* The same; each member is asked what it has of each file.  fn is called for each file, and for
 * each node that has bytes of it. */
typedef void stage_has_fn(void *arg, const char *path, uint64_t size, uint64_t node,
                          uint64_t bytes);
int stage_check(struct stage *s, bool (*goes_on)(void *arg), void *arg, stage_has_fn *fn,
                void *fn_arg);

/* Goes on without the caller.  -EAGAIN: too many stages go on already. */
int stage_begin(struct stage *s);
/* What was not brought yet is not any more; what is here stays, as if it had been read.  May be
 * called again. */
void stage_cancel(struct stage *s);

struct stage_status {
    uint32_t id;
    bool spread, ended, cancelled;
    uint64_t pin_ms, files, bytes, done_bytes, failed;
};
void stage_status(struct stage *s, struct stage_status *out);
/* Waits until it has ended, ms at most: true. */
bool stage_wait(struct stage *s, uint64_t ms);
/* The files that could not be brought, the first 10,000 of them, after it has ended; node: which said so.  err: -ENOENT:
 * there is no such file any more; -EBUSY: another node has bytes of it that are not on the PFS;
 * -EHOSTDOWN: an absent one; -ESTALE: it changes again and again; or else. */
typedef void stage_failed_fn(void *arg, const char *path, uint64_t node, int err);
void stage_each_failed(struct stage *s, stage_failed_fn *fn, void *arg);

/* ---- those that go on, and the last ones that have ended ---- */

/* Referenced; NULL: none has this number. */
struct stage *stage_find(uint32_t id);
/* Calls fn for each, the newest first, that has a root that is this path, or is below or above it;
 * "": all. */
void stages_each(const char *path, void (*fn)(void *arg, struct stage *s), void *arg);
/* No stage wants these files any more, on any node; s NULL: no stage wants anything.  Blocks as
 * stage_look. */
int stage_drop(struct stage *s, bool (*goes_on)(void *arg), void *arg);

void stages_start(void);
/* All end; blocks.  While peers still run. */
void stages_stop(void);

#endif
