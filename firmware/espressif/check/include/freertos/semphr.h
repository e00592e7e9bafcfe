/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_FREERTOS_SEMPHR_H
#define FAKE_FREERTOS_SEMPHR_H

#include "freertos/FreeRTOS.h"

typedef struct QueueDefinition *SemaphoreHandle_t;

SemaphoreHandle_t xSemaphoreCreateMutexStatic(StaticSemaphore_t *memory);
SemaphoreHandle_t xSemaphoreCreateBinaryStatic(StaticSemaphore_t *memory);
BaseType_t xSemaphoreTake(SemaphoreHandle_t semaphore, TickType_t ticks);
BaseType_t xSemaphoreGive(SemaphoreHandle_t semaphore);

#endif
