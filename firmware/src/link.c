/* Connect, retry, keep alive, notice a dead peer, report. */
#include "internal.h"

#define NEVER (-1) /* as a timeout: nothing is due */

static uint32_t now_of(const mcplink_link *link)
{
    return mcplink_priv_now(link->port);
}

/* ---- configuration ------------------------------------------------------- */

static void apply_defaults(mcplink_link_config *c)
{
    c->retry_initial_ms = mcplink_priv_or_default(c->retry_initial_ms, 1000);
    c->retry_max_ms = mcplink_priv_or_default(c->retry_max_ms, 30000);
    if (c->retry_max_ms < c->retry_initial_ms) {
        c->retry_max_ms = c->retry_initial_ms;
    }
    if (c->ping_interval_ms != MCPLINK_PING_OFF) {
        c->ping_interval_ms = mcplink_priv_or_default(c->ping_interval_ms, 30000);
        c->pong_timeout_ms = mcplink_priv_or_default(c->pong_timeout_ms, 2 * c->ping_interval_ms);
    }
}

static MCPLINK_SMALL void copy_config(mcplink_ws_config *ws, const mcplink_link_config *c)
{
    ws->host = c->host;
    ws->port = c->port;
    ws->tls = c->tls;
    ws->extra_headers = c->extra_headers;
    ws->connect_timeout_ms = c->connect_timeout_ms;
    ws->handshake_timeout_ms = c->handshake_timeout_ms;
    ws->send_timeout_ms = c->send_timeout_ms;
    ws->rx_buffer = c->rx_buffer;
    ws->rx_capacity = c->rx_capacity;
}

int mcplink_link_init(mcplink_link *link, const mcplink_port *port, const mcplink_link_config *config,
                      const char *path, const char *segment, mcplink_open_hook hook)
{
    if (link == NULL || config == NULL) {
        return MCPLINK_ERR_ARG;
    }
    memset(link, 0, sizeof *link);
    mcplink_ws_config *ws = &link->ws.config;
    copy_config(ws, config);
    ws->path = path;
    ws->segment = segment;
    unsigned fault = mcplink_priv_fault(port, ws);
    if (fault != 0) {
        mcplink_priv_ws_detail(&link->ws, fault);
        return mcplink_priv_word_error(fault);
    }
    link->port = port;
    link->config = *config;
    apply_defaults(&link->config);
    link->hook = hook;
    link->window_ms = link->config.retry_initial_ms;
    link->due_ms = now_of(link);
    link->down_since_ms = link->due_ms;
    link->state = MCPLINK_LINK_WAITING;
    return MCPLINK_OK;
}

const char *mcplink_link_detail(const mcplink_link *link)
{
    return link->ws.detail;
}

/* ---- events and retry ---------------------------------------------------- */

void mcplink_priv_event(const mcplink_link *link, mcplink_event *event, mcplink_event_type type)
{
    memset(event, 0, sizeof *event);
    event->type = type;
    event->at_ms = now_of(link);
    event->attempts = link->attempts;
    event->connects = link->connects;
    event->reason = "";
    event->detail = "";
    event->slot = "";
}

void mcplink_priv_emit(const mcplink_link *link, const mcplink_event *event)
{
    if (link->config.on_event != NULL) {
        link->config.on_event(link->config.event_user, event);
    }
}

uint32_t mcplink_link_draw(const mcplink_link *link, uint32_t low, uint32_t high)
{
    uint32_t r;
    if (link->port->random(link->port->ctx, &r, sizeof r) != 0) {
        return high;
    }
    return low + (uint32_t)(((uint64_t)r * (high - low) + r) >> 32);
}

/* Until a link has proved itself a failure keeps doubling the window: a slot that
 * another device holds is refused after a good handshake, again and again. */
static void prove(mcplink_link *link)
{
    link->proven = 1;
    link->attempts = 0;
    link->window_ms = link->config.retry_initial_ms;
}

static MCPLINK_SMALL void prove_by_age(mcplink_link *link, uint32_t now)
{
    if (!link->proven && now - link->up_ms >= MCPLINK_PROVEN_MS) {
        prove(link);
    }
}

static void schedule(mcplink_link *link, mcplink_event_type type, int error)
{
    uint32_t window = link->window_ms;
    uint32_t wait = window;
    int policy = error == MCPLINK_ERR_CLOSED && link->ws.close_code == MCPLINK_CLOSE_POLICY;
    if (!link->config.retry_no_jitter) {
        wait = mcplink_link_draw(link, policy ? (window + 1) / 2 : 0, window);
    }
    link->attempts++;
    link->window_ms = window <= link->config.retry_max_ms / 2 ? window * 2 : link->config.retry_max_ms;
    link->due_ms = now_of(link) + wait;
    link->state = MCPLINK_LINK_WAITING;

    mcplink_event event;
    mcplink_priv_event(link, &event, type);
    event.error = error;
    event.next_retry_ms = wait;
    event.window_ms = window;
    event.next_window_ms = link->window_ms;
    event.detail = link->ws.detail;
    if (error == MCPLINK_ERR_CLOSED) {
        event.close_code = link->ws.close_code;
        event.reason = mcplink_ws_reason(&link->ws);
    }
    if (error == MCPLINK_ERR_HANDSHAKE) {
        event.http_status = link->ws.http_status;
    }
    mcplink_priv_emit(link, &event);
}

/* The socket is closed already. */
static int lost(mcplink_link *link, int error)
{
    uint32_t now = now_of(link);
    prove_by_age(link, now);
    link->disconnects++;
    link->down_since_ms = now;
    schedule(link, MCPLINK_EVENT_DISCONNECTED, error);
    return error;
}

void mcplink_link_drop(mcplink_link *link, int error)
{
    if (link->state == MCPLINK_LINK_CONNECTED) {
        mcplink_ws_close(&link->ws, 0);
        (void)lost(link, error);
    }
}

void mcplink_link_stop(mcplink_link *link)
{
    if (link->state != MCPLINK_LINK_IDLE) {
        mcplink_ws_close(&link->ws, MCPLINK_CLOSE_NORMAL);
        link->state = MCPLINK_LINK_IDLE;
    }
}

/* ---- down ---------------------------------------------------------------- */

static int wait_until_due(mcplink_link *link, int32_t left, int32_t timeout_ms)
{
    int32_t nap = mcplink_priv_shorter(timeout_ms, left);
    if (nap > 0 && link->port->sleep_ms != NULL) {
        link->port->sleep_ms(link->port->ctx, (uint32_t)nap);
    }
    return MCPLINK_ERR_TIMEOUT;
}

static void connected(mcplink_link *link)
{
    uint32_t now = now_of(link);
    mcplink_event event;
    link->state = MCPLINK_LINK_CONNECTED;
    link->connects++;
    link->proven = 0;
    link->ping_out = 0;
    link->up_ms = now;
    link->last_ping_ms = now;
    mcplink_priv_event(link, &event, MCPLINK_EVENT_CONNECTED);
    event.down_ms = now - link->down_since_ms;
    event.window_ms = link->window_ms;
    event.next_window_ms = link->window_ms;
    mcplink_priv_emit(link, &event);
}

static int attempt(mcplink_link *link, int32_t timeout_ms)
{
    int err = MCPLINK_OK;
    if (link->state == MCPLINK_LINK_WAITING) {
        err = mcplink_ws_begin(&link->ws, link->port, &link->ws.config);
        link->state = MCPLINK_LINK_CONNECTING;
    }
    if (err == MCPLINK_OK) {
        err = mcplink_ws_step(&link->ws, link->config.stepwise ? timeout_ms : -1);
    }
    if (err == MCPLINK_PENDING) {
        return MCPLINK_ERR_TIMEOUT;
    }
    if (err == MCPLINK_OK && link->hook != NULL) {
        err = link->hook(link);
    }
    if (err == MCPLINK_OK) {
        connected(link);
    } else {
        mcplink_ws_close(&link->ws, MCPLINK_CLOSE_NORMAL);
        schedule(link, MCPLINK_EVENT_RETRY_FAILED, err);
    }
    return MCPLINK_ERR_TIMEOUT;
}

/* ---- up ------------------------------------------------------------------ */

static int keepalive_on(const mcplink_link *link)
{
    return link->config.ping_interval_ms != MCPLINK_PING_OFF;
}

static int32_t ping_left(const mcplink_link *link, uint32_t now)
{
    return mcplink_priv_left(link->last_ping_ms + link->config.ping_interval_ms, now);
}

/* A task that was away for long finds an old last_rx_ms: the peer still gets half
 * the time to answer the ping. */
static int32_t pong_left(const mcplink_link *link, uint32_t now)
{
    int32_t silence = mcplink_priv_left(link->ws.last_rx_ms + link->config.pong_timeout_ms, now);
    int32_t unanswered = mcplink_priv_left(link->ping_out_ms + link->config.pong_timeout_ms / 2, now);
    return silence > unanswered ? silence : unanswered;
}

/* How long until keepalive has something to do; 0 when it is late. */
static int32_t keepalive_left(const mcplink_link *link, uint32_t now)
{
    if (!keepalive_on(link)) {
        return NEVER;
    }
    int32_t left = ping_left(link, now);
    if (link->ping_out && pong_left(link, now) < left) {
        left = pong_left(link, now);
    }
    return left > 0 ? left : 0;
}

/* Any byte answers a ping. That is seen at every poll: on a busy link, which never
 * waits in vain, the clock may go round before anybody looks again. */
static int ping_if_due(mcplink_link *link)
{
    uint32_t now = now_of(link);
    if (mcplink_priv_left(link->ping_out_ms, link->ws.last_rx_ms) <= 0) {
        link->ping_out = 0;
    }
    if (!keepalive_on(link) || ping_left(link, now) > 0) {
        return MCPLINK_OK;
    }
    if (!link->ping_out) {
        link->ping_out = 1;
        link->ping_out_ms = now;
    }
    link->last_ping_ms = now;
    return mcplink_ws_ping(&link->ws);
}

static int is_dead(const mcplink_link *link, uint32_t now)
{
    return link->ping_out && pong_left(link, now) <= 0;
}

static int receive(mcplink_link *link, const char **data, size_t *len, int32_t timeout_ms)
{
    uint32_t until = now_of(link) + (uint32_t)timeout_ms;
    int32_t wait = timeout_ms;
    for (;;) {
        int err = ping_if_due(link);
        if (err == MCPLINK_OK) {
            err = mcplink_ws_receive(&link->ws, data, len,
                                     mcplink_priv_shorter(wait, keepalive_left(link, now_of(link))));
        }
        if (err == MCPLINK_OK) {
            return err;
        }
        if (err != MCPLINK_ERR_TIMEOUT) {
            return lost(link, err);
        }
        uint32_t now = now_of(link);
        prove_by_age(link, now);
        if (is_dead(link, now)) {
            mcplink_ws_close(&link->ws, 0);
            mcplink_priv_ws_detail(&link->ws, MCPLINK_W_NO_PONG);
            return lost(link, MCPLINK_ERR_TIMEOUT);
        }
        wait = mcplink_priv_rest(timeout_ms, until, now);
        if (keepalive_left(link, now) != 0 || wait == 0) {
            return MCPLINK_ERR_TIMEOUT;
        }
    }
}

int mcplink_link_poll(mcplink_link *link, const char **data, size_t *len, int32_t timeout_ms)
{
    if (link == NULL || data == NULL || len == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (link->state == MCPLINK_LINK_CONNECTED) {
        return receive(link, data, len, timeout_ms);
    }
    if (link->state == MCPLINK_LINK_IDLE) {
        return MCPLINK_ERR_STATE;
    }
    if (link->state == MCPLINK_LINK_WAITING) {
        int32_t left = mcplink_priv_until(link->port, link->due_ms);
        if (left > 0) {
            return wait_until_due(link, left, timeout_ms);
        }
    }
    return attempt(link, timeout_ms);
}

void mcplink_link_accept(mcplink_link *link)
{
    link->messages_in++;
    if (!link->proven) {
        prove(link);
    }
}

int mcplink_link_send(mcplink_link *link, const void *data, size_t len)
{
    if (link == NULL || (data == NULL && len > 0)) {
        return MCPLINK_ERR_ARG;
    }
    if (link->state != MCPLINK_LINK_CONNECTED) {
        return MCPLINK_ERR_STATE;
    }
    int err = mcplink_ws_send(&link->ws, data, len);
    if (err != MCPLINK_OK) {
        return lost(link, err);
    }
    link->messages_out++;
    return MCPLINK_OK;
}
