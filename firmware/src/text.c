/* Bounded texts, percent-encoding, error phrases. */
#include "internal.h"

const char mcplink_priv_hex_lower[] = "0123456789abcdef";
const char mcplink_priv_hex_upper[] = "0123456789ABCDEF";

void mcplink_priv_text_char(mcplink_text *t, char c)
{
    if (t->len < t->cap) {
        t->out[t->len] = c;
    }
    t->len++;
}

void mcplink_priv_text_bytes(mcplink_text *t, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        mcplink_priv_text_char(t, s[i]);
    }
}

void mcplink_priv_text(mcplink_text *t, const char *s)
{
    mcplink_priv_text_bytes(t, s, strlen(s));
}

void mcplink_priv_text_u32(mcplink_text *t, uint32_t v)
{
    char digits[10];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + v % 10u);
        v /= 10u;
    } while (v != 0);
    while (n > 0) {
        mcplink_priv_text_char(t, digits[--n]);
    }
}

void mcplink_priv_text_hex(mcplink_text *t, uint8_t v, const char *digits)
{
    mcplink_priv_text_char(t, digits[v >> 4]);
    mcplink_priv_text_char(t, digits[v & 15u]);
}

int mcplink_priv_text_end(mcplink_text *t)
{
    if (t->cap == 0 || t->len > INT32_MAX) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    if (t->len >= t->cap) {
        t->out[t->cap - 1] = '\0';
        return MCPLINK_ERR_TOO_LARGE;
    }
    t->out[t->len] = '\0';
    return (int)t->len;
}

const char *mcplink_priv_nth(const char *packed, unsigned index)
{
    while (index > 0) {
        packed += strlen(packed) + 1;
        index--;
    }
    return packed;
}

size_t mcplink_priv_find(const char *s, size_t len, char c)
{
    size_t i = 0;
    while (i < len && s[i] != c) {
        i++;
    }
    return i;
}

int mcplink_priv_word(const char *s, size_t len, const char *word)
{
    for (; len > 0; len--, s++, word++) {
        char c = *s;
        if (c >= 'A' && c <= 'Z') {
            c = (char)(c + ('a' - 'A'));
        }
        if (c != *word || c == '\0') {
            return 0;
        }
    }
    return *word == '\0';
}

int mcplink_priv_unreserved(unsigned c)
{
    unsigned letter = c | 0x20u; /* in lower case, if it is one */
    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

int mcplink_url_encode(char *out, size_t cap, const char *text)
{
    if (out == NULL || text == NULL) {
        return MCPLINK_ERR_ARG;
    }
    mcplink_text t = {out, cap, 0};
    for (; *text != '\0'; text++) {
        uint8_t c = (uint8_t)*text;
        if (mcplink_priv_unreserved(c)) {
            mcplink_priv_text_char(&t, *text);
        } else {
            mcplink_priv_text_char(&t, '%');
            mcplink_priv_text_hex(&t, c, mcplink_priv_hex_upper);
        }
    }
    return mcplink_priv_text_end(&t);
}

const char *mcplink_strerror(int err)
{
    static const char phrases[] = "ok\0"
                                  "invalid argument\0"
                                  "timed out\0"
                                  "closed by the peer\0"
                                  "network failure\0"
                                  "protocol violation\0"
                                  "too large\0"
                                  "handshake refused\0"
                                  "not connected\0"
                                  "not supported\0"
                                  "TLS refused\0"
                                  "not an envelope\0"
                                  "unknown error";
    unsigned index = 12;
    if (err <= MCPLINK_OK && err >= MCPLINK_ERR_NOT_ENVELOPE) {
        index = (unsigned)-err;
    }
    return mcplink_priv_nth(phrases, index);
}
