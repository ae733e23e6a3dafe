/* eddy_files.h - the files that are not on the PFS, as they are shown (eddy_files.c); the progress line
 * (eddy_progress.c). */
#ifndef EDDY_TOOLS_EDDY_FILES_H
#define EDDY_TOOLS_EDDY_FILES_H

#include <jansson.h>
#include <stdint.h>

#include "fs/daemon/control.h"

/* ---- eddy_progress.c ---- */
struct progress {
    const char *what; /* "flushing" */
    uint64_t last_ms, last_bytes, shown_ms;
    double rate; /* bytes per second */
};
/* On a terminal: "flushing: 1.0 GiB of 3.2 GiB, 500.0 MiB/s, 5 s left". */
void progress_show(struct progress *p, uint64_t done, uint64_t total);
void progress_clear(void);

/* ---- eddy_files.c ---- */
/* Local time of seconds since 1970 as "2026-01-31 12:00:00"; "?" of what is no time. */
#define TIME_TEXT 40
void time_text(double seconds, char out[TIME_TEXT]);
/* Of a file in a cache directory. */
#define UNFLUSHED_BORROWED \
    "another node has borrowed parts of it: start eddyfs there again, or recover its cache directory; then this one's"
/* With the cache directory: the store says -EUCLEAN of what is unflushed in it. */
#define UNFLUSHED_DAMAGED                                                                          \
    "%s: some of its records (slabs/) are damaged: more files than are named here may not be on "  \
    "the PFS; compare those that were written with what the PFS has"

struct unflushed {
    char *path; /* escaped, so that it is one line */
    char *reason;
    uint64_t bytes;
};
struct unflushed_list {
    struct unflushed *files;
    size_t n;
};
void unflushed_add(struct unflushed_list *l, const char *escaped_path, uint64_t bytes,
                   const char *reason);
/* From {"file": {...}} or an element of failed_files. */
void unflushed_add_json(struct unflushed_list *l, const json_t *file);
/* One line each on standard output. */
void unflushed_print(const struct unflushed_list *l);
void unflushed_sort(struct unflushed_list *l);
const char *unflushed_reason(const struct unflushed_list *sorted,
                             const char *escaped_path); /* NULL: not in it */
void unflushed_free(struct unflushed_list *l);
/* Asks the daemon what is not on the PFS now.  timeout_ms: of its silence; all of it takes 30 s at most. */
int unflushed_ask(const struct mount_entry *e, uint64_t timeout_ms, struct unflushed_list *l);

#endif
