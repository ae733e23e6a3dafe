/* moves_int.h - operations that remove, move or add names, and a file's data: what their files share.  Each uses those
 * before it:
 *
 *     moves_gone.c    a file loses a name
 *     moves_unlink.c  unlink, rmdir
 *     moves_paths.c   paths of unflushed files
 *     moves_rename.c  rename
 *     moves_link.c    link
 *
 * Nodes that have a file open of which a name goes are told (name_goes.h).  Then the PFS does it.  Then this node brings its own records up to date:
 *   - A removed name leaves the inode.  With the last name, the inode gets no new look-ups, and
 *     unflushed data of the file is never flushed (open handles still read and write it).
 *   - A moved name moves in the path tree; a directory moves with all below it.  The path hints
 *     of unflushed files follow.
 *   - The file's ctime changed, its data did not.  This is published (struct same) before the answer, since
 *     the next operation builds on it.
 *   - A directory's move is in the session's log before it is made (move_log.c), for nodes that have unflushed
 *     files below it.
 *   - A claimant at another node is told before the answer, or the log says it: else, if this node ended just then, the
 *     claimant would put what it has not flushed beside the file that has the name now.
 *
 * All functions block: pool threads only.
 */
#ifndef EDDY_FS_MOVES_INT_H
#define EDDY_FS_MOVES_INT_H

#include "fs/inode.h"
#include "fs/same.h"
#include "placement/claims/name_goes.h"
#include "placement/store/file.h"

/* ---- moves_gone.c ---- */

/* What is known of a file whose name goes. */
struct going {
    bool ours;
    bool last;         /* it was its last name */
    int names;         /* how many it has now, by a descriptor from before; < 0: not known */
    bool other;        /* another name of it was known here */
    bool tell;         /* another node may have its claim, and must be told */
    struct file *f;    /* referenced; NULL: no data of it is here */
    struct file *open; /* referenced, to be told with tell: it is open here */
    const struct name_goes *goes; /* what was known before the name went */
};
/* The calls for a name that goes, in their order. */

/* Before the name is removed.  Its file, referenced, if its claimant at another node was made to
 * keep the claim; or NULL. */
struct file *going_keep(struct inode *dir, const char *name);
/* Before it, too, and last: what seems to be the file's last name may not be it any more, as another node has just renamed the file.
 * Only a descriptor tells: the path of its record leads to another file then.  *held: one, the caller's, for going_of; -1: it is not
 * needed, or cannot be had.  -EAGAIN: the name leads to another file, *now.  -ENOENT: to none. */
int going_hold(struct inode *dir, const char *name, struct fid fid, const struct name_goes *goes, int *held, struct statx *now);
/* After that: *was is the file that it led to, with the attributes from before. */
struct going going_of(const struct statx *was, const struct name_goes *goes, int held);
/* Name `name` of `dir` is gone. */
void going_name(struct going *g, struct inode *dir, const char *name, const struct statx *was);
/* If the file has no name from now on, and is open here, this is recorded: it has the same data under a
 * new ctime, for a process that opens it again (/proc/self/fd).  This comes before the answer, and no other
 * node is told, because none can open the file. */
void going_open(const struct going *g, const struct statx *was);
/* Another node may have the claim: the answer comes after going_tell. */
bool going_must_tell(const struct going *g, const struct statx *was);
/* Its data goes, if nothing needs it any more.  Takes g->f. */
void going_data(struct going *g);
/* A file that lost one of several names has the same data under a new ctime; another name that we know shows
 * it. */
void going_others_same(const struct statx *was);
/* A claimant that does not hear it finds it in the log, and drops what it has not flushed.  If the file is
 * open here, the log says it at the last close.  Takes g->open. */
void going_tell(struct going *g, const struct statx *was, struct inode *dir, const char *name);
/* kept: of going_keep.  removed: the file that lost its last name; NULL: none did. */
void going_keep_end(struct file *kept, const struct statx *removed);

/* Tells a claimant at another node that its file has another path, or none (NULL).  goes: of what was done before its
 * name went.  False: it does not hear it, or is away, or is not known. */
bool moves_tell(const struct name_goes *goes, const struct statx *stx, const char *path);
/* Malloc'd. */
char *moves_name_path(struct inode *dir, const char *name);

/* ---- moves_paths.c ---- */

/* One of the two names of a rename, and what was there before it. */
struct side {
    struct inode *dir;
    const char *name;
    bool there;
    struct statx was;
    struct file *kept; /* of going_keep; will be replaced */
    int held;          /* of going_hold */
    struct name_goes goes;
};
/* -ENAMETOOLONG: a file that is not flushed yet would get a path that no record can have. */
int moves_paths_fit(const struct side *from, const struct side *to);
/* Sets the path hints of what moved, and of unflushed files below it. */
void moves_paths_follow(const struct side *from, const struct side *to, const char *from_path,
                        const char *to_path, bool exchange);

#endif
