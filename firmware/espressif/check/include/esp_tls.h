/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_TLS_H
#define FAKE_ESP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "esp_err.h"

#define ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT 0x8006
#define ESP_ERR_MBEDTLS_CERT_PARTLY_OK 0x8010 /* and above: of the TLS engine */
#define ESP_TLS_ERR_SSL_WANT_READ (-0x6900)
#define ESP_TLS_ERR_SSL_WANT_WRITE (-0x6880)

typedef struct esp_tls esp_tls_t;
typedef struct esp_tls_last_error *esp_tls_error_handle_t;

typedef struct esp_tls_cfg {
    union {
        const unsigned char *cacert_buf;
        const unsigned char *cacert_pem_buf;
    };
    union {
        unsigned int cacert_bytes;
        unsigned int cacert_pem_bytes;
    };
    bool non_block;
    int timeout_ms;
    const char *common_name;
    esp_err_t (*crt_bundle_attach)(void *conf);
    bool is_plain_tcp;
} esp_tls_cfg_t;

esp_tls_t *esp_tls_init(void);
int esp_tls_conn_new_sync(const char *hostname, int hostlen, int port, const esp_tls_cfg_t *cfg, esp_tls_t *tls);
ssize_t esp_tls_conn_write(esp_tls_t *tls, const void *data, size_t datalen);
ssize_t esp_tls_conn_read(esp_tls_t *tls, void *data, size_t datalen);
int esp_tls_conn_destroy(esp_tls_t *tls);
esp_err_t esp_tls_get_conn_sockfd(esp_tls_t *tls, int *sockfd);
esp_err_t esp_tls_get_error_handle(esp_tls_t *tls, esp_tls_error_handle_t *error_handle);
esp_err_t esp_tls_get_and_clear_last_error(esp_tls_error_handle_t h, int *esp_tls_code, int *esp_tls_flags);

#endif
