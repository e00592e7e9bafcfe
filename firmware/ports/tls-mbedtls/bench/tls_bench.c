/* Drives the TLS port over the POSIX port, step by step, for a test that plays the
 * server.
 *
 *   tls_bench --port N [--host H] [--ca FILE] [--verify NAME] [--lend KIND] STEP...
 *
 * --lend gives the port a configuration of mbedTLS with verification off: `trust`
 * lends the CA, `accepting` also a callback that accepts everything, `refusing` one
 * that accepts nothing.
 *
 * Each step prints one line, `STEP: result`:
 *
 *   open, open-plain  the port's code and its words; a timeout of 30 s
 *   open-briefly      the same with 200 ms
 *   echo=N            sends N bytes and expects them back
 *   send=TEXT         the port's result
 *   read=N            receives up to N bytes within 30 s: the text or the code
 *   read-briefly=N    the same within 200 ms
 *   peek=N            the same without waiting
 *   close */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcplink/mcplink.h"
#include "mcplink_posix.h"
#include "mcplink_tls.h"

#define WAIT_MS 30000
#define BRIEFLY_MS 200

typedef struct bench {
    mcplink_port port;
    const char *host;
    uint16_t number;
    const mcplink_tls *tls;
} bench;

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    if (f == NULL || text == NULL) {
        perror(path);
        exit(2);
    }
    if (fread(text, 1, (1 << 16) - 1, f) == 0) {
        text[0] = '\0';
    }
    (void)fclose(f);
    return text;
}

static int accept_all(void *ctx, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
    (void)ctx;
    (void)crt;
    (void)depth;
    *flags = 0;
    return 0;
}

static int refuse_all(void *ctx, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
    (void)ctx;
    (void)crt;
    (void)depth;
    *flags |= MBEDTLS_X509_BADCERT_OTHER;
    return 0;
}

/* A configuration as careless as it gets. */
static const mbedtls_ssl_config *lend(const char *kind, const char *ca_pem)
{
    static mbedtls_ssl_config conf;
    static mbedtls_x509_crt ca;

    mbedtls_x509_crt_init(&ca);
    if (mbedtls_x509_crt_parse(&ca, (const unsigned char *)ca_pem, strlen(ca_pem) + 1) != 0) {
        exit(2);
    }
    mbedtls_ssl_config_init(&conf);
    (void)mbedtls_ssl_config_defaults(&conf, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                      MBEDTLS_SSL_PRESET_DEFAULT);
    mbedtls_ssl_conf_authmode(&conf, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_ca_chain(&conf, &ca, NULL);
    if (strcmp(kind, "accepting") == 0) {
        mbedtls_ssl_conf_verify(&conf, accept_all, NULL);
    } else if (strcmp(kind, "refusing") == 0) {
        mbedtls_ssl_conf_verify(&conf, refuse_all, NULL);
    }
    return &conf;
}

static void open_step(bench *b, const char *step, int tls, int32_t timeout_ms)
{
    int rc = b->port.open(b->port.ctx, b->host, b->number, tls, timeout_ms);

    printf("%s: %d %s\n", step, rc, mcplink_tls_words(b->tls));
}

static unsigned char pattern(size_t i) { return (unsigned char)(i * 7 + (i >> 8)); }

static void echo_step(bench *b, const char *step, size_t len)
{
    unsigned char *out = malloc(len);
    unsigned char *in = malloc(len);
    size_t got = 0;
    int n;

    if (out == NULL || in == NULL) {
        exit(2);
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = pattern(i);
    }
    n = b->port.send(b->port.ctx, out, len, WAIT_MS);
    while (n > 0 && got < len) {
        n = b->port.recv(b->port.ctx, in + got, len - got, WAIT_MS);
        got += n > 0 ? (size_t)n : 0;
    }
    printf("%s: %s %d\n", step, got == len && memcmp(in, out, len) == 0 ? "same" : "different", n < 0 ? n : 0);
    free(out);
    free(in);
}

static void read_step(bench *b, const char *step, size_t len, int32_t timeout_ms)
{
    char *in = calloc(1, len + 1);
    int n;

    if (in == NULL) {
        exit(2);
    }
    n = b->port.recv(b->port.ctx, in, len, timeout_ms);
    if (n > 0) {
        printf("%s: %s\n", step, in);
    } else {
        printf("%s: %d\n", step, n);
    }
    free(in);
}

static void run_step(bench *b, const char *step)
{
    const char *value = strchr(step, '=');
    size_t number = value != NULL ? strtoul(value + 1, NULL, 10) : 0;

    if (strcmp(step, "open") == 0) {
        open_step(b, step, 1, WAIT_MS);
    } else if (strcmp(step, "open-briefly") == 0) {
        open_step(b, step, 1, BRIEFLY_MS);
    } else if (strcmp(step, "open-plain") == 0) {
        open_step(b, step, 0, WAIT_MS);
    } else if (strcmp(step, "close") == 0) {
        b->port.close(b->port.ctx);
        printf("close: done\n");
    } else if (strncmp(step, "echo=", 5) == 0) {
        echo_step(b, step, number);
    } else if (strncmp(step, "send=", 5) == 0) {
        printf("%s: %d\n", step, b->port.send(b->port.ctx, value + 1, strlen(value + 1), WAIT_MS));
    } else if (strncmp(step, "read=", 5) == 0) {
        read_step(b, step, number, WAIT_MS);
    } else if (strncmp(step, "read-briefly=", 13) == 0) {
        read_step(b, step, number, BRIEFLY_MS);
    } else if (strncmp(step, "peek=", 5) == 0) {
        read_step(b, step, number, 0);
    } else {
        fprintf(stderr, "unknown step %s\n", step);
        exit(2);
    }
}

/* What the flags ask for. */
typedef struct options {
    const char *lend;
    char *ca;
    const char *verify;
} options;

/* Returns the index of the first step. */
static int read_flags(int argc, char **argv, bench *b, options *o)
{
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--port") == 0) {
            b->number = (uint16_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--host") == 0) {
            b->host = value;
        } else if (strcmp(argv[i], "--ca") == 0) {
            o->ca = read_file(value);
        } else if (strcmp(argv[i], "--verify") == 0) {
            o->verify = value;
        } else if (strcmp(argv[i], "--lend") == 0) {
            o->lend = value;
        } else {
            fprintf(stderr, "unknown flag %s\n", argv[i]);
            exit(2);
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    static mcplink_tls tls;
    mcplink_posix posix;
    mcplink_port inner;
    mcplink_tls_config config = {&inner, NULL, NULL, NULL};
    bench b = {{0}, "127.0.0.1", 0, &tls};
    options o = {NULL, NULL, NULL};
    int i = read_flags(argc, argv, &b, &o);
    int rc;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    mcplink_posix_init(&posix, &inner);
    config.verify_name = o.verify;
    if (o.lend != NULL && o.ca != NULL) {
        config.trust = lend(o.lend, o.ca);
    } else {
        config.ca_pem = o.ca;
    }
    rc = mcplink_tls_init(&tls, &config, &b.port);
    printf("init: %d %s\n", rc, mcplink_tls_words(&tls));
    for (; rc == MCPLINK_OK && i < argc; i++) {
        run_step(&b, argv[i]);
    }
    mcplink_tls_free(&tls);
    free(o.ca);
    return 0;
}
