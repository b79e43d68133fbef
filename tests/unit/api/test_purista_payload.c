/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/payload.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* --- what fits --- */

#define CREATE  PURISTA_CREATE_SANDBOX
#define DESTROY PURISTA_DESTROY_SANDBOX
#define BASH    PURISTA_EXECUTE_BASH
#define READ    PURISTA_READ_FILE
#define WRITE   PURISTA_WRITE_FILES

struct decoding {
        struct arena arena;
        json_t *doc;
        struct purista_decode in;
        struct purista_payload out;
        int result;
};

static void decode(struct decoding *d, enum purista_command_id command, const char *text,
                   const char *path_id)
{
        struct json_error e;

        *d = (struct decoding){ 0 };
        arena_init(&d->arena, ARENA_MAX_REQUEST);
        check_i64_eq(json_parse(str_from(text), JSON_ALLOW_NULS, &d->doc, &e), 0);
        d->in = (struct purista_decode){ .command = &purista_commands[command],
                                         .doc = d->doc,
                                         .sandbox_id = str_from(path_id),
                                         .arena = &d->arena };
        d->result = purista_payload_decode(&d->in, &d->out);
}

static void done(struct decoding *d)
{
        buf_done(&d->in.issues);
        json_decref(d->doc);
        arena_done(&d->arena);
}

static void owners_of_both_generations(void **state)
{
        struct decoding d;

        decode(&d, CREATE, "{\"projectId\":\"p\"}", NULL);
        check_i64_eq(d.result, 0);
        check_str_eq(d.out.project_id, "p");
        check_true(!d.out.organization_id.p && !d.out.user_id.p && !d.out.has_git);
        check_i64_eq(d.out.scope.kind, SCOPE_SHARED_PROJECT_USER);
        done(&d);

        decode(&d, CREATE,
               "{\"projectId\":\"p\",\"organizationId\":\"o\",\"userId\":\"u\",\"other\":[1],"
               "\"gitConfig\":{\"username\":\"n\",\"email\":\"e\",\"token\":\"t\"},"
               "\"scope\":{\"kind\":\"conversation\",\"key\":\"c\"}}",
               NULL);
        check_i64_eq(d.result, 0);
        check_str_eq(d.out.organization_id, "o");
        check_str_eq(d.out.user_id, "u");
        check_true(d.out.has_git);
        check_str_eq(d.out.git.name, "n");
        check_str_eq(d.out.git.email, "e");
        check_str_eq(d.out.git.secret_token, "t");
        check_i64_eq(d.out.scope.kind, SCOPE_CONVERSATION);
        check_str_eq(d.out.scope.key, "c");
        done(&d);
}

static void commands_of_both_generations(void **state)
{
        struct decoding d;

        decode(&d, BASH, "{\"sandboxId\":\"s\",\"command\":\"\"}", NULL);
        check_i64_eq(d.result, 0);
        check_str_eq(d.out.sandbox_id, "s");
        check_true(d.out.command.p && d.out.command.n == 0 && !d.out.cwd.p);
        check_i64_eq(d.out.timeout_ms, 0);
        done(&d);

        decode(&d, BASH,
               "{\"projectId\":\"p\",\"command\":\"c\",\"cwd\":\"d\",\"timeoutMs\":1800000}", "s");
        check_i64_eq(d.result, 0);
        check_str_eq(d.out.sandbox_id, "s");
        check_str_eq(d.out.project_id, "p");
        check_str_eq(d.out.cwd, "d");
        check_i64_eq(d.out.timeout_ms, 1800000);
        done(&d);
}

static void files_of_both_generations(void **state)
{
        struct decoding d;

        decode(&d, WRITE,
               "{\"sandboxId\":\"s\",\"files\":{\"a\":\"1\\u00002\",\"b\":{\"encoding\":\"utf-8\","
               "\"content\":\"x\"},\"c\":{\"encoding\":\"base64\",\"content\":\"AP8=\"},"
               "\"d\":{\"encoding\":\"base64\",\"content\":\"\"}}}",
               "s");
        check_i64_eq(d.result, 0);
        check_u64_eq(d.out.n_files, 4);
        check_u64_eq(d.out.files_bytes, 3 + 1 + 2);
        for (size_t i = 0; i < d.out.n_files; i++) {
                const struct agent_file *f = &d.out.files[i];
                struct str want = str_eq(f->path, STR("a"))   ? str_of("1\0002", 3)
                                  : str_eq(f->path, STR("b")) ? STR("x")
                                  : str_eq(f->path, STR("c")) ? str_of("\0\377", 2)
                                                              : STR("");

                check_true(f->bytes.p != NULL);
                check_view_eq(f->bytes, want);
        }
        done(&d);

        decode(&d, WRITE, "{\"sandboxId\":\"s\",\"files\":{}}", NULL);
        check_i64_eq(d.result, 0);
        check_u64_eq(d.out.n_files, 0);
        done(&d);
}

/* --- what does not --- */

#define FEW "String must contain at least 1 character(s)"

static const struct {
        enum purista_command_id command;
        const char *text, *path_id;
        const char *issues;
} wrong[] = {
        { BASH, "{\"sandboxId\":\"\"}", NULL,
          "{\"message\":\"" FEW "\",\"path\":[\"sandboxId\"]},"
          "{\"message\":\"Required\",\"path\":[\"command\"]}" },
        { BASH, "[]", NULL, "{\"message\":\"Expected object, received array\",\"path\":[]}" },
        { BASH, "{\"sandboxId\":\"a\",\"command\":\"c\"}", "b",
          "{\"message\":\"Must be the sandboxId of the path\",\"path\":[\"sandboxId\"]}" },
        { BASH, "{\"command\":\"c\\u0000\"}", "b",
          "{\"message\":\"String must not contain NUL\",\"path\":[\"command\"]}" },
        { BASH, "{\"command\":true,\"timeoutMs\":-1}", "b",
          "{\"message\":\"Expected string, received boolean\",\"path\":[\"command\"]},"
          "{\"message\":\"Number must be greater than 0\",\"path\":[\"timeoutMs\"]}" },
        { READ, "{\"path\":{}}", "b",
          "{\"message\":\"Expected string, received object\",\"path\":[\"path\"]}" },
        { WRITE, "{\"files\":\"x\"}", "b",
          "{\"message\":\"Expected object, received string\",\"path\":[\"files\"]}" },
        { WRITE, "{\"files\":{\"\\\"\":{\"encoding\":1}}}", "b",
          "{\"message\":\"Expected string, received number\",\"path\":[\"files\",\"\\\"\","
          "\"encoding\"]}" },
        { WRITE, "{\"files\":{\"f\":{\"encoding\":\"base64\",\"content\":\"Zg\"}}}", "b",
          "{\"message\":\"Invalid base64\",\"path\":[\"files\",\"f\",\"content\"]}" },
        { CREATE, "{\"projectId\":\"\",\"gitConfig\":1}", NULL,
          "{\"message\":\"" FEW "\",\"path\":[\"projectId\"]},"
          "{\"message\":\"Expected object, received number\",\"path\":[\"gitConfig\"]}" },
        { CREATE, "{\"projectId\":\"p\",\"scope\":{\"kind\":\"custom\",\"key\":\"\"}}", NULL,
          "{\"message\":\"" FEW "\",\"path\":[\"scope\",\"key\"]}" },
        { DESTROY, "{}", NULL, "{\"message\":\"Required\",\"path\":[\"sandboxId\"]}" },
};

static void every_mistake_is_reported(void **state)
{
        struct decoding d;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                check_case(wrong[i].text);
                decode(&d, wrong[i].command, wrong[i].text, wrong[i].path_id);
                check_i64_eq(d.result, -EINVAL);
                check_str_eq(buf_str(&d.in.issues), wrong[i].issues);
                done(&d);
        }
}

static void parameters_of_a_gateway_fill_gaps(void **state)
{
        struct purista_payload out;
        struct json_error e;
        json_t *doc, *parameter;
        struct purista_decode in = { .command = &purista_commands[READ] };

        check_i64_eq(json_parse(STR("{\"path\":\"own\"}"), 0, &doc, &e), 0);
        check_i64_eq(json_parse(STR("{\"sandboxId\":\"s\",\"path\":\"other\",\"projectId\":1}"), 0,
                                &parameter, &e),
                     0);
        in.doc = doc;
        in.parameter = parameter;
        check_i64_eq(purista_payload_decode(&in, &out), 0);
        check_str_eq(out.sandbox_id, "s");
        check_str_eq(out.path, "own");
        check_true(!out.project_id.p); /* only strings are taken */
        buf_done(&in.issues);

        in.doc = NULL; /* GET and DELETE have no payload */
        check_i64_eq(purista_payload_decode(&in, &out), 0);
        check_str_eq(out.path, "other");
        buf_done(&in.issues);
        json_decref(doc);
        json_decref(parameter);
}

static void no_payload_is_a_mistake(void **state)
{
        struct purista_decode in = { .command = &purista_commands[DESTROY] };
        struct purista_payload out;

        check_i64_eq(purista_payload_decode(&in, &out), -EINVAL);
        check_str_eq(buf_str(&in.issues), "{\"message\":\"Required\",\"path\":[]}");
        buf_done(&in.issues);
}

static void mistakes_are_counted_but_not_all_listed(void **state)
{
        scoped(buf_done) struct buf text;
        struct decoding d;

        buf_init(&text, BUF_MAX_JSON);
        buf_add_str(&text, STR("{\"files\":{"));
        for (int i = 0; i < 1000; i++)
                buf_addf(&text, "%s\"%d\":1", i ? "," : "", i);
        buf_add_str(&text, STR("}}"));
        decode(&d, WRITE, buf_str(&text).p, "b");
        check_i64_eq(d.result, -EINVAL);
        check_u64_eq(d.in.n_issues, 1000);
        check_true(!buf_failed(&d.in.issues) && d.in.issues.n < 8 * KiB);
        done(&d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(owners_of_both_generations),
                cmocka_unit_test(commands_of_both_generations),
                cmocka_unit_test(files_of_both_generations),
                cmocka_unit_test(every_mistake_is_reported),
                cmocka_unit_test(parameters_of_a_gateway_fill_gaps),
                cmocka_unit_test(no_payload_is_a_mistake),
                cmocka_unit_test(mistakes_are_counted_but_not_all_listed),
        };

        return cmocka_run_group_tests_name("purista_payload", tests, NULL, NULL);
}
