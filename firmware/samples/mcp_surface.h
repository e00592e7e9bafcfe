/* A small MCP server for one slot: the layer above the tunnel, used unchanged by
 * the host tool, the simulation host and the board images. It answers
 * initialize, ping, tools/list and tools/call, ignores notifications and
 * responses, and refuses everything else with -32601. Ids are echoed exactly as
 * received. No allocation, no libc, no clock, no I/O.
 *
 * Every server has the tool echo. One whose name begins with "pump-" is a pump:
 * it also has read_status and set_speed, and the resource device://status, which
 * can be subscribed to. */
#ifndef MCP_SURFACE_H
#define MCP_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_scan.h"

/* Returned when not even an error fits into the reply buffer. */
#define MCP_SURFACE_NO_ROOM (-1)

/* A reply buffer of this many bytes holds every reply but an echo of a long text
 * under a name and an id of up to 64 bytes each. */
#define MCP_SURFACE_REPLY_MIN 2048

typedef struct mcp_surface {
    const char *name; /* of the slot; kept by pointer */
    int32_t speed_rpm;
    bool subscribed; /* to the status */
    bool updated;    /* the status changed, and the subscriber has not been told */
    uint32_t calls;  /* tools/call requests answered */

    /* What the message handled last was. The spans point into it; len is 0 when
     * there is nothing. */
    json_span tool;        /* tools/call: the name, with its quotes */
    json_span traceparent; /* params._meta.traceparent, with its quotes */
} mcp_surface;

/* mcp_surface_init makes a server for a slot; a pump stands still. */
void mcp_surface_init(mcp_surface *s, const char *name);

/* mcp_surface_connected forgets what belonged to the connection before: the broker
 * subscribes again. Call it for each CONNECTED event. */
void mcp_surface_connected(mcp_surface *s);

/* mcp_surface_handle handles one message. It returns the length of the reply in
 * out, 0 if the message gets none, or MCP_SURFACE_NO_ROOM. A reply that is too
 * large becomes the error -32603. Nothing ends in a NUL. */
int32_t mcp_surface_handle(mcp_surface *s, const char *json, size_t len, char *out, size_t cap);

/* mcp_surface_notice writes a notification that is due, to be sent after the
 * reply. It returns its length, 0 if none is due (or it does not fit). */
int32_t mcp_surface_notice(mcp_surface *s, char *out, size_t cap);

#endif
