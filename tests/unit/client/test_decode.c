/* SPDX-License-Identifier: Apache-2.0 */
#include "client/decode.h"

#include "base/buf.h"
#include "client/error.h"
#include "tests/lib/check.h"

static void sandboxes_in_both_spellings(void **state)
{
        static const char *const cases[] = {
                "{\"id\":\"a\",\"status\":{\"state\":\"Running\",\"reason\":\"R\"},\"createdAt\":"
                "\"1970-01-01T00:00:01Z\",\"expiresAt\":\"1970-01-01T00:00:02.5Z\",\"metadata\":"
                "{\"k\":\"v\",\"n\":7},\"entrypoint\":[\"x\",\"y\"],\"image\":{\"uri\":\"i\"}}",
                "{\"id\":\"a\",\"status\":{\"state\":\"Running\",\"reason\":\"R\"},\"created_at\":"
                "\"1970-01-01T01:00:01+01:00\",\"expires_at\":\"1970-01-01T00:00:02.500Z\","
                "\"metadata\":{\"k\":\"v\"},\"entrypoint\":[\"x\",\"y\"],\"image\":{\"uri\":\"i\"},"
                "\"unknown\":{\"deep\":[]}}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int code = 0;
                struct hutch_sandbox *s =
                        decode_result(&sandbox_decoder, str_from(cases[i]), NULL, &code);

                check_case(cases[i]);
                check_true(s != NULL);
                check_z_eq(s->id, "a");
                check_z_eq(s->state, "Running");
                check_z_eq(s->reason, "R");
                check_true(s->message == NULL);
                check_i64_eq(s->created_at, 1000);
                check_i64_eq(s->expires_at, 2500);
                check_u64_eq(s->n_metadata, 1);
                check_z_eq(hutch_sandbox_metadata(s, "k"), "v");
                check_true(hutch_sandbox_metadata(s, "n") == NULL);
                check_u64_eq(s->n_entrypoint, 2);
                check_z_eq(s->image, "i");
                hutch_sandbox_free(s);
        }
}

static void what_a_sandbox_lacks(void **state)
{
        static const char *const cases[] = {
                "",
                "[]",
                "{}",
                "<html>",
                "{\"id\":\"\",\"status\":{\"state\":\"Running\"}}",
                "{\"id\":7,\"status\":{\"state\":\"Running\"}}",
                "{\"id\":\"a\",\"status\":{}}",
                "{\"id\":\"a\",\"status\":{\"state\":\"Running\"}",
                "{\"id\":\"a\\u0000b\",\"status\":{\"state\":\"Running\"}}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int code = 0;

                check_case(cases[i]);
                check_true(decode_result(&sandbox_decoder, str_from(cases[i]), NULL, &code)
                           == NULL);
                check_i64_eq(code, HUTCH_PROTOCOL);
        }
}

static void lists_with_and_without_an_object_around(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                int64_t total;
                bool next, fails;
        } cases[] = {
                { "[]", 0, 0, false, false },
                { "{\"items\":[]}", 0, 0, false, false },
                { "[{\"id\":\"a\",\"status\":{\"state\":\"X\"}}]", 1, 0, false, false },
                { "{\"items\":[{\"id\":\"a\",\"status\":{\"state\":\"X\"}}],\"pagination\":{\"page\":1,"
                  "\"pageSize\":1,\"totalItems\":2,\"totalPages\":2,\"hasNextPage\":true}}",
                  1, 2, true, false },
                { "{\"items\":{}}", 0, 0, false, true },
                { "{\"items\":[7]}", 0, 0, false, true },
                { "{}", 0, 0, false, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int code = 0;
                struct hutch_sandbox_list *l =
                        decode_result(&sandbox_list_decoder, str_from(cases[i].text), NULL, &code);

                check_case(cases[i].text);
                check_i64_eq(l == NULL, cases[i].fails);
                if (!l)
                        continue;
                check_u64_eq(l->n, cases[i].n);
                check_i64_eq(l->total_items, cases[i].total);
                check_i64_eq(l->has_next_page, cases[i].next);
                hutch_sandbox_list_free(l);
        }
}

static void endpoints_by_what_the_answer_holds(void **state)
{
        static const struct {
                const char *text, *url, *host;
                int port;
                size_t n_headers;
        } cases[] = {
                { "{\"endpoint\":\"h:81/p\",\"headers\":{\"T\":\"x\"},\"url\":\"http://h:81/p~x\"}",
                  "https://h:81/p", "h", 81, 1 },
                { "{\"endpoint\":\"h\"}", "https://h", "h", 443, 0 },
                { "{\"url\":\"http://h:81/p/\"}", "http://h:81/p", "h", 81, 0 },
                { "{\"url\":\"h:81\",\"endpoint\":null}", "https://h:81", "h", 81, 0 },
                { "{\"host\":\"h\",\"port\":81}", NULL, NULL, 0, 0 },
                { "{\"endpoint\":\"\"}", NULL, NULL, 0, 0 },
                { "{\"endpoint\":\"user@h:81\"}", NULL, NULL, 0, 0 },
                { "{\"endpoint\":\"h:81/x?key=\"}", NULL, NULL, 0, 0 },
                { "{\"endpoint\":\"h\\r\\nX: y\"}", NULL, NULL, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int code = 0;
                struct hutch_endpoint *e = decode_result(&endpoint_decoder, str_from(cases[i].text),
                                                         &STR("https"), &code);

                check_case(cases[i].text);
                check_i64_eq(e != NULL, cases[i].url != NULL);
                if (!e)
                        continue;
                check_z_eq(e->url, cases[i].url);
                check_z_eq(e->host, cases[i].host);
                check_i64_eq(e->port, cases[i].port);
                check_u64_eq(e->n_headers, cases[i].n_headers);
                hutch_endpoint_free(e);
        }
}

static void files_item_by_item(void **state)
{
        static const struct {
                const char *text;
                int n; /* -1: refused */
        } cases[] = {
                { "[]", 0 },
                { " [ ] \n", 0 },
                { "null", 0 },
                { "[{\"path\":\"/a\"}]", 1 },
                { "[{\"path\":\"/a\"} , {\"path\":\"/b]}\\\"\"}]\n", 2 },
                { "[{\"path\":\"/a\",\"x\":[{}]},{\"path\":\"/b\"}]", 2 },
                { "[{\"path\":\"/a\"}", -1 },
                { "[{\"path\":\"/a\"}] x", -1 },
                { "[{}]", -1 },
                { "[7]", -1 },
                { "{}", -1 },
                { "", -1 },
                { "[\"", -1 },
                { "[\"\\", -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int code = 0;
                struct hutch_file_list *l =
                        decode_result(&files_decoder, str_from(cases[i].text), NULL, &code);

                check_case(cases[i].text);
                check_i64_eq(l ? (int) l->n : -1, cases[i].n);
                hutch_file_list_free(l);
        }
}

/* More than the parser takes as one document. */
static void a_great_many_files(void **state)
{
        scoped(buf_done) struct buf b;
        struct hutch_file_list *l;
        int code = 0;

        buf_init(&b, 64 * MiB);
        buf_add_char(&b, '[');
        for (unsigned i = 0; i < 50000; i++)
                buf_addf(&b, "%s{\"path\":\"/f%u\",\"size\":%u,\"mode\":644,\"type\":\"file\"}",
                         i ? "," : "", i, i);
        buf_add_char(&b, ']');
        l = decode_result(&files_decoder, buf_str(&b), NULL, &code);
        check_true(l != NULL);
        check_u64_eq(l->n, 50000);
        check_z_eq(l->items[49999]->path, "/f49999");
        check_i64_eq(l->items[49999]->size, 49999);
        check_i64_eq(l->items[49999]->mode, 0644);
        hutch_file_list_free(l);
}

static void modes_are_digits(void **state)
{
        static const struct {
                unsigned mode;
                int64_t digits;
        } cases[] = { { 0644, 644 }, { 0755, 755 }, { 0, 0 },
                      { 07, 7 },     { 0600, 600 }, { 04755, 4755 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_i64_eq(decode_mode(cases[i].digits), cases[i].mode);
                check_i64_eq(decode_mode_digits(cases[i].mode), cases[i].digits);
        }
        check_i64_eq(decode_mode(-1), 0);
        check_true(decode_mode(INT64_MAX) <= 07777);
}

static void problems_in_every_shape(void **state)
{
        static const struct {
                const char *body, *code, *words;
        } cases[] = {
                { "{\"code\":\"A::B\",\"message\":\"why\"}", "A::B", "why" },
                { "{\"error\":\"Unauthorized\"}", "", "Unauthorized" },
                { "{\"detail\":\"Not Found\"}", "", "Not Found" },
                { "{\"detail\":{\"code\":\"A\",\"message\":\"why\"}}", "A", "why" },
                { "{\"detail\":[{\"loc\":[\"body\",\"volumes\",2],\"msg\":\"m\"},{\"msg\":\"n\"}]}",
                  "", "body.volumes.2: m; n" },
                { "Bad Gateway\n", "", "Bad Gateway?" },
                { "a\033[31mb", "", "a?[31mb" },
                { "{\"code\":\"\\u001b[0m\"}", "?[0m", "" },
                { "", "", "" },
                { "[]", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct hutch_error e = { 0 };
                char words[64];

                check_case(cases[i].body);
                error_read_problem(str_from(cases[i].body), &e, words, sizeof(words));
                check_z_eq(e.server_code, cases[i].code);
                check_z_eq(words, cases[i].words);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sandboxes_in_both_spellings),
                cmocka_unit_test(what_a_sandbox_lacks),
                cmocka_unit_test(lists_with_and_without_an_object_around),
                cmocka_unit_test(endpoints_by_what_the_answer_holds),
                cmocka_unit_test(files_item_by_item),
                cmocka_unit_test(a_great_many_files),
                cmocka_unit_test(modes_are_digits),
                cmocka_unit_test(problems_in_every_shape),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
