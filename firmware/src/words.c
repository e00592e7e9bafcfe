/* What the library says about a failure: every text of `detail`, in the order of
 * enum mcplink_frame_rule and, behind that, of enum mcplink_word. */
#include "internal.h"

const char *mcplink_priv_words(unsigned index)
{
#if MCPLINK_DETAILS
    static const char texts[] = "\0"
                                "reserved bit set\0"
                                "masked frame\0"
                                "reserved opcode\0"
                                "binary frame\0"
                                "stray continuation\0"
                                "interleaved message\0"
                                "long control frame\0"
                                "fragmented control frame\0"
                                "negative length\0"
                                "overlong length\0"
                                "message too large\0"
                                "short close payload\0"
                                "bad close code\0"
                                "not UTF-8\0"
                                /* configuration */
                                "no config\0"
                                "port incomplete\0"
                                "host invalid\0"
                                "host too long\0"
                                "path invalid\0"
                                "slot name is empty\0"
                                "slot name too long\0"
                                "receive buffer too small\0"
                                "extra headers invalid\0"
#if MCPLINK_MUX
                                "no slots\0"
                                "two slots have the same name\0"
#endif
                                /* handshake */
                                "HTTP 000\0"
                                "no Upgrade\0"
                                "no Connection\0"
                                "no Sec-WebSocket-Accept\0"
                                "wrong Sec-WebSocket-Accept\0"
                                "unasked subprotocol\0"
                                "unasked extension\0"
                                "HTTP answer too large\0"
                                "not HTTP/1.1\0"
                                "bad HTTP header\0"
                                /* traffic */
                                "no HTTP answer\0"
                                "send timed out\0"
                                "no entropy\0"
                                "no pong";
    return mcplink_priv_nth(texts, index);
#else
    (void)index;
    return "";
#endif
}

int mcplink_priv_word_error(unsigned word)
{
    if (word == 0) {
        return MCPLINK_OK;
    }
    if (word == MCPLINK_W_LONG_HOST || word == MCPLINK_W_LONG_NAME || word == MCPLINK_W_LONG_ANSWER) {
        return MCPLINK_ERR_TOO_LARGE;
    }
    if (word < MCPLINK_W_STATUS) {
        return MCPLINK_ERR_ARG;
    }
    if (word >= MCPLINK_W_NOT_HTTP) {
        return MCPLINK_ERR_PROTOCOL;
    }
    return word == MCPLINK_W_EXTENSION ? MCPLINK_ERR_UNSUPPORTED : MCPLINK_ERR_HANDSHAKE;
}
