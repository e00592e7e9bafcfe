/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_MAC_H
#define FAKE_ESP_MAC_H

#include <stdint.h>

#include "esp_err.h"

esp_err_t esp_efuse_mac_get_default(uint8_t *mac);

#endif
