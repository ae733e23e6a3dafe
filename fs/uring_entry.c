/* uring_entry.c - see uring_entry.h.
 *
 *     page:  head ...  | header, first argument |   huge page boundary, if huge
 *     payload:         other arguments, bytes   |
 *
 * The kernel puts header and first argument into the head.  libfuse wants a request in one piece, so they are copied to just
 * before the payload.  The bytes of a write are where the kernel has put them, and those of a read go there.
 */
#include "fs/uring_entry.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fs/ops.h"
#include "transport/base.h"

#define PAGE_SIZE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
/* what the kernel may put there: fs/request_pages.c asks for that one page more */
#define URING_PAYLOAD (FUSE_IO_MAX + PAGE_SIZE)
#define SMALL_STRIDE  (PAGE_SIZE + URING_PAYLOAD)
#define HUGE_STRIDE   (2 * HUGE_PAGE)
#define KEPT          ((size_t)64 << 10) /* of a payload in small pages */

/* ---- memory ---- */

static char *map_entry(bool huge, char **payload)
{
    size_t len = huge ? HUGE_STRIDE : SMALL_STRIDE;
    char *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return NULL;
    /* a page before the boundary there is always room for the head */
    *payload = huge ? m + HUGE_PAGE - (uintptr_t)m % HUGE_PAGE : m + PAGE_SIZE;
    if (huge && *payload == m)
        *payload += HUGE_PAGE;
    if (huge)
        madvise(*payload, HUGE_PAGE, MADV_HUGEPAGE);
    return m;
}

static bool make_entry(struct entry *e, struct queue *q, bool huge)
{
    e->memory = map_entry(huge, &e->payload);
    if (!e->memory)
        return false;
    e->queue = q;
    e->huge = huge;
    e->head = (struct uring_head *)(e->payload - PAGE_SIZE);
    e->parts[0] = (struct iovec){e->head, sizeof(*e->head)};
    e->parts[1] = (struct iovec){e->payload, URING_PAYLOAD};
    return true;
}

struct entry *entries_new(struct queue *q, unsigned n, unsigned huge)
{
    struct entry *all = xcalloc(n, sizeof(*all));
    for (unsigned i = 0; i < n; i++) {
        if (!make_entry(&all[i], q, i + huge >= n)) {
            entries_free(all, i);
            return NULL;
        }
    }
    return all;
}

void entries_free(struct entry *entries, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        munmap(entries[i].memory, entries[i].huge ? HUGE_STRIDE : SMALL_STRIDE);
    free(entries);
}

/* ---- a request and its answer ---- */

/* What the last answer took of small pages goes, as an entry that is rarely used is not to keep it.  Not before: the kernel takes
 * the answer from there, and puts the next request there at once. */
static void trim(struct entry *e, size_t payload)
{
    if (!e->huge && e->used > KEPT && payload <= KEPT)
        madvise(e->payload + KEPT, URING_PAYLOAD - KEPT, MADV_DONTNEED);
    e->used = payload;
}

void *entry_request(struct entry *e, size_t *n)
{
    const struct fuse_in_header *in = (const void *)e->head->in_out;
    size_t payload = e->head->entry.payload_size, before = in->len - payload;
    if (payload > URING_PAYLOAD || in->len < payload + sizeof(*in) || before > sizeof(*in) + sizeof(e->head->op_in))
        return NULL;
    char *at = e->payload - before;
    memcpy(at, in, sizeof(*in));
    memcpy(at + sizeof(*in), e->head->op_in, before - sizeof(*in));
    trim(e, payload);
    e->commit_id = e->head->entry.commit_id;
    *n = in->len;
    return at;
}

void entry_put_answer(struct entry *e, const struct iovec *iov, int n)
{
    size_t len = 0;
    memcpy(e->head->in_out, iov[0].iov_base, sizeof(struct fuse_out_header));
    for (int i = 1; i < n; i++) {
        if (len + iov[i].iov_len > URING_PAYLOAD)
            die("an answer of %zu bytes is more than was asked for", len + iov[i].iov_len);
        if (iov[i].iov_base != e->payload + len)
            memcpy(e->payload + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    e->used = MAX(e->used, len);
    e->head->entry.payload_size = (uint32_t)len;
}

/* ---- from number to entry ---- */

#define BUCKET_BITS 12
#define BUCKETS     (1 << BUCKET_BITS)

/* Held for a few instructions, inside any other lock. */
static struct {
    pthread_mutex_t lock;
    struct entry *first;
} buckets[BUCKETS] = {[0 ... BUCKETS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static unsigned bucket_of(uint64_t number)
{
    /* the kernel counts on each processor, in large steps; the multiplier is 2^64 / golden ratio (Knuth, TAOCP 3, 6.4) */
    return (unsigned)(number * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BUCKET_BITS));
}

void entry_enter(struct entry *e, uint64_t number)
{
    unsigned b = bucket_of(number);
    e->number = number;
    pthread_mutex_lock(&buckets[b].lock);
    e->next = buckets[b].first;
    buckets[b].first = e;
    pthread_mutex_unlock(&buckets[b].lock);
}

struct entry *entry_take(uint64_t number)
{
    unsigned b = bucket_of(number);
    pthread_mutex_lock(&buckets[b].lock);
    struct entry **at = &buckets[b].first;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    struct entry *e = *at;
    if (e)
        *at = e->next;
    pthread_mutex_unlock(&buckets[b].lock);
    return e;
}
