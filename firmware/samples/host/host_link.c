#define _POSIX_C_SOURCE 200809L

#include "host_link.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RX_DEFAULT 16384u
#define SHOWN_BYTES 200u

void host_defaults(host_options *o)
{
    memset(o, 0, sizeof *o);
    o->host = "127.0.0.1";
    o->port = 3000;
    o->rx_bytes = RX_DEFAULT;
}

void host_flags(host_options *o, cli_flag *flags)
{
    const cli_flag all[HOST_FLAGS] = {
        {"--host", CLI_TEXT, &o->host, 0, 0, "the broker's host (127.0.0.1)"},
        {"--port", CLI_NUMBER, &o->port, 1, 65535, "the broker's port (3000)"},
        {"--token", CLI_TEXT, &o->token, 0, 0, "sent as X-Provider-Token"},
        {"--tls", CLI_SWITCH, &o->tls, 0, 0, "connect with wss; needs --ca"},
        {"--ca", CLI_TEXT, &o->ca, 0, 0, "file with the certificates to trust, PEM"},
        {"--verify-name", CLI_TEXT, &o->verify_name, 0, 0, "the name in the broker's certificate (--host)"},
        {"--retry-initial", CLI_NUMBER, &o->retry_initial_ms, 1, MCPLINK_TIME_MAX, "first retry window in ms (1000)"},
        {"--retry-max", CLI_NUMBER, &o->retry_max_ms, 1, MCPLINK_TIME_MAX, "longest retry window in ms (30000)"},
        {"--no-jitter", CLI_SWITCH, &o->no_jitter, 0, 0, "wait for whole retry windows"},
        {"--stepwise", CLI_SWITCH, &o->stepwise, 0, 0, "connect in steps, without blocking for long"},
        {"--connect-timeout", CLI_NUMBER, &o->connect_timeout_ms, 1, MCPLINK_TIME_MAX, "in ms (10000)"},
        {"--handshake-timeout", CLI_NUMBER, &o->handshake_timeout_ms, 1, MCPLINK_TIME_MAX, "in ms (5000)"},
        {"--send-timeout", CLI_NUMBER, &o->send_timeout_ms, 1, MCPLINK_TIME_MAX, "in ms (5000)"},
        {"--ping-interval", CLI_NUMBER, &o->ping_interval_ms, 1, MCPLINK_TIME_MAX, "in ms (30000)"},
        {"--pong-timeout", CLI_NUMBER, &o->pong_timeout_ms, 1, MCPLINK_TIME_MAX, "in ms (two ping intervals)"},
        {"--rx", CLI_NUMBER, &o->rx_bytes, MCPLINK_RX_MIN, 1u << 24, "largest message in bytes (16384)"},
        {"--quiet", CLI_SWITCH, &o->quiet, 0, 0, "print events, but no messages"},
    };

    memcpy(flags, all, sizeof all);
}

static char *token_header(const char *token)
{
    static const char name[] = "X-Provider-Token: ";
    size_t size = sizeof name + strlen(token) + 2;
    char *header = malloc(size);

    if (header != NULL) {
        (void)snprintf(header, size, "%s%s\r\n", name, token);
    }
    return header;
}

bool host_config(const host_options *o, mcplink_link_config *config)
{
    memset(config, 0, sizeof *config);
    config->host = o->host;
    config->port = (uint16_t)o->port;
    config->tls = o->tls;
    config->retry_initial_ms = o->retry_initial_ms;
    config->retry_max_ms = o->retry_max_ms;
    config->retry_no_jitter = o->no_jitter;
    config->stepwise = o->stepwise;
    config->connect_timeout_ms = o->connect_timeout_ms;
    config->handshake_timeout_ms = o->handshake_timeout_ms;
    config->send_timeout_ms = o->send_timeout_ms;
    config->ping_interval_ms = o->ping_interval_ms;
    config->pong_timeout_ms = o->pong_timeout_ms;
    config->rx_capacity = o->rx_bytes;
    config->rx_buffer = malloc(o->rx_bytes);
    if (o->token != NULL) {
        config->extra_headers = token_header(o->token);
    }
    if (config->rx_buffer == NULL || (o->token != NULL && config->extra_headers == NULL)) {
        fprintf(stderr, "out of memory\n");
        return false;
    }
    return true;
}

void host_config_free(mcplink_link_config *config)
{
    free(config->rx_buffer);
    free((void *)(uintptr_t)config->extra_headers);
}

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

void host_catch_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    /* Whoever reads the lines may be a pipe. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

bool host_stopping(void) { return stopping != 0; }

void host_print_event(const mcplink_event *event)
{
    char line[1024];

    if (mcplink_event_format(event, line, sizeof line) >= 0) {
        puts(line);
    }
}

void host_print_message(const char *direction, const char *slot, const char *json, size_t len)
{
    size_t shown = len < SHOWN_BYTES ? len : SHOWN_BYTES;
    size_t i;

    printf("%s %s %lu ", direction, slot, (unsigned long)len);
    for (i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)json[i];

        if (c < 0x20 || c == 0x7f) {
            printf("\\x%02x", c);
        } else {
            (void)putchar(c);
        }
    }
    puts(shown < len ? "..." : "");
}
