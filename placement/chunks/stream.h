/* stream.h - read-ahead of an open handle: chunks that its reads will want next (pattern.h) are
 * fetched before they are asked for, and small files wholly when they are opened.
 *
 * A chunk comes from the PFS or another node.  Without this a reader would wait at each chunk's
 * first byte.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_STREAM_H
#define EDDY_PLACEMENT_CHUNKS_STREAM_H

#include "placement/chunks/fetch.h"

struct stream;
struct stream *stream_new(struct file *f);
/* The handle is closed: no chunk is asked for any more; a fetch under way ends by itself. */
void stream_close(struct stream *s);
/* The handle was opened for reading, of a file whose bytes are on the PFS: a small one is fetched.
 * Never blocks. */
void stream_opened(struct stream *s);
/* [off, off + len) is read now.  Never blocks. */
void stream_saw(struct stream *s, uint64_t off, size_t len);

/* For `from.ahead` of this handle's reads. */
struct fetched_ahead *stream_ahead(struct stream *s);
/* For the counters: counts `from`; its local bytes, as far as they were fetched ahead of their
 * reader, as read from where they came.  s NULL: nothing was fetched ahead. */
void stream_count(struct stream *s, const struct fetched *from);

#endif
