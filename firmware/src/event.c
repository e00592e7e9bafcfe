/* Events as lines. */
#include "internal.h"

static void put_quoted(mcplink_text *t, const char *key, const char *text)
{
    mcplink_priv_text(t, key);
    mcplink_priv_text(t, "=\"");
    for (; *text != '\0'; text++) {
        uint8_t c = (uint8_t)*text;
        if (c < ' ' || c == 0x7F) {
            mcplink_priv_text(t, "\\x");
            mcplink_priv_text_hex(t, c, mcplink_priv_hex_lower);
            continue;
        }
        if (c == '"' || c == '\\') {
            mcplink_priv_text_char(t, '\\');
        }
        mcplink_priv_text_char(t, *text);
    }
    mcplink_priv_text_char(t, '"');
}

static void put_number(mcplink_text *t, const char *key, uint32_t v)
{
    mcplink_priv_text(t, key);
    mcplink_priv_text_char(t, '=');
    mcplink_priv_text_u32(t, v);
}

static void put_failure(mcplink_text *t, const mcplink_event *e)
{
    put_quoted(t, " error", mcplink_strerror(e->error));
    if (e->http_status != 0) {
        put_number(t, " http_status", e->http_status);
    }
    if (e->close_code != 0) {
        put_number(t, " code", e->close_code);
        put_quoted(t, " reason", e->reason);
    }
    if (e->detail[0] != '\0') {
        put_quoted(t, " detail", e->detail);
    }
    if (e->type == MCPLINK_EVENT_RETRY_FAILED) {
        put_number(t, " attempts", e->attempts);
    }
    put_number(t, " next_retry_ms", e->next_retry_ms);
}

static void put_refusal(mcplink_text *t, const mcplink_event *e)
{
    int32_t code = e->rpc_code;
    put_quoted(t, " slot", e->slot);
    mcplink_priv_text(t, code < 0 ? " rpc_code=-" : " rpc_code=");
    mcplink_priv_text_u32(t, code < 0 ? 0u - (uint32_t)code : (uint32_t)code);
    put_quoted(t, " reason", e->reason);
}

int mcplink_event_format(const mcplink_event *e, char *out, size_t cap)
{
    if (e == NULL || out == NULL || cap == 0) {
        return MCPLINK_ERR_ARG;
    }
    mcplink_text t = {out, cap, 0};
    switch (e->type) {
    case MCPLINK_EVENT_CONNECTED:
        mcplink_priv_text(&t, "event CONNECTED");
        put_number(&t, " down_ms", e->down_ms);
        put_number(&t, " connects", e->connects);
        break;
    case MCPLINK_EVENT_DISCONNECTED:
        mcplink_priv_text(&t, "event DISCONNECTED");
        put_failure(&t, e);
        break;
    case MCPLINK_EVENT_RETRY_FAILED:
        mcplink_priv_text(&t, "event RETRY_FAILED");
        put_failure(&t, e);
        break;
    case MCPLINK_EVENT_SLOT_REFUSED:
        mcplink_priv_text(&t, "event SLOT_REFUSED");
        put_refusal(&t, e);
        break;
    }
    int n = mcplink_priv_text_end(&t);
    return n >= 0 ? n : (int)strlen(out);
}
