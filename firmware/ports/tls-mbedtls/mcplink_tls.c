#include "mcplink_tls.h"

#include <string.h>

#include "ip_literal.h"
#include "mcplink/mcplink.h"
#include "tls_certificate.h"
#include "tls_words.h"

enum { DOWN, CONNECTING, HANDSHAKING, SECURE, PLAIN };

#define GOODBYE_MS 100 /* for close_notify: a peer that takes no bytes gets none */

static void set_deadline(mcplink_tls *t, int32_t timeout_ms)
{
    t->from_ms = t->inner->now_ms(t->inner->ctx);
    t->timeout_ms = timeout_ms;
}

/* remaining is what is left of the call's time: negative without a limit. */
static int32_t remaining(const mcplink_tls *t)
{
    uint32_t passed = t->inner->now_ms(t->inner->ctx) - t->from_ms;

    if (t->timeout_ms < 0) {
        return -1;
    }
    return passed >= (uint32_t)t->timeout_ms ? 0 : t->timeout_ms - (int32_t)passed;
}

/* The engine is told of an inner failure by an error of its own; which one it was is
 * kept aside. A send that ran out of time is a failure like any other: part of the
 * record may have left. */
static int to_inner(void *ctx, const unsigned char *buf, size_t len)
{
    mcplink_tls *t = ctx;
    int n = t->inner->send(t->inner->ctx, buf, len, remaining(t));

    if (n >= 0) {
        return n;
    }
    t->inner_error = n;
    return MBEDTLS_ERR_SSL_CONN_EOF;
}

static int from_inner(void *ctx, unsigned char *buf, size_t len)
{
    mcplink_tls *t = ctx;
    int n = t->inner->recv(t->inner->ctx, buf, len, remaining(t));

    if (n >= 0) {
        return n;
    }
    if (n == MCPLINK_ERR_TIMEOUT) {
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    t->inner_error = n;
    return MBEDTLS_ERR_SSL_CONN_EOF;
}

static int draw(void *ctx, unsigned char *buf, size_t len)
{
    const mcplink_tls *t = ctx;

    return t->inner->random(t->inner->ctx, buf, len);
}

/* Called for each certificate of the chain after the engine has judged it. Flags
 * are only ever added. */
static int on_verify(void *ctx, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
    mcplink_tls *t = ctx;
    uint32_t judged;
    int rc = 0;

    if (depth == 0 && t->ip_len > 0 && !tls_certificate_has_address(crt, t->ip, t->ip_len)) {
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
    if (depth == 0 && tls_certificate_is_self_signed(crt)) {
        t->self_signed = 1;
    }
    judged = *flags;
    if (t->trust != NULL && t->trust->f_vrfy != NULL) {
        rc = t->trust->f_vrfy(t->trust->p_vrfy, crt, depth, flags);
        *flags |= judged;
    }
    if (rc != 0) {
        *flags |= MBEDTLS_X509_BADCERT_OTHER;
    }
    t->refused |= *flags;
    return rc;
}

static void say(mcplink_tls *t, const char *words)
{
    size_t len = strlen(words);

    if (len >= sizeof t->words) {
        len = sizeof t->words - 1;
    }
    memcpy(t->words, words, len);
    t->words[len] = '\0';
}

/* Ends the connection in whatever state it is and makes the engine ready for
 * another one. */
static void tls_close(void *ctx)
{
    mcplink_tls *t = ctx;

    if (t->state == SECURE && t->inner_error == MCPLINK_OK) {
        set_deadline(t, GOODBYE_MS);
        (void)mbedtls_ssl_close_notify(&t->ssl);
    }
    if (t->state == HANDSHAKING || t->state == SECURE) {
        mbedtls_ssl_free(&t->ssl);
        mbedtls_ssl_init(&t->ssl);
    }
    t->state = DOWN;
    t->inner->close(t->inner->ctx);
}

/* An address is matched by on_verify and sends no server name; a DNS name is the
 * engine's. */
static int expect_name(mcplink_tls *t, const char *host)
{
    const char *name = t->verify_name != NULL ? t->verify_name : host;

    if (*name == '\0') {
        return MBEDTLS_ERR_SSL_BAD_INPUT_DATA; /* the engine would take any name then */
    }
    t->ip_len = mcplink_ip_literal(name, t->ip);
    return mbedtls_ssl_set_hostname(&t->ssl, t->ip_len > 0 ? NULL : name);
}

static int start_handshake(mcplink_tls *t, const char *host)
{
    int rc = mbedtls_ssl_setup(&t->ssl, &t->conf);

    t->state = HANDSHAKING;
    t->refused = 0;
    t->self_signed = 0;
    mbedtls_ssl_set_bio(&t->ssl, t, to_inner, from_inner, NULL);
    return rc != 0 ? rc : expect_name(t, host);
}

/* What the engine itself found, such as a certificate for another use, comes after
 * on_verify. It has no result before it has seen a certificate. */
static void add_verify_result(mcplink_tls *t)
{
    uint32_t result = mbedtls_ssl_get_verify_result(&t->ssl);

    if (result != UINT32_MAX) {
        t->refused |= result;
    }
}

static int handshake_error(mcplink_tls *t, int rc)
{
    add_verify_result(t);
    if (t->refused != 0) {
        say(t, tls_words_certificate(t->refused, t->self_signed != 0));
        return MCPLINK_ERR_TLS;
    }
    if (t->inner_error == MCPLINK_ERR_TIMEOUT) {
        return MCPLINK_ERR_TIMEOUT;
    }
    if (t->inner_error != MCPLINK_OK || rc == MBEDTLS_ERR_SSL_CONN_EOF) {
        say(t, "connection lost during the handshake");
        return MCPLINK_ERR_TRANSPORT;
    }
    tls_words_error(rc, t->words, sizeof t->words);
    return MCPLINK_ERR_TLS;
}

static int handshake(mcplink_tls *t)
{
    int rc;

    do {
        rc = mbedtls_ssl_handshake(&t->ssl);
    } while (rc == MBEDTLS_ERR_SSL_WANT_READ && remaining(t) != 0);
    if (rc == MBEDTLS_ERR_SSL_WANT_READ) {
        return MCPLINK_ERR_TIMEOUT;
    }
    if (rc != 0) {
        return handshake_error(t, rc);
    }
    t->state = SECURE;
    return MCPLINK_OK;
}

static int connect_inner(mcplink_tls *t, const char *host, uint16_t port)
{
    if (t->state != CONNECTING) {
        tls_close(t);
        t->words[0] = '\0';
        t->inner_error = MCPLINK_OK;
        t->state = CONNECTING;
    }
    return t->inner->open(t->inner->ctx, host, port, 0, remaining(t));
}

/* A call that ran out of time is continued by the next one, or given up by close. */
static int tls_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    mcplink_tls *t = ctx;
    int rc = MCPLINK_OK;

    set_deadline(t, timeout_ms);
    if (t->state != HANDSHAKING) {
        rc = connect_inner(t, host, port);
        if (rc == MCPLINK_OK && tls == 0) {
            t->state = PLAIN;
            return MCPLINK_OK;
        }
        if (rc == MCPLINK_OK) {
            int error = start_handshake(t, host);

            rc = error != 0 ? handshake_error(t, error) : MCPLINK_OK;
        }
    }
    if (rc == MCPLINK_OK) {
        rc = handshake(t);
    }
    if (rc != MCPLINK_OK && (rc != MCPLINK_ERR_TIMEOUT || t->inner_error != MCPLINK_OK)) {
        tls_close(t);
    }
    return rc;
}

static int stream_error(const mcplink_tls *t, int rc)
{
    if (rc == 0 || rc == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) {
        return MCPLINK_ERR_CLOSED;
    }
    if (t->inner_error != MCPLINK_OK) {
        return t->inner_error;
    }
    return rc == MBEDTLS_ERR_SSL_CONN_EOF ? MCPLINK_ERR_CLOSED : MCPLINK_ERR_TLS;
}

static int tls_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_tls *t = ctx;
    const unsigned char *p = buf;
    size_t sent = 0;

    if (t->state == PLAIN) {
        return t->inner->send(t->inner->ctx, buf, len, timeout_ms);
    }
    if (t->state != SECURE) {
        return MCPLINK_ERR_CLOSED;
    }
    set_deadline(t, timeout_ms);
    while (sent < len) {
        int n = mbedtls_ssl_write(&t->ssl, p + sent, len - sent);

        if (n <= 0) {
            return stream_error(t, n);
        }
        sent += (size_t)n;
    }
    return (int)len;
}

/* What the engine holds decrypted comes first; the inner port is asked only when it
 * holds nothing. */
static int tls_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    mcplink_tls *t = ctx;
    int n;

    if (t->state == PLAIN) {
        return t->inner->recv(t->inner->ctx, buf, len, timeout_ms);
    }
    if (len == 0) {
        return MCPLINK_ERR_ARG;
    }
    if (t->state != SECURE) {
        return MCPLINK_ERR_CLOSED;
    }
    set_deadline(t, timeout_ms);
    do {
        n = mbedtls_ssl_read(&t->ssl, buf, len);
    } while (n == MBEDTLS_ERR_SSL_WANT_READ && remaining(t) != 0);
    if (n == MBEDTLS_ERR_SSL_WANT_READ) {
        return MCPLINK_ERR_TIMEOUT;
    }
    return n > 0 ? n : stream_error(t, n);
}

static uint32_t tls_now_ms(void *ctx)
{
    const mcplink_tls *t = ctx;

    return t->inner->now_ms(t->inner->ctx);
}

static int tls_random(void *ctx, void *buf, size_t len)
{
    const mcplink_tls *t = ctx;

    return t->inner->random(t->inner->ctx, buf, len);
}

static void tls_sleep_ms(void *ctx, uint32_t ms)
{
    const mcplink_tls *t = ctx;

    t->inner->sleep_ms(t->inner->ctx, ms);
}

static int read_ca(mcplink_tls *t, const char *pem)
{
    /* The length counts the NUL. A bundle may hold some that cannot be read. */
    int bad = mbedtls_x509_crt_parse(&t->ca, (const unsigned char *)pem, strlen(pem) + 1);

    return bad < 0 || t->ca.raw.p == NULL ? MCPLINK_ERR_ARG : MCPLINK_OK;
}

static int configure(mcplink_tls *t)
{
    mbedtls_ssl_config *c = &t->conf;

    if (mbedtls_ssl_config_defaults(c, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0) {
        return MCPLINK_ERR_ARG;
    }
    mbedtls_ssl_conf_min_version(c, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_authmode(c, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_verify(c, on_verify, t);
    mbedtls_ssl_conf_rng(c, draw, t);
    if (t->trust != NULL) {
        mbedtls_ssl_conf_ca_chain(c, t->trust->ca_chain, t->trust->ca_crl);
        if (t->trust->cert_profile != NULL) {
            mbedtls_ssl_conf_cert_profile(c, t->trust->cert_profile);
        }
    } else {
        mbedtls_ssl_conf_ca_chain(c, &t->ca, NULL);
    }
    return MCPLINK_OK;
}

static void bind_port(mcplink_tls *t, mcplink_port *port)
{
    port->open = tls_open;
    port->send = tls_send;
    port->recv = tls_recv;
    port->close = tls_close;
    port->now_ms = tls_now_ms;
    port->random = tls_random;
    port->sleep_ms = t->inner->sleep_ms != NULL ? tls_sleep_ms : NULL;
    port->ctx = t;
}

int mcplink_tls_init(mcplink_tls *t, const mcplink_tls_config *config, mcplink_port *port)
{
    memset(t, 0, sizeof *t);
    mbedtls_x509_crt_init(&t->ca);
    mbedtls_ssl_config_init(&t->conf);
    mbedtls_ssl_init(&t->ssl);
    if (mcplink_port_check(config->inner) != MCPLINK_OK) {
        say(t, "the inner port is incomplete");
        return MCPLINK_ERR_ARG;
    }
    if ((config->ca_pem == NULL) == (config->trust == NULL)) {
        say(t, "one of ca_pem and trust is required");
        return MCPLINK_ERR_ARG;
    }
    t->inner = config->inner;
    t->trust = config->trust;
    t->verify_name = config->verify_name;
    if (config->ca_pem != NULL && read_ca(t, config->ca_pem) != MCPLINK_OK) {
        say(t, "no certificate in ca_pem");
        return MCPLINK_ERR_ARG;
    }
    if (configure(t) != MCPLINK_OK) {
        say(t, "out of memory");
        return MCPLINK_ERR_ARG;
    }
    bind_port(t, port);
    return MCPLINK_OK;
}

void mcplink_tls_free(mcplink_tls *t)
{
    if (t->inner != NULL) {
        tls_close(t);
    }
    mbedtls_ssl_free(&t->ssl);
    mbedtls_ssl_config_free(&t->conf);
    mbedtls_x509_crt_free(&t->ca);
}

const char *mcplink_tls_words(const mcplink_tls *t) { return t->words; }
