/* One slot on its own socket. */
#include "mcplink/provider.h"

#include "internal.h"

/* The registration is only needed to join _all, and has to be the first frame. */
static int register_slot(mcplink_link *link)
{
    static const char text[] = MCPLINK_REGISTER_AGGREGATE;
    mcplink_provider *p = (mcplink_provider *)link;
    return p->aggregate ? mcplink_ws_send(&link->ws, text, sizeof text - 1) : MCPLINK_OK;
}

int mcplink_provider_init(mcplink_provider *p, const mcplink_port *port, const mcplink_provider_config *config)
{
    if (p == NULL || config == NULL) {
        return MCPLINK_ERR_ARG;
    }
    p->aggregate = config->aggregate != 0;
    return mcplink_link_init(&p->link, port, &config->link, config->prefix != NULL ? config->prefix : "/provider",
                             config->name != NULL ? config->name : "", register_slot);
}

int mcplink_provider_poll(mcplink_provider *p, const char **json, size_t *len, int32_t timeout_ms)
{
    int err = mcplink_link_poll(p != NULL ? &p->link : NULL, json, len, timeout_ms);
    if (err == MCPLINK_OK) {
        mcplink_link_accept(&p->link);
    }
    return err;
}

int mcplink_provider_send(mcplink_provider *p, const char *json, size_t len)
{
    return mcplink_link_send(p != NULL ? &p->link : NULL, json, len);
}

void mcplink_provider_stop(mcplink_provider *p)
{
    if (p != NULL) {
        mcplink_link_stop(&p->link);
    }
}

int mcplink_provider_is_connected(const mcplink_provider *p)
{
    return p != NULL && p->link.state == MCPLINK_LINK_CONNECTED;
}

const char *mcplink_provider_detail(const mcplink_provider *p)
{
    return mcplink_link_detail(&p->link);
}
