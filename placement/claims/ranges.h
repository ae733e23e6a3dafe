/* ranges.h - items sorted by the member of a view that they are for, in place and in linear time: there
 * may be millions, of a few members. */
#ifndef EDDY_PLACEMENT_CLAIMS_RANGES_H
#define EDDY_PLACEMENT_CLAIMS_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_ITEM_MAX 128 /* bytes */

/* of[i]: the index of item i's member, below nmembers; it is sorted with the items.  Answers where the
 * items of each member begin, and where the last one's end: nmembers + 1 numbers, malloc'd.  The order
 * within a range is any. */
uint32_t *ranges_sort(void *items, uint32_t n, size_t size, uint32_t *of, uint32_t nmembers);

#endif
