/* What the ports of non-blocking sockets have in common, posix and idf: to send all, or
 * to receive something, within a time limit. */
#ifndef MCPLINK_STREAM_H
#define MCPLINK_STREAM_H

#include "mcplink/port.h"

/* Results of an attempt beside the codes of mcplink_err: try again once the socket is
 * ready for this. With TLS a read may have to write, and a write to read. */
#define MCPLINK_WANT_READ (-100)
#define MCPLINK_WANT_WRITE (-101)

typedef struct mcplink_stream {
    /* Attempts that do not wait. How many bytes went, one or more, or one of the
     * above, or an error. */
    int (*read)(void *ctx, void *buf, size_t len);
    int (*write)(void *ctx, const void *buf, size_t len);
    /* ready waits for the socket, in vain for timeout_ms at most, negative without a
     * limit. MCPLINK_OK, MCPLINK_ERR_TIMEOUT or another error. */
    int (*ready)(void *ctx, int writing, int32_t timeout_ms);
    uint32_t (*now_ms)(void *ctx);
} mcplink_stream;

/* As the port's send and recv. */
int mcplink_stream_send(const mcplink_stream *s, void *ctx, const void *buf, size_t len, int32_t timeout_ms);
int mcplink_stream_recv(const mcplink_stream *s, void *ctx, void *buf, size_t len, int32_t timeout_ms);

#endif
