#include "cli.h"

#include <stdio.h>
#include <string.h>

static void help(const char *about, const cli_flag *flags, size_t count)
{
    size_t i;

    printf("%s\n\n", about);
    for (i = 0; i < count; i++) {
        static const char *const values[] = {"", " TEXT", " N"};

        printf("  %s%s\n      %s\n", flags[i].name, values[flags[i].kind], flags[i].help);
    }
}

static const cli_flag *find(const cli_flag *flags, size_t count, const char *arg, size_t len)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (strlen(flags[i].name) == len && memcmp(flags[i].name, arg, len) == 0) {
            return &flags[i];
        }
    }
    return NULL;
}

static bool number(const cli_flag *flag, const char *text)
{
    uint64_t n = 0;
    const char *p;

    for (p = text; *p >= '0' && *p <= '9' && n <= UINT32_MAX; p++) {
        n = n * 10U + (uint64_t)(*p - '0');
    }
    if (p == text || *p != '\0' || n < flag->min || n > flag->max) {
        fprintf(stderr, "%s must be a number from %lu to %lu, not \"%s\"\n", flag->name, (unsigned long)flag->min,
                (unsigned long)flag->max, text);
        return false;
    }
    *(uint32_t *)flag->into = (uint32_t)n;
    return true;
}

static bool store(const cli_flag *flag, const char *value)
{
    if (flag->kind == CLI_NUMBER) {
        return number(flag, value);
    }
    *(const char **)flag->into = value;
    return true;
}

/* take handles the argument at *i, and the next one if it is its value. */
static bool take(const cli_flag *flags, size_t count, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    const char *value = strchr(arg, '=');
    const cli_flag *flag = find(flags, count, arg, value != NULL ? (size_t)(value - arg) : strlen(arg));

    if (flag == NULL) {
        fprintf(stderr, "unknown flag %s (see --help)\n", arg);
        return false;
    }
    if (flag->kind == CLI_SWITCH) {
        if (value != NULL) {
            fprintf(stderr, "%s takes no value\n", flag->name);
            return false;
        }
        *(bool *)flag->into = true;
        return true;
    }
    if (value != NULL) {
        return store(flag, value + 1);
    }
    if (*i + 1 == argc) {
        fprintf(stderr, "%s needs a value\n", flag->name);
        return false;
    }
    return store(flag, argv[++*i]);
}

cli_outcome cli_parse(const char *about, const cli_flag *flags, size_t count, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            help(about, flags, count);
            return CLI_HELP;
        }
        if (!take(flags, count, argc, argv, &i)) {
            return CLI_WRONG;
        }
    }
    return CLI_OK;
}
