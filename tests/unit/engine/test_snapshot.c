/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/snapshot.h"

#include "base/base.h"
#include "http/url.h"
#include "tests/lib/check.h"

/* What the image of a snapshot says of itself, and what it must not. */

static struct str own_env[] = { STR("PATH=/bin"), STR("LANG=C") };
static struct str words[] = { STR("sh"), STR("-c \"x\"") };
static struct json_pair own_labels[] = { { STR("team"), STR("one") },
                                         { STR("hutch.snapshot"), STR("older") } };
static struct str layers[] = { STR("sha256:aa"), STR("sha256:bb") };
static struct str secret_env[] = { STR("PATH=/hush"), STR("LANG=C"), STR("KEY=hush=1"),
                                   STR("TERM=xterm"), STR("HOSTNAME=hush") };
static struct str names[] = { STR("PATH"), STR("KEY"), STR("HOSTNAME") };
static struct json_pair labels[] = { { STR("hutch.record"), STR("hush") },
                                     { STR("team"), STR("one") } };

static const struct engine_settings settings = { .installation = STR("inst") };
static const struct engine_image source = { .entrypoint = { words, 2 },
                                            .os = STR("linux"),
                                            .arch = STR("amd64"),
                                            .working_dir = STR("/root"),
                                            .env = { own_env, 2 },
                                            .labels = { own_labels, 2 } };
static const struct json_strs env = { secret_env, ARRAY_SIZE(secret_env) };
static const struct json_strs env_names = { names, ARRAY_SIZE(names) };
static const struct json_map of_container = { labels, ARRAY_SIZE(labels) };
static const struct snapshot_params facts = { .settings = &settings,
                                              .id = STR("snap-1"),
                                              .sandbox = STR("sb-1"),
                                              .tenant = STR("acme \"1\""),
                                              .source = &source,
                                              .secret_env = &env,
                                              .env_names = &env_names,
                                              .labels = &of_container };

#define check_has(b, text)                                                       \
        do {                                                                     \
                struct str all_ = buf_str(b);                                    \
                if (!memmem(all_.p, all_.n, (text), strlen(text)))               \
                        CHECK_FAIL_("no '%s' in '%.*s'", (text), STR_ARG(all_)); \
        } while (0)

#define check_has_not(b, text) check_true(!memmem(buf_str(b).p, buf_str(b).n, (text), strlen(text)))

static void an_archive_has_the_images_own_configuration(void **state)
{
        const struct engine_image made = { .layers = { layers, 2 }, .created = STR("2026") };
        scoped(buf_done) struct buf b;
        struct err e;

        buf_init(&b, MiB);
        check_i64_eq(snapshot_write_archive(&b, &facts, &made, &e), 0);
        check_i64_eq(buf_str(&b).n % 512, 0);
        check_has(&b,
                  "{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"2026\",\"config\":{"
                  "\"Env\":[\"PATH=/bin\",\"LANG=C\"],\"Entrypoint\":[\"sh\",\"-c \\\"x\\\"\"],"
                  "\"WorkingDir\":\"/root\",\"Labels\":{\"team\":\"one\","
                  "\"hutch.snapshot.installation\":\"inst\",\"hutch.snapshot\":\"snap-1\","
                  "\"hutch.snapshot.tenant\":\"acme \\\"1\\\"\","
                  "\"hutch.snapshot.sandbox\":\"sb-1\"}},\"rootfs\":{\"type\":\"layers\","
                  "\"diff_ids\":[\"sha256:aa\",\"sha256:bb\"]}}");
        check_has(&b,
                  "[{\"Config\":\"config.json\",\"RepoTags\":["
                  "\"localhost/hutch-snapshots:inst-snap-1\"],\"Layers\":[\"none\",\"none\"]}]");
        check_has_not(&b, "hush");
        check_i64_eq(snapshot_write_archive(&b, &facts, &(struct engine_image){ 0 }, &e),
                     ERR_RETURN(ERR_UNAVAILABLE));
}

static void changes_take_every_value_away(void **state)
{
        static const char *const expected[] = {
                "ENV PATH=/bin",
                "ENV KEY=",
                "ENV HOSTNAME=",
                "LABEL hutch.record=",
                "LABEL hutch.snapshot=snap-1",
                "ENTRYPOINT [\"sh\",\"-c \\\"x\\\"\"]",
                "CMD []",
        };
        scoped(buf_done) struct buf b, one;

        buf_init(&b, MiB);
        buf_init(&one, MiB);
        snapshot_add_changes(&b, &facts);
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                buf_reset(&one);
                buf_add_str(&one, STR("&changes="));
                url_encode(&one, str_from(expected[i]));
                buf_add_char(&one, '\0');
                check_has(&b, buf_str(&one).p);
        }
        check_has_not(&b, "hush");
        check_has_not(&b, "LANG");
        check_has_not(&b, "TERM");
        check_has_not(&b, "team");
}

static void an_image_with_a_value_of_the_sandbox_is_refused(void **state)
{
        static const struct {
                const char *variable;
                bool good;
        } cases[] = {
                { "LANG=C", true },         { "KEY=", true },        { "KEY", true },
                { "TERM=xterm", true },     { "KEY=hush=1", false }, { "PATH=/hush", false },
                { "HOSTNAME=hush", false }, { "OTHER=x", false },
        };
        struct json_pair ours[] = { { STR("hutch.snapshot.installation"), STR("inst") },
                                    { STR("hutch.snapshot"), STR("snap-1") },
                                    { STR("hutch.snapshot.tenant"), facts.tenant },
                                    { STR("hutch.snapshot.sandbox"), STR("sb-1") } };
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str variable = str_from(cases[i].variable);
                struct engine_image image = { .env = { &variable, 1 },
                                              .labels = { ours, ARRAY_SIZE(ours) } };

                check_case(cases[i].variable);
                check_i64_eq(snapshot_check_image(&image, &facts, &e),
                             cases[i].good ? 0 : ERR_RETURN(ERR_INTERNAL));
                image.labels.n--;
                check_i64_eq(snapshot_check_image(&image, &facts, &e), ERR_RETURN(ERR_INTERNAL));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_archive_has_the_images_own_configuration),
                cmocka_unit_test(changes_take_every_value_away),
                cmocka_unit_test(an_image_with_a_value_of_the_sandbox_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
