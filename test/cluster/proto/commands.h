/* commands.h - protonode's commands (protonode.c lists them): one line of input each, answered by one
 * line.
 *
 *   commands.c   taken from the input, given to the others, answered
 *   claims.c     files and their claims
 *   locks.c      locks
 *   looks.c      looking, and being told that a file changes
 *   keeps.c      last copies that it does not keep
 *   state.c      what the node knows of the session
 */
#ifndef EDDY_TEST_PROTO_COMMANDS_H
#define EDDY_TEST_PROTO_COMMANDS_H

#include "placement/store/file.h"

#define WORDS_MAX 10

extern int pfs_fd; /* the PFS directory, O_PATH */

struct command {
    struct command *next;
    char *line, *tag, *words[WORDS_MAX]; /* words[0] is the command */
    int n;
    uint64_t from_ns;
    uint64_t lock_id;
};

/* ---- commands.c ---- */
void serve(void); /* reads commands until "quit" or the end of the input */
/* The answer; frees c. */
__attribute__((format(printf, 2, 3))) void answer(struct command *c, const char *format, ...);
void answer_code(struct command *c, int err);
const char *word(const struct command *c, int i);
uint64_t number(const struct command *c, int i);
/* A lock command that may wait; found again by its tag until it is answered (0: it is). */
void command_waits(struct command *c);
uint64_t command_lock_id(const char *tag);

/* ---- claims.c ---- */
int fid_at(const char *path, struct fid *out); /* also of a fid's text */
void do_where(void *c);
void do_open_writer(void *c);
void do_close_writer(void *c);
void do_write(void *c);
void do_read(void *c);

/* ---- locks.c ---- */
void do_lock(struct command *c);
void do_test(struct command *c);
void do_drop(struct command *c);
void do_cancel(struct command *c);
void do_number(struct command *c);
void do_late(void *c);

/* ---- looks.c ---- */
void do_look(void *c);
void do_closed(struct command *c);
void do_holds(struct command *c);
void do_looks(struct command *c);
void do_lookers(struct command *c);
void do_left(struct command *c);
void do_watchers(struct command *c);
void do_break(void *c);
void do_pretend_looks(struct command *c);

uint64_t node_named(const char *name); /* a member; 0: there is none */

/* ---- keeps.c ---- */
void keeps_start(void); /* before peer_start: it answers KEEP */
void do_has(void *c);
void do_says(struct command *c);
void do_asked(struct command *c);
void do_keep(void *c);

/* ---- state.c ---- */
void do_ring(struct command *c);
void do_view(struct command *c);
void do_status(struct command *c);
void do_pretend(struct command *c);
void do_leave(void *c);

#endif
