#include "mcplink_lwip.h"

#include <string.h>

#include "lwip/pbuf.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "mcplink/mcplink.h"

#define WAIT_MAX_MS 1000u

typedef struct deadline {
    uint32_t from;
    int32_t timeout_ms; /* negative: no limit */
} deadline;

static uint32_t now(const mcplink_lwip *l) { return l->board->now_ms(l->board->ctx); }

static deadline deadline_in(const mcplink_lwip *l, int32_t timeout_ms)
{
    deadline d = {now(l), timeout_ms};

    return d;
}

static void run_stack(mcplink_lwip *l) { l->board->poll(l->board->ctx); }

/* idle waits for a frame, a timer of the stack or the deadline. False: the deadline
 * has passed. Call it only when run_stack left nothing to do: what arrived before
 * is not waited for. */
static int idle(mcplink_lwip *l, const deadline *d)
{
    uint32_t ms = sys_timeouts_sleeptime();

    if (ms > WAIT_MAX_MS) {
        ms = WAIT_MAX_MS;
    }
    if (d->timeout_ms >= 0) {
        uint32_t limit = (uint32_t)d->timeout_ms;
        uint32_t passed = now(l) - d->from;

        if (passed >= limit) {
            return 0;
        }
        if (limit - passed < ms) {
            ms = limit - passed;
        }
    }
    l->board->wait(l->board->ctx, ms);
    return 1;
}

static void drop_unread(mcplink_lwip *l)
{
    if (l->unread != NULL) {
        pbuf_free(l->unread);
        l->unread = NULL;
    }
    l->unread_offset = 0;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
    mcplink_lwip *l = arg;

    (void)pcb;
    (void)err; /* always ERR_OK: a failure is reported to on_error */
    l->connected = 1;
    return ERR_OK;
}

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
    mcplink_lwip *l = arg;

    (void)pcb;
    (void)err; /* always ERR_OK in this version of lwIP */
    if (p == NULL) {
        l->status = MCPLINK_ERR_CLOSED;
        return ERR_OK;
    }
    if (l->unread == NULL) {
        l->unread = p;
    } else {
        pbuf_cat(l->unread, p);
    }
    return ERR_OK;
}

/* lwIP has freed the connection by the time it reports an error. */
static void on_error(void *arg, err_t err)
{
    mcplink_lwip *l = arg;

    l->pcb = NULL;
    l->status = err == ERR_CLSD ? MCPLINK_ERR_CLOSED : MCPLINK_ERR_TRANSPORT;
}

static void lwip_port_close(void *ctx)
{
    mcplink_lwip *l = ctx;
    struct tcp_pcb *pcb = l->pcb;

    l->pcb = NULL;
    l->connected = 0;
    l->status = MCPLINK_ERR_CLOSED;
    drop_unread(l);
    if (pcb == NULL) {
        return;
    }
    tcp_arg(pcb, NULL);
    tcp_recv(pcb, NULL);
    tcp_err(pcb, NULL);
    if (tcp_close(pcb) != ERR_OK) {
        tcp_abort(pcb);
    }
}

static int start_connecting(mcplink_lwip *l, const char *host, uint16_t port)
{
    ip_addr_t address;

    if (!ipaddr_aton(host, &address)) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    l->pcb = tcp_new();
    if (l->pcb == NULL) {
        return MCPLINK_ERR_TRANSPORT;
    }
    l->status = MCPLINK_OK;
    tcp_arg(l->pcb, l);
    tcp_recv(l->pcb, on_received);
    tcp_err(l->pcb, on_error);
    tcp_nagle_disable(l->pcb);
    return tcp_connect(l->pcb, &address, port, on_connected) == ERR_OK ? MCPLINK_OK : MCPLINK_ERR_TRANSPORT;
}

static int await_connection(mcplink_lwip *l, int32_t timeout_ms)
{
    deadline d = deadline_in(l, timeout_ms);

    for (;;) {
        run_stack(l);
        if (l->connected) {
            return MCPLINK_OK;
        }
        if (l->status != MCPLINK_OK) {
            return MCPLINK_ERR_TRANSPORT;
        }
        if (!idle(l, &d)) {
            return MCPLINK_ERR_TIMEOUT;
        }
    }
}

static int lwip_port_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_lwip *l = ctx;
    int connecting = l->pcb != NULL && !l->connected && l->status == MCPLINK_OK;
    int err = MCPLINK_OK;

    if (tls != 0) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    if (!connecting) {
        lwip_port_close(l);
        err = start_connecting(l, host, port);
    }
    if (err == MCPLINK_OK) {
        err = await_connection(l, timeout_ms);
    }
    if (err != MCPLINK_OK && err != MCPLINK_ERR_TIMEOUT) {
        lwip_port_close(l);
    }
    return err;
}

/* Hands as much to lwIP as it takes now; it copies what it takes. */
static int write_some(mcplink_lwip *l, const char *at, size_t len)
{
    size_t room = tcp_sndbuf(l->pcb);
    err_t err;

    if (len > room) {
        len = room;
    }
    if (len == 0) {
        return 0;
    }
    err = tcp_write(l->pcb, at, (u16_t)len, TCP_WRITE_FLAG_COPY);
    if (err == ERR_MEM) {
        return 0; /* the queue is full; an acknowledgement makes room */
    }
    if (err != ERR_OK) {
        return MCPLINK_ERR_TRANSPORT;
    }
    (void)tcp_output(l->pcb); /* a failure here is retried by lwIP's timer */
    return (int)len;
}

static int lwip_port_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_lwip *l = ctx;
    deadline d = deadline_in(l, timeout_ms);
    size_t sent = 0;

    while (sent < len) {
        int n;

        run_stack(l);
        if (l->pcb == NULL || l->status != MCPLINK_OK) {
            return l->status;
        }
        n = write_some(l, (const char *)buf + sent, len - sent);
        if (n < 0) {
            return n;
        }
        sent += (size_t)n;
        if (n == 0 && !idle(l, &d)) {
            return MCPLINK_ERR_TIMEOUT;
        }
    }
    return (int)len;
}

static int take_unread(mcplink_lwip *l, void *buf, size_t len)
{
    u16_t room = len > UINT16_MAX ? UINT16_MAX : (u16_t)len;
    u16_t n = pbuf_copy_partial(l->unread, buf, room, l->unread_offset);

    l->unread_offset = (uint16_t)(l->unread_offset + n);
    while (l->unread != NULL && l->unread_offset >= l->unread->len) {
        struct pbuf *rest = l->unread->next;

        l->unread_offset = (uint16_t)(l->unread_offset - l->unread->len);
        if (rest != NULL) {
            pbuf_ref(rest);
        }
        pbuf_free(l->unread);
        l->unread = rest;
    }
    if (l->pcb != NULL) {
        tcp_recved(l->pcb, n);
    }
    return (int)n;
}

/* What arrived before the end of a connection is handed out before the end is
 * reported. */
static int lwip_port_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_lwip *l = ctx;
    deadline d = deadline_in(l, timeout_ms);

    if (len == 0) {
        return MCPLINK_ERR_ARG;
    }
    for (;;) {
        run_stack(l);
        if (l->unread != NULL) {
            return take_unread(l, buf, len);
        }
        if (l->status != MCPLINK_OK) {
            return l->status;
        }
        if (!idle(l, &d)) {
            return MCPLINK_ERR_TIMEOUT;
        }
    }
}

static uint32_t lwip_port_now_ms(void *ctx) { return now(ctx); }

static int lwip_port_random(void *ctx, void *buf, size_t len)
{
    mcplink_lwip *l = ctx;

    return l->board->random(l->board->ctx, buf, len);
}

/* The stack runs on while the link waits: a closed connection still has
 * acknowledgements to send. */
static void lwip_port_sleep_ms(void *ctx, uint32_t ms)
{
    mcplink_lwip *l = ctx;
    deadline d = deadline_in(l, ms > INT32_MAX ? INT32_MAX : (int32_t)ms);

    do {
        run_stack(l);
    } while (idle(l, &d));
}

void mcplink_lwip_init(mcplink_lwip *l, const mcplink_lwip_board *board, mcplink_port *port)
{
    memset(l, 0, sizeof *l);
    l->board = board;
    l->status = MCPLINK_ERR_CLOSED;
    port->open = lwip_port_open;
    port->send = lwip_port_send;
    port->recv = lwip_port_recv;
    port->close = lwip_port_close;
    port->now_ms = lwip_port_now_ms;
    port->random = lwip_port_random;
    port->sleep_ms = lwip_port_sleep_ms;
    port->ctx = l;
}
