#include "mcplink_stream.h"

/* wait waits for what an attempt wants, until timeout_ms after from. An attempt that
 * ended otherwise keeps its result. */
static int wait(const mcplink_stream *s, void *ctx, int result, uint32_t from, int32_t timeout_ms)
{
    if (result != MCPLINK_WANT_READ && result != MCPLINK_WANT_WRITE) {
        return result;
    }
    if (timeout_ms > 0) {
        uint32_t passed = s->now_ms(ctx) - from;

        timeout_ms = passed < (uint32_t)timeout_ms ? timeout_ms - (int32_t)passed : 0;
    }
    return s->ready(ctx, result == MCPLINK_WANT_WRITE, timeout_ms);
}

int mcplink_stream_send(const mcplink_stream *s, void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    uint32_t from = s->now_ms(ctx);
    const char *at = buf;
    size_t left = len;

    if (len > INT32_MAX) {
        return MCPLINK_ERR_ARG;
    }
    while (left > 0) {
        int n = s->write(ctx, at, left);

        if (n > 0) {
            at += n;
            left -= (size_t)n;
            continue;
        }
        n = wait(s, ctx, n, from, timeout_ms);
        if (n != MCPLINK_OK) {
            return n;
        }
    }
    return (int)len;
}

/* Reading comes before waiting: TLS may hold bytes of which the socket knows nothing. */
int mcplink_stream_recv(const mcplink_stream *s, void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    uint32_t from = s->now_ms(ctx);

    if (len == 0) {
        return MCPLINK_ERR_ARG; /* nothing could be returned but the forbidden 0 */
    }
    if (len > INT32_MAX) {
        len = INT32_MAX;
    }
    for (;;) {
        int n = s->read(ctx, buf, len);

        if (n > 0) {
            return n;
        }
        n = wait(s, ctx, n, from, timeout_ms);
        if (n != MCPLINK_OK) {
            return n;
        }
    }
}
