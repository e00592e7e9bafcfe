#include "mcplink_esp.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "esp_mac.h"
#include "esp_netif.h"
#include "mcplink_target.h"
#include "sdkconfig.h"
#include "port/mcplink_idf.h"
#include "port/os_freertos.h"

ESP_EVENT_DEFINE_BASE(MCPLINK_EVENT);

static mcplink_agent agent;
static atomic_bool ready; /* the agent has been initialised, once and for all */
static mcplink_idf tls;
static mcplink_os_freertos os;
static esp_event_handler_instance_t ip_handler;
static mcplink_target target;
static char rx[CONFIG_MCPLINK_RX_BUFFER], reply[CONFIG_MCPLINK_REPLY_BUFFER], outbox[CONFIG_MCPLINK_OUTBOX];

static esp_err_t to_esp(int rc)
{
    static const esp_err_t codes[] = {
        [-MCPLINK_OK] = ESP_OK,
        [-MCPLINK_ERR_TIMEOUT] = ESP_ERR_TIMEOUT,
        [-MCPLINK_ERR_TRANSPORT] = ESP_ERR_NO_MEM,
        [-MCPLINK_ERR_TOO_LARGE] = ESP_ERR_INVALID_SIZE,
        [-MCPLINK_ERR_STATE] = ESP_ERR_INVALID_STATE,
    };

    return rc == MCPLINK_OK || (rc >= MCPLINK_ERR_STATE && codes[-rc] != ESP_OK) ? codes[-rc] : ESP_ERR_INVALID_ARG;
}

static void on_event(void *user, const mcplink_agent_event *event)
{
    (void)user;
    (void)esp_event_post(MCPLINK_EVENT, (int32_t)event->type, event, sizeof *event, 0);
}

static bool has_address(void)
{
    esp_netif_t *netif = esp_netif_get_default_netif();
    esp_netif_ip_info_t info;

    return netif != NULL && esp_netif_get_ip_info(netif, &info) == ESP_OK && info.ip.addr != 0;
}

/* Every interface gives itself an address of this kind; it leads nowhere. */
static bool is_link_local(const ip_event_got_ip6_t *event)
{
    uint8_t head[2];

    memcpy(head, event->ip6_info.ip.addr, sizeof head);
    return head[0] == 0xFE && (head[1] & 0xC0) == 0x80;
}

static void on_ip(void *user, esp_event_base_t base, int32_t id, void *data)
{
    (void)user;
    (void)base;
    switch (id) {
    case IP_EVENT_GOT_IP6:
        if (is_link_local(data)) {
            break;
        }
        /* fall through */
    case IP_EVENT_STA_GOT_IP:
    case IP_EVENT_ETH_GOT_IP:
    case IP_EVENT_PPP_GOT_IP:
        mcplink_agent_network(&agent, 1);
        break;
    case IP_EVENT_STA_LOST_IP:
    case IP_EVENT_ETH_LOST_IP:
    case IP_EVENT_PPP_LOST_IP:
        mcplink_agent_network(&agent, has_address());
        break;
    default:
        break;
    }
}

/* "esp32-" and the last three bytes of the MAC address, unless there is a name. */
static esp_err_t set_target(mcplink_provider_config *p, const mcplink_esp_config *c)
{
    uint8_t mac[6];
    char own[16];
    esp_err_t rc = c->name == NULL ? esp_efuse_mac_get_default(mac) : ESP_OK;

    if (rc != ESP_OK) {
        return rc;
    }
    if (c->name == NULL) {
        (void)snprintf(own, sizeof own, "esp32-%02X%02X%02X", mac[3], mac[4], mac[5]);
    }
    return to_esp(mcplink_target_set(&target, p, c->host, c->name != NULL ? c->name : own, c->token));
}

static mcplink_provider_config provider_of(const mcplink_esp_config *c)
{
    return (mcplink_provider_config){
        .aggregate = c->aggregate,
        .link = {.port = c->port,
                 .tls = c->tls,
                 .connect_timeout_ms = c->connect_timeout_ms,
                 .handshake_timeout_ms = c->handshake_timeout_ms,
                 .retry_initial_ms = c->retry_initial_ms,
                 .retry_max_ms = c->retry_max_ms,
                 .ping_interval_ms = c->ping_interval_ms,
                 .rx_buffer = rx,
                 .rx_capacity = sizeof rx},
    };
}

static void prepare(const mcplink_esp_config *config)
{
    mcplink_agent_config c = {.handler = config->handler, .on_event = on_event, .reply = reply,
                              .reply_cap = sizeof reply, .outbox = outbox, .outbox_cap = sizeof outbox,
                              .poll_ms = CONFIG_MCPLINK_POLL_MS, .wait_for_network = 1};

    os.stack = CONFIG_MCPLINK_TASK_STACK;
    os.priority = CONFIG_MCPLINK_TASK_PRIORITY;
    os.core = CONFIG_MCPLINK_TASK_CORE < 0 ? tskNO_AFFINITY : CONFIG_MCPLINK_TASK_CORE;
    mcplink_os_freertos_init(&os, &c.os);
    mcplink_idf_init(&tls, &c.port, NULL);
    (void)mcplink_agent_init(&agent, &c);
    atomic_store(&ready, true);
}

/* The handler is registered before the address is asked for: no change is missed. */
static esp_err_t watch_network(bool wait)
{
    esp_err_t rc = esp_event_handler_instance_register(IP_EVENT, ESP_EVENT_ANY_ID, on_ip, NULL, &ip_handler);

    if (rc == ESP_OK && (!wait || has_address())) {
        mcplink_agent_network(&agent, 1);
    }
    return rc;
}

static void unwatch_network(void)
{
    if (ip_handler != NULL) {
        (void)esp_event_handler_instance_unregister(IP_EVENT, ESP_EVENT_ANY_ID, ip_handler);
        ip_handler = NULL;
    }
}

esp_err_t mcplink_esp_start(const mcplink_esp_config *config)
{
    mcplink_provider_config provider;
    esp_err_t rc;

    if (config == NULL || config->handler == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (ip_handler != NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    if (!atomic_load(&ready)) {
        prepare(config);
    }
    provider = provider_of(config);
    rc = set_target(&provider, config);
    if (rc != ESP_OK) {
        return rc;
    }
    tls.ca_pem = config->ca_pem;
    rc = to_esp(mcplink_agent_configure(&agent, &provider, config->handler, config->user));
    if (rc == ESP_OK) {
        mcplink_agent_network(&agent, 0);
        rc = watch_network(!config->no_wait_for_ip);
    }
    if (rc == ESP_OK) {
        rc = to_esp(mcplink_agent_start(&agent));
    }
    if (rc != ESP_OK) {
        unwatch_network();
    }
    return rc;
}

esp_err_t mcplink_esp_stop(void)
{
    esp_err_t rc = atomic_load(&ready) ? to_esp(mcplink_agent_stop(&agent)) : ESP_OK;

    if (rc == ESP_OK) {
        unwatch_network();
    }
    return rc;
}

esp_err_t mcplink_esp_send(const char *json, size_t len)
{
    return atomic_load(&ready) ? to_esp(mcplink_agent_send(&agent, json, len)) : ESP_ERR_INVALID_STATE;
}

bool mcplink_esp_is_connected(void) { return atomic_load(&ready) && mcplink_agent_is_connected(&agent) != 0; }

const char *mcplink_esp_slot_name(void) { return target.name; }
