/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_ERR_H
#define FAKE_ESP_ERR_H

#include <stdint.h>

typedef int esp_err_t;

#define ESP_OK 0
#define ESP_FAIL (-1)
#define ESP_ERR_NO_MEM 0x101
#define ESP_ERR_INVALID_ARG 0x102
#define ESP_ERR_INVALID_STATE 0x103
#define ESP_ERR_INVALID_SIZE 0x104
#define ESP_ERR_NOT_FOUND 0x105
#define ESP_ERR_TIMEOUT 0x107

void fake_abort(esp_err_t rc);
#define ESP_ERROR_CHECK(x) \
    do { \
        esp_err_t rc_ = (x); \
        if (rc_ != ESP_OK) { \
            fake_abort(rc_); \
        } \
    } while (0)

#endif
