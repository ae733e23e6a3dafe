/* session_int.h - between the files of the session directory: session.c, session_*.c, view.c.  All block on the
 * PFS. */
#ifndef EDDY_TRANSPORT_SESSION_INT_H
#define EDDY_TRANSPORT_SESSION_INT_H

#include "transport/view.h"

/* Where the message about an error goes, and the names that it uses for what is being opened (NULL: it uses none). */
struct session_report {
    char *text;
    size_t len;
    const char *dir, *name;
};
/* Returns err, with the message in *r. */
int session_fail(const struct session_report *r, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define VIEW_NAME_SIZE 24
void view_name(uint64_t number, char name[VIEW_NAME_SIZE]);
bool view_number(const char *name, uint64_t *number); /* false: it is no view's name */
/* The newest view in an open directory views/; 0: none. */
int views_newest(int views_fd, uint64_t *newest);
int views_read(int views_fd, uint64_t number, struct view **out); /* -ENOENT, -EPROTO */
int views_make(int session_fd, const struct view *v);             /* session_make_view */
int views_age_ms(int views_fd, uint64_t number, uint64_t *ms);    /* session_view_age_ms */
/* Is the session's file `settings` listed?  1, 0 or -errno.  The directory is read, nothing is looked up. */
int session_has_settings(int session_fd);
/* 1: nodes may meet in this directory.  0: the session in it is over.  -errno */
int session_is_open(int session_fd);
/* 1: the open directory, which has no settings, has nothing but what a session that is over has left, or nothing at all; 0: it has
 * other files; or -errno. */
int session_is_rest(int session_fd);
/* Removes what is left of a session that is over: session_fd, which is or was `name` in base_fd.  0; -ENOTEMPTY: not all is gone
 * (others are at it, or there is what is not eddyfs's, which stays). */
int session_remove(int base_fd, const char *name, int session_fd);

#endif
