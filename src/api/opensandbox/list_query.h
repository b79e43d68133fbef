/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_LIST_QUERY_H
#define HUTCH_API_OPENSANDBOX_LIST_QUERY_H

/*
 * What a list of sandboxes is asked for:
 *
 *         ?state=Running&state=paused      any of these, in any case; one that does not exist is
 *                                          the state of no sandbox
 *         ?metadata=a%3D1%26b%3D2          all of these: a query inside a query
 *         ?metadata=a%3D1&metadata=b%3D2   the same, one pair each
 *         ?page=2&pageSize=50              1 and 20 if they are not said; page_size, too
 *
 * Without a state the living are meant, without the tombstones.
 */

#include "http/req.h"
#include "service/service.h"

#define LIST_PAGE_SIZE 20

struct list_query {
        struct registry_query registry; /* all but the tenant */
        int64_t page, page_size;
        bool nothing; /* only states were asked for that do not exist */
};

/* page and pageSize; 1 and LIST_PAGE_SIZE if they are not said. A negative value: it has answered. */
int list_query_page(struct http_req *req, int64_t *ret_page, int64_t *ret_size) must_check;

/* A negative value: it has answered. The views live as long as the request. */
int list_query_parse(struct http_req *req, struct list_query *ret) must_check;

#endif
