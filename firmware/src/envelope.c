/* The multiplex envelope: written, located, compared. */
#include "internal.h"

#if MCPLINK_MUX

#include "envelope_parts.h"
#include "mcplink/envelope.h"

/* ---- writing ------------------------------------------------------------- */

size_t mcplink_priv_escape(char c, char out[6])
{
    static const char short_form[] = "\"\"\\\\\bb\tt\nn\ff\rr"; /* pairs: character, its letter */
    uint8_t b = (uint8_t)c;
    for (size_t i = 0; i + 1 < sizeof short_form; i += 2) {
        if (short_form[i] == c) {
            out[0] = '\\';
            out[1] = short_form[i + 1];
            return 2;
        }
    }
    if (b >= ' ') {
        out[0] = c;
        return 1;
    }
    memcpy(out, "\\u00", 4);
    out[4] = mcplink_priv_hex_lower[b >> 4];
    out[5] = mcplink_priv_hex_lower[b & 15u];
    return 6;
}

static void put_escaped(mcplink_text *t, const char *s)
{
    char out[6];
    for (; *s != '\0'; s++) {
        size_t n = mcplink_priv_escape(*s, out);
        mcplink_priv_text_bytes(t, out, n);
    }
}

int mcplink_envelope_encode(char *out, size_t cap, const char *slot, const char *payload, size_t len)
{
    if (out == NULL || slot == NULL || slot[0] == '\0' || payload == NULL || len == 0) {
        return MCPLINK_ERR_ARG;
    }
    mcplink_text t = {out, cap, 0};
    mcplink_priv_text(&t, ENVELOPE_HEAD);
    put_escaped(&t, slot);
    mcplink_priv_text(&t, ENVELOPE_MIDDLE);
    mcplink_priv_text_bytes(&t, payload, len);
    mcplink_priv_text(&t, ENVELOPE_TAIL);
    return mcplink_priv_text_end(&t);
}

int mcplink_envelope_register(char *out, size_t cap, const char *slot, int aggregate)
{
    const char *text = aggregate ? MCPLINK_REGISTER_AGGREGATE : MCPLINK_REGISTER;
    return mcplink_envelope_encode(out, cap, slot, text, strlen(text));
}

/* ---- locating ------------------------------------------------------------ */

typedef struct cursor {
    const char *p;
    const char *end;
} cursor;

typedef struct span {
    const char *s;
    size_t len;
} span;

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char peek(cursor *c)
{
    while (c->p < c->end && is_blank(*c->p)) {
        c->p++;
    }
    return c->p < c->end ? *c->p : '\0';
}

static int take(cursor *c, char want)
{
    if (peek(c) != want || c->p == c->end) {
        return 0;
    }
    c->p++;
    return 1;
}

/* A string; out is between its quotes. */
static int take_string(cursor *c, span *out)
{
    if (!take(c, '"')) {
        return 0;
    }
    out->s = c->p;
    while (c->p < c->end && *c->p != '"') {
        if ((uint8_t)*c->p < ' ' || (*c->p == '\\' && ++c->p == c->end)) {
            return 0;
        }
        c->p++;
    }
    if (c->p >= c->end) {
        return 0;
    }
    out->len = (size_t)(c->p - out->s);
    c->p++;
    return 1;
}

/* Objects and arrays are balanced by count; which bracket closes which is the
 * business of whoever parses the payload. */
static int skip_nested(cursor *c)
{
    size_t depth = 0;
    span ignored;
    do {
        char at = peek(c);
        if (c->p == c->end) {
            return 0;
        }
        if (at == '"') {
            if (!take_string(c, &ignored)) {
                return 0;
            }
            continue;
        }
        if (at == '{' || at == '[') {
            depth++;
        } else if (at == '}' || at == ']') {
            depth--;
        }
        c->p++;
    } while (depth > 0);
    return 1;
}

static int scalar_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

static int take_value(cursor *c, span *out)
{
    char first = peek(c);
    span ignored;
    int ok;
    out->s = c->p;
    if (first == '"') {
        ok = take_string(c, &ignored);
    } else if (first == '{' || first == '[') {
        ok = skip_nested(c);
    } else {
        while (c->p < c->end && scalar_char(*c->p)) {
            c->p++;
        }
        ok = c->p > out->s;
    }
    out->len = (size_t)(c->p - out->s);
    return ok;
}

enum { MEMBER = 1, END = 0, BROKEN = -1 };

/* Walks the members of an object; the cursor starts at its brace. */
static int next_member(cursor *c, int first, span *key, span *value)
{
    if (first && !take(c, '{')) {
        return BROKEN;
    }
    if (take(c, '}')) {
        return END;
    }
    if (!first && !take(c, ',')) {
        return BROKEN;
    }
    if (!take_string(c, key) || !take(c, ':') || !take_value(c, value)) {
        return BROKEN;
    }
    char after = peek(c);
    return after == ',' || after == '}' ? MEMBER : BROKEN;
}

static int is_key(span key, const char *name)
{
    return mcplink_envelope_is(key.s, key.len, name);
}

/* The text of a string value without its quotes. */
static int unquote(span *value)
{
    if (value->len < 2 || value->s[0] != '"') {
        return 0;
    }
    value->s++;
    value->len -= 2;
    return 1;
}

int mcplink_envelope_decode(const char *text, size_t len, mcplink_envelope *out)
{
    if (text == NULL || out == NULL) {
        return MCPLINK_ERR_ARG;
    }
    cursor c = {text, text + len};
    span key, value, name = {NULL, 0}, payload = {NULL, 0};
    int first = 1, got;
    while ((got = next_member(&c, first, &key, &value)) == MEMBER) {
        first = 0;
        if (is_key(key, "provider")) {
            name = value;
        } else if (is_key(key, "payload")) {
            payload = value;
        }
    }
    (void)peek(&c);
    if (got == BROKEN || c.p != c.end || payload.s == NULL || !unquote(&name) || name.len == 0) {
        return MCPLINK_ERR_NOT_ENVELOPE;
    }
    out->name = name.s;
    out->name_len = name.len;
    out->payload = payload.s;
    out->payload_len = payload.len;
    return MCPLINK_OK;
}

static int to_int32(span v, int32_t *out)
{
    int negative = v.len > 0 && v.s[0] == '-';
    size_t i = negative ? 1 : 0;
    uint32_t n = 0;
    if (i == v.len) {
        return 0;
    }
    for (; i < v.len; i++) {
        if (v.s[i] < '0' || v.s[i] > '9' || n > (uint32_t)INT32_MAX / 10u - 1u) {
            return 0;
        }
        n = n * 10u + (uint32_t)(v.s[i] - '0');
    }
    *out = negative ? -(int32_t)n : (int32_t)n;
    return 1;
}

static int read_error(span object, mcplink_tunnel_error *out)
{
    cursor c = {object.s, object.s + object.len};
    span key, value;
    int first = 1, got, coded = 0;
    out->message = "";
    out->message_len = 0;
    while ((got = next_member(&c, first, &key, &value)) == MEMBER) {
        first = 0;
        if (is_key(key, "code")) {
            coded = to_int32(value, &out->code);
        } else if (is_key(key, "message") && unquote(&value)) {
            out->message = value.s;
            out->message_len = value.len;
        }
    }
    return got == END && coded;
}

int mcplink_envelope_error(const char *payload, size_t len, mcplink_tunnel_error *out)
{
    if (payload == NULL || out == NULL) {
        return 0;
    }
    cursor c = {payload, payload + len};
    span key, value, error = {NULL, 0};
    int first = 1, got;
    while ((got = next_member(&c, first, &key, &value)) == MEMBER) {
        first = 0;
        if (is_key(key, "id") && !(value.len == 4 && memcmp(value.s, "null", 4) == 0)) {
            return 0;
        }
        if (is_key(key, "method")) {
            return 0;
        }
        if (is_key(key, "error")) {
            error = value;
        }
    }
    return got == END && error.s != NULL && read_error(error, out);
}

#else
typedef int mcplink_envelope_left_out; /* a translation unit must not be empty */
#endif
