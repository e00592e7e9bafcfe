#include "json_scan.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p)) {
        p++;
    }
    return p;
}

/* The skip functions return the place after what they skip, NULL if the text is
 * malformed or ends before. */

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"') {
            return p + 1;
        }
        if ((unsigned char)*p < 0x20) {
            return NULL;
        }
        if (*p == '\\' && ++p == end) {
            return NULL;
        }
    }
    return NULL;
}

static const char *skip_scalar(const char *p, const char *end)
{
    const char *start = p;

    while (p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || *p == 'E' || *p == '-' || *p == '+' ||
                       *p == '.')) {
        p++;
    }
    return p > start ? p : NULL;
}

static const char *skip_nested(const char *p, const char *end)
{
    uint8_t kinds[JSON_SCAN_DEPTH / 8] = {0}; /* a bit per level: set for an object */
    unsigned depth = 0;

    while (p < end) {
        char c = *p;
        uint8_t bit;

        if (c == '"') {
            p = skip_string(p, end);
            if (p == NULL) {
                return NULL;
            }
            continue;
        }
        p++;
        if (c == '{' || c == '[') {
            if (depth == JSON_SCAN_DEPTH) {
                return NULL;
            }
            bit = (uint8_t)(1U << (depth % 8U));
            kinds[depth / 8U] = (uint8_t)(c == '{' ? kinds[depth / 8U] | bit : kinds[depth / 8U] & ~bit);
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
            bit = (uint8_t)(1U << (depth % 8U));
            if (((kinds[depth / 8U] & bit) != 0) != (c == '}')) {
                return NULL;
            }
            if (depth == 0) {
                return p;
            }
        }
    }
    return NULL;
}

static const char *skip_value(const char *p, const char *end)
{
    if (p == end) {
        return NULL;
    }
    switch (*p) {
    case '"':
        return skip_string(p, end);
    case '{':
    case '[':
        return skip_nested(p, end);
    default:
        return skip_scalar(p, end);
    }
}

bool json_whole(const char *text, size_t len, json_span *value)
{
    const char *end = text + len;
    const char *start = skip_space(text, end);
    const char *after = skip_value(start, end);

    if (after == NULL || skip_space(after, end) != end) {
        return false;
    }
    value->at = start;
    value->len = (size_t)(after - start);
    return true;
}

/* next_member takes the member at *at, which is moved to the next one, or to NULL
 * after the last. */
static bool next_member(const char **at, const char *end, json_span *name, json_span *value)
{
    const char *p = skip_space(*at, end);

    if (p == end || *p != '"') {
        return false;
    }
    name->at = p;
    p = skip_string(p, end);
    if (p == NULL) {
        return false;
    }
    name->len = (size_t)(p - name->at);
    p = skip_space(p, end);
    if (p == end || *p != ':') {
        return false;
    }
    value->at = skip_space(p + 1, end);
    p = skip_value(value->at, end);
    if (p == NULL) {
        return false;
    }
    value->len = (size_t)(p - value->at);
    p = skip_space(p, end);
    if (p == end || (*p != ',' && *p != '}')) {
        return false;
    }
    *at = *p == ',' ? p + 1 : NULL;
    return true;
}

bool json_member(json_span object, const char *name, json_span *value)
{
    const char *at, *end;
    json_span key, found;
    bool any = false;

    if (!json_is_object(object)) {
        return false;
    }
    at = object.at + 1;
    end = object.at + object.len;
    while (at != NULL && next_member(&at, end, &key, &found)) {
        if (json_is(key, name)) {
            *value = found;
            any = true;
        }
    }
    return any;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* unescape reads the escape at *p, which follows its backslash, and moves *p
 * behind it. -1: it is no escape, or stands for no ASCII character. */
static int unescape(const char **p, const char *end)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    int code = 0;
    int digit;
    size_t i;

    if (**p != 'u') {
        for (i = 0; names[i] != '\0'; i++) {
            if (names[i] == **p) {
                (*p)++;
                return (unsigned char)values[i];
            }
        }
        return -1;
    }
    if (end - *p < 5) {
        return -1;
    }
    for (i = 1; i <= 4; i++) {
        digit = hex_digit((*p)[i]);
        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    *p += 5;
    return code < 0x80 ? code : -1;
}

bool json_is(json_span value, const char *text)
{
    const char *p, *end;

    if (!json_is_string(value)) {
        return false;
    }
    p = value.at + 1;
    end = value.at + value.len - 1;
    for (; *text != '\0'; text++) {
        int c;

        if (p == end) {
            return false;
        }
        c = (unsigned char)*p++;
        if (c == '\\') {
            c = unescape(&p, end);
        }
        if (c != (unsigned char)*text) {
            return false;
        }
    }
    return p == end;
}

bool json_is_string(json_span value) { return value.len >= 2 && value.at[0] == '"'; }

bool json_is_number(json_span value)
{
    return value.len > 0 && (value.at[0] == '-' || (value.at[0] >= '0' && value.at[0] <= '9'));
}

bool json_is_object(json_span value) { return value.len >= 2 && value.at[0] == '{'; }

bool json_integer(json_span value, int32_t *number)
{
    bool negative = value.len > 0 && value.at[0] == '-';
    uint32_t limit = negative ? 2147483648U : 2147483647U;
    uint32_t n = 0;
    size_t i = negative ? 1 : 0;

    if (i == value.len) {
        return false;
    }
    for (; i < value.len; i++) {
        uint32_t digit = (uint32_t)(unsigned char)value.at[i] - '0';

        if (digit > 9 || n > (limit - digit) / 10U) {
            return false;
        }
        n = n * 10U + digit;
    }
    *number = negative ? (int32_t)-(int64_t)n : (int32_t)n;
    return true;
}
