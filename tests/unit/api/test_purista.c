/* SPDX-License-Identifier: Apache-2.0 */

/* The commands of PURISTA on a fake runtime: access, clients that leave, and responses to bridges. What goes into
 * a sandbox needs an agent: tests/e2e/test_purista.py has that. */

#include "api/purista/purista.h"

#include "api/access/access.h"
#include "base/base.h"
#include "http/server_impl.h"
#include "tests/lib/api_world.h"

static struct api_world w;
static struct str all_tenants[] = { STR("*") }, some_tenants[] = { STR("org-1"), STR("org-2") };
static const struct api_bridge bridges[] = {
        { .uid = -1, .key = STR("acme"), .tenants = { all_tenants, 1 } },
        { .uid = -1, .key = STR("other"), .tenants = { some_tenants, 2 } },
        { .uid = 0,
          .tenants = { all_tenants, 1 } }, /* a request without a peer must not match it */
};
static const struct purista_config config = {
        .image = STR("debian:12"),
        .output_max = 64 * KiB,
        .file_max = 64 * KiB,
};

/* With names, which those of api_world.h do not have. */
static void add_keys(void)
{
        static const struct {
                const char *text, *name;
                struct str tenant;
                enum role role;
        } keys[] = {
                { KEY_ACME, "acme", STR("acme"), ROLE_USER },
                { KEY_OTHER, "other", STR("other"), ROLE_USER },
                { KEY_READ, "reader", STR("acme"), ROLE_READ },
                { KEY_ADMIN, "*", STR("ops"), ROLE_ADMIN },
        };
        static char ids[ARRAY_SIZE(keys)][4] = { "k-0", "k-1", "k-2", "k-3" };
        struct api_key all[ARRAY_SIZE(keys)];
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                all[i] = (struct api_key){ .id = str_from(ids[i]),
                                           .name = str_from(keys[i].name),
                                           .tenant = keys[i].tenant,
                                           .principal = STR("p"),
                                           .role = (int) keys[i].role,
                                           .configured = true };
                sha256(keys[i].text, strlen(keys[i].text), all[i].digest);
        }
        check_i64_eq(keyring_configure(w.keyring, all, ARRAY_SIZE(all), &e), 0);
}

static int set_up(void **state)
{
        api_world_open(&w);
        add_keys();
        w.api.purista = &config;
        w.api.bridges = bridges;
        w.api.n_bridges = ARRAY_SIZE(bridges);
        return 0;
}

static int tear_down(void **state)
{
        api_world_close(&w);
        return 0;
}

#define COMMAND "/api/v1/purista/command"

/* As a bridge; tenant and principal may be NULL. */
static void bridge_request(const char *key, const char *command, const char *tenant,
                           const char *payload)
{
        scoped(buf_done) struct buf body;

        buf_init(&body, MiB);
        buf_addf(&body, "{\"command\":\"%s\",\"principalId\":\"user-1\",\"payload\":%s", command,
                 payload);
        if (tenant)
                buf_addf(&body, ",\"tenantId\":\"%s\"", tenant);
        buf_add_char(&body, '}');
        api_request(&w, key, "POST", COMMAND, buf_str(&body).p);
}

static bool says(const char *part)
{
        return w.body.n > 0 && memmem(w.body.p, w.body.n, part, strlen(part));
}

static void only_bridges_act_for_others(void **state)
{
        static const struct {
                const char *key, *tenant;
                int status;
                const char *says;
        } cases[] = {
                { NULL, "org-1", 401, "an API key is needed" },
                { "wrong", "org-1", 401, "the API key is not valid" },
                { KEY_READ, "org-1", 403, "only bridges may act for others" },
                { KEY_ADMIN, "org-1", 403, "only bridges may act for others" },
                { KEY_ACME, "org-1", 200, "{\"ok\":false,\"error\":{\"status\":404" },
                { KEY_ACME, "any", 200, "{\"ok\":false,\"error\":{\"status\":404" },
                { KEY_ACME, NULL, 200, "{\"ok\":false,\"error\":{\"status\":401" },
                { KEY_OTHER, "org-2", 200, "{\"ok\":false,\"error\":{\"status\":404" },
                { KEY_OTHER, "org-3", 200, "{\"ok\":false,\"error\":{\"status\":403" },
                { KEY_OTHER, "*", 200, "{\"ok\":false,\"error\":{\"status\":403" },
                { KEY_OTHER, NULL, 200, "{\"ok\":false,\"error\":{\"status\":401" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].says);
                bridge_request(cases[i].key, "destroySandbox", cases[i].tenant,
                               "{\"sandboxId\":\"nope\"}");
                check_i64_eq(w.status, cases[i].status);
                check_true(says(cases[i].says));
        }
}

static void the_life_of_one(void **state)
{
        char id[64] = "", path[128];

        api_request(&w, KEY_ACME, "POST", "/api/v1/sandbox", "{\"projectId\":\"p\"}");
        check_i64_eq(w.status, 200);
        check_true(says("\"status\":\"starting\"}") && !says("created"));
        memcpy(id, w.body.p + sizeof("{\"sandboxId\":\"") - 1, 36);
        api_request(&w, KEY_ACME, "POST", "/api/v1/sandbox", "{\"projectId\":\"p\"}");
        check_i64_eq(w.status, 409);
        check_true(says("already exists for this owner. Use ensureSandbox to reuse it.")
                   && says(id));
        api_request(&w, KEY_ACME, "POST", "/api/v1/sandbox/ensure", "{\"projectId\":\"p\"}");
        check_i64_eq(w.status, 200);
        check_true(says("\"status\":\"ready\",\"created\":false}") && says(id));
        (void) snprintf(path, sizeof(path), "/api/v1/sandbox/%s?projectId=q", id);
        api_request(&w, KEY_ACME, "DELETE", path, NULL);
        check_i64_eq(w.status, 403);
        (void) snprintf(path, sizeof(path), "/api/v1/sandbox/%s", id);
        api_request(&w, KEY_OTHER, "DELETE", path, NULL);
        check_i64_eq(w.status, 404);
        api_request(&w, KEY_ADMIN, "DELETE", path, NULL);
        check_i64_eq(w.status, 404);
        api_request(&w, KEY_ACME, "DELETE", path, NULL);
        check_i64_eq(w.status, 200);
        check_true(says("\"destroyed\":true}"));
        api_request(&w, KEY_ACME, "DELETE", path, NULL);
        check_i64_eq(w.status, 404);
        check_u64_eq(world_live(&w.below), 0);
}

static void a_bridge_hears_of_what_was_started(void **state)
{
        bridge_request(KEY_ACME, "ensureSandbox", "org-1", "{\"projectId\":\"p\"}");
        check_i64_eq(w.status, 200);
        check_true(says("{\"ok\":true,\"payload\":{\"sandboxId\":"));
        check_true(says(",\"events\":[{\"name\":\"SandboxStarted\",\"payload\":{\"sandboxId\":"));
        check_true(
                says("\"organizationId\":\"org-1\",\"projectId\":\"p\",\"userId\":\"user-1\"}}]}"));
        bridge_request(KEY_ACME, "ensureSandbox", "org-1", "{\"projectId\":\"p\"}");
        check_true(says("\"created\":false}}") && !says("events"));
}

/* The requests of a bridge use the shares of the tenants that it acts for, not one of its own. */
static void a_bridge_uses_the_share_of_the_tenant(void **state)
{
        static const char ensure[] = "{\"command\":\"ensureSandbox\",\"principalId\":\"user-1\","
                                     "\"tenantId\":\"org-1\",\"payload\":{\"projectId\":\"p\"}}";
        struct http_loopback first;

        w.server->config.caps.max[HTTP_PARTY_TENANT][HTTP_USE_REQUESTS] = 1;
        w.server->config.caps.max[HTTP_PARTY_KEY][HTTP_USE_REQUESTS] = 1;
        http_loopback_init(&first, w.server);
        http_loopback_header(&first, STR("Host"), STR("127.0.0.1:8080"));
        http_loopback_header(&first, STR("OPEN-SANDBOX-API-KEY"), STR(KEY_ACME));
        http_loopback_start(&first, "POST", COMMAND, str_from(ensure));
        check_false(first.ended);
        bridge_request(KEY_ACME, "destroySandbox", "org-1", "{\"sandboxId\":\"nope\"}");
        check_true(says("{\"ok\":false,\"error\":{\"status\":429"));
        check_true(says("limits.tenant_requests"));
        bridge_request(KEY_ACME, "destroySandbox", "org-2", "{\"sandboxId\":\"nope\"}");
        check_true(says("{\"ok\":false,\"error\":{\"status\":404"));
        service_world_until(&w.below, first.ended);
        http_loopback_done(&first);
        bridge_request(KEY_ACME, "destroySandbox", "org-1", "{\"sandboxId\":\"nope\"}");
        check_true(says("{\"ok\":false,\"error\":{\"status\":404"));
}

static void commands_that_are_not_offered(void **state)
{
        static const struct purista_config none = { 0 };

        w.api.purista = &none;
        api_request(&w, KEY_ACME, "POST", "/api/v1/sandbox", "{\"projectId\":\"p\"}");
        check_i64_eq(w.status, 501);
        check_true(
                says("{\"status\":501,\"message\":\"this server does not offer PURISTA sandboxes"));
        w.api.purista = NULL;
        bridge_request(KEY_ACME, "ensureSandbox", "org-1", "{}");
        check_i64_eq(w.status, 501);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                WITH_WORLD(only_bridges_act_for_others),
                WITH_WORLD(the_life_of_one),
                WITH_WORLD(a_bridge_hears_of_what_was_started),
                WITH_WORLD(a_bridge_uses_the_share_of_the_tenant),
                WITH_WORLD(commands_that_are_not_offered),
        };

        return cmocka_run_group_tests_name("purista", tests, NULL, NULL);
}
