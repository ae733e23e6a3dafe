/* printable_copy.c - a text without what a terminal may take for a command (printable.h). */
#include <stdio.h>
#include <string.h>

#include "transport/base.h"
#include "transport/printable.h"

char *printable_copy(const char *text)
{
    char *out = xmalloc(4 * strlen(text) + 1), *to = out;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t len = printable_length(s);
        if (!len) {
            to += sprintf(to, "\\x%02x", *s++);
            continue;
        }
        memcpy(to, s, len);
        to += len;
        s += len;
    }
    *to = '\0';
    return out;
}
