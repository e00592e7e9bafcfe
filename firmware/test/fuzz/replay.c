/* Replays kept inputs through a fuzz target without a fuzzer: replay FILE... */
#include <stdio.h>

#include "fuzz_port.h"

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        return 1;
    }
    long size = ftell(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    rewind(f);
    size_t n = data != NULL ? fread(data, 1, (size_t)size, f) : 0;
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed += replay(argv[i]);
    }
    printf("%d inputs replayed\n", argc - 1);
    return failed == 0 ? 0 : 1;
}
