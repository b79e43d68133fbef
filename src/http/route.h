/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_ROUTE_H
#define HUTCH_HTTP_ROUTE_H

/*
 * Routes are data. An API is a prefix, a table of routes, and what its clients expect of errors
 * and identity:
 *
 *         static const struct http_route routes[] = {
 *                 { METHOD_GET, "/sandboxes/{id}", .scope = SCOPE_READ, .exec = sandbox_get },
 *                 { METHOD_POST, "/sandboxes", .scope = SCOPE_CREATE, HTTP_JSON(struct create,
 *                   create_fields), .exec = sandbox_create },
 *                 { METHOD_ANY, "/sandboxes/{id}/proxy/{port}/{rest...}", … },
 *         };
 *
 * A segment {name} takes one path segment, decoded into req->params in order; {name...} at the end
 * takes the rest of the path, byte for byte, slashes included, empty too. Fixed segments win over
 * {name}, {name} over {name...}; so the order in the table does not matter. A path that no API
 * knows is answered with 404, a known path with another method with 405 and Allow; HEAD is served
 * by GET's route, OPTIONS by the table itself. Which API a path belongs to is decided by the
 * longest prefix, of equal ones by who was added first, and that API shapes the error. Several APIs
 * may share a prefix, and one table may serve under several.
 *
 * An API may instead have hosts of its own (`claims`): it is asked first, and what it claims is
 * looked up among its routes and nowhere else.
 *
 * Scope 0 is forbidden: a route whose scope was forgotten is closed, not open. HTTP_SCOPE_PUBLIC
 * needs no identity. Any other scope is the API's own business: authorize is asked before a byte
 * of the body is read.
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

/* --- what a route says about itself, for the generated description; constants --- */

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
        const char *id;                      /* operationId: "createSandbox" */
        const char *summary;                 /* one line */
        const char *tag;                     /* group: "Sandboxes"; may be NULL */
        int status;                          /* of success */
        const char *response_name;           /* of the answer's schema: "Sandbox"; NULL: no body */
        const struct json_field *response;   /* its members; NULL: not JSON, see response_type */
        bool response_is_list;               /* an array of these */
        const char *response_type;           /* content type; NULL: application/json */
        const char *input_name;              /* of the body's schema; NULL: it gets none */
        const struct http_doc_param *params; /* besides those of the path; ends in a NULL name */
        const uint16_t *errors;              /* further statuses; ends in 0 */

        /* Append a JSON schema, where no field table describes the body or the response. */
        http_doc_schema_fn *add_input, *add_response;
};

struct http_route {
        enum http_method method;
        const char *pattern;
        uint32_t scope;
        unsigned names; /* what params[0] names, in the API's own terms; 0: nothing in particular */
        enum http_body_mode body;
        const struct json_field *fields; /* JSON */
        size_t input_size;               /* JSON: size of the struct; it starts zeroed */
        bool body_optional;              /* JSON: an empty body leaves the struct zeroed */
        uint64_t body_max;               /* 0: HTTP_BODY_MAX */
        bool lasting; /* takes as long as the client likes (event stream, proxy): see http_req_count */
        const struct http_doc *doc; /* NULL: is not described */
        http_exec_fn *exec;
};

#define HTTP_JSON(T, table) .body = HTTP_BODY_JSON, .fields = (table), .input_size = sizeof(T)

/* What the engine itself has to say about a request. */
struct http_problem {
        int status;
        const char *code;
        const char *message;
};

/* Writes the body of an error answer in the API's shape and returns its content type. */
typedef struct str http_shape_fn(struct http_req *req, const struct http_problem *p,
                                 struct buf *ret_body);

/* 0: go on (req->principal may be set). Else it has replied, and returns a negative value; or it holds the
 * request (http_req_hold, and a reference) and will reply, or call http_router_continue, later. */
typedef int http_authorize_fn(struct http_req *req, uint32_t scope);

/* May answer a request whose JSON body did not decode in the API's own way; NULL: 400. */
typedef void http_invalid_fn(struct http_req *req, const struct json_error *e);

/* Whether a request is this API's by its Host. Asked as soon as a head, or what could be read of it,
 * is there: method and path may be anything, headers may be missing. */
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

/* --- the compiled tables; used by the server --- */

struct http_router;

struct http_router *http_router_new(void);
void http_router_free(struct http_router *r);

/* -EINVAL for a pattern that can't be read or has more than HTTP_PARAMS_MAX parameters, -EEXIST for two routes of the same method and path;
 * both are bugs of the table and found by any test that starts the server. */
int http_router_add(struct http_router *r, const struct http_api *api) must_check;

/* Finds the route and runs authorization: called when the head is complete. Replies itself if the
 * request ends here. */
void http_router_head(struct http_router *r, struct http_req *req);

/* Only decides which API a path belongs to, for the shape of an error before routing. */
void http_router_find_api(const struct http_router *r, struct http_req *req);

/* The request's own route, whose authorization was left open: its body, then its exec. */
void http_router_continue(struct http_req *req);

/* Called when the body of a non-streaming route is complete. */
void http_router_body(struct http_req *req);

#endif
