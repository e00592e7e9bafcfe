/* A port whose peer is a script: what the server sends is written by hand, the
 * clock only moves when somebody waits, randomness is a fixed sequence, and the
 * stream can pause before any byte. */
#ifndef FAKE_H
#define FAKE_H

#include "test.h"

#define FAKE_IN 4096u
#define FAKE_OUT 4096u

typedef struct fake {
    mcplink_port port;
    uint32_t now;

    /* Server to client. head answers the request, `@` in it being the right
     * accept value; script follows at every open. */
    const char *head;
    uint8_t script[2048];
    size_t script_len;
    uint8_t in[FAKE_IN];
    size_t in_len, in_pos;
    size_t pause_at;      /* recv times out once before this byte of in; SIZE_MAX = never */
    size_t chunk;         /* at most so many bytes per recv; 0 = all there is */
    uint32_t ms_per_recv; /* how long a successful recv takes */
    int end;              /* what recv returns when in is used up: TIMEOUT, CLOSED, ... */

    /* Client to server: the request and the frames behind it. */
    uint8_t out[FAKE_OUT];
    size_t out_len, out_pos;
    char host[256];
    uint16_t host_port;
    int tls;
    int32_t open_timeout, recv_timeout, send_timeout;

    int open_error;       /* what open returns */
    uint32_t open_ms;     /* how long it takes when it may block */
    int send_error;       /* what send returns, once sends reaches send_fail_at */
    unsigned send_fail_at;
    uint32_t send_ms;     /* how long a send takes */
    unsigned entropy;     /* draws left; UINT_MAX-like large = plenty */
    uint32_t seed;
    int fixed_random;     /* -1, or every random byte */

    unsigned opens, closes, sends, sleeps, recvs;
    uint32_t slept;
    int is_open;
} fake;

extern fake net;              /* the one fake, too large for a small stack */
extern uint8_t rx[1024];      /* its receive buffer */

void fake_reset(void);

/* Append to the script of every connection, or to the stream of this one. */
void fake_script(const void *bytes, size_t len);
void fake_script_frame(unsigned first, const char *payload, size_t len);
void fake_push(const void *bytes, size_t len);
void fake_push_frame(unsigned first, const char *payload, size_t len);
void fake_push_text(const char *text);
void fake_push_close(unsigned code, const char *reason);
void fake_script_close(unsigned code, const char *reason);

/* The request as text, NUL-terminated. */
const char *fake_request(void);

/* The next frame the client sent: its opcode, -1 when there is none, -2 when its
 * header breaks a rule. The payload is unmasked, in frame_payload, with a NUL. */
int fake_frame(void);
extern char frame_payload[2048];
extern size_t frame_len;
extern uint8_t frame_mask[4];

/* Events of a link, newest last. Texts are copied. */
typedef struct seen_event {
    mcplink_event e;
    char reason[160], detail[MCPLINK_DETAIL_SIZE], slot[80];
    unsigned sleeps; /* of the port when it came */
} seen_event;
#define SEEN_MAX 8
extern seen_event seen[SEEN_MAX];
extern unsigned seen_count; /* also beyond SEEN_MAX; seen[] then holds the first ones */
void fake_on_event(void *user, const mcplink_event *event);

mcplink_ws_config fake_ws_config(void);
mcplink_link_config fake_link_config(void);

#endif
