/* Finding members in JSON text without a parser: spans of the text that was
 * received, located by a balanced scan that respects strings and escapes. No
 * allocation, no libc. Spans stay valid as long as the text does. */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nesting that the scan follows. Deeper text counts as malformed. */
#define JSON_SCAN_DEPTH 64

typedef struct json_span {
    const char *at;
    size_t len;
} json_span;

/* json_whole finds the one value text consists of; white space around it is left
 * out. False: text is no JSON value, or something follows it. */
bool json_whole(const char *text, size_t len, json_span *value);

/* json_member finds a member of an object itself, never of a value inside it. Of
 * several members of that name the last one counts, as in most parsers. The name
 * may be spelled with escapes. False: value is not an object, or has none. */
bool json_member(json_span object, const char *name, json_span *value);

/* json_is tells whether value is the JSON string that stands for text (ASCII). */
bool json_is(json_span value, const char *text);

bool json_is_string(json_span value);
bool json_is_number(json_span value);
bool json_is_object(json_span value);

/* json_integer reads a number written without fraction and exponent that fits 32
 * bits. False: it is something else. */
bool json_integer(json_span value, int32_t *number);

#endif
