#define _POSIX_C_SOURCE 200809L

#include "span.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "mcplink/telemetry.h"
#include "mcplink/traceparent.h"
#include "text_out.h"

#define SPAN_KIND_SERVER 2

uint64_t span_clock(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void put_hex(text_out *out, const uint8_t *bytes, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        text_hex(out, bytes[i]);
    }
}

static void put_time(text_out *out, const char *key, uint64_t nanos)
{
    char text[64];

    (void)snprintf(text, sizeof text, ",\"%s\":\"%" PRIu64 "\"", key, nanos);
    text_put(out, text);
}

static void put_span(const mcp_surface *surface, const mcplink_traceparent *parent, const uint8_t id[8], uint64_t start,
                     text_out *out)
{
    text_put(out, "{\"traceId\":\"");
    put_hex(out, parent->trace_id, sizeof parent->trace_id);
    text_put(out, "\",\"spanId\":\"");
    put_hex(out, id, 8);
    text_put(out, "\",\"parentSpanId\":\"");
    put_hex(out, parent->parent_id, sizeof parent->parent_id);
    text_put(out, "\",\"name\":");
    text_bytes(out, surface->tool.at, surface->tool.len);
    text_put(out, ",\"kind\":");
    text_unsigned(out, SPAN_KIND_SERVER);
    put_time(out, "startTimeUnixNano", start);
    put_time(out, "endTimeUnixNano", span_clock());
    text_put(out, ",\"attributes\":{\"device.name\":\"");
    text_json(out, surface->name);
    text_put(out, "\"}}");
}

size_t span_notification(const mcp_surface *surface, const mcplink_port *port, uint64_t start, char *at, size_t cap)
{
    mcplink_traceparent parent;
    uint8_t id[8];
    char span[1024];
    text_out out;
    int len;

    if (surface->tool.len == 0 || surface->traceparent.len < 2 ||
        mcplink_traceparent_parse(&parent, surface->traceparent.at + 1, surface->traceparent.len - 2) != MCPLINK_OK ||
        port->random(port->ctx, id, sizeof id) != 0) {
        return 0;
    }
    id[0] |= 1; /* an id of zeros is none */
    text_begin(&out, span, sizeof span);
    put_span(surface, &parent, id, start, &out);
    if (out.full) {
        return 0;
    }
    len = mcplink_telemetry_encode(at, cap, span, out.len);
    return len > 0 ? (size_t)len : 0;
}
