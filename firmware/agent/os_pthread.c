#define _POSIX_C_SOURCE 200809L

#include "os_pthread.h"

#include <signal.h>

static void set_running(mcplink_os_pthread *t, int running)
{
    (void)pthread_mutex_lock(&t->self_lock);
    t->self = pthread_self();
    t->running = running;
    (void)pthread_mutex_unlock(&t->self_lock);
}

static void *thread_main(void *ctx)
{
    mcplink_os_pthread *t = ctx;

    set_running(t, 1);
    t->run(t->arg);
    set_running(t, 0);
    return NULL;
}

/* Signals are the application's: its own threads get them. */
static int thread_start(void *ctx, void (*run)(void *arg), void *arg)
{
    mcplink_os_pthread *t = ctx;
    sigset_t all, before;
    int rc;

    t->run = run;
    t->arg = arg;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&t->thread, NULL, thread_main, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? MCPLINK_OK : MCPLINK_ERR_TRANSPORT;
}

static void thread_join(void *ctx)
{
    mcplink_os_pthread *t = ctx;

    (void)pthread_join(t->thread, NULL);
}

static int thread_is_task(void *ctx)
{
    mcplink_os_pthread *t = ctx;
    int is;

    (void)pthread_mutex_lock(&t->self_lock);
    is = t->running && pthread_equal(t->self, pthread_self());
    (void)pthread_mutex_unlock(&t->self_lock);
    return is;
}

static void thread_lock(void *ctx, mcplink_os_lock which)
{
    mcplink_os_pthread *t = ctx;

    (void)pthread_mutex_lock(&t->locks[which]);
}

static void thread_unlock(void *ctx, mcplink_os_lock which)
{
    mcplink_os_pthread *t = ctx;

    (void)pthread_mutex_unlock(&t->locks[which]);
}

static void thread_wake(void *ctx)
{
    mcplink_os_pthread *t = ctx;

    mcplink_wake_port_wake(t->port);
}

static void thread_wait(void *ctx, uint32_t ms)
{
    mcplink_os_pthread *t = ctx;

    mcplink_wake_port_wait(t->port, ms);
}

int mcplink_os_pthread_init(mcplink_os_pthread *t, mcplink_os *os, mcplink_wake_port *port)
{
    if (pthread_mutex_init(&t->locks[MCPLINK_OS_CONTROL], NULL) != 0 ||
        pthread_mutex_init(&t->locks[MCPLINK_OS_DATA], NULL) != 0 || pthread_mutex_init(&t->self_lock, NULL) != 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    t->port = port;
    t->running = 0;
    os->start = thread_start;
    os->join = thread_join;
    os->is_task = thread_is_task;
    os->lock = thread_lock;
    os->unlock = thread_unlock;
    os->wake = thread_wake;
    os->wait = thread_wait;
    os->ctx = t;
    return MCPLINK_OK;
}

void mcplink_os_pthread_free(mcplink_os_pthread *t)
{
    (void)pthread_mutex_destroy(&t->locks[MCPLINK_OS_CONTROL]);
    (void)pthread_mutex_destroy(&t->locks[MCPLINK_OS_DATA]);
    (void)pthread_mutex_destroy(&t->self_lock);
}
