/* SHA-1 and base64 for the handshake, the checks of the port, clock arithmetic. */
#include "internal.h"

static uint32_t rotate(uint32_t v, unsigned n)
{
    return (v << n) | (v >> (32u - n));
}

/* One 64-byte block. The schedule is kept as a ring of 16 words. */
static void sha1_block(uint32_t h[5], const uint8_t *block)
{
    uint32_t w[16];
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *b = block + (size_t)4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i >= 16) {
            w[i & 15u] = rotate(w[(i + 13) & 15u] ^ w[(i + 8) & 15u] ^ w[(i + 2) & 15u] ^ w[i & 15u], 1);
        }
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5A827999u;
        } else if (i < 40) {
            f = b ^ c ^ d;
            k = 0x6ED9EBA1u;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8F1BBCDCu;
        } else {
            f = b ^ c ^ d;
            k = 0xCA62C1D6u;
        }
        uint32_t next = rotate(a, 5) + f + e + k + w[i & 15u];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* Inputs are short: the length in bits fits 32. */
void mcplink_priv_sha1(uint8_t out[MCPLINK_SHA1_SIZE], const void *data, size_t len)
{
    uint32_t h[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u};
    const uint8_t *in = data;
    size_t end = len + 9; /* data, a one bit, the length */
    uint8_t block[64];
    for (size_t at = 0; at < end; at += sizeof block) {
        memset(block, 0, sizeof block);
        if (at < len) {
            memcpy(block, in + at, len - at < sizeof block ? len - at : sizeof block);
        }
        if (at <= len && len - at < sizeof block) {
            block[len - at] = 0x80;
        }
        if (end - at <= sizeof block) {
            mcplink_priv_put32(block + 60, (uint32_t)len * 8u);
        }
        sha1_block(h, block);
    }
    for (unsigned i = 0; i < 5; i++) {
        out = mcplink_priv_put32(out, h[i]);
    }
}

uint8_t *mcplink_priv_put32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++, v <<= 8) {
        *p++ = (uint8_t)(v >> 24);
    }
    return p;
}

static char base64_digit(uint32_t v)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return digits[v & 63u];
}

int mcplink_priv_base64(char *out, size_t cap, const uint8_t *data, size_t len)
{
    mcplink_text t = {out, cap, 0};
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i;
        uint32_t v = (uint32_t)data[i] << 16;
        if (n > 1) {
            v |= (uint32_t)data[i + 1] << 8;
        }
        if (n > 2) {
            v |= data[i + 2];
        }
        mcplink_priv_text_char(&t, base64_digit(v >> 18));
        mcplink_priv_text_char(&t, base64_digit(v >> 12));
        mcplink_priv_text_char(&t, n > 1 ? base64_digit(v >> 6) : '=');
        mcplink_priv_text_char(&t, n > 2 ? base64_digit(v) : '=');
    }
    return mcplink_priv_text_end(&t);
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
