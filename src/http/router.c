/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/route.h"
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

static struct node *child_made(struct node **slot)
{
        if (!*slot)
                *slot = xnew(struct node);
        return *slot;
}

/* The node for one segment of a pattern; NULL if the segment is malformed. */
static struct node *descend(struct node *n, struct str segment, bool last)
{
        struct node *c = n->children;

        if (segment.n > 0 && segment.p[0] == '{') {
                if (!str_ends_with(segment, STR("}")) || segment.n < 3)
                        return NULL;
                if (!str_ends_with(segment, STR("...}")))
                        return child_made(&n->param);
                return last ? child_made(&n->rest) : NULL;
        }
        if (memchr(segment.p, '}', segment.n))
                return NULL;
        while (c && !str_eq(c->segment, segment))
                c = c->next;
        if (!c) {
                c = xnew(struct node);
                c->segment = segment;
                c->next = n->children;
                n->children = c;
        }
        return c;
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

int http_router_add(struct http_router *r, const struct http_api *api)
{
        struct node *root = &r->root;

        if (api->claims) {
                struct vhost *m = xnew(struct vhost);

                m->api = api;
                m->next = r->vhosts;
                r->vhosts = m;
                root = &m->root;
        } else {
                r->apis = xrealloc(r->apis, r->n_apis + 1, sizeof(struct http_api *));
                r->apis[r->n_apis++] = api;
        }
        for (size_t i = 0; i < api->n_routes; i++) {
                const struct http_route *route = &api->routes[i];
                struct node *n = descend_all(root, api->prefix);

                n = n ? descend_all(n, route->pattern) : NULL;
                if (!n || count_params(api->prefix) + count_params(route->pattern) > HTTP_PARAMS_MAX
                    || route->method < 0 || route->method >= METHOD_MAX_ || !route->exec)
                        return -EINVAL;
                if (n->targets[route->method].route)
                        return -EEXIST;
                n->targets[route->method] = (struct target){ route, api };
                n->has_routes = true;
        }
        return 0;
}

/* --- lookup --- */

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

        if (!rest.p) {
                const struct target *t = &n->targets[m->method];

                if (!t->route && m->method == METHOD_HEAD)
                        t = &n->targets[METHOD_GET];
                if (!t->route)
                        t = &n->targets[METHOD_ANY];
                if (!t->route && n->has_routes && !m->other_method)
                        m->other_method = n;
                m->found = t;
                return t->route != NULL;
        }
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
        size_t longest = 0;

        for (size_t i = 0; i < r->n_apis; i++) {
                struct str prefix = str_from(r->apis[i]->prefix);
                bool owns = str_starts_with(path, prefix)
                            && (path.n == prefix.n || path.p[prefix.n] == '/');

                if (owns && (!best || prefix.n > longest)) {
                        best = r->apis[i];
                        longest = prefix.n;
                }
        }
        return best;
}

/* --- requests without a route --- */

/* 404, 405 with Allow, or the answer to OPTIONS. */
static void reply_unrouted(struct http_req *req, const struct node *other_method)
{
        scoped(buf_done) struct buf allow;

        buf_init(&allow, 256);
        if (req->method == METHOD_OPTIONS && str_eq(req->path, STR("*"))) {
                http_reply_empty(req, 204); /* a ping of the server itself */
                return;
        }
        if (!other_method) {
                http_reply_error(req, 404, "NOT_FOUND", "there is no such path");
                return;
        }
        for (int i = 0; i < METHOD_OTHER; i++)
                if (other_method->targets[i].route || i == METHOD_OPTIONS
                    || (i == METHOD_HEAD && other_method->targets[METHOD_GET].route))
                        buf_addf(&allow, "%s%s", allow.n ? ", " : "", http_method_to_string(i));
        (void) http_res_header(req, STR("Allow"), buf_str(&allow));
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

void http_router_find_api(const struct http_router *r, struct http_req *req)
{
        const struct vhost *m = vhost_of(r, req);

        req->api = m ? m->api : api_by_prefix(r, req->path);
}

bool http_router_find(struct http_router *r, struct http_req *req)
{
        struct match m = { .method = req->method };
        bool absolute = req->path.n > 0 && req->path.p[0] == '/';
        const struct vhost *vhost = vhost_of(r, req);
        const struct node *root = vhost ? &vhost->root : &r->root;
        uint32_t scope;

        req->api = vhost ? vhost->api : api_by_prefix(r, req->path);
        if (!absolute || !walk(root, str_skip(req->path, 1), &m, 0)) {
                reply_unrouted(req, m.other_method);
                return false;
        }
        req->route = m.found->route;
        req->api = m.found->api;
        if (decode_params(req, &m) < 0) {
                http_reply_error(req, 400, "BAD_REQUEST", "the path is malformed");
                return false;
        }
        scope = req->route->scope;
        if (scope == 0 || (scope != HTTP_SCOPE_PUBLIC && !req->api->authorize)) {
                http_reply_error(req, 403, "FORBIDDEN", "this route is closed");
                return false;
        }
        return scope == HTTP_SCOPE_PUBLIC || req->api->authorize(req, scope) == 0;
}

void http_router_continue(struct http_req *req)
{
        if (req->route->body == HTTP_BODY_STREAM)
                req->route->exec(req);
        else
                http_body_start(req, req->route->body_max ? req->route->body_max : HTTP_BODY_MAX);
        http_req_release(req);
}
