#include "mcplink_agent.h"

#include <string.h>

static void lock(const mcplink_agent *a, mcplink_os_lock which) { a->config.os.lock(a->config.os.ctx, which); }
static void unlock(const mcplink_agent *a, mcplink_os_lock which) { a->config.os.unlock(a->config.os.ctx, which); }
static void wake(const mcplink_agent *a) { a->config.os.wake(a->config.os.ctx); }

/* get reads a flag that other tasks write. */
static int get(const mcplink_agent *a, const int *flag)
{
    int value;

    lock(a, MCPLINK_OS_DATA);
    value = *flag;
    unlock(a, MCPLINK_OS_DATA);
    return value;
}

static void count(const mcplink_agent *a, uint32_t *counter)
{
    lock(a, MCPLINK_OS_DATA);
    ++*counter;
    unlock(a, MCPLINK_OS_DATA);
}

/* Under DATA. */
static void forget_queue(mcplink_agent *a)
{
    a->stats.lost += (uint32_t)a->outbox.count;
    mcplink_outbox_clear(&a->outbox);
}

/* ---- events -------------------------------------------------------------- */

static void copy_text(char *to, size_t cap, const char *from)
{
    size_t len = strlen(from);

    if (len >= cap) {
        len = cap - 1;
    }
    memcpy(to, from, len);
    to[len] = '\0';
}

static void copy_event(mcplink_agent_event *to, const mcplink_event *from)
{
    memset(to, 0, sizeof *to);
    to->type = from->type;
    to->error = from->error;
    to->at_ms = from->at_ms;
    to->next_retry_ms = from->next_retry_ms;
    to->window_ms = from->window_ms;
    to->attempts = from->attempts;
    to->down_ms = from->down_ms;
    to->connects = from->connects;
    to->close_code = from->close_code;
    to->http_status = from->http_status;
    copy_text(to->reason, sizeof to->reason, from->reason);
    copy_text(to->detail, sizeof to->detail, from->detail);
}

static void on_event(void *user, const mcplink_event *event)
{
    mcplink_agent *a = user;
    mcplink_agent_event copy;

    a->due_ms = event->at_ms + event->next_retry_ms;
    lock(a, MCPLINK_OS_DATA);
    a->connected = event->type == MCPLINK_EVENT_CONNECTED && !a->stopping;
    forget_queue(a);
    unlock(a, MCPLINK_OS_DATA);
    if (a->config.on_event != NULL) {
        copy_event(&copy, event);
        a->config.on_event(a->config.user, &copy);
    }
}

/* ---- the task ------------------------------------------------------------ */

/* next_queued returns the oldest message. It stays in the outbox while it is sent,
 * where no other task touches it. */
static const char *next_queued(mcplink_agent *a, size_t *len)
{
    const char *json;

    lock(a, MCPLINK_OS_DATA);
    json = mcplink_outbox_front(&a->outbox, len);
    unlock(a, MCPLINK_OS_DATA);
    return json;
}

static size_t queued(mcplink_agent *a)
{
    size_t n;

    lock(a, MCPLINK_OS_DATA);
    n = a->outbox.count;
    unlock(a, MCPLINK_OS_DATA);
    return n;
}

/* drain sends what is queued now. What arrives meanwhile waits for the next turn, or
 * a busy sender would keep the link from being polled. A failure has emptied the
 * outbox (on_event). */
static void drain(mcplink_agent *a)
{
    size_t n;

    for (n = queued(a); n > 0; n--) {
        size_t len;
        const char *json = next_queued(a, &len);

        if (json == NULL || mcplink_provider_send(&a->provider, json, len) != MCPLINK_OK) {
            return;
        }
        lock(a, MCPLINK_OS_DATA);
        mcplink_outbox_pop(&a->outbox);
        a->stats.sent++;
        unlock(a, MCPLINK_OS_DATA);
    }
}

static void serve(mcplink_agent *a, const char *json, size_t len)
{
    const mcplink_agent_config *c = &a->config;
    int32_t n = c->handler(c->user, json, len, c->reply, c->reply_cap);

    count(a, &a->stats.handled);
    if (n < 0 || (size_t)n > c->reply_cap) {
        count(a, &a->stats.dropped);
    } else if (n > 0) {
        (void)mcplink_provider_send(&a->provider, c->reply, (size_t)n);
    }
}

/* wait_for_due passes the time until the next attempt. */
static void wait_for_due(mcplink_agent *a, uint32_t wait_ms)
{
    int32_t left = (int32_t)(a->due_ms - a->config.port.now_ms(a->config.port.ctx));

    if (left > 0 && wait_ms > 0) {
        a->config.os.wait(a->config.os.ctx, (uint32_t)left < wait_ms ? (uint32_t)left : wait_ms);
    }
}

static int is_waiting(const mcplink_agent *a) { return a->provider.link.state == MCPLINK_LINK_WAITING; }

static void turn(mcplink_agent *a, uint32_t wait_ms)
{
    const char *json;
    size_t len;

    if (is_waiting(a) && !get(a, &a->network)) {
        a->config.os.wait(a->config.os.ctx, wait_ms);
        return;
    }
    drain(a);
    if (mcplink_provider_poll(&a->provider, &json, &len, (int32_t)wait_ms) == MCPLINK_OK) {
        serve(a, json, len);
    } else if (is_waiting(a) && !get(a, &a->stopping)) {
        wait_for_due(a, wait_ms);
    }
}

void mcplink_agent_step(mcplink_agent *a, uint32_t wait_ms)
{
    if (a == NULL || a->provider.link.state == MCPLINK_LINK_IDLE) {
        return;
    }
    a->inside = 1;
    turn(a, wait_ms < MCPLINK_TIME_MAX ? wait_ms : MCPLINK_TIME_MAX);
    a->inside = 0;
}

static void run(void *arg)
{
    mcplink_agent *a = arg;

    while (!get(a, &a->stopping)) {
        mcplink_agent_step(a, a->config.poll_ms);
    }
    mcplink_provider_stop(&a->provider);
}

/* ---- for everyone -------------------------------------------------------- */

static void take_provider(mcplink_agent *a, const mcplink_provider_config *provider)
{
    a->config.provider = *provider;
    a->config.provider.link.on_event = on_event;
    a->config.provider.link.event_user = a;
}

int mcplink_agent_init(mcplink_agent *a, const mcplink_agent_config *config)
{
    const mcplink_os *os;

    if (a == NULL || config == NULL) {
        return MCPLINK_ERR_ARG;
    }
    os = &config->os;
    if (config->handler == NULL || config->reply == NULL || config->outbox == NULL || os->start == NULL ||
        os->join == NULL || os->is_task == NULL || os->lock == NULL || os->unlock == NULL || os->wake == NULL ||
        os->wait == NULL) {
        return MCPLINK_ERR_ARG;
    }
    memset(a, 0, sizeof *a);
    a->config = *config;
    a->config.port.sleep_ms = NULL;
    if (a->config.poll_ms == 0) {
        a->config.poll_ms = 200;
    }
    take_provider(a, &config->provider);
    a->network = !config->wait_for_network;
    return MCPLINK_OK;
}

/* Under CONTROL, while there is no task. */
static int launch(mcplink_agent *a)
{
    int rc = mcplink_provider_init(&a->provider, &a->config.port, &a->config.provider);

    if (rc != MCPLINK_OK) {
        return rc;
    }
    a->due_ms = a->config.port.now_ms(a->config.port.ctx);
    lock(a, MCPLINK_OS_DATA);
    mcplink_outbox_init(&a->outbox, a->config.outbox, a->config.outbox_cap);
    a->stopping = 0;
    a->connected = 0;
    unlock(a, MCPLINK_OS_DATA);
    rc = a->config.os.start(a->config.os.ctx, run, a);
    if (rc != MCPLINK_OK) {
        mcplink_provider_stop(&a->provider);
        return rc;
    }
    a->running = 1;
    return MCPLINK_OK;
}

static void land(mcplink_agent *a)
{
    lock(a, MCPLINK_OS_DATA);
    a->stopping = 1;
    a->connected = 0;
    unlock(a, MCPLINK_OS_DATA);
    wake(a);
    a->config.os.join(a->config.os.ctx);
    /* Only now: until the end of the task a message may have been on its way. */
    lock(a, MCPLINK_OS_DATA);
    forget_queue(a);
    unlock(a, MCPLINK_OS_DATA);
    a->running = 0;
}

static int called_by_task(const mcplink_agent *a)
{
    return a->config.os.is_task(a->config.os.ctx) && a->inside;
}

int mcplink_agent_configure(mcplink_agent *a, const mcplink_provider_config *provider, mcplink_agent_handler handler,
                            void *user)
{
    int rc = MCPLINK_ERR_STATE;

    if (a == NULL || provider == NULL || handler == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (called_by_task(a)) {
        return rc;
    }
    lock(a, MCPLINK_OS_CONTROL);
    if (!a->running) {
        take_provider(a, provider);
        a->config.handler = handler;
        a->config.user = user;
        rc = MCPLINK_OK;
    }
    unlock(a, MCPLINK_OS_CONTROL);
    return rc;
}

int mcplink_agent_start(mcplink_agent *a)
{
    int rc = MCPLINK_ERR_STATE;

    if (a == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (called_by_task(a)) {
        return rc;
    }
    lock(a, MCPLINK_OS_CONTROL);
    if (!a->running) {
        rc = launch(a);
    }
    unlock(a, MCPLINK_OS_CONTROL);
    return rc;
}

int mcplink_agent_stop(mcplink_agent *a)
{
    if (a == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (called_by_task(a)) {
        return MCPLINK_ERR_STATE;
    }
    lock(a, MCPLINK_OS_CONTROL);
    if (a->running) {
        land(a);
    }
    unlock(a, MCPLINK_OS_CONTROL);
    return MCPLINK_OK;
}

int mcplink_agent_send(mcplink_agent *a, const char *json, size_t len)
{
    int rc = MCPLINK_ERR_STATE;

    if (a == NULL || json == NULL || len == 0) {
        return MCPLINK_ERR_ARG;
    }
    lock(a, MCPLINK_OS_DATA);
    if (a->connected) {
        rc = mcplink_outbox_put(&a->outbox, json, len);
        a->stats.full += rc == MCPLINK_ERR_TIMEOUT;
    }
    unlock(a, MCPLINK_OS_DATA);
    if (rc == MCPLINK_OK) {
        wake(a);
    }
    return rc;
}

void mcplink_agent_network(mcplink_agent *a, int up)
{
    lock(a, MCPLINK_OS_DATA);
    a->network = up != 0;
    unlock(a, MCPLINK_OS_DATA);
    wake(a);
}

int mcplink_agent_is_connected(mcplink_agent *a) { return get(a, &a->connected); }

void mcplink_agent_get_stats(mcplink_agent *a, mcplink_agent_stats *stats)
{
    lock(a, MCPLINK_OS_DATA);
    *stats = a->stats;
    unlock(a, MCPLINK_OS_DATA);
}

const char *mcplink_agent_detail(const mcplink_agent *a) { return mcplink_provider_detail(&a->provider); }
