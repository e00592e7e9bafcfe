/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_RANDOM_H
#define FAKE_ESP_RANDOM_H

#include <stddef.h>

void esp_fill_random(void *buf, size_t len);

#endif
