/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_NETIF_H
#define FAKE_ESP_NETIF_H

#include <stdint.h>

#include "esp_err.h"
#include "esp_event.h"

ESP_EVENT_DECLARE_BASE(IP_EVENT);

typedef enum {
    IP_EVENT_STA_GOT_IP,
    IP_EVENT_STA_LOST_IP,
    IP_EVENT_AP_STAIPASSIGNED,
    IP_EVENT_GOT_IP6,
    IP_EVENT_ETH_GOT_IP,
    IP_EVENT_ETH_LOST_IP,
    IP_EVENT_PPP_GOT_IP,
    IP_EVENT_PPP_LOST_IP,
} ip_event_t;

typedef struct esp_netif_obj esp_netif_t;
typedef struct {
    uint32_t addr;
} esp_ip4_addr_t;
typedef struct {
    esp_ip4_addr_t ip;
    esp_ip4_addr_t netmask;
    esp_ip4_addr_t gw;
} esp_netif_ip_info_t;

typedef struct {
    uint32_t addr[4];
    uint8_t zone;
} esp_ip6_addr_t;
typedef struct {
    esp_ip6_addr_t ip;
} esp_netif_ip6_info_t;
typedef struct {
    int if_index;
    esp_netif_t *esp_netif;
    esp_netif_ip6_info_t ip6_info;
} ip_event_got_ip6_t;

esp_err_t esp_netif_init(void);
esp_netif_t *esp_netif_get_default_netif(void);
esp_netif_t *esp_netif_create_default_wifi_sta(void);
esp_err_t esp_netif_get_ip_info(esp_netif_t *netif, esp_netif_ip_info_t *info);

#endif
