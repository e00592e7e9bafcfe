/* Provider and mux over a fuzzed stream; the split does not matter.
 * Input: options, size of the pieces, then what follows the handshake. */
#include "fuzz_port.h"
#include "mcplink/mux.h"
#include "mcplink/provider.h"

static uint64_t hash;

static void on_event(void *user, const mcplink_event *e)
{
    char line[64];
    (void)user;
    REQUIRE(e->reason != NULL && e->detail != NULL && e->slot != NULL);
    REQUIRE(mcplink_event_format(e, line, sizeof line) > 0);
    mix(&hash, &e->type, sizeof e->type);
    mix(&hash, &e->error, sizeof e->error);
    mix(&hash, e->reason, strlen(e->reason));
    mix(&hash, e->detail, strlen(e->detail));
    mix(&hash, &e->rpc_code, sizeof e->rpc_code);
}

static void seen(int err, const char *json, size_t len, size_t slot)
{
    if (err == MCPLINK_OK || err == MCPLINK_ERR_NOT_ENVELOPE) {
        mix(&hash, json, len);
        mix(&hash, &slot, sizeof slot);
    }
}

static uint64_t run(const uint8_t *data, size_t size, int multiplexed, size_t chunk)
{
    stream s;
    uint8_t *rx = malloc(MCPLINK_RX_MIN);
    mcplink_provider p;
    mcplink_mux m;
    mcplink_mux_slot slots[2] = {{.name = "a", .aggregate = 1}, {.name = "b\"\xC3\xA9"}};
    mcplink_link_config c;
    memset(&c, 0, sizeof c);
    c.host = "h";
    c.rx_buffer = rx;
    c.rx_capacity = MCPLINK_RX_MIN;
    c.on_event = on_event;
    stream_init(&s, data, size, chunk);
    s.head = (const uint8_t *)fuzz_head;
    s.head_len = strlen(fuzz_head);
    hash = 1469598103934665603u;
    mcplink_provider_config pc = {.link = c, .name = "a", .aggregate = 1};
    mcplink_mux_config mc = {.link = c, .slots = slots, .slot_count = 2};
    REQUIRE(mcplink_provider_init(&p, &s.port, &pc) == MCPLINK_OK);
    REQUIRE(mcplink_mux_init(&m, &s.port, &mc) == MCPLINK_OK);
    mcplink_link *link = multiplexed ? &m.link : &p.link;
    do {
        const char *json = NULL;
        size_t len = 0, slot = 0;
        int err = multiplexed ? mcplink_mux_poll(&m, &slot, &json, &len, 1) : mcplink_provider_poll(&p, &json, &len, 1);
        REQUIRE(err != MCPLINK_ERR_ARG && err != MCPLINK_ERR_STATE);
        seen(err, json, len, slot);
    } while (link->state == MCPLINK_LINK_CONNECTED);
    REQUIRE(link->connects == 1 && link->disconnects == 1);
    mix(&hash, &s.sent, sizeof s.sent);
    free(rx);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    uint64_t whole = run(data + 2, size - 2, data[0] & 1, 0);
    REQUIRE(whole == run(data + 2, size - 2, data[0] & 1, 1u + data[1] % 9u));
    return 0;
}
