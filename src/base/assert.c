/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

/* Straight to the error stream: the log may be a part of what is broken. In a file of its own,
 * because libhutch has another one that prints nothing (src/client/bug.c). */
void assert_failed(const char *cond, const char *file, int line, const char *func)
{
        char text[512];
        int n = snprintf(text, sizeof(text), "hutch: bug: %s:%d: %s: '%s' does not hold\n", file,
                         line, func, cond);

        if (n > 0)
                (void) !write(STDERR_FILENO, text, MIN_OF((size_t) n, sizeof(text) - 1));
        abort();
}
