/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/op.h"
#include "client/result.h"

/* Lifecycle calls besides those for sandboxes: endpoints and API keys. */

/* --- endpoints --- */

static void request_endpoint(struct op *op, const char *id, int port)
{
        char number[16];

        op->context = &op->client->url.scheme;
        (void) snprintf(number, sizeof(number), "%d", port);
        op_to_server(op, "/sandboxes/{}/endpoints/{}", id, number);
        if (op_is_valid(op) && op->client->o.use_server_proxy)
                url_add(&op->url, "?use_server_proxy=true");
}

int hutch_get_endpoint(struct hutch_client *client, const char *id, int port,
                       struct hutch_endpoint **ret, struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("get the endpoint", "GET", false, &endpoint_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (port < 1 || port > UINT16_MAX)
                op_refuse(op, HUTCH_INVALID, "a port is a number from 1 to 65535");
        if (op_need(op, id, "the id of the sandbox"))
                request_endpoint(op, id, port);
        return op_start(op, ret);
}

int hutch_discover_execd(struct hutch_client *client, const char *id, struct hutch_endpoint **ret,
                         struct hutch_call *call)
{
        return hutch_get_endpoint(client, id, HUTCH_EXECD_PORT, ret, call);
}

/* --- for other calls --- */

static void got_endpoint(struct op *op)
{
        struct hutch_endpoint *e = op_decode(op, &endpoint_decoder);

        if (!e)
                return;
        if (op__to_agent(op, e))
                buf_add_str(&op->url, buf_str(&op->path));
        hutch_endpoint_free(e);
        op_send(op, op->then);
}

void op_discover(struct op *op, const char *id, const struct request *then)
{
        op->then = then;
        request_endpoint(op, id, HUTCH_EXECD_PORT);
        op_send(op, &(struct request){ .method = "GET", .on_response = got_endpoint });
}

/* --- endpoints from a known address --- */

static int fill_endpoint(struct hutch_endpoint *e, const char *url,
                         const struct hutch_pair *headers, size_t n_headers)
{
        struct arena *a = result_arena(e);
        scoped(buf_done) struct buf b;
        struct hutch_pair *copies;
        struct url u;

        buf_init(&b, URL_MAX);
        url_add_endpoint(&b, STR("http"), str_from(url));
        if (b.no_memory)
                return HUTCH_NO_MEMORY;
        if (buf_failed(&b) || url_parse(buf_str(&b), &u) < 0)
                return HUTCH_INVALID;
        for (size_t i = 0; i < n_headers; i++)
                if (!headers[i].key || !headers[i].value)
                        return HUTCH_INVALID;
        e->url = arena_dup(a, u.text);
        e->host = arena_dup(a, u.host);
        e->port = u.port;
        copies = arena_alloc_array(a, n_headers, sizeof(*copies));
        if (!e->url || !e->host || !copies)
                return HUTCH_NO_MEMORY;
        for (size_t i = 0; i < n_headers; i++) {
                copies[i].key = arena_strdup(a, headers[i].key);
                copies[i].value = arena_strdup(a, headers[i].value);
                if (!copies[i].key || !copies[i].value)
                        return HUTCH_NO_MEMORY;
        }
        e->headers = copies;
        e->n_headers = n_headers;
        return 0;
}

int hutch_endpoint_new(const char *url, const struct hutch_pair *headers, size_t n_headers,
                       struct hutch_endpoint **ret)
{
        struct hutch_endpoint *e;
        int r;

        if (!url || !ret || (n_headers > 0 && !headers))
                return HUTCH_INVALID;
        e = result_new(sizeof(*e));
        if (!e)
                return HUTCH_NO_MEMORY;
        r = fill_endpoint(e, url, headers, n_headers);
        if (r < 0)
                hutch_endpoint_free(e);
        else
                *ret = e;
        return r;
}

/* --- ping --- */

int hutch_ping(struct hutch_client *client, const struct hutch_endpoint *agent,
               struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("ping the agent", "GET", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/ping");
        return op_start(op, NULL);
}

/* --- keys --- */

int hutch_create_key(struct hutch_client *client, const struct hutch_key_options *options,
                     struct hutch_key **ret, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("create a key", "POST", true, &key_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_key_options o;

        op_take_options(op, &o, sizeof(o), options, "the options");
        op_to_server(op, "/keys");
        if (op_need(op, o.role, "the role")) {
                body_open(op, NULL, '{');
                body_text(op, "role", o.role);
                body_text(op, "name", o.name);
                body_text(op, "tenant", o.tenant);
                body_text(op, "principal", o.principal);
                body_close(op, '}');
        }
        return op_start(op, ret);
}

int hutch_list_keys(struct hutch_client *client, struct hutch_key_list **ret,
                    struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("list keys", "GET", false, &key_list_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_server(op, "/keys");
        return op_start(op, ret);
}

int hutch_delete_key(struct hutch_client *client, const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("delete the key", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (op_need(op, id, "the id of the key"))
                op_to_server(op, "/keys/{}", id);
        return op_start(op, NULL);
}
