/* SPDX-License-Identifier: Apache-2.0 */
#include "config/table.h"

#include "base/base.h"
#include "tests/lib/check.h"

struct entry {
        struct str name;
        uint64_t size;
};

struct target {
        const char *text, *path, *secret;
        bool flag;
        unsigned count;
        usec_t time, pause;
        int level;
        struct entry *entries;
        size_t n_entries;
        unsigned listed, ended;
};

static const char *count_listed(struct config_read *r, void *field, struct str v)
{
        struct target *t = r->target;

        (void) field;
        t->listed++;
        return str_eq(v, STR("bad")) ? "expected anything but bad" : NULL;
}

static int end_entry(struct config_read *r, void *entry, struct err *e)
{
        struct entry *x = entry;

        ((struct target *) r->target)->ended++;
        if (!config_read_has(r, ".name"))
                return config_read_error(r, ".name", STR_NULL, "is missing", e);
        return str_eq(x->name, STR("taken"))
                       ? config_read_error(r, ".name", x->name, "is in use", e)
                       : 0;
}

static const char *const level_names[] = { "low", "middle", "high" };
static const struct enum_table level_table = { level_names, ARRAY_SIZE(level_names) };

static const struct config_key keys[] = {
        CONFIG_HEADING("THINGS"),
        { "text", CONFIG_TEXT(struct target, text), .otherwise = "none", .doc = "A text." },
        { "path", CONFIG_PATH(struct target, path), .value = "/x", .doc = "-a path." },
        { "secret", CONFIG_TEXT(struct target, secret), .secret = true, .doc = "A secret." },
        { "part.flag", CONFIG_BOOL(struct target, flag), .value = "on", .doc = "A flag." },
        { "part.count", CONFIG_UINT(struct target, count), .min = 2, .max = 5, .zero = "none",
          .value = "3", .doc = "A number." },
        { "part.pause", CONFIG_TIME(struct target, pause), .max = 90 * USEC_PER_SEC,
          .alias = "part.rest", .value = "1s", .doc = "Another time." },
        { "time", CONFIG_TIME(struct target, time), .min = 100 * USEC_PER_MSEC,
          .max = 3600 * USEC_PER_SEC, .doc = "A time." },
        { "level", CONFIG_ENUM(struct target, level, &level_table), .value = "middle",
          .doc = "A level." },
        { "list[]", CONFIG_CUSTOM(struct target, listed, count_listed), .max = 2,
          .doc = "A list." },
        { "entries[]", CONFIG_ENTRIES(struct target, entries, n_entries), .max = 9,
          .end = end_entry, .doc = "Entries." },
        { "entries[].name", CONFIG_STR(struct entry, name), .doc = "A name." },
        { "entries[].size", CONFIG_BYTES(struct entry, size), .min = 1024, .max = 1024 * 1024,
          .value = "2Ki", .doc = "A size." },
};

static const struct config_table table = { keys, ARRAY_SIZE(keys), "the manual", NULL };

static int read_text(const char *text, struct target *t, struct arena *a, struct err *e)
{
        *t = (struct target){ 0 };
        config_table_defaults(&table, t, a);
        return config_table_read(&table,
                                 &(struct config_source){ .text = str_from(text), .name = "f" }, t,
                                 a, e);
}

static void test_defaults_and_values(void **state)
{
        struct arena a;
        struct target t;
        struct err e = { 0 };

        arena_init(&a, 1 * MiB);
        check_i64_eq(read_text("", &t, &a, &e), 0);
        check_true(!t.text && t.flag && t.count == 3 && t.level == 1);
        check_z_eq(t.path, "/x");
        check_i64_eq(read_text("text: a\npart: {flag: no, count: 0, rest: 2s}\ntime: 250ms\n"
                               "level: high\nlist: [a, b]\n"
                               "entries:\n- name: x\n- {size: 1Mi, name: y}\n- name: z\n",
                               &t, &a, &e),
                     0);
        check_z_eq(t.text, "a");
        check_true(!t.flag && t.count == 0 && t.level == 2 && t.listed == 2);
        check_u64_eq(t.time, 250 * USEC_PER_MSEC);
        check_u64_eq(t.pause, 2 * USEC_PER_SEC); /* by its earlier name */
        check_u64_eq(t.n_entries, 3);
        check_u64_eq(t.ended, 3);
        check_str_eq(t.entries[0].name, "x");
        check_u64_eq(t.entries[0].size, 2048);
        check_u64_eq(t.entries[1].size, 1024 * 1024);
        check_str_eq(t.entries[2].name, "z");
        arena_done(&a);
}

static void test_errors(void **state)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "part: {count: 6}\n",
                  "f:1: part.count: \"6\": expected a number from 2 to 5; 0 means none" },
                { "part:\n  pause: 2m\n",
                  "f:2: part.pause: \"2m\": expected a time up to 90s, such as 1s" },
                { "time: 1ms\n", "f:1: time: \"1ms\": expected a time from 100ms to 1h" },
                { "level: lowest\n", "f:1: level: \"lowest\": expected low, middle or high" },
                { "entries: [{name: a, size: 1}]\n",
                  "f:1: entries[0].size: \"1\": expected a size from 1Ki to 1Mi" },
                { "text: ''\n", "f:1: text: \"\": expected a text" },
                { "list: [a, bad]\n", "f:1: list[1]: \"bad\": expected anything but bad" },
                { "list: [a, b, c]\n", "f:1: list[2]: too many entries" },
                { "list: {a: b}\n", "f:1: list: expected a list; an empty one is written []" },
                { "entries: [a]\n",
                  "f:1: entries[0]: expected keys with values; none at all are written {}" },
                { "entries:\n- name: a\n- size: 1Ki\n", "f:3: entries[1].name: is missing" },
                { "entries:\n- size: 1Ki\n  name: taken\n",
                  "f:3: entries[0].name: \"taken\": is in use" },
                { "part: {cuont: 3}\n",
                  "f:1: part.\"cuont\": unknown key; did you mean \"count\"?" },
                { "entries: [{nam: a}]\n",
                  "f:1: entries[0].\"nam\": unknown key; did you mean \"name\"?" },
                { "something: 1\n", "f:1: \"something\": unknown key; see the manual" },
                { "part: {pause: 1s, rest: 1s}\n", "f:1: part.pause: is given twice" },
                { "part: {}\npart: {}\n", "f:2: part: is given twice" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a;
                struct target t;
                struct err e = { 0 };

                check_case(cases[i].text);
                arena_init(&a, 1 * MiB);
                check_i64_eq(read_text(cases[i].text, &t, &a, &e), ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
                arena_done(&a);
        }
}

static void test_values_that_are_overridden(void **state)
{
        static const bool overridden[ARRAY_SIZE(keys)] = { [1] = true };
        struct target t = { .text = "line" };
        struct arena a;
        struct err e = { 0 };

        arena_init(&a, 1 * MiB);
        check_i64_eq(config_table_read(&table,
                                       &(struct config_source){ .text = STR("text: file\npath: /y"),
                                                                .name = "f",
                                                                .overridden = overridden },
                                       &t, &a, &e),
                     0);
        check_z_eq(t.text, "line");
        check_z_eq(t.path, "/y");
        check_true(!config_table_set(&table, "level", STR("low"), &t, &a));
        check_i64_eq(t.level, 0);
        check_z_eq(config_table_set(&table, "level", STR("x"), &t, &a),
                   "expected low, middle or high");
        arena_done(&a);
}

static void test_secrets(void **state)
{
        struct target t = { 0 };
        struct arena a;
        struct err e = { 0 };

        arena_init(&a, 1 * MiB);
        check_i64_eq(config_table_read(&table,
                                       &(struct config_source){ .text = STR("secret: hush\n"),
                                                                .name = "f",
                                                                .others_may_read = true },
                                       &t, &a, &e),
                     ERR_RETURN(ERR_FORBIDDEN));
        check_true(!strstr(e.message, "hush"));
        arena_done(&a);
}

static void test_reference(void **state)
{
        struct buf b;

        buf_init(&b, 64 * KiB);
        config_table_print_reference(&table, &b);
        check_true(strstr(buf_str(&b).p, ".SH THINGS\n.TP\n.B text\nA text.\nDefault: none.\n"));
        check_true(strstr(buf_str(&b).p,
                          ".B path\n\\-a path.\nAllowed: an absolute path without . and "
                          "..\nDefault: /x.\n"));
        check_true(strstr(buf_str(&b).p,
                          "Allowed: a number from 2 to 5; 0 means none.\nDefault: 3.\n"));
        check_true(strstr(buf_str(&b).p, ".B list\nA list.\n"));
        check_true(strstr(buf_str(&b).p, ".B entries[].name\n"));
        buf_done(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults_and_values),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_values_that_are_overridden),
                cmocka_unit_test(test_secrets),
                cmocka_unit_test(test_reference),
        };

        return cmocka_run_group_tests_name("config/table", tests, NULL, NULL);
}
