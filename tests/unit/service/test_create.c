/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include "base/base.h"
#include "base/id.h"
#include "service/service_impl.h"
#include "tests/lib/ids.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static const struct create_options plain = { .timeout = 600 };

/* --- what is refused, before anything is written --- */

#define BODY(more) \
        "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"sh\"],\"resourceLimits\":{}" more "}"

#if defined(__x86_64__)
#define FOREIGN_ARCH "arm64"
#else
#define FOREIGN_ARCH "amd64"
#endif

static void a_bad_request_is_refused_and_leaves_nothing(void **state)
{
        static const struct {
                const char *body;
                enum err_code code;
                const char *problem; /* code, or "" */
                const char *message; /* a part of it */
        } cases[] = {
                { "{}", ERR_INVALID, "", "image" },
                { BODY(",\"metadata\":{\"opensandbox.io/x\":\"y\"}"), ERR_INVALID,
                  "SANDBOX::INVALID_METADATA_LABEL", "" },
                { BODY(",\"extensions\":{\"hutch.idempotency\":\"00\"}"), ERR_INVALID,
                  "SANDBOX::INVALID_PARAMETER", "hutch.idempotency" },
                { BODY(",\"extensions\":{\"hutch.x\":\"\"}"), ERR_INVALID,
                  "SANDBOX::INVALID_PARAMETER", "hutch.x" },
                { BODY(",\"extensions\":{\"hutch.driver\":\"unknown\"}"), ERR_INVALID,
                  "SANDBOX::INVALID_PARAMETER", "unknown" },
                { BODY(",\"platform\":{\"os\":\"windows\",\"arch\":\"amd64\"}"), ERR_UNSUPPORTED,
                  "", "platform.os" },
                { BODY(",\"platform\":{\"os\":\"linux\",\"arch\":\"" FOREIGN_ARCH "\"}"),
                  ERR_UNSUPPORTED, "", "platform.arch" },
                { BODY(",\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/v\","
                       "\"pvc\":{\"claimName\":\"c\"}}]"),
                  ERR_UNSUPPORTED, "", "volumes" },
                { BODY(",\"networkPolicy\":{\"egress\":[]}"), ERR_UNSUPPORTED, "",
                  "networkPolicy" },
                { "{\"snapshotId\":\"s\",\"resourceLimits\":{}}", ERR_UNSUPPORTED, "",
                  "snapshotId" },
        };

        service_world_down(&w);
        driver_fake_set_caps(w.runtime, DRIVER_PAUSE);
        check_i64_eq(service_world_up(&w), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct made m = world_create(&w, &(struct create_options){ .body = cases[i].body });

                check_case(cases[i].body);
                check_i64_eq(m.result, ERR_RETURN(cases[i].code));
                check_z_eq(m.code, cases[i].problem);
                check_true(strstr(m.err.message, cases[i].message) != NULL);
                check_i64_eq(m.state, -1);
        }
        check_i64_eq(driver_fake_calls(w.runtime, DRIVER_CALL_CREATE), 0);
        check_true(registry_next(w.registry, STR_NULL) == NULL);
        check_i64_eq(w.service->ctls.n, 0);
        check_i64_eq(w.service->tenants.sandboxes, 0);
}

static void the_driver_is_the_one_that_was_named(void **state)
{
        struct made m =
                world_create(&w, &(struct create_options){ .extension = "hutch.driver=fake" });

        check_i64_eq(m.result, 0);
        check_str_eq(world_find(&w, m.id)->driver, "fake");
}

/* --- the record --- */

static void the_record_has_owner_and_request_but_no_secret(void **state)
{
        struct made m = world_create(&w, &(struct create_options){ .timeout = 60, .cpu = "500m" });
        const struct sandbox *r = world_find(&w, m.id);
        scoped(buf_done) struct buf text;

        check_true(id_is_uuid(str_from(m.id)));
        check_str_eq(r->tenant, "t");
        check_str_eq(r->node, "n");
        check_str_eq(r->owner.organization_id, "t");
        check_str_eq(r->owner.user_id, "p");
        check_false(r->owner_bound);
        check_i64_eq(r->limits.cpu_milli, 500);
        check_i64_eq(r->expiry->mono_usec, w.clock.mono_now + 60 * USEC_PER_SEC);
        check_str_eq(r->status.reason, "CONTAINER_RUNNING");
        check_true(r->handle.p != NULL);
        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, r);
        check_true(strstr(buf_str(&text).p, "TOKEN") != NULL);
        check_true(strstr(buf_str(&text).p, "s3cr3t") == NULL);
}

static void an_owner_has_one_place_until_his_sandbox_has_ended(void **state)
{
        static const struct owner owner = { .organization_id = STR("o"),
                                            .project_id = STR("p"),
                                            .user_id = STR("u"),
                                            .scope = { .kind = SCOPE_SHARED_PROJECT_USER } };
        const struct create_options bound = { .timeout = 60, .owner = &owner };
        struct made first = world_create(&w, &bound), second = world_create(&w, &bound);

        check_i64_eq(first.result, 0);
        check_true(world_find(&w, first.id)->owner_bound);
        check_i64_eq(second.result, ERR_RETURN(ERR_EXISTS));
        check_z_eq(second.other_id, first.id);
        check_i64_eq(w.service->tenants.sandboxes, 1);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, first.id), STATE_TERMINATED);
        second = world_create(&w, &bound);
        check_i64_eq(second.result, 0);
        check_i64_eq(world_command(&w, service_delete, second.id), 0);
        check_i64_eq(world_create(&w, &bound).result, 0);
}

/* --- waiting --- */

static void after_a_while_the_answer_is_pending_and_the_work_goes_on(void **state)
{
        struct creating *c;
        struct made m;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        c = world_create_start(&w, &plain);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        service_world_advance(&w, 9 * USEC_PER_SEC);
        for (int i = 0; i < 5; i++)
                service_world_turn(&w);
        check_false(world_create_is_done(c));
        service_world_advance(&w, 2 * USEC_PER_SEC);
        service_world_until(&w, world_create_is_done(c));
        m = world_create_end(c); /* the memory of the request is gone */
        check_i64_eq(m.result, 0);
        check_i64_eq(m.state, STATE_PENDING);
        check_i64_eq(service_stats(w.service).under_way, 1);
        driver_fake_release(w.runtime);
        service_world_idle(&w);
        check_i64_eq(world_state(&w, m.id), STATE_RUNNING);
        check_i64_eq(service_stats(w.service).creates, 1);
        check_i64_eq(service_stats(w.service).create_buckets[12], 1); /* 10 s to 60 s */
}

static void a_canceled_create_goes_on(void **state)
{
        /* In each turn in which it can. */
        for (int turns = 0, canceled = 1; canceled; turns++) {
                struct creating *c = world_create_start(&w, &plain);
                struct made m;

                for (int i = 0; i < turns && !world_create_is_done(c); i++)
                        service_world_turn(&w);
                canceled = !world_create_is_done(c);
                world_create_cancel(c);
                service_world_until(&w, world_create_is_done(c));
                m = world_create_end(c);
                check_true(m.result == 0 || m.result == ERR_RETURN(ERR_CANCELED));
                service_world_idle(&w);
                check_i64_eq(registry_count(w.registry, STR_NULL, STR_NULL, STATE_RUNNING),
                             turns + 1);
        }
        check_i64_eq(driver_fake_count(w.runtime), world_live(&w));
}

/* --- failure --- */

static void a_create_that_fails_is_a_tombstone_that_says_why(void **state)
{
        static const struct {
                enum err_code code;
                bool after;
                const char *reason;
        } cases[] = {
                { ERR_UNAVAILABLE, false, "RUNTIME_UNAVAILABLE" },
                { ERR_EXHAUSTED, false, "RESOURCES_EXHAUSTED" },
                { ERR_TIMEOUT, true, "CREATE_TIMEOUT" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct driver_failing_plan plan = { .when = DRIVER_FAILING_NTH,
                                                          .n = 1,
                                                          .after = cases[i].after,
                                                          .code = cases[i].code };
                struct made m;

                check_case(cases[i].reason);
                driver_failing_plan(w.driver, &plan);
                m = world_create(&w, &plain);
                check_i64_eq(m.result, ERR_RETURN(cases[i].code));
                check_i64_eq(m.state, STATE_FAILED);
                service_world_idle(&w);
                check_str_eq(world_find(&w, m.id)->status.reason, cases[i].reason);
                check_str_eq(world_find(&w, m.id)->status.message, "made to fail");
                check_i64_eq(driver_fake_count(w.runtime), 0);
                check_i64_eq(w.service->tenants.sandboxes, 0);
                check_i64_eq(service_stats(w.service).create_failures, i + 1);
        }
}

static void a_full_disk_is_reported_and_nothing_is_left(void **state)
{
        /* The first write is the record, the second that it runs. It is our lack, not the quota of a
         * tenant. */
        for (unsigned n = 1; n <= 2; n++) {
                struct made m;

                store_failing_plan(w.store,
                                   &(struct store_failing_plan){ .when = STORE_FAILING_FROM,
                                                                 .n = n,
                                                                 .writes_only = true,
                                                                 .code = ERR_EXHAUSTED });
                m = world_create(&w, &plain);
                check_i64_eq(m.result, ERR_RETURN(ERR_INTERNAL));
                service_world_idle(&w);
                check_i64_eq(driver_fake_count(w.runtime), 0);
                store_failing_plan(w.store, &(struct store_failing_plan){ 0 });
                service_world_advance(&w, 2 * USEC_PER_SEC);
                service_world_idle(&w);
                check_i64_eq(world_live(&w), 0);
                check_i64_eq(w.service->tenants.sandboxes, 0);
        }
        check_i64_eq(world_create(&w, &plain).result, 0);
}

/* --- idempotency --- */

static void the_same_key_and_request_give_the_same_sandbox(void **state)
{
        const struct create_options o = { .timeout = 600, .key = "k-1" };
        struct made first = world_create(&w, &o), second = world_create(&w, &o), other;

        check_i64_eq(first.result, 0);
        check_false(first.replayed);
        check_true(id_is_uuid(str_from(first.id)));
        check_i64_eq(second.result, 0);
        check_true(second.replayed);
        check_z_eq(second.id, first.id);
        check_i64_eq(driver_fake_count(w.runtime), 1);

        other = world_create(&w, &(struct create_options){ .timeout = 601, .key = "k-1" });
        check_i64_eq(other.result, ERR_RETURN(ERR_CONFLICT));
        other = world_create(&w, &(struct create_options){ .timeout = 600, .key = "k-2" });
        check_false(other.replayed);
        other = world_create(&w, &(struct create_options){
                                         .timeout = 600, .key = "k-1", .tenant = "u" });
        check_false(other.replayed);
        check_true(strcmp(other.id, first.id) != 0);
}

static void a_key_holds_across_a_restart_and_ends_with_its_sandbox(void **state)
{
        const struct create_options o = { .timeout = 600, .key = "k" };
        struct made first = world_create(&w, &o), second;

        service_world_down(&w);
        check_i64_eq(service_world_up(&w), 0);
        second = world_create(&w, &o);
        check_true(second.replayed);
        check_z_eq(second.id, first.id);
        check_i64_eq(world_command(&w, service_delete, first.id), 0);
        second = world_create(&w, &o);
        check_i64_eq(second.result, 0);
        check_false(second.replayed);
}

static void the_second_waits_for_the_first(void **state)
{
        const struct create_options o = { .timeout = 600, .key = "k" };
        struct creating *first = world_create_start(&w, &o), *second;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        second = world_create_start(&w, &o); /* the record is not even written */
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        check_i64_eq(world_create(&w, &(struct create_options){ .key = "k" }).result,
                     ERR_RETURN(ERR_CONFLICT));
        check_false(world_create_is_done(second));
        driver_fake_release(w.runtime);
        service_world_until(&w, world_create_is_done(first) && world_create_is_done(second));
        check_i64_eq(world_create_end(first).result, 0);
        check_true(world_create_end(second).replayed);
        check_i64_eq(driver_fake_count(w.runtime), 1);
}

static void a_key_is_text(void **state)
{
        static char long_key[300];

        memset(long_key, 'k', sizeof(long_key) - 1);
        check_i64_eq(world_create(&w, &(struct create_options){ .key = "" }).result,
                     ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_create(&w, &(struct create_options){ .key = "a\nb" }).result,
                     ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_create(&w, &(struct create_options){ .key = long_key }).result,
                     ERR_RETURN(ERR_INVALID));
}

/* --- the copy of the request --- */

static void the_copy_of_a_request_is_complete(void **state)
{
        static const char body[] =
                "{\"image\":{\"uri\":\"a\",\"auth\":{\"username\":\"u\",\"password\":\"pw\"}},"
                "\"entrypoint\":[\"sh\"],\"resourceLimits\":{\"cpu\":\"1\"},\"timeout\":60,"
                "\"env\":{\"A\":\"s\"},\"volumes\":[{\"name\":\"o\",\"mountPath\":\"/o\","
                "\"ossfs\":{\"bucket\":\"b\",\"endpoint\":\"e\",\"accessKeyId\":\"i\","
                "\"accessKeySecret\":\"k\"}}]}";
        struct create_request from = { 0 };
        struct json_error je;
        struct arena a;
        struct request_copy copy;
        struct err e;
        const struct volume *v;

        arena_init(&a, ARENA_MAX_REQUEST);
        check_i64_eq(json_decode(str_from(body), create_fields, 0, &a, &from, &je), 0);
        check_i64_eq(request_copy_init(&copy, &from, &e), 0);
        arena_wipe(&a);
        check_str_eq(copy.request.image->auth->secret_password, "pw");
        check_str_eq(copy.request.secret_env.items[0].value, "s");
        v = copy.request.volumes.items;
        check_str_eq(v->ossfs->secret_access_key_secret, "k");
        check_true(copy.request.has_timeout && copy.request.timeout == 60);
        request_copy_done(&copy);
        check_true(copy.request.image == NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_bad_request_is_refused_and_leaves_nothing),
                T(the_driver_is_the_one_that_was_named),
                T(the_record_has_owner_and_request_but_no_secret),
                T(an_owner_has_one_place_until_his_sandbox_has_ended),
                T(after_a_while_the_answer_is_pending_and_the_work_goes_on),
                T(a_canceled_create_goes_on),
                T(a_create_that_fails_is_a_tombstone_that_says_why),
                T(a_full_disk_is_reported_and_nothing_is_left),
                T(the_same_key_and_request_give_the_same_sandbox),
                T(a_key_holds_across_a_restart_and_ends_with_its_sandbox),
                T(the_second_waits_for_the_first),
                T(a_key_is_text),
                cmocka_unit_test(the_copy_of_a_request_is_complete),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
