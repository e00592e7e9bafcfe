/*
 * The agent: a provider in a task of its own, for applications that have tasks. It
 * polls the link, gives each message to a handler and sends the reply; any task may
 * send, start and stop.
 *
 * The task waits for the network before it attempts to connect, so that the retry
 * window does not grow while there is none. Nothing that is queued outlives the
 * connection: what is to be sent belongs to a session that ended with it.
 *
 * Nothing is allocated: buffers are the caller's.
 */
#ifndef MCPLINK_AGENT_H
#define MCPLINK_AGENT_H

#include "mcplink/provider.h"
#include "mcplink_os.h"
#include "mcplink_outbox.h"

/* An event with its texts inside, to be kept or queued. The fields are those of
 * mcplink_event. */
typedef struct mcplink_agent_event {
    mcplink_event_type type;
    int error;
    uint32_t at_ms;
    uint32_t next_retry_ms;
    uint32_t window_ms;
    uint32_t attempts;
    uint32_t down_ms;
    uint32_t connects;
    uint16_t close_code;
    uint16_t http_status;
    char reason[MCPLINK_REASON_MAX + 1];
    char detail[MCPLINK_DETAIL_SIZE];
} mcplink_agent_event;

/* A handler writes the reply to a message and returns its length; 0: no reply;
 * negative: the message is dropped and counted. It runs in the task. json is not
 * NUL-terminated and gone when it returns. It may call send, which comes after the
 * reply; start and stop refuse it. While it works the link is not polled: 30 s at
 * most, see provider.h. */
typedef int32_t (*mcplink_agent_handler)(void *user, const char *json, size_t len, char *reply, size_t cap);

/* Called in the task. What holds for the handler holds here. */
typedef void (*mcplink_agent_event_fn)(void *user, const mcplink_agent_event *event);

typedef struct mcplink_agent_config {
    /* Slot, host, receive buffer, times. on_event and event_user are not used. With
     * link.stepwise the task never blocks longer than poll_ms while it connects; a
     * port that cannot connect in steps must leave it 0, and stop then waits for an
     * attempt in progress. */
    mcplink_provider_config provider;
    mcplink_port port;               /* copied; sleep_ms is not used */
    mcplink_os os;                   /* copied */
    mcplink_agent_handler handler;   /* required */
    mcplink_agent_event_fn on_event; /* may be NULL */
    void *user;                      /* of both */
    char *reply;                     /* required */
    size_t reply_cap;
    void *outbox;                    /* what send puts in waits here, plus 4 bytes for each message; required */
    size_t outbox_cap;
    uint32_t poll_ms;                /* default 200; at most so long until what send queued leaves, and until stop returns,
                                        where the port cannot be woken */
    int wait_for_network;            /* nonzero: no attempt before mcplink_agent_network(agent, 1) */
} mcplink_agent_config;

/* Counters wrap. */
typedef struct mcplink_agent_stats {
    uint32_t handled; /* messages given to the handler */
    uint32_t dropped; /* of these, how many it dropped */
    uint32_t sent;    /* messages that send had queued and that left */
    uint32_t full;    /* refused by send for want of room */
    uint32_t lost;    /* queued, and given up with the connection or by stop */
} mcplink_agent_stats;

typedef struct mcplink_agent {
    /* Private. Fields below a comment belong to it. */
    mcplink_agent_config config;
    /* the CONTROL lock */
    int running;
    /* the DATA lock */
    mcplink_outbox outbox;
    mcplink_agent_stats stats;
    int stopping;
    int connected;
    int network;
    /* the task */
    mcplink_provider provider;
    int inside;      /* in a step: a call of start or stop comes from the handler */
    uint32_t due_ms; /* of the next attempt */
} mcplink_agent;

/* mcplink_agent_init prepares an agent; once, before any other call. MCPLINK_OK or
 * MCPLINK_ERR_ARG: a required field is missing. */
int mcplink_agent_init(mcplink_agent *a, const mcplink_agent_config *config);

/* mcplink_agent_configure gives it another slot, host or whatever else is in
 * config.provider, and another handler and user, from the next start on. MCPLINK_OK; MCPLINK_ERR_STATE: it runs, or
 * the caller is its task. */
int mcplink_agent_configure(mcplink_agent *a, const mcplink_provider_config *provider, mcplink_agent_handler handler,
                            void *user);

/* mcplink_agent_start begins to connect, and to reconnect for ever. MCPLINK_OK;
 * MCPLINK_ERR_STATE: it runs already, or the caller is its task; what
 * mcplink_provider_init returns (mcplink_agent_detail says why); what the system
 * returns when there can be no task. */
int mcplink_agent_start(mcplink_agent *a);

/* mcplink_agent_stop closes the connection and ends the task; when it returns, no
 * handler runs and none will. Start may follow. Callers at the same time all wait.
 * MCPLINK_OK, also when it did not run; MCPLINK_ERR_STATE: the caller is the task. It
 * takes poll_ms at most, beside what the handler takes, what a stalled peer can make
 * of send_timeout_ms, and what resolving a host name takes. */
int mcplink_agent_stop(mcplink_agent *a);

/* mcplink_agent_send queues one JSON-RPC message, from any task. MCPLINK_OK: it is
 * sent, unless the connection ends first. MCPLINK_ERR_STATE: not connected.
 * MCPLINK_ERR_TIMEOUT: the outbox is full. MCPLINK_ERR_TOO_LARGE: it could never hold
 * this message. */
int mcplink_agent_send(mcplink_agent *a, const char *json, size_t len);

/* mcplink_agent_network says whether there is an address to connect from. From any
 * task, such as the one that delivers IP events. A connection that stands is not
 * touched. */
void mcplink_agent_network(mcplink_agent *a, int up);

int mcplink_agent_is_connected(mcplink_agent *a);
void mcplink_agent_get_stats(mcplink_agent *a, mcplink_agent_stats *stats);

/* mcplink_agent_detail says why start failed. */
const char *mcplink_agent_detail(const mcplink_agent *a);

/* mcplink_agent_step is one turn of the task: what is queued, then one message, for
 * wait_ms at most. For loops without tasks (os_bare.h) only. */
void mcplink_agent_step(mcplink_agent *a, uint32_t wait_ms);

#endif
