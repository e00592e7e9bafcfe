#include "tls_words.h"

#include <mbedtls/ssl.h>
#include <mbedtls/x509.h>
#include <string.h>

const char *tls_words_certificate(uint32_t flags, int self_signed)
{
    static const struct {
        uint32_t flag;
        const char *words;
    } table[] = {
        {MBEDTLS_X509_BADCERT_REVOKED, "certificate: revoked"},
        {MBEDTLS_X509_BADCERT_NOT_TRUSTED, "certificate: unknown authority"},
        {MBEDTLS_X509_BADCERT_CN_MISMATCH, "certificate: wrong name"},
        {MBEDTLS_X509_BADCERT_EXPIRED, "certificate: expired"},
        {MBEDTLS_X509_BADCERT_FUTURE, "certificate: not yet valid"},
        {MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK | MBEDTLS_X509_BADCERT_BAD_KEY,
         "certificate: weak algorithm or key"},
        {MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE | MBEDTLS_X509_BADCERT_NS_CERT_TYPE,
         "certificate: not for servers"},
    };

    if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0 && self_signed) {
        return "certificate: self-signed";
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if ((flags & table[i].flag) != 0) {
            return table[i].words;
        }
    }
    return "certificate: refused";
}

static const char *kind_of(int error)
{
    switch (error) {
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        return "the server refused with an alert";
    case MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION:
        return "no common TLS version";
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
    case MBEDTLS_ERR_SSL_BAD_HS_SERVER_HELLO:
        return "no TLS server, or none we understand";
    case MBEDTLS_ERR_SSL_ALLOC_FAILED:
        return "out of memory";
    default:
        return "handshake failed";
    }
}

void tls_words_error(int error, char *out, size_t cap)
{
    static const char digits[] = "0123456789abcdef";
    unsigned code = (unsigned)-error;
    const char *kind = kind_of(error);
    size_t len = strlen(kind);

    if (len + sizeof " (-0x1234)" > cap) {
        len = cap - sizeof " (-0x1234)";
    }
    memcpy(out, kind, len);
    memcpy(out + len, " (-0x", 5);
    len += 5;
    for (int shift = 12; shift >= 0; shift -= 4) {
        out[len++] = digits[code >> shift & 0xFu];
    }
    out[len++] = ')';
    out[len] = '\0';
}
