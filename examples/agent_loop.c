/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lets a model act in the sandbox of its user.
 *
 *         agent_loop USER
 *
 * The model is connected to standard input and output. It sends one action per line:
 *
 *         bash COMMAND
 *         write PATH TEXT
 *         read PATH
 *         destroy
 *
 * and receives a line with the outcome, followed by the output, indented. Each user has one sandbox.
 * It is kept until it is destroyed, so the next run for the same user continues in it.
 *
 * A command that fails does not end the program, and neither does a call that fails: the model reads
 * the error and tries something else.
 *
 * Environment: HUTCH_URL (default http://localhost:8080), HUTCH_API_KEY, HUTCH_IMAGE (default
 * "host").
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hutch/hutch.h>

#define COMMAND_MS 60000 /* a command of a model may never end */
#define OUTPUT_MAX 4096  /* bytes shown to the model, whose context is short */

struct agent {
        struct hutch_client *client;
        struct hutch_call call;
        const char *sandbox_id;
        bool destroyed;
};

static void print_indented(const char *bytes, size_t n)
{
        size_t printed = n < OUTPUT_MAX ? n : OUTPUT_MAX;
        bool line_start = true;

        for (size_t i = 0; i < printed; i++) {
                if (line_start)
                        printf("  ");
                putchar(bytes[i]);
                line_start = bytes[i] == '\n';
        }
        if (!line_start)
                putchar('\n');
        if (printed < n)
                printf("  (%zu more bytes)\n", n - printed);
}

static void print_error(const struct agent *a)
{
        printf("error: %s\n", a->call.error.message);
}

static void act_bash(struct agent *a, const char *command)
{
        struct hutch_bash bash = hutch_bash_init();
        struct hutch_command_result *result;

        bash.sandbox_id = a->sandbox_id;
        bash.command = command;
        bash.timeout_ms = COMMAND_MS;
        if (hutch_execute_bash(a->client, &bash, &result, &a->call) < 0) {
                print_error(a);
                return;
        }
        printf("exit %d%s\n", result->exit_code, result->timed_out ? ", timed out" : "");
        print_indented(result->out, result->out_n);
        print_indented(result->err, result->err_n);
        hutch_command_result_free(result);
}

static void act_write(struct agent *a, const char *arguments)
{
        struct hutch_file_upload file = hutch_file_upload_init();
        size_t n = strcspn(arguments, " ");
        char *path = strndup(arguments, n);
        const char *text = arguments + n + (arguments[n] != '\0');

        file.path = path;
        file.source.data = text;
        file.source.n = strlen(text);
        if (hutch_write_files(a->client, a->sandbox_id, &file, 1, &a->call) < 0)
                print_error(a);
        else
                printf("written\n");
        free(path);
}

static void act_read(struct agent *a, const char *path)
{
        struct hutch_data *file;

        if (hutch_read_file(a->client, a->sandbox_id, path, &file, &a->call) < 0) {
                print_error(a);
                return;
        }
        printf("%zu bytes\n", file->n);
        print_indented(file->data, file->n);
        hutch_data_free(file);
}

static void act_destroy(struct agent *a, const char *unused)
{
        (void) unused;
        if (hutch_destroy_sandbox(a->client, a->sandbox_id, &a->call) < 0) {
                print_error(a);
                return;
        }
        printf("destroyed\n");
        a->destroyed = true;
}

static const struct action {
        const char *name;
        void (*act)(struct agent *a, const char *arguments);
} actions[] = {
        { "bash", act_bash },
        { "write", act_write },
        { "read", act_read },
        { "destroy", act_destroy },
};

static void act(struct agent *a, char *line)
{
        char *arguments = strchr(line, ' ');

        if (arguments)
                *arguments++ = '\0';
        for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
                if (strcmp(actions[i].name, line) == 0) {
                        actions[i].act(a, arguments ? arguments : "");
                        return;
                }
        }
        printf("error: unknown action '%s'; use bash, write, read or destroy\n", line);
}

static void converse(struct agent *a)
{
        char *line = NULL;
        size_t size = 0;

        while (!a->destroyed && getline(&line, &size, stdin) > 0) {
                line[strcspn(line, "\n")] = '\0';
                act(a, line);
                fflush(stdout);
        }
        free(line);
}

int main(int argc, char **argv)
{
        const char *url = getenv("HUTCH_URL"), *image = getenv("HUTCH_IMAGE");
        struct agent a = { .call = hutch_call_init() };
        struct hutch_owner owner = { "example", "agent-loop", argc == 2 ? argv[1] : NULL, NULL,
                                     NULL };
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_ensured *sandbox = NULL;

        if (argc != 2) {
                fprintf(stderr, "usage: agent_loop USER\n");
                return 2;
        }
        if (hutch_client_new(url ? url : "http://localhost:8080", getenv("HUTCH_API_KEY"), NULL,
                             &a.client)
            < 0) {
                fprintf(stderr, "agent_loop: HUTCH_URL is not a valid URL\n");
                return 1;
        }
        options.image = image ? image : "host";
        options.owner = &owner;
        if (hutch_ensure_sandbox(a.client, &options, &sandbox, &a.call) < 0) {
                fprintf(stderr, "agent_loop: %s\n", a.call.error.message);
        } else {
                printf("%s\n", sandbox->created ? "new sandbox" : "existing sandbox");
                fflush(stdout);
                a.sandbox_id = sandbox->sandbox_id;
                converse(&a);
        }
        hutch_ensured_free(sandbox);
        hutch_client_free(a.client);
        return a.sandbox_id ? 0 : 1;
}
