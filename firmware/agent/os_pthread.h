/* The agent on POSIX threads. */
#ifndef MCPLINK_OS_PTHREAD_H
#define MCPLINK_OS_PTHREAD_H

#include <pthread.h>

#include "mcplink_os.h"
#include "wake_port.h"

typedef struct mcplink_os_pthread {
    pthread_mutex_t locks[2];
    mcplink_wake_port *port;
    pthread_t thread; /* for join */
    pthread_mutex_t self_lock;
    pthread_t self;   /* the thread, while it runs */
    int running;
    void (*run)(void *arg);
    void *arg;
} mcplink_os_pthread;

/* mcplink_os_pthread_init makes os refer to t. Waits and wake-ups are those of port,
 * which has to be the agent's. MCPLINK_OK or MCPLINK_ERR_TRANSPORT. */
int mcplink_os_pthread_init(mcplink_os_pthread *t, mcplink_os *os, mcplink_wake_port *port);

/* mcplink_os_pthread_free: after stop. */
void mcplink_os_pthread_free(mcplink_os_pthread *t);

#endif
