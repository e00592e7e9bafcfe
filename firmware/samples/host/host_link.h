/* What the programs for this machine have in common: the flags of a link, the lines
 * they print, and the signals that stop them. */
#ifndef HOST_LINK_H
#define HOST_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "cli.h"
#include "mcplink/link.h"

/* host_options are the values of the flags; host_defaults fills them. */
typedef struct host_options {
    const char *host;
    uint32_t port;
    const char *token;
    bool tls;
    const char *ca;
    const char *verify_name;
    uint32_t retry_initial_ms, retry_max_ms;
    bool no_jitter;
    bool stepwise;
    uint32_t connect_timeout_ms, handshake_timeout_ms, send_timeout_ms;
    uint32_t ping_interval_ms, pong_timeout_ms;
    uint32_t rx_bytes;
    bool quiet;
} host_options;

void host_defaults(host_options *o);

#define HOST_FLAGS 17

/* host_flags appends the HOST_FLAGS flags of a link. */
void host_flags(host_options *o, cli_flag *flags);

/* host_config fills a link's configuration; host_config_free gives back what that
 * allocated. False: out of memory, which standard error says. */
bool host_config(const host_options *o, mcplink_link_config *config);
void host_config_free(mcplink_link_config *config);

/* host_stopping is true after SIGINT or SIGTERM, once host_catch_signals has been
 * called. */
void host_catch_signals(void);
bool host_stopping(void);

void host_print_event(const mcplink_event *event);

/* host_print_message prints one line about a message, cut and escaped. */
void host_print_message(const char *direction, const char *slot, const char *json, size_t len);

#endif
