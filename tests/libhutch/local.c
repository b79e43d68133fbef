/* SPDX-License-Identifier: Apache-2.0 */
#include <hutch/hutch.h>
#include <stdio.h>

/* local SOCKET: a server at a unix socket, and an agent behind it whose endpoint is of the same host. */

#define CHECK(call, condition)                                                               \
        do {                                                                                 \
                if (!(condition)) {                                                          \
                        printf("# %s:%d: %s is false; last error: %s\n", __FILE__, __LINE__, \
                               #condition, (call).error.message);                            \
                        return 1;                                                            \
                }                                                                            \
        } while (0)

static int run(struct hutch_client *client)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_sandbox_options options = hutch_sandbox_options_init();
        struct hutch_command_options what = hutch_command_options_init();
        struct hutch_command_result *result;
        struct hutch_endpoint *agent;
        struct hutch_sandbox *sandbox;

        options.image = "scratch";
        CHECK(call, hutch_create_sandbox(client, &options, &sandbox, &call) == 0);
        CHECK(call, hutch_wait_ready(client, sandbox->id, NULL, &call) == 0);
        CHECK(call, hutch_discover_execd(client, sandbox->id, &agent, &call) == 0);
        CHECK(call, strncmp(agent->url, "http://localhost/", 17) == 0 && agent->port == 80);
        what.command = "echo here; exit 3";
        CHECK(call, hutch_run_command(client, agent, &what, &result, &call) == 0);
        CHECK(call, result->exit_code == 3 && strcmp(result->out, "here\n") == 0);
        CHECK(call, hutch_delete_sandbox(client, sandbox->id, &call) == 0);
        hutch_command_result_free(result);
        hutch_endpoint_free(agent);
        hutch_sandbox_free(sandbox);
        return 0;
}

int main(int argc, char **argv)
{
        struct hutch_client_options o = hutch_client_options_init();
        struct hutch_client *client;
        int failed = 1;

        o.unix_socket = argc > 1 ? argv[1] : "";
        printf("1..1\n");
        if (hutch_client_new("http://localhost", NULL, &o, &client) == 0) {
                failed = run(client);
                hutch_client_free(client);
        }
        printf("%s 1 - a server at a unix socket\n", failed ? "not ok" : "ok");
        return failed;
}
