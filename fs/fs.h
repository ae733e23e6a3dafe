/* fs.h - the mount: settings that every file of fs/ reads, and the operations each of them
 * gives. */
#ifndef EDDY_FS_FS_H
#define EDDY_FS_FS_H

#include "flush/flush.h"
#include "fs/inode.h"
#include "fs/request.h"

/* Set by main before the mount, never changed after. */
struct settings {
    const char *pfs_dir, *mountpoint, *cache_dir, *session, *session_dir, *node;
    const char *listen;
    const char *log_file;
    bool foreground, read_only, allow_other;
    bool redirect;      /* chunks of an owner that left are read from the PFS each time */
    bool supervise;     /* a daemon that dies by a signal is started again */
    bool as_user;       /* --user: root mounts, and becomes this user */
    uid_t user;         /* the daemon's, once it runs */
    bool several_users; /* root with allow_other: fsuid, fsgid and groups per request */
    double attr_timeout, negative_timeout; /* seconds */
    bool fsync_pfs;                        /* fsync waits until the bytes are on the PFS */
    uint64_t cache_size;
    unsigned cache_percent;
    bool cache_dir_is_default;
    uint32_t chunk_size;
    uint64_t memory;
    unsigned wait_nodes, wait_timeout;
    const char **immutable; /* relative to the PFS directory, "" is that itself */
    unsigned nimmutable;
    char *hidden;                /* name in the root that is never shown: ".eddyfs-UID" */
    bool passthrough;            /* wanted; from backing_try on: possible */
    const char *passthrough_why; /* why not */
};
extern struct settings settings;

static inline uint64_t attr_timeout_ms(void)
{
    return (uint64_t)(settings.attr_timeout * 1000);
}
/* Seconds for which what was looked at then (boot_ms) may still be told. */
static inline double attr_left(uint64_t looked_ms)
{
    return settings.attr_timeout - (double)(boot_ms() - looked_ms) / 1000;
}

/* ---- mount.c ---- */
/* mounts, starts the threads that read /dev/fuse, returns when the kernel has answered */
int mount_start(char *err, size_t errlen);
/* Until the mount is gone, or leave_fd can be read. */
void mount_wait(int leave_fd);
/* unmounts if it is still mounted, whoever uses it; ends the threads: no request comes any more */
void mount_stop(void);
void mount_free(void); /* when nothing will be answered or notified any more */
/* ends the connection to the kernel: who waits for an answer gets ENOTCONN. Any thread; ->
 * mount_wait ends */
void mount_abort(void);
bool mount_is_up(void); /* any thread: the kernel has not said that it is gone */
struct fuse_session *mount_session(void);
void mount_option(const char *opt); /* one of FUSE's own -o options; before mount_start */

/* ---- mount_user.c: --user ---- */
/* Opens /dev/fuse as root, and becomes settings.user for good, with CAP_SYS_ADMIN alone.  Before
 * any thread.  0, or -errno after a message on standard error. */
int mount_user_begin(void);
/* With a supervisor begin opens several: each daemon has one of its own, since the kernel knows that
 * a daemon is dead when nobody else has its descriptor.  take: in a daemon; drop: in the supervisor,
 * when a daemon has taken one. */
void mount_user_take(void);
void mount_user_drop(void);
/* Mounts what begin opened (words: FUSE's own -o options, n of them) at settings.mountpoint.  The
 * descriptor of /dev/fuse, libfuse's from now on; -errno. */
int mount_user(char *const words[], int n, char *err, size_t errlen);

/* ---- operations by file; each has the signature of struct fuse_lowlevel_ops ---- */
/* names.c: lookup forget forget_multi mknod mkdir symlink readlink create; moves.c: link unlink
 * rmdir rename */
/* attr.c: getattr; statfs.c: statfs; setattr.c: setattr.  No access: default_permissions, the kernel
 * answers. */
/* dir.c: opendir readdir readdirplus releasedir fsyncdir */
/* xattr.c: getxattr setxattr listxattr removexattr */
/* file.c: open create's second half flush release fsync */
/* io.c: read write fallocate lseek copy_file_range */
/* lock.c: getlk setlk flock */
void names_ops(struct fuse_lowlevel_ops *ops);
void moves_ops(struct fuse_lowlevel_ops *ops);
void attr_ops(struct fuse_lowlevel_ops *ops);
void setattr_ops(struct fuse_lowlevel_ops *ops);
void statfs_ops(struct fuse_lowlevel_ops *ops);
void dir_ops(struct fuse_lowlevel_ops *ops);
void xattr_ops(struct fuse_lowlevel_ops *ops);
void file_ops(struct fuse_lowlevel_ops *ops);
void io_ops(struct fuse_lowlevel_ops *ops);
void lock_ops(struct fuse_lowlevel_ops *ops);

/* ---- io.c, for steps.c ---- */
/* Another node has changed bytes of a file whose claim is here: this mount's pages [off, off + len) are
 * stale; off UINT64_MAX: its attributes alone.  Any thread, no lock held. */
void io_carried(struct fid fid, uint64_t off, uint64_t len);

#define FUSE_IO_MAX (1u << 20) /* bytes of one read or write: max_read, max_write */

/* ---- attr.c, for the others ---- */
/* stat of the application from the PFS's statx and where the latest bytes are: size, mtime, ctime,
 * blocks of a claimed file are the claimant's word. */
void attr_merge(struct stat *st, const struct statx *stx, const struct location *loc);
/* Asks the PFS's statx's fid's home where needed (regular files only) and merges. Blocking.  The
 * look at the PFS began at looked_ms (boot_ms) or later.
 * On error (-EIO: the latest bytes are lost until a node returns) *st is filled with what the PFS
 * has. */
int attr_complete(struct inode *i, struct statx *stx, uint64_t looked_ms, struct stat *st);
/* Between the look at the PFS and the home's answer a claimant flushed and gave its claim back:
 * look again. */
bool attr_overtaken(const struct statx *stx, const struct location *loc);
/* Fresh statx of a known inode: by an open descriptor, else by any of its names.  -ESTALE: it is
 * not where it was. Blocking. */
int attr_stat(struct inode *i, struct statx *stx);
/* Both: what getattr answers; *looked_ms: boot_ms before the look.  Blocking. */
int attr_get(struct inode *i, struct stat *st, uint64_t *looked_ms);
/* Remembers what the kernel is told (i->attr). */
void attr_remember(struct inode *i, const struct stat *st);
/* The same of what a look that began at looked_ms (boot_ms) saw, unless something newer is remembered: the
 * kernel may then be told both in the wrong order. */
void attr_remember_look(struct inode *i, const struct stat *st, uint64_t looked_ms);
/* Is it of the size and mtime of *at?  Inode locked. */
bool attr_is(const struct inode *i, const struct location *at);
/* An open found *at at `looked_ms` or later (boot_ms), and has let the kernel drop the attributes that
 * it had: of a file that goes unflushed while it is open, nothing later may be known. */
void attr_opened(struct inode *i, const struct location *at, uint64_t looked_ms);
/* A look at the PFS from looked_ms on (boot_ms) found *stx: what is the PFS's word alone is remembered,
 * before known_note says how old that is. */
void attr_seen(struct inode *i, const struct statx *stx, uint64_t looked_ms);
/* This node's pass has made the PFS have f as *stx (flush_on_copied).  If that is what this node alone has
 * made it, it is remembered, and known; the kernel asks.  Without a lock. */
void attr_flushed(struct file *f, const struct statx *stx, uint64_t looked_ms);
/* What was last known, with our own word on the size if we hold the claim: while the PFS hangs.
 * False: nothing is known. */
bool attr_last(struct inode *i, struct stat *st);
/* Answers an entry: inode_found was called by the caller; drops the lookup count again if it was
 * not taken.  Takes over the caller's reference of i and ends r.  attr_valid false: the kernel must
 * ask again before it uses the attributes; true: the caller has remembered them. */
void reply_entry(struct request *r, struct inode *i, const struct stat *st, bool attr_valid);
/* The parts of it: what the kernel is told of i. */
void entry_fill(struct fuse_entry_param *e, struct inode *i, const struct stat *st,
                bool attr_valid);
void entry_fill_known(struct fuse_entry_param *e, struct inode *i, const struct stat *st,
                      double left); /* good for `left` seconds more */
/* What a look less than the attribute time-out ago saw, if no node has changed the file since, and for how
 * many seconds it may still be told; it is remembered as told.  here: false if the PFS or another node must
 * be asked.  The other asks the home (blocking): -EAGAIN: the PFS must be looked at; -errno. */
bool attr_known_here(struct inode *i, struct stat *st, double *left);
int attr_known(struct inode *i, struct stat *st, double *left);

/* ---- ahead.c: looks ahead at the files of a directory ---- */
void ahead_start(void);
void ahead_stop(void); /* waits until none is under way; before inode_stop */
/* False: nothing was looked at ahead here lately, and nothing will be, as the PFS is quick. */
bool ahead_may_answer(const struct inode *dir);
/* The regular file that the kernel knows by this name, referenced, or NULL; *left: for how many seconds the
 * name may still be told, <= 0: it must be looked at. */
struct inode *ahead_find(struct inode *dir, const char *name, double *left);
/* An application looks at such a file of dir; helped: a look ahead has answered. */
void ahead_asked(struct inode *dir, bool helped);

/* ---- known.c: what needs no look at the PFS ---- */
/* Below a path of --immutable?  Of what was found in parent (NULL: the root itself). */
void known_mark(struct inode *i, const struct inode *parent);
/* How long the kernel may believe attributes and names in a directory, and that a name in it is not
 * there. */
double known_timeout(const struct inode *i);
double known_negative_timeout(const struct inode *dir);
/* Need closes of who only reads it be told, for the locks that they end? */
bool known_closes_matter(const struct inode *i);
/* A look at the PFS, begun at looked_ms, and then the home's answer; at may be NULL: nothing is
 * known now. */
void known_note(struct inode *i, const struct statx *stx, const struct location *at,
                uint64_t looked_ms);
/* Opens f (of i) for reading without the PFS, and counts the open.  -EAGAIN: it must be opened as
 * usual. */
int known_open(struct inode *i, struct file *f, struct data_handle **out);
/* Before the name in dir goes, or when the PFS will be needed: what is open without a descriptor
 * gets one, if it can be had. */
void known_want_descriptor(struct inode *i);
/* ... by name; its file, referenced, if it is open here. */
struct file *known_before_removal(struct inode *dir, const char *name);

/* Our own name and attribute operations move a file's ctime but not its data: a stat before and one
 * after, published, so that nobody's cached data becomes stale by a chmod or a mv.  Always, not
 * only for files that are cached here: other nodes may have them, and the kernel's look-up just
 * before has brought the attributes to the PFS's client. */
struct same {
    bool on, times; /* times: mtime is meant to change too */
    bool own;       /* ... and only the store's own base tells whether somebody wrote */
    struct fid fid;
    struct version before;
};
/* nothing for what is no regular file */
void same_begin(struct same *s, const struct statx *before);
void same_end(struct same *s, const struct statx *after);

/* ---- xattr.c, for looks at many files ---- */
/* What applications have asked for, less than the attribute time-out ago, of files in dir: a bit for each kind. */
unsigned xattr_wanted(struct inode *dir);
/* Those of them that the file by this name, seen as *stx just before, does not have. Blocking.  i: its inode, which may
 * know it already; or NULL. */
unsigned xattr_look(struct pfs_dir *d, const char *name, const struct statx *stx, unsigned wanted,
                    struct inode *i);
/* i was seen as *stx, and then without these. */
void xattr_absent(struct inode *i, const struct statx *stx, unsigned absent);

/* ---- dir_policy.c: user.eddy.flush of directories ---- */
/* The policy of i's directories for f, which is opened for writing.  Asks the PFS where nothing
 * fresh is known. Blocking. */
void dir_policy_apply(const struct inode *i, struct file *f);
bool dir_policy_is_name(const char *xattr);
/* May it have this value?  -EINVAL */
int dir_policy_check(const struct inode *i, const char *value, size_t len);
void dir_policy_changed(struct inode *i); /* set or removed here */

/* ---- names.c, for the others ---- */
/* The inode of what was found under this name: as inode_found. */
struct inode *names_found(struct inode *parent, const char *name, const struct statx *stx);
/* r->name of a new or changed name.  -ENAMETOOLONG; -EPERM: the hidden name in the root. */
int names_take(char to[REQUEST_NAME_MAX], const struct inode *parent, const char *name);

/* ---- file.c, for names.c (create) and others ---- */
struct handle {          /* fi->fh */
    struct inode *inode; /* referenced */
    struct data_handle *data;
    int flags;                    /* of open */
    struct flush_seen error_seen; /* flush_error_once */
    /* IO_NONE: the kernel does not know of it.  IO_STALE: no mode can be given (mode.c) */
    enum io_mode { IO_NONE, IO_CACHED, IO_DIRECT, IO_PASSTHROUGH, IO_STALE } mode;
    unsigned life;      /* passthrough: of which data file (store_pass_open) */
    unsigned turn;      /* cached: of the inode's kept_pages ... */
    _Atomic bool asked; /* ... to which a read by this open was told */
    /* the kernel's until RELEASE, and each request's: an interrupted one may outlive RELEASE */
    _Atomic unsigned refs;
    struct handle *next, **prev; /* file.c's list */
    /* Owners of fcntl locks that were asked for through it (inode's lock).  An OFD lock's owner is
     * the open file: the kernel sends no unlock at its close, and no FLUSH in its name. */
    uint64_t *lockers;
    unsigned nlockers;
};
static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}
/* Opens data of inode i (pfs_open_file done or fd adopted) and fills fi (mode, keep_cache): the
 * second half of open and create. */
int file_open_handle(struct request *r, struct inode *i, const struct statx *stx, struct file *f,
                     bool created, struct handle **out);
void file_close_handle(struct handle *h); /* blocking */
/* The handles of the request's arguments (fi2 may be NULL) stay until it is freed: the kernel sends
 * RELEASE when an interrupted request was answered, though its job still runs. */
void file_hold(struct request *r, const struct fuse_file_info *fi,
               const struct fuse_file_info *fi2);
int file_sync(struct handle *h); /* fsync, as its mode says.  Blocking. */
void file_start(void);
void file_close_all(void); /* at the end: RELEASEs may have been lost. Blocking. */
/* An open handle for writing of this inode, or a temporary one (setattr size on a path):
 * blocking. */
int file_open_for_truncate(struct request *r, struct inode *i, struct handle **out);

/* ---- mode.c: which I/O mode an open gets, decided in one place under the inode's lock ---- */
/* i->lock held.  here: the latest bytes are this node's or the PFS's; can_pass: passthrough can be
 * had, with the same data file as that of the opens that have it. */
enum io_mode mode_enter(struct inode *i, int flags, bool here, bool can_pass);
void mode_leave(struct inode *i, enum io_mode m);
bool mode_may_pass(const struct inode *i); /* would it be given if it can be had? */

/* ---- kept.c: whether the kernel's pages stay at an open; i->lock held ---- */
/* For a cached open that is counted already: true = they hold what it is to see.  *turn: for
 * kept_asked. */
bool kept_open(struct inode *i, const struct data_tag *tag, unsigned *turn);
/* The kernel has taken the answer to an open of that turn: it asks for bytes by it. */
void kept_asked(struct inode *i, unsigned turn);
/* What becomes of the pages is not known: passthrough. */
void kept_lose(struct inode *i);

/* ---- backing.c: FUSE passthrough; any thread, while the mount lives ---- */
/* sets settings.passthrough to whether it works here; before the first open */
void backing_try(bool kernel_has_it);
/* the kernel's id, > 0, for a file opened read-only; -errno */
int backing_open(int fd);
void backing_close(int id);

/* ---- notify.c: one thread, no locks held ---- */
void notify_start(void);
void notify_stop(void);
/* pages (and attributes) stale; not waited for */
void notify_data(uint64_t nodeid, int64_t off, int64_t len);
/* ... waits until the kernel dropped them; not from a request's own FUSE thread */
void notify_data_wait(uint64_t nodeid);
void attr_born(struct inode *i);       /* this node has just created it */
void attr_touched(struct inode *i);    /* this node has changed more than its data */
void notify_attr_now(uint64_t nodeid); /* attributes only: safe inside OPEN */
void notify_entry(uint64_t parent, const char *name);

/* ---- control.c: the socket CACHE_DIR/control for `eddy` ---- */
int control_start(char *err, size_t errlen);
void control_stop(void);

#endif
