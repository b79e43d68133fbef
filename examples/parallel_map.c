/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A command for each line of input, in several sandboxes at once, on one thread.
 *
 *         seq 1 100 | HUTCH_URL=... parallel_map N COMMAND
 *
 * The command has the line in $LINE. There are N sandboxes; each is made, takes one line after the other
 * until there are none, and is removed. What the commands print is printed in the order of the lines.
 * The exit status is 1 if any of them failed.
 *
 * Everything is a call on one loop. Each sandbox is a small state machine: when a call is done, `next`
 * starts the one that follows.
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
        const char *command;
        struct line *lines;
        size_t n, taken;
        bool failed;
};

enum state { CREATE, WAIT, DISCOVER, RUN, DELETE, GONE };

struct worker {
        struct map *map;
        struct hutch_call call;
        enum state state; /* of the call that runs */
        struct hutch_sandbox *box;
        struct hutch_endpoint *agent;
        struct hutch_command_result *ran;
        size_t line;
};

/* --- what follows what --- */

static int create(struct worker *w)
{
        struct hutch_sandbox_options wish = hutch_sandbox_options_init();

        wish.image = "debian:12";
        w->state = CREATE;
        return hutch_create_sandbox(w->map->client, &wish, &w->box, &w->call);
}

static int drop(struct worker *w)
{
        w->state = DELETE;
        return hutch_delete_sandbox(w->map->client, w->box->id, &w->call);
}

static int run(struct worker *w)
{
        struct map *m = w->map;
        struct hutch_command_options what = hutch_command_options_init();
        struct hutch_pair env = { "LINE", NULL };

        if (m->taken == m->n)
                return drop(w);
        w->state = RUN;
        w->line = m->taken++;
        env.value = m->lines[w->line].text;
        what.command = m->command;
        what.env = &env;
        what.n_env = 1;
        return hutch_run_command(m->client, w->agent, &what, &w->ran, &w->call);
}

static void keep(struct worker *w)
{
        struct line *l = &w->map->lines[w->line];

        l->output = strndup(w->ran->out, w->ran->out_n);
        l->failed = w->ran->exit_code != 0;
        hutch_command_result_free(w->ran);
        w->ran = NULL;
}

/* Starts what comes after the call that was done. */
static int next(struct worker *w)
{
        switch (w->state) {
        case CREATE:
                w->state = WAIT;
                return hutch_wait_ready(w->map->client, w->box->id, NULL, &w->call);
        case WAIT:
                w->state = DISCOVER;
                return hutch_discover_execd(w->map->client, w->box->id, &w->agent, &w->call);
        case RUN:
                keep(w);
                return run(w);
        case DISCOVER:
                return run(w);
        case DELETE:
        case GONE:
        default:
                w->state = GONE;
                return 0;
        }
}

static void on_done(struct hutch_call *call, int result)
{
        struct worker *w = call->data;

        if (result == 0)
                result = next(w);
        if (result == 0)
                return;
        /* Whatever went wrong: no sandbox is left behind, if it can be helped. */
        fprintf(stderr, "parallel_map: %s\n", call->error.message);
        w->map->failed = true;
        if (w->state == CREATE || w->state == DELETE || drop(w) < 0)
                w->state = GONE;
}

/* --- input and output --- */

static bool read_lines(struct map *m)
{
        char *text = NULL;
        size_t room = 0;

        while (getline(&text, &room, stdin) > 0) {
                struct line *more = realloc(m->lines, (m->n + 1) * sizeof(*more));

                if (!more)
                        return false;
                m->lines = more;
                text[strcspn(text, "\n")] = '\0';
                m->lines[m->n++] = (struct line){ .text = text };
                text = NULL; /* it is the list's now */
                room = 0;
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

static void map_all(struct map *m, size_t n_workers)
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
                hutch_sandbox_free(workers[i].box);
        }
        free(workers);
}

int main(int argc, char **argv)
{
        struct map m = { .command = argc == 3 ? argv[2] : NULL };
        size_t n_workers = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;

        if (n_workers == 0 || n_workers > 1000) {
                fprintf(stderr, "usage: parallel_map N COMMAND\n");
                return 2;
        }
        if (hutch_client_new(getenv("HUTCH_URL"), getenv("HUTCH_API_KEY"), NULL, &m.client) < 0
            || hutch_loop_new(NULL, &m.loop) < 0 || !read_lines(&m)) {
                fprintf(stderr,
                        "parallel_map: HUTCH_URL is no address of a server, or memory is short\n");
                m.failed = true;
        } else {
                map_all(&m, n_workers < m.n ? n_workers : m.n);
        }
        hutch_loop_free(m.loop);
        hutch_client_free(m.client);
        print_lines(&m);
        return m.failed ? 1 : 0;
}
