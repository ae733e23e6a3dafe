/* piece.c - how large the writes of a flush are. */
#include "flush/piece.h"

#include "transport/base.h"

uint64_t piece_size(uint64_t unit)
{
    if (!unit)
        return PIECE;
    if (unit > PIECE_MAX)
        return unit % PIECE_MAX ? PIECE : PIECE_MAX; /* a part of it, in step with it */
    uint64_t size = (PIECE + unit - 1) / unit * unit;
    return size <= PIECE_MAX ? size : PIECE;
}

uint64_t piece_len(uint64_t piece, uint64_t off, uint64_t end)
{
    return MIN(end - off, piece - off % piece);
}
