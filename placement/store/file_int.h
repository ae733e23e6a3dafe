/* file_int.h - what the table of files (file.c) gives to file_path.c and file_end.c. */
#ifndef EDDY_PLACEMENT_STORE_FILE_INT_H
#define EDDY_PLACEMENT_STORE_FILE_INT_H

#include "placement/store/file.h"

/* As file_find, but makes the record, for which a slot is set aside, if there is none: *made. */
struct file *file_make(struct fid fid, bool *made);
/* One reference less.  True: that was the last one.  The file is "going" now: nobody else gets it. */
bool file_drop(struct file *f);
/* Asks whether take has f, which is going, with the table's lock held. */
bool file_give_away(struct file *f, bool (*take)(struct file *f));
/* f, which is going, has been taken down: out of the table, and freed. */
void file_forget(struct file *f);
/* down takes down a file that is going, and ends with file_forget; back: true: one that was given away is the
 * caller's again, who takes it down. */
void file_on_end(void (*down)(struct file *f), bool (*back)(struct file *f));
/* file_end.c: registers itself. */
void file_end_start(void);

#endif
