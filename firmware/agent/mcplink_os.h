/*
 * What the agent needs from an operating system: one task, two locks, and a way to
 * wake the task. os_bare.h has it for a loop without one, os_pthread.h for POSIX
 * threads, ports/idf for FreeRTOS.
 */
#ifndef MCPLINK_OS_H
#define MCPLINK_OS_H

#include "mcplink/mcplink.h"

typedef enum mcplink_os_lock {
    MCPLINK_OS_CONTROL, /* held through start and stop, so for as long as stop waits */
    MCPLINK_OS_DATA     /* held for moments; may be taken while CONTROL is held */
} mcplink_os_lock;

typedef struct mcplink_os {
    /* start runs run(arg) in the task. MCPLINK_OK, or an error when there can be no
     * task. Called under CONTROL. */
    int (*start)(void *ctx, void (*run)(void *arg), void *arg);

    /* join returns once run has returned, when nothing of the task is left. Called
     * under CONTROL, once for each start. */
    void (*join)(void *ctx);

    /* is_task tells whether the caller is the task. */
    int (*is_task)(void *ctx);

    void (*lock)(void *ctx, mcplink_os_lock which);
    void (*unlock)(void *ctx, mcplink_os_lock which);

    /* wake ends the task's wait, or the next one when it is not waiting. From any
     * task, with either lock held or none. */
    void (*wake)(void *ctx);

    /* wait passes ms milliseconds, or less when woken. Only called by the task. */
    void (*wait)(void *ctx, uint32_t ms);

    void *ctx;
} mcplink_os;

#endif
