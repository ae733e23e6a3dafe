/* pattern.h - what the reads of one open file look like, and which chunks they will want next.
 *
 * Only arithmetic: no locks, no I/O; the caller serialises the calls for one struct pattern.
 *
 *   sequential   0 1 2 3 4 5            also as the kernel's read-ahead sends it: 0 2 1 3 5 4
 *   interleaved  0 100 1 101 2 102      several of them, by threads or by a merge
 *   strided      0..2 50..52 100..102   records at a constant distance, forward or backward
 *   random       none of these: nothing is ever wanted
 */
#ifndef EDDY_PLACEMENT_CHUNKS_PATTERN_H
#define EDDY_PLACEMENT_CHUNKS_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#define PATTERN_STREAMS 8  /* followed at once; the one not read for longest makes way */
#define PATTERN_PAST    16 /* reads that continued nothing, in which strides are looked for */
#define PATTERN_AHEAD   16 /* ranges that one read can make wanted */

/* One stream of reads.  A record is a run of bytes without a gap; a sequential stream is one long
 * record. */
struct pattern_stream {
    uint64_t begin, end; /* of the record that is being read */
    uint64_t used;       /* when it was read last (pattern.clock); 0: this place is free */
    uint64_t read, gaps; /* sequential: bytes read in order, and what was left out between them */
    int64_t step;        /* from one record to the next; 0: sequential */
    uint64_t record;     /* step: length of a record */
    unsigned window;     /* chunks ahead; 0: nothing is recognised yet */
    bool any_asked;
    uint64_t asked; /* the chunk farthest ahead that was wanted (records: how many are ahead) */
};

struct pattern {
    uint64_t chunk;  /* bytes */
    unsigned window; /* chunks ahead, of all streams together */
    uint64_t clock;  /* reads so far */
    uint64_t usual;  /* length of the streams that ended, bytes */
    struct pattern_stream streams[PATTERN_STREAMS];
    uint64_t past[PATTERN_PAST]; /* offsets, oldest first */
    unsigned npast;
};

/* Chunks [first, last]. */
struct pattern_ahead {
    uint64_t first, last;
};

void pattern_init(struct pattern *p, uint64_t chunk, unsigned window);
/* [off, off + len) is read.  NULL: nothing new is wanted; else the stream that wants something:
 * call pattern_want. */
struct pattern_stream *pattern_saw(struct pattern *p, uint64_t off, uint64_t len);
/* What s wants now, nearest first, of a file of this size: how many ranges.  Each chunk is wanted
 * once as long as the stream goes on. */
unsigned pattern_want(struct pattern *p, struct pattern_stream *s, uint64_t size,
                      struct pattern_ahead out[PATTERN_AHEAD]);

#endif
