/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_QUERY_H
#define HUTCH_API_QUERY_H

/*
 * Query parameters of a request, checked. What does not fit its description is answered with 422 and
 * its place, as for bodies: {"detail":[{"type":…,"loc":["query","pageSize"],"msg":…}]}.
 *
 * All return 1 if the parameter was there, 0 if it was not (*ret is as it was), and a negative value
 * after they have answered.
 */

#include "base/compiler.h"
#include "http/req.h"

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

/* Answers 422 about one parameter; type is for programs ("int_parsing"), msg for people. Returns a
 * negative value. */
int query_refuse(struct http_req *req, const char *name, const char *type, const char *msg);

#endif
