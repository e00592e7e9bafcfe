#include "host_port.h"

#include <stdio.h>
#include <stdlib.h>

#if HOST_TLS

#define CA_MAX (1 << 20)

/* read_text returns a file's content, to be freed, or NULL. */
static char *read_text(const char *name)
{
    FILE *file = fopen(name, "rb");
    char *text;
    size_t len;

    if (file == NULL) {
        return NULL;
    }
    text = malloc(CA_MAX);
    len = text != NULL ? fread(text, 1, CA_MAX, file) : 0;
    (void)fclose(file);
    if (text == NULL || len == CA_MAX) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

static bool secure(host_port *h, const char *ca, const char *name)
{
    mcplink_tls_config config = {0};
    char *pem;
    int rc;

    if (ca == NULL) {
        fprintf(stderr, "--tls needs --ca: the file with the certificates to trust\n");
        return false;
    }
    pem = read_text(ca);
    if (pem == NULL) {
        fprintf(stderr, "cannot read the certificates of %s\n", ca);
        return false;
    }
    config.inner = &h->plain;
    config.ca_pem = pem;
    config.verify_name = name;
    rc = mcplink_tls_init(&h->tls, &config, &h->port);
    free(pem);
    if (rc != MCPLINK_OK) {
        fprintf(stderr, "cannot use the certificates of %s: %s\n", ca, mcplink_tls_words(&h->tls));
        return false;
    }
    h->secured = true;
    return true;
}

void host_port_free(host_port *h)
{
    if (h->secured) {
        mcplink_tls_free(&h->tls);
    }
}

const char *host_port_words(const host_port *h) { return h->secured ? mcplink_tls_words(&h->tls) : ""; }

#else

static bool secure(host_port *h, const char *ca, const char *name)
{
    (void)h;
    (void)ca;
    (void)name;
    fprintf(stderr, "this program was built without TLS: install mbed TLS (Debian package libmbedtls-dev) and build it "
                    "again, or leave out --tls\n");
    return false;
}

void host_port_free(host_port *h) { (void)h; }

const char *host_port_words(const host_port *h)
{
    (void)h;
    return "";
}

#endif

bool host_port_init(host_port *h, bool tls, const char *ca, const char *name)
{
    mcplink_posix_init(&h->posix, &h->plain);
    h->port = h->plain;
    return !tls || secure(h, ca, name);
}
