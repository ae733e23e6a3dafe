/* view.c - views/: the numbered lists of members.
 *
 * A view's file, views/NNNNNN (six digits or more), with nodes and absent nodes in ascending order
 * of their ids:
 *
 *     eddyfs view 1
 *     number 12
 *     members 2
 *     absent 1
 *     member 00c4f2e91d0a7b35 3 65536 10.0.0.17:40123 node017
 *     member 9a1be0a7734c0d12 1 65536 10.0.0.18:40123 node018
 *     absent b0417fe13c2299aa 2 node019
 *     end
 *
 * One that has neither may have the line "closed" before its end: the session is over (session_end.c).
 *
 * member: id, incarnation, weight, address, name; absent: id, incarnation, name.
 *
 * Files are found by reading the directory, never by looking up a name: a PFS client that remembers "no
 * such file" would not see a new view.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/session_int.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define VIEW_FILE_MAX (8u << 20) /* SESSION_MAX_MEMBERS members and as many absent nodes fit */
#define VIEW_LINE_MIN 28 /* "absent ID I N\n" */
#define VIEWS_KEPT    16

bool view_absent(const struct view *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->nabsent; i++)
        if (v->absents[i].id == id)
            return true;
    return false;
}

/* ---- text ---- */

static void parse_member(struct words *w, struct member *m)
{
    words_match(w, "member ");
    m->id = words_hex(w);
    words_match(w, " ");
    m->incarnation = words_u64(w, UINT64_MAX);
    words_match(w, " ");
    m->weight = (uint32_t)words_u64(w, WEIGHT_MAX);
    words_match(w, " ");
    words_word(w, m->addr, sizeof(m->addr));
    words_match(w, " ");
    words_word(w, m->name, sizeof(m->name));
    words_match(w, "\n");
    w->bad |= !m->weight || !name_is_plain(m->name);
}

static void parse_absent(struct words *w, struct absent *a)
{
    words_match(w, "absent ");
    a->id = words_hex(w);
    words_match(w, " ");
    a->incarnation = words_u64(w, UINT64_MAX);
    words_match(w, " ");
    words_word(w, a->name, sizeof(a->name));
    words_match(w, "\n");
    w->bad |= !name_is_plain(a->name);
}

/* A count that is not larger than the number of lines that the rest can have. */
static uint32_t parse_count(struct words *w, const char *key)
{
    words_match(w, key);
    uint32_t n = (uint32_t)words_u64(w, SESSION_MAX_MEMBERS);
    words_match(w, "\n");
    if (n > (size_t)(w->end - w->p) / VIEW_LINE_MIN)
        w->bad = true;
    return w->bad ? 0 : n;
}

/* Only where nobody is missed. */
static bool parse_closed(struct words *w, const struct view *v)
{
    struct words line = *w;
    words_match(&line, "closed\n");
    if (line.bad)
        return false;
    *w = line;
    w->bad |= v->nmembers || v->nabsent;
    return true;
}

static void parse_lines(struct words *w, struct view *v)
{
    for (uint32_t i = 0; i < v->nmembers && !w->bad; i++) {
        parse_member(w, &v->members[i]);
        w->bad |= i && v->members[i].id <= v->members[i - 1].id;
    }
    for (uint32_t i = 0; i < v->nabsent && !w->bad; i++) {
        parse_absent(w, &v->absents[i]);
        w->bad |= i && v->absents[i].id <= v->absents[i - 1].id;
    }
    v->closed = parse_closed(w, v);
    words_match(w, "end\n");
    words_end(w);
}

/* Both lists are sorted: a node is in one of them. */
static bool lists_overlap(const struct view *v)
{
    for (uint32_t m = 0, a = 0; m < v->nmembers && a < v->nabsent;) {
        if (v->members[m].id == v->absents[a].id)
            return true;
        if (v->members[m].id < v->absents[a].id)
            m++;
        else
            a++;
    }
    return false;
}

int view_parse(const char *text, size_t len, struct view **out)
{
    struct words w = words_of(text, len);
    words_match(&w, "eddyfs view 1\nnumber ");
    uint64_t number = words_u64(&w, INT64_MAX);
    words_match(&w, "\n");
    uint32_t nmembers = parse_count(&w, "members ");
    uint32_t nabsent = parse_count(&w, "absent ");
    if (w.bad || !number)
        return -EPROTO;

    struct view *v = xcalloc(1, sizeof(*v));
    *v = (struct view){
        .number = number,
        .nmembers = nmembers,
        .nabsent = nabsent,
        .members = xcalloc(nmembers, sizeof(struct member)),
        .absents = xcalloc(nabsent, sizeof(struct absent)),
    };
    parse_lines(&w, v);
    if (w.bad || lists_overlap(v)) {
        view_free(v);
        return -EPROTO;
    }
    *out = v;
    return 0;
}

char *view_print(const struct view *v, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f)
        die("out of memory for a view's text");
    fprintf(f, "eddyfs view 1\nnumber %" PRIu64 "\nmembers %u\nabsent %u\n", v->number, v->nmembers,
            v->nabsent);
    for (uint32_t i = 0; i < v->nmembers; i++) {
        const struct member *m = &v->members[i];
        fprintf(f, "member %016" PRIx64 " %" PRIu64 " %u %s %s\n", m->id, m->incarnation, m->weight,
                m->addr, m->name);
    }
    for (uint32_t i = 0; i < v->nabsent; i++) {
        const struct absent *a = &v->absents[i];
        fprintf(f, "absent %016" PRIx64 " %" PRIu64 " %s\n", a->id, a->incarnation, a->name);
    }
    fprintf(f, "%send\n", v->closed ? "closed\n" : "");
    if (fclose(f))
        die("out of memory for a view's text");
    return text;
}

void view_free(struct view *v)
{
    if (!v)
        return;
    free(v->members);
    free(v->absents);
    free(v);
}

/* ---- files ---- */

void view_name(uint64_t number, char name[VIEW_NAME_SIZE])
{
    snprintf(name, VIEW_NAME_SIZE, "%06" PRIu64, number);
}

/* Only the name that number_print makes. */
bool view_number(const char *name, uint64_t *number)
{
    char again[VIEW_NAME_SIZE];
    struct words w = words_of(name, strlen(name));
    *number = words_u64(&w, INT64_MAX);
    words_end(&w);
    if (w.bad || !*number)
        return false;
    view_name(*number, again);
    return !strcmp(name, again);
}

int views_newest(int dirfd, uint64_t *newest)
{
    void *dir;
    int err = textfile_opendir(dirfd, ".", &dir);
    if (err)
        return err;
    *newest = 0;
    for (struct dirent *e; (e = textfile_readdir(dir, &err));) {
        uint64_t number;
        if (view_number(e->d_name, &number))
            *newest = MAX(*newest, number);
    }
    closedir(dir);
    return err;
}

int views_read(int dirfd, uint64_t number, struct view **out)
{
    char name[VIEW_NAME_SIZE], *text;
    size_t len;
    view_name(number, name);
    int err = textfile_read(dirfd, name, VIEW_FILE_MAX, &text, &len);
    if (err)
        return err == -EFBIG ? -EPROTO : err;
    err = view_parse(text, len, out);
    free(text);
    if (!err && (*out)->number != number) {
        view_free(*out);
        *out = NULL;
        err = -EPROTO;
    }
    return err;
}

/* ---- making one ---- */

/* Removes old views.  The last ones stay; a node that is behind by more begins from the newest one. */
static void remove_old(int dirfd, uint64_t newest)
{
    void *dir;
    int err;
    if (newest <= VIEWS_KEPT || textfile_opendir(dirfd, ".", &dir))
        return;
    for (struct dirent *e; (e = textfile_readdir(dir, &err));) {
        uint64_t number;
        if (view_number(e->d_name, &number) && number <= newest - VIEWS_KEPT)
            unlinkat(dirfd, e->d_name, 0);
    }
    closedir(dir);
}

/* The maker may have slept while others made many views, until the view of this number was removed
 * as old and the name was free again.  Then this node was not first, and the file is removed again. */
static int confirm(int dirfd, uint64_t number, const char *name)
{
    uint64_t newest;
    int err = views_newest(dirfd, &newest);
    if (err || newest < number || newest - number < VIEWS_KEPT)
        return err;
    unlinkat(dirfd, name, 0);
    return -EEXIST;
}

/* The maker may have slept while the session was closed, and the closed view was removed (session_end.c). */
static int confirm_open(int session_fd, int dirfd, const char *name)
{
    int has = textfile_is_listed(session_fd, "settings");
    if (!has)
        unlinkat(dirfd, name, 0);
    return has > 0 ? 0 : has < 0 ? has : -ESTALE;
}

/* Nothing is written that a reader would refuse. */
static int check_text(const char *text, size_t len)
{
    struct view *v;
    if (len > VIEW_FILE_MAX || view_parse(text, len, &v)) {
        log_error("a view was to be made that is not valid: not written");
        return -EINVAL;
    }
    view_free(v);
    return 0;
}

int views_make(int session_fd, const struct view *v)
{
    char name[VIEW_NAME_SIZE];
    size_t len;
    int fd = openat(session_fd, "views", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err;
    if (fd < 0)
        return -errno;
    char *text = view_print(v, &len);
    view_name(v->number, name);
    err = check_text(text, len);
    if (!err)
        err = textfile_create(fd, name, text, len);
    if (!err)
        err = confirm(fd, v->number, name);
    if (!err)
        err = confirm_open(session_fd, fd, name);
    if (!err) {
        int64_t now_ns;
        if (!textfile_mtime(fd, name, &now_ns))
            textfile_sweep(fd, now_ns);
        remove_old(fd, v->number);
    }
    free(text);
    close(fd);
    return err;
}

int views_age_ms(int fd, uint64_t number, uint64_t *ms)
{
    char name[VIEW_NAME_SIZE];
    int64_t now_ns, touched_ns;
    view_name(number, name);
    int err = textfile_now(fd, &now_ns);
    if (!err) /* read afterwards: a touch in between makes the view younger, never older */
        err = textfile_mtime(fd, name, &touched_ns);
    if (!err)
        *ms = now_ns > touched_ns ? (uint64_t)(now_ns - touched_ns) / 1000000 : 0;
    return err;
}
