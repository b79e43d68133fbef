/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/names.h"

#include "bridge/message.h"
#include "tests/lib/check.h"

static const struct {
        const char *in, *out;
} snakes[] = {
        { "__empty__", "empty" },
        { "__none__", "none" },
        { "commandSuccessResponse", "command_success_response" },
        { "commandErrorResponse", "command_error_response" },
        { "infoServiceFunctionAdded", "info_service_function_added" },
        { "customMessage", "custom_message" },
        { "Sandbox", "sandbox" },
        { "createSandbox", "create_sandbox" },
        { "ensureSandbox", "ensure_sandbox" },
        { "executeBash", "execute_bash" },
        { "writeFiles", "write_files" },
        { "SandboxStarted", "sandbox_started" },
        { "67d975c0bb3cb78c74ad4f50803b549f", "67_d975_c0_bb3_cb78_c74_ad4_f50803_b549_f" },
        { "0123456789abcdef", "0123456789_abcdef" },
        { "org-1", "org_1" },
        { "org_1", "org_1" },
        { "Org1", "org1" },
        { "ORG1", "o_r_g_1" },
        { "AB", "ab" },
        { "AB1", "a_b_1" },
        { "AB_C", "a_b_c" },
        { "ABc", "a_bc" },
        { "aB", "a_b" },
        { "ABCd1", "ab_cd1" },
        { "1a2B", "1_a2_b" },
        { "HTTPServer2", "http_server2" },
        { "my.user@x.io", "my_user_x_io" },
        { "550e8400-e29b-41d4-a716-446655440000", "550_e8400_e29_b_41_d4_a716_446655440000" },
        { "auth0|123", "auth0_123" },
        { "a b", "a_b" },
        { "*", "*" },
        { ">", ">" },
        { "", "" },
        { "\xc3\xa4\xc3\xb6\xc3\xbc", "\xc3\xa4\xc3\xb6\xc3\xbc" },
        { "na\xc3\xafve", "na_ve" },
        { "$$endpoint:post:/api/v1/sandbox", "endpoint_post_api_v1_sandbox" },
        { "1.2", "1_2" },
        { "ABC-d", "abc_d" },
        { "AB\xc3\xa4", "ab" },
};

static void snake_case_is_theirs(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(snakes); i++) {
                char room[128];
                struct buf b;

                check_case(snakes[i].in);
                buf_init_fixed(&b, room, sizeof(room));
                names_add_snake(&b, str_from(snakes[i].in));
                check_str_eq(buf_str(&b), snakes[i].out);
        }
}

/* What matches nothing stays as it is, and may not end a part, a line or a subscription. */
static void parts_hold_nothing_that_separates(void **state)
{
        static const struct {
                const char *in, *nats, *mqtt;
        } cases[] = {
                { "", "empty", "none" }, { ".", "_", "." },
                { "/", "/", "_" },       { "+#", "+#", "__" },
                { "*", "*", "*" },       { " \r\n\t", "____", "____" },
                { "\x7f", "_", "_" },    { "\r\nPUB a 1\r\n", "pub_a_1", "pub_a_1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char room[128];
                struct buf b;

                check_case(cases[i].in);
                buf_init_fixed(&b, room, sizeof(room));
                names_add_part(&b, &name_style_nats, str_from(cases[i].in));
                check_str_eq(buf_str(&b), cases[i].nats);
                buf_reset(&b);
                names_add_part(&b, &name_style_mqtt, str_from(cases[i].in));
                check_str_eq(buf_str(&b), cases[i].mqtt);
        }
}

static void addresses_are_theirs(void **state)
{
        const struct message_head head = {
                .type = STR("customMessage"),
                .principal = STR("user-1"),
                .tenant = STR("org-1"),
                .event = STR("SandboxStarted"),
                .sender = { STR("Sandbox"), STR("1"), STR("createSandbox"),
                            STR("c02fc25f5b554c092937c564c8d93575") },
        };
        scoped(buf_done) struct buf b;

        buf_init(&b, 4096);
        names_add_address(&b, &name_style_nats, STR("purista"), &head);
        check_str_eq(buf_str(&b),
                     "purista.custom_message.user_1.org_1.c02_fc25_f5_b554_c092937_c564_c8_d93575"
                     ".sandbox.1.create_sandbox.sandbox_started.empty.empty.empty.empty");
        buf_reset(&b);
        names_add_address(&b, &name_style_mqtt, STR("purista"), &head);
        check_str_eq(buf_str(&b),
                     "purista/custom_message/user_1/org_1/c02_fc25_f5_b554_c092937_c564_c8_d93575"
                     "/sandbox/1/create_sandbox/sandbox_started/none/none/none/none");
}

static void commands_are_subscribed_to_as_theirs(void **state)
{
        struct address to = message_command_address(purista_command_find(STR("executeBash")));
        scoped(buf_done) struct buf b;

        buf_init(&b, 4096);
        names_add_commands(&b, &name_style_nats, STR("purista"), &to);
        check_str_eq(buf_str(&b), "purista.command.*.*.*.*.*.*.*.*.sandbox.1.execute_bash");
        buf_reset(&b);
        names_add_commands(&b, &name_style_mqtt, STR("purista"), &to);
        check_str_eq(buf_str(&b), "purista/command/+/+/+/+/+/+/+/+/sandbox/1/execute_bash");
        buf_reset(&b);
        names_add_queue_group(&b, STR("purista"), &to);
        check_str_eq(buf_str(&b), "PURISTA_QUEUE_SANDBOX_1_EXECUTEBASH");
        buf_reset(&b);
        names_add_queue(&b, STR("purista"), &to);
        check_str_eq(buf_str(&b), "purista.cmd.Sandbox.1.executeBash");
        check_true(purista_command_find(STR("executebash")) == NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(snake_case_is_theirs),
                cmocka_unit_test(parts_hold_nothing_that_separates),
                cmocka_unit_test(addresses_are_theirs),
                cmocka_unit_test(commands_are_subscribed_to_as_theirs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
