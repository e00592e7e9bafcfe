/* A bounded text writer. What does not fit is left out and remembered, so that a
 * text is written as a whole and checked once, at its end. No libc. */
#ifndef TEXT_OUT_H
#define TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_out {
    char *at;
    size_t cap;
    size_t len;
    bool full; /* something was left out */
} text_out;

void text_begin(text_out *out, char *at, size_t cap);
void text_bytes(text_out *out, const char *bytes, size_t len);
void text_put(text_out *out, const char *text);
void text_unsigned(text_out *out, uint32_t n);
void text_signed(text_out *out, int32_t n);

/* text_json writes text with the escapes of a JSON string, without the quotes. */
void text_json(text_out *out, const char *text);

/* text_hex writes a byte as two lower-case digits. */
void text_hex(text_out *out, unsigned char byte);

#endif
