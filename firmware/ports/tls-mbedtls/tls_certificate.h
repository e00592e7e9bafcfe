/* Questions about a certificate that mbedTLS 2.28 does not answer. Internal to the
 * port. */
#ifndef MCPLINK_TLS_CERTIFICATE_H
#define MCPLINK_TLS_CERTIFICATE_H

#include <mbedtls/x509_crt.h>
#include <stddef.h>
#include <stdint.h>

/* tls_certificate_has_address tells whether the address (4 or 16 bytes) is among
 * the alternative names. The engine keeps those and compares DNS names only. */
int tls_certificate_has_address(const mbedtls_x509_crt *crt, const uint8_t *ip, size_t len);

/* tls_certificate_is_self_signed compares issuer and subject, not the signature. */
int tls_certificate_is_self_signed(const mbedtls_x509_crt *crt);

#endif
