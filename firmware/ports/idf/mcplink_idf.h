/* The port for ESP-IDF: esp-tls for plain TCP and TLS, esp_timer, the hardware's
 * random numbers. open blocks, so link config `stepwise` must be 0. */
#ifndef MCPLINK_IDF_H
#define MCPLINK_IDF_H

#include "esp_tls.h"
#include "mcplink/port.h"

typedef struct mcplink_idf {
    esp_tls_t *tls;     /* NULL while there is no connection */
    const char *ca_pem; /* NULL = the certificate bundle */
} mcplink_idf;

/* mcplink_idf_init makes port refer to p. ca_pem is kept by pointer. */
void mcplink_idf_init(mcplink_idf *p, mcplink_port *port, const char *ca_pem);

#endif
