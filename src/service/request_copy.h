/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_REQUEST_COPY_H
#define HUTCH_SERVICE_REQUEST_COPY_H

/*
 * A copy of a create request that outlives the request: the client may be answered, or gone, long
 * before the driver has made what it wished for. It holds values of variables and credentials, as
 * the request does, and is wiped when it is freed.
 */

#include "model/create.h"

struct request_copy {
        struct arena arena;
        struct create_request request; /* all of it in the arena */
};

/* ERR_TOO_LARGE. The wish is empty then. */
int request_copy_init(struct request_copy *w, const struct create_request *from, struct err *e)
        must_check;

/* Wipes. Fine for an empty one. */
void request_copy_done(struct request_copy *w);

#endif
