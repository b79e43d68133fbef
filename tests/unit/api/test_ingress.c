/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"

#include "base/base.h"
#include "tests/lib/ingress_world.h"

/* Which credentials grant access to a port of a sandbox, and which do not. */

#define NOW UINT64_C(1700000000)

static struct ingress_world w;

static int with_keys(void **state)
{
        ingress_world_open(&w, true);
        return 0;
}

static int without_keys(void **state)
{
        ingress_world_open(&w, false);
        return 0;
}

static int tear_down(void **state)
{
        ingress_world_close(&w);
        return 0;
}

/* --- the matrix --- */

enum ingress_kind {
        PATH,      /* /sandboxes/{id}/proxy/8080/x */
        PATH_V1,   /* /v1/… */
        AGENT,     /* the agent's own port; tokens are made for it */
        SUBDOMAIN, /* {id}-8080.preview.example/x */
        OTHER,     /* PATH to the other tenant's sandbox */
        MISSING,   /* PATH to an id that is none */
        SECURED,   /* PATH to the one with secureAccess */
        KINDS,
};

static const char *id_of(enum ingress_kind k)
{
        return k == OTHER ? w.other : k == MISSING ? "no-such" : k == SECURED ? w.secured : w.id;
}

static uint16_t port_of(enum ingress_kind k)
{
        return k == AGENT ? 44772 : 8080;
}

enum token_kind {
        NONE,
        GOOD,       /* of the requested port */
        FOREIGN,    /* of the same port of another sandbox */
        OTHER_PORT, /* of another port of the same sandbox */
        ENDED,      /* was good until now */
        ENDS,       /* is good until the next second */
        FORGED,     /* of another installation */
        WORDS,      /* is what it says */
};

static const char *token_of(enum token_kind t, enum ingress_kind k, const char *words)
{
        const char *id = id_of(k), *text;
        struct str secret = w.api.secret;

        switch (t) {
        case GOOD:
                return ingress_token(&w, id, port_of(k), 0);
        case FOREIGN:
                return ingress_token(&w, k == OTHER ? w.id : w.other, port_of(k), 0);
        case OTHER_PORT:
                return ingress_token(&w, id, (uint16_t) (port_of(k) + 1), 0);
        case ENDED:
                return ingress_token(&w, id, port_of(k), NOW);
        case ENDS:
                return ingress_token(&w, id, port_of(k), NOW + 1);
        case FORGED:
                w.api.secret = STR("another secret");
                text = ingress_token(&w, id, port_of(k), 0);
                w.api.secret = secret;
                return text;
        case WORDS:
        case NONE:
        default:
                return words;
        }
}

struct credential {
        const char *where; /* a header, "path", "query", "cookie"; NULL: nothing */
        enum token_kind token;
        const char *words;
};

static void request(const struct credential *s, enum ingress_kind k)
{
        const char *token = s->where ? token_of(s->token, k, s->words) : NULL;
        const char *in_path = token && strcmp(s->where, "path") == 0 ? ingress_text("~%s", token)
                                                                     : "";
        const char *query = token && strcmp(s->where, "query") == 0
                                    ? ingress_text("?a=1&hutch_token=%s", token)
                                    : "";
        struct ingress_request q = { 0 };

        check_case(ingress_text("%s: %s (%u) at %u", s->where ? s->where : "nothing",
                                s->words ? s->words : "", s->token, k));
        if (k == SUBDOMAIN)
                q.host = ingress_text("%s-8080." PREVIEW, w.id);
        q.target = k == SUBDOMAIN ? ingress_text("/x%s", query)
                                  : ingress_text("%s/sandboxes/%s/proxy/%u%s/x%s",
                                                 k == PATH_V1 ? "/v1" : "", id_of(k), port_of(k),
                                                 in_path, query);
        if (token && !in_path[0] && !query[0]) {
                bool cookie = strcmp(s->where, "cookie") == 0;

                q.name[0] = cookie ? "Cookie" : s->where;
                q.value[0] = cookie ? ingress_text("a=1; hutch_token=%s", token) : token;
        }
        ingress_call(&w, &q);
}

/* No credential has reached the sandbox. */
static void check_kept_outside(const struct credential *s, enum ingress_kind k)
{
        if (!s->where || ingress_status(&w) != 200)
                return;
        check_true(ingress_body_has(&w, "\nX-Request-ID: "));
        check_false(ingress_body_has(&w, token_of(s->token, k, s->words)));
        check_false(ingress_body_has(&w, "hutch_token"));
}

#define EXECD  "X-EXECD-ACCESS-TOKEN"
#define EGRESS "OPENSANDBOX-EGRESS-AUTH"
#define SECURE "OpenSandbox-Secure-Access"
#define KEY    "OPEN-SANDBOX-API-KEY"

static void with_keys_a_door_asks_for_one_or_a_token(void **state)
{
        static const struct {
                struct credential credential;
                int status[KINDS]; /* PATH PATH_V1 AGENT SUBDOMAIN OTHER MISSING SECURED */
        } cases[] = {
                { { NULL, NONE, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { KEY, WORDS, "" }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { KEY, WORDS, "wrong" }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { KEY, WORDS, KEY_READ }, { 403, 403, 403, 403, 403, 403, 403 } },
                { { KEY, WORDS, KEY_OTHER }, { 404, 404, 404, 404, 200, 404, 404 } },
                { { KEY, WORDS, KEY_MINE }, { 200, 200, 200, 200, 404, 404, 200 } },
                { { KEY, WORDS, KEY_ADMIN }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { "X-API-Key", WORDS, KEY_MINE }, { 200, 200, 200, 200, 404, 404, 200 } },
                { { EXECD, WORDS, KEY_MINE }, { 200, 200, 200, 200, 404, 404, 200 } },
                { { EGRESS, WORDS, KEY_MINE }, { 200, 200, 200, 200, 404, 404, 200 } },
                { { SECURE, WORDS, KEY_MINE }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { EXECD, WORDS, KEY_READ }, { 403, 403, 403, 403, 403, 403, 403 } },
                { { "Authorization", WORDS, "Bearer " KEY_MINE },
                  { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", WORDS, KEY_MINE }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "query", WORDS, KEY_MINE }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "cookie", WORDS, KEY_MINE }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { EXECD, GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { EGRESS, GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { SECURE, GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { SECURE, ENDS, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { SECURE, ENDED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { SECURE, FOREIGN, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { SECURE, OTHER_PORT, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { SECURE, FORGED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { KEY, GOOD, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", GOOD, NULL }, { 200, 200, 200, 401, 200, 404, 200 } },
                { { "path", ENDS, NULL }, { 200, 200, 200, 401, 200, 404, 200 } },
                { { "path", ENDED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", FOREIGN, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", OTHER_PORT, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", FORGED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", WORDS, "" }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "path", WORDS, "~~~" }, { 401, 401, 401, 401, 401, 401, 401 } },
                /* Cookies and queries are for hosts of their own. */
                { { "query", GOOD, NULL }, { 401, 401, 401, 303, 401, 401, 401 } },
                { { "query", ENDED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "query", FOREIGN, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "cookie", GOOD, NULL }, { 401, 401, 401, 200, 401, 401, 401 } },
                { { "cookie", ENDED, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "cookie", FOREIGN, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
                { { "cookie", OTHER_PORT, NULL }, { 401, 401, 401, 401, 401, 401, 401 } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (enum ingress_kind k = 0; k < KINDS; k++) {
                        request(&cases[i].credential, k);
                        check_i64_eq(ingress_status(&w), cases[i].status[k]);
                        check_kept_outside(&cases[i].credential, k);
                }
}

static void without_keys_doors_are_open_unless_secured(void **state)
{
        static const struct {
                struct credential credential;
                int status[KINDS]; /* PATH PATH_V1 AGENT SUBDOMAIN OTHER MISSING SECURED */
        } cases[] = {
                { { NULL, NONE, NULL }, { 200, 200, 200, 200, 200, 404, 401 } },
                { { KEY, WORDS, "whatever" }, { 200, 200, 200, 200, 200, 404, 401 } },
                { { SECURE, GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { EXECD, GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { "path", GOOD, NULL }, { 200, 200, 200, 200, 200, 404, 200 } },
                { { SECURE, FOREIGN, NULL }, { 200, 200, 200, 200, 200, 404, 401 } },
                { { SECURE, OTHER_PORT, NULL }, { 200, 200, 200, 200, 200, 404, 401 } },
                { { "path", ENDED, NULL }, { 200, 200, 200, 200, 200, 404, 401 } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (enum ingress_kind k = 0; k < KINDS; k++) {
                        request(&cases[i].credential, k);
                        check_i64_eq(ingress_status(&w), cases[i].status[k]);
                        check_kept_outside(&cases[i].credential, k);
                        if (k == SECURED && cases[i].status[k] == 401)
                                check_true(
                                        ingress_body_has(&w, "MISSING_OR_INVALID_SECURE_ACCESS"));
                }
}

static void one_good_thing_is_enough(void **state)
{
        struct ingress_request q = { .target = ingress_text("/sandboxes/%s/proxy/8080~nonsense/x",
                                                            w.id),
                                     .name = { EXECD, KEY, SECURE },
                                     .value = { "a token of yesterday", KEY_MINE, "no" } };

        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
        q.value[1] = "wrong";
        q.value[2] = ingress_token(&w, w.id, 8080, 0);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
        q.value[2] = "no";
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 401);
}

static void odd_names_are_no_sandboxes(void **state)
{
        static const struct {
                const char *target;
                int status;
        } cases[] = {
                { "/sandboxes/../proxy/8080/x", 404 },
                { "/sandboxes/%2e%2e/proxy/8080/x", 404 },
                { "/sandboxes/a%2Fb/proxy/8080/x", 404 },
                { "/sandboxes/a%00b/proxy/8080/x", 400 },
                { "/sandboxes/%20/proxy/8080/x", 404 },
                { "/sandboxes/A/proxy/8080/x", 404 },
                { "/sandboxes/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/proxy/8080/x",
                  404 },
                { "/sandboxes//proxy/8080/x", 404 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].target);
                ingress_call(&w, &(struct ingress_request){ .target = cases[i].target,
                                                            .name = { KEY },
                                                            .value = { KEY_ADMIN } });
                check_i64_eq(ingress_status(&w), cases[i].status);
        }
}

static void ports_that_are_none(void **state)
{
        static const char *const ports[] = { "0", "65536", "http", "08080", "-1", "%38080x", "~t" };

        for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
                struct ingress_request q = { .target = ingress_text("/sandboxes/%s/proxy/%s/x",
                                                                    w.id, ports[i]),
                                             .name = { KEY },
                                             .value = { KEY_MINE } };

                check_case(ports[i]);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 400);
                check_true(ingress_body_has(&w, "DOCKER::INVALID_PORT"));
                q.value[0] = "wrong"; /* strangers learn nothing */
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 401);
        }
}

/* --- pages --- */

static void pages_need_a_token_of_their_own(void **state)
{
        static const struct {
                const char *origin;
                struct credential credential;
                enum ingress_kind kind;
                int status;
        } cases[] = {
                /* The page of a sandbox, at its own backend. */
                { "null", { "path", GOOD, NULL }, PATH, 200 },
                { "null", { NULL, NONE, NULL }, PATH, 403 },
                { "null", { NULL, NONE, NULL }, AGENT, 403 },
                { "null", { "path", FOREIGN, NULL }, PATH, 403 },
                /* Another page. */
                { "https://evil.example", { NULL, NONE, NULL }, PATH, 403 },
                { "https://evil.example", { SECURE, GOOD, NULL }, PATH, 200 },
                { "https://evil.example", { NULL, NONE, NULL }, SUBDOMAIN, 403 },
                { "https://evil.example", { "cookie", GOOD, NULL }, SUBDOMAIN, 403 },
                { "null", { "cookie", GOOD, NULL }, SUBDOMAIN, 403 },
                { "https://evil.example", { SECURE, GOOD, NULL }, SUBDOMAIN, 200 },
                /* The UI's own origin. */
                { "http://" HOST, { NULL, NONE, NULL }, PATH, 200 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ingress_request q;
                const char *token = cases[i].credential.where ? token_of(cases[i].credential.token,
                                                                         cases[i].kind, NULL)
                                                              : NULL;
                bool in_path = token && strcmp(cases[i].credential.where, "path") == 0;
                bool cookie = token && strcmp(cases[i].credential.where, "cookie") == 0;

                check_case(ingress_text("%zu: %s", i, cases[i].origin));
                q = (struct ingress_request){ .method = "POST",
                                              .body = "x",
                                              .name = { "Origin" },
                                              .value = { cases[i].origin } };
                if (cases[i].kind == SUBDOMAIN) {
                        q.host = ingress_text("%s-8080." PREVIEW, w.id);
                        q.target = "/x";
                } else {
                        q.target = ingress_text("/sandboxes/%s/proxy/%u%s%s/x", w.id,
                                                port_of(cases[i].kind), in_path ? "~" : "",
                                                in_path ? token : "");
                }
                if (token && !in_path) {
                        q.name[1] = cookie ? "Cookie" : cases[i].credential.where;
                        q.value[1] = cookie ? ingress_text("hutch_token=%s", token) : token;
                }
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), cases[i].status);
        }
}

static void ports_of_one_preview_know_each_other(void **state)
{
        static const struct {
                const char *origin; /* with the id */
                int status;
        } cases[] = {
                { "http://%s-3000." PREVIEW, 200 },       { "https://%s-8080." PREVIEW, 200 },
                { "http://%s-8080." PREVIEW ":99", 200 }, { "http://%s-3000.evil.example", 403 },
                { "http://x%s-3000." PREVIEW, 403 },      { "http://%s." PREVIEW, 403 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str format = str_from(cases[i].origin), before;
                const char *origin;

                (void) str_split(&format, '%', &before);
                origin = ingress_text("%.*s%s%.*s", STR_ARG(before), w.id,
                                      STR_ARG(str_skip(format, 1)));
                check_case(origin);
                ingress_call(&w, &(struct ingress_request){
                                         .method = "POST",
                                         .target = "/x",
                                         .host = ingress_text("%s-8080." PREVIEW, w.id),
                                         .name = { "Origin" },
                                         .value = { origin } });
                check_i64_eq(ingress_status(&w), cases[i].status);
        }
}

static void without_keys_other_sites_reach_no_sandbox(void **state)
{
        static const struct {
                const char *site, *dest, *method, *origin;
                bool token;
                int status;
        } cases[] = {
                { "same-origin", "empty", "GET", NULL, false, 200 },
                { "none", "document", "GET", NULL, false, 200 },
                { "cross-site", "image", "GET", NULL, false, 403 },
                { "same-site", "image", "GET", NULL, false, 403 },
                { "cross-site", "image", "GET", NULL, true, 200 },
                /* a link to a preview */
                { "cross-site", "document", "GET", NULL, false, 200 },
                { "cross-site", "document", "POST", NULL, false, 403 },
                /* another port of the same app */
                { "same-site", "empty", "GET", "its own", false, 200 },
                { "cross-site", "empty", "GET", "its own", false, 403 },
                { "same-site", "empty", "GET", "https://evil.example", false, 403 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *origin = cases[i].origin;
                struct ingress_request q = {
                        .method = cases[i].method,
                        .target = "/x",
                        .host = ingress_text("%s-8080." PREVIEW, w.id),
                        .name = { "Sec-Fetch-Site", "Sec-Fetch-Dest" },
                        .value = { cases[i].site, cases[i].dest },
                };

                check_case(ingress_text("%zu: %s %s", i, cases[i].site, cases[i].dest));
                if (origin && strcmp(origin, "its own") == 0)
                        origin = ingress_text("http://%s-3000." PREVIEW, w.id);
                if (origin || cases[i].token) {
                        q.name[2] = origin ? "Origin" : HEADER_SECURE;
                        q.value[2] = origin ? origin : ingress_token(&w, w.id, 8080, 0);
                }
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), cases[i].status);
        }
}

static void rebinding_reaches_no_sandbox(void **state)
{
        struct ingress_request q = { .target = ingress_text("/sandboxes/%s/proxy/44772/command",
                                                            w.id),
                                     .method = "POST",
                                     .host = "evil.example:8080" };

        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 403);
        check_true(ingress_body_has(&w, "HOST_NOT_ALLOWED"));
}

/* The same Idempotency-Key gives the same id once more; who had a token of the first has none of the
 * second. */
static void a_token_ends_with_its_sandbox(void **state)
{
        const struct create_options options = { .key = "again" };
        struct made first = world_create(&w.base, &options), second;
        const char *old = ingress_token(&w, first.id, 8080, 0);
        struct ingress_request q = { .target = ingress_text("/sandboxes/%s/proxy/8080/x", first.id),
                                     .name = { "OpenSandbox-Secure-Access" },
                                     .value = { old } };

        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
        check_i64_eq(world_command(&w.base, service_delete, first.id), 0);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 401);
        service_world_advance(&w.base, USEC_PER_SEC);
        second = world_create(&w.base, &options);
        check_i64_eq(second.result, 0);
        check_str_eq(str_from(second.id), first.id);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 401);
        q.value[0] = ingress_token(&w, second.id, 8080, 0);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define KEYS(f) cmocka_unit_test_setup_teardown(f, with_keys, tear_down)
#define OPEN(f) cmocka_unit_test_setup_teardown(f, without_keys, tear_down)
                KEYS(with_keys_a_door_asks_for_one_or_a_token),
                OPEN(without_keys_doors_are_open_unless_secured),
                KEYS(one_good_thing_is_enough),
                KEYS(odd_names_are_no_sandboxes),
                KEYS(ports_that_are_none),
                OPEN(pages_need_a_token_of_their_own),
                OPEN(ports_of_one_preview_know_each_other),
                OPEN(without_keys_other_sites_reach_no_sandbox),
                OPEN(rebinding_reaches_no_sandbox),
                KEYS(a_token_ends_with_its_sandbox),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
