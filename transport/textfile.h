/* textfile.h - small text files in a directory on the PFS that several nodes share, and reading
 * their words.
 *
 * Used by the files of transport/ that make up session.h.  Everything blocks on the PFS.  Files are
 * read as hostile: not through links, regular files only, with a bound.
 */
#ifndef EDDY_TRANSPORT_TEXTFILE_H
#define EDDY_TRANSPORT_TEXTFILE_H

#include "transport/base.h"

#define TEXTFILE_TEMP ".new-" /* begins the name of what is not complete yet */

/* The file's bytes in *text (malloc'd, a NUL behind them).  -ENOENT; -EFBIG above max; -EPROTO: not
 * a regular file. */
int textfile_read(int dirfd, const char *name, size_t max, char **text, size_t *len);
/* Makes a file that is complete when it appears.  -EEXIST: another node was first; -EOPNOTSUPP: this
 * file system has neither link() nor an exclusive rename. */
int textfile_create(int dirfd, const char *name, const void *text, size_t len);
/* Makes or replaces a file in one step; one writer at a time for each name. */
int textfile_replace(int dirfd, const char *name, const void *text, size_t len);
/* Removes what textfile_create left behind when its node died: temporary files older than an hour
 * by the PFS's clock. */
void textfile_sweep(int dirfd, int64_t pfs_now_ns);

/* The PFS's clock: the mtime that utimens gives to a file made now in dirfd. */
int textfile_now(int dirfd, int64_t *mtime_ns);
/* How far the PFS's clock is ahead of this node's CLOCK_REALTIME, ns, measured by writes to a file made now
 * in dirfd.  It is never more than the true value.  It may be less: by the time that the quickest of a few
 * tries took, and by up to a second where time stamps are whole seconds. */
int textfile_clock(int dirfd, int64_t *ahead_ns);
/* From the server, not from a cache. */
int textfile_mtime(int dirfd, const char *name, int64_t *mtime_ns);

/* Opens a directory below dirfd for reading it anew; *dir is a DIR (closedir). */
int textfile_opendir(int dirfd, const char *name, void **dir);
/* NULL: the end, or *err is set: a list that ended early must not be mistaken for a complete one. */
struct dirent *textfile_readdir(void *dir, int *err);

/* Is there a name in an open directory?  It is read, nothing is looked up.  1, 0 or -errno. */
int textfile_is_listed(int dirfd, const char *name);

/* ---- words.  After the first mistake `bad` is set, nothing moves and everything gives 0. ---- */
struct words {
    const char *p, *end;
    bool bad;
};
struct words words_of(const char *text, size_t len);
void words_match(struct words *w, const char *literal);
uint64_t words_u64(struct words *w, uint64_t max); /* decimal */
uint64_t words_hex(struct words *w);               /* 16 hexadecimal digits */
/* Printable bytes without blanks, 1 .. size - 1 of them; NUL-terminated. */
void words_word(struct words *w, char *buf, size_t size);
void words_end(struct words *w); /* nothing may follow */

/* 16 hexadecimal digits as the name of a file. */
#define ID_NAME_SIZE 17
void id_print(uint64_t id, char name[ID_NAME_SIZE]);
bool id_parse(const char *name, uint64_t *id);

#endif
