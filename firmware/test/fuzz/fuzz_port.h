/* What the fuzz targets share: a port that plays a byte stream, and a transcript. */
#ifndef FUZZ_PORT_H
#define FUZZ_PORT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcplink/port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(cond) ((cond) ? (void)0 : abort())

typedef struct stream {
    mcplink_port port;
    const uint8_t *head; /* comes first */
    size_t head_len;
    const uint8_t *data;
    size_t len, at;
    size_t chunk;     /* at most so many bytes per recv; 0 = all */
    uint32_t now;
    uint64_t sent;    /* transcript of what the library sent after the request */
    unsigned sends;
} stream;

/* Randomness is all zeros: the key is constant, and so is the accept value. */
void stream_init(stream *s, const uint8_t *data, size_t len, size_t chunk);

/* Mixes bytes into a transcript (FNV-1a, with the length). */
void mix(uint64_t *hash, const void *bytes, size_t len);

/* The head that answers the constant key. */
extern const char fuzz_head[];

#endif
