#include "mcplink_idf.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "esp_random.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mcplink_stream.h"
#include "sdkconfig.h"
#if CONFIG_MBEDTLS_CERTIFICATE_BUNDLE
#include "esp_crt_bundle.h"
#endif

static void idf_close(void *ctx)
{
    mcplink_idf *p = ctx;

    if (p->tls != NULL) {
        (void)esp_tls_conn_destroy(p->tls);
        p->tls = NULL;
    }
}

/* mbedTLS's codes for the network, which esp-tls keeps without their sign: those of its
 * sockets, and the end of the stream. They are the same in each of its versions. */
static bool is_network(int code) { return (code >= 0x42 && code <= 0x52) || code == 0x7280; }

/* A network that fails during the TLS handshake is no refusal. */
static int open_error(esp_tls_t *tls)
{
    esp_tls_error_handle_t last;
    int code = 0;
    esp_err_t rc = ESP_FAIL;

    if (esp_tls_get_error_handle(tls, &last) == ESP_OK) {
        rc = esp_tls_get_and_clear_last_error(last, &code, NULL);
    }
    if (rc == ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT) {
        return MCPLINK_ERR_TIMEOUT;
    }
    return rc >= ESP_ERR_MBEDTLS_CERT_PARTLY_OK && !is_network(code) ? MCPLINK_ERR_TLS : MCPLINK_ERR_TRANSPORT;
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

/* Small frames go out at once, and nothing waits in the socket. */
static int set_up(esp_tls_t *tls)
{
    int fd, flags, on = 1;

    if (esp_tls_get_conn_sockfd(tls, &fd) != ESP_OK || (flags = fcntl(fd, F_GETFL, 0)) < 0 ||
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return MCPLINK_ERR_TRANSPORT;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return MCPLINK_OK;
}

static int idf_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_idf *p = ctx;
    esp_tls_cfg_t cfg = {.timeout_ms = (int)(timeout_ms > 0 ? timeout_ms : 1), .is_plain_tcp = tls == 0};
    int rc;

    if (tls != 0 && !trust(p, &cfg)) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    idf_close(p);
    p->tls = esp_tls_init();
    if (p->tls == NULL) {
        return MCPLINK_ERR_TRANSPORT;
    }
    rc = esp_tls_conn_new_sync(host, (int)strlen(host), port, &cfg, p->tls) == 1 ? set_up(p->tls) : open_error(p->tls);
    if (rc != MCPLINK_OK) {
        idf_close(p);
    }
    return rc;
}

/* outcome is an attempt's; errno speaks of plain TCP, where there are no other codes. */
static int outcome(ssize_t n, int wants)
{
    if (n == ESP_TLS_ERR_SSL_WANT_READ) {
        return MCPLINK_WANT_READ;
    }
    if (n == ESP_TLS_ERR_SSL_WANT_WRITE) {
        return MCPLINK_WANT_WRITE;
    }
    return n > 0 ? (int)n : n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK) ? wants : MCPLINK_ERR_TRANSPORT;
}

static int write_some(void *ctx, const void *buf, size_t len)
{
    mcplink_idf *p = ctx;

    return p->tls != NULL ? outcome(esp_tls_conn_write(p->tls, buf, len), MCPLINK_WANT_WRITE) : MCPLINK_ERR_STATE;
}

/* 0 is the end of the stream, and close_notify. */
static int read_some(void *ctx, void *buf, size_t len)
{
    mcplink_idf *p = ctx;
    ssize_t n = p->tls != NULL ? esp_tls_conn_read(p->tls, buf, len) : 0;

    return n == 0 ? MCPLINK_ERR_CLOSED : outcome(n, MCPLINK_WANT_READ);
}

static int ready(void *ctx, int writing, int32_t timeout_ms)
{
    mcplink_idf *p = ctx;
    struct timeval tv = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    fd_set set;
    int fd, n;

    if (esp_tls_get_conn_sockfd(p->tls, &fd) != ESP_OK) {
        return MCPLINK_ERR_TRANSPORT;
    }
    FD_ZERO(&set);
    FD_SET(fd, &set);
    n = select(fd + 1, writing ? NULL : &set, writing ? &set : NULL, NULL, timeout_ms >= 0 ? &tv : NULL);
    return n > 0 ? MCPLINK_OK : n == 0 ? MCPLINK_ERR_TIMEOUT : MCPLINK_ERR_TRANSPORT;
}

static uint32_t idf_now_ms(void *ctx)
{
    (void)ctx;
    return (uint32_t)(esp_timer_get_time() / 1000);
}

static const mcplink_stream stream = {read_some, write_some, ready, idf_now_ms};

static int idf_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    return mcplink_stream_send(&stream, ctx, buf, len, timeout_ms);
}

static int idf_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    return mcplink_stream_recv(&stream, ctx, buf, len, timeout_ms);
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
    *p = (mcplink_idf){.ca_pem = ca_pem};
    *port = (mcplink_port){idf_open, idf_send, idf_recv, idf_close, idf_now_ms, idf_random, idf_sleep_ms, p};
}
