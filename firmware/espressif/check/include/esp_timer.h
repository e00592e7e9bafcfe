/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_TIMER_H
#define FAKE_ESP_TIMER_H

#include <stdint.h>

int64_t esp_timer_get_time(void);

#endif
