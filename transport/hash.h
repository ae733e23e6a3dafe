/* hash.h - the checksum of data, on the wire and in the store: XXH3-64.
 *
 * The library's plain function uses the instructions that every processor of its kind has (on
 * x86-64: SSE2, 58 us for 1 MiB).  Its dispatcher, if it was built with one, uses those that this
 * processor has (AVX2: 16 us).  The value is the same.
 */
#ifndef EDDY_TRANSPORT_HASH_H
#define EDDY_TRANSPORT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>
#ifdef EDDY_XXH3_DISPATCH
#define XXH_DISPATCH_DISABLE_REPLACE /* XXH3_64bits stays the plain one */
#include <xxh_x86dispatch.h>
#endif

static inline uint64_t data_hash(const void *data, size_t len)
{
#ifdef EDDY_XXH3_DISPATCH
    return XXH3_64bits_dispatch(data, len);
#else
    return XXH3_64bits(data, len);
#endif
}

#endif
