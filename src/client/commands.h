/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_COMMANDS_H
#define HUTCH_CLIENT_COMMANDS_H

/* Commands: those that run to their end are in commands.c, all about the others in background.c. */

#include "client/error.h"
#include "client/op.h"

/* Where the result goes, and the call. */
struct run_call {
        struct hutch_command_result **ret;
        struct hutch_call *call;
};

#endif
