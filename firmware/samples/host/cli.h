/* Command lines of the programs for this machine. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_kind { CLI_SWITCH, CLI_TEXT, CLI_NUMBER } cli_kind;

typedef struct cli_flag {
    const char *name; /* with its dashes */
    cli_kind kind;
    void *into; /* bool, const char * or uint32_t */
    uint32_t min, max; /* of a number */
    const char *help;
} cli_flag;

typedef enum cli_outcome { CLI_OK, CLI_HELP, CLI_WRONG } cli_outcome;

/* cli_parse takes the flags of argv, "--name value" or "--name=value". It prints
 * the help for --help, and what is wrong on standard error. */
cli_outcome cli_parse(const char *about, const cli_flag *flags, size_t count, int argc, char **argv);

#endif
