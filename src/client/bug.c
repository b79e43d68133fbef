/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"

#include "base/banned.h"

/*
 * A broken invariant of ours, inside somebody else's program: it can't go on, but it does not write to
 * descriptors that are not its own. Stands in for base/assert.c in the library.
 */
void assert_failed(const char *cond, const char *file, int line, const char *func)
{
        (void) cond;
        (void) file;
        (void) line;
        (void) func;
        __builtin_trap();
}
