#define _POSIX_C_SOURCE 200809L

#include "peer.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int listener, conn; /* conn: -1 = none */
static unsigned connections, texts;
static char text[PEER_TEXTS][PEER_TEXT_SIZE];

static void tell(void) { (void)pthread_cond_broadcast(&changed); }

static bool read_all(int fd, void *buf, size_t len)
{
    char *at = buf;

    while (len > 0) {
        ssize_t n = recv(fd, at, len, 0);

        if (n <= 0) {
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const void *buf, size_t len)
{
    return send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* A header of the request is all that is needed of it. */
static bool shake_hands(int fd)
{
    static const char name[] = "Sec-WebSocket-Key: ", guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char head[2048], answer[256], accept[32], key[64];
    uint8_t digest[MCPLINK_SHA1_SIZE];
    size_t len = 0;
    const char *at;

    while (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) {
        if (len == sizeof head - 1 || !read_all(fd, head + len, 1)) {
            return false;
        }
        len++;
    }
    head[len] = '\0';
    at = strstr(head, name);
    if (at == NULL) {
        return false;
    }
    memcpy(key, at + sizeof name - 1, 24);
    memcpy(key + 24, guid, sizeof guid);
    mcplink_priv_sha1(digest, key, 24 + sizeof guid - 1);
    (void)mcplink_priv_base64(accept, sizeof accept, digest, sizeof digest);
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\n\r\n", accept);
    return write_all(fd, answer, strlen(answer));
}

/* False at the end of the connection, close frames included. */
static bool read_frame(int fd)
{
    uint8_t head[2], mask[4];
    char payload[PEER_TEXT_SIZE];
    size_t len, i;

    if (!read_all(fd, head, sizeof head)) {
        return false;
    }
    len = head[1] & 0x7Fu;
    if (len >= sizeof payload || !read_all(fd, mask, sizeof mask) || !read_all(fd, payload, len)) {
        return false;
    }
    for (i = 0; i < len; i++) {
        payload[i] = (char)((uint8_t)payload[i] ^ mask[i % 4]);
    }
    payload[len] = '\0';
    if ((head[0] & 15) == 1) {
        (void)pthread_mutex_lock(&mu);
        memcpy(text[texts++ % PEER_TEXTS], payload, len + 1);
        tell();
        (void)pthread_mutex_unlock(&mu);
    }
    return (head[0] & 15) != 8;
}

static void set_conn(int fd)
{
    (void)pthread_mutex_lock(&mu);
    conn = fd;
    connections += fd >= 0;
    tell();
    (void)pthread_mutex_unlock(&mu);
}

static void *serve(void *arg)
{
    int fd;

    (void)arg;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (shake_hands(fd)) {
            set_conn(fd);
            while (read_frame(fd)) {
            }
            set_conn(-1);
        }
        (void)close(fd);
    }
    return NULL;
}

uint16_t peer_start(void)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;

    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    conn = -1;
    connections = 0;
    texts = 0;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
        pthread_create(&thread, NULL, serve, NULL) != 0) {
        perror("peer");
        exit(2);
    }
    return ntohs(at.sin_port);
}

void peer_drop(void)
{
    (void)pthread_mutex_lock(&mu);
    if (conn >= 0) {
        (void)shutdown(conn, SHUT_RDWR);
    }
    (void)pthread_mutex_unlock(&mu);
}

void peer_stop(void)
{
    (void)shutdown(listener, SHUT_RDWR);
    peer_drop();
    (void)pthread_join(thread, NULL);
    (void)close(listener);
}

static void await(const unsigned *counter, unsigned n, const char *what)
{
    struct timespec late;

    (void)clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 60;
    (void)pthread_mutex_lock(&mu);
    while (*counter < n) {
        if (pthread_cond_timedwait(&changed, &mu, &late) != 0) {
            fprintf(stderr, "peer: %u %s of %u\n", *counter, what, n);
            exit(1);
        }
    }
    (void)pthread_mutex_unlock(&mu);
}

void peer_await_connections(unsigned n) { await(&connections, n, "connections"); }
void peer_await_texts(unsigned n) { await(&texts, n, "texts"); }

unsigned peer_connections(void)
{
    unsigned n;

    (void)pthread_mutex_lock(&mu);
    n = connections;
    (void)pthread_mutex_unlock(&mu);
    return n;
}

const char *peer_text(unsigned n) { return text[n % PEER_TEXTS]; }

void peer_send(const char *message)
{
    uint8_t frame[2 + 125];
    size_t len = strlen(message);

    frame[0] = 0x81;
    frame[1] = (uint8_t)len;
    memcpy(frame + 2, message, len);
    (void)pthread_mutex_lock(&mu);
    if (conn >= 0) {
        (void)write_all(conn, frame, 2 + len);
    }
    (void)pthread_mutex_unlock(&mu);
}
