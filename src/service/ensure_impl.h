/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_ENSURE_IMPL_H
#define HUTCH_SERVICE_ENSURE_IMPL_H

/* One service_ensure in progress: ensure.c. Its last step, git, is in ensure_git.c. */

#include "service/service_impl.h"

#define GIT_VARIABLES 4

struct ensure_op {
        struct list node; /* service->ensures */
        struct service *service;
        struct service_ensure *x;

        struct registry_lock lock;
        bool locked, renewing, over;
        struct deadline renew;
        struct deadline again; /* the next ping */
        unsigned pings, rounds;

        struct op *inner;       /* the step in progress; NULL: a deadline is waited for */
        struct sandbox *record; /* the driver's copy */
        struct json_pair git_env[GIT_VARIABLES];
        char git_socket[sizeof(((struct agent_git *) NULL)->socket)];
        union {
                struct registry_get get;
                struct service_create create;
                struct service_command command;
                struct service_await await;
                struct service_exec exec;
                struct service_git_credential git;
                struct agent_ping ping;
                struct driver_inspect inspect;
                struct nodes_find node;
                struct registry_fail_lost lose;
        } u;
        char remote_id[SANDBOX_ID_MAX + 1]; /* the sandbox of another node */

        int result; /* once it is over */
        struct err err;
};

/* Begins a step: `op` is part of e->u, which is zeroed. */
void ensure__step_begin(struct ensure_op *e, struct op *op, op_done_fn *done);

/* The first statement of every `done` of a step. False: it was stopped meanwhile, and is gone. */
bool ensure__step_done(struct ensure_op *e);

void ensure__end(struct ensure_op *e, int result, const struct err *err);

/* Sets up git, if requested, and ends. */
void ensure__set_git(struct ensure_op *e);

#endif
