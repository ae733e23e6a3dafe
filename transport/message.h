/* message.h - every message between nodes, described once.
 *
 * The structs, encode, decode (with bounds), the names in the log, the golden
 * files and the fuzzer's seeds are made from the tables below.
 *
 * On the wire, little-endian: head (72 bytes), body (fields in table order), then
 * bulk data, if any.  Head and body travel as the UCX active message header when
 * they fit there (<= MSG_INLINE_MAX), else head alone is the AM header and the
 * body is the first body_len bytes of the AM payload.  See docs/wire.md.
 *
 * An unknown type is answered with ENOTSUP (if it is a request).  Decoders accept a
 * body longer than they know (newer minor version) and refuse a shorter one.
 */
#ifndef EDDY_TRANSPORT_MESSAGE_H
#define EDDY_TRANSPORT_MESSAGE_H

#include "transport/base.h"

#define MSG_MAGIC 0x59444445u /* "EDDY" */
/* A peer of another major version is refused; minor versions only add: types, and fields at a
 * body's end. */
#define MSG_MAJOR      9
#define MSG_MINOR      3
#define MSG_VERSION    (MSG_MAJOR << 8 | MSG_MINOR)
#define MSG_HEAD_SIZE  72
#define MSG_INLINE_MAX 4096
#define MSG_BODY_MAX   (8u << 20)
#define MSG_DATA_MAX   (16u << 20)
#define MSG_PATH_MAX   PATH_BYTES_MAX
/* What has as many items as there are files, locks or nodes goes in pieces (ADOPTED, COPY), of so
 * many items in all their lists together: at most 256 KiB of body, but for COPY of one file with
 * more locks. */
#define MSG_PIECE_ITEMS 4096

/* flags in the head */
#define MSG_F_REPLY 1u /* answers `request` of the receiver */
#define MSG_F_WANTS 2u /* the sender waits for a reply */

struct msg_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t flags;
    uint32_t body_len;
    uint64_t view;        /* the sender's adopted view; 0 = none */
    uint64_t sender;      /* node id */
    uint64_t incarnation; /* of the sender */
    uint64_t token;       /* given to the sender in the hello: proves the sender */
    uint64_t request;     /* request id of the side that asked */
    uint32_t deadline_ms; /* how long the sender waits in silence */
    int32_t status;       /* reply: 0 or -errno (Linux numbers) */
    uint64_t data_len;
};

/* ---- elements of lists: E(kind, field) with kinds u8 u32 u64 i64 fid version told str ---- */

/* a claim of the sender: for ADOPTED */
#define ITEM_CLAIM(E) E(fid, fid) E(u64, number_inc) E(u64, number)
/* a file's record with its stamp; claimant 0 = none; unknown: RECORD_... */
#define ITEM_RECORD(E)                                                                             \
    E(fid, fid)                                                                                    \
    E(u64, claimant) E(u64, number_inc) E(u64, number) E(u64, stamp_view) E(u64, stamp_count)      \
        E(u8, unknown)
/* a lock: holder = (node, incarnation, owner); kind 0 fcntl, 1 flock; type F_RDLCK 0 / F_WRLCK 1 */
#define ITEM_LOCK(E)                                                                               \
    E(fid, fid)                                                                                    \
    E(u64, node) E(u64, incarnation) E(u64, owner) E(u8, kind) E(u8, type) E(u64, start)           \
        E(u64, end) E(u32, pid)
#define ITEM_FID(E) E(fid, fid)
/* where one file's latest bytes are (AT): enum at_where; node when AT_NODE or LOST */
/* known 1: the PFS has `version`, of which applications are told `told`; known 2: also, its data is that of
 * `same_as` (a chmod, rename, ... moved ctime).  keep: the asker is entered as a looker, and may keep what it finds
 * until a BREAK */
#define ITEM_AT(E)                                                                                 \
    E(u8, where) E(u64, node) E(u8, known) E(version, version) E(version, same_as) E(told, told)   \
        E(u8, keep)
/* the claimant's answer (HAVE).  stands_ns: see file_info (placement/store/store_read.h).  mine: enum claim_mine
 * (placement/claims/claim_int.h).  begun: version_mark of the version of the PFS that the file had when the claim began; 0: not
 * known, or another answer than "mine" */
#define ITEM_HAVE(E)                                                                               \
    E(u8, mine)                                                                                    \
    E(u64, size) E(i64, mtime_ns) E(i64, ctime_ns) E(i64, stands_ns) E(u64, blocks)                \
        E(u64, counter) E(u64, begun) E(u64, unused) E(u8, watched) E(u64, away)
/* what a node says as next: "as next of `home` I have the copy of view `view`" */
#define ITEM_NEXTOF(E) E(u64, home) E(u64, view)
/* blind (rule 7): files whose home and next in view `before` were both gone in view `at` */
#define ITEM_BLIND(E) E(u64, before) E(u64, at)
/* a looker, as next has entered it; node 0: any member.  look: enum look (placement/claims/look.h); number:
 * of its WHERE, the lower half */
#define ITEM_LOOKER(E) E(u64, node) E(u8, look) E(u32, number)
/* a watcher; node 0: any member.  left: LOOKER_... bits (placement/claims/look.h) */
#define ITEM_WATCHER(E) E(u64, node) E(u64, incarnation) E(u8, left)
/* units [first, last] (LOAN_UNIT bytes) of a file are lent to this node, which is not 0 */
#define ITEM_LENT(E) E(u64, first) E(u64, last) E(u64, node)
/* a file that is not open any more; number: of the last WHERE that this covers */
#define ITEM_LEFT(E) E(fid, fid) E(u64, number)

/* a part of a file that a node is to bring from the PFS, or to look at, to the end of the version at most; version: as the
 * sender has seen it */
#define ITEM_WANTED(E) E(fid, fid) E(version, version) E(u64, off) E(u64, len) E(str, path)
/* what is here of it: `here` bytes of `wanted` that the node was asked for.  err: errno, why not all of it.  kept: bytes
 * that `room` does not have, as they are kept for stages, of this part */
#define ITEM_BROUGHT(E) E(u32, err) E(u64, wanted) E(u64, here) E(u64, kept)

/* a chunk of which the sender has a copy now, or has let its copy go.  what: enum place_news (placement/chunks/places.h) */
#define ITEM_PLACE(E) E(fid, fid) E(u64, index) E(version, version) E(u8, what)

/* a shelf with a chunk that other nodes may read one-sided.  what: enum shelf_news (placement/chunks/places.h); node: whose */
#define ITEM_SHELF(E)                                                                               \
    E(fid, fid) E(u64, index) E(version, version) E(u8, what) E(u64, node) E(u64, hash) E(u64, token) E(u32, shelf)

/* a number that a node tells of itself (fs/daemon/figures.h) */
#define ITEM_FIGURE(E) E(u64, value) E(str, name)

#define MSG_ITEMS(I)                                                                               \
    I(claim, ITEM_CLAIM)                                                                           \
    I(record, ITEM_RECORD) I(lock, ITEM_LOCK) I(fid_item, ITEM_FID) I(blind, ITEM_BLIND)           \
        I(at, ITEM_AT) I(have, ITEM_HAVE) I(nextof, ITEM_NEXTOF) I(looker, ITEM_LOOKER)            \
            I(watcher, ITEM_WATCHER) I(left, ITEM_LEFT) I(lent, ITEM_LENT)                    \
                I(wanted, ITEM_WANTED) I(brought, ITEM_BROUGHT) I(place, ITEM_PLACE) I(shelf, ITEM_SHELF) I(figure, ITEM_FIGURE)

/* ---- messages: F(kind, field), L(item, field) = list of items ---- */

/* protocol.md section 2.  PING: member -> keeper */
#define BODY_PING(F, L) F(u64, adopted)
/* age of the keeper's last read of views/ */
#define BODY_PONG(F, L) F(u32, age_ms) F(u64, newest)
/* piece: from 0 on; more: another one follows.  All but the lists is the same in each.  looks: files
 * that are open on the sender; goes: those of them of which it is about to remove a name; look_number: as WHERE's */
#define BODY_ADOPTED(F, L)                                                                         \
    F(u64, view)                                                                                   \
    F(u32, piece)                                                                                  \
    F(u8, more) F(u64, last) F(u8, settled) F(u8, leaving) F(u64, home_view) F(u64, look_number)   \
        L(nextof, nextof) L(blind, blinds) L(claim, claims) L(record, records) L(lock, locks)      \
            L(fid_item, looks) L(fid_item, goes)
#define BODY_ADOPTED_OK(F, L) F(u64, view)
/* number's incarnation = head's; held: the sender has the claim and its bytes, and asks for its watchers;
 * look_number: as WHERE's */
#define BODY_WANT(F, L) F(fid, fid) F(u64, number) F(u8, held) F(u64, look_number)
/* reply to WANT: enum at_where; watchers: of AT_GRANTED, what BREAK has left, and quiet lookers */
#define BODY_GRANT(F, L)                                                                           \
    F(u8, where) F(u64, node) F(u8, known) F(version, version) F(told, told) L(watcher, watchers)
/* first: of all records, in pieces, as ADOPTED; else of one.  heard: the home has heard COPIED of the claim that
 * this one does not have any more, with next's lookers.  locks: those of the first record, then those of the
 * second ... */
#define BODY_COPY(F, L)                                                                            \
    F(u8, first) F(u32, piece) F(u8, more) F(u8, heard) L(record, records) L(lock, locks)
/* lookers: of one record's file, entered by next while it answered for the home */
#define BODY_COPIED(F, L) F(u64, view) L(looker, lookers)
/* fids: <= 512; look: enum look (placement/claims/look.h); number: later ones of a node have higher numbers */
#define BODY_WHERE(F, L)  F(u8, look) F(u64, number) L(fid_item, fids)
#define BODY_AT(F, L)     L(at, at)
/* look: LOOK_OPEN: the asker wants to be told of changes (HAVE says watched) */
#define BODY_ASK(F, L)    F(u8, look) L(fid_item, fids)
#define BODY_HAVE(F, L)   L(have, have)
/* look: what the sender itself still believes (enum look); look_number: as WHERE's; watchers: those that are
 * left, and nodes that have it open */
#define BODY_FREE(F, L)                                                                            \
    F(fid, fid)                                                                                    \
    F(u64, number_inc) F(u64, number) F(u8, known) F(version, version) F(told, told) F(u8, look)   \
        F(u64, look_number) L(watcher, watchers)
#define BODY_FREED(F, L) F(u8, done)
/* reading: a chunk from its owner (or any node that has it), a range from the claimant.  ahead: no application waits for it,
 * so it is no activity.  way: enum fetch_way (placement/chunks/places.h); not_at: with FETCH_HERE, the node to which the owner
 * sent the asker in vain, or 0 */
#define BODY_FETCH(F, L)                                                                           \
    F(fid, fid)                                                                                    \
    F(u64, index) F(version, version) F(u8, only_cached) F(u8, ahead) F(u8, way) F(u64, not_at) F(str, path)
#define BODY_CHUNK(F, L)   F(fid, fid) F(u64, index) F(version, version) F(u64, hash) F(u8, source)
#define BODY_WORKING(F, L) F(u8, unused)
#define BODY_READ(F, L)    F(fid, fid) F(u64, offset) F(u32, length)
/* watched: the asker will be told of changes (CHANGED); more: the file goes on behind these bytes, but what follows is
 * lent to another node */
#define BODY_RANGE(F, L)                                                                           \
    F(u64, size) F(i64, mtime_ns) F(u64, counter) F(u64, hash) F(u8, watched) F(u8, more)
/* writing at the claimant.  op: enum carry_op (placement/carry.h) */
#define BODY_WRITE(F, L)                                                                           \
    F(fid, fid) F(u8, op) F(u64, offset) F(u64, length) F(u32, mode) F(i64, time_ns) F(u64, hash)
#define BODY_WRITTEN(F, L) F(u64, size) F(u64, offset) F(i64, mtime_ns) F(u64, counter)
/* a name of a claimed file changed on another node: its new path, or gone (nlink 0) */
#define BODY_NAMED(F, L)    F(fid, fid) F(u8, gone) F(str, path)
#define BODY_NAMED_OK(F, L) F(u8, done)
/* to the home: this node's own name operation moved ctime; the data of `before` is that of
 * `after` */
#define BODY_SAME(F, L) F(fid, fid) F(version, before) F(version, after)
/* locks: op 0 set, 1 set and wait, 2 unlock, 3 test, 4 cancel `number`, 5 drop all of owner: enum
 * lock_op (placement/claims/lock_table.h) */
#define BODY_LOCK(F, L)                                                                            \
    F(fid, fid)                                                                                    \
    F(u64, number) F(u8, op) F(u8, kind) F(u8, type) F(u64, owner) F(u64, start) F(u64, end)       \
        F(u32, pid)
#define BODY_LOCKED(F, L) F(u8, type) F(u64, start) F(u64, end) F(u32, pid) F(u64, node)
/* an operator gives up what absent nodes have of a file.  FORGOTTEN.state: enum forget_state */
#define BODY_FORGET(F, L)    F(fid, fid)
#define BODY_FORGOTTEN(F, L) F(u8, state) F(u64, node) F(u32, wait_ms)
/* status of a member, for `eddy status` of the session and tests */
#define BODY_NOTE(F, L)  F(u64, newest) /* "there is a newer view": read views/ */
#define BODY_ERROR(F, L) F(u8, unused)  /* a reply that is only a status */
/* reply to a piece of ADOPTED or COPY, unless all are there now: those before `piece` are, send this
 * one */
#define BODY_NEXT_PIECE(F, L) F(u64, view) F(u32, piece)
/* home -> lookers: the file is about to change, or a name of it to go.  grant: the same if it is sent again.  BROKEN: left:
 * LOOKER_... bits (placement/claims/look.h); look_number: as WHERE's */
#define BODY_BREAK(F, L)  F(fid, fid) F(u64, grant)
#define BODY_BROKEN(F, L) F(u8, left) F(u64, look_number)
/* to the home: files that are not open any more; <= MSG_PIECE_ITEMS */
#define BODY_LEAVE(F, L) L(left, files)
/* claimant -> watchers: what has changed in [offset, offset + length).  what: enum told_what (placement/tell.h);
 * TOLD_DROP goes to all that have it open.
 * ends: `last` is the file's last byte, for a watcher that appends.  CHANGED_OK: left: as BROKEN's */
#define BODY_CHANGED(F, L)                                                                         \
    F(fid, fid) F(u8, what) F(u64, offset) F(u64, length) F(u64, size) F(u64, hash) F(u8, ends) F(u8, last)
#define BODY_CHANGED_OK(F, L) F(u8, left)
/* to the claimant: the sender writes the file, and wants units [first, last], and the same of the `count` places that
 * follow at this distance (stride, in units).  ask: enum lend_ask (placement/lend.h).  LENT: why: enum lend_why; number: of the claim; epoch: how often parts were recalled; base_end: how far the PFS's
 * bytes count; parts: those that some node has, of what was named */
#define BODY_LEND(F, L) F(fid, fid) F(u8, ask) F(u64, first) F(u64, last) F(u64, stride) F(u32, count)
#define BODY_LENT(F, L)                                                                            \
    F(u8, why) F(u64, number_inc) F(u64, number) F(u64, epoch) F(u64, base_end) L(lent, parts)
/* claimant -> borrower.  op: enum loan_op (placement/lend.h).  LOAN_IS: held: the sender has borrowed; size and mtime_ns:
 * as far as its own writes go, mtime_ns INT64_MIN: none since the last TIMES; parts: HELD's, from unit `from` on, more: there
 * are further ones */
#define BODY_LOAN(F, L) F(fid, fid) F(u8, op) F(u64, number_inc) F(u64, number) F(u64, epoch) F(u64, from)
#define BODY_LOAN_IS(F, L) F(u8, held) F(u64, size) F(i64, mtime_ns) F(u64, base_end) F(u8, more) L(lent, parts)
/* borrower -> claimant: all that it had of the file is on the PFS, and it has nothing any more.  began: the epoch of the LENT by
 * which the loan began */
#define BODY_RETURN(F, L)                                                                          \
    F(fid, fid) F(u64, number_inc) F(u64, number) F(u64, began) F(u64, size) F(i64, mtime_ns)
#define BODY_RETURNED(F, L) F(u64, epoch)
/* staging: what the receiver is to do with these parts of files, at most BRING_FILES.  stage: the sender's number for it; what: enum
 * bring_what; owned: only chunks that the receiver owns; pin_ms: how long they must stay, UINT64_MAX: until they are let go,
 * 0: as others (placement/foresight/bring.h).  BROUGHT: room: bytes that may be brought now; files: one for each, in their order */
#define BODY_BRING(F, L)   F(u64, stage) F(u8, what) F(u8, owned) F(u64, pin_ms) L(wanted, files)
#define BODY_BROUGHT(F, L) F(u64, room) L(brought, files)
/* an owner's other answer to FETCH: ask this node, which has the chunk or is getting it */
#define BODY_ELSEWHERE(F, L) F(fid, fid) F(u64, index) F(version, version) F(u64, node)
/* may the sender let go its copies of these chunks, <= KEEP_ASKED, and the receiver keeps its own ones?  what: 0 (placement/chunks/keep.h).
 * KEPT: bit i: it does keep the i-th one, from now on */
#define BODY_KEEP(F, L) L(place, chunks)
#define BODY_KEPT(F, L) F(u32, kept)
/* to the owner of these chunks, <= PLACES_NEWS; no answer */
#define BODY_PLACES(F, L) L(place, chunks)
/* to the owner of these chunks, or to the node whose shelves they are, <= PLACES_NEWS; no answer */
#define BODY_SHELVES(F, L) L(shelf, shelves)
/* memory that other nodes may read one-sided; the sender has `length` bytes.  MEMORY_IS: where the receiver's is; its bulk data is UCX's: the
 * worker's address, then the key of the memory (transport/onesided.c) */
#define BODY_MEMORY(F, L) F(u64, length)
#define BODY_MEMORY_IS(F, L) F(u64, base) F(u64, length) F(u32, address_len) F(u32, key_len)

/* for `eddy stats --session` */
#define BODY_TELL_FIGURES(F, L) F(u8, unused)
#define BODY_FIGURES(F, L) L(figure, figures)

/* M(NAME, name, BODY): the number on the wire is the position, from 1; only append. */
#define MESSAGES(M)                                                                                \
    M(PING, ping, BODY_PING)                                                                       \
    M(PONG, pong, BODY_PONG)                                                                       \
    M(ADOPTED, adopted, BODY_ADOPTED) M(ADOPTED_OK, adopted_ok, BODY_ADOPTED_OK)                   \
        M(WANT, want, BODY_WANT) M(GRANT, grant, BODY_GRANT) M(COPY, copy, BODY_COPY)              \
            M(COPIED, copied, BODY_COPIED) M(WHERE, where, BODY_WHERE) M(AT, at, BODY_AT)          \
                M(ASK, ask, BODY_ASK) M(HAVE, have, BODY_HAVE) M(FREE, free, BODY_FREE)            \
                    M(FREED, freed, BODY_FREED) M(FETCH, fetch, BODY_FETCH)                        \
                        M(CHUNK, chunk, BODY_CHUNK) M(WORKING, working, BODY_WORKING)              \
                            M(READ, read, BODY_READ) M(RANGE, range, BODY_RANGE) M(WRITE, write,   \
                                                                                   BODY_WRITE)     \
                                M(WRITTEN, written, BODY_WRITTEN) M(NAMED, named, BODY_NAMED)      \
                                    M(NAMED_OK, named_ok, BODY_NAMED_OK) M(LOCK, lock, BODY_LOCK)  \
                                        M(LOCKED, locked, BODY_LOCKED) M(NOTE, note, BODY_NOTE)    \
                                            M(ERROR, error, BODY_ERROR) M(SAME, same, BODY_SAME)   \
                                                M(FORGET, forget, BODY_FORGET)                     \
                                                    M(FORGOTTEN, forgotten, BODY_FORGOTTEN)        \
                                                        M(NEXT_PIECE, next_piece, BODY_NEXT_PIECE) \
                                                            M(BREAK, brk, BODY_BREAK)              \
                                                                M(BROKEN, broken, BODY_BROKEN)     \
                                                                    M(LEAVE, leave, BODY_LEAVE)        \
                                                                        M(CHANGED, changed, BODY_CHANGED) \
                                                                            M(CHANGED_OK, changed_ok, BODY_CHANGED_OK) \
        M(LEND, lend, BODY_LEND) M(LENT, lent, BODY_LENT) M(LOAN, loan, BODY_LOAN) \
        M(LOAN_IS, loan_is, BODY_LOAN_IS) M(RETURN, ret, BODY_RETURN) M(RETURNED, returned, BODY_RETURNED) \
        M(BRING, bring, BODY_BRING) M(BROUGHT, brought, BODY_BROUGHT) \
        M(ELSEWHERE, elsewhere, BODY_ELSEWHERE) M(PLACES, places, BODY_PLACES) \
        M(KEEP, keep, BODY_KEEP) M(KEPT, kept, BODY_KEPT) \
        M(TELL_FIGURES, tell_figures, BODY_TELL_FIGURES) M(FIGURES, figures, BODY_FIGURES) \
        M(MEMORY, memory, BODY_MEMORY) M(MEMORY_IS, memory_is, BODY_MEMORY_IS) M(SHELVES, shelves, BODY_SHELVES)

/* ---- generated types ---- */

typedef uint8_t msg_u8;
typedef uint32_t msg_u32;
typedef uint64_t msg_u64;
typedef int64_t msg_i64;
typedef struct fid msg_fid;
typedef struct version msg_version;
typedef struct told msg_told;
/* NUL-terminated, <= MSG_PATH_MAX bytes without the NUL, no NUL inside */
typedef const char *msg_str;

#define MSG_FIELD(kind, name) msg_##kind name;
#define MSG_LIST(item, name)                                                                       \
    struct {                                                                                       \
        uint32_t n;                                                                                \
        struct item_##item *v;                                                                     \
    } name;
#define MSG_ITEM_STRUCT(item, FIELDS)                                                              \
    struct item_##item {                                                                           \
        FIELDS(MSG_FIELD)                                                                          \
    };
MSG_ITEMS(MSG_ITEM_STRUCT)
#define MSG_BODY_STRUCT(NAME, name, BODY)                                                          \
    struct body_##name {                                                                           \
        BODY(MSG_FIELD, MSG_LIST)                                                                  \
    };
MESSAGES(MSG_BODY_STRUCT)

enum msg_type {
    MSG_NONE = 0,
#define MSG_ENUM(NAME, name, BODY) MSG_##NAME,
    MESSAGES(MSG_ENUM) MSG_TYPES
};

/* Status of a reply: "not the home of this view, not complete, not settled, or without a lease: ask
 * again soon". */
#define E_ASK_AGAIN 78 /* EREMCHG */

enum at_where { AT_PFS = 0, AT_NODE = 1, AT_LOST = 2, AT_GRANTED = 3 };

/* No absent node has it; wait_ms more; done; its node is in the session. */
enum forget_state { FORGET_NOTHING = 0, FORGET_WAITS = 1, FORGET_DONE = 2, FORGET_PRESENT = 3 };

/* A message in memory.  To send one, fill in type, body and data (msg_new sets the rest to 0).  Lists and
 * strings may point to the caller's memory; msg_encode copies them.  In a decoded message lists and strings
 * are in `arena`.  msg_free frees the arena, and the data if free_data is set. */
struct msg {
    struct msg_head head;
    union {
#define MSG_UNION(NAME, name, BODY) struct body_##name name;
        MESSAGES(MSG_UNION)
    };
    void *data; /* bulk data, head.data_len bytes */
    void (*free_data)(void *arg, void *data);
    void *free_arg;
    void *arena;
};

const char *msg_name(unsigned type); /* "FETCH"; "?" for an unknown one */
struct msg *msg_new(enum msg_type type);
void msg_free(struct msg *m);
/* Encodes head and body into *buf (malloc'd; *len = MSG_HEAD_SIZE + body_len).  -EMSGSIZE, -EINVAL
 * (path too long). */
int msg_encode(const struct msg *m, void **buf, size_t *len);
/* Parses a head alone; checks magic, version, body_len <= MSG_BODY_MAX, data_len <= MSG_DATA_MAX.
 * -EPROTO. */
int msg_decode_head(const void *buf, size_t len, struct msg_head *out);
/* Parses head and body into a new message.  -EPROTO: malformed; -ENOTSUP: unknown type (then *out_head is
 * valid, if out_head is not NULL); -ENOMEM. */
int msg_decode(const void *buf, size_t len, struct msg **out, struct msg_head *out_head);

#endif
