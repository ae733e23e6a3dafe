/* pattern.h - recognises the pattern of the reads of one open file, and which chunks they will want next.
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

#define PATTERN_STREAMS 8  /* followed at once; a new one takes the place of the least recently read */
#define PATTERN_PAST    16 /* remembered reads that matched no stream: strides are found among them */
#define PATTERN_AHEAD   16 /* ranges that can be wanted after one read */

/* One stream of reads.  A record is a run of bytes without a gap; a sequential stream is one long
 * record. */
struct pattern_stream {
    uint64_t begin, end; /* of the record that is being read */
    uint64_t used;       /* when it was read last (pattern.clock); 0: this place is free */
    uint64_t read, gaps; /* sequential: bytes read in order, and bytes left out between them */
    int64_t step;        /* from one record to the next; 0: sequential */
    uint64_t record;     /* if step: length of a record */
    unsigned window;     /* chunks ahead; 0: nothing is recognised yet */
    bool any_asked;
    uint64_t asked; /* the farthest chunk that was wanted (of records: how many were wanted ahead) */
};

struct pattern {
    uint64_t chunk;  /* bytes */
    unsigned window; /* chunks ahead, of all streams together */
    uint64_t clock;  /* reads so far */
    uint64_t usual;  /* a stream is recognised after START and so many bytes, since others ended so soon */
    struct pattern_stream streams[PATTERN_STREAMS];
    uint64_t past[PATTERN_PAST]; /* offsets, oldest first */
    unsigned npast;
};

/* Chunks [first, last]. */
struct pattern_ahead {
    uint64_t first, last;
};

void pattern_init(struct pattern *p, uint64_t chunk, unsigned window);
/* [off, off + len) is read.  NULL: no new chunk is wanted; else a stream, for which the caller calls
 * pattern_want. */
struct pattern_stream *pattern_saw(struct pattern *p, uint64_t off, uint64_t len);
/* Sets the ranges that s wants now from a file of this size, nearest first, and returns their number.  Each
 * chunk is wanted only once as long as the stream goes on. */
unsigned pattern_want(struct pattern *p, struct pattern_stream *s, uint64_t size,
                      struct pattern_ahead out[PATTERN_AHEAD]);

#endif
