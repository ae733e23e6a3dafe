/* fuzz_view.c - any text as a view's or a node's file: refused, or printed again as a text that
 * gives the same. */
#include <stdlib.h>
#include <string.h>

#include "transport/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_view(const struct view *v)
{
    must(v->number && v->nmembers <= SESSION_MAX_MEMBERS && v->nabsent <= SESSION_MAX_MEMBERS);
    for (uint32_t i = 0; i < v->nmembers; i++) {
        must(name_is_plain(v->members[i].name) && v->members[i].addr[0]);
        must(!i || v->members[i - 1].id < v->members[i].id);
    }
    for (uint32_t i = 0; i < v->nabsent; i++)
        must(name_is_plain(v->absents[i].name) && (!i || v->absents[i - 1].id < v->absents[i].id));
}

static void try_view(const char *text, size_t len)
{
    struct view *v, *again;
    size_t first_len, second_len;
    if (view_parse(text, len, &v))
        return;
    check_view(v);
    char *first = view_print(v, &first_len);
    must(!view_parse(first, first_len, &again));
    char *second = view_print(again, &second_len);
    must(first_len == second_len && !memcmp(first, second, first_len));
    free(first);
    free(second);
    view_free(v);
    view_free(again);
}

static void try_node(const char *text, size_t len)
{
    struct member m, again;
    size_t printed_len;
    if (node_parse(text, len, &m))
        return;
    char *printed = node_print(&m, &printed_len);
    must(!node_parse(printed, printed_len, &again) && !memcmp(&m, &again, sizeof(m)));
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_view((const char *)data, size);
    try_node((const char *)data, size);
    return 0;
}
