/* fid.h - a file's identity and version, as they travel between nodes and lie on disks.  Any thread. */
#ifndef EDDY_TRANSPORT_FID_H
#define EDDY_TRANSPORT_FID_H

#include <stdbool.h>
#include <stdint.h>

/* A file's identity, the same on every node and stable across rename: a hash of st_ino and birth time
 * (placement/pfs/pfs_fid.c makes it). */
struct fid {
    uint64_t hi, lo;
};
static inline bool fid_eq(struct fid a, struct fid b)
{
    return a.hi == b.hi && a.lo == b.lo;
}
static inline bool fid_is_zero(struct fid a)
{
    return !(a.hi | a.lo);
}

/* A node keeps what it writes into the parts of a file that another node has lent to it in a store file of its own
 * (docs/protocol.md, "Loans").  Its fid is the file's with this bit, which no PFS file's fid has. */
#define FID_LOAN (UINT64_C(1) << 63)
static inline bool fid_is_loan(struct fid f)
{
    return f.hi & FID_LOAN;
}
static inline struct fid fid_of_loan(struct fid f)
{
    return (struct fid){f.hi | FID_LOAN, f.lo};
}
/* The PFS file's. */
static inline struct fid fid_real(struct fid f)
{
    return (struct fid){f.hi & ~FID_LOAN, f.lo};
}

#define FID_TEXT 33
char *fid_text(struct fid f, char buf[FID_TEXT]); /* 32 hex digits; returns buf */
int fid_parse(const char *text, struct fid *out); /* -EINVAL */

/* What a PFS file looked like when it was cached.  Times in nanoseconds since the epoch. */
struct version {
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
};
static inline bool version_eq(const struct version *a, const struct version *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Another one for another version, but by an accident of 2^-64.  Never 0. */
uint64_t version_mark(const struct version *v);

/* Equal but for ctime, which chmod, chown, link, setxattr and rename move, too: only who sets mtime back has
 * changed the bytes. */
static inline bool version_same_bytes(const struct version *a, const struct version *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* The times that applications are told of a version.  They are not the version's own after a flush, which
 * moves the PFS's ctime (fs/attr.c). */
struct told {
    int64_t mtime_ns, ctime_ns;
};

/* Is `kept` what a PFS that was given the time `set` makes of it?  PFSs keep times in units of 1 ns, 100 ns,
 * 1 us, 1 ms or 1 s. */
bool time_is_kept(int64_t kept, int64_t set);

/* Racy (git's word): ctime is not older than the PFS's time-stamp granularity at the moment `read_at`
 * (PFS clock, ns) at which data of this version was read; a later change may have the same time stamps.
 * Granularity: 10 ms, or 1 s when both mtime and ctime have no nanoseconds. */
bool version_racy(const struct version *v, int64_t read_at);

/* Is base's data that of v?  The home says that all versions of the file from same_as to v have the
 * same data: one name or attribute operation of this session followed the other, with nothing between.
 * base's ctime leaves no doubt where the PFS's clock does not go back; where it may (clients' clocks), a
 * write in between has moved mtime. */
bool version_is_same(const struct version *base, const struct version *v,
                     const struct version *same_as);

#endif
