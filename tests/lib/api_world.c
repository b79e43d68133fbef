/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/api_world.h"

#include "api/api.h"
#include "base/base.h"

static void flag_set(void *data)
{
        struct api_world *w = data;

        w->_flag = true;
}

static void wait_flag(struct api_world *w)
{
        service_world_until(&w->below, w->_flag);
        w->_flag = false;
}

/* --- life --- */

static void loaded(struct op *op, int result)
{
        check_i64_eq(result, 0);
}

static void open_keyring(struct api_world *w)
{
        struct keyring_load keys = { 0 };

        w->keyring = keyring_new(&w->below.loop, w->below.store);
        op_init(&keys.req.op, loaded);
        keyring_load(w->keyring, &keys);
        service_world_until(&w->below, !op_pending(&keys.req.op));
}

void api_world_open(struct api_world *w)
{
        *w = (struct api_world){ 0 };
        service_world_open(&w->below, NULL);
        open_keyring(w);
        w->sandbox_client = http_client_new(&w->below.loop, &http_client_defaults);
        w->server = http_server_new(&w->below.loop, &http_server_defaults, NULL);
        w->api = (struct api){ .service = w->below.service,
                               .keyring = w->keyring,
                               .sandbox_client = w->sandbox_client,
                               .ids = &w->below.ids,
                               .clock = &w->below.clock.clock,
                               .secret = STR("0123456789abcdef0123456789abcdef"),
                               .insecure = true,
                               .store = "memory" };
        check_i64_eq(api_open(&w->api, w->server), 0);
}

static void forget_answer(struct api_world *w)
{
        if (w->has_response)
                http_loopback_done(&w->lb);
        w->has_response = false;
}

void api_world_close(struct api_world *w)
{
        forget_answer(w);
        api_drain(&w->api);
        http_server_free(w->server, flag_set, w);
        wait_flag(w);
        api_close(&w->api);
        http_client_free(w->sandbox_client, flag_set, w);
        wait_flag(w);
        keyring_free(w->keyring);
        service_world_close(&w->below);
        api_free(&w->api);
}

void api_world_add_keys(struct api_world *w)
{
        static const struct {
                const char *id, *text;
                struct str tenant;
                int role;
        } table[] = {
                { "k-00000001", KEY_ACME, STR("acme"), ROLE_USER },
                { "k-00000002", KEY_OTHER, STR("other"), ROLE_USER },
                { "k-00000003", KEY_READ, STR("acme"), ROLE_READ },
                { "k-00000004", KEY_ADMIN, STR("ops"), ROLE_ADMIN },
        };
        struct api_key keys[ARRAY_SIZE(table)] = { 0 };
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                keys[i] = (struct api_key){ .id = str_from(table[i].id),
                                            .name = STR(""),
                                            .tenant = table[i].tenant,
                                            .principal = str_from(table[i].text),
                                            .role = table[i].role,
                                            .configured = true };
                sha256(table[i].text, strlen(table[i].text), keys[i].digest);
        }
        if (keyring_configure(w->keyring, keys, ARRAY_SIZE(keys), &e) < 0)
                CHECK_FAIL_("%s", e.message);
}

/* --- asking --- */

void api_request_with(struct api_world *w, const char *key, const char *method, const char *target,
                      const char *body, struct http_header header)
{
        forget_answer(w);
        http_loopback_init(&w->lb, w->server);
        w->has_response = true;
        http_loopback_header(&w->lb, STR("Host"), STR("127.0.0.1:8080"));
        if (key)
                http_loopback_header(&w->lb, STR("OPEN-SANDBOX-API-KEY"), str_from(key));
        if (header.name.p)
                http_loopback_header(&w->lb, header.name, header.value);
        http_loopback_start(&w->lb, method, target, body ? str_from(body) : STR_NULL);
        service_world_until(&w->below, w->lb.ended);
        w->status = w->lb.status;
        w->body = buf_str(&w->lb.body);
}

void api_request(struct api_world *w, const char *key, const char *method, const char *target,
                 const char *body)
{
        api_request_with(w, key, method, target, body, (struct http_header){ 0 });
}

struct str api_header(const struct api_world *w, const char *name)
{
        return http_headers_get(&w->lb.headers, str_from(name));
}

void api_create(struct api_world *w, const char *key, char ret[static 64])
{
        api_request(w, key, "POST", "/v1/sandboxes", CREATE_BODY);
        check_i64_eq(w->status, 202);
        check_true(str_starts_with(w->body, STR("{\"id\":\"")));
        (void) snprintf(ret, 64, "%.*s", ID_UUID_LEN, w->body.p + 7);
}

const char *api_path(const char *before, const char *id, const char *after)
{
        static char texts[4][256];
        static unsigned at;
        char *text = texts[at++ % ARRAY_SIZE(texts)];

        (void) snprintf(text, sizeof(texts[0]), "%s%s%s", before, id, after);
        return text;
}
