/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first sandbox: make one, run a command in it, remove it.
 *
 *         HUTCH_URL=http://localhost:8080 HUTCH_API_KEY=... first_sandbox [COMMAND]
 *
 * The exit status is that of the command.
 */

#include <stdio.h>
#include <stdlib.h>

#include <hutch/hutch.h>

/* Runs a command in a sandbox that is ready; its exit status. */
static int run(struct hutch_client *client, const char *id, const char *command)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_command_options what = hutch_command_options_init();
        struct hutch_command_result *ran = NULL;
        struct hutch_endpoint *agent = NULL;
        int status = 1;

        what.command = command;
        if (hutch_discover_execd(client, id, &agent, &call) < 0
            || hutch_run_command(client, agent, &what, &ran, &call) < 0) {
                fprintf(stderr, "first_sandbox: %s\n", call.error.message);
        } else {
                fwrite(ran->out, 1, ran->out_n, stdout);
                fwrite(ran->err, 1, ran->err_n, stderr);
                status = ran->exit_code;
        }
        hutch_command_result_free(ran);
        hutch_endpoint_free(agent);
        return status;
}

int main(int argc, char **argv)
{
        const char *url = getenv("HUTCH_URL");
        struct hutch_call call = hutch_call_init();
        struct hutch_sandbox_options wish = hutch_sandbox_options_init();
        struct hutch_client *client = NULL;
        struct hutch_sandbox *box = NULL;
        int status = 1;

        if (hutch_client_new(url ? url : "http://localhost:8080", getenv("HUTCH_API_KEY"), NULL,
                             &client)
            < 0) {
                fprintf(stderr, "first_sandbox: HUTCH_URL is no address of a server: %s\n", url);
                return 1;
        }

        wish.image = "debian:12";
        wish.timeout = 300; /* seconds, in case that we are not there to delete it */
        if (hutch_create_sandbox(client, &wish, &box, &call) < 0) {
                fprintf(stderr, "first_sandbox: %s\n", call.error.message);
        } else {
                if (hutch_wait_ready(client, box->id, NULL, &call) < 0)
                        fprintf(stderr, "first_sandbox: %s\n", call.error.message);
                else
                        status = run(client, box->id,
                                     argc > 1 ? argv[1] : "echo hello from $(uname -s)");
                if (hutch_delete_sandbox(client, box->id, &call) < 0)
                        fprintf(stderr, "first_sandbox: %s\n", call.error.message);
        }
        hutch_sandbox_free(box);
        hutch_client_free(client);
        return status;
}
