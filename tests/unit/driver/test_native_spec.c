/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "driver/native/native_impl.h"
#include "tests/lib/check.h"

/* What a record and a request mean to the warden, or why they mean nothing. */

#define RECORD_BEGIN                                                                                        \
        "{\"schema\":1,\"sandboxId\":\"a1\",\"organizationId\":\"o\",\"projectId\":\"p\",\"userId\":\"u\"," \
        "\"containerName\":\"hutch-a1\",\"createdAt\":1700000000123,"                                       \
        "\"scope\":{\"kind\":\"conversation\",\"key\":\"c\"},\"tenant\":\"t\",\"node\":\"n\","              \
        "\"driver\":\"native\",\"entrypoint\":[\"sh\",\"-c\",\"true\"],"
#define RECORD_END "\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}"

static struct json_pair variables[] = {
        { { "NAME", 4 }, { "a value", 7 } },
        { { "EMPTY", 5 }, { "", 0 } },
};

static int make(const char *members, const struct create_request *request, struct arena *a,
                struct plan_spec *ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *record = NULL;
        struct driver_create c = { .request = request };
        char text[2048];

        (void) snprintf(text, sizeof(text), RECORD_BEGIN "%s" RECORD_END, members);
        if (sandbox_decode(str_from(text), &record, e) < 0)
                fail_msg("%s", e->message);
        c.record = record;
        return native_spec(&c, PLAN_NETWORK_PRIVATE, a, ret, e);
}

static void what_is_wished_is_what_is_asked_for(void **state)
{
        const struct create_request request = { .secret_env = { variables, 2 } };
        scoped(arena_wipe) struct arena a;
        struct plan_spec s;
        struct err e;

        arena_init(&a, MiB);
        check_i64_eq(make("\"image\":\"host\",\"resourceLimits\":{\"cpu\":\"500m\","
                          "\"memory\":\"256Mi\",\"pids\":\"64\",\"io\":\"10Mi\","
                          "\"iops\":\"2k\"},",
                          &request, &a, &s, &e),
                     0);
        check_z_eq(s.id, "a1");
        check_z_eq(s.hostname, "a1");
        check_z_eq(s.workspace, "/workspace");
        check_u64_eq(s.image, PLAN_IMAGE_HOST);
        check_u64_eq(s.network, PLAN_NETWORK_PRIVATE);
        check_u64_eq(s.cpu_millis, 500);
        check_u64_eq(s.memory, 256 * MiB);
        check_u64_eq(s.pids, 64);
        check_u64_eq(s.io_bytes, 10 * MiB);
        check_u64_eq(s.io_operations, 2000);
        check_u64_eq(s.env.n, 2);
        check_z_eq(s.env.items[0], "NAME=a value");
        check_z_eq(s.env.items[1], "EMPTY=");
        check_u64_eq(s.args.n, 3);
        check_z_eq(s.args.items[2], "true");
        check_true(s.args.items[3] == NULL);

        check_i64_eq(make("\"image\":\"debian-12\",\"extensions\":{\"hutch.network\":\"none\","
                          "\"hutch.driver\":\"native\"},",
                          &request, &a, &s, &e),
                     0);
        check_u64_eq(s.image, PLAN_IMAGE_LAYERS);
        check_u64_eq(s.layers.n, 1);
        check_z_eq(s.layers.items[0], "debian-12");
        check_u64_eq(s.network, PLAN_NETWORK_NONE);
}

static void what_cannot_be_given_is_refused(void **state)
{
        static struct json_pair token = { { "EXECD_ACCESS_TOKEN", 18 }, { "t", 1 } };
        static struct json_pair nul = { { "NAME", 4 }, { "a\0b", 3 } };
        static struct image_auth auth;
        static struct create_image image = { .auth = &auth };
        static const struct create_request plain, with_token = { .secret_env = { &token, 1 } },
                                                  with_nul = { .secret_env = { &nul, 1 } },
                                                  with_auth = { .image = &image };
        static const struct {
                const char *members;
                const struct create_request *request;
                enum err_code code;
                const char *said;
        } cases[] = {
                { "\"image\":\"debian:12\",", &plain, ERR_NOT_FOUND, "no image \"debian:12\"" },
                { "\"image\":\"Host\",", &plain, ERR_NOT_FOUND, "no image \"Host\"" },
                { "\"image\":\"host\",\"resourceLimits\":{\"disk\":\"1Gi\"},", &plain,
                  ERR_UNSUPPORTED, "disk" },
                { "\"image\":\"host\",\"resourceLimits\":{\"gpu\":\"1\"},", &plain, ERR_UNSUPPORTED,
                  "gpu" },
                { "\"image\":\"host\",\"resourceLimits\":{\"pids\":\"2M\"},", &plain, ERR_INVALID,
                  "pids" },
                { "\"image\":\"host\",\"resourceLimits\":{\"io\":\"10m\"},", &plain, ERR_INVALID,
                  "from 64Ki" },
                { "\"image\":\"host\",\"resourceLimits\":{\"io\":\"2Ti\"},", &plain, ERR_INVALID,
                  "to 1Ti" },
                { "\"image\":\"host\",\"resourceLimits\":{\"iops\":\"15\"},", &plain, ERR_INVALID,
                  "iops" },
                { "\"image\":\"host\",\"resourceLimits\":{\"memory\":\"2Mi\"},", &plain,
                  ERR_INVALID, "memory" },
                { "\"image\":\"host\",\"extensions\":{\"hutch.network\":\"bridge\"},", &plain,
                  ERR_UNSUPPORTED, "bridge" },
                { "\"image\":\"host\",\"extensions\":{\"bootstrap.execd.isolation\":\"enable\"},",
                  &plain, ERR_UNSUPPORTED, "isolation" },
                { "\"image\":\"host\",\"platform\":{\"os\":\"windows\",\"arch\":\"amd64\"},",
                  &plain, ERR_UNSUPPORTED, "Linux" },
                { "\"image\":\"host\",", &with_token, ERR_INVALID, "EXECD_ACCESS_TOKEN" },
                { "\"image\":\"host\",", &with_nul, ERR_INVALID, "NUL" },
                { "\"image\":\"host\",", &with_auth, ERR_UNSUPPORTED, "credentials" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(arena_wipe) struct arena a;
                struct plan_spec s;
                struct err e = { 0 };

                check_case(cases[i].said);
                arena_init(&a, MiB);
                check_i64_eq(make(cases[i].members, cases[i].request, &a, &s, &e),
                             ERR_RETURN(cases[i].code));
                if (!strstr(e.message, cases[i].said))
                        fail_msg("%s", e.message);
        }
}

static void ends_are_told_in_words(void **state)
{
        static const struct {
                struct instance_status s;
                int status;
                const char *reason, *said;
        } cases[] = {
                { { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 }, RUNTIME_RUNNING, NULL, "" },
                { { RUNTIME_PAUSED, WARDEN_EXIT_NONE, 0 }, RUNTIME_PAUSED, NULL, "" },
                { { RUNTIME_ENDED, WARDEN_EXIT_CODE, 0 }, RUNTIME_ENDED, "EXITED", "exit code 0" },
                { { RUNTIME_DEAD, WARDEN_EXIT_CODE, 7 }, RUNTIME_DEAD, "EXITED", "exit code 7" },
                { { RUNTIME_DEAD, WARDEN_EXIT_SIGNAL, 9 }, RUNTIME_DEAD, "SIGNALED", "9, SIGKILL" },
                { { RUNTIME_DEAD, WARDEN_EXIT_SIGNAL, 200 },
                  RUNTIME_DEAD,
                  "SIGNALED",
                  "signal 200" },
                { { RUNTIME_DEAD, WARDEN_EXIT_OOM, 0 }, RUNTIME_DEAD, "OOM_KILLED", "memory" },
                { { RUNTIME_DEAD, WARDEN_EXIT_LOST, 0 }, RUNTIME_DEAD, "LOST", "unobserved" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[NATIVE_TEXT_MAX];
                struct driver_health h = native_health(&cases[i].s, text);

                check_case(cases[i].said);
                check_i64_eq(h.status, cases[i].status);
                check_true(!h.reason == !cases[i].reason);
                if (h.reason)
                        check_z_eq(h.reason, cases[i].reason);
                check_true(strstr(text, cases[i].said) != NULL);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_wished_is_what_is_asked_for),
                cmocka_unit_test(what_cannot_be_given_is_refused),
                cmocka_unit_test(ends_are_told_in_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
