/* chunk_answer.c - see chunk_answer.h. */
#include "placement/chunks/chunk_answer.h"

#include <errno.h>

#include "placement/pfs/pfs_fid.h"
#include "transport/complaint.h"
#include "transport/hash.h"
#include "transport/members.h"

#define CHUNK_RACY 2u /* source: the version was racy when the chunk was read; the receiver notes that */

struct msg *chunk_answer(const struct chunk_key *key, struct chunk *c, unsigned source)
{
    struct msg *r = msg_new(MSG_CHUNK);
    r->chunk.fid = key->fid;
    r->chunk.index = key->index;
    r->chunk.version = key->version;
    r->chunk.hash = c->hash;
    r->chunk.source = (uint8_t)(source | (c->racy ? CHUNK_RACY : 0));
    r->data = c->data;
    r->head.data_len = c->len;
    r->free_data = chunk_free_data;
    r->free_arg = c;
    return r;
}

int chunk_answer_take(struct chunk *c, const struct chunk_key *key, const struct msg *reply,
                      uint64_t node)
{
    const struct body_chunk *b = &reply->chunk;
    struct chunk_key got = {.fid = b->fid, .index = b->index, .version = b->version};
    c->len = reply->head.data_len;
    c->hash = b->hash;
    c->racy = b->source & CHUNK_RACY;
    if (chunk_key_eq(&got, key) && c->len == chunk_key_len(&got) && reply->data == c->data)
        return 0;
    count(bad_answers, 1);
    complain_of_node(members_name(node), "another chunk than was asked for");
    return -EBADMSG;
}

int chunk_answer_check(const struct chunk *c, const struct chunk_key *key, uint64_t node)
{
    if (data_hash(c->data, c->len) == c->hash)
        return 0;
    char text[FID_TEXT];
    count(bad_checksums, 1);
    complain_of_node(members_name(node), "a chunk with a wrong checksum (file %s chunk %llu)",
                     fid_text(key->fid, text), (unsigned long long)key->index);
    return -EBADMSG;
}
