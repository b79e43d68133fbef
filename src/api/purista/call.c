/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/call.h"

#include "api/forward.h"
#include "base/base.h"
#include "base/secret.h"

/* Around the contents of files: their paths, the rest of a message. */
#define BODY_EXTRA MiB

/* --- life --- */

static size_t body_max(const struct purista_config *config)
{
        return 2 * config->file_max + BODY_EXTRA; /* base64, and JSON's escapes of ordinary text */
}

/* It was not read, so nobody knows which command it is; but only files make one that large. */
static void fail_too_large(struct purista_call *c)
{
        char message[256];

        (void) snprintf(message, sizeof(message),
                        "The request has more than %zu bytes, and the limit purista.file_limit of "
                        "this server is %zu; send files in parts",
                        body_max(&c->config), c->config.file_max);
        purista_fail_begin(c, &(struct purista_failure){ .status = 413,
                                                         .message = str_from(message) });
        purista_text_addf(&c->out, "{\"limit\":%zu}", c->config.file_max);
        purista_fail_end(c);
}

static void gone(struct http_req *req, int reason)
{
        struct purista_call *c = req->data;

        if (c->inner)
                op_cancel(c->inner);
        else if (reason == -EMSGSIZE)
                fail_too_large(c);
        else
                purista_call_free(c);
}

static const struct http_hooks waiting_hooks = { .abort = gone };

static bool copy_text(struct arena *a, struct str *s)
{
        if (!s->p)
                return true;
        *s = arena_dup_str(a, *s);
        return s->p != NULL;
}

static bool copy_limits(struct arena *a, struct json_map *m)
{
        struct json_pair *copy = arena_alloc_array(a, m->n, sizeof(*copy));
        bool good = copy || m->n == 0;

        for (size_t i = 0; i < m->n && good; i++) {
                copy[i] = m->items[i];
                good = copy_text(a, &copy[i].key) && copy_text(a, &copy[i].value);
        }
        m->items = copy;
        return good;
}

static bool copy_config(struct purista_call *c, const struct purista_config *from)
{
        struct purista_config *to = &c->config;

        *to = *from;
        return copy_text(&c->arena, &to->image) && copy_text(&c->arena, &to->driver)
               && copy_text(&c->arena, &to->network) && copy_limits(&c->arena, &to->limits);
}

struct purista_call *purista_call_new(struct http_req *req)
{
        const struct purista_config *config = api_of(req)->purista;
        struct purista_call *c;

        if (!config || !config->image.p) {
                http_reply_error(
                        req, 501, "PURISTA::NOT_CONFIGURED",
                        "this server has no sandboxes for PURISTA; its operator names their "
                        "image in the section purista of hutchd.yaml");
                return NULL;
        }
        c = xnew(struct purista_call);
        c->req = http_req_ref(req);
        arena_init(&c->arena, body_max(config) + ARENA_MAX_REQUEST);
        buf_init(&c->body, body_max(config));
        buf_mark_secret(&c->body);
        purista_text_init(&c->out);
        http_req_set_hooks(req, &waiting_hooks, c);
        if (copy_config(c, config))
                return c;
        purista_call_free(c);
        http_reply_error(req, 503, "SERVER_BUSY", "no memory for the request; try again");
        return NULL;
}

void purista_call_free(struct purista_call *c)
{
        struct http_req *req = c->req;

        http_req_set_hooks(req, NULL, NULL);
        if (c->has_exec)
                agent_exec_done(&c->u.exec.exec);
        if (c->has_read)
                agent_read_done(&c->u.read.read);
        purista_text_done(&c->out);
        buf_done(&c->body);
        /* The one copy of a token that is not ours to wipe by other means. */
        if (c->in.git.secret_token.p)
                wipe((char *) c->in.git.secret_token.p, c->in.git.secret_token.n);
        json_decref(c->doc);
        arena_wipe(&c->arena);
        free(c);
        http_req_unref(req);
}

void purista_call_wait(struct purista_call *c, struct op *op, op_done_fn *done)
{
        c->inner = op;
        op_init(op, done);
}

bool purista_call_continue(struct purista_call *c)
{
        c->inner = NULL;
        if (!http_req_is_gone(c->req))
                return true;
        purista_call_free(c);
        return false;
}

/* --- the body --- */

static void body(struct http_req *req, const char *p, size_t n)
{
        struct purista_call *c = req->data;

        buf_add(&c->body, p, n); /* it was bounded by what it may hold */
}

static void parse(struct purista_call *c)
{
        struct json_error e;
        int r;

        http_req_set_hooks(c->req, &waiting_hooks, c);
        if (buf_failed(&c->body)) {
                purista_fail(c, 503, "no memory for the request; try again");
                return;
        }
        r = c->body.n > 0 ? json_parse(buf_str(&c->body), JSON_ALLOW_NULS, &c->doc, &e) : 0;
        if (!forward_is_allowed(c->req))
                buf_done(&c->body);
        if (r < 0)
                purista_fail(c, 400, "the body is no JSON: %s", e.message);
        else
                c->go(c);
}

static void body_end(struct http_req *req)
{
        parse(req->data);
}

static const struct http_hooks reading_hooks = { .body = body,
                                                 .body_end = body_end,
                                                 .abort = gone };

void purista_call_read_body(struct purista_call *c, void (*go)(struct purista_call *c))
{
        c->go = go;
        http_req_set_hooks(c->req, &reading_hooks, c);
        http_body_start(c->req, body_max(&c->config));
}

/* --- other nodes --- */

void purista_call_forward(struct purista_call *c, const struct service_node *node)
{
        struct http_req *req = http_req_ref(c->req);
        struct service_node to = *node; /* which may be the call's own */
        struct buf body = c->body;

        c->body = (struct buf){ 0 };
        purista_call_free(c);
        forward_to(req, &to, &body);
        http_req_unref(req);
}

static void located(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, locate.req.op);

        if (!purista_call_continue(c))
                return;
        if (result == 0)
                purista_call_forward(c, &c->locate.node);
        else if (result == ERR_RETURN(ERR_NOT_FOUND))
                c->command->start(c);
        else
                purista_fail_service(c, &c->locate.req);
}

/* What a path names was looked for before (access_authorize); this is what only the body does. */
static bool is_elsewhere(struct purista_call *c)
{
        struct service *service = api_of(c->req)->service;

        if (!c->bridged || !c->in.sandbox_id.p || !forward_is_allowed(c->req)
            || service_find(service, &c->caller, c->in.sandbox_id))
                return false;
        c->locate.caller = &c->caller;
        c->locate.id = c->in.sandbox_id;
        purista_call_wait(c, &c->locate.req.op, located);
        service_locate(service, &c->locate);
        return true;
}

/* --- the way of every command --- */

static int decode(struct purista_call *c, const json_t *payload, struct str sandbox_id)
{
        struct purista_decode d = { .fields = c->command->fields,
                                    .doc = payload,
                                    .sandbox_id = sandbox_id,
                                    .arena = &c->arena };
        int r = purista_payload_decode(&d, &c->in);

        if (r == -EINVAL) {
                purista_fail_begin(c,
                                   &(struct purista_failure){
                                           .status = 400,
                                           .message = STR("input validation for payload failed:"),
                                   });
                purista_text_add(&c->out, STR("["));
                purista_text_add(&c->out, buf_str(&d.issues));
                purista_text_add(&c->out, STR("]"));
                purista_fail_end(c);
        } else if (r < 0) {
                purista_fail(c, 413, "the payload does not fit into memory");
        }
        buf_done(&d.issues);
        return r;
}

/* The payload may repeat who asks, but not differ. What is his own he may see in the answer. */
static bool is_same(struct purista_call *c, struct str given, struct str is, const char *names[2],
                    const char *message)
{
        if (!given.p || str_eq(given, is))
                return true;
        purista_fail_begin(c, &(struct purista_failure){ .status = 403,
                                                         .message = str_from(message) });
        purista_text_addf(&c->out, "{\"%s\":", names[0]);
        purista_text_add_string(&c->out, is);
        purista_text_addf(&c->out, ",\"%s\":", names[1]);
        purista_text_add_string(&c->out, given);
        purista_text_add(&c->out, STR("}"));
        purista_fail_end(c);
        return false;
}

static bool is_caller(struct purista_call *c)
{
        return is_same(c, c->in.organization_id, c->caller.tenant,
                       (const char *[2]){ "tenantId", "organizationId" },
                       "Sandbox organizationId must match the caller tenantId.")
               && is_same(c, c->in.user_id, c->caller.principal,
                          (const char *[2]){ "principalId", "userId" },
                          "Sandbox userId must match the caller principalId.");
}

static bool has_name(struct purista_call *c)
{
        c->caller.tenant = str_trim(c->caller.tenant);
        c->caller.principal = str_trim(c->caller.principal);
        if (c->caller.tenant.n > 0 && c->caller.principal.n > 0)
                return true;
        purista_fail(c, 401,
                     "Sandbox commands require message tenantId and principalId for ownership "
                     "enforcement.");
        return false;
}

static bool may_act_for(struct purista_call *c)
{
        if (!c->bridged || access_bridge_act_for(c->req, c->caller.tenant, c->caller.principal))
                return true;
        purista_fail(c, 403, "this bridge may not act for the tenant");
        return false;
}

void purista_call_run(struct purista_call *c, const json_t *payload, struct str sandbox_id)
{
        if (decode(c, payload, sandbox_id) < 0 || !has_name(c) || !may_act_for(c) || !is_caller(c))
                return;
        if (!is_elsewhere(c))
                c->command->start(c);
}
