/*
 * A provider for an ESP32: one slot, served by a task of its own.
 *
 *   static int32_t handle(void *user, const char *json, size_t len, char *reply, size_t cap);
 *
 *   mcplink_esp_config config = {.host = "192.168.1.10", .port = 3000, .handler = handle};
 *   ESP_ERROR_CHECK(mcplink_esp_start(&config));
 *
 * Events go to the default event loop, base MCPLINK_EVENT, the id being a
 * mcplink_event_type and the data a mcplink_agent_event; one for which the loop has no
 * room is dropped. Sizes, stack, priority and poll period are set in menuconfig.
 */
#ifndef MCPLINK_ESP_H
#define MCPLINK_ESP_H

#include <stdbool.h>

#include "esp_err.h"
#include "esp_event.h"
#include "mcplink_agent.h"

#ifdef __cplusplus
extern "C" {
#endif

ESP_EVENT_DECLARE_BASE(MCPLINK_EVENT);

/* Texts are copied, ca_pem excepted. Zero means the default of the link (link.h). */
typedef struct mcplink_esp_config {
    const char *host;              /* required */
    uint16_t port;                 /* 0 = 80, or 443 with tls */
    bool tls;                      /* the server is always verified */
    const char *ca_pem;            /* the authority to trust, to outlive the provider; NULL = the certificate bundle */
    const char *name;              /* the slot; NULL = "esp32-" and the last three bytes of the MAC address, in hex */
    const char *token;             /* sent as X-Provider-Token; NULL = none */
    bool aggregate;                /* join the broker's _all */
    mcplink_agent_handler handler; /* required; see mcplink_agent.h */
    void *user;                    /* of the handler */
    bool no_wait_for_ip;           /* attempt at once, without an IP event */
    uint32_t connect_timeout_ms;   /* how long stop can take while the broker is out of reach */
    uint32_t handshake_timeout_ms;
    uint32_t retry_initial_ms;
    uint32_t retry_max_ms;
    uint32_t ping_interval_ms;
} mcplink_esp_config;

/* mcplink_esp_start needs the default event loop and esp_netif. start and stop belong
 * to one task. ESP_ERR_INVALID_ARG, ESP_ERR_INVALID_SIZE (a text is too long),
 * ESP_ERR_INVALID_STATE (it runs), ESP_ERR_NO_MEM. */
esp_err_t mcplink_esp_start(const mcplink_esp_config *config);

/* mcplink_esp_stop returns when the task is gone. ESP_ERR_INVALID_STATE: called by the
 * handler. */
esp_err_t mcplink_esp_stop(void);

/* mcplink_esp_send queues one message, from any task. ESP_ERR_INVALID_STATE: not
 * connected. ESP_ERR_TIMEOUT: the outbox is full. ESP_ERR_INVALID_SIZE: it could never
 * hold this message. */
esp_err_t mcplink_esp_send(const char *json, size_t len);

bool mcplink_esp_is_connected(void);

/* The slot, "" before the first start. */
const char *mcplink_esp_slot_name(void);

#ifdef __cplusplus
}
#endif

#endif
