/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creates a sandbox, runs a command in it, and deletes it.
 *
 *         first_sandbox [COMMAND]
 *
 * Exits with the status of the command. Environment: HUTCH_URL (default http://localhost:8080),
 * HUTCH_API_KEY (if the server requires one), HUTCH_IMAGE (default "host").
 */

#include <stdio.h>
#include <stdlib.h>

#include <hutch/hutch.h>

static const char *env_or(const char *name, const char *fallback)
{
        const char *value = getenv(name);

        return value ? value : fallback;
}

int main(int argc, char **argv)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_command_options command = hutch_command_options_init();
        struct hutch_client *client = NULL;
        struct hutch_sandbox *sandbox = NULL;
        struct hutch_endpoint *agent = NULL;
        struct hutch_command_result *result = NULL;
        int status = 1;

        if (hutch_client_new(env_or("HUTCH_URL", "http://localhost:8080"), getenv("HUTCH_API_KEY"),
                             NULL, &client)
            < 0) {
                fprintf(stderr, "first_sandbox: HUTCH_URL is not a valid URL\n");
                return 1;
        }

        options.image = env_or("HUTCH_IMAGE", "host");
        options.timeout = 300; /* seconds; the server deletes it then if we do not */
        command.command = argc > 1 ? argv[1] : "echo hello from $(uname -s)";

        if (hutch_create_sandbox(client, &options, &sandbox, &call) < 0
            || hutch_wait_ready(client, sandbox->id, NULL, &call) < 0
            || hutch_discover_execd(client, sandbox->id, &agent, &call) < 0
            || hutch_run_command(client, agent, &command, &result, &call) < 0) {
                fprintf(stderr, "first_sandbox: %s\n", call.error.message);
        } else {
                fwrite(result->out, 1, result->out_n, stdout);
                fwrite(result->err, 1, result->err_n, stderr);
                status = result->exit_code;
        }

        if (sandbox && hutch_delete_sandbox(client, sandbox->id, &call) < 0)
                fprintf(stderr, "first_sandbox: %s\n", call.error.message);
        hutch_command_result_free(result);
        hutch_endpoint_free(agent);
        hutch_sandbox_free(sandbox);
        hutch_client_free(client);
        return status;
}
