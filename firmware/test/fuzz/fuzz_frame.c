/* any split of a stream gives the same events, payloads and errors.
 * Input: capacity, seed of the split, then the stream. */
#include "fuzz_port.h"
#include "mcplink/frame.h"

static uint64_t transcript(const uint8_t *in, size_t len, size_t cap, unsigned seed)
{
    mcplink_frame_decoder d;
    uint8_t *buf = malloc(cap > 0 ? cap : 1);
    uint64_t hash = 1469598103934665603u;
    char detail[MCPLINK_DETAIL_SIZE];
    size_t at = 0;
    int event = 0;
    mcplink_frame_init(&d, buf, cap);
    while (at < len && event >= 0) {
        size_t n = len - at, used = 0;
        REQUIRE(mcplink_frame_want(&d) > 0);
        if (seed != 0) {
            seed = seed * 1103515245u + 12345u;
            n = 1 + (seed >> 16) % 7 < n ? 1 + (seed >> 16) % 7 : n;
        }
        event = mcplink_frame_feed(&d, in + at, n, &used);
        REQUIRE(used <= n && (event != MCPLINK_FRAME_MORE || used == n));
        at += used;
        if (event > 0) {
            mix(&hash, &event, sizeof event);
        }
        if (event == MCPLINK_FRAME_MESSAGE) {
            REQUIRE(d.len <= cap);
            mix(&hash, d.buf, d.len);
        } else if (event > 0) {
            mix(&hash, d.control, d.control_len);
        } else if (event < 0) {
            mix(&hash, &event, sizeof event);
            mcplink_frame_detail(&d, detail);
            mix(&hash, detail, strlen(detail));
            REQUIRE(mcplink_frame_feed(&d, "\x81", 1, &used) == event && used == 0); /* sticky */
        }
    }
    free(buf);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    uint64_t whole = transcript(data + 2, size - 2, data[0], 0);
    REQUIRE(whole == transcript(data + 2, size - 2, data[0], 1u + data[1]));
    return 0;
}
