/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/create.h"
#include "model/limits.h"

#define REST   "\"resourceLimits\":{\"cpu\":\"1\"},\"entrypoint\":[\"sh\"]"
#define GOOD   "\"image\":{\"uri\":\"debian\"}," REST
#define VOLUME "\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":\"/srv/a\"}}]"
#define POLICY "\"networkPolicy\":{\"egress\":[]}"

struct world {
        struct arena arena;
        struct create_request c;
        struct problems problems;
};

static struct str dirs[] = { STR("/srv") };
static const struct create_policy policy = {
        .timeout_max_s = 86400,
        .host_dirs = { dirs, 1 },
};

/* Decodes and checks; 0 or -EINVAL with the problems. */
static int run(struct world *w, const char *body)
{
        struct json_error e;

        *w = (struct world){ 0 };
        arena_init(&w->arena, ARENA_MAX_REQUEST);
        if (json_decode(str_from(body), create_fields, 0, &w->arena, &w->c, &e) == 0)
                return create_check(&w->c, &policy, &w->arena, &w->problems);
        problems_add_json(&w->problems, &w->arena, &e);
        return -EINVAL;
}

static void done(struct world *w)
{
        arena_done(&w->arena);
}

static void test_good_requests(void **state)
{
        static const char *const bodies[] = {
                "{" GOOD "}",
                "{" GOOD ",\"timeout\":60}",
                "{" GOOD ",\"timeout\":null}",
                "{" GOOD ",\"timeout\":86400,\"unknown\":{\"a\":[]}}",
                "{\"image\":{\"uri\":\"r.example:5000/a/b@sha256:0123\",\"auth\":{\"username\":\"u\","
                "\"password\":\"p\"}}," REST "}",
                "{\"snapshotId\":\"snap-1\",\"resourceLimits\":{}}",
                "{\"snapshot_id\":\"snap-1\",\"resource_limits\":{},\"image\":{\"uri\":\" \"}}",
                "{\"snapshotId\":null,\"networkPolicy\":null,\"volumes\":null,\"env\":null," GOOD
                "}",
                "{" GOOD ",\"env\":{\"A\":\"1\",\"B\":null,\"\xc3\xa4\":\"\"}}",
                "{" GOOD ",\"env\":{\"OPENSANDBOX_EGRESS_LOG_LEVEL\":\"debug\"}}",
                "{" GOOD ",\"platform\":{\"os\":\"linux\",\"arch\":\"arm64\"}}",
                "{" GOOD ",\"secure_access\":true}",
                "{" GOOD "," VOLUME "}",
                "{" GOOD ",\"credentialProxy\":{\"enabled\":false}}",
                "{" GOOD ",\"resourceRequests\":{\"cpu\":\"100m\"}}",
                "{" GOOD ",\"network_policy\":{\"defaultAction\":\"deny\",\"egress\":[{\"action\":"
                "\"allow\",\"target\":\"pypi.org\"}]}}",
                "{" GOOD ",\"extensions\":{\"poolRef\":\"\"}}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                struct world w;

                check_case(bodies[i]);
                check_i64_eq(run(&w, bodies[i]), 0);
                done(&w);
        }
}

static void test_problems_of_form(void **state)
{
        static const struct {
                const char *body, *loc, *msg;
        } cases[] = {
                { "{" REST "}", "[\"body\"]", "exactly one of image and snapshotId is required" },
                { "{\"image\":{\"uri\":\"\"}," REST "}", "[\"body\"]",
                  "exactly one of image and snapshotId is required" },
                { "{\"snapshotId\":\"s\"," GOOD "}", "[\"body\"]",
                  "image and snapshotId exclude each other" },
                { "{\"snapshotId\":\"s\"," REST ",\"extensions\":{\"poolRef\":\"p\"}}",
                  "[\"body\"]", "snapshotId and extensions.poolRef exclude each other" },
                { "{\"image\":{\"uri\":\"a\"},\"resourceLimits\":{}}", "[\"body\",\"entrypoint\"]",
                  "is required with an image" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"]}",
                  "[\"body\",\"resourceLimits\"]", "is required" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":null}",
                  "[\"body\",\"resourceLimits\"]", "is required" },
                { "{" GOOD ",\"credentialProxy\":{\"enabled\":true}}",
                  "[\"body\",\"credentialProxy\"]", "needs a networkPolicy when it is enabled" },
                { "{" GOOD ",\"timeout\":59}", "[\"body\",\"timeout\"]", "must be at least 60" },
                { "{" GOOD ",\"timeout\":315360001}", "[\"body\",\"timeout\"]",
                  "must be at most 315360000" },
                { "{" GOOD ",\"timeout\":60.5}", "[\"body\",\"timeout\"]", "must be an integer" },
                { "{\"image\":\"debian\"," REST "}", "[\"body\",\"image\"]", "must be an object" },
                { "{\"image\":{\"uri\":\"a\",\"auth\":{\"username\":\"u\"}}," REST "}",
                  "[\"body\",\"image\",\"auth\",\"password\"]", "is required" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[],\"resourceLimits\":{}}",
                  "[\"body\",\"entrypoint\"]", "must not be empty" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[1],\"resourceLimits\":{}}",
                  "[\"body\",\"entrypoint\",0]", "must be a string" },
                { "{" GOOD ",\"env\":{\"A\":1}}", "[\"body\",\"env\",\"A\"]", "must be a string" },
                { "{" GOOD ",\"platform\":{\"os\":\"linux\"}}", "[\"body\",\"platform\",\"arch\"]",
                  "is required" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct problem *p;
                struct world w;

                check_case(cases[i].body);
                check_i64_eq(run(&w, cases[i].body), -EINVAL);
                check_true(!w.problems.code);
                check_u64_eq(w.problems.detail.n, 1);
                p = w.problems.detail.items;
                check_str_eq(p->loc, cases[i].loc);
                check_str_eq(p->msg, cases[i].msg);
                done(&w);
        }
}

static void test_all_problems_of_form_are_reported(void **state)
{
        struct world w;

        check_i64_eq(run(&w, "{\"metadata\":{\"a b\":\"\"}}"), -EINVAL);
        check_u64_eq(w.problems.detail.n, 2); /* no source, no limits; rules come later */
        check_true(!w.problems.code);
        done(&w);
}

static void test_broken_rules(void **state)
{
        static const struct {
                const char *body, *code, *message;
        } cases[] = {
                { "{" GOOD ",\"metadata\":{\"a\":\"x y\"}}", CODE_INVALID_METADATA_LABEL, NULL },
                { "{" GOOD ",\"metadata\":{\"opensandbox.io/a\":\"x\"}}",
                  CODE_INVALID_METADATA_LABEL,
                  "metadata key \"opensandbox.io/a\": the prefix is reserved" },
                { "{\"extensions\":{\"poolRef\":\"p\"}}", CODE_UNSUPPORTED_POOL_REF,
                  "extensions.poolRef: this server has no pools" },
                { "{" GOOD ",\"timeout\":86401}", CODE_INVALID_PARAMETER,
                  "timeout: must be at most 86400 seconds on this server" },
                { "{" GOOD ",\"extensions\":{\"access.renew.extend.seconds\":\"299\"}}",
                  CODE_INVALID_PARAMETER,
                  "extensions.access.renew.extend.seconds: \"299\" is not a number of seconds from 300 "
                  "to 86400" },
                { "{" GOOD ",\"platform\":{\"os\":\"plan9\",\"arch\":\"amd64\"}}",
                  CODE_INVALID_PARAMETER, "platform.os: must be linux or windows" },
                { "{" GOOD ",\"platform\":{\"os\":\"linux\",\"arch\":\"mips\"}}",
                  CODE_INVALID_PARAMETER, "platform.arch: must be amd64 or arm64" },
                { "{\"image\":{\"uri\":\"--privileged\"}," REST "}", CODE_INVALID_PARAMETER,
                  "image.uri: is not the name of an image" },
                { "{\"image\":{\"uri\":\"a b\"}," REST "}", CODE_INVALID_PARAMETER, NULL },
                { "{\"image\":{\"uri\":\"a\\nb\"}," REST "}", CODE_INVALID_PARAMETER, NULL },
                { "{\"snapshotId\":\"../s\"," REST "}", CODE_INVALID_PARAMETER,
                  "snapshotId: is not the id of a snapshot" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"\"],\"resourceLimits\":{}}",
                  CODE_INVALID_PARAMETER, "entrypoint[0]: must not be empty" },
                { "{" GOOD ",\"env\":{\"\":\"hunter2\"}}", CODE_INVALID_PARAMETER,
                  "env: \"\" is not the name of a variable" },
                { "{" GOOD ",\"env\":{\"A=B\":\"hunter2\"}}", CODE_INVALID_PARAMETER,
                  "env: \"A=B\" is not the name of a variable" },
                { "{" GOOD ",\"env\":{\"OPENSANDBOX_EGRESS_MODE\":\"hunter2\"}}",
                  CODE_INVALID_PARAMETER, "env: \"OPENSANDBOX_EGRESS_MODE\" may not be set" },
                { "{" GOOD "," POLICY ",\"credentialProxy\":{\"enabled\":true},\"env\":{"
                  "\"OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE\":\"1\"}}",
                  CODE_INVALID_PARAMETER,
                  "env: \"OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE\" may not be set together with "
                  "credentialProxy" },
                { "{" GOOD "," POLICY ",\"credentialProxy\":{\"enabled\":true}}",
                  CODE_INVALID_PARAMETER, "credentialProxy: this server has none" },
                { "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"memory\":"
                  "\"lots\"}}",
                  CODE_INVALID_PARAMETER, NULL },
                { "{" GOOD
                  ",\"networkPolicy\":{\"egress\":[{\"action\":\"deny\",\"target\":\"*\"}]}}",
                  CODE_INVALID_PARAMETER, NULL },
                { "{" GOOD
                  ",\"volumes\":[{\"name\":\"A\",\"mountPath\":\"/a\",\"host\":{\"path\":\"/srv\"}"
                  "}]}",
                  "VOLUME::INVALID_NAME", NULL },
                { "{" GOOD ",\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/a\"}]}",
                  "VOLUME::INVALID_BACKEND", NULL },
                { "{" GOOD ",\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":"
                  "\"/srvx\"}}]}",
                  "VOLUME::HOST_PATH_NOT_ALLOWED",
                  "volumes[0].host.path: is in none of the directories that this server allows" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct world w;

                check_case(cases[i].body);
                check_i64_eq(run(&w, cases[i].body), -EINVAL);
                check_z_eq(w.problems.code, cases[i].code);
                check_u64_eq(w.problems.detail.n, 1);
                if (cases[i].message)
                        check_str_eq(problems_message(&w.problems), cases[i].message);
                check_true(!strstr(problems_message(&w.problems).p, "hunter2"));
                done(&w);
        }
}

static struct create_facts facts(void)
{
        return (struct create_facts){
                .id = STR("8d7f2f0e-5c0a-4a39-9d3c-0c2f1f9f6f11"),
                .node = STR("n1"),
                .tenant = STR("acme"),
                .driver = STR("fake"),
                .owner = { STR("acme"), STR("default"), STR("me"), { 0 } },
                .now = { 7 * USEC_PER_SEC, 1700000000123456, STR("boot-1") },
        };
}

static void test_a_request_becomes_a_record(void **state)
{
        static const char body[] =
                "{\"image\":{\"uri\":\"debian:12\",\"auth\":{\"username\":\"u\",\"password\":\"hunter2\"}},"
                "\"timeout\":60,\"resourceLimits\":{\"cpu\":\"0.5\",\"memory\":\"262144Ki\"},"
                "\"entrypoint\":[\"sleep\",\"9\"],\"env\":{\"TOKEN\":\"hunter2\",\"GONE\":null,"
                "\"OPENSANDBOX_EGRESS_LOG_LEVEL\":\"hunter2\"},\"metadata\":{\"name\":\"x\"},"
                "\"volumes\":[{\"name\":\"o\",\"mountPath\":\"/o\",\"ossfs\":{\"bucket\":\"bkt\","
                "\"endpoint\":\"e\",\"accessKeyId\":\"hunter2\",\"accessKeySecret\":\"hunter2\"}}],"
                "\"extensions\":{\"opensandbox.extensions.a\":\"b\"},\"secureAccess\":true}";
        static const char record[] =
                "{\"schema\":1,\"sandboxId\":\"8d7f2f0e-5c0a-4a39-9d3c-0c2f1f9f6f11\","
                "\"organizationId\":\"acme\",\"projectId\":\"default\",\"userId\":\"me\","
                "\"containerName\":\"hutch-8d7f2f0e-5c0a-4a39-9d3c-0c2f1f9f6f11\","
                "\"createdAt\":1700000000123,\"scope\":{\"kind\":\"shared-project-user\"},"
                "\"tenant\":\"acme\",\"node\":\"n1\",\"driver\":\"fake\",\"image\":\"debian:12\","
                "\"entrypoint\":[\"sleep\",\"9\"],\"envNames\":[\"TOKEN\"],"
                "\"resourceLimits\":{\"cpu\":\"500m\",\"memory\":\"256Mi\"},"
                "\"volumes\":[{\"name\":\"o\",\"mountPath\":\"/o\",\"ossfs\":{\"bucket\":\"bkt\","
                "\"endpoint\":\"e\",\"version\":\"2.0\"}}],"
                "\"metadata\":{\"name\":\"x\"},\"extensions\":{\"opensandbox.extensions.a\":\"b\"},"
                "\"secureAccess\":true,"
                "\"expiry\":{\"at\":1700000060123,\"mono\":67000000,\"granted\":60000,"
                "\"bootId\":\"boot-1\"},"
                "\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":1700000000123},\"version\":1}";
        scoped(sandbox_freep) struct sandbox *s = NULL, *back = NULL;
        scoped(buf_done) struct buf b;
        struct create_facts f = facts();
        struct world w;
        struct err e;

        buf_init(&b, RECORD_TEXT_MAX);
        check_i64_eq(run(&w, body), 0);
        check_i64_eq(create_to_sandbox(&w.c, &f, &s, &e), 0);
        done(&w); /* the record outlives the request */
        sandbox_encode(&b, s);
        check_str_eq(buf_str(&b), record);
        check_true(!strstr(buf_str(&b).p, "hunter2"));
        check_i64_eq(sandbox_decode(buf_str(&b), &back, &e), 0);
}

static void test_defaults_of_a_snapshot(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct create_facts f = facts();
        struct world w;
        struct err e;

        check_i64_eq(
                run(&w,
                    "{\"snapshotId\":\"s\",\"resourceLimits\":{},\"networkPolicy\":{\"egress\":["
                    "{\"action\":\"allow\",\"target\":\"PyPI.org.\"}]},"
                    "\"env\":{\"OPENSANDBOX_EGRESS_LOG_LEVEL\":\"x\"}}"),
                0);
        f.owner_bound = f.git_configured = true;
        check_i64_eq(create_to_sandbox(&w.c, &f, &s, &e), 0);
        done(&w);
        check_u64_eq(s->entrypoint.n, 3);
        check_str_eq(s->entrypoint.items[0], "tail");
        check_true(!s->expiry && s->owner_bound && s->git_configured && !s->image.p);
        check_str_eq(((struct egress_rule *) s->network_policy->egress.items)->target, "pypi.org");
        check_u64_eq(s->env_names.n, 1); /* for the guard, which is there */
}

static void test_wrong_facts_make_no_record(void **state)
{
        struct sandbox *s = NULL;
        struct create_facts f = facts();
        struct world w;
        struct err e;

        check_i64_eq(run(&w, "{" GOOD "}"), 0);
        f.id = STR("../x");
        check_i64_eq(create_to_sandbox(&w.c, &f, &s, &e), ERR_RETURN(ERR_INVALID));
        f = facts();
        f.owner.user_id = STR("");
        check_i64_eq(create_to_sandbox(&w.c, &f, &s, &e), ERR_RETURN(ERR_INVALID));
        f = facts();
        f.tenant = STR_NULL;
        check_i64_eq(create_to_sandbox(&w.c, &f, &s, &e), ERR_RETURN(ERR_INVALID));
        check_true(!s);
        done(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good_requests),
                cmocka_unit_test(test_problems_of_form),
                cmocka_unit_test(test_all_problems_of_form_are_reported),
                cmocka_unit_test(test_broken_rules),
                cmocka_unit_test(test_a_request_becomes_a_record),
                cmocka_unit_test(test_defaults_of_a_snapshot),
                cmocka_unit_test(test_wrong_facts_make_no_record),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
