/* stage_int.h - a stage, as stage.c (its life), stage_portions.c (which node is asked for what) and
 * stage_ask.c (the messages) share it. */
#ifndef EDDY_PLACEMENT_FORESIGHT_STAGE_INT_H
#define EDDY_PLACEMENT_FORESIGHT_STAGE_INT_H

#include <pthread.h>

#include "placement/foresight/bring.h"
#include "placement/foresight/stage.h"
#include "transport/members.h"

#define PORTION_CHUNKS 16u
#define LANE_MESSAGES  2          /* to one node at once */
#define PORTION_WHOLE  UINT32_MAX /* instead of a number of 16 chunks: all of the file */

struct staged_file {
    struct fid fid;
    struct version version;
    char *path;
    bool failed;
};

enum portion_state { PORTION_TODO, PORTION_ASKED, PORTION_DONE };
struct portion {
    uint32_t file, part; /* part: which 16 chunks */
    uint64_t bytes;      /* that the node is to have of it, when it has said so */
    uint64_t here;
    enum portion_state state;
};

/* What one node is asked for. */
struct lane {
    uint64_t node;
    struct portion *v;
    size_t n, cap;
    size_t next;    /* no portion before it is TODO */
    unsigned asked; /* messages that are under way: */
    uint64_t request[LANE_MESSAGES];
    bool silent; /* it did not answer */
    uint64_t room, needed; /* room: with what it keeps of these for stages already: */
    uint64_t kept;
};

struct stage_root {
    struct stage_root *next;
    char path[];
};

struct stage_failure {
    char *path;
    uint64_t node;
    int err;
};

struct stage {
    struct stage *next; /* in the list of stages, with its lock */
    _Atomic unsigned refs;
    uint32_t id;
    uint64_t number; /* for other nodes */
    struct stage_how how;
    bool whole; /* stage_check: all members, whole files */
    pthread_t thread;

    /* of the thread that works on it */
    struct stage_root *roots; /* do not change after stage_begin */
    unsigned nroots;
    struct staged_file *files;
    size_t nfiles, cap;
    struct lane *lanes;
    size_t nlanes;
    const struct view *view; /* that the lanes are of */
    uint64_t charged;        /* of hints_limit */

    struct lock lock; /* RANK_LEAF: all below */
    pthread_cond_t news;
    struct batch *answered; /* stage_ask.c */
    bool stop, ended;
    uint64_t bytes, done_bytes, nall; /* nall: files */
    struct stage_failure *failures;
    size_t nfailures;
    uint64_t nfailed; /* also of those beyond what failures has */
};

/* ---- stage_tally.c ---- */

/* Charges the stage.  -ENOBUFS */
int stage_charge(struct stage *s, uint64_t bytes);
void stage_failed(struct stage *s, uint32_t file, uint64_t node, int err);

/* So many bytes are to be brought once more. */
void stage_more(struct stage *s, uint64_t bytes);

/* ---- stage_portions.c ---- */

/* Makes the lanes from the files, by the view now.  -ENOBUFS; -EAGAIN: there is none. */
int portions_make(struct stage *s);
/* After a change of view: what nodes were asked for that others own now, and do not have, is asked
 * of these.  True: there was something. */
bool portions_follow_view(struct stage *s);
/* The lanes' portions are to be asked for anew. */
void portions_reset(struct stage *s);
void portions_free(struct stage *s);
/* Where the portion lies in its file; len 0: to the end. */
void portion_range(const struct stage *s, const struct portion *u, uint64_t *off, uint64_t *len);

/* ---- stage_ask.c ---- */

/* Asks all lanes for what they have TODO, until nothing is, or the stage or goes_on says stop:
 * -ECANCELED. */
int stage_ask(struct stage *s, enum bring_what what, bool (*goes_on)(void *arg), void *arg);
/* Tells every lane's node, or each member if there are no lanes, without files; waits for the
 * answers, which do not matter. */
void stage_tell(struct stage *s, enum bring_what what);

#endif
