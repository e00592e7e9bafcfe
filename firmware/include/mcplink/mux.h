/*
 * Several slots on one socket, /providers. Linked only when used, and left out
 * of the library with -DMCPLINK_MUX=0.
 */
#ifndef MCPLINK_MUX_H
#define MCPLINK_MUX_H

#include "mcplink/mcplink.h"

#if !MCPLINK_MUX
#error "mcplink/mux.h needs MCPLINK_MUX: build the library and this file with -DMCPLINK_MUX=1"
#endif

#include "mcplink/envelope.h"
#include "mcplink/link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The caller's array, used in place: it must outlive the mux and not be moved. */
typedef struct mcplink_mux_slot {
    const char *name;    /* 1..MCPLINK_NAME_MAX bytes, all different */
    int aggregate;       /* nonzero: join _all */

    /* Private; zero them. */
    uint8_t refused;     /* a new registration is due at due_ms */
    uint32_t due_ms;
} mcplink_mux_slot;

typedef struct mcplink_mux_config {
    mcplink_link_config link;
    const char *path;        /* NULL = "/providers"; the broker's paths.providers */
    mcplink_mux_slot *slots; /* required */
    size_t slot_count;       /* at least 1 */
    uint32_t reregister_ms;  /* default 30000: a slot refused with -32000 is registered again after half to one and a
                                half of it, drawn anew each time: the broker does not say when a slot falls free */
} mcplink_mux_config;

typedef struct mcplink_mux {
    mcplink_link link;       /* state and counters; first member */
    uint32_t refusals;       /* SLOT_REFUSED events */
    uint32_t bad_frames;     /* frames that were no envelope */

    /* Private. */
    mcplink_mux_slot *slots;
    size_t slot_count;
    uint32_t reregister_ms;
} mcplink_mux;

/* mcplink_mux_poll's slot when the envelope names none of ours. */
#define MCPLINK_SLOT_UNKNOWN SIZE_MAX

/* As mcplink_provider_init; every slot name is checked. No transmit buffer is
 * needed: envelopes are written while they are sent. */
MCPLINK_API int mcplink_mux_init(mcplink_mux *m, const mcplink_port *port, const mcplink_mux_config *config);

/* As mcplink_provider_poll. On every open each slot is registered, in array order,
 * before CONNECTED. A refusal is an event, not a message. *slot is an index into
 * slots, or MCPLINK_SLOT_UNKNOWN.
 *
 * MCPLINK_ERR_NOT_ENVELOPE: one frame was dropped and the link is up; *json and
 * *len are that frame. */
MCPLINK_API int mcplink_mux_poll(mcplink_mux *m, size_t *slot, const char **json, size_t *len, int32_t timeout_ms);

/* As mcplink_provider_send; ARG when slot is not an index or len is 0. */
MCPLINK_API int mcplink_mux_send(mcplink_mux *m, size_t slot, const char *json, size_t len);

/* As the calls of provider.h. Closing the socket frees every slot. */
MCPLINK_API void mcplink_mux_stop(mcplink_mux *m);
MCPLINK_API int mcplink_mux_is_connected(const mcplink_mux *m);
MCPLINK_API const char *mcplink_mux_detail(const mcplink_mux *m);

#ifdef __cplusplus
}
#endif

#endif
