/* fuzz_message.c - any bytes as a message: refused, or a message that encodes to one that decodes
 * to the same bytes. Seeds: test/golden/ (build/test/fuzz_message CORPUS test/golden). */
#include "transport/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* What came from one decode is stable: encoding it, decoding and encoding again changes nothing. */
static void round_trip(const struct msg *m)
{
    void *first, *second;
    size_t first_len, second_len;
    struct msg *back;
    must(!msg_encode(m, &first, &first_len));
    must(!msg_decode(first, first_len, &back, NULL));
    must(!msg_encode(back, &second, &second_len));
    must(first_len == second_len && !memcmp(first, second, first_len));
    free(first);
    free(second);
    msg_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg_head head;
    struct msg *m;
    int err = msg_decode(data, size, &m, &head);
    if (!err) {
        must(strcmp(msg_name(m->head.type), "?"));
        round_trip(m);
        msg_free(m);
    }
    return 0;
}
