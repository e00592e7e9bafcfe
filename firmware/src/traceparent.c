/* W3C traceparent, version 00. */
#include "mcplink/traceparent.h"

#include "internal.h"

static int nibble(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

static int read_hex(uint8_t *out, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        int high = nibble(text[2 * i]);
        int low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return 0;
        }
        out[i] = (uint8_t)(high * 16 + low);
    }
    return 1;
}

static int any_bit(const uint8_t *b, size_t n)
{
    uint8_t all = 0;
    for (size_t i = 0; i < n; i++) {
        all |= b[i];
    }
    return all != 0;
}

static int usable(const mcplink_traceparent *t)
{
    return any_bit(t->trace_id, sizeof t->trace_id) && any_bit(t->parent_id, sizeof t->parent_id);
}

int mcplink_traceparent_parse(mcplink_traceparent *out, const char *text, size_t len)
{
    mcplink_traceparent t;
    if (out == NULL || text == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (len != MCPLINK_TRACEPARENT_LEN || memcmp(text, "00-", 3) != 0 || text[35] != '-' || text[52] != '-') {
        return MCPLINK_ERR_PROTOCOL;
    }
    if (!read_hex(t.trace_id, sizeof t.trace_id, text + 3) || !read_hex(t.parent_id, sizeof t.parent_id, text + 36) ||
        !read_hex(&t.flags, 1, text + 53) || !usable(&t)) {
        return MCPLINK_ERR_PROTOCOL;
    }
    *out = t;
    return MCPLINK_OK;
}

static void put_hex(mcplink_text *t, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mcplink_priv_text_hex(t, b[i], mcplink_priv_hex_lower);
    }
}

int mcplink_traceparent_format(char *out, size_t cap, const mcplink_traceparent *in)
{
    if (out == NULL || in == NULL || !usable(in)) {
        return MCPLINK_ERR_ARG;
    }
    mcplink_text t = {out, cap, 0};
    mcplink_priv_text(&t, "00-");
    put_hex(&t, in->trace_id, sizeof in->trace_id);
    mcplink_priv_text_char(&t, '-');
    put_hex(&t, in->parent_id, sizeof in->parent_id);
    mcplink_priv_text_char(&t, '-');
    put_hex(&t, &in->flags, 1);
    return mcplink_priv_text_end(&t);
}
