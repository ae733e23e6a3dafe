/* table.h - texts that are numbered in the order in which they come (table.c).  Not locked. */
#ifndef EDDY_TOOLS_LIB_TABLE_H
#define EDDY_TOOLS_LIB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros is empty. */
struct table {
    struct table_item **item; /* by number */
    struct table_item **bucket;
    uint32_t n, cap, buckets;
};
/* The number of these bytes, which get one if they have none (*is_new).  0 or -ENOMEM. */
int table_number(struct table *t, const void *key, size_t len, uint32_t *number, bool *is_new);
/* Forgets those with this number or a higher one. */
void table_cut(struct table *t, uint32_t n);
void table_free(struct table *t);

#endif
