#include "tls_certificate.h"

#include <string.h>

#define TAG_ADDRESS (MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_IP_ADDRESS)

int tls_certificate_has_address(const mbedtls_x509_crt *crt, const uint8_t *ip, size_t len)
{
    const mbedtls_x509_sequence *name = &crt->subject_alt_names;

    for (; name != NULL; name = name->next) {
        if (name->buf.tag == TAG_ADDRESS && name->buf.len == len && memcmp(name->buf.p, ip, len) == 0) {
            return 1;
        }
    }
    return 0;
}

int tls_certificate_is_self_signed(const mbedtls_x509_crt *crt)
{
    return crt->issuer_raw.len == crt->subject_raw.len &&
           memcmp(crt->issuer_raw.p, crt->subject_raw.p, crt->subject_raw.len) == 0;
}
