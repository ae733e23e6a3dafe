/* control_stats.c - the answers to `eddy stats` and `eddy metrics`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "fs/daemon/control_int.h"
#include "fs/daemon/figures.h"
#include "fs/daemon/figures_ask.h"
#include "fs/daemon/last_view.h"
#include "fs/daemon/metrics.h"
#include "fs/operation.h"
#include "fs/settings.h"
#include "transport/members.h"

json_t *control_figures(void)
{
    struct figure all[FIGURES];
    json_t *o = json_object();
    figures_take(all);
    for (size_t i = 0; i < FIGURES; i++)
        control_put(o, all[i].name, all[i].value);
    return o;
}

/* What another node says: the names are only shown, and may be those of a newer eddyfs. */
static json_t *their_figures(const struct body_figures *b)
{
    json_t *o = json_object();
    for (uint32_t i = 0; i < b->figures.n && i < 1024; i++) {
        char *name = control_escape(b->figures.v[i].name);
        control_put(o, name, b->figures.v[i].value);
        free(name);
    }
    return o;
}

static int add_operation(void *arg, const char *name, const struct latency_copy *l)
{
    json_t *o = json_object(), *buckets = json_array();
    control_put(o, "count", l->count);
    control_put(o, "sum_ns", l->sum_ns);
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        if (l->buckets[i])
            json_array_append_new(buckets, json_pack("[I,I]", (json_int_t)i, (json_int_t)l->buckets[i]));
    json_object_set_new(o, "buckets", buckets);
    json_object_set_new(arg, name, o);
    return 0;
}

json_t *control_operations(void)
{
    json_t *o = json_object();
    operation_each(add_operation, o);
    return o;
}

/* Why a node told nothing. */
static const char *why(int err)
{
    switch (err) {
    case -ENOTSUP:
        return "an older eddyfs runs there, which does not tell it";
    case -E_ASK_AGAIN:
        return "it is starting, or ends";
    case -ETIMEDOUT:
        return "it does not answer";
    default:
        return strerror(-err);
    }
}

static void add_others(json_t *list)
{
    const struct view *v = last_view();
    size_t n = 0;
    if (!v)
        return;
    uint64_t *ids = xcalloc(v->nmembers + 1u, sizeof(*ids));
    struct msg **replies = xcalloc(v->nmembers + 1u, sizeof(*replies));
    int *errs = xcalloc(v->nmembers + 1u, sizeof(*errs));
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id != members_self())
            ids[n++] = v->members[i].id;
    figures_ask(ids, n, replies, errs);
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        control_put_text(o, "node", members_name(ids[i]));
        if (replies[i])
            json_object_set_new(o, "figures", their_figures(&replies[i]->figures));
        else
            control_put_text(o, "error", why(errs[i]));
        json_array_append_new(list, o);
        msg_free(replies[i]);
    }
    free(ids);
    free(replies);
    free(errs);
}

json_t *control_stats(struct connection *c, const json_t *request)
{
    (void)c;
    json_t *o = json_object(), *list = json_array(), *own = json_object();
    control_put_text(own, "node", settings.node);
    json_object_set_new(own, "self", json_true());
    json_object_set_new(own, "figures", control_figures());
    json_array_append_new(list, own);
    if (json_is_true(json_object_get(request, "session")))
        add_others(list);
    control_put(o, "boot_ns", boot_ns());
    control_put_text(o, "version", EDDY_VERSION);
    control_put_text(o, "mountpoint", settings.mountpoint);
    control_put_text(o, "session", settings.session);
    json_object_set_new(o, "passthrough", json_boolean(settings.passthrough));
    json_object_set_new(o, "nodes", list);
    json_object_set_new(o, "operations", control_operations());
    return o;
}

json_t *control_metrics(struct connection *c, const json_t *request)
{
    (void)c;
    (void)request;
    char *text = metrics_text(), *rest = text;
    json_t *o = json_object(), *lines = json_array();
    for (char *line; (line = strsep(&rest, "\n")) && rest;)
        json_array_append_new(lines, json_string(line));
    json_object_set_new(o, "lines", lines);
    free(text);
    return o;
}
