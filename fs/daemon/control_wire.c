/* control_wire.c - functions of the control socket for both the daemon and `eddy`. */
#include "fs/daemon/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base.h"
#include "transport/printable.h"

/* sun_path holds 108 bytes, a cache directory's path may be longer: the kernel's name for an open
 * descriptor is short. */
socklen_t control_address(int dirfd, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/" CONTROL_NAME, dirfd);
    return sizeof(*out);
}

char *control_escape(const char *path)
{
    char *out = xmalloc(4 * strlen(path) + 1), *to = out;
    for (const unsigned char *s = (const unsigned char *)path; *s;) {
        size_t len = printable_length(s);
        if (*s == '\\' || *s == '\n') {
            *to++ = '\\';
            *to++ = *s++ == '\n' ? 'n' : '\\';
        } else if (!len) {
            to += sprintf(to, "\\x%02x", *s++);
        } else {
            memcpy(to, s, len);
            to += len;
            s += len;
        }
    }
    *to = '\0';
    return out;
}

/* The byte that the escape after a backslash stands for; *len: of the escape.  -1: it is none. */
static int escaped_byte(const char *s, size_t *len)
{
    *len = 1;
    if (*s == '\\')
        return '\\';
    if (*s == 'n')
        return '\n';
    if (*s != 'x' || hex_digit(s[1]) < 0 || hex_digit(s[2]) < 0)
        return -1;
    *len = 3;
    return hex_digit(s[1]) * 16 + hex_digit(s[2]);
}

char *control_unescape(const char *text)
{
    char *out = xmalloc(strlen(text) + 1), *to = out;
    for (const char *s = text; *s;) {
        size_t len = 0;
        int byte = *s == '\\' ? escaped_byte(s + 1, &len) : (unsigned char)*s;
        if (byte <= 0) {
            free(out);
            return NULL;
        }
        *to++ = (char)byte;
        s += len + 1;
    }
    *to = '\0';
    return out;
}

char *control_printable(const char *text)
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
