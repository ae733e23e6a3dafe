/* printable.h - text of others, for terminals and logs (printable.c).  Any thread. */
#ifndef EDDY_TRANSPORT_PRINTABLE_H
#define EDDY_TRANSPORT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at s (not at the end of the text); 0: a terminal may take it for a command, since it
 * is a control character or no UTF-8. */
size_t printable_length(const unsigned char *s);
/* Has the text no other characters? */
bool printable_is(const char *text);

#endif
