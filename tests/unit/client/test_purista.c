/* SPDX-License-Identifier: Apache-2.0 */
#include <hutch/hutch.h>

#include "client/url.h"
#include "tests/lib/check.h"

static void what_is_not_of_the_lifecycle_api_has_no_v1(void **state)
{
        static const char *const given[] = { "http://h:1", "http://h:1/", "http://h:1/v1",
                                             "http://h:1/v1//" };

        for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
                scoped(buf_done) struct buf b;
                struct url u;

                check_case(given[i]);
                buf_init(&b, URL_MAX);
                check_i64_eq(url_parse(str_from(given[i]), &u), 0);
                url_add_root(&b, &u);
                check_str_eq(buf_str(&b), "http://h:1");
        }
}

/* No one listens there: what is refused is refused before that shows. */
static void a_payload_is_one_value(void **state)
{
        static const struct {
                const char *command, *payload;
                int code;
        } cases[] = {
                { "executeBash", "{}", HUTCH_CONNECT },
                { "executeBash", "\"text\"", HUTCH_CONNECT },
                { "executeBash", NULL, HUTCH_CONNECT },
                { "executeBash", "", HUTCH_INVALID },
                { "executeBash", "{", HUTCH_INVALID },
                { "executeBash", "{},\"tenantId\":\"other\"", HUTCH_INVALID },
                { "executeBash", "{}}", HUTCH_INVALID },
                { "executeBash", "\"\xff\"", HUTCH_INVALID },
                { NULL, "{}", HUTCH_INVALID },
                { "", "{}", HUTCH_INVALID },
        };
        struct hutch_client_options options = hutch_client_options_init();
        struct hutch_client *client;

        options.unix_socket = "/nothing/here";
        check_i64_eq(hutch_client_new("http://localhost", NULL, &options, &client), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct hutch_purista what = hutch_purista_init();
                struct hutch_call call = hutch_call_init();

                check_case(cases[i].payload ? cases[i].payload : "none");
                what.command = cases[i].command;
                what.payload = cases[i].payload;
                check_i64_eq(hutch_purista_command(client, &what, NULL, &call), cases[i].code);
        }
        hutch_client_free(client);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_not_of_the_lifecycle_api_has_no_v1),
                cmocka_unit_test(a_payload_is_one_value),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
