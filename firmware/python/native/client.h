/*
 * The library behind an opaque handle, for languages that load a shared library: no
 * struct of the library shows, only the two flat ones below, whose members have the
 * same size everywhere.
 *
 * All calls but mcplink_client_wake belong to one thread. The handle allocates its
 * buffers when it is made; the library below it does not.
 */
#ifndef MCPLINK_CLIENT_H
#define MCPLINK_CLIENT_H

#include "mcplink/mcplink.h"

/* Changes with every change of this file that a caller has to know of. */
#define MCPLINK_CLIENT_ABI 1

typedef struct mcplink_client mcplink_client;

/* Zero means the default of the link (link.h). Texts are copied. */
typedef struct mcplink_client_config {
    const char *host;        /* required */
    const char *slot;        /* required */
    const char *prefix;      /* NULL = "/provider" */
    const char *token;       /* NULL = none */
    const char *ca_pem;      /* certificates; required with tls */
    const char *verify_name; /* NULL = host */
    uint32_t port;
    uint32_t tls;
    uint32_t aggregate;
    uint32_t rx_capacity;    /* bytes of the largest message */
    uint32_t connect_timeout_ms;
    uint32_t retry_initial_ms;
    uint32_t retry_max_ms;
    uint32_t ping_interval_ms;
} mcplink_client_config;

#define MCPLINK_CLIENT_TEXT 128

/* As mcplink_event, with its texts inside. tls: why TLS refused the server. */
typedef struct mcplink_client_event {
    int32_t type;
    int32_t error;
    uint32_t next_retry_ms;
    uint32_t window_ms;
    uint32_t attempts;
    uint32_t down_ms;
    uint32_t connects;
    uint32_t close_code;
    uint32_t http_status;
    char reason[MCPLINK_CLIENT_TEXT];
    char detail[MCPLINK_CLIENT_TEXT];
    char tls[MCPLINK_CLIENT_TEXT];
} mcplink_client_event;

MCPLINK_API uint32_t mcplink_client_abi(void);

/* mcplink_client_has_tls tells whether the library was built with TLS. */
MCPLINK_API int32_t mcplink_client_has_tls(void);

/* mcplink_client_create opens nothing. NULL: why, of cap bytes, says what is wrong. */
MCPLINK_API mcplink_client *mcplink_client_create(const mcplink_client_config *config, char *why, uint32_t cap);

/* mcplink_client_poll: see mcplink_provider_poll; it never blocks for longer than
 * timeout_ms, a stalled peer and the resolver aside, and returns MCPLINK_ERR_TIMEOUT
 * early when woken. *json stays until the next call. */
MCPLINK_API int32_t mcplink_client_poll(mcplink_client *c, const char **json, size_t *len, int32_t timeout_ms);

MCPLINK_API int32_t mcplink_client_send(mcplink_client *c, const char *json, size_t len);

/* mcplink_client_next_event moves the oldest event that has not been asked for to
 * *event and returns 1, or returns 0. poll and send cause one event at most, and up to
 * four are kept, the newest ones. */
MCPLINK_API int32_t mcplink_client_next_event(mcplink_client *c, mcplink_client_event *event);

/* mcplink_client_wake ends the poll in progress, or the next one. From any thread,
 * until destroy. */
MCPLINK_API void mcplink_client_wake(mcplink_client *c);

/* mcplink_client_stop closes; every further poll is MCPLINK_ERR_STATE. */
MCPLINK_API void mcplink_client_stop(mcplink_client *c);

/* mcplink_client_destroy stops and frees; NULL is fine. */
MCPLINK_API void mcplink_client_destroy(mcplink_client *c);

#endif
