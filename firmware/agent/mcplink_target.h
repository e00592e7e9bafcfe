/* Where a provider dials and as what, its texts copied: for callers whose own texts do
 * not outlive the call that brings them. */
#ifndef MCPLINK_TARGET_H
#define MCPLINK_TARGET_H

#include "mcplink/provider.h"

#define MCPLINK_TOKEN_MAX 255u /* bytes */

typedef struct mcplink_target {
    char host[MCPLINK_HOST_MAX + 1];
    char name[MCPLINK_NAME_MAX + 1];
    char header[sizeof "X-Provider-Token: \r\n" + MCPLINK_TOKEN_MAX];
} mcplink_target;

/* mcplink_target_set copies the texts into t and makes provider refer to the copies;
 * token is sent as X-Provider-Token, NULL = none. MCPLINK_OK; MCPLINK_ERR_ARG: there is
 * no host or no name; MCPLINK_ERR_TOO_LARGE. After an error provider is as it was. */
int mcplink_target_set(mcplink_target *t, mcplink_provider_config *provider, const char *host, const char *name,
                       const char *token);

#endif
