/* config_file.c - see config_file.h. */
#include "fs/daemon/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/daemon/paths.h"
#include "transport/base.h"

struct parser {
    const char *const *dirs;
    struct config_line l;
    struct config_error *e;
};

static int wrong(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct parser *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p->e->line = p->l.line;
    vsnprintf(p->e->why, sizeof(p->e->why), fmt, ap);
    va_end(ap);
    return -EPROTO;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without the blanks at both ends; in place. */
static char *trim(char *text)
{
    while (is_blank(*text))
        text++;
    size_t n = strlen(text);
    while (n && is_blank(text[n - 1]))
        n--;
    text[n] = 0;
    return text;
}

bool config_is_in_one(const char *dir, const char *const *dirs)
{
    for (; *dirs; dirs++)
        if (!strcmp(*dirs, dir) || path_is_below(*dirs, dir))
            return true;
    return false;
}

static int take_section(struct parser *p, char *line)
{
    size_t n = strlen(line);
    if (line[n - 1] != ']')
        return wrong(p, "a section's line ends with ]: [/path/of/the/PFS/directory]");
    line[n - 1] = 0;
    char *path = trim(line + 1);
    if (*path != '/')
        return wrong(p, "[%.80s]: a section is named by the absolute path of a PFS directory", path);
    if (!path_make_plain(path))
        return wrong(p, "a section's path must have no \"..\"");
    p->l.section = strlen(path);
    p->l.applies = config_is_in_one(path, p->dirs);
    return 0;
}

/* "fixed" and blanks before the name. */
static char *take_fixed(struct parser *p, char *name)
{
    size_t n = strlen("fixed");
    p->l.fixed = !strncmp(name, "fixed", n) && is_blank(name[n]);
    return p->l.fixed ? trim(name + n) : name;
}

static int take_setting(struct parser *p, char *line)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return wrong(p, "%.80s: is no setting: write name = value", line);
    *equals = 0;
    char *name = take_fixed(p, trim(line)), *value = trim(equals + 1);
    if (!*name)
        return wrong(p, "has no name before the =");
    if (!*value)
        return wrong(p, "%.80s: has no value", name);
    p->l.name = name;
    p->l.value = value;
    return 0;
}

int config_parse(const char *text, size_t len, const char *const *dirs, int (*fn)(void *arg, const struct config_line *l),
                 void *arg, struct config_error *e)
{
    struct parser p = {.dirs = dirs, .l = {.applies = true}, .e = e};
    char *copy = xmalloc(len + 1), *rest = copy, *line;
    memcpy(copy, text, len);
    copy[len] = 0;
    int err = 0;
    if (memchr(copy, 0, len))
        err = wrong(&p, "has a zero byte: it is no text");
    while (!err && (line = strsep(&rest, "\n"))) {
        p.l.line++;
        line = trim(line);
        if (!*line || *line == '#' || *line == ';')
            continue;
        if (*line == '[') {
            err = take_section(&p, line);
            continue;
        }
        err = take_setting(&p, line);
        if (!err)
            err = fn(arg, &p.l);
    }
    free(copy);
    return err;
}

static bool is_overflow_user(uid_t uid)
{
    unsigned overflow = 65534;
    FILE *f = fopen("/proc/sys/fs/overflowuid", "re");
    if (f) {
        if (fscanf(f, "%u", &overflow) != 1)
            overflow = 65534;
        fclose(f);
    }
    return uid == overflow;
}

/* In a user namespace that has no number for a file's owner, the kernel shows the overflow user in his place. */
static bool is_outside_of_namespace(uid_t uid)
{
    unsigned inside, outside, count;
    bool known = !is_overflow_user(uid);
    FILE *f = known ? NULL : fopen("/proc/self/uid_map", "re");
    if (!f)
        return false;
    while (!known && fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
        known = uid >= inside && uid - inside < count;
    fclose(f);
    return !known;
}

bool config_in_user_namespace(void)
{
    unsigned inside, outside, count;
    FILE *f = fopen("/proc/self/uid_map", "re");
    bool whole = !f || (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && !inside && !outside && count == UINT32_MAX);
    if (f)
        fclose(f);
    return !whole;
}

static int check_file(int fd, uid_t owner, struct stat *st, char *why, size_t whylen)
{
    if (fstat(fd, st))
        return -errno;
    if (st->st_uid && st->st_uid != owner && !is_outside_of_namespace(st->st_uid)) {
        snprintf(why, whylen, "belongs to user %u, not to %s", (unsigned)st->st_uid, owner ? "you or root" : "root");
        return -EACCES;
    }
    if (!S_ISREG(st->st_mode))
        snprintf(why, whylen, "is no regular file");
    else if (st->st_mode & (S_IWGRP | S_IWOTH))
        snprintf(why, whylen, "others can write to it (mode %04o): chmod go-w", (unsigned)st->st_mode & 07777);
    else if (st->st_size > CONFIG_MAX)
        snprintf(why, whylen, "is larger than %u bytes", CONFIG_MAX);
    else
        return 0;
    return -EPERM;
}

/* All of it, up to size bytes: how many; -errno. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(fd, text + have, size - have);
        if (n < 0)
            return -errno;
        if (!n)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

int config_read(const char *path, uid_t owner, char **text, size_t *len, char *why, size_t whylen)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = check_file(fd, owner, &st, why, whylen);
    if (!n) {
        *text = xmalloc(CONFIG_MAX + 1);
        n = read_all(fd, *text, CONFIG_MAX);
        if (n < 0)
            free(*text);
    }
    close(fd);
    if (n < 0)
        return (int)n;
    (*text)[n] = 0;
    *len = (size_t)n;
    return 0;
}
