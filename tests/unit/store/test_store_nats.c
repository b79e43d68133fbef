/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_nats.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/base64.h"
#include "tests/lib/check.h"
#include "tests/lib/nats_server.h"
#include "tests/lib/store_world.h"

/* What only the store in NATS promises; the rest is in tests/contract. */

static struct nats_server server;
static usec_t wait_for;
static const char *urls, *program;
static char bucket[32];

static struct store *open_nats(struct store_world *w)
{
        struct store_nats_config config = nats_server_config(&server, bucket);
        struct store *store = NULL;
        struct err e;

        if (wait_for > 0)
                config.wait = wait_for;
        if (urls)
                config.urls = urls;
        if (program)
                config.program = program;
        if (store_nats_open(&w->loop, &config, &store, &e) < 0)
                fail_msg("%s", e.message);
        return store;
}

static const struct store_maker maker = { .name = "nats", .open = open_nats };

static int reset(void **state)
{
        wait_for = 0;
        urls = program = NULL;
        return 0;
}

static void new_bucket(void)
{
        static unsigned n;

        (void) snprintf(bucket, sizeof(bucket), "bucket-%u", n++);
}

static void begin(struct store_world *w)
{
        new_bucket();
        world_open(w, &maker);
}

/* Another client sends a request to JetStream, or publishes; the reply is valid until the next one. */
static const char *js_request(const char *subject, const char *body)
{
        static char *answer;

        free(answer);
        answer = nats_server_request(&server, subject, str_from(body));
        return answer;
}

static const char *api(const char *call, const char *body)
{
        char subject[96];

        (void) snprintf(subject, sizeof(subject), "$JS.API.STREAM.%s.KV_%s", call, bucket);
        return js_request(subject, body);
}

static const char *publish(const char *key, const char *value)
{
        char subject[96];

        (void) snprintf(subject, sizeof(subject), "$KV.%s.%s", bucket, key);
        return js_request(subject, value);
}

/* However long it takes until the process has found it out. */
static void await_reason(struct store_world *w, const char *why)
{
        do {
                check_i64_eq(world_get(w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
        } while (!strstr(world_err()->message, why));
}

/* --- other programs --- */

static void keys_and_values_are_those_of_a_bucket(void **state)
{
        struct store_world w;
        char get[96], data[64];
        const char *answer;

        begin(&w);
        check_i64_eq(world_put(&w, STR("sandbox:registry:a"), STR("{\"sandboxId\":\"a\"}"), NULL),
                     0);
        (void) snprintf(get, sizeof(get), "{\"last_by_subj\":\"$KV.%s.sandbox.registry.a\"}",
                        bucket);
        answer = api("MSG.GET", get);
        (void) base64_encode("{\"sandboxId\":\"a\"}", 17, data);
        data[BASE64_ENCODED(17)] = '\0';
        check_true(strstr(answer, data) != NULL);
        world_close(&w);
}

static void what_others_write_is_seen(void **state)
{
        struct store_world w;
        struct buf text;
        uint64_t version;

        begin(&w);
        buf_init(&text, 1 * KiB);
        check_i64_eq(world_put(&w, STR("k:b"), STR("ours"), &version), 0);
        check_true(strstr(publish("k.b", "theirs"), "\"seq\"") != NULL);
        check_true(strstr(publish("k.a", "theirs"), "\"seq\"") != NULL);
        check_true(strstr(publish("k.=41", "no key of ours"), "\"seq\"") != NULL);
        check_i64_eq(world_cas(&w, STR("k:b"), version, STR("x"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&w, STR("k:b"), &text, NULL), 0);
        check_str_eq(buf_str(&text), "theirs");
        world_keys(&w, STR("k:"), 10, &text);
        check_str_eq(buf_str(&text), "k:a k:b");
        buf_done(&text);
        world_close(&w);
}

static void pages_are_full_where_keys_were_removed(void **state)
{
        struct store_world w;
        struct buf text;
        char key[16];

        begin(&w);
        buf_init(&text, 1 * KiB);
        for (int i = 0; i < 40; i++) {
                (void) snprintf(key, sizeof(key), "k:%02d", i);
                check_i64_eq(world_put(&w, str_from(key), STR("v"), NULL), 0);
                if (i % 10 != 9)
                        check_i64_eq(world_remove(&w, str_from(key), STORE_ANY), 0);
        }
        for (unsigned limit = 1; limit < 6; limit++) {
                world_keys(&w, STR("k:"), limit, &text);
                check_str_eq(buf_str(&text), "k:09 k:19 k:29 k:39");
        }
        buf_done(&text);
        world_close(&w);
}

/* --- markers --- */

static void write_program(const char *path, const char *script)
{
        FILE *f = fopen(path, "we");

        if (!f) {
                fail_msg("can't write %s", path);
                return;
        }
        (void) fprintf(f, "#!/bin/sh\n%s\n", script);
        (void) fclose(f);
        check_i64_eq(chmod(path, 0700), 0);
}

/* The process that made one clears it away; and a scan, what others left. */
static void markers_do_not_stay(void **state)
{
        struct store_world before, w;
        char script[256];
        struct buf text;

        buf_init(&text, 1 * KiB);
        begin(&before);
        check_i64_eq(world_put(&before, STR("a"), STR("v"), NULL), 0);
        check_i64_eq(world_remove(&before, STR("a"), STORE_ANY), 0);
        check_true(strstr(api("INFO", ""), "\"messages\":1,") != NULL);
        (void) snprintf(script, sizeof(script), "exec '%s' \"$@\" --marker-ms=1",
                        nats_server_config(&server, bucket).program);
        write_program(before.path, script);
        program = before.path;
        world_open(&w, &maker);
        check_i64_eq(world_put(&w, STR("b"), STR("v"), NULL), 0);
        check_i64_eq(world_put(&w, STR("c"), STR("v"), NULL), 0);
        check_i64_eq(world_remove(&w, STR("b"), STORE_ANY), 0);
        while (!strstr(api("INFO", ""), "\"messages\":2,"))
                ; /* the marker of a, and c */
        world_keys(&w, STR(""), 10, &text);
        check_str_eq(buf_str(&text), "c");
        buf_done(&text);
        check_true(strstr(api("INFO", ""), "\"messages\":1,") != NULL);
        check_i64_eq(world_get(&w, STR("c"), NULL, NULL), 0);
        world_close(&w);
        world_close(&before);
}

/* --- buckets --- */

static void buckets_that_do_not_fit_are_refused(void **state)
{
        static const struct {
                const char *config, *why;
        } cases[] = {
                { "\"max_age\":3600000000000", "values expire" },
                { "\"storage\":\"memory\"", "kept in memory" },
                { "\"max_bytes\":1000000,\"discard\":\"old\"", "drops old values" },
                { "\"max_msg_size\":1000", "max_msg_size" },
                { "\"deny_purge\":true", "denies purges" },
        };

        wait_for = 100 * USEC_PER_MSEC;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store_world w;
                char text[512];

                check_case(cases[i].why);
                new_bucket();
                (void) snprintf(text, sizeof(text),
                                "{\"name\":\"KV_%s\",\"subjects\":[\"$KV.%s.>\"],%s}", bucket,
                                bucket, cases[i].config);
                check_true(strstr(api("CREATE", text), "\"created\"") != NULL);
                world_open(&w, &maker);
                await_reason(&w, cases[i].why);
                world_close(&w);
        }
}

static void a_bucket_that_fits_is_used(void **state)
{
        struct store_world w;
        char text[512];

        new_bucket();
        (void) snprintf(
                text, sizeof(text),
                "{\"name\":\"KV_%s\",\"subjects\":[\"$KV.%s.>\"],\"max_msgs_per_subject\":5,"
                "\"allow_rollup_hdrs\":true,\"deny_delete\":true,\"discard\":\"new\"}",
                bucket, bucket);
        check_true(strstr(api("CREATE", text), "\"created\"") != NULL);
        world_open(&w, &maker);
        for (int i = 0; i < 3; i++)
                check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        check_i64_eq(world_remove(&w, STR("k"), STORE_ANY), 0);
        check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        world_close(&w);
}

static void a_full_bucket_refuses_and_goes_on(void **state)
{
        static char large[64 * KiB];
        struct store_world w;
        char text[512];
        int r = 0;

        new_bucket();
        (void) snprintf(
                text, sizeof(text),
                "{\"name\":\"KV_%s\",\"subjects\":[\"$KV.%s.>\"],\"max_msgs_per_subject\":1,"
                "\"max_bytes\":300000,\"discard\":\"new\"}",
                bucket, bucket);
        check_true(strstr(api("CREATE", text), "\"created\"") != NULL);
        world_open(&w, &maker);
        for (int i = 0; i < 8 && r == 0; i++) {
                (void) snprintf(text, sizeof(text), "k%d", i);
                r = world_put(&w, str_from(text), str_of(large, sizeof(large)), NULL);
        }
        check_i64_eq(r, ERR_RETURN(ERR_EXHAUSTED));
        check_i64_eq(world_get(&w, STR("k0"), NULL, NULL), 0);
        check_i64_eq(world_remove(&w, STR("k0"), STORE_ANY), 0);
        check_i64_eq(world_put(&w, STR("k9"), STR("small"), NULL), 0);
        world_close(&w);
}

/* The header that says what is expected is a part of the message. */
static void a_message_too_large_for_the_server_is_refused(void **state)
{
        struct str value = { xcalloc(1, STORE_VALUE_MAX), STORE_VALUE_MAX };
        struct store_world w;

        begin(&w);
        check_i64_eq(world_cas(&w, STR("k"), STORE_ABSENT, value, NULL), ERR_RETURN(ERR_TOO_LARGE));
        check_true(strstr(world_err()->message, "max_payload") != NULL);
        value.n -= 128;
        check_i64_eq(world_cas(&w, STR("k"), STORE_ABSENT, value, NULL), 0);
        free((char *) (uintptr_t) value.p);
        world_close(&w);
}

/* --- a server that goes and comes --- */

static void a_server_that_is_away_is_unavailable(void **state)
{
        struct store_world w;
        struct buf value;

        wait_for = 300 * USEC_PER_MSEC;
        begin(&w);
        buf_init(&value, 1 * KiB);
        while (world_put(&w, STR("k"), STR("v"), NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        nats_server_kill(&server);
        for (int i = 0; i < 2; i++) {
                check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
                check_true(strstr(world_err()->message, "NATS at nats://127.0.0.1:") != NULL);
                check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        }
        nats_server_start(&server);
        while (world_get(&w, STR("k"), &value, NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        check_view_eq(buf_str(&value), STR("v"));
        buf_done(&value);
        world_close(&w);
}

/* Stopped, not killed: the connection stays up without replies. */
static void a_server_that_hangs_is_unavailable(void **state)
{
        struct store_world w;

        wait_for = 300 * USEC_PER_MSEC;
        begin(&w);
        while (world_put(&w, STR("k"), STR("v"), NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        check_i64_eq(kill(server.pid, SIGSTOP), 0);
        check_i64_eq(waitpid(server.pid, NULL, WUNTRACED), server.pid); /* all its threads */
        check_i64_eq(world_put(&w, STR("k"), STR("x"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        check_true(strstr(world_err()->message, "may have been written") != NULL);
        check_i64_eq(world_get(&w, STR("k"), NULL, NULL), ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(kill(server.pid, SIGCONT), 0);
        while (world_get(&w, STR("k"), NULL, NULL) < 0)
                check_i64_eq(world_err()->code, ERR_UNAVAILABLE);
        world_close(&w);
}

static void another_server_of_the_list_will_do(void **state)
{
        struct store_world w;
        char list[128];

        (void) snprintf(list, sizeof(list), "nats://127.0.0.1:1,%s", server.url);
        urls = list;
        begin(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        world_close(&w);
}

static void closing_does_not_need_a_server(void **state)
{
        struct store_world w;

        nats_server_kill(&server);
        begin(&w);
        world_close(&w);
        nats_server_start(&server);
}

static void a_server_without_jetstream_is_unavailable(void **state)
{
        struct nats_server with = server;
        struct store_world w;

        nats_server_open(&server, "jetstream: disabled\nmax_payload: 2MB");
        wait_for = 100 * USEC_PER_MSEC;
        begin(&w);
        await_reason(&w, "JetStream is not enabled");
        world_close(&w);
        nats_server_close(&server);
        nats_server_open(&server, "max_payload: 100KB");
        world_open(&w, &maker);
        await_reason(&w, "its max_payload is");
        world_close(&w);
        nats_server_close(&server);
        server = with;
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
        struct store_world w;
        struct store_nats_config config = nats_server_config(&server, "b");
        struct store *store = NULL;
        struct err e;

        world_open(&w, NULL);
        config.program = "/does/not/exist";
        check_i64_eq(store_nats_open(&w.loop, &config, &store, &e), ERR_RETURN(ERR_NOT_FOUND));
        world_close(&w);
}

/* --- the process --- */

static void a_process_that_is_killed_is_started_anew(void **state)
{
        struct store_world w;
        uint64_t version;

        begin(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), &version), 0);
        for (int i = 0; i < 3; i++) {
                nats_server_kill_helpers(&server);
                check_i64_eq(world_get(&w, STR("k"), NULL, NULL), 0);
                check_i64_eq(world_cas(&w, STR("k"), version, STR("v"), &version), 0);
        }
        world_close(&w);
}

static void liars_are_unavailable(void **state)
{
        static const struct {
                const char *script, *why;
        } cases[] = {
                { "exit 0", "process ended" },
                { "exec >&0; echo this is no frame of ours at all, is it; cat",
                  "broke the protocol" },
                { "exec >&0; printf '\\044\\0\\0\\0%036d' 0; cat", "broke the protocol" },
        };
        struct store_nats_config config = nats_server_config(&server, "b");
        struct store_world w;
        struct err e;

        config.wait = 100 * USEC_PER_MSEC;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].script);
                world_open(&w, NULL);
                write_program(w.path, cases[i].script);
                config.program = w.path;
                check_i64_eq(store_nats_open(&w.loop, &config, &w.store, &e), 0);
                await_reason(&w, cases[i].why);
                world_close(&w);
        }
}

/* --- races --- */

static void two_stores_lose_no_increment(void **state)
{
        struct store_world w[2];
        uint64_t version[2];
        unsigned lost = 0;
        struct buf value;

        begin(&w[0]);
        world_open(&w[1], &maker);
        buf_init(&value, 64);
        check_i64_eq(world_put(&w[0], STR("n"), STR("0"), NULL), 0);
        for (unsigned i = 0; i < 50; i++) {
                char text[2][16];

                for (unsigned j = 0; j < 2; j++) {
                        check_i64_eq(world_get(&w[j], STR("n"), &value, &version[j]), 0);
                        (void) snprintf(text[j], sizeof(text[j]), "%lu",
                                        strtoul(buf_str(&value).p, NULL, 10) + 1);
                }
                for (unsigned j = 0; j < 2; j++)
                        lost += world_cas(&w[j], STR("n"), version[j], str_from(text[j]), NULL)
                                == ERR_RETURN(ERR_CONFLICT);
        }
        check_u64_eq(lost, 50);
        check_i64_eq(world_get(&w[1], STR("n"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "50");
        buf_done(&value);
        world_close(&w[1]);
        world_close(&w[0]);
}

#define TEST(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(keys_and_values_are_those_of_a_bucket),
                TEST(what_others_write_is_seen),
                TEST(pages_are_full_where_keys_were_removed),
                TEST(markers_do_not_stay),
                TEST(buckets_that_do_not_fit_are_refused),
                TEST(a_bucket_that_fits_is_used),
                TEST(a_full_bucket_refuses_and_goes_on),
                TEST(a_message_too_large_for_the_server_is_refused),
                TEST(a_server_that_is_away_is_unavailable),
                TEST(a_server_that_hangs_is_unavailable),
                TEST(another_server_of_the_list_will_do),
                TEST(closing_does_not_need_a_server),
                TEST(a_server_without_jetstream_is_unavailable),
                TEST(a_program_that_is_not_there_is_an_error),
                TEST(a_process_that_is_killed_is_started_anew),
                TEST(liars_are_unavailable),
                TEST(two_stores_lose_no_increment),
        };
        const char *missing = nats_server_missing();
        int r;

        if (missing) {
                printf("1..0 # SKIP %s\n", missing);
                return 0;
        }
        nats_server_open(&server, NULL);
        r = cmocka_run_group_tests(tests, NULL, NULL);
        nats_server_close(&server);
        return r;
}
