/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_CALL_H
#define HUTCH_API_CALL_H

/*
 * The adapter between an HTTP request and an asynchronous operation (net/op.h) of the service, the registry or the key
 * ring:
 *
 *         struct service_command *c = api_call_new(req, struct service_command, req.op, delete_done, 0);
 *
 *         if (!c)
 *                 return;
 *         c->caller = api_caller(req);
 *         c->id = req->params[0];
 *         service_delete(api_of(req)->service, c);
 *
 * The operation lives in the request's arena, and the request is held until `done` returns. `done` runs exactly once, from
 * the loop, and sends the response. A client that leaves cancels the operation; `done` still runs, and its response goes
 * nowhere. An operation that must go on without its client is detached.
 */

#include "api/api.h"

enum api_call_flags {
        API_CALL_DETACHED = 1 << 0, /* a client that leaves does not cancel it */
};

typedef void api_call_done_fn(struct http_req *req, void *operation, int result);

void *api_call__new(struct http_req *req, size_t size, api_call_done_fn *done, unsigned flags);

/* A zeroed T, whose first member is `op`, the operation's struct op. NULL if there is no memory: that was the response. */
#define api_call_new(req, T, op, done, flags)                                                    \
        ((T *) api_call__new((req), sizeof(T) + 0 * sizeof(char[offsetof(T, op) == 0 ? 1 : -1]), \
                             (done), (flags)))

#endif
