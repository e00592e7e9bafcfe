#define _POSIX_C_SOURCE 200809L

#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcplink/provider.h"
#include "wake_port.h"
#if CLIENT_TLS
#include "mcplink_tls.h"
#endif

#define EVENTS 4u

struct mcplink_client {
    mcplink_posix posix;
    mcplink_port plain, port;
    mcplink_wake_port wake;
    int woken_up; /* wake is there to be freed */
#if CLIENT_TLS
    mcplink_tls tls;
    int secured;
#endif
    mcplink_provider provider;
    mcplink_client_event events[EVENTS];
    unsigned first, count;
    char *host, *slot, *prefix, *headers, *verify_name;
    void *rx;
};

uint32_t mcplink_client_abi(void) { return MCPLINK_CLIENT_ABI; }

int32_t mcplink_client_has_tls(void) { return CLIENT_TLS; }

/* ---- events -------------------------------------------------------------- */

static void copy(char to[MCPLINK_CLIENT_TEXT], const char *from)
{
    (void)snprintf(to, MCPLINK_CLIENT_TEXT, "%s", from);
}

static const char *tls_words(const mcplink_client *c)
{
#if CLIENT_TLS
    return c->secured ? mcplink_tls_words(&c->tls) : "";
#else
    (void)c;
    return "";
#endif
}

static void on_event(void *user, const mcplink_event *from)
{
    mcplink_client *c = user;
    mcplink_client_event *to;

    if (c->count == EVENTS) {
        c->first = (c->first + 1) % EVENTS;
        c->count--;
    }
    to = &c->events[(c->first + c->count++) % EVENTS];
    to->type = (int32_t)from->type;
    to->error = from->error;
    to->next_retry_ms = from->next_retry_ms;
    to->window_ms = from->window_ms;
    to->attempts = from->attempts;
    to->down_ms = from->down_ms;
    to->connects = from->connects;
    to->close_code = from->close_code;
    to->http_status = from->http_status;
    copy(to->reason, from->reason);
    copy(to->detail, from->detail);
    copy(to->tls, from->error == MCPLINK_ERR_TLS ? tls_words(c) : "");
}

int32_t mcplink_client_next_event(mcplink_client *c, mcplink_client_event *event)
{
    if (c->count == 0) {
        return 0;
    }
    *event = c->events[c->first];
    c->first = (c->first + 1) % EVENTS;
    c->count--;
    return 1;
}

/* ---- making one ---------------------------------------------------------- */

static char *keep(const char *text)
{
    size_t size = strlen(text) + 1;
    char *own = malloc(size);

    return own != NULL ? memcpy(own, text, size) : NULL;
}

/* False: out of memory. */
static int keep_texts(mcplink_client *c, const mcplink_client_config *config)
{
    static const char name[] = "X-Provider-Token: ";

    c->host = keep(config->host != NULL ? config->host : "");
    c->slot = keep(config->slot != NULL ? config->slot : "");
    c->prefix = keep(config->prefix != NULL ? config->prefix : "/provider");
    c->verify_name = keep(config->verify_name != NULL ? config->verify_name : c->host != NULL ? c->host : "");
    if (config->token != NULL) {
        size_t size = sizeof name + strlen(config->token) + 2;

        c->headers = malloc(size);
        if (c->headers == NULL) {
            return 0;
        }
        (void)snprintf(c->headers, size, "%s%s\r\n", name, config->token);
    }
    c->rx = malloc(config->rx_capacity);
    return c->host != NULL && c->slot != NULL && c->prefix != NULL && c->verify_name != NULL && c->rx != NULL;
}

/* NULL, or what is wrong. */
static const char *make_port(mcplink_client *c, const mcplink_client_config *config)
{
    mcplink_port inner;

    mcplink_posix_init(&c->posix, &c->plain);
    inner = c->plain;
#if CLIENT_TLS
    if (config->tls) {
        mcplink_tls_config tls;

        memset(&tls, 0, sizeof tls);
        tls.inner = &c->plain;
        tls.ca_pem = config->ca_pem;
        tls.verify_name = c->verify_name;
        if (mcplink_tls_init(&c->tls, &tls, &inner) != MCPLINK_OK) {
            return mcplink_tls_words(&c->tls);
        }
        c->secured = 1;
    }
#else
    if (config->tls) {
        return "the library was built without TLS";
    }
#endif
    if (mcplink_wake_port_init(&c->wake, &c->port, &inner, &c->posix) != MCPLINK_OK) {
        return "the process has no file descriptors left";
    }
    c->woken_up = 1;
    return NULL;
}

static const char *make(mcplink_client *c, const mcplink_client_config *config)
{
    mcplink_provider_config p;
    const char *why;

    if (config->port > UINT16_MAX) {
        return "port is larger than 65535";
    }
    if (!keep_texts(c, config)) {
        return "out of memory";
    }
    why = make_port(c, config);
    if (why != NULL) {
        return why;
    }
    memset(&p, 0, sizeof p);
    p.link.host = c->host;
    p.link.port = (uint16_t)config->port;
    p.link.tls = config->tls != 0;
    p.link.extra_headers = c->headers;
    p.link.connect_timeout_ms = config->connect_timeout_ms;
    p.link.retry_initial_ms = config->retry_initial_ms;
    p.link.retry_max_ms = config->retry_max_ms;
    p.link.ping_interval_ms = config->ping_interval_ms;
    p.link.stepwise = 1;
    p.link.rx_buffer = c->rx;
    p.link.rx_capacity = config->rx_capacity;
    p.link.on_event = on_event;
    p.link.event_user = c;
    p.name = c->slot;
    p.prefix = c->prefix;
    p.aggregate = config->aggregate != 0;
    return mcplink_provider_init(&c->provider, &c->port, &p) == MCPLINK_OK ? NULL
                                                                           : mcplink_provider_detail(&c->provider);
}

mcplink_client *mcplink_client_create(const mcplink_client_config *config, char *why, uint32_t cap)
{
    mcplink_client *c = calloc(1, sizeof *c);
    const char *wrong = c != NULL ? make(c, config) : "out of memory";

    if (wrong == NULL) {
        return c;
    }
    (void)snprintf(why, cap, "%s", wrong);
    mcplink_client_destroy(c);
    return NULL;
}

/* ---- using it ------------------------------------------------------------ */

int32_t mcplink_client_poll(mcplink_client *c, const char **json, size_t *len, int32_t timeout_ms)
{
    return mcplink_provider_poll(&c->provider, json, len, timeout_ms);
}

int32_t mcplink_client_send(mcplink_client *c, const char *json, size_t len)
{
    return mcplink_provider_send(&c->provider, json, len);
}

void mcplink_client_wake(mcplink_client *c) { mcplink_wake_port_wake(&c->wake); }

void mcplink_client_stop(mcplink_client *c) { mcplink_provider_stop(&c->provider); }

void mcplink_client_destroy(mcplink_client *c)
{
    if (c == NULL) {
        return;
    }
    mcplink_provider_stop(&c->provider);
#if CLIENT_TLS
    if (c->secured) {
        mcplink_tls_free(&c->tls);
    }
#endif
    if (c->woken_up) {
        mcplink_wake_port_free(&c->wake);
    }
    free(c->host);
    free(c->slot);
    free(c->prefix);
    free(c->headers);
    free(c->verify_name);
    free(c->rx);
    free(c);
}
