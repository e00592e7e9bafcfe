/* Envelope, tunnel error, names, escapes. */
#include "fuzz_port.h"
#include "mcplink/envelope.h"

static void inside(const char *part, size_t len, const char *text, size_t size)
{
    REQUIRE(len == 0 || (part >= text && part + len <= text + size));
}

/* What decode gives back goes through encode and decode again. */
static void roundtrip(const mcplink_envelope *e)
{
    char *slot = malloc(e->name_len + 1);
    memcpy(slot, e->name, e->name_len);
    size_t n = mcplink_json_unescape(slot, e->name_len);
    REQUIRE(n <= e->name_len);
    slot[n] = '\0';
    if (strlen(slot) == n) {
        size_t cap = 6 * n + e->payload_len + 64;
        char *out = malloc(cap);
        mcplink_envelope again;
        REQUIRE(mcplink_envelope_is(e->name, e->name_len, slot) == 1);
        int len = mcplink_envelope_encode(out, cap, slot, e->payload, e->payload_len);
        if (n > 0) {
            REQUIRE(len > 0);
            REQUIRE(mcplink_envelope_decode(out, (size_t)len, &again) == MCPLINK_OK);
            REQUIRE(mcplink_envelope_is(again.name, again.name_len, slot) == 1);
            REQUIRE(again.payload_len == e->payload_len && memcmp(again.payload, e->payload, e->payload_len) == 0);
        }
        free(out);
    }
    free(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size > 0 ? size : 1); /* exact, so that a byte too far is noticed */
    mcplink_envelope e;
    mcplink_tunnel_error error;
    if (size > 0) {
        memcpy(text, data, size);
    }
    (void)mcplink_envelope_is(text, size, "pump-1");
    if (mcplink_envelope_error(text, size, &error)) {
        inside(error.message, error.message_len, text, size);
    }
    if (mcplink_envelope_decode(text, size, &e) == MCPLINK_OK) {
        inside(e.name, e.name_len, text, size);
        inside(e.payload, e.payload_len, text, size);
        REQUIRE(e.name_len > 0 && e.payload_len > 0);
        roundtrip(&e);
        if (mcplink_envelope_error(e.payload, e.payload_len, &error)) {
            inside(error.message, error.message_len, text, size);
        }
    }
    REQUIRE(mcplink_json_unescape(text, size) <= size);
    free(text);
    return 0;
}
