/* fuzz_hello.c - the hello's state machine under hostile bytes.
 *
 * The first byte of the input chooses who is attacked and how far the hello has come; the rest are
 * the bytes it gets. Two kinds of attacker: a stranger, whose frames must never be taken for a
 * proof; and a node that knows the secret (its frames are made whole here with a right HMAC), whose
 * fields must not hurt.
 */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "transport/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t secret[32] = "secret";
static const struct hello_self self_a = {.id = 1,
                                         .incarnation = 1,
                                         .name = "a",
                                         .chunk_size = 1 << 20,
                                         .worker_addr = "address",
                                         .worker_addr_len = 7,
                                         .settings = "x=1"};
static const struct hello_self self_b = {.id = 2,
                                         .incarnation = 1,
                                         .name = "b",
                                         .chunk_size = 1 << 20,
                                         .worker_addr = "address",
                                         .worker_addr_len = 7,
                                         .settings = "x=1"};

struct frame {
    void *p;
    size_t len;
};

/* a connects to b; frames 1 .. stage are made, 1 .. stage - 1 are given to the other side. */
static void talk(struct hello_proto *a, struct hello_proto *b, unsigned stage, struct frame f[5])
{
    hello_proto_begin(a, &f[1].p, &f[1].len);
    for (unsigned i = 1; i < stage; i++)
        hello_proto_input(i % 2 ? b : a, f[i].p, f[i].len, &f[i + 1].p, &f[i + 1].len);
}

/* The HMAC that the knowing attacker puts behind his frame: role, nonces, all frames before, this
 * one. */
static void seal(const struct frame f[5], unsigned number, uint8_t *frame, size_t n,
                 uint8_t mac[32])
{
    uint8_t all[16 + 64 + 4 * (4 + HELLO_FRAME_MAX)] = "eddyfs hello 0 a";
    size_t len = 16;
    all[13] = (uint8_t)('0' + number);
    all[15] = number == 3 ? 'c' : 'a';
    memcpy(all + len, (uint8_t *)f[1].p + 14, 32);
    len += 32;
    memcpy(all + len, number == 2 ? frame + 14 : (uint8_t *)f[2].p + 14, 32);
    len += 32;
    for (unsigned i = 1; i < number; i++) {
        memcpy(all + len, f[i].p, f[i].len);
        len += f[i].len;
    }
    memcpy(all + len, frame, n);
    HMAC(EVP_sha256(), secret, sizeof(secret), all, len + n, mac, NULL);
}

/* Frame `number` with the fuzzer's bytes behind magic, number and version (and nonce), and a right
 * HMAC. */
static size_t forge(const struct frame f[5], unsigned number, const uint8_t *data, size_t size,
                    uint8_t *out)
{
    size_t keep = number == 2 ? 14 + 32 : 14;
    if (size > HELLO_FRAME_MAX - 32 - keep)
        size = HELLO_FRAME_MAX - 32 - keep;
    memcpy(out, f[number].p, keep);
    memcpy(out + keep, data, size);
    size_t n = keep + size, len = n - 4 + 32;
    out[0] = (uint8_t)len;
    out[1] = (uint8_t)(len >> 8);
    out[2] = out[3] = 0;
    seal(f, number, out, n, out + n);
    return n + 32;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t forged[4 + HELLO_FRAME_MAX];
    struct frame f[5] = {0};
    void *out = NULL;
    size_t n;
    if (!size)
        return 0;
    unsigned number = 1 + data[0] % 4; /* of the frame that the attacker sends */
    bool knows = number > 1 && data[0] & 4;
    data++;
    size--;
    struct hello_proto *a = hello_proto_new(true, &self_a, secret, "s"),
                       *b = hello_proto_new(false, &self_b, secret, "s");
    struct hello_proto *attacked = number % 2 ? b : a;
    talk(a, b, number, f);
    if (knows) {
        size = forge(f, number, data, size, forged);
        data = forged;
    }
    int got = hello_proto_input(attacked, data, size, &out, &n);
    if (!knows && (got == 1 || (number != 4 && hello_proto_peer(attacked))))
        abort(); /* a stranger was taken for a node */
    free(out);
    hello_proto_free(a);
    hello_proto_free(b);
    for (unsigned i = 1; i < 5; i++)
        free(f[i].p);
    return 0;
}
