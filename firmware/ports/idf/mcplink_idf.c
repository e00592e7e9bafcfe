#include "mcplink_idf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>

#include "esp_random.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "sdkconfig.h"
#if CONFIG_MBEDTLS_CERTIFICATE_BUNDLE
#include "esp_crt_bundle.h"
#endif

static int64_t now(void) { return esp_timer_get_time() / 1000; }

/* ready waits for the socket; deadline -1 never comes. */
static int ready(const mcplink_idf *p, bool writing, int64_t deadline)
{
    struct timeval tv = {0};
    fd_set set;
    int fd, n;

    if (esp_tls_get_conn_sockfd(p->tls, &fd) != ESP_OK) {
        return MCPLINK_ERR_TRANSPORT;
    }
    if (deadline >= 0) {
        int64_t left = deadline - now();

        if (left <= 0) {
            return MCPLINK_ERR_TIMEOUT;
        }
        tv.tv_sec = (long)(left / 1000);
        tv.tv_usec = (long)(left % 1000) * 1000;
    }
    FD_ZERO(&set);
    FD_SET(fd, &set);
    n = select(fd + 1, writing ? NULL : &set, writing ? &set : NULL, NULL, deadline >= 0 ? &tv : NULL);
    return n > 0 ? MCPLINK_OK : n == 0 ? MCPLINK_ERR_TIMEOUT : MCPLINK_ERR_TRANSPORT;
}

static void idf_close(void *ctx)
{
    mcplink_idf *p = ctx;

    if (p->tls != NULL) {
        (void)esp_tls_conn_destroy(p->tls);
        p->tls = NULL;
    }
}

static int open_error(esp_tls_t *tls)
{
    esp_tls_error_handle_t last;

    if (esp_tls_get_error_handle(tls, &last) == ESP_OK) {
        switch (esp_tls_get_and_clear_last_error(last, NULL, NULL)) {
        case ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT:
            return MCPLINK_ERR_TIMEOUT;
        case ESP_ERR_MBEDTLS_SSL_HANDSHAKE_FAILED:
            return MCPLINK_ERR_TLS;
        }
    }
    return MCPLINK_ERR_TRANSPORT;
}

/* The server is always verified: by the given authority, or by the bundle. */
static bool trust(const mcplink_idf *p, esp_tls_cfg_t *cfg)
{
    if (p->ca_pem != NULL) {
        cfg->cacert_buf = (const unsigned char *)p->ca_pem;
        cfg->cacert_bytes = (unsigned)strlen(p->ca_pem) + 1; /* PEM counts its NUL */
        return true;
    }
#if CONFIG_MBEDTLS_CERTIFICATE_BUNDLE
    cfg->crt_bundle_attach = esp_crt_bundle_attach;
    return true;
#else
    return false;
#endif
}

static int idf_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_idf *p = ctx;
    esp_tls_cfg_t cfg = {.timeout_ms = (int)(timeout_ms > 0 ? timeout_ms : 1), .is_plain_tcp = tls == 0};
    int rc = MCPLINK_OK, fd, flags;

    if (tls != 0 && !trust(p, &cfg)) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    idf_close(p);
    p->tls = esp_tls_init();
    if (p->tls == NULL) {
        return MCPLINK_ERR_TRANSPORT;
    }
    if (esp_tls_conn_new_sync(host, (int)strlen(host), port, &cfg, p->tls) != 1) {
        rc = open_error(p->tls);
    } else if (esp_tls_get_conn_sockfd(p->tls, &fd) != ESP_OK || (flags = fcntl(fd, F_GETFL, 0)) < 0 ||
               fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        rc = MCPLINK_ERR_TRANSPORT;
    }
    if (rc != MCPLINK_OK) {
        idf_close(p);
    }
    return rc;
}

static bool would_block(ssize_t n)
{
    return n == ESP_TLS_ERR_SSL_WANT_READ || n == ESP_TLS_ERR_SSL_WANT_WRITE ||
           (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static int idf_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_idf *p = ctx;
    int64_t deadline = timeout_ms < 0 ? -1 : now() + timeout_ms;
    const char *at = buf;
    size_t left = len;

    while (left > 0) {
        ssize_t n = p->tls != NULL ? esp_tls_conn_write(p->tls, at, left) : 0;

        if (n > 0) {
            at += n;
            left -= (size_t)n;
        } else if (would_block(n)) {
            int rc = ready(p, n != ESP_TLS_ERR_SSL_WANT_READ, deadline);

            if (rc != MCPLINK_OK) {
                return rc;
            }
        } else {
            return MCPLINK_ERR_TRANSPORT;
        }
    }
    return (int)len;
}

/* Reading comes before waiting: TLS may hold bytes of which the socket knows
 * nothing. */
static int idf_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_idf *p = ctx;
    int64_t deadline = timeout_ms < 0 ? -1 : now() + timeout_ms;

    for (;;) {
        ssize_t n = p->tls != NULL ? esp_tls_conn_read(p->tls, buf, len) : 0;
        int rc;

        if (n > 0) {
            return (int)n;
        }
        if (n == 0) { /* the end of the stream, and close_notify */
            return MCPLINK_ERR_CLOSED;
        }
        if (!would_block(n)) {
            return MCPLINK_ERR_TRANSPORT;
        }
        rc = ready(p, n == ESP_TLS_ERR_SSL_WANT_WRITE, deadline);
        if (rc != MCPLINK_OK) {
            return rc;
        }
    }
}

static uint32_t idf_now_ms(void *ctx)
{
    (void)ctx;
    return (uint32_t)now();
}

static int idf_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    esp_fill_random(buf, len);
    return MCPLINK_OK;
}

static void idf_sleep_ms(void *ctx, uint32_t ms)
{
    (void)ctx;
    vTaskDelay(pdMS_TO_TICKS(ms) + 1);
}

void mcplink_idf_init(mcplink_idf *p, mcplink_port *port, const char *ca_pem)
{
    p->tls = NULL;
    p->ca_pem = ca_pem;
    port->open = idf_open;
    port->send = idf_send;
    port->recv = idf_recv;
    port->close = idf_close;
    port->now_ms = idf_now_ms;
    port->random = idf_random;
    port->sleep_ms = idf_sleep_ms;
    port->ctx = p;
}
