#include "device_loop.h"

#include <stdio.h>
#include <stdlib.h>

#include "host_port.h"
#include "mcplink/mux.h"
#include "mcplink/provider.h"
#include "span.h"

/* How long one poll waits, and so how late a signal is noticed. */
#define POLL_MS 100

/* Room for what is put around an echoed text. */
#define REPLY_SPARE 4096u

typedef struct device_loop {
    const device_options *options;
    host_port port;
    mcplink_provider provider;
    mcplink_mux mux;
    mcplink_mux_slot *slots;
    mcp_surface *surfaces;
    char *reply;
    size_t reply_cap;
} device_loop;

static const mcplink_link *link_of(const device_loop *d)
{
    return d->options->multiplex ? &d->mux.link : &d->provider.link;
}

static void on_event(void *user, const mcplink_event *event)
{
    device_loop *d = user;
    size_t i;

    host_print_event(event);
    if (event->error == MCPLINK_ERR_TLS && host_port_words(&d->port)[0] != '\0') {
        printf("tls %s\n", host_port_words(&d->port));
    }
    if (event->type == MCPLINK_EVENT_CONNECTED) {
        for (i = 0; i < d->options->count; i++) {
            mcp_surface_connected(&d->surfaces[i]);
        }
    }
}

static int init(device_loop *d, mcplink_link_config *link)
{
    const device_options *o = d->options;
    mcplink_provider_config single = {0};
    mcplink_mux_config shared = {0};

    link->on_event = on_event;
    link->event_user = d;
    if (o->multiplex) {
        shared.link = *link;
        shared.slots = d->slots;
        shared.slot_count = o->count;
        shared.reregister_ms = o->reregister_ms;
        return mcplink_mux_init(&d->mux, &d->port.port, &shared);
    }
    single.link = *link;
    single.name = o->names[0];
    single.aggregate = o->aggregated > 0;
    return mcplink_provider_init(&d->provider, &d->port.port, &single);
}

static int poll_once(device_loop *d, size_t *slot, const char **json, size_t *len)
{
    *slot = 0;
    return d->options->multiplex ? mcplink_mux_poll(&d->mux, slot, json, len, POLL_MS)
                                 : mcplink_provider_poll(&d->provider, json, len, POLL_MS);
}

/* send_one reports whether the link is still up. */
static bool send_one(device_loop *d, size_t slot, size_t len)
{
    int rc = d->options->multiplex ? mcplink_mux_send(&d->mux, slot, d->reply, len)
                                   : mcplink_provider_send(&d->provider, d->reply, len);

    if (rc == MCPLINK_OK && !d->options->link.quiet) {
        host_print_message("out", d->options->names[slot], d->reply, len);
    }
    return rc == MCPLINK_OK;
}

static void serve(device_loop *d, size_t slot, const char *json, size_t len)
{
    mcp_surface *surface = &d->surfaces[slot];
    uint64_t start = span_clock();
    int32_t n;
    size_t span;

    if (!d->options->link.quiet) {
        host_print_message("in", d->options->names[slot], json, len);
    }
    n = mcp_surface_handle(surface, json, len, d->reply, d->reply_cap);
    if (n <= 0 || !send_one(d, slot, (size_t)n)) {
        return;
    }
    while ((n = mcp_surface_notice(surface, d->reply, d->reply_cap)) > 0) {
        if (!send_one(d, slot, (size_t)n)) {
            return;
        }
    }
    /* The message that was handled last still stands in the receive buffer. */
    span = d->options->telemetry ? span_notification(surface, &d->port.port, start, d->reply, d->reply_cap) : 0;
    if (span > 0) {
        (void)send_one(d, slot, span);
    }
}

static void run(device_loop *d)
{
    while (!host_stopping()) {
        const char *json;
        size_t slot, len;

        switch (poll_once(d, &slot, &json, &len)) {
        case MCPLINK_OK:
            if (slot < d->options->count) {
                serve(d, slot, json, len);
            } else {
                host_print_message("dropped", "unknown slot", json, len);
            }
            break;
        case MCPLINK_ERR_NOT_ENVELOPE:
            host_print_message("dropped", "no envelope", json, len);
            break;
        default: /* idle, or the end of the link, which was an event */
            break;
        }
    }
    if (d->options->multiplex) {
        mcplink_mux_stop(&d->mux);
    } else {
        mcplink_provider_stop(&d->provider);
    }
}

static bool allocate(device_loop *d)
{
    size_t i;

    d->surfaces = calloc(d->options->count, sizeof *d->surfaces);
    d->slots = calloc(d->options->count, sizeof *d->slots);
    d->reply_cap = d->options->link.rx_bytes + REPLY_SPARE;
    d->reply = malloc(d->reply_cap);
    if (d->surfaces == NULL || d->slots == NULL || d->reply == NULL) {
        fprintf(stderr, "out of memory\n");
        return false;
    }
    for (i = 0; i < d->options->count; i++) {
        mcp_surface_init(&d->surfaces[i], d->options->names[i]);
        d->slots[i].name = d->options->names[i];
        d->slots[i].aggregate = i < d->options->aggregated;
    }
    return true;
}

static void print_summary(const device_loop *d)
{
    const mcplink_link *link = link_of(d);
    unsigned long calls = 0;
    size_t i;

    for (i = 0; i < d->options->count; i++) {
        calls += d->surfaces[i].calls;
    }
    printf("done connects=%lu disconnects=%lu messages_in=%lu messages_out=%lu calls=%lu\n",
           (unsigned long)link->connects, (unsigned long)link->disconnects, (unsigned long)link->messages_in,
           (unsigned long)link->messages_out, calls);
}

static int start(device_loop *d, mcplink_link_config *link)
{
    int rc;

    if (!allocate(d)) {
        return 2;
    }
    host_catch_signals();
    rc = init(d, link);
    if (rc != MCPLINK_OK) {
        fprintf(stderr, "cannot start: %s: %s\n", mcplink_strerror(rc), mcplink_link_detail(link_of(d)));
        return 2;
    }
    run(d);
    print_summary(d);
    return 0;
}

int device_serve(const device_options *options)
{
    const host_options *o = &options->link;
    device_loop d = {0};
    mcplink_link_config link;
    int code = 2;

    d.options = options;
    if (!host_port_init(&d.port, o->tls, o->ca, o->verify_name)) {
        return code;
    }
    if (host_config(o, &link)) {
        code = start(&d, &link);
    }
    host_config_free(&link);
    host_port_free(&d.port);
    free(d.surfaces);
    free(d.slots);
    free(d.reply);
    return code;
}
