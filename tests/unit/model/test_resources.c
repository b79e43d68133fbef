/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/resources.h"

static void test_quantities(void **state)
{
        static const struct {
                const char *text;
                int scale;
                int64_t value;
        } cases[] = {
                { "1", 0, 1 },
                { "+1", 0, 1 },
                { "007", 0, 7 },
                { "0.5", -3, 500 },
                { ".5", -3, 500 },
                { "1.", -3, 1000 },
                { "500m", -3, 500 },
                { "2", -3, 2000 },
                { "100u", -3, 1 }, /* rounded up, never to nothing */
                { "1n", -3, 1 },
                { "1500u", -3, 2 },
                { "0.0001", -3, 1 },
                { "1k", 0, 1000 },
                { "2M", 0, 2000000 },
                { "2G", 0, 2000000000 },
                { "1T", 0, 1000000000000 },
                { "1P", 0, 1000000000000000 },
                { "1E", 0, 1000000000000000000 },
                { "1Ki", 0, 1024 },
                { "256Mi", 0, 268435456 },
                { "1.5Gi", 0, 1610612736 },
                { "0.1Gi", 0, 107374183 },
                { "1Ti", 0, INT64_C(1) << 40 },
                { "1Pi", 0, INT64_C(1) << 50 },
                { "7Ei", 0, INT64_C(7) << 60 },
                { "1e3", 0, 1000 },
                { "1E3", 0, 1000 },
                { "1e+3", 0, 1000 },
                { "12e-1", 0, 2 },
                { "1e-999", 0, 1 },
                { "1.5e1", -3, 15000 },
                { "999999999999999999", 0, 999999999999999999 },
                { "0.000000000000000000000000001", 0, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 0;

                check_case(cases[i].text);
                check_i64_eq(quantity_parse(str_from(cases[i].text), cases[i].scale, &v), 0);
                check_i64_eq(v, cases[i].value);
        }
}

static void test_invalid_quantities(void **state)
{
        static const struct {
                struct str text;
                int r;
        } cases[] = {
                { STR(""), -EINVAL },
                { STR("."), -EINVAL },
                { STR("m"), -EINVAL },
                { STR("Mi"), -EINVAL },
                { STR("-"), -EINVAL },
                { STR("+-1"), -EINVAL },
                { STR("--1"), -EINVAL },
                { STR("1.2.3"), -EINVAL },
                { STR("1 "), -EINVAL },
                { STR(" 1"), -EINVAL },
                { STR("1 Mi"), -EINVAL },
                { STR("1MI"), -EINVAL },
                { STR("1mi"), -EINVAL },
                { STR("1MB"), -EINVAL },
                { STR("1K"), -EINVAL },
                { STR("1g"), -EINVAL },
                { STR("1e"), -EINVAL },
                { STR("1e+"), -EINVAL },
                { STR("1e1000"), -EINVAL },
                { STR("1e1.5"), -EINVAL },
                { STR("1e3Mi"), -EINVAL },
                { STR("0x10"), -EINVAL },
                { STR("1,5"), -EINVAL },
                { STR("inf"), -EINVAL },
                { STR("NaN"), -EINVAL },
                { STR("1\0"), -EINVAL },
                { STR("\xc2\xb5"), -EINVAL },
                { STR("000000000000000000000000000000001"), -EINVAL }, /* too long a text */
                { STR("0"), -EDOM },
                { STR("0.0"), -EDOM },
                { STR("0Mi"), -EDOM },
                { STR("-1"), -EDOM },
                { STR("-0"), -EDOM },
                { STR("-500m"), -EDOM },
                { STR("8Ei"), -ERANGE },
                { STR("10E"), -ERANGE },
                { STR("1e19"), -ERANGE },
                { STR("1e999"), -ERANGE },
                { STR("999999999999999999Ei"), -ERANGE },
                { STR("1000000000000000000"), -ERANGE }, /* 19 digits */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 7;

                check_case(cases[i].text.p);
                check_i64_eq(quantity_parse(cases[i].text, 0, &v), cases[i].r);
                check_i64_eq(v, 7);
        }
}

static void test_canonical_texts(void **state)
{
        static const struct {
                int64_t milli;
                const char *text;
        } cpus[] = {
                { 1, "1m" }, { 500, "500m" }, { 1000, "1" }, { 1500, "1500m" }, { 64000, "64" }
        };
        static const struct {
                int64_t bytes;
                const char *text;
        } memories[] = {
                { 1, "1" },
                { 1000, "1k" },
                { 1024, "1Ki" },
                { 268435456, "256Mi" },
                { 2000000000, "2G" },
                { 2147483648, "2Gi" },
                { 1048577, "1048577" },
                { 1610612736, "1536Mi" },
                { INT64_C(1) << 50, "1024Ti" },
                { 1024000, "1024k" },
                { 1048576000, "1000Mi" },
                { INT64_MAX, "9223372036854775807" },
        };
        char text[RESOURCE_TEXT_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
                check_str_eq(str_of(text, cpu_to_text(cpus[i].milli, text)), cpus[i].text);
        for (size_t i = 0; i < ARRAY_SIZE(memories); i++)
                check_str_eq(str_of(text, memory_to_text(memories[i].bytes, text)),
                             memories[i].text);
}

/* What is written is read as the same amount. */
static void test_texts_and_back(void **state)
{
        uint64_t seed = 1;

        for (int i = 0; i < 20000; i++) {
                char text[RESOURCE_TEXT_MAX];
                int64_t v, back;

                seed = seed * 6364136223846793005u + 1442695040888963407u;
                v = (int64_t) (seed >> (seed >> 58 | 1)) & INT64_C(0x0ffffffffffffff);
                if (v == 0)
                        continue;
                check_i64_eq(quantity_parse(str_of(text, memory_to_text(v, text)), 0, &back), 0);
                check_i64_eq(back, v);
                check_i64_eq(quantity_parse(str_of(text, cpu_to_text(v % 4096000 + 1, text)), -3,
                                            &back),
                             0);
                check_i64_eq(back, v % 4096000 + 1);
        }
}

static void test_limits(void **state)
{
        struct json_pair pairs[] = {
                { STR("cpu"), STR("0.5") },
                { STR("memory"), STR("0.25Gi") },
                { STR("gpu"), STR("02") },
                { STR("nvidia.com/gpu"), STR("1") },
                { STR("ephemeral-storage"), STR("10.0Gi") },
        };
        struct json_map map = { pairs, ARRAY_SIZE(pairs) };
        struct resources r;
        struct err e;
        struct arena a;

        arena_init(&a, 64 * KiB);
        check_i64_eq(resources_parse(&map, &a, &r, &e), 0);
        check_i64_eq(r.cpu_milli, 500);
        check_i64_eq(r.memory_bytes, 268435456);
        check_i64_eq(r.gpus, 2);
        check_str_eq(r.texts.items[0].value, "500m");
        check_str_eq(r.texts.items[1].value, "256Mi");
        check_str_eq(r.texts.items[2].value, "2");
        check_str_eq(r.texts.items[3].key, "nvidia.com/gpu");
        check_str_eq(r.texts.items[4].value, "10.0Gi"); /* as it came */
        pairs[2].value = STR("all");
        check_i64_eq(resources_parse(&map, &a, &r, &e), 0);
        check_i64_eq(r.gpus, GPU_ALL);
        check_i64_eq(resources_parse(&(struct json_map){ 0 }, &a, &r, &e), 0);
        check_i64_eq(r.cpu_milli + r.memory_bytes + r.gpus, 0);
        arena_done(&a);
}

static void test_wrong_limits(void **state)
{
        static const struct {
                struct json_pair pair;
                const char *message;
        } cases[] = {
                { { STR("cpu"), STR("many") },
                  "resource \"cpu\": \"many\" is not a quantity such as \"500m\", \"2\" or "
                  "\"256Mi\"" },
                { { STR("cpu"), STR("0") }, "resource \"cpu\": \"0\" must be more than zero" },
                { { STR("memory"), STR("-1Gi") },
                  "resource \"memory\": \"-1Gi\" must be more than zero" },
                { { STR("memory"), STR("9Ei") }, "resource \"memory\": \"9Ei\" is too large" },
                { { STR("memory"), STR("512m") },
                  "resource \"memory\": \"512m\" is out of range: must be from 1Mi to 1Pi (\"m\" "
                  "means thousandths, use \"Mi\")" },
                { { STR("memory"), STR("2Pi") },
                  "resource \"memory\": \"2Pi\" is out of range: must be from 1Mi to 1Pi (\"m\" "
                  "means thousandths, use \"Mi\")" },
                { { STR("cpu"), STR("4097") },
                  "resource \"cpu\": \"4097\" is out of range: must be at most 4096 cores" },
                { { STR("gpu"), STR("0.5") },
                  "resource \"gpu\": \"0.5\" is neither a whole number nor \"all\"" },
                { { STR("gpu"), STR("500m") },
                  "resource \"gpu\": \"500m\" is neither a whole number nor \"all\"" },
                { { STR("gpu"), STR("ALL") },
                  "resource \"gpu\": \"ALL\" is neither a whole number nor \"all\"" },
                { { STR("gpu"), STR("0") }, "resource \"gpu\": \"0\" must be more than zero" },
                { { STR("cpu"), STR("all") },
                  "resource \"cpu\": \"all\" is not a quantity such as \"500m\", \"2\" or "
                  "\"256Mi\"" },
                { { STR("disk"), STR("big\x1b") },
                  "resource \"disk\": \"big\\u001b\" is not a quantity such as \"500m\", \"2\" or "
                  "\"256Mi\"" },
                { { STR("a b"), STR("1") },
                  "resource \"a b\": the key is not the name of a resource" },
                { { STR(""), STR("1") }, "resource \"\": the key is not the name of a resource" },
                { { STR("A/b"), STR("1") },
                  "resource \"A/b\": the key is not the name of a resource" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_pair pair = cases[i].pair;
                struct resources r = { .gpus = 7 };
                struct arena a;
                struct err e;

                arena_init(&a, 64 * KiB);
                check_i64_eq(resources_parse(&(struct json_map){ &pair, 1 }, &a, &r, &e),
                             ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
                check_i64_eq(r.gpus, 7);
                arena_done(&a);
        }
}

static void test_too_many_kinds(void **state)
{
        struct json_pair pairs[RESOURCES_MAX + 1];
        struct resources r;
        struct arena a;
        struct err e;

        arena_init(&a, 64 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
                pairs[i] = (struct json_pair){ STR("x"), STR("1") };
        check_i64_eq(resources_parse(&(struct json_map){ pairs, ARRAY_SIZE(pairs) }, &a, &r, &e),
                     ERR_RETURN(ERR_INVALID));
        arena_done(&a);
        arena_init(&a, 0);
        check_i64_eq(resources_parse(&(struct json_map){ pairs, 1 }, &a, &r, &e),
                     ERR_RETURN(ERR_TOO_LARGE));
        arena_done(&a);
}

/* --- what an installation sets --- */

static void test_pids_by_memory(void **state)
{
        static const struct {
                uint64_t memory, cpu_milli, pids;
        } cases[] = {
                { 256 * MiB, 1000, 512 },
                { 256 * MiB, 100, 512 },
                { 64 * MiB, 1000, 128 },
                { MiB, 0, 128 },
                { 2 * (uint64_t) GiB, 0, 4096 },
                { 64 * (uint64_t) GiB, 64000, 4096 },
                { GiB, 999, 1024 },
                { GiB, 1000, 2048 },
                { 0, 0, 128 },
                { MEMORY_MAX, CPU_MILLI_MAX, 4096 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_u64_eq(resources_pids_by_memory(cases[i].memory, cases[i].cpu_milli),
                             cases[i].pids);
}

#define TEXTS_MAX 4

static void test_policy(void **state)
{
        static const struct resource_policy none = { 0 };
        static const struct resource_policy full = {
                .defaults = { 2000, GiB, RESOURCE_PIDS_BY_MEMORY },
                .max = { 4000, 8 * (uint64_t) GiB, 5000 },
        };
        static const struct resource_policy tight = {
                .defaults = { 500, 100 * MiB, RESOURCE_PIDS_BY_MEMORY },
                .max = { 500, 100 * MiB, 100 },
        };
        static const struct resource_policy fixed = { .defaults = { .pids = 77 } };
        static const struct {
                const struct resource_policy *policy;
                struct json_pair given[TEXTS_MAX];
                const char *result; /* or the message */
        } cases[] = {
                { &none, { { STR_NULL, STR_NULL } }, "" },
                { &none, { { STR("memory"), STR("1Gi") } }, "memory=1Gi " },
                { &full, { { STR_NULL, STR_NULL } }, "cpu=2 memory=1Gi pids=2048 " },
                { &full, { { STR("memory"), STR("256Mi") } }, "memory=256Mi cpu=2 pids=512 " },
                { &full,
                  { { STR("x.y/z"), STR("1") }, { STR("cpu"), STR("0.5") } },
                  "x.y/z=1 cpu=0.5 memory=1Gi pids=1024 " },
                { &full, { { STR("pids"), STR("5k") } }, "pids=5k cpu=2 memory=1Gi " },
                { &full,
                  { { STR("cpu"), STR("4") },
                    { STR("memory"), STR("8Gi") },
                    { STR("pids"), STR("1") } },
                  "cpu=4 memory=8Gi pids=1 " },
                { &tight, { { STR_NULL, STR_NULL } }, "cpu=500m memory=100Mi pids=100 " },
                { &fixed, { { STR_NULL, STR_NULL } }, "pids=77 " },
                { &full,
                  { { STR("memory"), STR("1Pi") } },
                  "resource \"memory\": \"1Pi\" is more than this server allows, which is 8Gi: "
                  "request less, or raise resource_limits.max.memory in hutchd.yaml" },
                { &full,
                  { { STR("memory"), STR("1Gi") }, { STR("cpu"), STR("4096") } },
                  "resource \"cpu\": \"4096\" is more than this server allows, which is 4: "
                  "request less, or raise resource_limits.max.cpu in hutchd.yaml" },
                { &full,
                  { { STR("pids"), STR("5001") } },
                  "resource \"pids\": \"5001\" is more than this server allows, which is 5000: "
                  "request less, or raise resource_limits.max.pids in hutchd.yaml" },
                { &full,
                  { { STR("pids"), STR("5Mi") } },
                  "resource \"pids\": \"5Mi\" is out of range: must be at most 4194304" },
                { &full,
                  { { STR("pids"), STR("0") } },
                  "resource \"pids\": \"0\" must be more than zero" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_pair given[TEXTS_MAX];
                struct json_map m = { given, 0 };
                char text[512] = "";
                struct resources r;
                struct buf b;
                struct arena a;
                struct err e;

                check_case(cases[i].result);
                memcpy(given, cases[i].given, sizeof(given));
                while (m.n < TEXTS_MAX && given[m.n].key.p)
                        m.n++;
                arena_init(&a, 64 * KiB);
                buf_init_fixed(&b, text, sizeof(text));
                if (resources_apply(cases[i].policy, &m, &a, &e) < 0) {
                        check_i64_eq(e.code, ERR_INVALID);
                        check_z_eq(e.message, cases[i].result);
                        check_true(m.items == given); /* nothing has changed */
                } else {
                        for (size_t j = 0; j < m.n; j++)
                                buf_addf(&b, "%.*s=%.*s ", STR_ARG(m.items[j].key),
                                         STR_ARG(m.items[j].value));
                        check_str_eq(buf_str(&b), cases[i].result);
                        check_i64_eq(resources_parse(&m, &a, &r, &e), 0);
                        check_true(cases[i].policy == &none || r.pids > 0);
                }
                arena_done(&a);
                arena_init(&a, 0);
                m = (struct json_map){ given, 0 };
                check_i64_eq(resources_apply(&full, &m, &a, &e), ERR_RETURN(ERR_TOO_LARGE));
                arena_done(&a);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_quantities),      cmocka_unit_test(test_invalid_quantities),
                cmocka_unit_test(test_canonical_texts), cmocka_unit_test(test_texts_and_back),
                cmocka_unit_test(test_limits),          cmocka_unit_test(test_wrong_limits),
                cmocka_unit_test(test_too_many_kinds),  cmocka_unit_test(test_pids_by_memory),
                cmocka_unit_test(test_policy),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
