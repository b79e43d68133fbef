/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a command for each line of standard input, in several sandboxes at once, on one thread.
 *
 *         seq 1 100 | parallel_map N COMMAND
 *
 * The command finds its line in $LINE. Each of the N sandboxes is created, runs the command for one
 * line after the other until none is left, and is deleted. Output is printed in the order of the
 * lines. Exits with 1 if a command failed.
 *
 * All calls run on one loop. Each sandbox is a small state machine: when a call is done, start_next
 * starts the one that follows.
 *
 * Environment: HUTCH_URL (default http://localhost:8080), HUTCH_API_KEY, HUTCH_IMAGE (default
 * "host").
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hutch/hutch.h>

struct line {
        char *text;
        char *output;
        bool failed;
};

struct map {
        struct hutch_client *client;
        struct hutch_loop *loop;
        const char *image, *command;
        struct line *lines;
        size_t n, taken;
        bool failed;
};

enum state { CREATE, WAIT, DISCOVER, RUN, DELETE, DONE };

struct worker {
        struct map *map;
        struct hutch_call call;
        enum state state; /* of the call that runs */
        struct hutch_sandbox *sandbox;
        struct hutch_endpoint *agent;
        struct hutch_command_result *result;
        size_t line;
};

/* --- the state machine --- */

static int create(struct worker *w)
{
        struct hutch_sandbox_options options = hutch_sandbox_options_init();

        options.image = w->map->image;
        w->state = CREATE;
        return hutch_create_sandbox(w->map->client, &options, &w->sandbox, &w->call);
}

static int delete (struct worker *w)
{
        w->state = DELETE;
        return hutch_delete_sandbox(w->map->client, w->sandbox->id, &w->call);
}

static int run_line(struct worker *w)
{
        struct map *m = w->map;
        struct hutch_command_options options = hutch_command_options_init();
        struct hutch_pair env = { "LINE", NULL };

        if (m->taken == m->n)
                return delete (w);
        w->state = RUN;
        w->line = m->taken++;
        env.value = m->lines[w->line].text;
        options.command = m->command;
        options.env = &env;
        options.n_env = 1;
        return hutch_run_command(m->client, w->agent, &options, &w->result, &w->call);
}

static void save_output(struct worker *w)
{
        struct line *l = &w->map->lines[w->line];

        l->output = strndup(w->result->out, w->result->out_n);
        l->failed = w->result->exit_code != 0;
        hutch_command_result_free(w->result);
        w->result = NULL;
}

static int start_next(struct worker *w)
{
        switch (w->state) {
        case CREATE:
                w->state = WAIT;
                return hutch_wait_ready(w->map->client, w->sandbox->id, NULL, &w->call);
        case WAIT:
                w->state = DISCOVER;
                return hutch_discover_execd(w->map->client, w->sandbox->id, &w->agent, &w->call);
        case RUN:
                save_output(w);
                return run_line(w);
        case DISCOVER:
                return run_line(w);
        case DELETE:
        case DONE:
        default:
                w->state = DONE;
                return 0;
        }
}

static void on_done(struct hutch_call *call, int result)
{
        struct worker *w = call->data;

        if (result == 0)
                result = start_next(w);
        if (result == 0)
                return;
        fprintf(stderr, "parallel_map: %s\n", call->error.message);
        w->map->failed = true;
        /* Do not leave a sandbox behind. */
        if (w->state == CREATE || w->state == DELETE || delete (w) < 0)
                w->state = DONE;
}

/* --- input and output --- */

static bool read_lines(struct map *m)
{
        char *text = NULL;
        size_t size = 0;

        while (getline(&text, &size, stdin) > 0) {
                struct line *lines = realloc(m->lines, (m->n + 1) * sizeof(*lines));

                if (!lines)
                        return false;
                m->lines = lines;
                text[strcspn(text, "\n")] = '\0';
                m->lines[m->n++] = (struct line){ .text = text };
                text = NULL; /* owned by the list now */
                size = 0;
        }
        free(text);
        return true;
}

static void print_lines(struct map *m)
{
        for (size_t i = 0; i < m->n; i++) {
                struct line *l = &m->lines[i];

                fputs(l->output ? l->output : "", stdout);
                m->failed = m->failed || !l->output || l->failed;
                free(l->output);
                free(l->text);
        }
        free(m->lines);
}

static void map_lines(struct map *m, size_t n_workers)
{
        struct worker *workers = calloc(n_workers, sizeof(*workers));

        for (size_t i = 0; workers && i < n_workers; i++) {
                struct worker *w = &workers[i];

                w->map = m;
                w->call = hutch_call_init();
                w->call.loop = m->loop;
                w->call.done = on_done;
                w->call.data = w;
                if (create(w) < 0) {
                        fprintf(stderr, "parallel_map: %s\n", w->call.error.message);
                        m->failed = true;
                }
        }
        hutch_loop_run(m->loop, -1); /* until no call is left */
        for (size_t i = 0; workers && i < n_workers; i++) {
                hutch_endpoint_free(workers[i].agent);
                hutch_sandbox_free(workers[i].sandbox);
        }
        free(workers);
}

int main(int argc, char **argv)
{
        const char *url = getenv("HUTCH_URL"), *image = getenv("HUTCH_IMAGE");
        struct map m = { .image = image ? image : "host", .command = argc == 3 ? argv[2] : NULL };
        size_t n_workers = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;

        if (n_workers == 0 || n_workers > 1000) {
                fprintf(stderr, "usage: parallel_map N COMMAND\n");
                return 2;
        }
        if (hutch_client_new(url ? url : "http://localhost:8080", getenv("HUTCH_API_KEY"), NULL,
                             &m.client)
                    < 0
            || hutch_loop_new(NULL, &m.loop) < 0 || !read_lines(&m)) {
                fprintf(stderr, "parallel_map: HUTCH_URL is not a valid URL, or out of memory\n");
                m.failed = true;
        } else {
                map_lines(&m, n_workers < m.n ? n_workers : m.n);
        }
        hutch_loop_free(m.loop);
        hutch_client_free(m.client);
        print_lines(&m);
        return m.failed ? 1 : 0;
}
