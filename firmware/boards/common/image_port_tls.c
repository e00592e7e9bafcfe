#include "image_port.h"

#include <mbedtls/memory_buffer_alloc.h>
#include <stddef.h>
#include <stdlib.h>

#include "mcplink_tls.h"
#include "net.h"
#include "semihosting.h"

#define HEAP_SIZE (64u * 1024u)
#define CA_MAX 8192u

const char image_port_name[] = "tls+lwip";

static mcplink_tls tls;

/* Called by mbedTLS when its heap is damaged. */
void exit(int code) { semihosting_exit(code); }

/* The CA is a file of the host: a test makes it anew each time. */
static const char *read_ca(const char *path)
{
    static char pem[CA_MAX];
    intptr_t file = semihosting_open(path);
    intptr_t n = file < 0 ? -1 : semihosting_read(file, pem, sizeof pem - 1);

    if (file >= 0) {
        semihosting_close(file);
    }
    return n > 0 ? pem : NULL;
}

const char *image_port_init(const image_args *args, mcplink_port *port)
{
    static mcplink_lwip lwip;
    static mcplink_port inner;
    static unsigned char heap[HEAP_SIZE];
    const mcplink_lwip_board *board = net_init();
    mcplink_tls_config config = {&inner, NULL, NULL, args->verify_name};

    if (args->port == 0) {
        return "--port is required";
    }
    if (board == NULL) {
        return "no network controller";
    }
    if (args->ca == NULL) {
        return "--ca is required";
    }
    config.ca_pem = read_ca(args->ca);
    if (config.ca_pem == NULL) {
        return "the file of --ca cannot be read";
    }
    mbedtls_memory_buffer_alloc_init(heap, sizeof heap);
    mcplink_lwip_init(&lwip, board, &inner);
    return mcplink_tls_init(&tls, &config, port) == MCPLINK_OK ? NULL : mcplink_tls_words(&tls);
}

const char *image_port_detail(void) { return mcplink_tls_words(&tls); }
