#define _DEFAULT_SOURCE 1 /* getrandom(2), and the POSIX.1-2008 interfaces */

#include "mcplink_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "mcplink_stream.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

static int64_t monotonic_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A deadline of -1 never comes. */
static int64_t deadline_of(int32_t timeout_ms) { return timeout_ms < 0 ? -1 : monotonic_ms() + timeout_ms; }

/* wait_for waits until the socket is ready for events. */
static int wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd p;

    p.fd = fd;
    p.events = events;
    for (;;) {
        int timeout = -1;
        int n;

        if (deadline >= 0) {
            int64_t left = deadline - monotonic_ms();

            timeout = left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
        }
        n = poll(&p, 1, timeout);
        if (n > 0) {
            return MCPLINK_OK;
        }
        if (n == 0) {
            return MCPLINK_ERR_TIMEOUT;
        }
        if (errno != EINTR) {
            return MCPLINK_ERR_TRANSPORT;
        }
    }
}

/* finish waits for a connection that is on its way. */
static int finish(int fd, int64_t deadline)
{
    int error = 0;
    socklen_t size = sizeof error;
    int rc = wait_for(fd, POLLOUT, deadline);

    if (rc != MCPLINK_OK) {
        return rc;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    return MCPLINK_OK;
}

/* start_dialing returns a socket on its way to an address, or -1. */
static int start_dialing(const struct addrinfo *to)
{
    int on = 1;
    int fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
    int flags;

    if (fd < 0) {
        return -1;
    }
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        (void)close(fd);
        return -1;
    }
    /* Frames are small and go out in one piece: waiting to fill a segment only
     * delays answers. A system that refuses is slower, no more. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS && errno != EINTR) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void port_text(uint16_t port, char text[6])
{
    char *at = text + 5;
    unsigned n = port;

    *at = '\0';
    do {
        *--at = (char)('0' + n % 10U);
        n /= 10U;
    } while (n != 0);
    memmove(text, at, (size_t)(text + 6 - at));
}

static void drop(mcplink_posix *p)
{
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    p->fd = -1;
    p->connecting = 0;
}

/* An address that took all the time there was for connecting is not the first to be
 * tried the next time, or a host that cannot be reached by one of its addresses, such as
 * an IPv6 one without a route, would not be reached at all. */
static void posix_close(void *ctx)
{
    mcplink_posix *p = ctx;

    if (!p->connecting) {
        p->address = 0;
    }
    drop(p);
}

static int resolve(const char *host, uint16_t port, struct addrinfo **found)
{
    struct addrinfo hints;
    char service[6];

    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    port_text(port, service);
    return getaddrinfo(host, service, &hints, found) == 0 ? MCPLINK_OK : MCPLINK_ERR_TRANSPORT;
}

/* dial_rest tries the addresses that have not been tried, in the resolver's order; a
 * fresh attempt begins again where there is none left. */
static int dial_rest(mcplink_posix *p, const struct addrinfo *found, int fresh, int64_t deadline)
{
    const struct addrinfo *to = found;
    unsigned i;

    for (i = 0; i < p->address && to != NULL; i++) {
        to = to->ai_next;
    }
    if (to == NULL && fresh) {
        to = found;
        p->address = 0;
    }
    for (; to != NULL; to = to->ai_next) {
        int rc;

        p->address++;
        p->fd = start_dialing(to);
        if (p->fd < 0) {
            continue;
        }
        p->connecting = 1;
        rc = finish(p->fd, deadline);
        if (rc == MCPLINK_OK || rc == MCPLINK_ERR_TIMEOUT) {
            return rc;
        }
        drop(p);
    }
    return MCPLINK_ERR_TRANSPORT;
}

static int posix_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_posix *p = ctx;
    int64_t deadline = deadline_of(timeout_ms);
    struct addrinfo *found;
    int rc = MCPLINK_ERR_TRANSPORT;
    int fresh = !p->connecting;

    if (tls != 0) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    if (!fresh) {
        rc = finish(p->fd, deadline);
    }
    if (rc == MCPLINK_ERR_TRANSPORT) {
        drop(p);
        if (resolve(host, port, &found) != MCPLINK_OK) {
            return MCPLINK_ERR_TRANSPORT;
        }
        rc = dial_rest(p, found, fresh, deadline);
        freeaddrinfo(found);
    }
    if (rc == MCPLINK_OK) {
        p->connecting = 0;
        p->address = 0;
    }
    return rc;
}

static uint32_t posix_now_ms(void *ctx)
{
    (void)ctx;
    return (uint32_t)monotonic_ms();
}

static int ready(void *ctx, int writing, int32_t timeout_ms)
{
    mcplink_posix *p = ctx;

    return wait_for(p->fd, writing ? POLLOUT : POLLIN, deadline_of(timeout_ms));
}

/* outcome is an attempt's, wants being what it waits for when it has to. */
static int outcome(ssize_t n, int wants)
{
    if (n >= 0) {
        return (int)n;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? wants : MCPLINK_ERR_TRANSPORT;
}

static int write_some(void *ctx, const void *buf, size_t len)
{
    mcplink_posix *p = ctx;
    int n = outcome(send(p->fd, buf, len, MSG_NOSIGNAL), MCPLINK_WANT_WRITE);

    return n != 0 ? n : MCPLINK_WANT_WRITE;
}

static int read_some(void *ctx, void *buf, size_t len)
{
    mcplink_posix *p = ctx;
    int n = outcome(recv(p->fd, buf, len, 0), MCPLINK_WANT_READ);

    return n != 0 ? n : MCPLINK_ERR_CLOSED;
}

static const mcplink_stream stream = {read_some, write_some, ready, posix_now_ms};

static int posix_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_posix *p = ctx;

    return p->fd < 0 || p->connecting ? MCPLINK_ERR_STATE : mcplink_stream_send(&stream, p, buf, len, timeout_ms);
}

static int posix_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_posix *p = ctx;

    return p->fd < 0 || p->connecting ? MCPLINK_ERR_STATE : mcplink_stream_recv(&stream, p, buf, len, timeout_ms);
}

static int posix_random(void *ctx, void *buf, size_t len)
{
    char *at = buf;

    (void)ctx;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return MCPLINK_ERR_TRANSPORT;
        }
    }
    return MCPLINK_OK;
}

/* A signal ends the sleep early: the caller's loop looks at its flags. */
static void posix_sleep_ms(void *ctx, uint32_t ms)
{
    struct timespec t;

    (void)ctx;
    t.tv_sec = (time_t)(ms / 1000U);
    t.tv_nsec = (long)(ms % 1000U) * 1000000L;
    (void)nanosleep(&t, NULL);
}

void mcplink_posix_init(mcplink_posix *p, mcplink_port *port)
{
    p->fd = -1;
    p->connecting = 0;
    p->address = 0;
    port->open = posix_open;
    port->send = posix_send;
    port->recv = posix_recv;
    port->close = posix_close;
    port->now_ms = posix_now_ms;
    port->random = posix_random;
    port->sleep_ms = posix_sleep_ms;
    port->ctx = p;
}
