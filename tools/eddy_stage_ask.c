/* eddy_stage_ask.c - eddy stage --status and --cancel: of a number, the daemon is found that knows
 * it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_stage.h"
#include "tools/eddy_talk.h"

#define ANSWER_MS 10000

struct looking {
    const char *request, *id;
    json_t *found; /* all that was found, of all names */
    size_t n;      /* of this name */
};

static void take(struct looking *l, const struct mount_entry *e, json_t *answer)
{
    size_t i;
    json_t *stage, *stages = json_object_get(answer, "stages");
    json_array_foreach(stages, i, stage)
    {
        json_object_set_new(stage, "mountpoint", json_string(e->mountpoint));
        json_array_append(l->found, stage);
        l->n++;
    }
}

static int ask(struct looking *l, const struct mount_entry *e, json_t *args)
{
    json_t *answer;
    int err = talk_once(e, l->request, args, ANSWER_MS, &answer);
    if (!err)
        take(l, e, answer);
    json_decref(answer);
    return err;
}

/* Of a mount that has ended, or of a daemon that does not know the number, nothing is said. */
static int ask_one(void *arg, const struct mount_entry *e)
{
    struct looking *l = arg;
    ask(l, e, json_pack("{s:s}", "id", l->id));
    return l->n > 0;
}

static bool is_id(const char *name)
{
    return strlen(name) == 8 && strspn(name, "0123456789abcdef") == 8 && access(name, F_OK);
}

static int ask_path(struct looking *l, const char *name)
{
    struct mount_entry e = {0};
    char *below = NULL;
    int err = find_mount_of_file(name, &e, &below);
    char *path = err ? NULL : control_escape(below);
    if (!err)
        err = ask(l, &e, json_pack("{s:s}", "path", path));
    if (err)
        complain("%s: %s", name,
                 err == -ENOENT ? "neither a stage nor in an eddyfs of yours"
                                : talk_error(NULL, err));
    mount_entry_free(&e);
    free(below);
    free(path);
    return err;
}

static int ask_name(struct looking *l, const char *name)
{
    l->n = 0;
    if (!is_id(name))
        return ask_path(l, name);
    l->id = name;
    mount_map_each(ask_one, l);
    if (!l->n)
        complain("%s: no mount of yours knows this stage", name);
    return l->n ? 0 : -ENOENT;
}

static void show_failed(const json_t *s)
{
    size_t i;
    json_t *file;
    json_array_foreach(json_object_get(s, "failed_files"), i, file)
    {
        printf("  %s/%s: %s\n", json_text(s, "mountpoint"), json_text(file, "path"),
               json_text(file, "error"));
    }
}

static void show(const json_t *list)
{
    size_t i;
    json_t *s;
    char a[24], b[24];
    json_array_foreach(list, i, s)
    {
        printf("%s: %s: %s: %s of %s, %llu files, %llu failed\n", json_text(s, "id"),
               json_text(s, "mountpoint"), json_text(s, "state"),
               size_format(json_u64(s, "done_bytes"), a, sizeof(a)),
               size_format(json_u64(s, "total_bytes"), b, sizeof(b)),
               (unsigned long long)json_u64(s, "files"), (unsigned long long)json_u64(s, "failed"));
        show_failed(s);
    }
}

int stage_ask_each(char **names, int n, const struct stage_asked *asked)
{
    struct looking l = {.request = asked->what == STAGE_STATUS ? "stage_status" : "stage_cancel",
                        .found = json_array()};
    int failed = 0;
    for (int i = 0; i < n; i++)
        failed += ask_name(&l, names[i]) != 0;
    if (asked->json) {
        json_dumpf(l.found, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        show(l.found);
    }
    json_decref(l.found);
    return !failed ? DONE : failed < n ? PARTLY : FAILED;
}
