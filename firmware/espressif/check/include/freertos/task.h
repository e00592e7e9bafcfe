/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_FREERTOS_TASK_H
#define FAKE_FREERTOS_TASK_H

#include "freertos/FreeRTOS.h"

typedef struct tskTaskControlBlock *TaskHandle_t;
typedef void (*TaskFunction_t)(void *arg);

BaseType_t xTaskCreatePinnedToCore(TaskFunction_t code, const char *name, const uint32_t stack, void *arg,
                                   UBaseType_t priority, TaskHandle_t *created, const BaseType_t core);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
void vTaskSuspend(TaskHandle_t task);
void vTaskDelete(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);

#endif
