/* store_self.c - the variable for the open store, of which there is one. */
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"

struct store store = {.dir = {.fd = -1}};

uint32_t store_chunk_size(void)
{
    return store.dir.chunk_size;
}
