/* SHA-1 and base64 for the handshake, the checks of the port, clock arithmetic. */
#include "internal.h"

static uint32_t rotate(uint32_t v, unsigned n)
{
    return (v << n) | (v >> (32u - n));
}

/* Takes the first of n words out and puts one behind the last. */
static MCPLINK_SMALL void push(uint32_t *words, size_t n, uint32_t word)
{
    memmove(words, words + 1, (n - 1) * sizeof *words);
    words[n - 1] = word;
}

/* One block of 16 words; the schedule slides over it. h is kept from e to a. */
static void sha1_block(uint32_t h[5], uint32_t w[16])
{
    static const uint32_t k[4] = {0x5A827999u, 0x6ED9EBA1u, 0x8F1BBCDCu, 0xCA62C1D6u};
    uint32_t v[5];
    memcpy(v, h, sizeof v);
    for (unsigned i = 0; i < 80; i++) {
        unsigned round = i / 20;
        uint32_t d = v[1], c = v[2], b = v[3];
        uint32_t f = b ^ c ^ d;
        if (round == 0) {
            f = (b & c) | (~b & d);
        } else if (round == 2) {
            f = (b & c) | (b & d) | (c & d);
        }
        push(v, 5, rotate(v[4], 5) + f + v[0] + k[round] + w[0]);
        v[2] = rotate(v[2], 30);
        push(w, 16, rotate(w[13] ^ w[8] ^ w[2] ^ w[0], 1));
    }
    for (unsigned i = 0; i < 5; i++) {
        h[i] += v[i];
    }
}

/* Inputs are short: the length in bits fits 32. */
void mcplink_priv_sha1(uint8_t out[MCPLINK_SHA1_SIZE], const void *data, size_t len)
{
    uint32_t h[5] = {0xC3D2E1F0u, 0x10325476u, 0x98BADCFEu, 0xEFCDAB89u, 0x67452301u};
    uint32_t w[16] = {0};
    const uint8_t *in = data;
    size_t words = (len + 9 + 63) / 64 * 16; /* data, a one bit, the length, in whole blocks */
    for (size_t i = 0; i < words; i++) {
        uint32_t word = 0;
        for (size_t at = 4 * i; at < 4 * i + 4; at++) {
            word = word << 8 | (at < len ? in[at] : at == len ? 0x80u : 0u);
        }
        push(w, 16, i + 1 < words ? word : (uint32_t)len * 8u);
        if (i % 16 == 15) {
            sha1_block(h, w);
        }
    }
    for (unsigned i = 0; i < MCPLINK_SHA1_SIZE; i++) {
        out[i] = (uint8_t)(h[4 - i / 4] >> (24 - 8 * (i % 4)));
    }
}

int mcplink_priv_base64(char *out, size_t cap, const uint8_t *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *p = out;
    if ((len + 2) / 3 * 4 >= cap) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    for (size_t bit = 0; bit < 8 * len; bit += 6) {
        size_t i = bit / 8;
        unsigned pair = (unsigned)data[i] << 8;
        if (i + 1 < len) {
            pair |= data[i + 1];
        }
        *p++ = digits[pair >> (10 - bit % 8) & 63u];
    }
    while ((p - out) % 4 != 0) {
        *p++ = '=';
    }
    *p = '\0';
    return (int)(p - out);
}

int mcplink_port_check(const mcplink_port *port)
{
    if (port == NULL || port->open == NULL || port->send == NULL || port->recv == NULL || port->close == NULL ||
        port->now_ms == NULL || port->random == NULL) {
        return MCPLINK_ERR_ARG;
    }
    return MCPLINK_OK;
}

int32_t mcplink_priv_left(uint32_t deadline, uint32_t now)
{
    uint32_t d = deadline - now;
    if (d <= (uint32_t)INT32_MAX) {
        return (int32_t)d;
    }
    return -(int32_t)(UINT32_MAX - d) - 1;
}

int32_t mcplink_priv_until(const mcplink_port *port, uint32_t deadline)
{
    return mcplink_priv_left(deadline, mcplink_priv_now(port));
}

int32_t mcplink_priv_rest(int32_t timeout_ms, uint32_t until, uint32_t now)
{
    int32_t left = mcplink_priv_left(until, now);
    if (timeout_ms < 0) {
        return timeout_ms;
    }
    return left > 0 ? left : 0;
}

int32_t mcplink_priv_shorter(int32_t a, int32_t b)
{
    if (a < 0) {
        return b;
    }
    if (b < 0 || a < b) {
        return a;
    }
    return b;
}

uint32_t mcplink_priv_or_default(uint32_t ms, uint32_t fallback)
{
    if (ms == 0) {
        return fallback;
    }
    return ms < MCPLINK_TIME_MAX ? ms : MCPLINK_TIME_MAX;
}

uint32_t mcplink_priv_now(const mcplink_port *port)
{
    return port->now_ms(port->ctx);
}
