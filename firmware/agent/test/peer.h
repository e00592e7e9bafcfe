/* The other end for tests with threads: a WebSocket server on 127.0.0.1 that serves
 * one connection at a time. */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>

uint16_t peer_start(void); /* listens and returns its port */
void peer_stop(void);

/* Each waits, and ends the program after 20 seconds. */
void peer_await_connections(unsigned n); /* accepted since start */
void peer_await_texts(unsigned n);       /* received since start */

unsigned peer_connections(void);

/* peer_text returns the nth text, from 0. */
const char *peer_text(unsigned n);
#define PEER_TEXTS 64u
#define PEER_TEXT_SIZE 128u

void peer_send(const char *text); /* to the connection of now */
void peer_drop(void);             /* ends it without a goodbye */

#endif
