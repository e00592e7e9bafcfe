/* The command line of an image, by the flags of the host's provider tool. */
#ifndef IMAGE_ARGS_H
#define IMAGE_ARGS_H

#include <stdint.h>

#define IMAGE_LINE_MAX 512 /* bytes of the whole command line */

typedef struct image_args {
    const char *host;        /* --host, an IPv4 address; default the emulator's gateway */
    uint16_t port;           /* --port; required, except over a serial line */
    const char *name;        /* --name; default "device" */
    int aggregate;           /* --aggregate */
    int multiplex;           /* --multiplex: the slots <name> and <name>-b, the second never in _all */
    const char *token;       /* --token, or NULL */
    uint32_t retry_initial;  /* --retry-initial, ms; 0 = the library's default */
    uint32_t retry_max;      /* --retry-max, ms; 0 = the library's default */
    uint32_t send_timeout;   /* --send-timeout, ms; 0 = the library's default */
    int tls;                 /* --tls */
    const char *ca;          /* --ca: a PEM file of the host, or NULL */
    const char *verify_name; /* --verify-name: the name the certificate must have; NULL = host */
} image_args;

/* image_args_parse cuts line into words in place; args refers to them. Returns
 * NULL, or the word that is wrong. */
const char *image_args_parse(image_args *args, char *line);

#endif
