/* The port of POSIX sockets: which address is dialled, and what it does around an
 * attempt that would block. */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcplink_posix.h"
#include "mcplink_stream.h"
#include "test.h"

/* ---- addresses ----------------------------------------------------------- */

static struct sockaddr_in found[2];
static struct addrinfo list[2];

/* In place of the C library's. */
int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result)
{
    (void)host;
    (void)service;
    (void)hints;
    for (size_t i = 0; i < 2; i++) {
        memset(&list[i], 0, sizeof list[i]);
        list[i].ai_family = AF_INET;
        list[i].ai_socktype = SOCK_STREAM;
        list[i].ai_addr = (struct sockaddr *)&found[i];
        list[i].ai_addrlen = sizeof found[i];
        list[i].ai_next = i == 0 ? &list[1] : NULL;
    }
    *result = list;
    return 0;
}

void freeaddrinfo(struct addrinfo *result) { (void)result; }

static int give_up(const char *what)
{
    perror(what);
    exit(2);
}

static int listen_at(struct sockaddr_in *at, int backlog)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)at, size) != 0 || (backlog >= 0 && listen(fd, backlog) != 0) ||
        getsockname(fd, (struct sockaddr *)at, &size) != 0) {
        return give_up("listen");
    }
    return fd;
}

static mcplink_posix posix;
static mcplink_port port;

static int dial(int32_t timeout_ms) { return port.open(port.ctx, "broker.test", 1, 0, timeout_ms); }

/* Whether the connection is with this listener. */
static int reaches(const struct sockaddr_in *at)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;

    return getpeername(posix.fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_port == at->sin_port;
}

/* An address that refuses is followed by the next one in the same attempt. */
static void refused_address(void)
{
    int closed = listen_at(&found[0], -1), good = listen_at(&found[1], 4);

    mcplink_posix_init(&posix, &port);
    CHECK_INT(dial(20000), MCPLINK_OK);
    CHECK(reaches(&found[1]));
    port.close(port.ctx);
    found[1] = found[0];
    CHECK_INT(dial(20000), MCPLINK_ERR_TRANSPORT);
    port.close(port.ctx);
    (void)close(closed);
    (void)close(good);
}

/* A listener whose queue is full lets nobody know: what dials it waits. */
static int full_listener(struct sockaddr_in *at, int waiting[3])
{
    int fd = listen_at(at, 0);

    for (int i = 0; i < 3; i++) {
        waiting[i] = -1;
        mcplink_posix_init(&posix, &port);
        found[1] = *at;
        found[0] = *at;
        (void)dial(20);
        waiting[i] = posix.fd;
    }
    return fd;
}

/* An address that does not answer takes the time of one attempt, and not of all. */
static void silent_address(void)
{
    struct sockaddr_in silent, answering;
    int waiting[3], full = full_listener(&silent, waiting), good = listen_at(&answering, 4);

    mcplink_posix_init(&posix, &port);
    found[0] = silent;
    found[1] = answering;
    CHECK_INT(dial(50), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(dial(50), MCPLINK_ERR_TIMEOUT); /* in steps: it goes on with the same one */
    port.close(port.ctx);
    CHECK_INT(dial(20000), MCPLINK_OK);
    CHECK(reaches(&answering));
    port.close(port.ctx);
    CHECK_INT(dial(50), MCPLINK_ERR_TIMEOUT); /* that was the end of an attempt: from the start */
    port.close(port.ctx);
    found[1] = silent;
    CHECK_INT(dial(50), MCPLINK_ERR_TIMEOUT);
    port.close(port.ctx);
    found[0] = answering; /* after the last comes the first */
    CHECK_INT(dial(20000), MCPLINK_OK);
    CHECK(reaches(&answering));
    port.close(port.ctx);
    for (int i = 0; i < 3; i++) {
        (void)close(waiting[i]);
    }
    (void)close(full);
    (void)close(good);
}

/* ---- attempts that would block ------------------------------------------- */

static int results[8]; /* of the attempts, in turn */
static unsigned attempts, waits_to_read, waits_to_write;
static int ready_result;
static uint32_t clock_ms;
static int32_t waited_for;

static int attempt(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    (void)buf;
    CHECK(attempts < 8);
    int n = results[attempts++];
    return n > (int)len ? (int)len : n;
}

static int attempt_write(void *ctx, const void *buf, size_t len)
{
    (void)buf;
    return attempt(ctx, NULL, len);
}

static int ready(void *ctx, int writing, int32_t timeout_ms)
{
    (void)ctx;
    waits_to_write += writing != 0;
    waits_to_read += writing == 0;
    waited_for = timeout_ms;
    clock_ms += 30;
    return ready_result;
}

static uint32_t now(void *ctx)
{
    (void)ctx;
    return clock_ms;
}

static const mcplink_stream stream = {attempt, attempt_write, ready, now};

static void script(int a, int b, int c, int d)
{
    results[0] = a;
    results[1] = b;
    results[2] = c;
    results[3] = d;
    attempts = waits_to_read = waits_to_write = 0;
    ready_result = MCPLINK_OK;
    clock_ms = UINT32_MAX - 40; /* it goes round while something waits */
    waited_for = -2;
}

static int receive(int32_t timeout_ms)
{
    char buf[4];

    return mcplink_stream_recv(&stream, NULL, buf, sizeof buf, timeout_ms);
}

static void receives(void)
{
    script(9, 0, 0, 0); /* there already: nobody waits */
    CHECK_INT(receive(0), 4);
    CHECK_INT(waits_to_read, 0);
    script(MCPLINK_WANT_READ, MCPLINK_WANT_WRITE, 2, 0); /* the limit is for the call */
    CHECK_INT(receive(100), 2);
    CHECK_INT(waits_to_read, 1);
    CHECK_INT(waits_to_write, 1);
    CHECK_INT(waited_for, 70);
    script(MCPLINK_WANT_READ, MCPLINK_WANT_READ, MCPLINK_WANT_READ, 3);
    CHECK_INT(receive(40), 3); /* used up: asked once more, without waiting */
    CHECK_INT(waited_for, 0);
    script(MCPLINK_WANT_READ, 1, 0, 0);
    CHECK_INT(receive(-1), 1);
    CHECK_INT(waited_for, -1);
    script(MCPLINK_WANT_READ, 0, 0, 0);
    ready_result = MCPLINK_ERR_TIMEOUT;
    CHECK_INT(receive(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(waited_for, 0);
    script(MCPLINK_WANT_READ, MCPLINK_ERR_CLOSED, 0, 0);
    CHECK_INT(receive(100), MCPLINK_ERR_CLOSED);
    CHECK_INT(mcplink_stream_recv(&stream, NULL, results, 0, 0), MCPLINK_ERR_ARG);
}

static void sends(void)
{
    script(3, MCPLINK_WANT_WRITE, MCPLINK_WANT_READ, 9); /* in parts */
    CHECK_INT(mcplink_stream_send(&stream, NULL, "12345", 5, 100), 5);
    CHECK_INT(attempts, 4);
    CHECK_INT(waits_to_write, 1);
    CHECK_INT(waits_to_read, 1);
    CHECK_INT(waited_for, 70);
    script(3, MCPLINK_WANT_WRITE, 0, 0);
    ready_result = MCPLINK_ERR_TIMEOUT;
    CHECK_INT(mcplink_stream_send(&stream, NULL, "12345", 5, 100), MCPLINK_ERR_TIMEOUT);
    script(3, MCPLINK_ERR_TRANSPORT, 0, 0);
    CHECK_INT(mcplink_stream_send(&stream, NULL, "12345", 5, 100), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(mcplink_stream_send(&stream, NULL, "", 0, 100), 0);
}

static const test_case cases[] = {
    {"posix: a refused address is followed by the next", refused_address},
    {"posix: an address that does not answer", silent_address},
    {"spec 04 2.3 stream: recv", receives},
    {"spec 04 2.3 stream: send", sends},
    {NULL, NULL},
};

static void print(const char *text) { (void)fputs(text, stdout); }

int main(void)
{
    test_run(cases, print);
    return test_summary(print) == 0 ? 0 : 1;
}
