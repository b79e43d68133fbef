/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCH_H
#define HUTCH_HUTCH_H

/*
 * libhutch: run code in sandboxes from a C program. It works with Hutch and with any other server
 * of the OpenSandbox API.
 *
 *         struct hutch_call call = hutch_call_init();
 *         struct hutch_sandbox_options options = hutch_sandbox_options_init();
 *         struct hutch_command_options command = hutch_command_options_init();
 *         struct hutch_client *client;
 *         struct hutch_sandbox *sandbox;
 *         struct hutch_endpoint *agent;
 *         struct hutch_command_result *result;
 *
 *         hutch_client_new("http://localhost:8080", key, NULL, &client);
 *         options.image = "host";
 *         if (hutch_create_sandbox(client, &options, &sandbox, &call) < 0
 *             || hutch_wait_ready(client, sandbox->id, NULL, &call) < 0
 *             || hutch_discover_execd(client, sandbox->id, &agent, &call) < 0)
 *                 die(call.error.message);
 *         command.command = "uname -a";
 *         if (hutch_run_command(client, agent, &command, &result, &call) == 0)
 *                 fwrite(result->out, 1, result->out_n, stdout);
 *
 * The server creates and deletes sandboxes; lifecycle calls (hutch/lifecycle.h) go to it and name a
 * sandbox by its id. Inside each sandbox an agent, execd, runs commands and serves files; agent
 * calls (hutch/agent.h) name it by an endpoint, which hutch_discover_execd returns. An endpoint
 * carries the headers that grant access to the sandbox. They are sent with every agent call. The
 * API key is never sent to an agent, because code in the sandbox could read it there.
 *
 * Rules for all functions:
 *
 *  - Return values. 0, or a negative enum hutch_code; functions that count return the count. After
 *    a failure call->error has the details. `ret` is written only on success and may be NULL if
 *    the result is not needed. Free a result with the _free function of its type, which accepts
 *    NULL. Only the library allocates results, and newer versions append members: do not copy a
 *    result by value and do not rely on its sizeof.
 *
 *  - Options. A struct that the caller fills begins with `size` and is created by its _init
 *    function, which sets `size` and zeroes everything else. Zero selects the default of a member.
 *    This keeps old programs working with a newer library; a newer program that sets a member
 *    which an older library does not know gets HUTCH_UNSUPPORTED. Options are read before the
 *    function returns. Memory they point to may be released then too, unless a comment says
 *    otherwise. Structs without `size` (a pair, a source, an egress rule) never change.
 *
 *  - Text is UTF-8 and NUL-terminated. Times are milliseconds since 1970-01-01 UTC; 0 is "none".
 *
 *  - Threads. A client may be used by several threads at the same time. A loop, the calls on it,
 *    and a tunnel belong to one thread at a time.
 *
 *  - The library does not print, exit, abort when memory runs out, change signal handlers, or keep
 *    global state. It does not follow redirects: an API key is meant for one server.
 */

#include <hutch/call.h>
#include <hutch/lifecycle.h>
#include <hutch/agent.h>
#include <hutch/purista.h>

#endif
