/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_CRT_BUNDLE_H
#define FAKE_ESP_CRT_BUNDLE_H

#include "esp_err.h"

esp_err_t esp_crt_bundle_attach(void *conf);

#endif
