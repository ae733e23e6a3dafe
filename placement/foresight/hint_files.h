/* hint_files.h - the files that targets name, and what the store and the claims are to hear of them (hint_files.c).  Private to
 * placement/foresight/; all with hints_lock. */
#ifndef EDDY_PLACEMENT_FORESIGHT_HINT_FILES_H
#define EDDY_PLACEMENT_FORESIGHT_HINT_FILES_H

#include "placement/foresight/hints.h"

/* What the store is to hear of a range; or the claims of the file: it is not looked at any more (look_closed). */
struct hint_news {
    struct fid fid;
    uint64_t off, len;
    enum { NEWS_UNKNOWN, NEWS_NEVER, NEWS_HINTED, NEWS_NOT_LOOKED_AT } time;
    bool of_queue; /* a queue wants it, or wants it no more: a share may want it all the same */
};

/* ---- files ---- */
struct hinted *hints_by_path(const char *path);
struct hinted *hints_by_fid(struct fid fid);
void hints_set_fid(struct hinted *h, struct fid fid);

/* Does the store keep bytes of [off, end) for a target? */
bool hints_keep(struct fid fid, uint64_t off, uint64_t end);

/* ---- what the store is to hear, in order ---- */
void hints_tell(struct target *t, int time); /* NEWS_*; nothing if its file is not known */
bool hints_next_news(struct hint_news *out);

#endif
