/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/libhutch/scenario.h"

/* usage: scenario URL KEY IMAGE [hutch] [admin] [several] */

char *world_output(struct world *w, const char *command)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result = NULL;
        char *text = NULL;

        o.command = command;
        if (hutch_run_command(w->client, w->agent, &o, &result, &w->call) == 0
            && result->exit_code == 0)
                text = strdup(result->out);
        else
                printf("# '%s' failed: %s%s\n", command, w->call.error.message,
                       result ? result->err : "");
        w->failed = w->failed || !text;
        hutch_command_result_free(result);
        return text;
}

bool world_put(struct world *w, const char *path, const char *text)
{
        struct hutch_file_upload f = hutch_file_upload_init();

        f.path = path;
        f.source.data = text;
        f.source.n = strlen(text);
        return hutch_upload_files(w->client, w->agent, &f, 1, &w->call) == 0;
}

static const struct step *const parts[] = { sandbox_steps, command_steps, file_steps, async_steps,
                                            last_steps };

static size_t count(void)
{
        size_t n = 0;

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                for (const struct step *s = parts[i]; s->name; s++)
                        n++;
        return n;
}

static bool run_step(struct world *w, const struct step *s, size_t number)
{
        unsigned lacks = s->needs & ~w->has;

        if (lacks) {
                printf("ok %zu - %s # SKIP the server has %s\n", number, s->name,
                       lacks & NEEDS_SEVERAL ? "one sandbox at a time" : "no such routes");
                return true;
        }
        w->failed = false;
        w->call = hutch_call_init();
        s->run(w);
        printf("%s %zu - %s\n", w->failed ? "not ok" : "ok", number, s->name);
        (void) fflush(stdout);
        return !w->failed;
}

int main(int argc, char **argv)
{
        struct world w = { .call = hutch_call_init() };
        size_t number = 0, failed = 0;

        if (argc < 4)
                return 2;
        w.url = argv[1];
        w.key = argv[2];
        w.image = argv[3];
        for (int i = 4; i < argc; i++)
                w.has |= strcmp(argv[i], "hutch") == 0     ? NEEDS_HUTCH
                         : strcmp(argv[i], "admin") == 0   ? NEEDS_ADMIN
                         : strcmp(argv[i], "several") == 0 ? NEEDS_SEVERAL
                                                           : 0;
        if (hutch_client_new(w.url, w.key, NULL, &w.client) < 0)
                return 2;
        printf("1..%zu\n", count());
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                for (const struct step *s = parts[i]; s->name; s++)
                        failed += !run_step(&w, s, ++number);
        hutch_endpoint_free(w.agent);
        hutch_sandbox_free(w.sandbox);
        hutch_client_free(w.client);
        return failed ? 1 : 0;
}
