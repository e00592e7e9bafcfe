/* Words for why TLS failed. Internal to the port. */
#ifndef MCPLINK_TLS_WORDS_H
#define MCPLINK_TLS_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* tls_words_certificate names the gravest of the MBEDTLS_X509_BADCERT_... flags. */
const char *tls_words_certificate(uint32_t flags, int self_signed);

/* tls_words_error describes an mbedTLS error code; out gets the text with its NUL. */
void tls_words_error(int error, char *out, size_t cap);

#endif
