/* base.h - what every room uses: identities (fid.h), log, counters, sizes, clocks.
 *
 * Any thread may call anything here; nothing here takes a lock that is held
 * while another is taken.
 */
#ifndef EDDY_TRANSPORT_BASE_H
#define EDDY_TRANSPORT_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "transport/fid.h"

/* The longest path of a regular file below the PFS directory, bytes.  Records, messages and lists carry every
 * path up to this length whole; fs refuses to make or open a file with a longer one. */
#define PATH_BYTES_MAX 32767

/* ---- log: "eddyfs[node]: level: what happened: which file: what follows" ---- */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sends the log to `path` (append), or to standard error when NULL.  -errno. */
int log_open(const char *path, enum log_level level, const char *node);
int log_level_parse(const char *name, enum log_level *out); /* -EINVAL */
/* true: from now on lines go to standard error, and are stored until log_open opens a file, which then gets
 * them, too.  This is for lines that are logged before the file's place is known.  false: no file will be
 * opened. */
void log_keep(bool keep);
bool log_is_file(void); /* not standard error, or not yet */
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
/* The last warnings and errors, the oldest first, each a line without its newline; at most LOG_LAST.  n: how many there were in
 * all.  Each line is valid during the call, in which nothing may be logged. */
#define LOG_LAST 64
void log_each_last(void (*fn)(void *arg, const char *line), void *arg, uint64_t *n);
/* True at most once per `ms` for this `last` (a static of the caller, starts at 0). */
bool log_every(_Atomic uint64_t *last, uint64_t ms);

/* ---- counters: declared once; code, `eddy status` and the manual use this list ---- */

#define COUNTERS(X)                                                                                \
    X(read_local_bytes, "bytes that applications read and the local store had")                    \
    X(read_peer_bytes, "bytes that applications read and other nodes sent")                        \
    X(read_pfs_bytes, "bytes that applications read and this node read from the PFS")              \
    X(pfs_read_bytes, "bytes this node read from the PFS, for itself and for others")              \
    X(pfs_write_bytes, "bytes this node wrote to the PFS")                                         \
    X(pfs_name_ops, "name and attribute operations sent to the PFS")                               \
    X(looks_ahead, "files of a directory looked at before an application asked")                   \
    X(looks_saved, "looks at files that were answered by one ahead")                               \
    X(served_bytes, "bytes sent to other nodes")                                                   \
    X(received_bytes, "bytes received from other nodes")                                           \
    X(former_bytes, "bytes of chunks that moved to this node, taken from their former owners")     \
    X(redirects, "readers of a chunk that this node owns, sent to another node that has it")       \
    X(redirected_bytes, "bytes that came from nodes to which an owner had sent this one")          \
    X(redirects_in_vain, "times that a node to which an owner had sent this one did not have the chunk") \
    X(onesided_reads, "chunks read from other nodes' memory, without their processors")            \
    X(onesided_bytes, "bytes of them")                                                             \
    X(onesided_misses, "times that such a chunk was looked for and was not there")                 \
    X(onesided_bounced, "times that a shelf had other bytes than its owner's directory said")      \
    X(shelves_filled, "chunks that this node put where others may read them one-sided")              \
    X(let_go, "chunks that this node owns and need not keep, as another node said that it keeps its copy") \
    X(singlets, "chunks that this node began to keep for their owners")                             \
    X(written_bytes, "bytes that applications wrote on this node")                                 \
    X(carried_bytes, "bytes written here that were carried to another node's claim")               \
    X(borrowed_bytes, "bytes written here into parts of other nodes' files that they lent")        \
    X(changes_told, "changes that nodes with open descriptors were told of")                       \
    X(changes_heard, "changes of open files that their claimants told")                            \
    X(flushed_bytes, "dirty bytes that reached the PFS")                                           \
    X(flushed_lull_bytes, "dirty bytes that reached the PFS in lulls")                             \
    X(slowed_ms, "time that writers waited because of dirty data")                         \
    X(flushed_files, "files that became clean by a flush")                                         \
    X(flush_errors, "flushes of a file that failed")                                               \
    X(evicted_bytes, "clean bytes dropped from the cache for space")                               \
    X(stale_bytes, "clean bytes dropped because the PFS has a newer version")                      \
    X(bad_checksums, "chunks refused because their checksum was wrong")                            \
    X(fallback_reads, "chunk reads that went to the PFS because no node could serve them")         \
    X(hints, "hints that programs gave of what they will read")                                    \
    X(hints_consumed, "of these: read, or left out by their reader")                               \
    X(hints_admitted, "times that a hint was taken up by the prefetcher")                          \
    X(hints_given_up, "times that writers needed the room of what was here for a hint")            \
    X(prefetched_bytes, "bytes brought to this node because of hints")                             \
    X(messages_sent, "messages sent")                                                              \
    X(pings_sent, "of these: pings and their answers, which tell members that a node lives")        \
    X(messages_received, "messages received")                                                      \
    X(bad_messages, "messages refused: malformed, unauthenticated or of an unknown sender")        \
    X(bad_answers, "answers refused: of another kind, for another chunk, of a wrong size")         \
    X(bad_hellos, "connections refused on our port")                                               \
    X(bad_nodes, "connections to a node where another program answered")                           \
    X(peer_failures, "connections to members that broke")                                          \
    X(suspicions, "times that a member did not answer and was served around")                      \
    X(views_adopted, "views adopted")                                                              \
    X(claims_granted, "claims granted to this node")                                               \
    X(breaks_sent, "times that a node was told that a file it looks at is about to change")        \
    X(breaks_received, "times that this node was told so")                                         \
    X(keeps_refused, "answers that nodes may not keep, because the table of lookers is full")      \
    X(conflicts, "files that somebody else had changed on the PFS: unflushed data is beside them")   \
    X(lost_opens, "opens refused because a node that left has the latest bytes")

struct counters {
#define X(name, help) _Atomic uint64_t name;
    COUNTERS(X)
#undef X
};
extern struct counters counters;
#define count(name, n) atomic_fetch_add_explicit(&counters.name, (n), memory_order_relaxed)
#define counted(name)  atomic_load_explicit(&counters.name, memory_order_relaxed)

/* ---- sizes, clocks, bytes ---- */

/* "64K", "1M", "2G", "1T" or plain bytes.  -EINVAL, -ERANGE. */
int size_parse(const char *text, uint64_t *out);
/* "1.5 GiB" into buf (>= 16 bytes); returns buf. */
char *size_format(uint64_t bytes, char *buf, size_t len);

uint64_t boot_ms(void); /* CLOCK_BOOTTIME: goes on in suspend; leases and deadlines use it */
uint64_t boot_ns(void);
int64_t real_ns(void); /* CLOCK_REALTIME, for time stamps of files */

/* Files' times, in ns since 1970; beyond what that can hold, 1677 and 2262, the last that it can. */
static inline int64_t ns_of_time(int64_t sec, int64_t nsec)
{
    int64_t ns;
    if (__builtin_mul_overflow(sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, nsec, &ns))
        return sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

static inline struct timespec time_of_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (t.tv_nsec < 0) { /* before 1970 */
        t.tv_nsec += 1000000000;
        t.tv_sec--;
    }
    return t;
}

int random_bytes(void *buf, size_t len); /* the system's random source; -errno */
uint64_t random_u64(void);               /* aborts if there is no random source */
/* A number that is never the same twice in this daemon, and is unlikely to come in another one.  It is no
 * secret, and costs no system call. */
uint64_t unlike_u64(void);

/* A name shown to people or used as a file name: letters, digits, '.', '_', '-', 1..64, no leading
 * '.'. */
bool name_is_plain(const char *s);

int hex_digit(char c); /* 0 to 15, small letters; -1: none */
/* Writes all bytes, at the descriptor's offset; -errno. */
int write_all(int fd, const void *text, size_t len);

/* log and abort: a broken invariant */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *xmalloc(size_t n);                    /* these abort when memory is out */
void *xaligned(size_t alignment, size_t n); /* n: a multiple of it */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))

#endif
