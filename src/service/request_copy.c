/* SPDX-License-Identifier: Apache-2.0 */
#include "service/request_copy.h"

#include "base/base.h"
#include "base/secret.h"

/* Twice what a request may take: pieces are rounded up differently here and there. */
#define REQUEST_COPY_MAX (2 * ARENA_MAX_REQUEST)

int request_copy_init(struct request_copy *w, const struct create_request *from, struct err *e)
{
        *w = (struct request_copy){ 0 };
        arena_init(&w->arena, REQUEST_COPY_MAX);
        /* The table of requests names the secrets, too: what it copies is the whole. */
        if (json_copy_struct(create_fields, from, &w->arena, &w->request) == 0)
                return 0;
        request_copy_done(w);
        return err_set(e, ERR_TOO_LARGE, "the request does not fit into memory");
}

void request_copy_done(struct request_copy *w)
{
        arena_wipe(&w->arena);
        w->request = (struct create_request){ 0 };
}
