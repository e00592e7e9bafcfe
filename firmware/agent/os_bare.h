/* The agent in a loop without an operating system: the loop is the task. Nothing is
 * locked, so everything is called from the loop, none of it from an interrupt.
 *
 *   mcplink_agent_start(&agent);
 *   for (;;) {
 *       mcplink_agent_step(&agent, 10);
 *       ...
 *   }
 */
#ifndef MCPLINK_OS_BARE_H
#define MCPLINK_OS_BARE_H

#include "mcplink_os.h"

typedef struct mcplink_os_bare {
    void (*run)(void *arg);
    void *arg;
    void (*sleep_ms)(void *ctx, uint32_t ms);
    void *sleep_ctx;
} mcplink_os_bare;

/* mcplink_os_bare_init makes os refer to b. sleep_ms passes time while the link is
 * down, a port's own will do; with NULL a step then returns at once. */
void mcplink_os_bare_init(mcplink_os_bare *b, mcplink_os *os, void (*sleep_ms)(void *ctx, uint32_t ms), void *sleep_ctx);

#endif
