/* stream.h - read-ahead: when an open handle is read in order, the next chunks are fetched before
 * they are asked for.
 *
 * The kernel reads ahead 128 KiB; a chunk comes from the PFS or another node.  Without this a
 * reader would wait at each chunk's first byte.
 */
#ifndef EDDY_PLACEMENT_STREAM_H
#define EDDY_PLACEMENT_STREAM_H

#include "placement/fetch.h"

struct stream;
struct stream *stream_new(struct file *f);
/* The handle is closed: no chunk is asked for any more; a fetch under way ends by itself. */
void stream_close(struct stream *s);
/* [off, off + len) is read now.  Never blocks. */
void stream_saw(struct stream *s, uint64_t off, size_t len);

/* For the counters: counts `from`; its local bytes, as far as they were fetched ahead of their
 * reader, as read from where they came. */
void stream_count(struct stream *s, const struct fetched *from);

#endif
