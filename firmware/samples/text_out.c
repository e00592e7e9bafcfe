#include "text_out.h"

void text_begin(text_out *out, char *at, size_t cap)
{
    out->at = at;
    out->cap = cap;
    out->len = 0;
    out->full = false;
}

void text_bytes(text_out *out, const char *bytes, size_t len)
{
    size_t i;

    if (out->full || len > out->cap - out->len) {
        out->full = true;
        return;
    }
    for (i = 0; i < len; i++) {
        out->at[out->len + i] = bytes[i];
    }
    out->len += len;
}

void text_put(text_out *out, const char *text)
{
    size_t len = 0;

    while (text[len] != '\0') {
        len++;
    }
    text_bytes(out, text, len);
}

void text_unsigned(text_out *out, uint32_t n)
{
    char digits[10];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + n % 10U);
        n /= 10U;
    } while (n != 0);
    text_bytes(out, digits + at, sizeof digits - at);
}

void text_signed(text_out *out, int32_t n)
{
    if (n < 0) {
        text_put(out, "-");
    }
    text_unsigned(out, n < 0 ? 0U - (uint32_t)n : (uint32_t)n);
}

void text_json(text_out *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            text_put(out, "\\");
            text_bytes(out, text, 1);
        } else if ((unsigned char)*text < 0x20) {
            text_put(out, "\\u00");
            text_hex(out, (unsigned char)*text);
        } else {
            text_bytes(out, text, 1);
        }
    }
}

void text_hex(text_out *out, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    char pair[2];

    pair[0] = digits[byte >> 4];
    pair[1] = digits[byte & 15U];
    text_bytes(out, pair, 2);
}
