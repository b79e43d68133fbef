/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor of commands: posix_spawn(3) of a program that is waited for, again and again. glibc
 * makes it of vfork's relative, so nothing is copied. The program gets a session of its own, as a
 * command of the agent does: where the kernel schedules sessions against each other ("autogroup"),
 * programs that stay in ours would be measured under other rules on a busy host.
 *
 *         spawn_floor SECONDS PROGRAM [ARGUMENT]...
 */

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/latency.h"

static void run_once(char **argv, const posix_spawnattr_t *attr)
{
        pid_t pid;
        int status, r = posix_spawnp(&pid, argv[0], NULL, attr, argv, environ);

        if (r != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
                fprintf(stderr, "spawn_floor: %s: %s\n", argv[0], r ? strerror(r) : "it failed");
                exit(1);
        }
}

int main(int argc, char **argv)
{
        struct latency latency = { 0 };
        posix_spawnattr_t attr;
        uint64_t begin = latency_now(), end, now = begin;

        if (argc < 3) {
                fprintf(stderr, "usage: spawn_floor SECONDS PROGRAM [ARGUMENT]...\n");
                return 2;
        }
        (void) posix_spawnattr_init(&attr);
        (void) posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
        end = begin + strtoull(argv[1], NULL, 10) * 1000000000U;
        while (now < end) {
                uint64_t before = now;

                run_once(argv + 2, &attr);
                now = latency_now();
                latency_add(&latency, now - before);
        }
        latency_print(&latency, (double) (now - begin) / 1e9);
        return 0;
}
