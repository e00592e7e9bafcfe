/* agent-device PORT SLOT: the agent on POSIX threads with the samples' MCP server, for
 * tests against a broker. It prints a line per event and takes commands on standard
 * input, one a line:
 *
 *   start, stop, up, down    the agent, the network
 *   notify N                 4 threads send N notifications each
 *
 * Each is answered with a line that begins "did ". It ends with its input. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_surface.h"
#include "mcplink_agent.h"
#include "os_pthread.h"

#define SENDERS 4

static mcp_surface surface;
static mcplink_agent agent;

static int32_t handle(void *user, const char *json, size_t len, char *reply, size_t cap)
{
    char notice[MCP_SURFACE_REPLY_MIN];
    int32_t n = mcp_surface_handle(&surface, json, len, reply, cap);
    int32_t m;

    (void)user;
    while ((m = mcp_surface_notice(&surface, notice, sizeof notice)) > 0) {
        (void)mcplink_agent_send(&agent, notice, (size_t)m);
    }
    return n;
}

static void on_event(void *user, const mcplink_agent_event *e)
{
    (void)user;
    switch (e->type) {
    case MCPLINK_EVENT_CONNECTED:
        mcp_surface_connected(&surface);
        printf("event CONNECTED connects=%" PRIu32 "\n", e->connects);
        break;
    case MCPLINK_EVENT_DISCONNECTED:
    case MCPLINK_EVENT_RETRY_FAILED:
        printf("event %s code=%u reason=%s attempts=%" PRIu32 "\n",
               e->type == MCPLINK_EVENT_DISCONNECTED ? "DISCONNECTED" : "RETRY_FAILED", e->close_code, e->reason,
               e->attempts);
        break;
    case MCPLINK_EVENT_SLOT_REFUSED:
        break;
    }
}

typedef struct sender {
    pthread_t thread;
    int count, sent;
} sender;

static void *send_all(void *arg)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\","
                               "\"data\":\"from the agent\"}}";
    sender *s = arg;
    int rc = MCPLINK_OK;

    while (s->sent < s->count && rc != MCPLINK_ERR_STATE) {
        rc = mcplink_agent_send(&agent, text, sizeof text - 1);
        s->sent += rc == MCPLINK_OK;
    }
    return NULL;
}

static int notify(int count)
{
    sender senders[SENDERS];
    int i, sent = 0;

    for (i = 0; i < SENDERS; i++) {
        senders[i].count = count;
        senders[i].sent = 0;
        if (pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) != 0) {
            exit(2);
        }
    }
    for (i = 0; i < SENDERS; i++) {
        (void)pthread_join(senders[i].thread, NULL);
        sent += senders[i].sent;
    }
    return sent;
}

static void obey(const char *line)
{
    int n = 0;

    if (strcmp(line, "start\n") == 0) {
        n = mcplink_agent_start(&agent);
    } else if (strcmp(line, "stop\n") == 0) {
        n = mcplink_agent_stop(&agent);
    } else if (strcmp(line, "up\n") == 0) {
        mcplink_agent_network(&agent, 1);
    } else if (strcmp(line, "down\n") == 0) {
        mcplink_agent_network(&agent, 0);
    } else if (strncmp(line, "notify ", 7) == 0) {
        n = notify(atoi(line + 7));
    }
    printf("did %d %s", n, line);
}

int main(int argc, char **argv)
{
    static mcplink_posix sock;
    static mcplink_wake_port wake;
    static mcplink_os_pthread threads;
    static char rx[16384], reply[16384], outbox[4096];
    mcplink_agent_config c;
    mcplink_port plain;
    char line[64];

    if (argc != 3) {
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    memset(&c, 0, sizeof c);
    mcplink_posix_init(&sock, &plain);
    if (mcplink_wake_port_init(&wake, &c.port, &plain, &sock) != MCPLINK_OK ||
        mcplink_os_pthread_init(&threads, &c.os, &wake) != MCPLINK_OK) {
        return 2;
    }
    c.provider.link.host = "127.0.0.1";
    c.provider.link.port = (uint16_t)atoi(argv[1]);
    c.provider.link.retry_initial_ms = 100;
    c.provider.link.retry_max_ms = 400;
    c.provider.link.stepwise = 1;
    c.provider.link.rx_buffer = rx;
    c.provider.link.rx_capacity = sizeof rx;
    c.provider.name = argv[2];
    c.provider.aggregate = 1;
    c.handler = handle;
    c.on_event = on_event;
    c.reply = reply;
    c.reply_cap = sizeof reply;
    c.outbox = outbox;
    c.outbox_cap = sizeof outbox;
    c.poll_ms = 30000; /* what has to be quick wakes the task */
    c.wait_for_network = 1;
    mcp_surface_init(&surface, argv[2]);
    if (mcplink_agent_init(&agent, &c) != MCPLINK_OK) {
        return 2;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        obey(line);
    }
    (void)mcplink_agent_stop(&agent);
    mcplink_os_pthread_free(&threads);
    mcplink_wake_port_free(&wake);
    return 0;
}
