/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_ROUTE_H
#define HUTCH_HTTP_ROUTE_H

/*
 * Routes are data. An API is a prefix, a table of routes, its error format and its authorization:
 *
 *         static const struct http_route routes[] = {
 *                 { METHOD_GET, "/sandboxes/{id}", .scope = SCOPE_READ, .exec = sandbox_get },
 *                 { METHOD_POST, "/sandboxes", .scope = SCOPE_CREATE, HTTP_JSON(struct create,
 *                   create_fields), .exec = sandbox_create },
 *                 { METHOD_ANY, "/sandboxes/{id}/proxy/{port}/{rest...}", … },
 *         };
 *
 * {name} matches one path segment, decoded into req->params in order; {name...} at the end matches the
 * remainder of the path, raw, with slashes, possibly empty. Fixed segments win over {name}, {name}
 * over {name...}, so the order in the table does not matter. An unknown path is 404, a known path
 * with another method 405 with Allow. GET routes serve HEAD, the table itself serves OPTIONS. A path
 * belongs to the API with the longest matching prefix, the first one added if several match; that API
 * formats the errors. Several APIs may share a prefix, and one table may serve several prefixes.
 *
 * An API may instead have hosts of its own (`claims`): it is checked first, and the requests it claims
 * are matched with its routes only.
 *
 * Scope 0 is forbidden: a route without a scope is closed, not open. HTTP_SCOPE_PUBLIC needs no
 * identity. Any other scope is defined by the API, whose authorize runs before a byte of the body is
 * read.
 */

#include "base/json.h"
#include "http/req.h"

#define HTTP_SCOPE_PUBLIC (1u << 31)

enum http_body_mode {
        HTTP_BODY_IGNORE,  /* read and dropped, up to body_max; exec runs after it */
        HTTP_BODY_COLLECT, /* req->body; exec runs after it */
        HTTP_BODY_JSON,    /* req->input, by fields; exec runs after it */
        HTTP_BODY_STREAM,  /* exec runs after the head and calls http_body_start */
};

typedef void http_exec_fn(struct http_req *req);

/* --- documentation of a route, for the generated OpenAPI description; constants --- */

enum http_doc_type {
        HTTP_DOC_STRING,
        HTTP_DOC_INTEGER,
        HTTP_DOC_BOOLEAN,
        HTTP_DOC_STRINGS, /* may be repeated */
};

struct http_doc_param {
        const char *name;
        enum http_doc_type type;
        bool required;
        bool header; /* of the request; else of the query */
        const char *text;
};

struct http_route;
typedef void http_doc_schema_fn(struct buf *b, const struct http_route *route);

struct http_doc {
        const char *id;                    /* operationId: "createSandbox" */
        const char *summary;               /* one line */
        const char *tag;                   /* group: "Sandboxes"; may be NULL */
        int status;                        /* of success */
        const char *response_name;         /* of the response's schema: "Sandbox"; NULL: no body */
        const struct json_field *response; /* its members; NULL: not JSON, see response_type */
        bool response_is_list;             /* an array of these */
        const char *response_type;         /* content type; NULL: application/json */
        const char *input_name;            /* of the body's schema; NULL: none */
        const struct http_doc_param *params; /* besides those of the path; ends in a NULL name */
        const uint16_t *errors;              /* further statuses; ends in 0 */

        /* Append a JSON schema, where no field table describes the body or the response. */
        http_doc_schema_fn *add_input, *add_response;
};

struct http_route {
        enum http_method method;
        const char *pattern;
        uint32_t scope;
        enum http_body_mode body;
        const struct json_field *fields; /* JSON */
        size_t input_size;               /* JSON: size of the struct; it starts zeroed */
        bool body_optional;              /* JSON: an empty body leaves the struct zeroed */
        uint64_t body_max;               /* 0: HTTP_BODY_MAX */
        bool lasting; /* lasts as long as the client likes (event stream, proxy); see http_req_count */
        unsigned names; /* what params[0] names, in the API's own terms; 0: nothing in particular */
        const struct http_doc *doc; /* NULL: not documented */
        http_exec_fn *exec;
};

#define HTTP_JSON(T, table) .body = HTTP_BODY_JSON, .fields = (table), .input_size = sizeof(T)

/* An error response of the server itself. */
struct http_problem {
        int status;
        const char *code;
        const char *message;
};

/* Writes the body of an error in the API's format and returns its content type. */
typedef struct str http_shape_fn(struct http_req *req, const struct http_problem *p,
                                 struct buf *ret_body);

/* 0: permitted (req->principal may be set). Negative: it has replied; or it holds the request
 * (http_req_hold, and a reference) and will reply, or call http_router_continue, later. */
typedef int http_authorize_fn(struct http_req *req, uint32_t scope);

/* Responds to a request whose JSON body is invalid; NULL: 400. */
typedef void http_invalid_fn(struct http_req *req, const struct json_error *e);

/* Whether a request belongs to this API by its Host. Also called for a malformed head: method and path
 * may be anything, headers may be missing. */
typedef bool http_claims_fn(const struct http_req *req);

struct http_api {
        const char *name;
        const char *prefix; /* "" or "/v1": no slash at the end */
        const struct http_route *routes;
        size_t n_routes;
        http_shape_fn *shape; /* NULL: {"code":…,"message":…} */
        http_authorize_fn *authorize;
        http_invalid_fn *invalid;
        http_claims_fn *claims; /* NULL: by prefix alone */
};

/* --- compiled tables, for the server --- */

struct http_router;

struct http_router *http_router_new(void);
void http_router_free(struct http_router *r);

/* -EINVAL for a malformed pattern or more than HTTP_PARAMS_MAX parameters, -EEXIST for two routes of
 * the same method and path. Both are bugs in the table that any test which starts the server finds. */
int http_router_add(struct http_router *r, const struct http_api *api) must_check;

/* Called when the head is complete: finds the route and runs authorization. False: the request ends here,
 * and it has replied; or authorize holds the request. */
bool http_router_find(struct http_router *r, struct http_req *req) must_check;

/* Only sets req->api, for the format of an error before routing. */
void http_router_find_api(const struct http_router *r, struct http_req *req);

/* Continues a request that has a route and is permitted: its body, then its exec. */
void http_router_continue(struct http_req *req);

#endif
