/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What an agent does with a sandbox: act, look, act again.
 *
 *         HUTCH_URL=... agent_loop USER
 *
 * The model is at the other end of standard input and output. It says one action a line:
 *
 *         bash COMMAND
 *         write PATH TEXT
 *         read PATH
 *         destroy
 *
 * and is answered with what it will want to see: a line that says how it went, then the bytes that
 * belong to it, indented. Every user has a sandbox of his own, which is there again when he comes back,
 * unless he destroys it.
 *
 * A command that fails is no failure of this program: the model is told, and tries something else. Neither
 * is a call that fails; only a sandbox that can't be had ends the conversation.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hutch/hutch.h>

#define COMMAND_MS 60000 /* what a model starts may never end */
#define SHOWN      4096  /* and what it prints may be long; its own memory is short */

struct agent {
        struct hutch_client *client;
        struct hutch_call call;
        const char *sandbox;
        bool destroyed;
};

static void show(const char *bytes, size_t n)
{
        size_t shown = n < SHOWN ? n : SHOWN;
        bool begin = true;

        for (size_t i = 0; i < shown; i++) {
                if (begin)
                        printf("  ");
                putchar(bytes[i]);
                begin = bytes[i] == '\n';
        }
        if (!begin)
                putchar('\n');
        if (shown < n)
                printf("  (%zu bytes more)\n", n - shown);
}

static void act_bash(struct agent *a, const char *command)
{
        struct hutch_bash what = hutch_bash_init();
        struct hutch_command_result *ran;

        what.sandbox_id = a->sandbox;
        what.command = command;
        what.timeout_ms = COMMAND_MS;
        if (hutch_execute_bash(a->client, &what, &ran, &a->call) < 0) {
                printf("error: %s\n", a->call.error.message);
                return;
        }
        printf("exit %d%s\n", ran->exit_code, ran->timed_out ? ", it took too long" : "");
        show(ran->out, ran->out_n);
        show(ran->err, ran->err_n);
        hutch_command_result_free(ran);
}

static void act_write(struct agent *a, const char *rest)
{
        struct hutch_file_upload file = hutch_file_upload_init();
        size_t n = strcspn(rest, " ");
        char *path = strndup(rest, n);

        rest += rest[n] ? n + 1 : n;
        file.path = path;
        file.source.data = rest;
        file.source.n = strlen(rest);
        if (hutch_write_files(a->client, a->sandbox, &file, 1, &a->call) < 0)
                printf("error: %s\n", a->call.error.message);
        else
                printf("written\n");
        free(path);
}

static void act_read(struct agent *a, const char *path)
{
        struct hutch_data *data;

        if (hutch_read_file(a->client, a->sandbox, path, &data, &a->call) < 0) {
                printf("error: %s\n", a->call.error.message);
                return;
        }
        printf("%zu bytes\n", data->n);
        show(data->data, data->n);
        hutch_data_free(data);
}

static void act_destroy(struct agent *a, const char *nothing)
{
        (void) nothing;
        if (hutch_destroy_sandbox(a->client, a->sandbox, &a->call) < 0) {
                printf("error: %s\n", a->call.error.message);
                return;
        }
        printf("destroyed\n");
        a->destroyed = true;
}

static const struct action {
        const char *name;
        void (*act)(struct agent *a, const char *rest);
} actions[] = {
        { "bash", act_bash },
        { "write", act_write },
        { "read", act_read },
        { "destroy", act_destroy },
};

static void act(struct agent *a, char *line)
{
        char *rest = strchr(line, ' ');

        if (rest)
                *rest++ = '\0';
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
                if (strcmp(actions[i].name, line) == 0) {
                        actions[i].act(a, rest ? rest : line + strlen(line));
                        return;
                }
        }
        printf("error: there is no action '%s'; there are bash, write, read and destroy\n", line);
}

static void converse(struct agent *a)
{
        char *line = NULL;
        size_t room = 0;

        while (!a->destroyed && getline(&line, &room, stdin) > 0) {
                line[strcspn(line, "\n")] = '\0';
                act(a, line);
                fflush(stdout);
        }
        free(line);
}

int main(int argc, char **argv)
{
        struct agent a = { .call = hutch_call_init() };
        struct hutch_owner owner = { "example", "agent-loop", argc == 2 ? argv[1] : NULL, NULL,
                                     NULL };
        struct hutch_sandbox_options wish = hutch_sandbox_options_init();
        struct hutch_ensured *box = NULL;

        if (argc != 2) {
                fprintf(stderr, "usage: agent_loop USER\n");
                return 2;
        }
        if (hutch_client_new(getenv("HUTCH_URL"), getenv("HUTCH_API_KEY"), NULL, &a.client) < 0) {
                fprintf(stderr, "agent_loop: HUTCH_URL is no address of a server\n");
                return 1;
        }
        wish.image = "debian:12";
        wish.owner = &owner;
        if (hutch_ensure_sandbox(a.client, &wish, &box, &a.call) < 0) {
                fprintf(stderr, "agent_loop: %s\n", a.call.error.message);
        } else {
                printf("%s\n", box->created ? "a new sandbox" : "the sandbox of last time");
                fflush(stdout);
                a.sandbox = box->sandbox_id;
                converse(&a);
        }
        hutch_ensured_free(box);
        hutch_client_free(a.client);
        return a.sandbox ? 0 : 1;
}
