/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_QUERY_H
#define HUTCH_API_OPENSANDBOX_QUERY_H

/*
 * Query parameters, checked, and the pages of lists. An invalid parameter is answered with 422 and its location, as for
 * bodies: {"detail":[{"type":…,"loc":["query","pageSize"],"msg":…}]}.
 *
 * Functions return a negative value after they have replied.
 */

#include "base/json.h"
#include "http/req.h"
#include "service/service.h"

/* --- parameters: 1 if it was given, 0 if not (*ret keeps its value) --- */

struct query_int {
        const char *name;
        const char *alias; /* a second spelling, or NULL */
        int64_t lowest, highest;
};

int query_get_int(struct http_req *req, const struct query_int *what, int64_t *ret) must_check;

/* The first of that name. */
int query_get(struct http_req *req, const char *name, struct str *ret) must_check;

/* The next of that name; *rest starts as req->query. */
int query_get_each(struct http_req *req, struct str *rest, const char *name, struct str *ret)
        must_check;

/* --- lists --- */

/*
 *         ?state=Running&state=paused      any of these, in any case; an unknown state matches nothing
 *         ?metadata=a%3D1%26b%3D2          all of these: a query inside a query
 *         ?metadata=a%3D1&metadata=b%3D2   the same, one pair each
 *         ?page=2&pageSize=50              default 1 and 20; page_size is accepted, too
 *
 * Without a state the list has the live sandboxes, not the tombstones.
 */
#define LIST_PAGE_SIZE 20

struct list_query {
        struct registry_query registry; /* all but the tenant */
        int64_t page, page_size;
        bool nothing; /* only unknown states were given */
};

/* The views live as long as the request. */
int list_query_parse(struct http_req *req, struct list_query *ret) must_check;

/* page and pageSize alone. */
int list_query_page(struct http_req *req, int64_t *ret_page, int64_t *ret_size) must_check;

/* The set of states (STATE_SET), by the names of that table, in any case. */
int list_query_states(struct http_req *req, const struct enum_table *known, unsigned *ret,
                      bool *ret_nothing) must_check;

/* --- pages --- */

struct pagination {
        int64_t page, page_size, total_items, total_pages;
        bool has_next_page;
};

extern const struct json_field pagination_fields[];

struct pagination paginate(int64_t page, int64_t page_size, uint64_t total);

#endif
