/* commands.c - commands are read, given to what does them, and answered. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/loop.h"

/* Of standard output and the list. */
static struct lock lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF};
static struct command *waiting; /* locks that were asked for and not answered */

static void command_free(struct command *c)
{
    free(c->line);
    free(c);
}

void answer(struct command *c, const char *format, ...)
{
    uint64_t to = boot_ns();
    va_list args;

    lock_take(&lock);
    for (struct command **p = &waiting; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    printf("%s ", c->tag);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" @%" PRIu64 "-%" PRIu64 "\n", c->from_ns, to);
    fflush(stdout);
    lock_drop(&lock);
    command_free(c);
}

void answer_code(struct command *c, int err)
{
    const char *name = err ? strerrorname_np(-err) : "OK";

    answer(c, "%s", name ? name : "E?");
}

const char *word(const struct command *c, int i)
{
    return i < c->n ? c->words[i] : "";
}

uint64_t number(const struct command *c, int i)
{
    const char *w = word(c, i);

    return !strcmp(w, "max") ? INT64_MAX : strtoull(w, NULL, 10);
}

void command_waits(struct command *c)
{
    lock_take(&lock);
    c->next = waiting;
    waiting = c;
    lock_drop(&lock);
}

uint64_t command_lock_id(const char *tag)
{
    uint64_t id = 0;

    lock_take(&lock);
    for (struct command *w = waiting; w; w = w->next)
        if (!strcmp(w->tag, tag))
            id = w->lock_id;
    lock_drop(&lock);
    return id;
}

static const struct {
    const char *name;
    void (*quick)(struct command *c);
    void (*waits)(void *c); /* in a pool */
} commands[] = {
    {"where", NULL, do_where},
    {"open-writer", NULL, do_open_writer},
    {"close-writer", NULL, do_close_writer},
    {"write", NULL, do_write},
    {"read", NULL, do_read},
    {"lock", do_lock, NULL},
    {"unlock", do_lock, NULL},
    {"test", do_test, NULL},
    {"drop", do_drop, NULL},
    {"cancel", do_cancel, NULL},
    {"number", do_number, NULL},
    {"late", NULL, do_late},
    {"look", NULL, do_look},
    {"closed", do_closed, NULL},
    {"holds", do_holds, NULL},
    {"looks", do_looks, NULL},
    {"lookers", do_lookers, NULL},
    {"left", do_left, NULL},
    {"watchers", do_watchers, NULL},
    {"break", NULL, do_break},
    {"pretend-looks", do_pretend_looks, NULL},
    {"has", NULL, do_has},
    {"says", do_says, NULL},
    {"asked", do_asked, NULL},
    {"keep", NULL, do_keep},
    {"ring", do_ring, NULL},
    {"view", do_view, NULL},
    {"status", do_status, NULL},
    {"pretend", do_pretend, NULL},
    {"leave", NULL, do_leave},
};

static void run(struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(word(c, 0), commands[i].name))
            continue;
        if (commands[i].quick)
            commands[i].quick(c);
        else
            pool_submit(pool_waiters, commands[i].waits, c);
        return;
    }
    answer_code(c, -EINVAL);
}

/* NULL: an empty line. */
static struct command *parse(const char *line)
{
    struct command *c = xcalloc(1, sizeof(*c));
    char *save = NULL, *w;

    c->from_ns = boot_ns();
    c->line = xstrdup(line);
    c->tag = strtok_r(c->line, " \n", &save);
    while (c->tag && c->n < WORDS_MAX && (w = strtok_r(NULL, " \n", &save)))
        c->words[c->n++] = w;
    if (c->tag)
        return c;
    command_free(c);
    return NULL;
}

void serve(void)
{
    struct command *c;
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0) {
        c = parse(line);
        if (c && !strcmp(word(c, 0), "quit")) {
            answer_code(c, 0);
            break;
        }
        if (c)
            run(c);
    }
    free(line);
}
