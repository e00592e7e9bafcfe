/*
 * One slot on its own socket: /provider/<name>, plain JSON-RPC text frames.
 *
 *   mcplink_provider p;
 *   static uint8_t rx[4096];
 *   mcplink_provider_config c = {.link = {.host = "10.0.2.2", .port = 3000, .rx_buffer = rx, .rx_capacity = sizeof rx},
 *                                .name = "pump-1", .aggregate = 1};
 *   mcplink_provider_init(&p, &port, &c);
 *   for (;;) {
 *       const char *json; size_t len;
 *       if (mcplink_provider_poll(&p, &json, &len, 1000) == MCPLINK_OK) { ... mcplink_provider_send(&p, reply, n); }
 *   }
 *
 * Poll at least every 30 s: the broker pings each provider every 30 s and drops
 * one that missed a whole interval, and fails a request after 60 s.
 */
#ifndef MCPLINK_PROVIDER_H
#define MCPLINK_PROVIDER_H

#include "mcplink/link.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcplink_provider_config {
    mcplink_link_config link;
    const char *name;   /* the slot, 1..MCPLINK_NAME_MAX bytes; any characters, encoded in the path; required */
    const char *prefix; /* NULL = "/provider"; the broker's paths.provider */
    int aggregate;      /* nonzero: join the broker's _all, by a registration after every handshake */
} mcplink_provider_config;

typedef struct mcplink_provider {
    mcplink_link link;  /* state and counters; first member */
    uint8_t aggregate;  /* private */
} mcplink_provider;

/* mcplink_provider_init checks the configuration and the port and opens nothing.
 * port and every text must outlive the provider. Returns MCPLINK_OK, ARG or
 * TOO_LARGE (name, host); mcplink_provider_detail says which field. */
MCPLINK_API int mcplink_provider_init(mcplink_provider *p, const mcplink_port *port,
                                      const mcplink_provider_config *config);

/* mcplink_provider_poll does one step of whatever is due and receives at most one
 * message. timeout_ms: 0 = do not block, negative = no limit.
 *
 *   down, attempt not due  sleeps until due or timeout (with sleep_ms), TIMEOUT
 *   down, attempt due      connects, shakes hands, registers; TIMEOUT whatever the
 *                          outcome, which is an event (how long: see `stepwise`)
 *   connected              pings when due, then MCPLINK_OK with one message or
 *                          TIMEOUT
 *
 * TIMEOUT is the normal idle result (also when the link was dropped for want of a
 * pong: the event and the state tell). STATE: stopped. ARG: json or len is NULL. Any
 * other error is the end of the link, already reported as DISCONNECTED, with a
 * retry scheduled: go on polling. *json is not NUL-terminated and valid until the
 * next call for this provider other than send. */
MCPLINK_API int mcplink_provider_poll(mcplink_provider *p, const char **json, size_t *len, int32_t timeout_ms);

/* mcplink_provider_send sends one JSON-RPC message at once; nothing is queued. It
 * blocks for at most send_timeout_ms. Returns MCPLINK_OK, STATE while down, ARG, or
 * the failure that ended the link (DISCONNECTED was delivered). The text is not
 * looked at; it must be UTF-8 and is not modified. */
MCPLINK_API int mcplink_provider_send(mcplink_provider *p, const char *json, size_t len);

/* mcplink_provider_stop closes with 1000 and goes idle: no event, and no attempt
 * until the next init. */
MCPLINK_API void mcplink_provider_stop(mcplink_provider *p);

MCPLINK_API int mcplink_provider_is_connected(const mcplink_provider *p);

/* mcplink_provider_detail: see mcplink_link_detail. */
MCPLINK_API const char *mcplink_provider_detail(const mcplink_provider *p);

#ifdef __cplusplus
}
#endif

#endif
