/* session.h - the session directory on the PFS: how nodes find each other without a name service.
 *
 *   SESSION_DIR/NAME/           0700, default PFS_DIR/.eddyfs-UID/NAME
 *     secret                    32 random bytes, 0600: proves every peer
 *     settings                  text: protocol major version, chunk size, times (times.h)
 *     probes/                   three probe files and their fids as the first node saw them
 *     nodes/ID                  one per node: name, address, boot id, incarnation (text, replaced by rename)
 *     views/NNNNNN              text; written under another name, then link()ed: exclusive and complete at once
 *     forgotten/FID.NODE        marks of `eddy forget`
 *     moves/NNNNNNNN            directories and files that got other paths (moves.h); made as views are
 *     dirty/ID                  fids and relative paths of files that are dirty on that node
 *
 * Everything here blocks on the PFS: only pool_session (or start-up, or the eddy tool) calls it,
 * except the getters.  All files are parsed as hostile: bounded size, bounded counts, plain names.
 */
#ifndef EDDY_TRANSPORT_SESSION_H
#define EDDY_TRANSPORT_SESSION_H

#include "transport/base.h"
#include "transport/view.h"

struct session_config {
    const char *dir;  /* the directory that holds sessions (--session-dir) */
    bool dir_is_default; /* it goes with the last session in it */
    const char *name;    /* --session */
    uint32_t chunk_size;
    struct fid pfs; /* the PFS directory's; zero: not looked at */
};

/* Creates or opens the session; makes the secret and settings exclusively (link) or reads and
 * checks them. On error writes a message that says what to do into err.  -EPROTO: other protocol,
 * chunk size, times or PFS directory;
 * -EACCES/-EROFS..: the directory cannot be made (the message names --session-dir). */
int session_open(const struct session_config *c, char *err, size_t errlen);
/* Would session_open refuse this node's settings?  Before anything else is opened, so that nothing is changed for them: as
 * session_open; 0 also if there is no such session, or it cannot be read. */
int session_agrees(const struct session_config *c, char *err, size_t errlen);
/* The open session turned out to be over before this node joined it: opens the new one of that name in its place, under the same
 * descriptor. */
int session_open_again(const struct session_config *c, char *err, size_t errlen);
void session_close(void);
const uint8_t *session_secret(void); /* 32 bytes */
const char *session_name(void);
const char *session_base(void); /* the directory that holds sessions, as it was given */
bool session_base_is_default(void);
int session_dirfd(void);

/* Probe files: the first node makes three files in probes/ and records their fids, given by fid_of
 * (placement's fid_of_fd; called with a descriptor opened O_PATH).  Later nodes look them up in
 * another order and compare.  -EXDEV with err set when they differ: a PFS without stable inode
 * numbers.  -ESTALE: the session ended meanwhile. */
typedef int (*session_fid_fn)(int fd, struct fid *out);
int session_probe(session_fid_fn fid_of, char *err, size_t errlen);

/* Writes this node's file nodes/ID.  It does not check whether another node has the same name (members.c
 * does). */
int session_write_node(const struct member *self);
/* Reads one node's file.  -ENOENT; -EPROTO: malformed.  Logs a warning for -EPROTO and any other error. */
int session_read_node(uint64_t id, struct member *out);
int session_remove_node(uint64_t id);

/* The newest view's number (0 = none), by reading the directory, never by a cached look-up. */
int session_newest(uint64_t *number);
int session_read_view(uint64_t number, struct view **out); /* -ENOENT, -EPROTO */
/* Creates views/number exclusively.  -EEXIST: another node was first. */
int session_make_view(const struct view *v); /* -ESTALE: the session is over */
int session_touch_view(uint64_t number);
/* *ms: milliseconds since the view's file was touched, by the PFS's clock (a file written now gives
 * "now"). */
int session_view_age_ms(uint64_t number, uint64_t *ms);

#endif
