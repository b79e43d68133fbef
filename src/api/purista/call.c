/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/call.h"

#include "api/forward.h"
#include "base/base.h"
#include "base/secret.h"

/* --- life cycle --- */

/* Twice the contents of files, for base64 or the escapes of ordinary text, and a MiB for paths and the other members. */
static size_t body_max(const struct purista_config *config)
{
        return 2 * config->file_max + MiB;
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
        /* jansson does not wipe what it frees, and this is its only secret. */
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

/* --- other nodes --- */

void purista_call_forward(struct purista_call *c, const struct service_node *node)
{
        struct http_req *req = http_req_ref(c->req);
        struct service_node to = *node; /* it may be a member of the call */
        struct buf body = c->body;

        c->body = (struct buf){ 0 };
        purista_call_free(c);
        forward_to(req, &to, &body);
        http_req_unref(req);
}

/* --- decoding --- */

/* The payload may repeat the caller's tenant and principal, but not name others. */
static bool is_caller(struct purista_call *c)
{
        const struct {
                struct str given, own;
                const char *given_name, *own_name, *message;
        } pairs[] = {
                { c->in.organization_id, c->caller.tenant, "organizationId", "tenantId",
                  "Sandbox organizationId must match the caller tenantId." },
                { c->in.user_id, c->caller.principal, "userId", "principalId",
                  "Sandbox userId must match the caller principalId." },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                if (!pairs[i].given.p || str_eq(pairs[i].given, pairs[i].own))
                        continue;
                purista_fail_begin(c, 403, "%s", pairs[i].message);
                purista_text_add_member(&c->out, "{", pairs[i].own_name, pairs[i].own);
                purista_text_add_member(&c->out, ",", pairs[i].given_name, pairs[i].given);
                purista_text_add(&c->out, STR("}"));
                purista_response_end(c);
                return false;
        }
        return true;
}

/* Decodes the payload of c->command and checks c->caller, which are set. The sandbox id is the path's, or null. False
 * after a response. */
static bool decode_payload(struct purista_call *c, const json_t *payload, const json_t *parameter,
                           struct str sandbox_id)
{
        struct purista_decode d = { .command = c->command,
                                    .doc = payload,
                                    .parameter = parameter,
                                    .sandbox_id = sandbox_id,
                                    .arena = &c->arena };
        int r = purista_payload_decode(&d, &c->in);
        char why[ACCESS_WHY_MAX];

        if (r == -EINVAL) {
                purista_fail_begin(c, 400, "input validation for payload failed:");
                purista_text_add(&c->out, STR("["));
                purista_text_add(&c->out, buf_str(&d.issues));
                purista_text_add(&c->out, STR("]"));
                purista_response_end(c);
        } else if (r < 0) {
                purista_fail(c, 413, "the payload does not fit into memory");
        }
        buf_done(&d.issues);
        if (r < 0)
                return false;
        /* A caller without a name is refused before any id is looked up, so that it learns nothing about ids. */
        c->caller.tenant = str_trim(c->caller.tenant);
        c->caller.principal = str_trim(c->caller.principal);
        if (c->caller.tenant.n == 0 || c->caller.principal.n == 0) {
                purista_fail(c, 401, PURISTA_ANONYMOUS);
                return false;
        }
        if (c->bridged && !access_bridge_act_for(c->req, c->caller.tenant, c->caller.principal)) {
                purista_fail(c, 403, "this bridge may not act for the tenant");
                return false;
        }
        if (c->bridged && !access_charge(c->req, why)) {
                purista_fail(c, 429, "%s", why);
                return false;
        }
        return is_caller(c);
}

/* The path and the query are part of the payload. A badly encoded parameter is left out. */
static bool decode_http(struct purista_call *c)
{
        struct http_req *req = c->req;
        struct str value;

        if (req->route->body != HTTP_BODY_STREAM) {
                c->doc = json_object();
                for (const struct purista_field *f = c->command->fields; f->name; f++)
                        if (f->in_url && f->member != PURISTA_SANDBOX_ID
                            && http_req_query(req, f->name, &value) == 1)
                                (void) json_object_set_new(c->doc, f->name,
                                                           json_stringn(value.p, value.n));
        }
        return decode_payload(c, c->doc, NULL,
                              req->route->names == ROUTE_OWNED_SANDBOX ? req->params[0] : STR_NULL);
}

/* A text member of a bridge's body. Absent and null are the same: a message without that member. False after a response. */
static bool get_member(struct purista_call *c, const char *name, struct str *ret)
{
        const json_t *v = json_object_get(c->doc, name);

        *ret = STR("");
        if (!v || json_is_null(v))
                return true;
        if (json_is_string(v)) {
                *ret = str_of(json_string_value(v), json_string_length(v));
                return true;
        }
        c->bridged = false;
        purista_fail(c, 400, "%s: expected a string", name);
        return false;
}

static bool decode_bridged(struct purista_call *c)
{
        struct str command;

        if (!json_is_object(c->doc)) {
                purista_fail(c, 400, "expected {command, tenantId, principalId, payload}");
                return false;
        }
        c->bridged = true;
        if (!get_member(c, "command", &command) || !get_member(c, "tenantId", &c->caller.tenant)
            || !get_member(c, "principalId", &c->caller.principal))
                return false;
        c->command = purista_command_find(command);
        if (!c->command) {
                purista_fail(c, 501, "Sandbox version 1 has no such command");
                return false;
        }
        return decode_payload(c, json_object_get(c->doc, "payload"),
                              json_object_get(c->doc, "parameter"), STR_NULL);
}

/* --- the request --- */

static void client_gone(struct http_req *req, int reason)
{
        struct purista_call *c = req->data;

        if (c->inner) {
                op_cancel(c->inner);
                return;
        }
        if (reason != -EMSGSIZE) {
                purista_call_free(c);
                return;
        }
        /* The body was not read, so the command is unknown; but only files make one that large. */
        purista_fail_begin(
                c, 413,
                "The request has more than %zu bytes, and the limit purista.file_limit of "
                "this server is %zu; send files in parts",
                body_max(&c->config), c->config.file_max);
        purista_text_addf(&c->out, "{\"limit\":%zu}", c->config.file_max);
        purista_response_end(c);
}

static const struct http_hooks waiting_hooks = { .abort = client_gone };

static void body_data(struct http_req *req, const char *p, size_t n)
{
        struct purista_call *c = req->data;

        buf_add(&c->body, p, n); /* http_body_start limits it to what fits */
}

static void body_end(struct http_req *req)
{
        struct purista_call *c = req->data;
        struct json_error e;
        int r;

        http_req_set_hooks(req, &waiting_hooks, c);
        if (buf_failed(&c->body)) {
                purista_fail(c, 503, "not enough memory for the request; try again");
                return;
        }
        r = c->body.n > 0 ? json_parse(buf_str(&c->body), JSON_ALLOW_NULS, &c->doc, &e) : 0;
        if (!forward_is_allowed(req))
                buf_done(&c->body); /* else another node may need it */
        if (r < 0)
                purista_fail(c, 400, "the body is no JSON: %s", e.message);
        else if (c->command ? decode_http(c) : decode_bridged(c))
                purista_command_start(c);
}

static const struct http_hooks reading_hooks = { .body = body_data,
                                                 .body_end = body_end,
                                                 .abort = client_gone };

/* What points into the configuration, which a reload may replace while the call runs. */
static const struct json_field config_texts[] = {
        JSON_STR(struct purista_config, image, "image", 0),
        JSON_STR(struct purista_config, driver, "driver", 0),
        JSON_STR(struct purista_config, network, "network", 0),
        JSON_MAP(struct purista_config, limits, "limits", 0),
        JSON_END,
};

void purista_serve(struct http_req *req)
{
        const struct purista_config *config = api_of(req)->purista;
        size_t index = (size_t) (req->route - purista_api.routes);
        struct purista_call *c;

        if (!config || !config->image.p) {
                http_reply_error(req, 501, "PURISTA::NOT_CONFIGURED",
                                 "this server does not offer PURISTA sandboxes; set purista.image "
                                 "in hutchd.yaml");
                return;
        }
        c = xnew(struct purista_call);
        c->req = http_req_ref(req);
        arena_init(&c->arena, body_max(config) + ARENA_MAX_REQUEST);
        buf_init(&c->body, body_max(config));
        buf_mark_secret(&c->body);
        purista_text_init(&c->out);
        http_req_set_hooks(req, &waiting_hooks, c);
        c->config = *config;
        if (json_copy_struct(config_texts, config, &c->arena, &c->config) < 0) {
                purista_call_free(c);
                http_reply_error(req, 503, "SERVER_BUSY",
                                 "not enough memory for the request; try again");
                return;
        }
        /* Commands obey ownership: an administrator's key is a caller like any other. */
        c->caller = *api_caller(req);
        c->caller.role = ROLE_USER;
        c->caller.all_tenants = false;
        if (index < ARRAY_SIZE(purista_commands)) /* a bridge names it in the body */
                c->command = &purista_commands[index];
        if (req->route->body == HTTP_BODY_STREAM) {
                http_req_set_hooks(req, &reading_hooks, c);
                http_body_start(req, body_max(&c->config));
        } else if (decode_http(c)) {
                purista_command_start(c);
        }
}
