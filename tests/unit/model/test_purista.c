/* SPDX-License-Identifier: Apache-2.0 */
#include "model/purista.h"

#include "base/base.h"
#include "tests/lib/check.h"

static void commands_are_found_by_name(void **state)
{
        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++)
                check_true(purista_command_find(purista_commands[i].name) == &purista_commands[i]);
        check_true(!purista_command_find(STR("launchRocket")));
        check_true(!purista_command_find(STR("")));
}

static void input_schemas_follow_the_fields(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 64 * KiB);
        purista_command_add_input(&b, &purista_commands[PURISTA_READ_FILE], false);
        check_str_eq(buf_str(&b), "{\"type\":\"object\",\"properties\":{"
                                  "\"sandboxId\":{\"type\":\"string\",\"minLength\":1},"
                                  "\"path\":{\"type\":\"string\",\"minLength\":1},"
                                  "\"projectId\":{\"type\":\"string\",\"minLength\":1}},"
                                  "\"required\":[\"sandboxId\",\"path\"]}");
        buf_reset(&b);
        purista_command_add_input(&b, &purista_commands[PURISTA_DESTROY_SANDBOX], true);
        check_str_eq(buf_str(&b),
                     "{\"type\":\"object\",\"properties\":{"
                     "\"projectId\":{\"type\":\"string\",\"minLength\":1}},\"required\":[]}");
}

static void gateway_paths_have_colons(void **state)
{
        static const char *const paths[] = {
                "sandbox",
                "sandbox/ensure",
                "sandbox/:sandboxId",
                "sandbox/:sandboxId/bash",
                "sandbox/:sandboxId/file",
                "sandbox/:sandboxId/files",
        };
        scoped(buf_done) struct buf b;

        buf_init(&b, KiB);
        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++) {
                buf_reset(&b);
                purista_command_add_gateway_path(&b, &purista_commands[i]);
                check_str_eq(buf_str(&b), paths[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_are_found_by_name),
                cmocka_unit_test(input_schemas_follow_the_fields),
                cmocka_unit_test(gateway_paths_have_colons),
        };

        return cmocka_run_group_tests_name("purista", tests, NULL, NULL);
}
