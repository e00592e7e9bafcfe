#include "fake.h"

fake net;
uint8_t rx[1024];
char frame_payload[2048];
size_t frame_len;
uint8_t frame_mask[4];
seen_event seen[SEEN_MAX];
unsigned seen_count;

static const char good_head[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                "Sec-WebSocket-Accept: @\r\n\r\n";

/* ---- port ---------------------------------------------------------------- */

static int fake_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    (void)ctx;
    net.opens++;
    mcplink_text t = {net.host, sizeof net.host, 0};
    mcplink_priv_text(&t, host);
    (void)mcplink_priv_text_end(&t);
    net.host_port = port;
    net.tls = tls;
    net.open_timeout = timeout_ms;
    if (timeout_ms >= 0 && net.open_ms > (uint32_t)timeout_ms) {
        net.now += (uint32_t)timeout_ms;
        net.open_ms -= (uint32_t)timeout_ms;
        return MCPLINK_ERR_TIMEOUT;
    }
    net.now += net.open_ms;
    if (net.open_error != 0) {
        return net.open_error;
    }
    net.is_open = 1;
    net.in_len = net.in_pos = net.out_len = net.out_pos = 0;
    return MCPLINK_OK;
}

static int ends_request(void)
{
    return net.out_len >= 4 && net.out_pos == 0 && memcmp(net.out + net.out_len - 4, "\r\n\r\n", 4) == 0;
}

/* What the server makes of the request's key. */
static void accept_value(char out[32])
{
    static const char name[] = "Sec-WebSocket-Key: ";
    char text[61];
    uint8_t digest[MCPLINK_SHA1_SIZE];
    for (size_t i = 0; i + sizeof name + 24 < net.out_len; i++) {
        if (memcmp(net.out + i, name, sizeof name - 1) == 0) {
            memcpy(text, net.out + i + sizeof name - 1, 24);
        }
    }
    memcpy(text + 24, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11", 37);
    mcplink_priv_sha1(digest, text, 60);
    (void)mcplink_priv_base64(out, 32, digest, sizeof digest);
}

static void answer(void)
{
    char accept[32];
    net.out_pos = net.out_len;
    accept_value(accept);
    for (const char *p = net.head; *p != '\0'; p++) {
        if (*p == '@') {
            fake_push(accept, strlen(accept));
        } else {
            fake_push(p, 1);
        }
    }
    fake_push(net.script, net.script_len);
}

static int fake_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    (void)ctx;
    net.sends++;
    net.send_timeout = timeout_ms;
    net.now += net.send_ms;
    if (net.send_error != 0 && net.sends >= net.send_fail_at) {
        return net.send_error;
    }
    if (net.out_len + len > FAKE_OUT) {
        return MCPLINK_ERR_TRANSPORT;
    }
    memcpy(net.out + net.out_len, buf, len);
    net.out_len += len;
    if (ends_request()) {
        answer();
    }
    return (int)len;
}

static int fake_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    (void)ctx;
    net.recvs++;
    net.recv_timeout = timeout_ms;
    size_t n = net.in_len - net.in_pos;
    if (net.pause_at >= net.in_pos && net.pause_at - net.in_pos < n) {
        n = net.pause_at - net.in_pos;
        if (n == 0) {
            net.pause_at = SIZE_MAX;
            net.now += timeout_ms > 0 ? (uint32_t)timeout_ms : 0;
            return MCPLINK_ERR_TIMEOUT;
        }
    }
    if (n == 0) {
        net.now += timeout_ms > 0 ? (uint32_t)timeout_ms : 0;
        if (timeout_ms < 0 && net.end == MCPLINK_ERR_TIMEOUT) {
            test_fail("recv would block for ever", __FILE__, __LINE__);
            return MCPLINK_ERR_TRANSPORT;
        }
        return net.end;
    }
    if (n > len) {
        n = len;
    }
    if (net.chunk != 0 && n > net.chunk) {
        n = net.chunk;
    }
    memcpy(buf, net.in + net.in_pos, n);
    net.in_pos += n;
    net.now += net.ms_per_recv;
    return (int)n;
}

static void fake_close(void *ctx)
{
    (void)ctx;
    net.closes++;
    net.is_open = 0;
}

static uint32_t fake_now(void *ctx)
{
    (void)ctx;
    return net.now;
}

static int fake_random(void *ctx, void *buf, size_t len)
{
    uint8_t *out = buf;
    (void)ctx;
    if (net.entropy == 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    net.entropy--;
    for (size_t i = 0; i < len; i++) {
        net.seed = net.seed * 1664525u + 1013904223u;
        out[i] = net.fixed_random >= 0 ? (uint8_t)net.fixed_random : (uint8_t)(net.seed >> 24);
    }
    return 0;
}

static void fake_sleep(void *ctx, uint32_t ms)
{
    (void)ctx;
    net.sleeps++;
    net.slept += ms;
    net.now += ms;
}

void fake_reset(void)
{
    memset(&net, 0, sizeof net);
    memset(rx, 0, sizeof rx);
    memset(seen, 0, sizeof seen);
    seen_count = 0;
    net.port.open = fake_open;
    net.port.send = fake_send;
    net.port.recv = fake_recv;
    net.port.close = fake_close;
    net.port.now_ms = fake_now;
    net.port.random = fake_random;
    net.port.sleep_ms = fake_sleep;
    net.head = good_head;
    net.pause_at = SIZE_MAX;
    net.end = MCPLINK_ERR_TIMEOUT;
    net.entropy = 1000000;
    net.fixed_random = -1;
    net.seed = 1;
    net.now = 1000;
}

/* ---- server side --------------------------------------------------------- */

void fake_script(const void *bytes, size_t len)
{
    memcpy(net.script + net.script_len, bytes, len);
    net.script_len += len;
}

static size_t server_header(uint8_t out[4], unsigned first, size_t len)
{
    out[0] = (uint8_t)first;
    if (len < 126) {
        out[1] = (uint8_t)len;
        return 2;
    }
    out[1] = 126;
    out[2] = (uint8_t)(len >> 8);
    out[3] = (uint8_t)len;
    return 4;
}

void fake_script_frame(unsigned first, const char *payload, size_t len)
{
    uint8_t header[4];
    fake_script(header, server_header(header, first, len));
    fake_script(payload, len);
}

void fake_push(const void *bytes, size_t len)
{
    if (net.in_len + len > FAKE_IN) {
        test_fail("the fake's stream is full", __FILE__, __LINE__);
        return;
    }
    memcpy(net.in + net.in_len, bytes, len);
    net.in_len += len;
}

void fake_push_frame(unsigned first, const char *payload, size_t len)
{
    uint8_t header[4];
    fake_push(header, server_header(header, first, len));
    fake_push(payload, len);
}

void fake_push_text(const char *text)
{
    fake_push_frame(0x81, text, strlen(text));
}

static size_t close_payload(char out[125], unsigned code, const char *reason)
{
    out[0] = (char)(code >> 8);
    out[1] = (char)(code & 255u);
    memcpy(out + 2, reason, strlen(reason));
    return 2 + strlen(reason);
}

void fake_push_close(unsigned code, const char *reason)
{
    char payload[125];
    fake_push_frame(0x88, payload, close_payload(payload, code, reason));
}

void fake_script_close(unsigned code, const char *reason)
{
    char payload[125];
    fake_script_frame(0x88, payload, close_payload(payload, code, reason));
}

/* ---- what the client sent ------------------------------------------------ */

const char *fake_request(void)
{
    static char text[1024];
    size_t n = net.out_len < sizeof text - 1 ? net.out_len : sizeof text - 1;
    memcpy(text, net.out, n);
    text[n] = '\0';
    for (size_t i = 0; i + 4 <= n; i++) {
        if (memcmp(text + i, "\r\n\r\n", 4) == 0) {
            text[i + 4] = '\0';
            break;
        }
    }
    return text;
}

int fake_frame(void)
{
    const uint8_t *p = net.out + net.out_pos;
    size_t header = 2;
    if (net.out_pos >= net.out_len) {
        return -1;
    }
    if ((p[0] & 0xF0u) != 0x80 || (p[1] & 0x80u) == 0) {
        return -2;
    }
    frame_len = p[1] & 0x7Fu;
    if (frame_len == 126) {
        frame_len = (size_t)p[2] << 8 | p[3];
        header = 4;
        if (frame_len < 126) {
            return -2;
        }
    } else if (frame_len == 127) {
        return -2;
    }
    memcpy(frame_mask, p + header, 4);
    header += 4;
    if (frame_len >= sizeof frame_payload || net.out_pos + header + frame_len > net.out_len) {
        return -2;
    }
    for (size_t i = 0; i < frame_len; i++) {
        frame_payload[i] = (char)(p[header + i] ^ frame_mask[i & 3u]);
    }
    frame_payload[frame_len] = '\0';
    net.out_pos += header + frame_len;
    return p[0] & 15;
}

/* ---- events and configurations ------------------------------------------- */

static void copy_text(char *to, size_t cap, const char *from)
{
    mcplink_text t = {to, cap, 0};
    mcplink_priv_text(&t, from);
    (void)mcplink_priv_text_end(&t);
}

void fake_on_event(void *user, const mcplink_event *event)
{
    (void)user;
    if (seen_count < SEEN_MAX) {
        seen_event *s = &seen[seen_count];
        s->e = *event;
        copy_text(s->reason, sizeof s->reason, event->reason);
        copy_text(s->detail, sizeof s->detail, event->detail);
        copy_text(s->slot, sizeof s->slot, event->slot);
        s->sleeps = net.sleeps;
    }
    seen_count++;
}

mcplink_ws_config fake_ws_config(void)
{
    mcplink_ws_config c;
    memset(&c, 0, sizeof c);
    c.host = "broker.test";
    c.port = 3000;
    c.path = "/provider/pump-1";
    c.rx_buffer = rx;
    c.rx_capacity = sizeof rx;
    return c;
}

mcplink_link_config fake_link_config(void)
{
    mcplink_link_config c;
    memset(&c, 0, sizeof c);
    c.host = "broker.test";
    c.port = 3000;
    c.rx_buffer = rx;
    c.rx_capacity = sizeof rx;
    c.on_event = fake_on_event;
    return c;
}
