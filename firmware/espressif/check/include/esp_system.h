/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_SYSTEM_H
#define FAKE_ESP_SYSTEM_H

#include <stdint.h>

uint32_t esp_get_free_heap_size(void);
uint32_t esp_get_minimum_free_heap_size(void);

#endif
