#include "mcplink_outbox.h"

#include <string.h>

#define SKIP UINT32_MAX /* as a length: the next message lies at the start of the pool */

void mcplink_outbox_clear(mcplink_outbox *o)
{
    o->read = 0;
    o->write = 0;
    o->count = 0;
}

void mcplink_outbox_init(mcplink_outbox *o, void *pool, size_t cap)
{
    o->pool = pool;
    o->cap = cap;
    mcplink_outbox_clear(o);
}

/* place finds need bytes in one piece and returns where, or SIZE_MAX. Used bytes lie
 * in [read, write), or, once it has wrapped, in [read, end) and [0, write). */
static size_t place(mcplink_outbox *o, size_t need)
{
    const uint32_t skip = SKIP;

    if (o->count != 0 && o->write <= o->read) {
        return need <= o->read - o->write ? o->write : SIZE_MAX;
    }
    if (need <= o->cap - o->write) {
        return o->write;
    }
    if (need > o->read) {
        return SIZE_MAX;
    }
    if (o->cap - o->write >= MCPLINK_OUTBOX_PREFIX) {
        memcpy(o->pool + o->write, &skip, sizeof skip);
    }
    return 0;
}

int mcplink_outbox_put(mcplink_outbox *o, const void *data, size_t len)
{
    uint32_t prefix = (uint32_t)len;
    size_t at;

    if (o->cap < MCPLINK_OUTBOX_PREFIX || len > o->cap - MCPLINK_OUTBOX_PREFIX || len >= SKIP) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    at = place(o, MCPLINK_OUTBOX_PREFIX + len);
    if (at == SIZE_MAX) {
        return MCPLINK_ERR_TIMEOUT;
    }
    memcpy(o->pool + at, &prefix, sizeof prefix);
    memcpy(o->pool + at + MCPLINK_OUTBOX_PREFIX, data, len);
    o->write = at + MCPLINK_OUTBOX_PREFIX + len;
    o->count++;
    return MCPLINK_OK;
}

const char *mcplink_outbox_front(mcplink_outbox *o, size_t *len)
{
    uint32_t prefix = SKIP;

    if (o->count == 0) {
        return NULL;
    }
    if (o->cap - o->read >= MCPLINK_OUTBOX_PREFIX) {
        memcpy(&prefix, o->pool + o->read, sizeof prefix);
    }
    if (prefix == SKIP) {
        o->read = 0;
        memcpy(&prefix, o->pool, sizeof prefix);
    }
    *len = prefix;
    return (const char *)o->pool + o->read + MCPLINK_OUTBOX_PREFIX;
}

/* An empty outbox starts over, so that the largest message fits into it. */
void mcplink_outbox_pop(mcplink_outbox *o)
{
    size_t len;

    if (mcplink_outbox_front(o, &len) == NULL) {
        return;
    }
    o->read += MCPLINK_OUTBOX_PREFIX + len;
    o->count--;
    if (o->count == 0) {
        mcplink_outbox_clear(o);
    }
}
