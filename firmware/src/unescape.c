/* JSON string escapes. */
#include "internal.h"

#if MCPLINK_MUX

#include "mcplink/envelope.h"

static int hex4(const char *s, size_t len, uint32_t *out)
{
    uint32_t v = 0;
    if (len < 4) {
        return 0;
    }
    for (size_t i = 0; i < 4; i++) {
        char c = s[i];
        uint32_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (uint32_t)(c - 'a') + 10u;
        } else if (c >= 'A' && c <= 'F') {
            digit = (uint32_t)(c - 'A') + 10u;
        } else {
            return 0;
        }
        v = v << 4 | digit;
    }
    *out = v;
    return 1;
}

static size_t utf8(uint32_t v, char out[4])
{
    if (v < 0x80) {
        out[0] = (char)v;
        return 1;
    }
    if (v < 0x800) {
        out[0] = (char)(0xC0u | v >> 6);
        out[1] = (char)(0x80u | (v & 63u));
        return 2;
    }
    if (v < 0x10000) {
        out[0] = (char)(0xE0u | v >> 12);
        out[1] = (char)(0x80u | (v >> 6 & 63u));
        out[2] = (char)(0x80u | (v & 63u));
        return 3;
    }
    out[0] = (char)(0xF0u | v >> 18);
    out[1] = (char)(0x80u | (v >> 12 & 63u));
    out[2] = (char)(0x80u | (v >> 6 & 63u));
    out[3] = (char)(0x80u | (v & 63u));
    return 4;
}

/* `\uXXXX`, or two of them that form a surrogate pair. */
static size_t unicode_escape(const char *s, size_t len, char out[4], size_t *out_len)
{
    uint32_t v, low;
    size_t used = 6;
    if (!hex4(s + 2, len - 2, &v)) {
        out[0] = s[0];
        *out_len = 1;
        return 1;
    }
    if (v >= 0xD800 && v <= 0xDBFF && len >= 12 && s[6] == '\\' && s[7] == 'u' && hex4(s + 8, 4, &low) &&
        low >= 0xDC00 && low <= 0xDFFF) {
        v = 0x10000u + ((v - 0xD800u) << 10) + (low - 0xDC00u);
        used = 12;
    } else if (v >= 0xD800 && v <= 0xDFFF) {
        v = 0xFFFD;
    }
    *out_len = utf8(v, out);
    return used;
}

/* Decodes the character at s; how many bytes it is spelled with. An escape JSON
 * does not have stands for itself. */
static size_t decode(const char *s, size_t len, char out[4], size_t *out_len)
{
    static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* letter, character */
    *out_len = 1;
    out[0] = s[0];
    if (s[0] != '\\' || len < 2) {
        return 1;
    }
    if (s[1] == 'u') {
        return unicode_escape(s, len, out, out_len);
    }
    for (size_t i = 0; i + 1 < sizeof pairs; i += 2) {
        if (pairs[i] == s[1]) {
            out[0] = pairs[i + 1];
            return 2;
        }
    }
    return 1;
}

int mcplink_envelope_is(const char *name, size_t len, const char *slot)
{
    char unit[4];
    size_t at = 0, rest, n;
    if (name == NULL || slot == NULL) {
        return 0;
    }
    rest = strlen(slot);
    while (at < len) {
        at += decode(name + at, len - at, unit, &n);
        if (n > rest || memcmp(unit, slot, n) != 0) {
            return 0;
        }
        slot += n;
        rest -= n;
    }
    return rest == 0;
}

size_t mcplink_json_unescape(char *text, size_t len)
{
    char unit[4];
    size_t at = 0, out = 0, n;
    while (at < len) {
        at += decode(text + at, len - at, unit, &n);
        memcpy(text + out, unit, n);
        out += n;
    }
    return out;
}

#else
typedef int mcplink_unescape_left_out; /* a translation unit must not be empty */
#endif
