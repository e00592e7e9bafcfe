/* The broker/telemetry notification. */
#include "mcplink/telemetry.h"

#include "internal.h"

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int mcplink_telemetry_encode(char *out, size_t cap, const char *span, size_t len)
{
    if (out == NULL || span == NULL) {
        return MCPLINK_ERR_ARG;
    }
    while (len > 0 && is_blank(span[0])) {
        span++;
        len--;
    }
    while (len > 0 && is_blank(span[len - 1])) {
        len--;
    }
    if (len < 2 || span[0] != '{' || span[len - 1] != '}') {
        return MCPLINK_ERR_ARG;
    }
    if (len > MCPLINK_SPAN_MAX) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    mcplink_text t = {out, cap, 0};
    mcplink_priv_text(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"broker/telemetry\","
                          "\"params\":{\"version\":1,\"signal\":\"traces\",\"span\":");
    mcplink_priv_text_bytes(&t, span, len);
    mcplink_priv_text(&t, "}}");
    if (t.len > MCPLINK_SPAN_MAX) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    return mcplink_priv_text_end(&t);
}
