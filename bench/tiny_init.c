/* SPDX-License-Identifier: Apache-2.0 */

/* The first process of a sandbox that does nothing but say that it runs. */

#include <unistd.h>

int main(void)
{
        if (write(STDOUT_FILENO, "", 1) != 1)
                return 1;
        for (;;)
                (void) pause();
}
