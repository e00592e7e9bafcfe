#include "agent_cases.h"
#include "mcplink_target.h"

static mcplink_target target;
static mcplink_provider_config provider;

static int set(const char *host, const char *name, const char *token)
{
    memset(&provider, 0, sizeof provider);
    return mcplink_target_set(&target, &provider, host, name, token);
}

/* The copies stand on their own. */
static void copies(void)
{
    char host[] = "broker.test", name[] = "pump-1", token[] = "secret";

    CHECK_INT(set(host, name, token), MCPLINK_OK);
    memset(host, 'x', sizeof host);
    memset(name, 'x', sizeof name);
    memset(token, 'x', sizeof token);
    CHECK_TEXT(provider.link.host, "broker.test");
    CHECK_TEXT(provider.name, "pump-1");
    CHECK_TEXT(provider.link.extra_headers, "X-Provider-Token: secret\r\n");
    CHECK_INT(set("h", "n", NULL), MCPLINK_OK);
    CHECK_TEXT(provider.link.host, "h");
    CHECK_TEXT(provider.name, "n");
    CHECK(provider.link.extra_headers == NULL);
}

static const char *repeated(size_t len)
{
    static char text[400];

    memset(text, 't', len);
    text[len] = '\0';
    return text;
}

/* What fits to the byte is whole; one more is refused and cut nowhere. */
static void limits(void)
{
    CHECK_INT(set(repeated(MCPLINK_HOST_MAX), "n", NULL), MCPLINK_OK);
    CHECK_INT(strlen(provider.link.host), MCPLINK_HOST_MAX);
    CHECK_INT(set(repeated(MCPLINK_HOST_MAX + 1), "n", NULL), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(set("h", repeated(MCPLINK_NAME_MAX), NULL), MCPLINK_OK);
    CHECK_INT(strlen(provider.name), MCPLINK_NAME_MAX);
    CHECK_INT(set("h", repeated(MCPLINK_NAME_MAX + 1), NULL), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(set("h", "n", repeated(MCPLINK_TOKEN_MAX)), MCPLINK_OK);
    CHECK_INT(strlen(provider.link.extra_headers), MCPLINK_TOKEN_MAX + 20);
    for (size_t over = 1; over <= 3; over++) {
        CHECK_INT(set("h", "n", repeated(MCPLINK_TOKEN_MAX + over)), MCPLINK_ERR_TOO_LARGE);
    }
    CHECK(provider.name == NULL);
    CHECK_INT(set(NULL, "n", NULL), MCPLINK_ERR_ARG);
    CHECK_INT(set("h", NULL, NULL), MCPLINK_ERR_ARG);
}

const test_case target_cases[] = {
    {"spec 04 7 target: texts are copied", copies},
    {"spec 04 7 target: limits", limits},
    {NULL, NULL},
};
