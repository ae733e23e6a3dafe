/* file_int.h - what the table of files (file.c) gives to file_path.c and file_end.c. */
#ifndef EDDY_PLACEMENT_STORE_FILE_INT_H
#define EDDY_PLACEMENT_STORE_FILE_INT_H

#include "placement/store/file.h"

/* As file_find, but makes the record, for which a slot is set aside, if there is none: *made. */
struct file *file_make(struct fid fid, bool *made);
/* Drops one reference.  True: that was the last one: the file is "going" now, and no other thread gets it. */
bool file_drop(struct file *f);
/* Calls take, with the table's lock held, for f, which is going.  Returns what take returned. */
bool file_give_away(struct file *f, bool (*take)(struct file *f));
/* f, which was going, has been taken down: removes it from the table, and frees it. */
void file_forget(struct file *f);
/* Registers two functions.  down takes down a file that is going, and ends with file_forget.  back gives a
 * file that was given away back to the caller, which takes it down; false: it can not. */
void file_on_end(void (*down)(struct file *f), bool (*back)(struct file *f));
/* file_end.c: registers itself. */
void file_end_start(void);

#endif
