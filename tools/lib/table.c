/* table.c - a hash table whose items also have numbers. */
#include "tools/lib/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct table_item {
    struct table_item *next;
    uint64_t hash;
    uint32_t number;
    uint32_t len;
    uint8_t key[];
};

/* FNV-1a, by Fowler, Noll and Vo. */
static uint64_t hash_of(const void *key, size_t len)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const uint8_t *at = key; len--;)
        h = (h ^ *at++) * UINT64_C(1099511628211);
    return h;
}

static struct table_item **bucket_of(struct table *t, uint64_t hash)
{
    return &t->bucket[hash & (t->buckets - 1)];
}

static void link_item(struct table *t, struct table_item *i)
{
    struct table_item **at = bucket_of(t, i->hash);
    i->next = *at;
    *at = i;
}

/* Twice as many buckets, and room for as many items. */
static int grow(struct table *t)
{
    uint32_t cap = t->cap ? 2 * t->cap : 64;
    struct table_item **item = realloc(t->item, cap * sizeof(*item));
    if (!item)
        return -ENOMEM;
    t->item = item;
    struct table_item **bucket = calloc(cap, sizeof(*bucket));
    if (!bucket)
        return -ENOMEM;
    free(t->bucket);
    t->bucket = bucket;
    t->cap = t->buckets = cap;
    for (uint32_t i = 0; i < t->n; i++)
        link_item(t, t->item[i]);
    return 0;
}

static struct table_item *find(struct table *t, const void *key, size_t len, uint64_t hash)
{
    struct table_item *i = t->buckets ? *bucket_of(t, hash) : NULL;
    while (i && (i->hash != hash || i->len != len || memcmp(i->key, key, len)))
        i = i->next;
    return i;
}

int table_number(struct table *t, const void *key, size_t len, uint32_t *number, bool *is_new)
{
    uint64_t hash = hash_of(key, len);
    struct table_item *i = find(t, key, len, hash);
    *is_new = !i;
    if (!i) {
        if (t->n == t->cap && grow(t))
            return -ENOMEM;
        i = malloc(sizeof(*i) + len);
        if (!i)
            return -ENOMEM;
        i->hash = hash;
        i->number = t->n;
        i->len = (uint32_t)len;
        memcpy(i->key, key, len);
        t->item[t->n++] = i;
        link_item(t, i);
    }
    *number = i->number;
    return 0;
}

void table_cut(struct table *t, uint32_t n)
{
    while (t->n > n) {
        struct table_item *i = t->item[--t->n], **at = bucket_of(t, i->hash);
        while (*at != i)
            at = &(*at)->next;
        *at = i->next;
        free(i);
    }
}

void table_free(struct table *t)
{
    table_cut(t, 0);
    free(t->item);
    free(t->bucket);
    *t = (struct table){0};
}
