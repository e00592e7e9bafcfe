/* A device: one slot, or two on one socket, with the MCP surface the host tool
 * has. It runs until the emulator is stopped. */
#include <stddef.h>
#include <stdint.h>

#include "image_args.h"
#include "image_port.h"
#include "log.h"
#include "mcp_surface.h"
#include "mcplink/mux.h"
#include "mcplink/provider.h"
#include "semihosting.h"
#include "text_out.h"

#define RX_CAPACITY 4096u /* a larger message is answered with close code 1009 */
#define REPLY_CAPACITY 4096u
#define POLL_MS 1000
#define EXIT_USAGE 2
#define EVENT_LINE_MAX 768u
#define SLOTS 2u

static uint8_t rx[RX_CAPACITY];
static char reply[REPLY_CAPACITY];
static mcp_surface surfaces[SLOTS];

static void on_event(void *user, const mcplink_event *event)
{
    static char line[EVENT_LINE_MAX + 1];
    size_t len;

    (void)user;
    if (event->type == MCPLINK_EVENT_CONNECTED) {
        for (size_t i = 0; i < SLOTS; i++) {
            mcp_surface_connected(&surfaces[i]);
        }
    }
    len = (size_t)mcplink_event_format(event, line, EVENT_LINE_MAX);
    line[len++] = '\n';
    semihosting_write(line, len);
    if (event->type == MCPLINK_EVENT_DISCONNECTED) {
        log_stack();
    }
    if (event->type == MCPLINK_EVENT_RETRY_FAILED && *image_port_detail() != '\0') {
        log_line("transport: ", image_port_detail());
    }
}

static mcplink_link_config link_config(const image_args *args)
{
    static char headers[160];
    mcplink_link_config c = {0};
    text_out out;

    c.host = args->host;
    c.port = args->port;
    c.tls = args->tls;
    c.send_timeout_ms = args->send_timeout;
    c.retry_initial_ms = args->retry_initial;
    c.retry_max_ms = args->retry_max;
    c.rx_buffer = rx;
    c.rx_capacity = sizeof rx;
    c.on_event = on_event;
    if (args->token != NULL) {
        text_begin(&out, headers, sizeof headers - 1);
        text_put(&out, "X-Provider-Token: ");
        text_put(&out, args->token);
        text_put(&out, "\r\n");
        headers[out.len] = '\0';
        c.extra_headers = headers;
    }
    return c;
}

static int run_provider(const mcplink_port *port, const image_args *args)
{
    static mcplink_provider provider;
    mcplink_provider_config config = {link_config(args), args->name, NULL, args->aggregate};
    mcp_surface *s = &surfaces[0];
    const char *json;
    size_t len;
    int32_t n;

    mcp_surface_init(s, args->name);
    if (mcplink_provider_init(&provider, port, &config) != MCPLINK_OK) {
        log_line("config: ", mcplink_provider_detail(&provider));
        return EXIT_USAGE;
    }
    for (;;) {
        if (mcplink_provider_poll(&provider, &json, &len, POLL_MS) != MCPLINK_OK) {
            continue;
        }
        for (n = mcp_surface_handle(s, json, len, reply, sizeof reply); n > 0;
             n = mcp_surface_notice(s, reply, sizeof reply)) {
            (void)mcplink_provider_send(&provider, reply, (size_t)n);
        }
    }
}

static int run_mux(const mcplink_port *port, const image_args *args)
{
    static mcplink_mux mux;
    static char second[MCPLINK_NAME_MAX + 3];
    static mcplink_mux_slot slots[SLOTS];
    mcplink_mux_config config = {link_config(args), NULL, slots, SLOTS, 0};
    text_out out;
    const char *json;
    size_t slot;
    size_t len;
    int32_t n;

    text_begin(&out, second, sizeof second - 1);
    text_put(&out, args->name);
    text_put(&out, "-b");
    slots[0].name = args->name;
    slots[0].aggregate = args->aggregate;
    slots[1].name = second;
    mcp_surface_init(&surfaces[0], slots[0].name);
    mcp_surface_init(&surfaces[1], slots[1].name);
    if (mcplink_mux_init(&mux, port, &config) != MCPLINK_OK) {
        log_line("config: ", mcplink_mux_detail(&mux));
        return EXIT_USAGE;
    }
    for (;;) {
        if (mcplink_mux_poll(&mux, &slot, &json, &len, POLL_MS) != MCPLINK_OK || slot >= SLOTS) {
            continue;
        }
        for (n = mcp_surface_handle(&surfaces[slot], json, len, reply, sizeof reply); n > 0;
             n = mcp_surface_notice(&surfaces[slot], reply, sizeof reply)) {
            (void)mcplink_mux_send(&mux, slot, reply, (size_t)n);
        }
    }
}

int main(void)
{
    static char line[IMAGE_LINE_MAX];
    static mcplink_port port;
    static image_args args;
    const char *wrong;

    if (semihosting_cmdline(line, sizeof line) != 0) {
        log_line("no command line", "");
        return EXIT_USAGE;
    }
    wrong = image_args_parse(&args, line);
    if (wrong != NULL) {
        log_line("wrong or incomplete: ", wrong);
        return EXIT_USAGE;
    }
    wrong = image_port_init(&args, &port);
    if (wrong != NULL) {
        log_line("transport: ", wrong);
        return EXIT_USAGE;
    }
    log_line("device transport=", image_port_name);
    return args.multiplex ? run_mux(&port, &args) : run_provider(&port, &args);
}
