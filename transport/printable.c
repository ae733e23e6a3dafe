/* printable.c - what a terminal may be shown (printable.h).  The log uses it, so it uses nothing of base.c. */
#include "transport/printable.h"

#include "transport/base.h"

/* Length of the UTF-8 sequence at s, 0 if there is none: not overlong, no surrogates, up to
 * U+10FFFF (RFC 3629). */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first, last, low, high; /* of byte 1; range of byte 2 */
        size_t len;
    } table[] = {
        {0x20, 0x7e, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (s[0] < table[i].first || s[0] > table[i].last)
            continue;
        if (table[i].len > 1 && (s[1] < table[i].low || s[1] > table[i].high))
            return 0;
        for (size_t n = 2; n < table[i].len; n++)
            if (s[n] < 0x80 || s[n] > 0xbf)
                return 0;
        return table[i].len;
    }
    return 0;
}

/* U+0080 to U+009F: control characters of terminals. */
static bool is_c1_control(const unsigned char *s)
{
    return s[0] == 0xc2 && s[1] < 0xa0;
}

size_t printable_length(const unsigned char *s)
{
    return is_c1_control(s) ? 0 : utf8_length(s);
}

bool printable_is(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t len; *s; s += len)
        if (!(len = printable_length(s)))
            return false;
    return true;
}
