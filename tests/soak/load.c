/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Create/destroy cycles of sandboxes, through libhutch, and beside them a floor.
 *
 *         soak_load SOCKET WORKERS CYCLES SECONDS STEPS NETWORK...
 *
 * WORKERS processes create one sandbox after the other, with each NETWORK in turn, and delete it, until there were
 * CYCLES of them or SECONDS have passed (0: no limit). In between are the STEPS:
 *
 *         x  a command, its output checked     w  write a file     r  read that file, and compare
 *
 * After every tenth of the cycles or of the time it prints three lines, for the part that has just ended: "errors N",
 * "cycle JSON" and "floor JSON" (bench/latency.h). The floor is fork and exec of true(1) by the same workers: it says
 * how busy the host was. An error ends a cycle, not the program; the first ones go to standard error.
 */

#include <err.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hutch/hutch.h>

#include "bench/latency.h"

#define FLOOR_EVERY 4 /* cycles */
#define PRINTED_MAX 5 /* errors of a worker */
#define PARTS       10

struct sample {
        uint64_t cycle_ns, floor_ns; /* 0: not measured */
        bool failed;
};

struct worker {
        struct hutch_client *client;
        struct hutch_call call;
        struct hutch_endpoint *agent;
        const char *steps;
        size_t number; /* of the cycle */
        unsigned printed;
};

/* --- one cycle --- */

/* Of what went wrong without an error of the library. */
static int mismatch(struct worker *w, const char *what, const char *got)
{
        (void) snprintf(w->call.error.message, sizeof(w->call.error.message), "%s: %s", what,
                        got ? got : "");
        return -1;
}

static int run_command(struct worker *w)
{
        struct hutch_command_options what = hutch_command_options_init();
        struct hutch_command_result *result;
        char command[64], expected[32];
        int r;

        (void) snprintf(command, sizeof(command), "echo %zu > f; cat f", w->number);
        (void) snprintf(expected, sizeof(expected), "%zu\n", w->number);
        what.command = command;
        if (hutch_run_command(w->client, w->agent, &what, &result, &w->call) < 0)
                return -1;
        r = result->exit_code == 0 && strcmp(result->out, expected) == 0
                    ? 0
                    : mismatch(w, "the command printed", result->out);
        hutch_command_result_free(result);
        return r;
}

#define FILE_PATH "/workspace/written"

static int write_file(struct worker *w)
{
        struct hutch_file_upload file = hutch_file_upload_init();

        file.path = FILE_PATH;
        file.source.data = &w->number;
        file.source.n = sizeof(w->number);
        return hutch_upload_files(w->client, w->agent, &file, 1, &w->call);
}

static int read_file(struct worker *w)
{
        struct hutch_download file = hutch_download_init();
        struct hutch_data *data;
        int r;

        file.path = FILE_PATH;
        if (hutch_download_file(w->client, w->agent, &file, &data, &w->call) < 0)
                return -1;
        r = data->n == sizeof(w->number) && memcmp(data->data, &w->number, data->n) == 0
                    ? 0
                    : mismatch(w, "the file has", data->data);
        hutch_data_free(data);
        return r;
}

static const struct {
        char letter;
        int (*run)(struct worker *w);
} steps[] = { { 'x', run_command }, { 'w', write_file }, { 'r', read_file } };

static int run_steps(struct worker *w)
{
        int r = 0;

        for (const char *at = w->steps; *at && r == 0; at++)
                for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
                        if (steps[i].letter == *at)
                                r = steps[i].run(w);
        return r;
}

static int run_cycle(struct worker *w, const char *network)
{
        const struct hutch_pair extension = { "hutch.network", network };
        const struct hutch_pair limits[] = { { "cpu", "1" }, { "memory", "512Mi" } };
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_sandbox *sandbox;
        struct hutch_error first;
        int r;

        options.image = "host";
        options.extensions = &extension;
        options.n_extensions = 1;
        options.resource_limits = limits;
        options.n_resource_limits = 2;
        if (hutch_create_sandbox(w->client, &options, &sandbox, &w->call) < 0)
                return -1;
        r = hutch_wait_ready(w->client, sandbox->id, NULL, &w->call);
        if (r == 0)
                r = hutch_discover_execd(w->client, sandbox->id, &w->agent, &w->call);
        if (r == 0) {
                r = run_steps(w);
                hutch_endpoint_free(w->agent);
        }
        first = w->call.error;
        if (hutch_delete_sandbox(w->client, sandbox->id, &w->call) < 0 && r == 0)
                r = -1;
        else
                w->call.error = first;
        hutch_sandbox_free(sandbox);
        return r;
}

/* --- a worker --- */

static uint64_t measure_floor(void)
{
        char *const argv[] = { (char[]){ "true" }, NULL };
        uint64_t begin = latency_now();
        posix_spawnattr_t attr;
        int status, r;
        pid_t pid;

        (void) posix_spawnattr_init(&attr);
        (void) posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
        r = posix_spawnp(&pid, argv[0], NULL, &attr, argv, environ);
        if (r != 0 || waitpid(pid, &status, 0) != pid || status != 0)
                errx(1, "true: %s", r ? strerror(r) : "it failed");
        (void) posix_spawnattr_destroy(&attr);
        return latency_now() - begin;
}

static void work(struct worker *w, char **networks, size_t cycles, uint64_t end, int out)
{
        size_t n_networks = 0;

        while (networks[n_networks])
                n_networks++;
        for (size_t i = 0; n_networks > 0 && i < cycles && (end == 0 || latency_now() < end); i++) {
                uint64_t begin = latency_now();
                struct sample s = { 0 };

                w->number = i;
                s.failed = run_cycle(w, networks[i % n_networks]) < 0;
                s.cycle_ns = latency_now() - begin;
                if (s.failed && w->printed++ < PRINTED_MAX)
                        warnx("%s", w->call.error.message);
                if (i % FLOOR_EVERY == 0)
                        s.floor_ns = measure_floor();
                if (write(out, &s, sizeof(s)) != sizeof(s))
                        err(1, "write");
        }
}

/* --- all of them --- */

static void print_part(size_t *errors, struct latency *cycle, struct latency *floor, double seconds)
{
        (void) printf("errors %zu\ncycle ", *errors);
        latency_print(cycle, seconds);
        (void) printf("floor ");
        latency_print(floor, seconds);
        (void) fflush(stdout);
        *errors = 0;
}

/* Until the last worker closes its end. */
static void collect(int in, size_t cycles, uint64_t seconds)
{
        struct latency cycle = { 0 }, floor = { 0 };
        uint64_t begin = latency_now(), part_began = begin, now;
        size_t n = 0, errors = 0, in_part = 0;
        unsigned part = 1;
        struct sample s;

        while (read(in, &s, sizeof(s)) == sizeof(s)) {
                n++;
                in_part++;
                errors += s.failed;
                if (!s.failed)
                        latency_add(&cycle, s.cycle_ns);
                if (s.floor_ns > 0)
                        latency_add(&floor, s.floor_ns);
                now = latency_now();
                if (part < PARTS
                    && (n * PARTS >= cycles * part
                        || (seconds > 0
                            && (now - begin) * PARTS >= seconds * 1000000000U * part))) {
                        print_part(&errors, &cycle, &floor, (double) (now - part_began) / 1e9);
                        part_began = now;
                        in_part = 0;
                        part++;
                }
        }
        if (in_part > 0)
                print_part(&errors, &cycle, &floor, (double) (latency_now() - part_began) / 1e9);
}

static void start_worker(char **argv, size_t cycles, uint64_t end, const int pipe_fds[2])
{
        struct hutch_client_options o = hutch_client_options_init();
        struct worker w = { .call = hutch_call_init(), .steps = argv[5] };
        pid_t pid = fork();

        if (pid < 0)
                err(1, "fork");
        if (pid > 0)
                return;
        (void) close(pipe_fds[0]);
        o.unix_socket = argv[1];
        if (hutch_client_new("http://localhost", NULL, &o, &w.client) < 0)
                errx(1, "no client");
        work(&w, argv + 6, cycles, end, pipe_fds[1]);
        hutch_client_free(w.client);
        exit(0);
}

int main(int argc, char **argv)
{
        size_t workers = argc > 6 ? strtoull(argv[2], NULL, 10) : 0, cycles, failed = 0;
        uint64_t seconds, end;
        int fds[2], status;

        if (workers == 0) {
                fputs("usage: soak_load SOCKET WORKERS CYCLES SECONDS STEPS NETWORK...\n", stderr);
                return 2;
        }
        cycles = strtoull(argv[3], NULL, 10);
        seconds = strtoull(argv[4], NULL, 10);
        end = seconds > 0 ? latency_now() + seconds * 1000000000U : 0;
        if (pipe(fds) < 0)
                err(1, "pipe");
        for (size_t i = 0; i < workers; i++)
                start_worker(argv, cycles / workers + (i < cycles % workers), end, fds);
        (void) close(fds[1]);
        collect(fds[0], cycles, seconds);
        while (wait(&status) > 0)
                failed += status != 0;
        return failed ? 1 : 0;
}
