/* The loop of the programs for this machine: it serves one MCP surface per slot
 * over a link, dedicated or multiplexed, until a signal stops it. */
#ifndef DEVICE_LOOP_H
#define DEVICE_LOOP_H

#include "host_link.h"
#include "mcp_surface.h"

typedef struct device_options {
    host_options link;
    const char *const *names; /* of the slots; more than one needs multiplex */
    size_t count;
    bool multiplex;
    size_t aggregated; /* so many of the slots, from the first, join _all */
    bool telemetry;    /* send a span after each answered tools/call */
    uint32_t reregister_ms; /* multiplexed: see mcplink_mux_config */
} device_options;

/* device_serve returns the exit code: 0 after a signal, 2 for a configuration that
 * cannot work. */
int device_serve(const device_options *options);

#endif
