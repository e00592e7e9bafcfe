/* Several slots on one socket. */
#include "internal.h"

#if MCPLINK_MUX

#include "envelope_parts.h"
#include "mcplink/mux.h"

/* ---- sending ------------------------------------------------------------- */

static size_t escaped_len(const char *s)
{
    char out[6];
    size_t n = 0;
    for (; *s != '\0'; s++) {
        n += mcplink_priv_escape(*s, out);
    }
    return n;
}

/* The envelope is written straight into the frame: no buffer holds it whole. */
static int send_envelope(mcplink_ws *ws, const char *slot, const char *payload, size_t len)
{
    mcplink_out o;
    char out[6];
    size_t total = sizeof ENVELOPE_HEAD - 1 + sizeof ENVELOPE_MIDDLE - 1 + sizeof ENVELOPE_TAIL - 1;
    total += escaped_len(slot) + len;
    mcplink_priv_out_begin(&o, ws, MCPLINK_OP_TEXT, total);
    mcplink_priv_out_put(&o, ENVELOPE_HEAD, sizeof ENVELOPE_HEAD - 1);
    for (; *slot != '\0'; slot++) {
        size_t n = mcplink_priv_escape(*slot, out);
        mcplink_priv_out_put(&o, out, n);
    }
    mcplink_priv_out_put(&o, ENVELOPE_MIDDLE, sizeof ENVELOPE_MIDDLE - 1);
    mcplink_priv_out_put(&o, payload, len);
    mcplink_priv_out_put(&o, ENVELOPE_TAIL, sizeof ENVELOPE_TAIL - 1);
    return mcplink_priv_out_end(&o);
}

static int register_slot(mcplink_mux *m, mcplink_mux_slot *slot)
{
    const char *text = slot->aggregate ? MCPLINK_REGISTER_AGGREGATE : MCPLINK_REGISTER;
    slot->refused = 0;
    return send_envelope(&m->link.ws, slot->name, text, strlen(text));
}

static int register_all(mcplink_link *link)
{
    mcplink_mux *m = (mcplink_mux *)link;
    int err = MCPLINK_OK;
    for (size_t i = 0; i < m->slot_count && err == MCPLINK_OK; i++) {
        err = register_slot(m, &m->slots[i]);
    }
    return err;
}

int mcplink_mux_send(mcplink_mux *m, size_t slot, const char *json, size_t len)
{
    if (m == NULL || slot >= m->slot_count || json == NULL || len == 0) {
        return MCPLINK_ERR_ARG;
    }
    if (m->link.state != MCPLINK_LINK_CONNECTED) {
        return MCPLINK_ERR_STATE;
    }
    int err = send_envelope(&m->link.ws, m->slots[slot].name, json, len);
    if (err != MCPLINK_OK) {
        mcplink_link_drop(&m->link, err);
        return err;
    }
    m->link.messages_out++;
    return MCPLINK_OK;
}

/* ---- configuration ------------------------------------------------------- */

static unsigned slots_fault(const mcplink_mux_config *c)
{
    if (c->slots == NULL || c->slot_count == 0) {
        return MCPLINK_W_NO_SLOTS;
    }
    for (size_t i = 0; i < c->slot_count; i++) {
        const char *name = c->slots[i].name;
        size_t len = name != NULL ? strlen(name) : 0;
        if (len == 0) {
            return MCPLINK_W_NO_NAME;
        }
        if (len > MCPLINK_NAME_MAX) {
            return MCPLINK_W_LONG_NAME;
        }
        for (size_t j = 0; j < i; j++) {
            if (len == strlen(c->slots[j].name) && memcmp(name, c->slots[j].name, len) == 0) {
                return MCPLINK_W_SAME_NAME;
            }
        }
    }
    return 0;
}

int mcplink_mux_init(mcplink_mux *m, const mcplink_port *port, const mcplink_mux_config *config)
{
    if (m == NULL || config == NULL) {
        return MCPLINK_ERR_ARG;
    }
    memset(m, 0, sizeof *m);
    int err = mcplink_link_init(&m->link, port, &config->link, config->path != NULL ? config->path : "/providers",
                                NULL, register_all);
    if (err != MCPLINK_OK) {
        return err;
    }
    unsigned fault = slots_fault(config);
    if (fault != 0) {
        m->link.state = MCPLINK_LINK_IDLE;
        mcplink_priv_ws_detail(&m->link.ws, fault);
        return mcplink_priv_word_error(fault);
    }
    m->slots = config->slots;
    m->slot_count = config->slot_count;
    m->reregister_ms = config->reregister_ms != 0 ? config->reregister_ms : 30000;
    if (m->reregister_ms > MCPLINK_TIME_MAX) {
        m->reregister_ms = MCPLINK_TIME_MAX;
    }
    return MCPLINK_OK;
}

/* ---- refusals ------------------------------------------------------------ */

#define UNAVAILABLE (-32000)

/* The message is decoded and terminated where it lies in the receive buffer: the
 * closing quote makes room for the NUL. */
static const char *plain_text(mcplink_mux *m, const mcplink_tunnel_error *error)
{
    if (error->message_len == 0) {
        return "";
    }
    char *buf = m->link.config.rx_buffer;
    char *text = buf + (error->message - buf);
    text[mcplink_json_unescape(text, error->message_len)] = '\0';
    return text;
}

static void refuse(mcplink_mux *m, mcplink_mux_slot *slot, const mcplink_tunnel_error *error)
{
    mcplink_event event;
    mcplink_priv_event(&m->link, &event, MCPLINK_EVENT_SLOT_REFUSED);
    event.error = MCPLINK_ERR_STATE;
    event.slot = slot->name;
    event.rpc_code = error->code;
    event.reason = plain_text(m, error);
    if (error->code == UNAVAILABLE) {
        uint32_t half = m->reregister_ms / 2;
        event.next_retry_ms = mcplink_link_draw(&m->link, half, m->reregister_ms + half);
        slot->refused = 1;
        slot->due_ms = mcplink_priv_now(m->link.port) + event.next_retry_ms;
    }
    m->refusals++;
    mcplink_priv_emit(&m->link, &event);
}

/* The broker never tells that the holder of a slot went away. */
static int register_due(mcplink_mux *m)
{
    uint32_t now = mcplink_priv_now(m->link.port);
    int err = MCPLINK_OK;
    if (m->link.state != MCPLINK_LINK_CONNECTED) {
        return err;
    }
    for (size_t i = 0; i < m->slot_count && err == MCPLINK_OK; i++) {
        if (m->slots[i].refused && mcplink_priv_left(m->slots[i].due_ms, now) <= 0) {
            err = register_slot(m, &m->slots[i]);
        }
    }
    if (err != MCPLINK_OK) {
        mcplink_link_drop(&m->link, err);
    }
    return err;
}

/* Until the next registration is due; negative when none is scheduled. */
static int32_t register_left(const mcplink_mux *m)
{
    uint32_t now = mcplink_priv_now(m->link.port);
    int32_t left = -1;
    for (size_t i = 0; i < m->slot_count && m->link.state == MCPLINK_LINK_CONNECTED; i++) {
        if (m->slots[i].refused) {
            int32_t due = mcplink_priv_left(m->slots[i].due_ms, now);
            left = mcplink_priv_shorter(left, due > 0 ? due : 0);
        }
    }
    return left;
}

/* ---- receiving ----------------------------------------------------------- */

static size_t find_slot(const mcplink_mux *m, const mcplink_envelope *e)
{
    for (size_t i = 0; i < m->slot_count; i++) {
        if (mcplink_envelope_is(e->name, e->name_len, m->slots[i].name)) {
            return i;
        }
    }
    return MCPLINK_SLOT_UNKNOWN;
}

/* MCPLINK_OK: json, len and slot are for the application. MCPLINK_PENDING: it was a
 * refusal. */
static int open_envelope(mcplink_mux *m, size_t *slot, const char **json, size_t *len)
{
    mcplink_envelope envelope;
    mcplink_tunnel_error error;
    *slot = MCPLINK_SLOT_UNKNOWN;
    if (mcplink_envelope_decode(*json, *len, &envelope) != MCPLINK_OK) {
        m->bad_frames++;
        return MCPLINK_ERR_NOT_ENVELOPE;
    }
    *slot = find_slot(m, &envelope);
    *json = envelope.payload;
    *len = envelope.payload_len;
    if (*slot != MCPLINK_SLOT_UNKNOWN && mcplink_envelope_error(*json, *len, &error)) {
        refuse(m, &m->slots[*slot], &error);
        return MCPLINK_PENDING;
    }
    mcplink_link_accept(&m->link);
    return MCPLINK_OK;
}

int mcplink_mux_poll(mcplink_mux *m, size_t *slot, const char **json, size_t *len, int32_t timeout_ms)
{
    if (m == NULL || slot == NULL || json == NULL || len == NULL || m->slot_count == 0) {
        return MCPLINK_ERR_ARG;
    }
    uint32_t until = mcplink_priv_now(m->link.port) + (uint32_t)timeout_ms;
    int32_t wait = timeout_ms;
    for (;;) {
        int up = m->link.state == MCPLINK_LINK_CONNECTED;
        int err = register_due(m);
        if (err == MCPLINK_OK) {
            err = mcplink_link_poll(&m->link, json, len, mcplink_priv_shorter(wait, register_left(m)));
        }
        if (err == MCPLINK_OK) {
            err = open_envelope(m, slot, json, len);
        }
        if (timeout_ms >= 0) {
            wait = mcplink_priv_left(until, mcplink_priv_now(m->link.port));
        }
        int more = err == MCPLINK_PENDING && (timeout_ms < 0 || wait > 0 || m->link.ws.rd < m->link.ws.wr);
        int due = err == MCPLINK_ERR_TIMEOUT && up && register_left(m) == 0 && (timeout_ms < 0 || wait > 0);
        if (!more && !due) {
            return err == MCPLINK_PENDING ? MCPLINK_ERR_TIMEOUT : err;
        }
        if (timeout_ms >= 0 && wait < 0) {
            wait = 0;
        }
    }
}

void mcplink_mux_stop(mcplink_mux *m)
{
    if (m != NULL) {
        mcplink_link_stop(&m->link);
    }
}

int mcplink_mux_is_connected(const mcplink_mux *m)
{
    return m != NULL && m->link.state == MCPLINK_LINK_CONNECTED;
}

const char *mcplink_mux_detail(const mcplink_mux *m)
{
    return mcplink_link_detail(&m->link);
}

#else
typedef int mcplink_mux_left_out; /* a translation unit must not be empty */
#endif
