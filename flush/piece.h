/* piece.h - how large the writes of a flush are: pure. */
#ifndef EDDY_FLUSH_PIECE_H
#define EDDY_FLUSH_PIECE_H

#include <stdint.h>

#define PIECE     (4u << 20)  /* a write of a flush, and how far it goes on when a lull ends ... */
#define PIECE_MAX (16u << 20) /* ... where the PFS likes larger ones */

/* Pieces begin and end at multiples of this: the smallest multiple of the PFS's unit that is not
 * below PIECE; PIECE where that would be too large. */
uint64_t piece_size(uint64_t unit);
/* How many bytes of [off, end) are in the next piece. */
uint64_t piece_len(uint64_t piece, uint64_t off, uint64_t end);

#endif
