/* eddy_clean.c - eddy clean: removes the session directories that nobody needs any more.
 *
 * The last node of a session removes its directory.  One stays if the job was killed, or if a node that left had the only copy
 * of something.  What is removed here is only
 *
 *   - a session whose newest view has neither members nor absent nodes, without lists of unflushed files and marks, as its last
 *     node would have done (transport/session_end.h): a node that joins meanwhile is first, or makes another session;
 *   - the remains of one that its last node did not remove to the end, and of one that was never complete, after an hour;
 *   - with --dead DAYS, one whose nodes gave no sign of life for so long by the PFS's clock, none of which answers at its
 *     address, and which has no list and no mark.  A node that lives all the same, and could not be reached, is fenced: it
 *     writes nothing to the PFS any more, what it has stays in its cache directory, and `eddy recover` there takes it up.
 *
 * A directory that has anything else in it than a session has is left alone, whatever --session-dir names.  Of this host, the
 * shared memory of daemons that were killed goes, too (transport/segments.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_sessions.h"
#include "transport/marks.h"
#include "transport/segments.h"
#include "transport/session_end.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define HOUR_NS    (INT64_C(3600) * 1000000000)
#define DAY_MS     UINT64_C(86400000)
#define SIGN_MS    60000 /* members touch their view each second or so */
#define CONNECT_MS 2000

struct clean {
    bool dry, json;
    uint64_t dead_ms; /* 0: not given */
    const char *dir;  /* as people know it */
    int base_fd;
    json_t *list;
    unsigned removed, kept, failed;
};

/* ---- what is said ---- */

static void tell(struct clean *c, const char *session, int err, const char *why)
{
    bool gone = !err && !why;
    c->removed += gone;
    c->failed += err != 0;
    if (err)
        why = strerror(-err);
    if (c->json)
        json_array_append_new(c->list, json_pack("{s:s, s:s, s:b, s:s*}", "dir", c->dir, "session", session, "removed",
                                                 gone && !c->dry, "why", why));
    else if (err)
        complain("%s/%s: cannot be removed: %s", c->dir, session, why);
    else
        printf("%s/%s: %s%s\n", c->dir, session, why ? "kept: " : c->dry ? "would be removed" : "removed", why ? why : "");
}

/* Names of the nodes, a few of them. */
static void list_names(const struct view *v, bool absent, char *text, size_t size)
{
    size_t at = 0;
    uint32_t n = v->nmembers + (absent ? v->nabsent : 0);
    *text = 0;
    for (uint32_t i = 0; i < n && at + NODE_NAME_MAX + 8 < size; i++) {
        const char *name = i < v->nmembers ? v->members[i].name : v->absents[i - v->nmembers].name;
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", name);
        if (i == 7 && n > 8) {
            snprintf(text + at, size - at, ", ...");
            return;
        }
    }
}

/* ---- does a node live? ---- */

/* Somebody accepts connections there: a daemon that is stopped or slow lives, too. */
static bool answers(const char *addr)
{
    char host[NODE_ADDR_MAX];
    snprintf(host, sizeof(host), "%s", addr[0] == '[' ? addr + 1 : addr);
    char *port = strrchr(host, ':');
    if (!port)
        return false;
    *port++ = 0;
    if (port > host + 1 && port[-2] == ']')
        port[-2] = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *a;
    if (getaddrinfo(host, port, &hints, &a))
        return false;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
    bool yes = fd >= 0 && !connect(fd, a->ai_addr, a->ai_addrlen);
    if (fd >= 0 && !yes && errno == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t len = sizeof(err);
        yes = poll(&p, 1, CONNECT_MS) == 1 && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err;
    }
    if (fd >= 0)
        close(fd);
    freeaddrinfo(a);
    return yes;
}

static const struct member *who_answers(const struct view *v)
{
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (answers(v->members[i].addr))
            return &v->members[i];
    return NULL;
}

/* ---- one session ---- */

/* Nodes did not leave it.  Says why it stays, or ends it. */
static void judge(struct clean *c, const char *name, int fd, const struct view *v, uint64_t age_ms, bool listed)
{
    char why[1024], nodes[512];
    const struct member *alive;
    bool used = v->nmembers && age_ms < SIGN_MS;
    list_names(v, !used, nodes, sizeof(nodes));
    if (used) {
        snprintf(why, sizeof(why), "it is in use by %s", nodes);
        tell(c, name, 0, why);
        return;
    }
    c->kept++; /* unless it goes */
    if (listed)
        snprintf(why, sizeof(why), "nodes have data that is not on the PFS (\"eddy check\" lists it), or were forgotten: %s", nodes);
    else if (!c->dead_ms)
        snprintf(why, sizeof(why),
                 "%s did not end in order, and may have in their caches what they wrote last (%.1f days without a sign of life): "
                 "start eddyfs or \"eddy recover\" there, or give it up with --dead DAYS",
                 nodes, (double)age_ms / (double)DAY_MS);
    else if (age_ms < c->dead_ms)
        snprintf(why, sizeof(why), "%s gave a sign of life %.1f days ago", nodes, (double)age_ms / (double)DAY_MS);
    else if ((alive = who_answers(v)))
        snprintf(why, sizeof(why), "something answers at the address of %s, %s", alive->name, alive->addr);
    else {
        c->kept--;
        tell(c, name, c->dry ? 0 : session_give_up(c->base_fd, name, fd, v), NULL);
        return;
    }
    tell(c, name, 0, why);
}

static int clean_session(void *arg, const char *name, int fd)
{
    struct clean *c = arg;
    struct view *v = NULL;
    uint64_t age_ms;
    bool listed;
    int is = session_is_one(fd, strncmp(name, TEXTFILE_TEMP, strlen(TEXTFILE_TEMP)) != 0);
    if (is != 1) { /* whoever names a wrong directory loses nothing */
        tell(c, name, is, is ? NULL : "it is no session's directory");
        return 0;
    }
    int may = session_may_go(fd), err = 0;
    if (may == -EBUSY || may == -ENOTEMPTY)
        err = session_look(fd, &v, &age_ms, &listed);
    if (err || (may && may != -EBUSY && may != -ENOTEMPTY)) {
        tell(c, name, err ? err : may, NULL);
    } else if (may && v && (v->nmembers || v->nabsent)) {
        judge(c, name, fd, v, age_ms, listed);
    } else if (may) {
        c->kept++;
        tell(c, name, 0, "nodes that left have data that is not on the PFS (\"eddy check\" lists it), or were forgotten");
    } else {
        err = c->dry ? 0 : session_end_dir(c->base_fd, name, fd);
        tell(c, name, err == -EBUSY ? 0 : err, err == -EBUSY ? "a node has joined it just now" : NULL);
    }
    view_free(v);
    return 0;
}

/* What a node that died while it made a session left. */
static void clean_unborn(struct clean *c)
{
    int64_t now_ns, made_ns;
    void *dir;
    int err = 0;
    if (textfile_now(c->base_fd, &now_ns) || textfile_opendir(c->base_fd, ".", &dir))
        return;
    for (struct dirent *d; (d = textfile_readdir(dir, &err));) {
        if (strncmp(d->d_name, TEXTFILE_TEMP, strlen(TEXTFILE_TEMP)) || textfile_mtime(c->base_fd, d->d_name, &made_ns) ||
            now_ns - made_ns < HOUR_NS)
            continue;
        int fd = openat(c->base_fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        clean_session(c, d->d_name, fd);
        close(fd);
    }
    closedir(dir);
}

/* ---- the directories that hold sessions ---- */

/* path: to open it; dir: for people. */
static int clean_base(struct clean *c, const char *path, const char *dir)
{
    c->dir = dir;
    c->base_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = c->base_fd < 0 ? -errno : 0;
    if (err) {
        complain("%s: %s", dir, strerror(-err));
        return err;
    }
    clean_unborn(c);
    err = session_each(path, clean_session, c);
    close(c->base_fd);
    if (err)
        complain("%s: %s", dir, strerror(-err));
    return err;
}

/* PFS_DIR/.eddyfs-UID goes with its last session. */
static int clean_users(void *arg, const struct users_sessions *s)
{
    struct clean *c = arg;
    int err = clean_base(c, s->path, s->name);
    if (!err && !c->dry)
        (void)unlinkat(s->pfs_fd, s->below, AT_REMOVEDIR);
    return err;
}

/* Root's command is for all users. */
static int clean_pfs_dir(struct clean *c, const char *path)
{
    int found;
    return each_users_sessions(path, !geteuid(), clean_users, c, &found);
}

static int finish(struct clean *c, int err)
{
    if (c->json) {
        json_t *all = json_pack("{s:b, s:i, s:o}", "dry_run", c->dry, "removed", c->dry ? 0 : (int)c->removed, "sessions", c->list);
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
    } else {
        json_decref(c->list);
        if (!c->removed && !c->kept && !c->failed && !err)
            puts("nothing to remove");
    }
    if (c->failed || err)
        return c->removed ? PARTLY : FAILED;
    return c->kept ? NOT_ON_PFS : DONE;
}

int clean_main(int argc, char **argv)
{
    static const struct option options[] = {{"session-dir", required_argument, NULL, 's'}, {"dead", required_argument, NULL, 'd'},
                                            {"dry-run", no_argument, NULL, 'n'},           {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},              {0}};
    struct clean c = {.list = NULL};
    const char *session_dir = NULL;
    for (int o; (o = next_option(argc, argv, "nh", options)) != -1;) {
        char *end;
        unsigned long days;
        if (o == 'h')
            return help_of("clean");
        if (o == 's') {
            session_dir = optarg;
        } else if (o == 'n') {
            c.dry = true;
        } else if (o == 'j') {
            c.json = true;
        } else if (o == 'd') {
            days = strtoul(optarg, &end, 10);
            if (end == optarg || *end || !days || days > 36500) {
                complain("--dead %s: give a number of days, 1 or more", optarg);
                return WRONG_USAGE;
            }
            c.dead_ms = days * DAY_MS;
        } else {
            return usage_of("clean");
        }
    }
    if (argc - optind != (session_dir ? 0 : 1))
        return usage_of("clean");
    if (!c.dry)
        segments_clean();
    c.list = json_array();
    return finish(&c, session_dir ? clean_base(&c, session_dir, session_dir) : clean_pfs_dir(&c, argv[optind]));
}
