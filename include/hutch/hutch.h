/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCH_H
#define HUTCH_HUTCH_H

/*
 * libhutch: sandboxes from a C program. For Hutch, and for every other server of the OpenSandbox API.
 *
 *         struct hutch_call call = hutch_call_init();
 *         struct hutch_sandbox_options wish = hutch_sandbox_options_init();
 *         struct hutch_command_options what = hutch_command_options_init();
 *         struct hutch_client *client;
 *         struct hutch_sandbox *box;
 *         struct hutch_endpoint *agent;
 *         struct hutch_command_result *ran;
 *
 *         hutch_client_new("http://localhost:8080", key, NULL, &client);
 *         wish.image = "host";
 *         if (hutch_create_sandbox(client, &wish, &box, &call) < 0
 *             || hutch_wait_ready(client, box->id, NULL, &call) < 0
 *             || hutch_discover_execd(client, box->id, &agent, &call) < 0)
 *                 die(call.error.message);
 *         what.command = "uname -a";
 *         if (hutch_run_command(client, agent, &what, &ran, &call) == 0)
 *                 fwrite(ran->out, 1, ran->out_n, stdout);
 *
 * A server makes and keeps sandboxes (the *lifecycle* calls, which name one by its id); in each of
 * them an agent runs commands and has the files. A call to the agent names it by its endpoint, which
 * hutch_discover_execd finds. Endpoints carry headers that open the way, and these are sent with every
 * call to the agent; the API key never is: what runs in a sandbox must not learn it.
 *
 * Rules that hold everywhere:
 *
 *  - A function returns 0 or a negative enum hutch_code; those that count return the number. What is
 *    to know about a failure is in call->error. `ret` is written only on success, may be NULL if the
 *    result is of no interest, and what it gets is freed by the one _free of its type, which takes
 *    NULL. Results are made by the library only, so they may grow at their end: never copy one by
 *    value or rely on sizeof.
 *  - Structs that you fill begin with `size`, and are made by their _init function, which sets that
 *    and zeroes the rest. Zero means "as usual" in every member. So a program that was compiled with
 *    an older header works with a newer library; with an older library, a newer program gets
 *    HUTCH_UNSUPPORTED if it uses what that library does not know. They are read in the starting call
 *    and not needed after it, except what they point to where it is said. Structs without `size`
 *    that you fill (a pair, a source, a rule …) will never change.
 *  - Texts are UTF-8 and end in NUL. Times are milliseconds since 1970, UTC; 0 means none.
 *  - The library never prints, never exits, never aborts for want of memory, changes no signal and
 *    has no global state. A client may be used by several threads at once. A loop, and the calls on
 *    it, belong to one thread at a time; so does a tunnel.
 *  - Redirects are not followed: a key is for one server.
 */

#include <hutch/call.h>
#include <hutch/lifecycle.h>
#include <hutch/agent.h>
#include <hutch/purista.h>

#endif
