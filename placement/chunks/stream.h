/* stream.h - read-ahead of an open handle: fetches the chunks that its reads will want next (pattern.h), and
 * all of a small file when it is opened.
 *
 * A chunk comes from the PFS or another node.  Without read-ahead a reader would wait at each chunk's first
 * byte.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_STREAM_H
#define EDDY_PLACEMENT_CHUNKS_STREAM_H

#include "placement/chunks/fetch.h"

struct stream;
struct stream *stream_new(struct file *f);
/* begin and end are called around each fetch ahead, in its thread; they are not to wait.  Before the first handle. */
void stream_on_fetch(void (*begin)(void), void (*end)(void));
/* The handle is closed: no more chunks are fetched; a fetch that is under way ends by itself. */
void stream_close(struct stream *s);
/* The handle was opened for reading, and the file's bytes are on the PFS: fetches all of a small file.  Never
 * blocks. */
void stream_opened(struct stream *s);
/* [off, off + len) is read now.  Never blocks. */
void stream_saw(struct stream *s, uint64_t off, size_t len);

/* The handle's credit: `ahead` in the struct fetched of its reads. */
struct fetched_ahead *stream_ahead(struct stream *s);
/* Adds `from` to the counters.  Local bytes that were fetched ahead count as read from the node or PFS that
 * they came from.  s NULL: no bytes were fetched ahead. */
void stream_count(struct stream *s, const struct fetched *from);

#endif
