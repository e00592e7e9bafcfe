#include "image_args.h"

#include <stddef.h>
#include <string.h>

/* Cuts the next word off the line. NULL at its end. */
static char *next_word(char **line)
{
    char *word = *line;
    char *end;

    while (*word == ' ') {
        word++;
    }
    if (*word == '\0') {
        return NULL;
    }
    end = word;
    while (*end != ' ' && *end != '\0') {
        end++;
    }
    *line = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

/* Returns 0, or -1 when word is no number up to max. */
static int parse_number(const char *word, uint32_t max, uint32_t *number)
{
    uint32_t n = 0;

    if (*word == '\0') {
        return -1;
    }
    for (; *word != '\0'; word++) {
        uint32_t digit = (uint32_t)(*word - '0');

        if (digit > 9 || n > (max - digit) / 10) {
            return -1;
        }
        n = n * 10 + digit;
    }
    *number = n;
    return 0;
}

static int *switch_of(image_args *args, const char *flag)
{
    if (strcmp(flag, "--aggregate") == 0) {
        return &args->aggregate;
    }
    if (strcmp(flag, "--multiplex") == 0) {
        return &args->multiplex;
    }
    return strcmp(flag, "--tls") == 0 ? &args->tls : NULL;
}

static const char **text_of(image_args *args, const char *flag)
{
    if (strcmp(flag, "--host") == 0) {
        return &args->host;
    }
    if (strcmp(flag, "--name") == 0) {
        return &args->name;
    }
    if (strcmp(flag, "--token") == 0) {
        return &args->token;
    }
    if (strcmp(flag, "--ca") == 0) {
        return &args->ca;
    }
    return strcmp(flag, "--verify-name") == 0 ? &args->verify_name : NULL;
}

static int set_number(image_args *args, const char *flag, const char *word)
{
    uint32_t port;

    if (strcmp(flag, "--retry-initial") == 0) {
        return parse_number(word, UINT32_MAX, &args->retry_initial);
    }
    if (strcmp(flag, "--retry-max") == 0) {
        return parse_number(word, UINT32_MAX, &args->retry_max);
    }
    if (strcmp(flag, "--send-timeout") == 0) {
        return parse_number(word, UINT32_MAX, &args->send_timeout);
    }
    if (strcmp(flag, "--port") != 0 || parse_number(word, UINT16_MAX, &port) != 0) {
        return -1;
    }
    args->port = (uint16_t)port;
    return 0;
}

const char *image_args_parse(image_args *args, char *line)
{
    const char *flag;

    memset(args, 0, sizeof *args);
    args->host = "10.0.2.2";
    args->name = "device";
    (void)next_word(&line); /* the program's name */
    while ((flag = next_word(&line)) != NULL) {
        int *on = switch_of(args, flag);
        const char **text = text_of(args, flag);
        const char *word;

        if (on != NULL) {
            *on = 1;
            continue;
        }
        word = next_word(&line);
        if (word == NULL) {
            return flag;
        }
        if (text != NULL) {
            *text = word;
        } else if (set_number(args, flag, word) != 0) {
            return flag;
        }
    }
    return NULL;
}
