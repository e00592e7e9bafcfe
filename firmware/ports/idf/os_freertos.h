/* The agent on FreeRTOS, as ESP-IDF has it. */
#ifndef MCPLINK_OS_FREERTOS_H
#define MCPLINK_OS_FREERTOS_H

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "mcplink_os.h"

typedef struct mcplink_os_freertos {
    uint32_t stack;       /* bytes */
    UBaseType_t priority;
    BaseType_t core;      /* tskNO_AFFINITY = either */
    void (*run)(void *arg);
    void *arg;
    TaskHandle_t task;
    SemaphoreHandle_t locks[2], woken, done;
    StaticSemaphore_t memory[4];
} mcplink_os_freertos;

/* mcplink_os_freertos_init makes os refer to f, whose first three fields are the
 * caller's. Once; there is nothing to give back. */
void mcplink_os_freertos_init(mcplink_os_freertos *f, mcplink_os *os);

#endif
