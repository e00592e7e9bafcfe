#include "os_bare.h"

static int bare_start(void *ctx, void (*run)(void *arg), void *arg)
{
    mcplink_os_bare *b = ctx;

    b->run = run;
    b->arg = arg;
    return MCPLINK_OK;
}

/* The task has been told to stop: all that run still does is to close. */
static void bare_join(void *ctx)
{
    mcplink_os_bare *b = ctx;

    b->run(b->arg);
}

static int bare_is_task(void *ctx)
{
    (void)ctx;
    return 1;
}

static void bare_lock(void *ctx, mcplink_os_lock which)
{
    (void)ctx;
    (void)which;
}

static void bare_wake(void *ctx) { (void)ctx; }

static void bare_wait(void *ctx, uint32_t ms)
{
    mcplink_os_bare *b = ctx;

    if (b->sleep_ms != NULL) {
        b->sleep_ms(b->sleep_ctx, ms);
    }
}

void mcplink_os_bare_init(mcplink_os_bare *b, mcplink_os *os, void (*sleep_ms)(void *ctx, uint32_t ms), void *sleep_ctx)
{
    b->sleep_ms = sleep_ms;
    b->sleep_ctx = sleep_ctx;
    os->start = bare_start;
    os->join = bare_join;
    os->is_task = bare_is_task;
    os->lock = bare_lock;
    os->unlock = bare_lock;
    os->wake = bare_wake;
    os->wait = bare_wait;
    os->ctx = b;
}
