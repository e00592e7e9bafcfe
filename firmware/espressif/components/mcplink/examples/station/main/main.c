/* A board that joins a Wi-Fi network and serves one slot. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "esp_event.h"
#include "esp_log.h"
#include "esp_netif.h"
#include "esp_system.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mcp_surface.h"
#include "mcplink_esp.h"
#include "nvs_flash.h"
#include "sdkconfig.h"

#define HEAP_PERIOD_MS 30000

static const char tag[] = "station";
static mcp_surface surface;

#if CONFIG_STATION_BROKER_CA
extern const char broker_ca[] asm("_binary_broker_ca_pem_start");
#else
#define broker_ca NULL
#endif

/* Both run in the provider's task. */
static int32_t handle(void *user, const char *json, size_t len, char *reply, size_t cap)
{
    static char notice[MCP_SURFACE_REPLY_MIN];
    int32_t n = mcp_surface_handle(&surface, json, len, reply, cap);
    int32_t m;

    (void)user;
    while ((m = mcp_surface_notice(&surface, notice, sizeof notice)) > 0) {
        (void)mcplink_esp_send(notice, (size_t)m);
    }
    return n;
}

/* It runs in the event loop's task: what it shares with the handler would need a
 * lock. */
static void on_link(void *user, esp_event_base_t base, int32_t id, void *data)
{
    const mcplink_agent_event *event = data;

    (void)user;
    (void)base;
    if (id == MCPLINK_EVENT_CONNECTED) {
        ESP_LOGI(tag, "connected as %s, connects=%" PRIu32, mcplink_esp_slot_name(), event->connects);
    } else {
        ESP_LOGW(tag, "%s: %s code=%u reason=\"%s\" detail=\"%s\" next_retry_ms=%" PRIu32,
                 id == MCPLINK_EVENT_DISCONNECTED ? "disconnected" : "attempt failed", mcplink_strerror(event->error),
                 (unsigned)event->close_code, event->reason, event->detail, event->next_retry_ms);
    }
}

static void on_wifi(void *user, esp_event_base_t base, int32_t id, void *data)
{
    (void)user;
    (void)base;
    (void)data;
    if (id == WIFI_EVENT_STA_START || id == WIFI_EVENT_STA_DISCONNECTED) {
        (void)esp_wifi_connect();
    }
}

static void start_flash(void)
{
    esp_err_t rc = nvs_flash_init();

    if (rc == ESP_ERR_NVS_NO_FREE_PAGES || rc == ESP_ERR_NVS_NEW_VERSION_FOUND) {
        ESP_ERROR_CHECK(nvs_flash_erase());
        rc = nvs_flash_init();
    }
    ESP_ERROR_CHECK(rc);
}

static void start_wifi(void)
{
    static const char ssid[] = CONFIG_STATION_WIFI_SSID, password[] = CONFIG_STATION_WIFI_PASSWORD;
    wifi_init_config_t init = WIFI_INIT_CONFIG_DEFAULT();
    wifi_config_t config;

    _Static_assert(sizeof ssid - 1 <= sizeof config.sta.ssid, "the name of the network is too long");
    _Static_assert(sizeof password - 1 <= sizeof config.sta.password, "the password is too long");
    memset(&config, 0, sizeof config);
    memcpy(config.sta.ssid, ssid, sizeof ssid - 1);
    memcpy(config.sta.password, password, sizeof password - 1);
    (void)esp_netif_create_default_wifi_sta();
    ESP_ERROR_CHECK(esp_wifi_init(&init));
    ESP_ERROR_CHECK(esp_event_handler_instance_register(WIFI_EVENT, ESP_EVENT_ANY_ID, on_wifi, NULL, NULL));
    ESP_ERROR_CHECK(esp_wifi_set_mode(WIFI_MODE_STA));
    ESP_ERROR_CHECK(esp_wifi_set_config(WIFI_IF_STA, &config));
    ESP_ERROR_CHECK(esp_wifi_start());
}

static const char *unless_empty(const char *text) { return text[0] != '\0' ? text : NULL; }

static void start_provider(void)
{
    mcplink_esp_config config = {.host = CONFIG_STATION_BROKER_HOST, .port = CONFIG_STATION_BROKER_PORT,
                                 .handler = handle, .ca_pem = broker_ca};

#if CONFIG_STATION_BROKER_TLS
    config.tls = true;
#endif
#if CONFIG_STATION_AGGREGATE
    config.aggregate = true;
#endif
    config.name = unless_empty(CONFIG_STATION_SLOT);
    config.token = unless_empty(CONFIG_STATION_TOKEN);
    ESP_ERROR_CHECK(esp_event_handler_instance_register(MCPLINK_EVENT, ESP_EVENT_ANY_ID, on_link, NULL, NULL));
    /* The slot's name is known once it has started, and the network is not up yet: no
     * message comes before the surface is there. */
    ESP_ERROR_CHECK(mcplink_esp_start(&config));
    mcp_surface_init(&surface, mcplink_esp_slot_name());
}

void app_main(void);

void app_main(void)
{
    start_flash();
    ESP_ERROR_CHECK(esp_netif_init());
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    start_provider();
    start_wifi();
    for (;;) {
        vTaskDelay(pdMS_TO_TICKS(HEAP_PERIOD_MS));
        ESP_LOGI(tag, "heap free=%" PRIu32 " lowest=%" PRIu32, esp_get_free_heap_size(),
                 esp_get_minimum_free_heap_size());
    }
}
