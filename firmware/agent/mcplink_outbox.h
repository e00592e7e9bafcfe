/* A queue of messages in a pool of bytes: a ring in which each message lies in one
 * piece behind its length. It takes no lock; the agent holds one around each call. */
#ifndef MCPLINK_OUTBOX_H
#define MCPLINK_OUTBOX_H

#include "mcplink/mcplink.h"

/* What a message costs beside its bytes. */
#define MCPLINK_OUTBOX_PREFIX 4u

typedef struct mcplink_outbox {
    uint8_t *pool;
    size_t cap;
    size_t read;  /* the oldest message, or the mark that sends one to the start */
    size_t write; /* behind the newest one */
    size_t count;
} mcplink_outbox;

/* mcplink_outbox_init empties the outbox; pool stays the caller's. */
void mcplink_outbox_init(mcplink_outbox *o, void *pool, size_t cap);

/* mcplink_outbox_put copies a message in. MCPLINK_OK; MCPLINK_ERR_TOO_LARGE: it would
 * not fit into an empty outbox either; MCPLINK_ERR_TIMEOUT: not while what is there is
 * there. */
int mcplink_outbox_put(mcplink_outbox *o, const void *data, size_t len);

/* mcplink_outbox_front returns the oldest message, or NULL. It stays where it is, and
 * put leaves it alone, until pop or clear. */
const char *mcplink_outbox_front(mcplink_outbox *o, size_t *len);

void mcplink_outbox_pop(mcplink_outbox *o);
void mcplink_outbox_clear(mcplink_outbox *o);

#endif
