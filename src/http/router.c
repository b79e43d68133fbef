/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/route.h"
#include "http/transport.h"
#include "http/url.h"

/*
 * The routes of all APIs are one tree of path segments. A lookup walks it segment by segment: fixed names
 * first, then {param}, then {rest...}. A branch without a match is abandoned, so a lookup is bounded by
 * the depth of the tree, not by the number of routes.
 */

struct target {
        const struct http_route *route;
        const struct http_api *api;
};

struct node {
        struct str segment; /* fixed children */
        struct node *next;  /* sibling */
        struct node *children;
        struct node *param;
        struct node *rest;
        bool has_routes;
        struct target targets[METHOD_MAX_];
};

/* The routes of an API that claims its own hosts. */
struct vhost {
        const struct http_api *api;
        struct node root;
        struct vhost *next;
};

struct http_router {
        struct node root;
        struct vhost *vhosts;
        const struct http_api **apis;
        size_t n_apis;
};

#define SEGMENTS_MAX 64 /* deeper than any route: such a path matches none */

struct match {
        enum http_method method;
        struct str params[HTTP_PARAMS_MAX];
        size_t n_params;
        const struct target *found;
        const struct node *other_method; /* the path matches, the method does not */
};

/* --- building --- */

struct http_router *http_router_new(void)
{
        return xnew(struct http_router);
}

static void node_free(struct node *n);

static void node_done(struct node *n)
{
        for (struct node *c = n->children, *next; c; c = next) {
                next = c->next;
                node_free(c);
        }
        node_free(n->param);
        node_free(n->rest);
}

static void node_free(struct node *n)
{
        if (!n)
                return;
        node_done(n);
        free(n);
}

void http_router_free(struct http_router *r)
{
        if (!r)
                return;
        node_done(&r->root);
        for (struct vhost *m = r->vhosts, *next; m; m = next) {
                next = m->next;
                node_done(&m->root);
                free(m);
        }
        free(r->apis);
        free(r);
}

static struct node *child_fixed(struct node *n, struct str segment)
{
        struct node *c;

        for (c = n->children; c; c = c->next)
                if (str_eq(c->segment, segment))
                        return c;
        c = xnew(struct node);
        c->segment = segment;
        c->next = n->children;
        n->children = c;
        return c;
}

static struct node *child_made(struct node **slot)
{
        if (!*slot)
                *slot = xnew(struct node);
        return *slot;
}

/* The node for one segment of a pattern; NULL if the segment is malformed. */
static struct node *descend(struct node *n, struct str segment, bool last)
{
        if (segment.n == 0 || segment.p[0] != '{')
                return memchr(segment.p, '}', segment.n) ? NULL : child_fixed(n, segment);
        if (!str_ends_with(segment, STR("}")) || segment.n < 3)
                return NULL;
        if (!str_ends_with(segment, STR("...}")))
                return child_made(&n->param);
        return last ? child_made(&n->rest) : NULL;
}

static struct node *descend_all(struct node *n, const char *path)
{
        struct str rest = str_from(path), segment;

        if (rest.n == 0)
                return n;
        if (rest.p[0] != '/')
                return NULL;
        rest = str_skip(rest, 1);
        while (n && str_split(&rest, '/', &segment))
                n = descend(n, segment, rest.p == NULL);
        return n;
}

static size_t count_params(const char *pattern)
{
        size_t n = 0;

        for (; *pattern; pattern++)
                n += *pattern == '{';
        return n;
}

static int add_route(struct node *root, const struct http_api *api, const struct http_route *route)
{
        struct node *n = descend_all(root, api->prefix);

        n = n ? descend_all(n, route->pattern) : NULL;
        if (!n || count_params(api->prefix) + count_params(route->pattern) > HTTP_PARAMS_MAX
            || route->method < 0 || route->method >= METHOD_MAX_ || !route->exec)
                return -EINVAL;
        if (n->targets[route->method].route)
                return -EEXIST;
        n->targets[route->method] = (struct target){ route, api };
        n->has_routes = true;
        return 0;
}

static struct node *root_for(struct http_router *r, const struct http_api *api)
{
        struct vhost *m;

        if (!api->claims) {
                r->apis = xrealloc(r->apis, r->n_apis + 1, sizeof(struct http_api *));
                r->apis[r->n_apis++] = api;
                return &r->root;
        }
        m = xnew(struct vhost);
        m->api = api;
        m->next = r->vhosts;
        r->vhosts = m;
        return &m->root;
}

int http_router_add(struct http_router *r, const struct http_api *api)
{
        struct node *root = root_for(r, api);

        for (size_t i = 0; i < api->n_routes; i++) {
                int e = add_route(root, api, &api->routes[i]);

                if (e < 0)
                        return e;
        }
        return 0;
}

/* --- lookup --- */

static bool accept_node(const struct node *n, struct match *m)
{
        const struct target *t = &n->targets[m->method];

        if (!t->route && m->method == METHOD_HEAD)
                t = &n->targets[METHOD_GET];
        if (!t->route)
                t = &n->targets[METHOD_ANY];
        if (t->route) {
                m->found = t;
                return true;
        }
        if (n->has_routes && !m->other_method)
                m->other_method = n;
        return false;
}

static bool walk(const struct node *n, struct str rest, struct match *m, int depth);

static bool walk_captured(const struct node *n, struct str capture, struct str rest,
                          struct match *m, int depth)
{
        if (!n || m->n_params == HTTP_PARAMS_MAX)
                return false;
        m->params[m->n_params++] = capture;
        if (walk(n, rest, m, depth))
                return true;
        m->n_params--;
        return false;
}

/* `rest` is what follows the slash after n's segment; the null view at the end of the path. */
static bool walk(const struct node *n, struct str rest, struct match *m, int depth)
{
        struct str after = rest, segment;

        if (!rest.p)
                return accept_node(n, m);
        if (depth == SEGMENTS_MAX)
                return false;
        (void) str_split(&after, '/', &segment);
        for (const struct node *c = n->children; c; c = c->next)
                if (str_eq(c->segment, segment) && walk(c, after, m, depth + 1))
                        return true;
        if (segment.n > 0 && walk_captured(n->param, segment, after, m, depth + 1))
                return true;
        return walk_captured(n->rest, rest, STR_NULL, m, depth + 1);
}

static bool owns(const struct http_api *api, struct str path)
{
        struct str prefix = str_from(api->prefix);

        return str_starts_with(path, prefix) && (path.n == prefix.n || path.p[prefix.n] == '/');
}

static const struct vhost *vhost_of(const struct http_router *r, const struct http_req *req)
{
        const struct vhost *m = r->vhosts;

        while (m && !m->api->claims(req))
                m = m->next;
        return m;
}

static const struct http_api *api_by_prefix(const struct http_router *r, struct str path)
{
        const struct http_api *best = NULL;

        for (size_t i = 0; i < r->n_apis; i++)
                if (owns(r->apis[i], path)
                    && (!best || strlen(r->apis[i]->prefix) > strlen(best->prefix)))
                        best = r->apis[i];
        return best;
}

/* --- requests without a route --- */

static void add_allow(struct http_req *req, const struct node *n)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 256);
        for (int i = 0; i < METHOD_OTHER; i++) {
                bool yes = n->targets[i].route || i == METHOD_OPTIONS
                           || (i == METHOD_HEAD && n->targets[METHOD_GET].route);

                if (yes)
                        buf_addf(&b, "%s%s", b.n ? ", " : "", http_method_to_string(i));
        }
        (void) http_res_header(req, STR("Allow"), buf_str(&b));
}

static void reply_unrouted(struct http_req *req, const struct match *m)
{
        if (req->method == METHOD_OPTIONS && str_eq(req->path, STR("*"))) {
                http_reply_empty(req, 204); /* a ping of the server itself */
                return;
        }
        if (!m->other_method) {
                http_reply_error(req, 404, "NOT_FOUND", "there is no such path");
                return;
        }
        add_allow(req, m->other_method);
        if (req->method == METHOD_OPTIONS)
                http_reply_empty(req, 204);
        else
                http_reply_error(req, 405, "METHOD_NOT_ALLOWED",
                                 "this path does not support %.*s; see Allow",
                                 STR_ARG(req->method_name));
}

/* --- routing --- */

static int decode_params(struct http_req *req, const struct match *m)
{
        bool ends_in_rest = str_ends_with(str_from(req->route->pattern), STR("...}"));

        for (size_t i = 0; i < m->n_params; i++) {
                bool raw = i + 1 == m->n_params && ends_in_rest;
                int r = 0;

                if (raw)
                        req->params[i] = m->params[i];
                else
                        r = url_decode(&req->arena, m->params[i], 0, &req->params[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Returns false after replying. */
static bool is_allowed(struct http_req *req)
{
        uint32_t scope = req->route->scope;

        if (scope == HTTP_SCOPE_PUBLIC)
                return true;
        if (scope == 0 || !req->api->authorize) {
                http_reply_error(req, 403, "FORBIDDEN", "this route is closed");
                return false;
        }
        return req->api->authorize(req, scope) == 0;
}

void http_router_find_api(const struct http_router *r, struct http_req *req)
{
        const struct vhost *m = vhost_of(r, req);

        req->api = m ? m->api : api_by_prefix(r, req->path);
}

void http_router_head(struct http_router *r, struct http_req *req)
{
        struct match m = { .method = req->method };
        bool absolute = req->path.n > 0 && req->path.p[0] == '/';
        const struct vhost *vhost = vhost_of(r, req);
        const struct node *root = vhost ? &vhost->root : &r->root;

        req->api = vhost ? vhost->api : api_by_prefix(r, req->path);
        if (!absolute || !walk(root, str_skip(req->path, 1), &m, 0)) {
                reply_unrouted(req, &m);
                return;
        }
        req->route = m.found->route;
        req->api = m.found->api;
        if (decode_params(req, &m) < 0) {
                http_reply_error(req, 400, "BAD_REQUEST", "the path is malformed");
                return;
        }
        if (is_allowed(req))
                http_router_continue(req);
}

void http_router_continue(struct http_req *req)
{
        if (req->route->body == HTTP_BODY_STREAM)
                req->route->exec(req);
        else
                http_body_start(req, req->route->body_max ? req->route->body_max : HTTP_BODY_MAX);
        http_req_release(req);
}

/* --- decoded bodies --- */

static bool decode_input(struct http_req *req)
{
        const struct http_route *route = req->route;
        struct json_error e;
        int r;

        req->input = arena_zalloc(&req->arena, route->input_size);
        if (!req->input) {
                http_reply_error(req, 413, "PAYLOAD_TOO_LARGE", "the request is too large");
                return false;
        }
        if (req->body.n == 0 && route->body_optional)
                return true;
        r = json_decode(req->body, route->fields, 0, &req->arena, req->input, &e);
        if (r == -ENOMEM)
                http_reply_error(req, 413, "PAYLOAD_TOO_LARGE", "the request is too large");
        else if (r < 0 && req->api->invalid)
                req->api->invalid(req, &e);
        else if (r < 0)
                http_reply_error(req, 400, "INVALID_REQUEST_BODY", "%s", e.message);
        return r == 0;
}

void http_router_body(struct http_req *req)
{
        if (req->res.state != HTTP_RES_NONE || http_req_is_gone(req))
                return;
        if (req->route->body == HTTP_BODY_JSON && !decode_input(req))
                return;
        req->route->exec(req);
}
