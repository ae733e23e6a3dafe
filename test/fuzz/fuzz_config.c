/* fuzz_config.c - a configuration file: it is refused with a line and a reason, or each setting in it has a name and a value that
 * are texts of that line.  The input is a path, too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fs/daemon/config_file.h"
#include "fs/daemon/option_table.h"
#include "fs/daemon/paths.h"
#include "transport/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

struct seen {
    unsigned last, lines;
    size_t size;
};

static int see(void *arg, const struct config_line *l)
{
    struct seen *s = arg;
    must(l->line > s->last && l->line <= s->lines);
    s->last = l->line;
    size_t name = strlen(l->name), value = strlen(l->value);
    must(name && value && name + value < s->size && !strchr(l->name, '=') && !strpbrk(l->value, "\n"));
    must(l->section < s->size && (!l->applies || !l->section || l->section <= strlen("/lustre/project/data")));
    const struct option_entry *o = option_find(l->name, name);
    must(!o || strlen(o->name) == name);
    if (!o)
        option_meant(l->name);
    return 0;
}

/* A plain path is the same when it is made plain again, and has none of what is taken out. */
static void check_path(const uint8_t *data, size_t size)
{
    char *path = xmalloc(size + 1), *again;
    memcpy(path, data, size);
    path[size] = 0;
    bool absolute = *path == '/';
    if (path_make_plain(path)) {
        size_t n = strlen(path);
        must(n <= size && absolute == (*path == '/') && !strstr(path, "//") && !strstr(path, "/./"));
        must(n < 2 || path[n - 1] != '/');
        again = xstrdup(path);
        must(path_make_plain(again) && !strcmp(path, again));
        free(again);
    }
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dirs[] = {"/lustre/project/data", NULL};
    struct seen s = {.lines = 1, .size = size};
    struct config_error e = {0};
    check_path(data, size);
    for (size_t i = 0; i < size; i++)
        s.lines += data[i] == '\n';
    if (config_parse((const char *)data, size, dirs, see, &s, &e))
        must(e.line <= s.lines && *e.why);
    return 0;
}
