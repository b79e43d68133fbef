/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_COMMAND_H
#define HUTCH_API_OPENSANDBOX_COMMAND_H

/*
 * A request that is one command of the service on one sandbox, from the path's first parameter to
 * the answer. The request is held until the command is done; a client that leaves cancels it.
 */

#include "api/api.h"

struct command_kind {
        void (*start)(struct service *s, struct service_command *c);
        /* It is done. The record is there, unless it is gone by now. */
        void (*answer)(struct http_req *req, const struct service_command *c);
        /* The API's words for a wish that can't be and for a state that does not allow it; NULL:
         * the general ones. */
        const char *invalid, *conflict;
};

/* Of `wish` the members that the caller fills in are taken: expires, patch. */
void command_run(struct http_req *req, const struct command_kind *kind,
                 const struct service_command *wish);

#endif
