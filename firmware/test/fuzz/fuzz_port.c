#include "fuzz_port.h"

const char fuzz_head[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";

static int port_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    stream *s = ctx;
    (void)host, (void)port, (void)tls, (void)timeout_ms;
    s->sends = 0;
    return s->at == 0 ? 0 : MCPLINK_ERR_TRANSPORT; /* one connection per input */
}

static int port_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    stream *s = ctx;
    (void)timeout_ms;
    mix(&s->sent, buf, len);
    s->sends++;
    return (int)len;
}

static int port_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    stream *s = ctx;
    size_t total = s->head_len + s->len;
    if (s->at == total) {
        s->now += timeout_ms > 0 ? (uint32_t)timeout_ms : 1;
        return MCPLINK_ERR_CLOSED;
    }
    int from_head = s->at < s->head_len;
    size_t n = from_head ? s->head_len - s->at : total - s->at;
    n = n < len ? n : len;
    n = s->chunk != 0 && n > s->chunk ? s->chunk : n;
    memcpy(buf, from_head ? s->head + s->at : s->data + (s->at - s->head_len), n);
    s->at += n;
    return (int)n;
}

static void port_close(void *ctx)
{
    (void)ctx;
}

static uint32_t port_now(void *ctx)
{
    return ((stream *)ctx)->now;
}

static int port_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0, len);
    return 0;
}

static void port_sleep(void *ctx, uint32_t ms)
{
    ((stream *)ctx)->now += ms;
}

void stream_init(stream *s, const uint8_t *data, size_t len, size_t chunk)
{
    memset(s, 0, sizeof *s);
    s->port = (mcplink_port){port_open, port_send, port_recv, port_close, port_now, port_random, port_sleep, s};
    s->data = data;
    s->len = len;
    s->chunk = chunk;
}

void mix(uint64_t *hash, const void *bytes, size_t len)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < len; i++) {
        *hash = (*hash ^ b[i]) * 1099511628211u;
    }
    *hash = (*hash ^ len) * 1099511628211u;
}
