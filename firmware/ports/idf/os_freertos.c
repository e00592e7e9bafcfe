#include "os_freertos.h"

/* It ends suspended, and whoever joins deletes it. */
static void task_main(void *ctx)
{
    mcplink_os_freertos *f = ctx;

    f->run(f->arg);
    (void)xSemaphoreGive(f->done);
    vTaskSuspend(NULL);
}

static int task_start(void *ctx, void (*run)(void *arg), void *arg)
{
    mcplink_os_freertos *f = ctx;

    f->run = run;
    f->arg = arg;
    return xTaskCreatePinnedToCore(task_main, "mcplink", f->stack, f, f->priority, &f->task, f->core) == pdPASS
               ? MCPLINK_OK
               : MCPLINK_ERR_TRANSPORT;
}

static void task_join(void *ctx)
{
    mcplink_os_freertos *f = ctx;

    (void)xSemaphoreTake(f->done, portMAX_DELAY);
    vTaskDelete(f->task);
    f->task = NULL;
}

static int task_is_self(void *ctx)
{
    mcplink_os_freertos *f = ctx;

    return f->task == xTaskGetCurrentTaskHandle();
}

static void task_lock(void *ctx, mcplink_os_lock which)
{
    mcplink_os_freertos *f = ctx;

    (void)xSemaphoreTake(f->locks[which], portMAX_DELAY);
}

static void task_unlock(void *ctx, mcplink_os_lock which)
{
    mcplink_os_freertos *f = ctx;

    (void)xSemaphoreGive(f->locks[which]);
}

static void task_wake(void *ctx)
{
    mcplink_os_freertos *f = ctx;

    (void)xSemaphoreGive(f->woken);
}

static void task_wait(void *ctx, uint32_t ms)
{
    mcplink_os_freertos *f = ctx;

    (void)xSemaphoreTake(f->woken, pdMS_TO_TICKS(ms) + 1);
}

void mcplink_os_freertos_init(mcplink_os_freertos *f, mcplink_os *os)
{
    f->task = NULL;
    f->locks[MCPLINK_OS_CONTROL] = xSemaphoreCreateMutexStatic(&f->memory[0]);
    f->locks[MCPLINK_OS_DATA] = xSemaphoreCreateMutexStatic(&f->memory[1]);
    f->woken = xSemaphoreCreateBinaryStatic(&f->memory[2]);
    f->done = xSemaphoreCreateBinaryStatic(&f->memory[3]);
    *os = (mcplink_os){task_start, task_join, task_is_self, task_lock, task_unlock, task_wake, task_wait, f};
}
