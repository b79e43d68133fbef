/* SPDX-License-Identifier: Apache-2.0 */

/* The first process of a floor sandbox: writes a byte when it runs, and then runs a command for each byte that it
 * reads. The minimum of what an agent does. */

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY 4 /* of the agent that it stands for; closed where there is none */

static void run_command(void)
{
        static char bash[] = "bash", flag[] = "-c", text[] = "echo hutch-was-here",
                    path[] = "PATH=/bin";
        char *const argv[] = { bash, flag, text, NULL }, *const env[] = { path, NULL };
        pid_t pid;

        if (posix_spawn(&pid, "/bin/bash", NULL, NULL, argv, env) == 0)
                (void) waitpid(pid, NULL, 0);
}

int main(void)
{
        char byte;

        if (write(STDOUT_FILENO, "", 1) != 1)
                return 1;
        (void) !write(READY, "", 1);
        (void) close(READY);
        while (read(STDIN_FILENO, &byte, 1) == 1)
                run_command();
        for (;;)
                (void) pause();
}
