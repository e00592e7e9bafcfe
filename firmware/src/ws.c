/* WebSocket client: opening, sending, receiving, closing. */
#include "internal.h"

#if MCPLINK_DETAILS
/* Every text of words.c fits. */
void mcplink_priv_ws_detail(mcplink_ws *ws, unsigned word)
{
    const char *text = mcplink_priv_words(word);
    if (ws->detail[0] == '\0') {
        memcpy(ws->detail, text, strlen(text) + 1);
    }
}
#endif

/* ---- port ---------------------------------------------------------------- */

int mcplink_priv_ws_write(mcplink_ws *ws, const void *buf, size_t len, uint32_t deadline_ms)
{
    int32_t left = mcplink_priv_until(ws->port, deadline_ms);
    int n = MCPLINK_ERR_TIMEOUT;
    if (left > 0) {
        n = ws->port->send(ws->port->ctx, buf, len, left);
    }
    if (n == MCPLINK_ERR_TIMEOUT) {
        mcplink_priv_ws_detail(ws, MCPLINK_W_SEND_TIMEOUT);
        return MCPLINK_ERR_TRANSPORT;
    }
    if (n < 0) {
        return n;
    }
    return (size_t)n == len ? MCPLINK_OK : MCPLINK_ERR_TRANSPORT;
}

int mcplink_priv_ws_recv(mcplink_ws *ws, void *buf, size_t len, int32_t timeout_ms)
{
    if (len > INT32_MAX) {
        len = INT32_MAX;
    }
    int n = ws->port->recv(ws->port->ctx, buf, len, timeout_ms);
    if (n == 0 || (n > 0 && (size_t)n > len)) {
        return MCPLINK_ERR_TRANSPORT;
    }
    if (n > 0) {
        ws->last_rx_ms = mcplink_priv_now(ws->port);
    }
    return n;
}

/* ---- outgoing frames ----------------------------------------------------- */

static void out_flush(mcplink_out *o)
{
    if (o->error == MCPLINK_OK && o->fill > 0) {
        o->error = mcplink_priv_ws_write(o->ws, o->chunk, o->fill, o->deadline_ms);
    }
    o->fill = 0;
}

void mcplink_priv_out_begin(mcplink_out *o, mcplink_ws *ws, uint8_t opcode, size_t len)
{
    o->ws = ws;
    o->pos = 0;
    o->fill = 0;
    o->deadline_ms = mcplink_priv_now(ws->port) + ws->config.send_timeout_ms;
    o->error = MCPLINK_OK;
    if (ws->port->random(ws->port->ctx, o->mask, sizeof o->mask) != 0) {
        o->error = MCPLINK_ERR_TRANSPORT;
        mcplink_priv_ws_detail(ws, MCPLINK_W_NO_ENTROPY);
        return;
    }
    o->fill = mcplink_frame_header(o->chunk, opcode, len, o->mask);
}

void mcplink_priv_out_put(mcplink_out *o, const void *data, size_t len)
{
    const uint8_t *in = data;
    while (len > 0 && o->error == MCPLINK_OK) {
        size_t n = sizeof o->chunk - o->fill;
        if (n > len) {
            n = len;
        }
        mcplink_frame_mask(o->chunk + o->fill, in, n, o->mask, o->pos);
        o->fill += n;
        o->pos += n;
        in += n;
        len -= n;
        if (o->fill == sizeof o->chunk) {
            out_flush(o);
        }
    }
}

static int out_finish(mcplink_out *o)
{
    out_flush(o);
    return o->error;
}

int mcplink_priv_out_end(mcplink_out *o)
{
    int err = out_finish(o);
    return err == MCPLINK_OK ? err : mcplink_priv_ws_fail(o->ws, err, 0);
}

static int send_frame(mcplink_ws *ws, uint8_t opcode, const void *data, size_t len)
{
    mcplink_out o;
    mcplink_priv_out_begin(&o, ws, opcode, len);
    mcplink_priv_out_put(&o, data, len);
    return out_finish(&o);
}

/* ---- end ----------------------------------------------------------------- */

/* A courtesy on the way out: the error that led here stays the one reported. */
static void send_close(mcplink_ws *ws, uint16_t code)
{
    uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    (void)send_frame(ws, MCPLINK_OP_CLOSE, payload, code == MCPLINK_CLOSE_NO_CODE ? 0 : sizeof payload);
}

int mcplink_priv_ws_fail(mcplink_ws *ws, int error, uint16_t code)
{
    if (error == MCPLINK_ERR_CLOSED && ws->close_code == 0) {
        ws->close_code = MCPLINK_CLOSE_ABNORMAL;
    }
    mcplink_ws_close(ws, code);
    return error;
}

void mcplink_ws_close(mcplink_ws *ws, uint16_t code)
{
    if (ws == NULL || ws->state == MCPLINK_WS_CLOSED) {
        return;
    }
    if (ws->state == MCPLINK_WS_OPEN && code != 0) {
        send_close(ws, code);
    }
    ws->state = MCPLINK_WS_CLOSED;
    ws->port->close(ws->port->ctx);
}

const char *mcplink_ws_reason(const mcplink_ws *ws)
{
    return mcplink_frame_reason(&ws->decoder);
}

/* ---- opening ------------------------------------------------------------- */

int mcplink_ws_begin(mcplink_ws *ws, const mcplink_port *port, const mcplink_ws_config *config)
{
    unsigned fault = mcplink_priv_fault(port, config);
    if (ws == NULL || fault != 0) {
        return ws == NULL ? MCPLINK_ERR_ARG : mcplink_priv_word_error(fault);
    }
    mcplink_ws_config *c = &ws->config;
    if (config != c) {
        *c = *config;
    }
    c->connect_timeout_ms = mcplink_priv_or_default(c->connect_timeout_ms, 10000);
    c->handshake_timeout_ms = mcplink_priv_or_default(c->handshake_timeout_ms, 5000);
    c->send_timeout_ms = mcplink_priv_or_default(c->send_timeout_ms, 5000);
    if (c->port == 0) {
        c->port = c->tls ? 443 : 80;
    }
    mcplink_frame_init(&ws->decoder, c->rx_buffer, c->rx_capacity);
    ws->port = port;
    ws->http_status = 0;
    ws->close_code = 0;
    ws->detail[0] = '\0';
    ws->last_rx_ms = mcplink_priv_now(port);
    ws->deadline_ms = ws->last_rx_ms + c->connect_timeout_ms;
    ws->state = MCPLINK_WS_CONNECTING;
    return MCPLINK_OK;
}

static int connect_step(mcplink_ws *ws, int32_t timeout_ms)
{
    const mcplink_port *port = ws->port;
    int32_t left = mcplink_priv_until(port, ws->deadline_ms);
    int err = MCPLINK_ERR_TIMEOUT;
    if (left > 0) {
        err = port->open(port->ctx, ws->config.host, ws->config.port, ws->config.tls,
                         mcplink_priv_shorter(timeout_ms, left));
        left = mcplink_priv_until(port, ws->deadline_ms);
    }
    if (err == MCPLINK_ERR_TIMEOUT && timeout_ms >= 0 && left > 0) {
        return MCPLINK_PENDING;
    }
    if (err > 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    if (err == MCPLINK_OK) {
        err = mcplink_priv_request_send(ws);
        ws->deadline_ms = mcplink_priv_now(port) + ws->config.handshake_timeout_ms;
        ws->state = MCPLINK_WS_HANDSHAKE;
    }
    return err;
}

/* Reads the head in blocks. What follows it stays in [rd, wr) for the decoder. */
static int handshake_step(mcplink_ws *ws, int32_t timeout_ms)
{
    uint8_t *buf = ws->config.rx_buffer;
    uint32_t now = mcplink_priv_now(ws->port);
    uint32_t until = now + (uint32_t)timeout_ms;
    int32_t wait = timeout_ms;
    int err = MCPLINK_PENDING;
    do {
        int32_t left = mcplink_priv_left(ws->deadline_ms, now);
        if (left <= 0) {
            mcplink_priv_ws_detail(ws, MCPLINK_W_NO_ANSWER);
            return MCPLINK_ERR_TIMEOUT;
        }
        int n = mcplink_priv_ws_recv(ws, buf + ws->wr, ws->config.rx_capacity - ws->wr,
                                     mcplink_priv_shorter(wait, left));
        if (n > 0) {
            ws->wr += (size_t)n;
            err = mcplink_priv_response_read(ws);
        } else if (n != MCPLINK_ERR_TIMEOUT) {
            err = n;
        }
        now = mcplink_priv_now(ws->port);
        wait = mcplink_priv_rest(timeout_ms, until, now);
    } while (err == MCPLINK_PENDING && wait != 0);
    return err;
}

int mcplink_ws_step(mcplink_ws *ws, int32_t timeout_ms)
{
    int err = MCPLINK_ERR_STATE;
    if (ws == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (ws->state == MCPLINK_WS_CONNECTING) {
        err = connect_step(ws, timeout_ms);
        if (err == MCPLINK_OK) {
            err = timeout_ms < 0 ? handshake_step(ws, timeout_ms) : MCPLINK_PENDING;
        }
    } else if (ws->state == MCPLINK_WS_HANDSHAKE) {
        err = handshake_step(ws, timeout_ms);
    } else {
        return err;
    }
    if (err == MCPLINK_OK) {
        ws->state = MCPLINK_WS_OPEN;
    }
    return err < 0 ? mcplink_priv_ws_fail(ws, err, 0) : err;
}

int mcplink_ws_open(mcplink_ws *ws, const mcplink_port *port, const mcplink_ws_config *config)
{
    int err = mcplink_ws_begin(ws, port, config);
    return err == MCPLINK_OK ? mcplink_ws_step(ws, -1) : err;
}

/* ---- traffic ------------------------------------------------------------- */

static int send_or_fail(mcplink_ws *ws, uint8_t opcode, const void *data, size_t len)
{
    int err = send_frame(ws, opcode, data, len);
    return err == MCPLINK_OK ? err : mcplink_priv_ws_fail(ws, err, 0);
}

int mcplink_ws_send(mcplink_ws *ws, const void *data, size_t len)
{
    if (ws == NULL || (data == NULL && len > 0)) {
        return MCPLINK_ERR_ARG;
    }
    if (ws->state != MCPLINK_WS_OPEN) {
        return MCPLINK_ERR_STATE;
    }
    return send_or_fail(ws, MCPLINK_OP_TEXT, data, len);
}

int mcplink_ws_ping(mcplink_ws *ws)
{
    if (ws == NULL) {
        return MCPLINK_ERR_ARG;
    }
    return ws->state == MCPLINK_WS_OPEN ? send_or_fail(ws, MCPLINK_OP_PING, NULL, 0) : MCPLINK_ERR_STATE;
}

/* MCPLINK_OK: a message is complete. MCPLINK_PENDING: go on. */
static int handle(mcplink_ws *ws, int event)
{
    mcplink_frame_decoder *d = &ws->decoder;
    if (event == MCPLINK_FRAME_MESSAGE) {
        return MCPLINK_OK;
    }
    if (event == MCPLINK_FRAME_PING) {
        int err = send_or_fail(ws, MCPLINK_OP_PONG, d->control, d->control_len);
        return err == MCPLINK_OK ? MCPLINK_PENDING : err;
    }
    if (event == MCPLINK_FRAME_CLOSE) {
        ws->close_code = d->close_code;
        return mcplink_priv_ws_fail(ws, MCPLINK_ERR_CLOSED, d->close_code);
    }
    if (event >= 0) {
        return MCPLINK_PENDING;
    }
    mcplink_frame_detail(d, ws->detail);
    return mcplink_priv_ws_fail(ws, event, d->reply_code);
}

/* Decodes what has arrived, up to one message. */
static int decode_pending(mcplink_ws *ws)
{
    const uint8_t *buf = ws->config.rx_buffer;
    int err = MCPLINK_PENDING;
    while (ws->rd < ws->wr && err == MCPLINK_PENDING) {
        size_t used;
        int event = mcplink_frame_feed(&ws->decoder, buf + ws->rd, ws->wr - ws->rd, &used);
        ws->rd += used;
        err = handle(ws, event);
    }
    return err;
}

/* One read, and its decoding. It goes behind the assembled part of a message and
 * is decoded in place. When the message fills the buffer, what may still come are
 * headers, control frames and empty fragments: they pass through the stack, byte by
 * byte, so that nothing is left over. */
static int read_once(mcplink_ws *ws, int32_t timeout_ms)
{
    mcplink_frame_decoder *d = &ws->decoder;
    mcplink_priv_frame_release(d);
    ws->rd = d->len;
    ws->wr = d->len;
    if (d->len < d->cap) {
        int n = mcplink_priv_ws_recv(ws, d->buf + d->len, d->cap - d->len, timeout_ms);
        if (n < 0) {
            return n;
        }
        ws->wr += (size_t)n;
        return decode_pending(ws);
    }
    uint8_t byte;
    size_t used;
    int n = mcplink_priv_ws_recv(ws, &byte, 1, timeout_ms);
    return n < 0 ? n : handle(ws, mcplink_frame_feed(d, &byte, 1, &used));
}

int mcplink_ws_receive(mcplink_ws *ws, const char **data, size_t *len, int32_t timeout_ms)
{
    if (ws == NULL || data == NULL || len == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (ws->state != MCPLINK_WS_OPEN) {
        return MCPLINK_ERR_STATE;
    }
    uint32_t until = mcplink_priv_now(ws->port) + (uint32_t)timeout_ms;
    int32_t wait = timeout_ms;
    int err = decode_pending(ws);
    while (err == MCPLINK_PENDING) {
        err = read_once(ws, wait);
        wait = mcplink_priv_rest(timeout_ms, until, mcplink_priv_now(ws->port));
        if (err == MCPLINK_PENDING && wait == 0) {
            err = MCPLINK_ERR_TIMEOUT;
        }
    }
    if (err == MCPLINK_OK) {
        *data = (const char *)ws->decoder.buf;
        *len = ws->decoder.len;
        return err;
    }
    if (err != MCPLINK_ERR_TIMEOUT && ws->state == MCPLINK_WS_OPEN) {
        return mcplink_priv_ws_fail(ws, err, 0);
    }
    return err;
}
