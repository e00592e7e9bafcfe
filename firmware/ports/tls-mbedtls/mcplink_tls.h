/* TLS by mbedTLS 2.28, stacked on another port: seven functions in, seven out. The
 * engine never sees a socket. A connection opened without tls passes through, so
 * one port serves ws and wss; the inner port is only ever asked for plain TCP.
 *
 * The server is always verified, its chain and its name. There is no switch to
 * skip either. TLS 1.2 is the floor. Dates are checked where mbedTLS was built
 * with a calendar (MBEDTLS_HAVE_TIME_DATE).
 *
 * This port allocates, by mbedTLS's allocator; the library below it does not. */
#ifndef MCPLINK_TLS_H
#define MCPLINK_TLS_H

#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "mcplink/port.h"

typedef struct mcplink_tls_config {
    const mcplink_port *inner; /* required; also the source of entropy and time */

    /* Trust, exactly one of the two. */
    const char *ca_pem; /* certificates in PEM, NUL-terminated; not needed after init */
    /* A configuration that lends its CA chain, revocation list, certificate profile
     * and verify callback (for pinning), nothing else: whether it verifies is not
     * asked, and its callback can refuse a certificate but not accept one. It must
     * outlive the port. */
    const mbedtls_ssl_config *trust;

    /* The name the certificate must have: DNS name or IP literal. NULL = the host
     * given to open. Kept by pointer. */
    const char *verify_name;
} mcplink_tls_config;

typedef struct mcplink_tls {
    const mcplink_port *inner;
    const mbedtls_ssl_config *trust;
    const char *verify_name;
    mbedtls_x509_crt ca;
    mbedtls_ssl_config conf;
    mbedtls_ssl_context ssl;
    uint8_t state;
    uint8_t ip[16]; /* the address the certificate must have, when ip_len is not 0 */
    size_t ip_len;
    uint32_t refused;     /* why the certificate was refused, MBEDTLS_X509_BADCERT_... */
    uint32_t self_signed; /* the server's own certificate is */
    int inner_error;      /* of the inner port, when that is what failed */
    uint32_t from_ms;     /* of the call in progress */
    int32_t timeout_ms;
    char words[64];
} mcplink_tls;

/* mcplink_tls_init reads the CA certificates and makes port refer to t; t, the inner
 * port and the borrowed parts stay the caller's. Returns MCPLINK_OK, or
 * MCPLINK_ERR_ARG: no trust or both kinds, an incomplete inner port, no certificate
 * in ca_pem. mcplink_tls_words says which. */
int mcplink_tls_init(mcplink_tls *t, const mcplink_tls_config *config, mcplink_port *port);

/* mcplink_tls_free closes and gives back what mbedTLS allocated. */
void mcplink_tls_free(mcplink_tls *t);

/* mcplink_tls_words says why the last connection was refused or init failed, such
 * as "certificate: wrong name"; "" when it was not. Valid until the next open. */
const char *mcplink_tls_words(const mcplink_tls *t);

#endif
