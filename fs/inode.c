/* inode.c - the table of the files that the kernel knows by node id.
 *
 *      node id = generation << 32 | index,  index = slot * SHARDS + shard,  shard = hash of the fid
 *
 *      shard:  slots[]    slot -> inode, and the generation of its last user
 *              buckets[]  fid -> inode (also those that are gone or retired; no look-up leads to these)
 *
 * An inode is in one shard, by its fid, and its node id has the shard's number.  So a look-up by either takes
 * one lock.  A slot's generation goes up when it is used again: a node id that was forgotten never
 * means another file.
 *
 * The pfs_node of a name has the node id of the file that we knew by this name (pfs_tag), but no reference to
 * it.
 *
 * Locks: one shard (RANK_INODES) at a time.  References to pfs_nodes are dropped without it.
 */
#include "fs/inode.h"

#include <stdlib.h>
#include <string.h>

#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"
#include "transport/base.h"

#define SHARDS     64
#define ROOT_ID    1 /* FUSE_ROOT_ID */
#define NAMES_KEPT 8 /* at most so many known names of an inode that is not in use now */

struct inode_name {
    struct pfs_node *node; /* referenced */
    bool live;             /* leads to the file; else here only because i->node may be in use */
    struct inode_name *next;
};

struct slot {
    struct inode *inode; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* slot number + 1, 0 = the end */
};

struct shard {
    struct lock lock;
    struct slot *slots;
    uint32_t nslots, free; /* free: slot number + 1 */
    struct inode **buckets;
    size_t nbuckets, count; /* power of two; count: inodes in the buckets */
};

static struct shard shards[SHARDS];
static struct inode *root;

/* ---- shards ---- */

static struct shard *shard_of_fid(struct fid fid)
{
    return &shards[fid.lo % SHARDS];
}

static struct shard *shard_of_id(uint64_t nodeid)
{
    return &shards[(uint32_t)nodeid % SHARDS];
}

static struct inode **bucket_of(struct shard *s, struct fid fid)
{
    return &s->buckets[fid.hi & (s->nbuckets - 1)];
}

static struct inode *find_fid(struct shard *s, struct fid fid)
{
    struct inode *i = s->nbuckets ? *bucket_of(s, fid) : NULL;
    while (i && !(i->listed && fid_eq(i->fid, fid)))
        i = i->fid_next;
    return i;
}

static void buckets_grow(struct shard *s)
{
    struct inode **old = s->buckets;
    size_t nold = s->nbuckets;
    s->nbuckets = nold ? nold * 2 : 64;
    s->buckets = xcalloc(s->nbuckets, sizeof(*s->buckets));
    for (size_t b = 0; b < nold; b++)
        for (struct inode *i = old[b], *next; i; i = next) {
            next = i->fid_next;
            struct inode **to = bucket_of(s, i->fid);
            i->fid_next = *to;
            *to = i;
        }
    free(old);
}

static void fid_enter(struct shard *s, struct inode *i)
{
    if (s->count >= s->nbuckets)
        buckets_grow(s);
    struct inode **to = bucket_of(s, i->fid);
    i->fid_next = *to;
    *to = i;
    i->listed = true;
    s->count++;
}

static void fid_leave(struct shard *s, struct inode *i)
{
    struct inode **at = bucket_of(s, i->fid);
    while (*at != i)
        at = &(*at)->fid_next;
    *at = i->fid_next;
    s->count--;
}

static void slots_grow(struct shard *s)
{
    uint32_t old = s->nslots;
    if (old >= (1u << 31) / SHARDS)
        die("the kernel holds more than %u inodes of this mount", 1u << 31);
    s->nslots = old ? old * 2 : 16;
    s->slots = xrealloc(s->slots, s->nslots * sizeof(*s->slots));
    for (uint32_t n = old; n < s->nslots; n++)
        s->slots[n] = (struct slot){.next_free = n + 1 < s->nslots ? n + 2 : 0};
    s->free = old + 1;
}

/* Gives i a slot and its node id.  Generations begin at 1: no node id is 0 or the root's. */
static void slot_take(struct shard *s, struct inode *i)
{
    if (!s->free)
        slots_grow(s);
    uint32_t n = s->free - 1;
    struct slot *slot = &s->slots[n];
    s->free = slot->next_free;
    if (!++slot->generation)
        slot->generation = 1;
    slot->inode = i;
    i->nodeid = (uint64_t)slot->generation << 32 | (n * SHARDS + (uint32_t)(s - shards));
}

static struct slot *slot_of(struct shard *s, uint64_t nodeid)
{
    uint32_t n = (uint32_t)nodeid / SHARDS;
    if (n >= s->nslots || !s->slots[n].inode || s->slots[n].inode->nodeid != nodeid)
        return NULL;
    return &s->slots[n];
}

static void slot_give_back(struct shard *s, struct inode *i)
{
    struct slot *slot = slot_of(s, i->nodeid);
    slot->inode = NULL;
    slot->next_free = s->free;
    s->free = (uint32_t)(slot - s->slots) + 1;
}

/* ---- an inode and its names; the shard's lock is held ---- */

static bool has_retired(struct shard *s, struct fid fid)
{
    struct inode *i = s->nbuckets ? *bucket_of(s, fid) : NULL;
    while (i && !(i->retired && fid_eq(i->fid, fid)))
        i = i->fid_next;
    return i;
}

static struct inode *make(struct shard *s, struct fid fid, mode_t type)
{
    struct inode *i = xcalloc(1, sizeof(*i));
    i->fid = fid;
    i->type = type;
    i->second = has_retired(s, fid);
    lock_init(&i->lock, RANK_INODE);
    slot_take(s, i);
    fid_enter(s, i);
    return i;
}

/* Takes over the caller's reference of node.  Returns the node if that is one too many, or NULL. */
static struct pfs_node *name_add(struct inode *i, struct pfs_node *node)
{
    struct inode_name *n = i->names;
    while (n && n->node != node)
        n = n->next;
    bool known = n;
    if (!known) {
        n = xcalloc(1, sizeof(*n));
        n->node = node;
        n->next = i->names;
        i->names = n;
    }
    n->live = true;
    i->node = node;
    pfs_tag_set(node, i->nodeid);
    return known ? node : NULL;
}

/* Takes names off i's list that are not needed while i is not in use; returns them. */
static struct inode_name *names_trim(struct inode *i)
{
    struct inode_name *off = NULL, **at = &i->names;
    unsigned kept = 0;
    while (*at) {
        struct inode_name *n = *at;
        bool keep = n->node == i->node || (n->live && ++kept < NAMES_KEPT);
        if (keep) {
            at = &n->next;
            continue;
        }
        if (n->live)
            pfs_tag_clear(n->node, i->nodeid);
        *at = n->next;
        n->next = off;
        off = n;
    }
    return off;
}

/* Without a lock, because it may close a descriptor of the PFS. */
static void names_free(struct inode_name *n)
{
    for (struct inode_name *next; n; n = next) {
        next = n->next;
        pfs_unref(n->node);
        free(n);
    }
}

static void inode_free(struct inode *i)
{
    names_free(i->names);
    lock_destroy(&i->lock);
    free(i->scan);
    free(i);
}

/* Ends i if nothing uses it; drops the shard's lock in any case. */
static void drop_unused(struct shard *s, struct inode *i)
{
    bool end = !i->refs && !i->nlookup && i != root;
    struct inode_name *off = NULL;
    if (end) {
        fid_leave(s, i);
        slot_give_back(s, i);
        for (struct inode_name *n = i->names; n; n = n->next)
            if (n->live)
                pfs_tag_clear(n->node, i->nodeid);
    } else if (!i->refs && i->names && i->names->next) {
        off = names_trim(i);
    }
    lock_drop(&s->lock);
    names_free(off);
    if (end)
        inode_free(i);
}

/* ---- the table ---- */

void inode_start(struct pfs_node *root_node, const struct statx *root_stx)
{
    for (unsigned n = 0; n < SHARDS; n++)
        lock_init(&shards[n].lock, RANK_INODES);

    root = xcalloc(1, sizeof(*root));
    root->nodeid = ROOT_ID;
    root->nlookup = 1;
    root->fid = fid_of(root_stx);
    root->type = S_IFDIR;
    root->attr.st_ino = root_stx->stx_ino;
    lock_init(&root->lock, RANK_INODE);
    pfs_expect(root_node, root->fid);

    struct shard *s = shard_of_fid(root->fid);
    lock_take(&s->lock);
    fid_enter(s, root);
    name_add(root, pfs_ref(root_node));
    lock_drop(&s->lock);
}

static void shard_empty(struct shard *s)
{
    for (uint32_t n = 0; n < s->nslots; n++)
        if (s->slots[n].inode)
            inode_free(s->slots[n].inode);
    free(s->slots);
    free(s->buckets);
    lock_destroy(&s->lock);
    memset(s, 0, sizeof(*s));
}

/* At an unmount the kernel does not forget its inodes one by one: this frees all that are left. */
void inode_stop(void)
{
    for (unsigned n = 0; n < SHARDS; n++)
        shard_empty(&shards[n]);
    inode_free(root);
    root = NULL;
}

static struct shard *shard_of_inode(const struct inode *i)
{
    return shard_of_fid(i->fid);
}

struct inode *inode_get(uint64_t nodeid)
{
    if (nodeid == ROOT_ID)
        return inode_ref(root);
    struct shard *s = shard_of_id(nodeid);
    lock_take(&s->lock);
    struct slot *slot = slot_of(s, nodeid);
    struct inode *i = slot ? slot->inode : NULL;
    if (i)
        i->refs++;
    lock_drop(&s->lock);
    return i;
}

struct inode *inode_ref(struct inode *i)
{
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    i->refs++;
    lock_drop(&s->lock);
    return i;
}

void inode_put(struct inode *i)
{
    if (!i)
        return;
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    if (!i->refs)
        die("inode_put: node %llx has no reference", (unsigned long long)i->nodeid);
    i->refs--;
    drop_unused(s, i);
}

/* The most frequent case: the file that had the name before, and was last seen by it. */
static struct inode *found_again(struct pfs_node *node, struct fid fid, mode_t type)
{
    uint64_t nodeid = pfs_tag(node);
    struct shard *s = shard_of_id(nodeid);
    lock_take(&s->lock);
    struct slot *slot = slot_of(s, nodeid);
    struct inode *i = slot ? slot->inode : NULL;
    bool same = i && i->listed && i->node == node && pfs_tag(node) == nodeid && i->type == type &&
                fid_eq(i->fid, fid);
    if (same) {
        i->nlookup++;
        i->refs++;
    }
    lock_drop(&s->lock);
    return same ? i : NULL;
}

struct inode *inode_found(struct pfs_node *node, struct fid fid, mode_t mode)
{
    mode_t type = mode & S_IFMT;
    struct inode *again = found_again(node, fid, type);
    if (again) {
        pfs_unref(node); /* its name has one */
        return again;
    }

    struct inode *before = inode_of_node(node);
    if (before && !fid_eq(before->fid, fid))
        inode_lost_name(before, node); /* another file has taken its name */
    inode_put(before);
    pfs_expect(node, fid);

    struct shard *s = shard_of_fid(fid);
    lock_take(&s->lock);
    struct inode *i = find_fid(s, fid);
    if (i && i->type != type) { /* the number was used again */
        i->listed = false;
        i->gone = true;
        i = NULL;
    }
    if (!i)
        i = make(s, fid, type);
    i->nlookup++;
    i->refs++;
    struct pfs_node *spare = name_add(i, node);
    lock_drop(&s->lock);
    if (spare)
        pfs_unref(spare);
    return i;
}

struct inode *inode_known(struct fid fid)
{
    struct shard *s = shard_of_fid(fid);
    lock_take(&s->lock);
    struct inode *i = find_fid(s, fid);
    if (i)
        i->refs++;
    lock_drop(&s->lock);
    return i;
}

struct inode *inode_beside_retired(struct inode *retired)
{
    if (!retired->retired)
        return NULL;
    struct shard *s = shard_of_inode(retired);
    lock_take(&s->lock);
    struct inode *i = *bucket_of(s, retired->fid);
    while (i && (i->retired || !fid_eq(i->fid, retired->fid)))
        i = i->fid_next;
    if (i)
        i->refs++;
    lock_drop(&s->lock);
    return i;
}

struct inode **inode_all_of(struct fid fid)
{
    struct shard *s = shard_of_fid(fid);
    size_t n = 0;
    lock_take(&s->lock);
    struct inode *first = s->nbuckets ? *bucket_of(s, fid) : NULL;
    for (struct inode *i = first; i; i = i->fid_next)
        n += fid_eq(i->fid, fid);
    struct inode **all = xcalloc(n + 1, sizeof(*all));
    for (struct inode *i = first; i; i = i->fid_next)
        if (fid_eq(i->fid, fid)) {
            i->refs++;
            all[--n] = i;
        }
    lock_drop(&s->lock);
    return all;
}

bool inode_look_again(struct inode *i)
{
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    bool ok = i->listed; /* neither gone nor retired */
    if (ok)
        i->nlookup++;
    lock_drop(&s->lock);
    return ok;
}

void inode_give(struct inode *i, uint64_t size)
{
    if (!i->given) {
        i->told_size = size;
        i->first_end = UINT64_MAX;
    }
    i->given++;
}

void inode_not_given(struct inode *i)
{
    i->given--;
    inode_forget(i->nodeid, 1);
}

bool inode_is_given(const struct inode *i)
{
    return i->given > 0;
}

void inode_forgotten(uint64_t nodeid, uint64_t nlookup)
{
    struct inode *i = inode_get(nodeid);
    if (i)
        i->given -= MIN(i->given, nlookup);
    inode_put(i);
    inode_forget(nodeid, nlookup);
}

void inode_forget(uint64_t nodeid, uint64_t nlookup)
{
    if (nodeid == ROOT_ID)
        return;
    struct shard *s = shard_of_id(nodeid);
    lock_take(&s->lock);
    struct slot *slot = slot_of(s, nodeid);
    if (!slot) {
        lock_drop(&s->lock);
        log_warn("the kernel forgets an inode that is not known: node %llx",
                 (unsigned long long)nodeid);
        return;
    }
    struct inode *i = slot->inode;
    if (nlookup > i->nlookup)
        log_warn("the kernel forgets more look-ups than it made: node %llx: %llu of %llu",
                 (unsigned long long)nodeid, (unsigned long long)nlookup,
                 (unsigned long long)i->nlookup);
    i->nlookup -= MIN(nlookup, i->nlookup);
    drop_unused(s, i);
}

void inode_gone(struct inode *i)
{
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    i->listed = false;
    i->gone = true;
    lock_drop(&s->lock);
}

void inode_retire(struct inode *i)
{
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    i->listed = false;
    i->retired = i->others = true;
    lock_drop(&s->lock);
}

bool inode_lost_name(struct inode *i, struct pfs_node *node)
{
    struct shard *s = shard_of_inode(i);
    struct inode_name *other = NULL;
    lock_take(&s->lock);
    for (struct inode_name *n = i->names; n; n = n->next) {
        if (n->node == node && n->live) {
            n->live = false;
            pfs_tag_clear(node, i->nodeid);
        } else if (n->live && !other) {
            other = n;
        }
    }
    if (other && i->node == node)
        i->node = other->node;
    lock_drop(&s->lock);
    return other;
}

bool inode_has_name(struct inode *i)
{
    struct shard *s = shard_of_inode(i);
    bool has = false;
    lock_take(&s->lock);
    for (struct inode_name *name = i->names; name; name = name->next)
        has |= name->live;
    lock_drop(&s->lock);
    return has;
}

unsigned inode_names(struct inode *i, struct pfs_node **out, unsigned max)
{
    struct shard *s = shard_of_inode(i);
    unsigned n = 0;
    lock_take(&s->lock);
    for (struct inode_name *name = i->names; name && n < max; name = name->next)
        if (name->live)
            out[n++] = pfs_ref(name->node);
    lock_drop(&s->lock);
    return n;
}

struct pfs_node *inode_other_name(struct inode *i, const struct pfs_node *node)
{
    struct shard *s = shard_of_inode(i);
    lock_take(&s->lock);
    struct inode_name *n = i->names;
    while (n && (!n->live || n->node == node))
        n = n->next;
    struct pfs_node *other = n ? pfs_ref(n->node) : NULL;
    lock_drop(&s->lock);
    return other;
}

struct inode *inode_of_node(struct pfs_node *n)
{
    uint64_t nodeid = pfs_tag(n);
    return nodeid ? inode_get(nodeid) : NULL;
}

struct inode *inode_child(struct inode *parent, const char *name)
{
    uint64_t seen_ms, nodeid = pfs_child_tag(parent->node, name, &seen_ms);
    return nodeid ? inode_get(nodeid) : NULL;
}
