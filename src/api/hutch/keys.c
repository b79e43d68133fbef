/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/hutch/hutch.h"
#include "base/base.h"
#include "base/secret.h"
#include "model/limits.h"
#include "model/text.h"

/*
 * API keys, for admins. A key is shown once, in the response that creates it; from then on only its digest exists, here and
 * in the store.
 */

#define KEY_BYTES 32
#define KEY_TEXT  (sizeof(KEY_PREFIX) - 1 + 2 * KEY_BYTES)
#define KEY_ID    10 /* "k-" and 8 digits */

struct key_view {
        struct str id, name, tenant, principal, created_at, key;
        int role;
        bool configured;
};

#define K struct key_view

/* clang-format off */
#define COMMON_FIELDS                                                    \
        JSON_STR(K, id, "id", JSON_REQUIRED),                            \
        JSON_STR(K, name, "name", 0),                                    \
        JSON_STR(K, tenant, "tenant", JSON_REQUIRED),                    \
        JSON_STR(K, principal, "principal", JSON_REQUIRED),              \
        JSON_ENUM(K, role, "role", JSON_REQUIRED, &role_table),          \
        JSON_BOOL(K, configured, "configured", JSON_OMIT_EMPTY),         \
        JSON_STR(K, created_at, "createdAt", 0)
/* clang-format on */

static const struct json_field key_fields[] = { COMMON_FIELDS, JSON_END };

static const struct json_field new_key_fields[] = {
        COMMON_FIELDS,
        JSON_STR(K, key, "key", JSON_REQUIRED),
        JSON_END,
};

static void fill(struct key_view *out, const struct api_key *k, char time[static TIME_RFC3339_MAX])
{
        *out = (struct key_view){
                .id = k->id,
                .name = k->name,
                .tenant = k->tenant,
                .principal = k->principal,
                .role = k->role,
                .configured = k->configured,
        };
        /* Keys of the configuration have none. */
        if (k->created_ms > 0)
                out->created_at = response_time(k->created_ms, time);
}

/* --- list --- */

struct listed_keys {
        struct json_list items;
};

static const struct json_field listed_fields[] = {
        JSON_LIST(struct listed_keys, items, struct key_view, "items", JSON_REQUIRED, key_fields),
        JSON_END,
};

static void write_keys(struct buf *b, const void *data)
{
        const struct keyring *ring = data;
        char time[TIME_RFC3339_MAX];
        struct key_view out;
        bool first = true;

        buf_add_str(b, STR("{\"items\":["));
        for (const struct api_key *k = keyring_next(ring, STR_NULL); k && !buf_failed(b);
             k = keyring_next(ring, k->id), first = false) {
                if (!first)
                        buf_add_char(b, ',');
                fill(&out, k, time);
                json_encode(b, key_fields, &out);
        }
        buf_add_str(b, STR("]}"));
}

static void list_keys(struct http_req *req)
{
        response_send(req, 200, write_keys, api_of(req)->keyring);
}

/* --- create --- */

struct key_request {
        struct str name, tenant, principal;
        int role;
};

static const char *check_name(const void *v)
{
        const struct str *s = v;

        return s->n == 0 || text_is_clean(*s, NAME_MAX_TEXT)
                       ? NULL
                       : "must be a short text without control characters";
}

static const char *check_who(const void *v)
{
        return text_is_clean(*(const struct str *) v, NAME_MAX_TEXT)
                       ? NULL
                       : "must be a short text without control characters, and not empty";
}

#define W struct key_request

static const struct json_field key_request_fields[] = {
        JSON_STR(W, name, "name", JSON_NULL_OK, .check = check_name),
        JSON_STR(W, tenant, "tenant", JSON_NULL_OK, .check = check_who),
        JSON_STR(W, principal, "principal", JSON_NULL_OK, .check = check_who),
        JSON_ENUM(W, role, "role", JSON_REQUIRED, &role_table),
        JSON_END,
};

struct add_call {
        struct keyring_add add;
        struct api_key key;
        char id[KEY_ID + 1];
        char secret[KEY_TEXT]; /* until it is sent */
};

static void add_done(struct http_req *req, void *operation, int result)
{
        struct add_call *c = operation;
        char time[TIME_RFC3339_MAX];
        struct key_view out;

        if (result < 0) {
                api_fail(req, &c->add.req.err, NULL);
        } else {
                fill(&out, &c->key, time);
                out.key = str_of(c->secret, sizeof(c->secret));
                http_res_header_const(req, STR("Cache-Control"), STR("no-store"));
                response_json(req, 201, new_key_fields, &out);
        }
        wipe(c->secret, sizeof(c->secret));
}

static void make_key(struct add_call *c, struct ids *ids)
{
        unsigned char bytes[KEY_BYTES], id[4];

        ids_random(ids, bytes, sizeof(bytes));
        memcpy(c->secret, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
        hex_encode(c->secret + sizeof(KEY_PREFIX) - 1, bytes, sizeof(bytes));
        wipe(bytes, sizeof(bytes));
        sha256(c->secret, sizeof(c->secret), c->key.digest);
        ids_random(ids, id, sizeof(id));
        memcpy(c->id, "k-", 2);
        hex_encode(c->id + 2, id, sizeof(id));
        c->key.id = str_of(c->id, KEY_ID);
}

/* Detached: a key that was stored and not shown can be removed. */
static void create_key(struct http_req *req)
{
        const struct caller *caller = api_caller(req);
        const struct key_request *in = req->input;
        struct api *api = api_of(req);
        struct add_call *c;

        /* The first key locks the API, for administrators as well if it is not theirs. */
        if (api_is_open(api) && in->role != ROLE_ADMIN) {
                http_reply_error(req, 409, "KEY::ADMIN_FIRST",
                                 "the first key must have the role admin: with it, every request "
                                 "needs a key; create that, then this");
                return;
        }
        c = api_call_new(req, struct add_call, add.req.op, add_done, API_CALL_DETACHED);
        if (!c)
                return;
        c->key = (struct api_key){
                .name = in->name.p ? in->name : STR(""),
                .tenant = in->tenant.p ? in->tenant : caller->tenant,
                .principal = in->principal.p ? in->principal : caller->principal,
                .role = in->role,
                .created_ms = (int64_t) (clock_wall(api->clock) / USEC_PER_MSEC),
        };
        make_key(c, api->ids);
        log_ctx_add_str(&req->log, "target_key", c->key.id);
        keyring_add(api->keyring, &c->add, &c->key);
}

/* --- remove --- */

static void remove_done(struct http_req *req, void *operation, int result)
{
        const struct err *e = &((const struct keyring_remove *) operation)->req.err;

        if (result < 0)
                api_fail(req, e, e->code == ERR_NOT_FOUND ? "KEY::NOT_FOUND" : NULL);
        else
                http_reply_empty(req, 204);
}

static void delete_key(struct http_req *req)
{
        struct keyring *keyring = api_of(req)->keyring;
        struct keyring_remove *c =
                api_call_new(req, struct keyring_remove, req.op, remove_done, API_CALL_DETACHED);

        if (!c)
                return;
        /* Only ids that exist are logged: a client may have sent the key itself. */
        if (keyring_get(keyring, req->params[0]))
                log_ctx_add_str(&req->log, "target_key", req->params[0]);
        keyring_remove(keyring, c, req->params[0]);
}

/* --- routes --- */

#define TAG "Keys"

static const uint16_t errors[] = { 401, 403, 404, 409, 422, 500, 503, 0 };

API_DOC(create_doc, "createKey", "Create an API key, which is shown only once", TAG, 201, "NewKey",
        new_key_fields, .input_name = "CreateKeyRequest", .errors = errors);
API_DOC(list_doc, "listKeys", "List API keys, without their secrets", TAG, 200, "ListKeysResponse",
        listed_fields, .errors = errors);
API_DOC(delete_doc, "deleteKey", "Remove an API key", TAG, 204, .errors = errors);

static const struct http_route routes[] = {
        { METHOD_POST, "/keys", API_ADMIN, HTTP_JSON(struct key_request, key_request_fields),
          .doc = &create_doc, .exec = create_key },
        { METHOD_GET, "/keys", API_ADMIN, .doc = &list_doc, .exec = list_keys },
        { METHOD_DELETE, "/keys/{keyId}", API_ADMIN, .doc = &delete_doc, .exec = delete_key },
};

HUTCH_API(hutch_keys, "keys", routes);
