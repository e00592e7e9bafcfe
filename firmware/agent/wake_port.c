#define _POSIX_C_SOURCE 200809L

#include "wake_port.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

static int wake_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_wake_port *w = ctx;

    return w->inner.open(w->inner.ctx, host, port, tls, timeout_ms);
}

static int wake_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_wake_port *w = ctx;

    return w->inner.send(w->inner.ctx, buf, len, timeout_ms);
}

static void wake_close(void *ctx)
{
    mcplink_wake_port *w = ctx;

    w->inner.close(w->inner.ctx);
}

static uint32_t wake_now_ms(void *ctx)
{
    mcplink_wake_port *w = ctx;

    return w->inner.now_ms(w->inner.ctx);
}

static int wake_random(void *ctx, void *buf, size_t len)
{
    mcplink_wake_port *w = ctx;

    return w->inner.random(w->inner.ctx, buf, len);
}

static void wake_sleep_ms(void *ctx, uint32_t ms) { mcplink_wake_port_wait(ctx, ms); }

static void swallow(int fd)
{
    char bytes[64];

    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {
    }
}

/* listen_for waits for the socket, which may be -1, or a wake-up; nonzero: the socket
 * has something. A wake-up that comes with it stays for the next time: what the socket
 * has may be half a record, and the wait go on. */
static int listen_for(mcplink_wake_port *w, int fd, int32_t timeout_ms)
{
    struct pollfd p[2];

    p[0].fd = w->pipe[0];
    p[0].events = POLLIN;
    p[1].fd = fd;
    p[1].events = POLLIN;
    p[1].revents = 0;
    if (poll(p, 2, timeout_ms < 0 ? -1 : timeout_ms) <= 0) {
        return 0;
    }
    if (p[1].revents == 0) {
        swallow(w->pipe[0]);
    }
    return p[1].revents != 0;
}

/* What has arrived comes first, since a TLS engine may hold bytes of which the socket
 * knows nothing. A readable socket need not hold a whole record: hence the loop. */
static int wake_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_wake_port *w = ctx;
    uint32_t until = wake_now_ms(w) + (uint32_t)timeout_ms;
    int32_t left = timeout_ms;

    for (;;) {
        int n = w->inner.recv(w->inner.ctx, buf, len, 0);

        if (n != MCPLINK_ERR_TIMEOUT || left == 0 || !listen_for(w, w->socket->fd, left)) {
            return n;
        }
        if (timeout_ms > 0) {
            left = (int32_t)(until - wake_now_ms(w));
            left = left > 0 ? left : 0;
        }
    }
}

static int set_up(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

int mcplink_wake_port_init(mcplink_wake_port *w, mcplink_port *port, const mcplink_port *inner,
                           const mcplink_posix *socket)
{
    if (pipe(w->pipe) != 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    if (!set_up(w->pipe[0]) || !set_up(w->pipe[1])) {
        mcplink_wake_port_free(w);
        return MCPLINK_ERR_TRANSPORT;
    }
    w->inner = *inner;
    w->socket = socket;
    port->open = wake_open;
    port->send = wake_send;
    port->recv = wake_recv;
    port->close = wake_close;
    port->now_ms = wake_now_ms;
    port->random = wake_random;
    port->sleep_ms = wake_sleep_ms;
    port->ctx = w;
    return MCPLINK_OK;
}

void mcplink_wake_port_free(mcplink_wake_port *w)
{
    (void)close(w->pipe[0]);
    (void)close(w->pipe[1]);
}

/* A full pipe holds wake-ups enough. */
void mcplink_wake_port_wake(mcplink_wake_port *w)
{
    ssize_t n = write(w->pipe[1], "", 1);

    (void)n;
}

void mcplink_wake_port_wait(mcplink_wake_port *w, uint32_t ms)
{
    (void)listen_for(w, -1, ms < INT_MAX ? (int32_t)ms : INT_MAX);
}
