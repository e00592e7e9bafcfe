/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_FREERTOS_FREERTOS_H
#define FAKE_FREERTOS_FREERTOS_H

#include <stdint.h>

typedef uint32_t TickType_t;
typedef int BaseType_t;
typedef unsigned int UBaseType_t;
typedef struct {
    uint8_t memory[88];
} StaticSemaphore_t;

#define configTICK_RATE_HZ 100
#define portMAX_DELAY UINT32_MAX
#define pdPASS 1
#define pdTRUE 1
#define pdMS_TO_TICKS(ms) ((TickType_t)(((TickType_t)(ms) * (TickType_t)configTICK_RATE_HZ) / (TickType_t)1000U))
#define tskNO_AFFINITY ((BaseType_t)0x7FFFFFFF)

#endif
