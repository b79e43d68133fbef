/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_COMMAND_STDIN_H
#define HUTCH_EXECD_COMMAND_STDIN_H

/*
 * The body of a request as standard input of a running command, as it arrives.
 *
 * The command must have been started with "stdin": true. Standard input stays open behind the body,
 * for further requests, unless ?close=true says that this was the last of it. Answered with 200 when
 * the pipe has taken everything; a command that does not read holds the client back. One request at
 * a time.
 */

#include "execd/command.h"

void command_stdin(struct http_req *req, struct command *c);

#endif
