/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one mistake on purpose, the one that its argument names. A build with sanitizers
 * must catch each of them (test_sanitizers.py); no one else runs this.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hides a value from the compiler, which would see the mistake and warn or drop it. */
static void *volatile hidden_pointer;
static volatile int hidden_int;

static void heap_overflow(void)
{
        hidden_pointer = malloc(8);
        ((char *) hidden_pointer)[8 + hidden_int] = 1;
}

static void use_after_free(void)
{
        hidden_pointer = malloc(8);
        free(hidden_pointer);
        ((char *) hidden_pointer)[0] = 1; /* NOLINT(clang-analyzer-unix.Malloc): on purpose */
}

static void leak(void)
{
        hidden_pointer = malloc(8);
        hidden_pointer = NULL;
}

static void signed_overflow(void)
{
        hidden_int = INT_MAX;
        hidden_int = hidden_int + 1;
}

static void null_pointer(void)
{
        hidden_pointer = NULL;
        *(volatile char *) hidden_pointer = 1; /* cppcheck-suppress nullPointer ; on purpose */
}

static const struct {
        const char *name;
        void (*make)(void);
} mistakes[] = {
        { "heap-overflow", heap_overflow },
        { "use-after-free", use_after_free },
        { "leak", leak },
        { "signed-overflow", signed_overflow },
        { "null-pointer", null_pointer },
};

int main(int argc, char *argv[])
{
        for (size_t i = 0; argc == 2 && i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
                if (strcmp(argv[1], mistakes[i].name) == 0) {
                        mistakes[i].make();
                        return 0;
                }
        }
        (void) fprintf(stderr, "usage: canary MISTAKE\n");
        return 2;
}
