#include "mcplink_target.h"

#include <string.h>

/* put appends text at *at, which it moves behind it; what is left of cap, 0 when it
 * does not fit. */
static size_t put(char **at, size_t cap, const char *text)
{
    size_t len = strlen(text);

    if (len >= cap) {
        return 0;
    }
    memcpy(*at, text, len + 1);
    *at += len;
    return cap - len;
}

static int copy(char *to, size_t cap, const char *text) { return put(&to, cap, text) > 0; }

static int copy_header(char *to, size_t cap, const char *token)
{
    cap = put(&to, cap, "X-Provider-Token: ");
    cap = put(&to, cap, token);
    return put(&to, cap, "\r\n") > 0;
}

int mcplink_target_set(mcplink_target *t, mcplink_provider_config *provider, const char *host, const char *name,
                       const char *token)
{
    if (host == NULL || name == NULL) {
        return MCPLINK_ERR_ARG;
    }
    if (!copy(t->host, sizeof t->host, host) || !copy(t->name, sizeof t->name, name) ||
        (token != NULL && !copy_header(t->header, sizeof t->header, token))) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    provider->link.host = t->host;
    provider->name = t->name;
    provider->link.extra_headers = token != NULL ? t->header : NULL;
    return MCPLINK_OK;
}
