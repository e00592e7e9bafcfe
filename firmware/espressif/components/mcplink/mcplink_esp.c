#include "mcplink_esp.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "esp_mac.h"
#include "esp_netif.h"
#include "sdkconfig.h"
#include "port/mcplink_idf.h"
#include "port/os_freertos.h"

ESP_EVENT_DEFINE_BASE(MCPLINK_EVENT);

static mcplink_agent agent;
static atomic_bool ready; /* the agent has been initialised, once and for all */
static mcplink_idf tls;
static mcplink_os_freertos os;
static esp_event_handler_instance_t ip_handler;
static mcplink_esp_config current;
static char host[MCPLINK_HOST_MAX + 1], name[MCPLINK_NAME_MAX + 1], header[192];
static char rx[CONFIG_MCPLINK_RX_BUFFER], reply[CONFIG_MCPLINK_REPLY_BUFFER], outbox[CONFIG_MCPLINK_OUTBOX];

static esp_err_t to_esp(int rc)
{
    switch (rc) {
    case MCPLINK_OK:
        return ESP_OK;
    case MCPLINK_ERR_STATE:
        return ESP_ERR_INVALID_STATE;
    case MCPLINK_ERR_TIMEOUT:
        return ESP_ERR_TIMEOUT;
    case MCPLINK_ERR_TOO_LARGE:
        return ESP_ERR_INVALID_SIZE;
    case MCPLINK_ERR_TRANSPORT:
        return ESP_ERR_NO_MEM;
    default:
        return ESP_ERR_INVALID_ARG;
    }
}

static int32_t handle(void *user, const char *json, size_t len, char *out, size_t cap)
{
    (void)user;
    return current.handler(current.user, json, len, out, cap);
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

static void on_ip(void *user, esp_event_base_t base, int32_t id, void *data)
{
    (void)user;
    (void)base;
    (void)data;
    switch (id) {
    case IP_EVENT_STA_GOT_IP:
    case IP_EVENT_ETH_GOT_IP:
    case IP_EVENT_PPP_GOT_IP:
    case IP_EVENT_GOT_IP6:
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

static bool copy(char *to, size_t cap, const char *format, const char *text)
{
    int n = snprintf(to, cap, format, text);

    return n >= 0 && (size_t)n < cap;
}

static esp_err_t copy_texts(const mcplink_esp_config *c)
{
    uint8_t mac[6];
    char hex[7] = "";

    if (c->host == NULL || c->handler == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (c->name == NULL) {
        esp_err_t rc = esp_efuse_mac_get_default(mac);

        if (rc != ESP_OK) {
            return rc;
        }
        (void)snprintf(hex, sizeof hex, "%02X%02X%02X", mac[3], mac[4], mac[5]);
    }
    if (!copy(host, sizeof host, "%s", c->host) ||
        !copy(name, sizeof name, c->name != NULL ? "%s" : "esp32-%s", c->name != NULL ? c->name : hex) ||
        !copy(header, sizeof header, "X-Provider-Token: %s\r\n", c->token != NULL ? c->token : "")) {
        return ESP_ERR_INVALID_SIZE;
    }
    return ESP_OK;
}

static mcplink_provider_config provider_of(const mcplink_esp_config *c)
{
    mcplink_provider_config p = {.name = name, .aggregate = c->aggregate};

    p.link.host = host;
    p.link.port = c->port;
    p.link.tls = c->tls;
    p.link.extra_headers = c->token != NULL ? header : NULL;
    p.link.connect_timeout_ms = c->connect_timeout_ms;
    p.link.handshake_timeout_ms = c->handshake_timeout_ms;
    p.link.retry_initial_ms = c->retry_initial_ms;
    p.link.retry_max_ms = c->retry_max_ms;
    p.link.ping_interval_ms = c->ping_interval_ms;
    p.link.rx_buffer = rx;
    p.link.rx_capacity = sizeof rx;
    return p;
}

static void prepare(void)
{
    mcplink_agent_config c = {.handler = handle, .on_event = on_event, .reply = reply, .reply_cap = sizeof reply,
                              .outbox = outbox, .outbox_cap = sizeof outbox, .poll_ms = CONFIG_MCPLINK_POLL_MS,
                              .wait_for_network = 1};

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

    if (config == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (ip_handler != NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    if (!atomic_load(&ready)) {
        prepare();
    }
    rc = copy_texts(config);
    if (rc != ESP_OK) {
        return rc;
    }
    current = *config;
    tls.ca_pem = config->ca_pem;
    provider = provider_of(config);
    rc = to_esp(mcplink_agent_set_provider(&agent, &provider));
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

const char *mcplink_esp_slot_name(void) { return name; }
