/* The agent on threads, to be run under ThreadSanitizer: what its tasks do to each
 * other. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "agent_cases.h"
#include "mcplink_agent.h"
#include "os_pthread.h"
#include "peer.h"

static mcplink_posix sock;
static mcplink_wake_port wake;
static mcplink_os_pthread threads;
static mcplink_agent agent;
static char rx_buffer[1024], reply[128], pool[256];

/* The handler waits at the door while it is shut. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int shut, inside, events[5], gated, stop_inside;

static void set(int *flag, int value)
{
    (void)pthread_mutex_lock(&mu);
    *flag = value;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mu);
}

static int at_least(const int *flag, int value)
{
    struct timespec late;

    (void)clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 60;
    (void)pthread_mutex_lock(&mu);
    while (*flag < value) {
        if (pthread_cond_timedwait(&changed, &mu, &late) != 0) {
            fprintf(stderr, "waited in vain\n");
            exit(1);
        }
    }
    value = *flag;
    (void)pthread_mutex_unlock(&mu);
    return value;
}

static void bump(int *counter)
{
    (void)pthread_mutex_lock(&mu);
    ++*counter;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mu);
}

static int32_t handle(void *user, const char *json, size_t len, char *out, size_t cap)
{
    (void)user;
    (void)cap;
    set(&stop_inside, mcplink_agent_stop(&agent));
    set(&inside, 1);
    (void)pthread_mutex_lock(&mu);
    while (shut) {
        (void)pthread_cond_wait(&changed, &mu);
    }
    (void)pthread_mutex_unlock(&mu);
    set(&inside, 0);
    memcpy(out, json, len);
    return (int32_t)len;
}

static void on_event(void *user, const mcplink_agent_event *event)
{
    (void)user;
    bump(&events[event->type]);
}

/* The wait of the system, counted: the gate passes its time in it. */
static void (*plain_wait)(void *ctx, uint32_t ms);

static void counting_wait(void *ctx, uint32_t ms)
{
    bump(&gated);
    plain_wait(ctx, ms);
}

static mcplink_agent_config config(uint16_t port)
{
    mcplink_agent_config c;
    mcplink_port plain;

    memset(&c, 0, sizeof c);
    memset(events, 0, sizeof events);
    shut = inside = gated = stop_inside = 0;
    mcplink_posix_init(&sock, &plain);
    CHECK_INT(mcplink_wake_port_init(&wake, &c.port, &plain, &sock), MCPLINK_OK);
    CHECK_INT(mcplink_os_pthread_init(&threads, &c.os, &wake), MCPLINK_OK);
    plain_wait = c.os.wait;
    c.os.wait = counting_wait;
    c.provider.link.host = "127.0.0.1";
    c.provider.link.port = port;
    c.provider.link.retry_initial_ms = 20;
    c.provider.link.retry_max_ms = 40;
    c.provider.link.stepwise = 1;
    c.provider.link.rx_buffer = rx_buffer;
    c.provider.link.rx_capacity = sizeof rx_buffer;
    c.provider.name = "pump-1";
    c.handler = handle;
    c.on_event = on_event;
    c.reply = reply;
    c.reply_cap = sizeof reply;
    c.outbox = pool;
    c.outbox_cap = sizeof pool;
    /* Whoever relied on the poll period to be noticed would be late for the test. */
    c.poll_ms = 600000;
    return c;
}

static void begin(void)
{
    mcplink_agent_config c = config(peer_start());

    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
}

static mcplink_agent_stats stats; /* at the end */

static void end(void)
{
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
    mcplink_agent_get_stats(&agent, &stats);
    CHECK_INT(mcplink_agent_is_connected(&agent), 0);
    peer_stop();
    mcplink_os_pthread_free(&threads);
    mcplink_wake_port_free(&wake);
}

/* Replies, messages of other tasks and stop do not wait for the poll period. */
static void serves(void)
{
    begin();
    (void)at_least(&events[MCPLINK_EVENT_CONNECTED], 1);
    peer_await_connections(1);
    peer_send("{\"id\":1}");
    peer_await_texts(1);
    CHECK_TEXT(peer_text(0), "{\"id\":1}");
    CHECK_INT(stop_inside, MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_agent_send(&agent, "notice", 6), MCPLINK_OK);
    peer_await_texts(2);
    CHECK_TEXT(peer_text(1), "notice");
    peer_drop();
    (void)at_least(&events[MCPLINK_EVENT_CONNECTED], 2);
    CHECK_INT(events[MCPLINK_EVENT_DISCONNECTED], 1);
    end();
}

/* A full outbox refuses; what it took arrives complete and in order. */
static void outbox_full(void)
{
    char message[20];
    int rc = MCPLINK_OK;
    unsigned taken = 0, i;

    begin();
    (void)at_least(&events[MCPLINK_EVENT_CONNECTED], 1);
    peer_await_connections(1);
    set(&shut, 1);
    peer_send("hold");
    (void)at_least(&inside, 1);
    while (rc == MCPLINK_OK) {
        (void)snprintf(message, sizeof message, "message %04u", taken);
        rc = mcplink_agent_send(&agent, message, strlen(message));
        taken += rc == MCPLINK_OK;
    }
    CHECK_INT(rc, MCPLINK_ERR_TIMEOUT);
    CHECK_INT(taken, sizeof pool / (12 + MCPLINK_OUTBOX_PREFIX));
    set(&shut, 0);
    peer_await_texts(1 + taken);
    CHECK_TEXT(peer_text(0), "hold");
    for (i = 0; i < taken; i++) {
        (void)snprintf(message, sizeof message, "message %04u", i);
        CHECK_TEXT(peer_text(1 + i), message);
    }
    end();
    CHECK_INT(stats.full, 1);
    CHECK_INT(stats.sent, taken);
    CHECK_INT(stats.lost, 0);
}

static int over; /* under mu */

static int is_over(void)
{
    int value;

    (void)pthread_mutex_lock(&mu);
    value = over;
    (void)pthread_mutex_unlock(&mu);
    return value;
}

static void *send_on(void *sent)
{
    while (!is_over()) {
        *(unsigned *)sent += mcplink_agent_send(&agent, "from a sender", 13) == MCPLINK_OK;
    }
    return NULL;
}

/* Senders never notice a stop but by the answer, and every message is accounted for. */
static void send_during_stop(void)
{
    pthread_t senders[4];
    unsigned sent[4] = {0, 0, 0, 0}, round, i;

    over = 0;
    begin();
    for (i = 0; i < 4; i++) {
        CHECK_INT(pthread_create(&senders[i], NULL, send_on, &sent[i]), 0);
    }
    for (round = 1; round <= 20; round++) {
        (void)at_least(&events[MCPLINK_EVENT_CONNECTED], (int)round);
        peer_await_texts(round * 10);
        CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
        CHECK_INT(mcplink_agent_send(&agent, "late", 4), MCPLINK_ERR_STATE);
        CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    }
    set(&over, 1);
    for (i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(senders[i], NULL), 0);
    }
    end();
    CHECK_INT(stats.sent + stats.lost, sent[0] + sent[1] + sent[2] + sent[3]);
    CHECK(stats.sent > 0);
}

static void *start_and_stop(void *seed)
{
    uint32_t draw = *(uint32_t *)seed;
    int i;

    for (i = 0; i < 100; i++) {
        draw = draw * 1664525u + 1013904223u;
        if (draw >> 31) {
            int rc = mcplink_agent_start(&agent);

            if (rc != MCPLINK_OK && rc != MCPLINK_ERR_STATE) {
                abort();
            }
        } else if (mcplink_agent_stop(&agent) != MCPLINK_OK) {
            abort();
        }
        if (draw >> 30 & 1u) {
            mcplink_agent_network(&agent, (int)(draw >> 29 & 1u));
        }
        (void)mcplink_agent_is_connected(&agent);
    }
    return NULL;
}

/* Any order of starts and stops, from several tasks at once, leaves an agent that
 * works. */
static void start_stop_races(void)
{
    pthread_t callers[4];
    uint32_t seeds[4] = {1, 2, 3, 4}, i;

    begin();
    for (i = 0; i < 4; i++) {
        CHECK_INT(pthread_create(&callers[i], NULL, start_and_stop, &seeds[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(callers[i], NULL), 0);
    }
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
    mcplink_agent_network(&agent, 1);
    int before = events[MCPLINK_EVENT_CONNECTED];
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_ERR_STATE);
    (void)at_least(&events[MCPLINK_EVENT_CONNECTED], before + 1);
    end();
}

/* The gate holds through several turns, and opens at once. */
static void gate(void)
{
    mcplink_agent_config c = config(peer_start());

    c.wait_for_network = 1;
    c.poll_ms = 5;
    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    (void)at_least(&gated, 5);
    CHECK_INT(peer_connections(), 0);
    CHECK_INT(events[MCPLINK_EVENT_RETRY_FAILED], 0);
    mcplink_agent_network(&agent, 1);
    peer_await_connections(1);
    end();
}

/* Neither the network nor stop waits for the poll period to be noticed at the gate. */
static void gate_wakes(void)
{
    for (int up = 0; up <= 1; up++) {
        mcplink_agent_config c = config(peer_start());

        c.wait_for_network = 1;
        CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
        CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
        (void)at_least(&gated, 1);
        if (up) {
            mcplink_agent_network(&agent, 1);
            peer_await_connections(1);
        }
        end();
    }
}

/* A TLS engine that swallows what the socket has and wants more. */
static int half_record(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    char bytes[8];

    (void)ctx;
    (void)buf;
    (void)len;
    CHECK_INT(timeout_ms, 0);
    if (sock.connecting++ > 0) {
        CHECK_INT(read(sock.fd, bytes, sizeof bytes), 4);
    }
    return MCPLINK_ERR_TIMEOUT;
}

/* A wake-up that comes together with half a record is not lost in the wait for the
 * other half. */
static void wake_with_data(void)
{
    mcplink_port plain, port;
    int ends[2];
    char buf[8];

    mcplink_posix_init(&sock, &plain);
    plain.recv = half_record;
    CHECK_INT(pipe(ends), 0);
    CHECK_INT(write(ends[1], "half", 4), 4);
    sock.fd = ends[0];
    CHECK_INT(mcplink_wake_port_init(&wake, &port, &plain, &sock), MCPLINK_OK);
    mcplink_wake_port_wake(&wake);
    CHECK_INT(port.recv(port.ctx, buf, sizeof buf, 600000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(sock.connecting, 2);
    mcplink_wake_port_free(&wake);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

const test_case thread_cases[] = {
    {"spec 04 7 agent on threads: serves and reconnects", serves},
    {"spec 04 15 agent: outbox full", outbox_full},
    {"spec 04 15 agent: send during stop", send_during_stop},
    {"spec 04 15 agent: start and stop races", start_stop_races},
    {"spec 04 15 agent: IP gate", gate},
    {"spec 04 15 agent: IP gate, without waiting", gate_wakes},
    {"port: a wake-up is not lost among data", wake_with_data},
    {NULL, NULL},
};
