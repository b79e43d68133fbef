/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sandboxes.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/sha256.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/op.h"

#define USUAL_TIMEOUT 600

const char *hutch_sandbox_metadata(const struct hutch_sandbox *sandbox, const char *key)
{
        for (size_t i = 0; sandbox && key && i < sandbox->n_metadata; i++)
                if (strcmp(sandbox->metadata[i].key, key) == 0)
                        return sandbox->metadata[i].value;
        return NULL;
}

/* --- owners --- */

int owner_digest(const struct hutch_owner *o, char ret[static OWNER_TEXT])
{
        const char *parts[] = { o->organization_id, o->project_id, o->user_id,
                                o->scope_kind ? o->scope_kind : "shared-project-user",
                                o->scope_key ? o->scope_key : "" };
        uint8_t digest[SHA256_SIZE];
        struct sha256 s;

        sha256_init(&s);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                char length[24];

                if (!parts[i] || (i < 3 && !*parts[i]))
                        return HUTCH_INVALID;
                (void) snprintf(length, sizeof(length), "%zu:", strlen(parts[i]));
                sha256_add(&s, length, strlen(length));
                sha256_add(&s, parts[i], strlen(parts[i]));
        }
        sha256_finish(&s, digest);
        hex_encode(ret, digest, (OWNER_TEXT - 1) / 2);
        ret[OWNER_TEXT - 1] = '\0';
        return 0;
}

void sandboxes_search_owner(struct op *op, const char *owner, void (*on_response)(struct op *op))
{
        char pair[sizeof(OWNER_LABEL) + OWNER_TEXT];

        (void) snprintf(pair, sizeof(pair), OWNER_LABEL "=%s", owner);
        op_to_server(op, "/sandboxes?metadata={}", pair);
        op_send(op, &(struct request){ .method = "GET", .on_response = on_response });
}

bool sandbox_is_alive(const struct hutch_sandbox *s)
{
        static const char *const dead[] = { "Failed", "Terminated", "Stopping" };

        for (size_t i = 0; i < ARRAY_SIZE(dead); i++)
                if (strcmp(s->state, dead[i]) == 0)
                        return false;
        return true;
}

const struct hutch_sandbox *sandboxes_pick(const struct hutch_sandbox_list *l)
{
        const struct hutch_sandbox *failed = NULL;

        for (size_t i = 0; i < l->n; i++) {
                if (sandbox_is_alive(l->items[i]))
                        return l->items[i];
                if (strcmp(l->items[i]->state, "Failed") == 0)
                        failed = l->items[i];
        }
        return failed;
}

/* --- create --- */

static void write_image(struct op *op, const struct hutch_sandbox_options *o)
{
        body_open(op, "image", '{');
        body_text(op, "uri", o->image);
        if (o->image_username || o->image_password) {
                body_open(op, "auth", '{');
                body_text(op, "username", o->image_username ? o->image_username : "");
                body_text(op, "password", o->image_password ? o->image_password : "");
                body_close(op, '}');
        }
        body_close(op, '}');
}

static void write_policy(struct op *op, const struct hutch_network_policy *p)
{
        body_open(op, "networkPolicy", '{');
        body_text(op, "defaultAction", p->default_action);
        body_open(op, "egress", '[');
        for (size_t i = 0; i < p->n_egress; i++) {
                body_open(op, NULL, '{');
                body_text(op, "action", p->egress[i].action);
                body_text(op, "target", p->egress[i].target);
                body_close(op, '}');
        }
        body_close(op, ']');
        body_close(op, '}');
}

void sandboxes_write(struct op *op, const struct hutch_sandbox_options *o, const char *owner)
{
        static const char *const entrypoint[] = { "tail", "-f", "/dev/null" };
        static const struct hutch_pair limits[] = { { "cpu", "1" }, { "memory", "2Gi" } };
        bool own_limits = o->resource_limits != NULL, own_entrypoint = o->entrypoint != NULL;

        if (op && !o->image && !o->snapshot_id)
                op_refuse(op, HUTCH_INVALID, "either image or snapshot_id is required");
        body_open(op, NULL, '{');
        body_text(op, "snapshotId", o->snapshot_id);
        if (o->image)
                write_image(op, o);
        if (o->timeout >= 0)
                body_i64(op, "timeout", o->timeout ? o->timeout : USUAL_TIMEOUT);
        body_map(op, "resourceLimits", own_limits ? o->resource_limits : limits,
                 own_limits ? o->n_resource_limits : ARRAY_SIZE(limits));
        if (own_entrypoint || o->image)
                body_texts(op, "entrypoint", own_entrypoint ? o->entrypoint : entrypoint,
                           own_entrypoint ? o->n_entrypoint : ARRAY_SIZE(entrypoint));
        body_map(op, "env", o->env, o->n_env);
        body_open(op, "metadata", '{');
        for (size_t i = 0; i < o->n_metadata; i++)
                if (!owner || !o->metadata[i].key || strcmp(o->metadata[i].key, OWNER_LABEL) != 0)
                        body_text(op, o->metadata[i].key, o->metadata[i].value);
        body_text(op, OWNER_LABEL, owner);
        body_close(op, '}');
        if (o->network_policy)
                write_policy(op, o->network_policy);
        body_map(op, "extensions", o->extensions, o->n_extensions);
        body_true(op, "secureAccess", o->secure_access);
        body_close(op, '}');
        if (op)
                buf_mark_secret(&op->body); /* environment values and image passwords */
}

struct create_op {
        struct op op;
        char owner[OWNER_TEXT];
        char *idempotency_key;
};

static struct create_op *create_of(struct op *op)
{
        return container_of(op, struct create_op, op);
}

static void send_create(struct op *op)
{
        struct create_op *c = create_of(op);

        op_to_server(op, "/sandboxes");
        if (c->idempotency_key)
                op_header(op, "Idempotency-Key", c->idempotency_key);
        op_send(op, &op->kind->request);
}

static void searched(struct op *op)
{
        struct hutch_sandbox_list *l = op_decode(op, &sandbox_list_decoder);
        const struct hutch_sandbox *s = l ? sandboxes_pick(l) : NULL;

        if (!l)
                return;
        if (s && sandbox_is_alive(s))
                op_fail(op, HUTCH_CONFLICT,
                        "the owner has sandbox %s already; use hutch_ensure_sandbox to reuse it",
                        s->id);
        else
                send_create(op);
        hutch_sandbox_list_free(l);
}

static void create_begin(struct op *op)
{
        if (create_of(op)->owner[0])
                sandboxes_search_owner(op, create_of(op)->owner, searched);
        else
                send_create(op);
}

static void create_release(struct op *op)
{
        free(create_of(op)->idempotency_key);
}

int hutch_create_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_sandbox **ret, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "create a sandbox",
                .request = { .method = "POST", .has_body = true },
                .result = &sandbox_decoder,
                .begin = create_begin,
                .timeout_ms = CREATE_TIMEOUT_MS,
                .release = create_release,
        };
        struct op *op = op_new(sizeof(struct create_op), &kind, client, call);
        struct create_op *c = op ? create_of(op) : NULL;
        struct hutch_sandbox_options o;

        op_take_options(op, &o, sizeof(o), options, "the options");
        if (c && o.owner && owner_digest(o.owner, c->owner) < 0)
                op_refuse(op, HUTCH_INVALID, "the owner requires organization, project and user");
        if (c && o.idempotency_key)
                c->idempotency_key = op_strdup(op, o.idempotency_key, "the idempotency key");
        sandboxes_write(op, &o, c && c->owner[0] ? c->owner : NULL);
        return op_start(op, ret);
}

/* --- queries --- */

int hutch_get_sandbox(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                      struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("get the sandbox", "GET", false, &sandbox_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (op_need(op, id, "the id of the sandbox"))
                op_to_server(op, "/sandboxes/{}", id);
        return op_start(op, ret);
}

int hutch_list_sandboxes(struct hutch_client *client, const struct hutch_list_options *options,
                         struct hutch_sandbox_list **ret, struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("list sandboxes", "GET", false, &sandbox_list_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        scoped(buf_done) struct buf filter;
        struct hutch_list_options o;
        char number[32];

        buf_init(&filter, URL_MAX);
        op_take_options(op, &o, sizeof(o), options, "the options");
        (void) snprintf(number, sizeof(number), "%" PRId64, o.page ? o.page : 1);
        op_to_server(op, "/sandboxes?page={}", number);
        if (!op_is_valid(op))
                return op_start(op, ret);
        if (o.page_size) {
                (void) snprintf(number, sizeof(number), "%" PRId64, o.page_size);
                url_add(&op->url, "&pageSize={}", number);
        }
        for (size_t i = 0; i < o.n_states; i++)
                url_add(&op->url, "&state={}", o.states[i]);
        /* Escaped twice: `metadata` contains a query itself. Labels have nothing to escape, so servers
         * that unescape once work, too. */
        for (size_t i = 0; i < o.n_metadata; i++)
                url_add(&filter, i ? "&{}={}" : "{}={}", o.metadata[i].key, o.metadata[i].value);
        if (o.n_metadata > 0) {
                url_add(&op->url, "&metadata=");
                url_add_escaped(&op->url, buf_str(&filter));
        }
        return op_start(op, ret);
}

/* --- changing --- */

static int change(const struct op_kind *kind, struct hutch_client *client, const char *id,
                  const char *pattern, struct hutch_call *call)
{
        struct op *op = op_new(sizeof(*op), kind, client, call);

        if (op_need(op, id, "the id of the sandbox"))
                op_to_server(op, pattern, id);
        return op_start(op, NULL);
}

int hutch_delete_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("delete the sandbox", "DELETE", false, NULL);

        return change(&kind, client, id, "/sandboxes/{}", call);
}

int hutch_destroy_sandbox(struct hutch_client *client, const char *sandbox_id,
                          struct hutch_call *call)
{
        return hutch_delete_sandbox(client, sandbox_id, call);
}

int hutch_pause_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("pause the sandbox", "POST", false, NULL);

        return change(&kind, client, id, "/sandboxes/{}/pause", call);
}

int hutch_resume_sandbox(struct hutch_client *client, const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("resume the sandbox", "POST", false, NULL);

        return change(&kind, client, id, "/sandboxes/{}/resume", call);
}

int hutch_patch_metadata(struct hutch_client *client, const char *id,
                         const struct hutch_metadata_patch *patch, struct hutch_sandbox **ret,
                         struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("change the sandbox's metadata", "PATCH", true, &sandbox_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_metadata_patch p;

        op_take_options(op, &p, sizeof(p), patch, "the patch");
        if (op_need(op, id, "the id of the sandbox"))
                op_to_server(op, "/sandboxes/{}/metadata", id);
        body_open(op, NULL, '{');
        for (size_t i = 0; op_is_valid(op) && i < p.n; i++)
                if (!op_need(op, p.pairs[i].key, "a key"))
                        break;
                else if (p.pairs[i].value)
                        body_text(op, p.pairs[i].key, p.pairs[i].value);
                else
                        body_null(op, p.pairs[i].key);
        body_close(op, '}');
        return op_start(op, ret);
}

/* --- renewing --- */

static void renewed(struct op *op)
{
        int64_t *ret = (int64_t *) (void *) TAKE_PTR(op->ret);
        int64_t at;

        if (!op_check_response(op))
                return;
        at = decode_expires(buf_str(&op->x.response));
        if (at == 0) {
                op_fail(op, HUTCH_PROTOCOL, "the response has no expiry");
                return;
        }
        if (ret)
                *ret = at;
        op_succeed(op, NULL);
}

int hutch_renew_sandbox(struct hutch_client *client, const char *id, int64_t seconds,
                        int64_t *ret_expires_at, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "renew the sandbox",
                .request = { .method = "POST", .has_body = true, .on_response = renewed },
        };
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        char when[TIME_RFC3339_MAX];

        if (seconds <= 0 || seconds > INT32_MAX)
                op_refuse(op, HUTCH_INVALID, "the time must be a positive number of seconds");
        else
                (void) time_to_rfc3339(usec_add(clock_wall(&clock_system),
                                                (usec_t) seconds * USEC_PER_SEC),
                                       when);
        if (op_need(op, id, "the id of the sandbox")) {
                op_to_server(op, "/sandboxes/{}/renew-expiration", id);
                body_open(op, NULL, '{');
                body_text(op, "expiresAt", when);
                body_close(op, '}');
        }
        return op_start(op, ret_expires_at);
}
