/* eddy_ring.c - eddy ring: which nodes own a file's chunks, and each node's share of the chunks.
 *
 * The ring is a pure function of the members, so it is computed here, from the members that a daemon
 * reports or that are in the newest view in the session directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "placement/pfs/pfs_fid.h"
#include "placement/ring/ring.h"
#include "tools/eddy.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define ANSWER_MS     40000 /* the daemon may ask other nodes for 30 s */
#define SAMPLES       (1u << 20)
#define DEFAULT_CHUNK (1u << 20)
#define NODES_MAX     SESSION_MAX_MEMBERS
#define VIEW_MAX      (16u << 20)

struct question {
    unsigned nodes;   /* 0: the session's */
    const char *path; /* NULL: none */
    struct view *view;
    uint64_t chunk_size, size;
    struct fid fid;
    bool has_file;
    char *latest;
};

/* ---- the members ---- */

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct member *)a)->id, y = ((const struct member *)b)->id;
    return (x > y) - (x < y);
}

static struct view *view_new(uint32_t n)
{
    struct view *v = xcalloc(1, sizeof(*v));
    v->members = xcalloc(n ? n : 1, sizeof(*v->members));
    v->nmembers = n;
    return v;
}

/* node1 to nodeN, with numbers made from their names. */
static struct view *simulated_view(unsigned n)
{
    struct view *v = view_new(n);
    for (unsigned i = 0; i < n; i++) {
        struct member *m = &v->members[i];
        snprintf(m->name, sizeof(m->name), "node%u", i + 1);
        m->id = XXH3_64bits(m->name, strlen(m->name));
        m->weight = 100;
    }
    qsort(v->members, n, sizeof(*v->members), by_id);
    return v;
}

static bool member_from_json(const json_t *o, struct member *m)
{
    const char *name = json_text(o, "name");
    uint64_t weight = json_u64(o, "weight");
    if (!name_is_plain(name) || !weight || weight > WEIGHT_MAX)
        return false;
    strcpy(m->name, name);
    m->id = strtoull(json_text(o, "id"), NULL, 16);
    m->weight = (uint32_t)weight;
    return true;
}

/* NULL: what the daemon says are no members. */
static struct view *view_from_json(const json_t *members)
{
    size_t i, n = json_array_size(members);
    json_t *o;
    bool good = n <= SESSION_MAX_MEMBERS;
    struct view *v = view_new(good ? (uint32_t)n : 0);
    for (i = 0; good && i < n && (o = json_array_get(members, i)); i++)
        good = member_from_json(o, &v->members[i]);
    qsort(v->members, v->nmembers, sizeof(*v->members), by_id);
    for (i = 1; good && i < n; i++)
        good = v->members[i - 1].id != v->members[i].id;
    if (good)
        return v;
    view_free(v);
    return NULL;
}

/* The newest complete file of views/: their names are numbers. */
static int read_newest_view(int session_fd, struct view **out)
{
    void *dir;
    uint64_t newest = 0;
    char name[300], *text;
    size_t len;
    int err = textfile_opendir(session_fd, "views", &dir);
    if (err)
        return err;
    for (struct dirent *d; (d = readdir(dir));) {
        char *end;
        uint64_t number = strtoull(d->d_name, &end, 10);
        if (!*end && number > newest) {
            newest = number;
            snprintf(name, sizeof(name), "views/%s", d->d_name);
        }
    }
    closedir(dir);
    err = newest ? textfile_read(session_fd, name, VIEW_MAX, &text, &len) : -ENOENT;
    if (err)
        return err;
    err = view_parse(text, len, out);
    free(text);
    return err;
}

static int view_from_session(const struct mount_entry *e, struct view **out)
{
    char *path;
    if (asprintf(&path, "%s/%s", e->session_dir, e->session) < 0)
        return -ENOMEM;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 ? -errno : read_newest_view(fd, out);
    if (fd >= 0)
        close(fd);
    if (err)
        complain("%s/views: %s: no daemon answers, and the session's members cannot be read", path,
                 strerror(-err));
    free(path);
    return err;
}

/* ---- the file ---- */

struct search {
    struct mount_entry entry;
    char *below; /* path below the mount */
};

static int only_mount(void *arg, const struct mount_entry *e)
{
    char **path = arg;
    bool runs = false;
    if (daemon_runs(e, &runs) || !runs)
        return 0;
    if (*path)
        return 1;
    *path = xstrdup(e->mountpoint);
    return 0;
}

static int stat_file(struct question *q, const char *path)
{
    struct statx stx;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, PFS_STATX_MASK, &stx)) {
        complain("%s: %m", path);
        return -errno;
    }
    if (!S_ISREG(stx.stx_mode)) {
        complain("%s: is not a regular file: it has no chunks", path);
        return -EINVAL;
    }
    q->fid = fid_of(&stx);
    q->size = stx.stx_size;
    q->has_file = true;
    return 0;
}

static int ask_daemon(struct question *q, const struct search *s)
{
    json_t *answer;
    int err =
        talk_once(&s->entry, "where", json_pack("{s:s}", "path", s->below), ANSWER_MS, &answer);
    if (err) {
        if (err != -ECONNREFUSED)
            complain("%s: %s", q->path, talk_error(answer, err));
        json_decref(answer);
        return err;
    }
    q->view = view_from_json(json_object_get(answer, "members"));
    if (!q->view) {
        complain("%s: its daemon gives an answer that is none", q->path);
        json_decref(answer);
        return -EPROTO;
    }
    q->view->number = json_u64(answer, "view");
    q->chunk_size = json_u64(answer, "chunk_size");
    q->size = json_u64(answer, "size");
    q->has_file = !fid_parse(json_text(answer, "fid"), &q->fid);
    q->latest = xstrdup(json_text(answer, "latest"));
    json_decref(answer);
    return 0;
}

/* Without a daemon: the PFS itself, and the newest view there. */
static int ask_pfs(struct question *q, const struct search *s)
{
    char *path;
    int become = become_owner(&s->entry);
    if (become) {
        complain("%s: no daemon answers, and its user cannot be asked: %s", q->path,
                 strerror(-become));
        return become;
    }
    if (*s->below) {
        if (asprintf(&path, "%s/%s", s->entry.pfs_dir, s->below) < 0)
            return -ENOMEM;
        int err = stat_file(q, path);
        free(path);
        if (err)
            return err;
    }
    return view_from_session(&s->entry, &q->view);
}

static int ask_session(struct question *q)
{
    struct search s = {0};
    int err = find_mount_of_file(q->path, &s.entry, &s.below);
    if (err == -ENOENT)
        complain("%s: is in no eddyfs of yours; --nodes N shows where it would be on N nodes",
                 q->path);
    else if (err)
        complain("%s: %s", q->path, strerror(-err));
    else if ((err = ask_daemon(q, &s)) == -ECONNREFUSED)
        err = ask_pfs(q, &s);
    mount_entry_free(&s.entry);
    free(s.below);
    return err;
}

static int ask_only_session(struct question *q)
{
    char *path = NULL;
    int err = mount_map_each(only_mount, &path) || !path ? -EINVAL : 0;
    if (err) {
        complain("%s: name one, or give --nodes N",
                 path ? "there are several mounts" : "no eddyfs of yours is mounted here");
    } else {
        q->path = path;
        err = ask_session(q);
        q->path = NULL;
    }
    free(path);
    return err;
}

/* ---- the answer ---- */

static const char *name_of(const struct view *v, uint64_t id)
{
    struct member key = {.id = id}, *m = bsearch(&key, v->members, v->nmembers, sizeof(key), by_id);
    return m ? m->name : "-";
}

static int width_of(const struct view *v)
{
    size_t width = strlen("owner");
    for (uint32_t i = 0; i < v->nmembers; i++)
        width = MAX(width, strlen(v->members[i].name));
    return (int)width;
}

static void print_chunks(const struct question *q, const struct ring *r)
{
    const struct view *v = q->view;
    char size[24], text[FID_TEXT];
    int width = width_of(v);
    uint64_t n = (q->size + q->chunk_size - 1) / q->chunk_size;
    char *path = control_escape(q->path);
    printf("%s\n", path);
    free(path);
    printf("  file   %s, %s, %" PRIu64 " chunk%s of %" PRIu64 " KiB\n", fid_text(q->fid, text),
           size_format(q->size, size, sizeof(size)), n, n == 1 ? "" : "s", q->chunk_size >> 10);
    printf("  home   %s, then %s\n", name_of(v, ring_home(r, q->fid, 0)),
           name_of(v, ring_home(r, q->fid, 1)));
    if (q->latest && *q->latest)
        printf("  latest %s\n", q->latest);
    printf("  chunk       %-*s  next\n", width, "owner");
    for (uint64_t i = 0; i < n; i++)
        printf("  %-10" PRIu64 "  %-*s  %s\n", i, width, name_of(v, ring_owner(r, q->fid, i, 0)),
               name_of(v, ring_owner(r, q->fid, i, 1)));
}

/* By sampling: SAMPLES chunks of files with random fids, the same ones each time. */
static void print_shares(const struct question *q, const struct ring *r)
{
    const struct view *v = q->view;
    uint64_t *hits = xcalloc(v->nmembers ? v->nmembers : 1, sizeof(*hits));
    double total = 0;
    int width = width_of(v);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        struct fid fid = {XXH3_64bits(&i, sizeof(i)), XXH3_64bits_withSeed(&i, sizeof(i), 1)};
        struct member key = {.id = ring_owner(r, fid, 0, 0)};
        const struct member *m = bsearch(&key, v->members, v->nmembers, sizeof(key), by_id);
        if (m)
            hits[m - v->members]++;
    }
    for (uint32_t i = 0; i < v->nmembers; i++)
        total += v->members[i].weight;
    printf("%-*s  share    of its weight   (%u nodes)\n", width, "node", v->nmembers);
    for (uint32_t i = 0; i < v->nmembers; i++) {
        double share = (double)hits[i] / SAMPLES,
               fair = total > 0 ? v->members[i].weight / total : 1;
        printf("%-*s  %6.2f %%  %5.2f\n", width, v->members[i].name, 100 * share,
               fair > 0 ? share / fair : 0);
    }
    free(hits);
}

static int answer(struct question *q)
{
    int err = 0;
    if (q->nodes) {
        q->view = simulated_view(q->nodes);
        err = q->path ? stat_file(q, q->path) : 0;
    } else {
        err = q->path ? ask_session(q) : ask_only_session(q);
    }
    if (!err && !q->view->nmembers) {
        complain("the session has no members now");
        err = -ENOENT;
    }
    if (!err && !q->chunk_size)
        err = -EPROTO;
    if (!err) {
        struct ring *r = ring_new(q->view);
        if (q->has_file)
            print_chunks(q, r);
        else
            print_shares(q, r);
        ring_free(r);
    }
    if (q->view)
        view_free(q->view);
    free(q->latest);
    return err ? FAILED : DONE;
}

static bool parse_nodes(const char *text, unsigned *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (!*text || *end || *text == '-' || n < 1 || n > NODES_MAX) {
        complain("--nodes %s: is not a number from 1 to %u", text, NODES_MAX);
        return false;
    }
    *out = (unsigned)n;
    return true;
}

enum { OPT_HELP = 'h', OPT_NODES = 256 };

static const struct option options[] = {
    {"nodes", required_argument, NULL, OPT_NODES},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

int ring_main(int argc, char **argv)
{
    struct question q = {.chunk_size = DEFAULT_CHUNK};
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == OPT_HELP)
            return help_of("ring");
        if (c == '?')
            return usage_of("ring");
        if (!parse_nodes(optarg, &q.nodes))
            return WRONG_USAGE;
    }
    if (argc - optind > 1)
        return usage_of("ring");
    q.path = argv[optind];
    return answer(&q);
}
