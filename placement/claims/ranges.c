/* ranges.c - see ranges.h. */
#include "placement/claims/ranges.h"

#include "transport/base.h"

#include <stdlib.h>
#include <string.h>

static void swap(char *x, char *y, size_t size)
{
    char copy[RANGES_ITEM_MAX];
    memcpy(copy, x, size);
    memcpy(x, y, size);
    memcpy(y, copy, size);
}

/* Each item goes to the next free place of its member's range, and the one that was there is looked at
 * next. */
static void move_to_ranges(char *items, size_t size, uint32_t *of, const uint32_t *at,
                           uint32_t nmembers)
{
    uint32_t *free_at = xcalloc((size_t)nmembers + 1, sizeof(*free_at));
    memcpy(free_at, at, nmembers * sizeof(*free_at));
    for (uint32_t m = 0; m < nmembers; m++) {
        while (free_at[m] < at[m + 1]) {
            uint32_t i = free_at[m], its = of[i], to = free_at[its]++;
            if (its == m)
                continue;
            swap(items + i * size, items + to * size, size);
            of[i] = of[to];
            of[to] = its;
        }
    }
    free(free_at);
}

uint32_t *ranges_sort(void *items, uint32_t n, size_t size, uint32_t *of, uint32_t nmembers)
{
    uint32_t *at = xcalloc((size_t)nmembers + 1, sizeof(*at));
    if (size > RANGES_ITEM_MAX)
        die("ranges_sort: an item of %zu bytes", size);
    for (uint32_t i = 0; i < n; i++)
        at[of[i] + 1]++;
    for (uint32_t m = 0; m < nmembers; m++)
        at[m + 1] += at[m];
    move_to_ranges(items, size, of, at, nmembers);
    return at;
}
