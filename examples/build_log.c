/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A build in a sandbox, its log as it is written.
 *
 *         HUTCH_URL=... build_log SANDBOX-ID COMMAND [ENV=VALUE]...
 *
 * Each line is printed with the seconds since the start and the stream it came from, when it comes. ^C
 * ends the build: the command is attached to its call, so it dies when we hang up, and with it whatever
 * it has started. The exit status is that of the build, or 130 if it was ended.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <hutch/hutch.h>

#define ENV_MAX 32

struct log {
        struct timespec start;
        unsigned long lines;
};

static double seconds_since(const struct timespec *start)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) (now.tv_sec - start->tv_sec)
               + (double) (now.tv_nsec - start->tv_nsec) / 1e9;
}

/* Called by the library from inside hutch_run_command. */
static int on_output(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct log *log = data;

        while (n > 0) {
                const char *end = memchr(bytes, '\n', n);
                size_t line = end ? (size_t) (end - bytes) : n;
                size_t used = end ? line + 1 : line;

                printf("%7.2f %s %.*s\n", seconds_since(&log->start),
                       stream == HUTCH_STDERR ? "err" : "out", (int) line, bytes);
                log->lines++;
                bytes += used;
                n -= used;
        }
        fflush(stdout);
        return 0;
}

/* A descriptor that becomes readable at SIGINT, instead of the end of this process. */
static int interrupts(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        return signalfd(-1, &set, SFD_CLOEXEC);
}

static int build(struct hutch_client *client, const struct hutch_endpoint *agent,
                 const struct hutch_command_options *what, struct hutch_call *call)
{
        const struct log *log = what->data;
        struct hutch_command_result *ran = NULL;
        int r = hutch_run_command(client, agent, what, &ran, call);
        int status;

        if (r == HUTCH_CANCELED) {
                fprintf(stderr, "build_log: ended\n");
                return 130;
        }
        if (r < 0) {
                fprintf(stderr, "build_log: %s\n", call->error.message);
                return 1;
        }
        status = ran->exit_code;
        fprintf(stderr, "build_log: %lu lines, exit status %d%s%s\n", log->lines, status,
                ran->error ? ": " : "", ran->error ? ran->error : "");
        hutch_command_result_free(ran);
        return status;
}

int main(int argc, char **argv)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options what = hutch_command_options_init();
        struct hutch_pair env[ENV_MAX];
        struct hutch_client *client = NULL;
        struct hutch_endpoint *agent = NULL;
        struct log log = { .lines = 0 };
        int status = 1;

        if (argc < 3 || argc - 3 > ENV_MAX) {
                fprintf(stderr, "usage: build_log SANDBOX-ID COMMAND [ENV=VALUE]...\n");
                return 2;
        }
        for (int i = 3; i < argc; i++) {
                char *value = strchr(argv[i], '=');

                if (value)
                        *value++ = '\0';
                env[i - 3] = (struct hutch_pair){ argv[i], value ? value : "" };
        }
        what.command = argv[2];
        what.env = env;
        what.n_env = (size_t) (argc - 3);
        what.attached = true;
        what.output = on_output;
        what.data = &log;
        call.cancel_fd = interrupts();
        call.timeout_ms = -1; /* builds take their time */
        clock_gettime(CLOCK_MONOTONIC, &log.start);

        if (hutch_client_new(getenv("HUTCH_URL"), getenv("HUTCH_API_KEY"), NULL, &client) < 0)
                fprintf(stderr, "build_log: HUTCH_URL is no address of a server\n");
        else if (hutch_discover_execd(client, argv[1], &agent, &call) < 0)
                fprintf(stderr, "build_log: %s\n", call.error.message);
        else
                status = build(client, agent, &what, &call);
        hutch_endpoint_free(agent);
        hutch_client_free(client);
        close(call.cancel_fd);
        return status;
}
