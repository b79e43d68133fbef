/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a build in an existing sandbox and prints its log as it is written.
 *
 *         build_log SANDBOX-ID COMMAND [NAME=VALUE]...
 *
 * Each line is printed with the seconds since the start and its stream. ^C cancels the build: the
 * command is attached to the call, so the agent kills it, and everything it has started, when the
 * call ends. Exits with the status of the build, or with 130 if it was canceled.
 *
 * Environment: HUTCH_URL (default http://localhost:8080), HUTCH_API_KEY.
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

/* A descriptor that becomes readable on SIGINT, which no longer kills this process. */
static int open_interrupts(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        return signalfd(-1, &set, SFD_CLOEXEC);
}

static int build(struct hutch_client *client, const struct hutch_endpoint *agent,
                 const struct hutch_command_options *options, struct hutch_call *call)
{
        const struct log *log = options->data;
        struct hutch_command_result *result = NULL;
        int r = hutch_run_command(client, agent, options, &result, call);
        int status;

        if (r == HUTCH_CANCELED) {
                fprintf(stderr, "build_log: canceled\n");
                return 130;
        }
        if (r < 0) {
                fprintf(stderr, "build_log: %s\n", call->error.message);
                return 1;
        }
        status = result->exit_code;
        fprintf(stderr, "build_log: %lu lines, exit status %d%s%s\n", log->lines, status,
                result->error ? ": " : "", result->error ? result->error : "");
        hutch_command_result_free(result);
        return status;
}

int main(int argc, char **argv)
{
        const char *url = getenv("HUTCH_URL");
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options options = hutch_command_options_init();
        struct hutch_pair env[ENV_MAX];
        struct hutch_client *client = NULL;
        struct hutch_endpoint *agent = NULL;
        struct log log = { .lines = 0 };
        int status = 1;

        if (argc < 3 || argc - 3 > ENV_MAX) {
                fprintf(stderr, "usage: build_log SANDBOX-ID COMMAND [NAME=VALUE]...\n");
                return 2;
        }
        for (int i = 3; i < argc; i++) {
                char *value = strchr(argv[i], '=');

                if (value)
                        *value++ = '\0';
                env[i - 3] = (struct hutch_pair){ argv[i], value ? value : "" };
        }
        options.command = argv[2];
        options.env = env;
        options.n_env = (size_t) (argc - 3);
        options.attached = true;
        options.output = on_output;
        options.data = &log;
        call.cancel_fd = open_interrupts();
        call.timeout_ms = -1; /* a build may take long */
        clock_gettime(CLOCK_MONOTONIC, &log.start);

        if (hutch_client_new(url ? url : "http://localhost:8080", getenv("HUTCH_API_KEY"), NULL,
                             &client)
            < 0)
                fprintf(stderr, "build_log: HUTCH_URL is not a valid URL\n");
        else if (hutch_discover_execd(client, argv[1], &agent, &call) < 0)
                fprintf(stderr, "build_log: %s\n", call.error.message);
        else
                status = build(client, agent, &options, &call);
        hutch_endpoint_free(agent);
        hutch_client_free(client);
        close(call.cancel_fd);
        return status;
}
