/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

static void sets_and_wraps(void **state)
{
        struct err e = { 0 };

        check_i64_eq(err_errno(&e, -EACCES, "create state directory of '%s'", "a1"),
                     ERR_RETURN(ERR_FORBIDDEN));
        check_i64_eq(e.os_errno, EACCES);
        check_i64_eq(err_wrap(&e, "create sandbox '%s'", "a1"), ERR_RETURN(ERR_FORBIDDEN));
        check_z_eq(e.message,
                   "create sandbox 'a1': create state directory of 'a1': Permission denied");
        check_i64_eq(e.code, ERR_FORBIDDEN);
        check_i64_eq(e.os_errno, EACCES);
        check_i64_eq(err_set(&e, ERR_CONFLICT, "is %s", "paused"), ERR_RETURN(ERR_CONFLICT));
        check_z_eq(e.message, "is paused");
        check_i64_eq(e.os_errno, 0);
        check_i64_eq(err_set(&e, ERR_INVALID, "again: %s", e.message), ERR_RETURN(ERR_INVALID));
        check_z_eq(e.message, "again: is paused");
}

static void works_without_an_err(void **state)
{
        check_i64_eq(err_set(NULL, ERR_INVALID, "x"), ERR_RETURN(ERR_INVALID));
        check_i64_eq(err_errno(NULL, -ENOENT, "x"), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(err_wrap(NULL, "x"), ERR_RETURN(ERR_INTERNAL));
        for (int code = 0; code < ERR_CODE_MAX_; code++)
                check_true(ERR_RETURN(code) < 0);
}

static void cuts_between_characters(void **state)
{
        struct err e;
        char text[600];

        for (size_t before = 500; before < 516; before++) {
                memset(text, 'x', before);
                memcpy(text + before, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 10);
                (void) err_set(&e, ERR_INVALID, "%s", text);
                check_true(strlen(e.message) < ERR_MESSAGE_MAX);
                check_true(str_is_utf8(str_from(e.message)));
                if (before + 9 < ERR_MESSAGE_MAX)
                        check_z_eq(e.message, text);
                else
                        check_true(str_ends_with(str_from(e.message), STR("\xe2\x80\xa6")));
        }
}

static void keeps_the_reason(void **state)
{
        char text[600] = "";
        struct err e;

        memset(text, 'x', sizeof(text) - 1);
        (void) err_errno(&e, -ENOENT, "%s", text);
        check_true(str_ends_with(str_from(e.message),
                                 STR("x\xe2\x80\xa6: No such file or directory")));
        check_u64_eq(strlen(e.message), ERR_MESSAGE_MAX - 1);
        (void) err_wrap(&e, "%s", text);
        check_u64_eq(strlen(e.message), ERR_MESSAGE_MAX - 1);

        (void) err_errno(&e, -ENOENT, "open '%s'", "f");
        (void) err_wrap(&e, "%s", text);
        check_true(str_ends_with(str_from(e.message),
                                 STR("x\xe2\x80\xa6: open 'f': No such file or directory")));
        check_u64_eq(strlen(e.message), ERR_MESSAGE_MAX - 1);
        /* A full message leaves room for a context, still. */
        (void) err_wrap(&e, "%s", "create sandbox");
        check_true(str_starts_with(str_from(e.message), STR("create sandbox: xxx")));
}

static void wraps_at_every_length(void **state)
{
        char text[2 * ERR_MESSAGE_MAX] = "";
        struct err e;

        for (size_t n = 0; n < sizeof(text) - 1; n++) {
                text[n] = 'x';
                text[n + 1] = '\0';
                (void) err_set(&e, ERR_INVALID, "%s", text);
                (void) err_wrap(&e, "%s", text);
                check_true(strlen(e.message) < ERR_MESSAGE_MAX);
                if (2 * (n + 1) + 2 < ERR_MESSAGE_MAX)
                        check_u64_eq(strlen(e.message), 2 * (n + 1) + 2);
                check_true(str_is_utf8(str_from(e.message)));
        }
}

static void maps_errnos(void **state)
{
        static const struct {
                int r;
                enum err_code code;
                const char *text;
        } cases[] = {
                { -ENOENT, ERR_NOT_FOUND, "No such file or directory" },
                { -EACCES, ERR_FORBIDDEN, "Permission denied" },
                { -EINVAL, ERR_INVALID, "Invalid argument" },
                { -EEXIST, ERR_EXISTS, "File exists" },
                { -EBUSY, ERR_CONFLICT, "Device or resource busy" },
                { -ENOSPC, ERR_EXHAUSTED, "No space left on device" },
                { -E2BIG, ERR_TOO_LARGE, "Argument list too long" },
                { -ENOSYS, ERR_UNSUPPORTED, "Function not implemented" },
                { -ECONNREFUSED, ERR_UNAVAILABLE, "Connection refused" },
                { -ETIMEDOUT, ERR_TIMEOUT, "Connection timed out" },
                { -ECANCELED, ERR_CANCELED, "Operation canceled" },
                { -EIO, ERR_INTERNAL, "Input/output error" },
                { -4095, ERR_INTERNAL, "unknown error" },
                { 0, ERR_INTERNAL, "Success" },
                { 5, ERR_INTERNAL, "unknown error" },
                { INT32_MIN + 1, ERR_INTERNAL, "unknown error" },
                { ERR_RETURN(ERR_INTERNAL), ERR_INTERNAL, "internal" },
                { ERR_RETURN(ERR_NOT_FOUND), ERR_NOT_FOUND, "not-found" },
                { ERR_RETURN(ERR_CANCELED), ERR_CANCELED, "canceled" },
                { ERR_RETURN(ERR_CODE_MAX_), ERR_INTERNAL, "unknown error" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text);
                check_i64_eq(err_code_from_errno(cases[i].r), cases[i].code);
                check_z_eq(err_text(cases[i].r), cases[i].text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sets_and_wraps),          cmocka_unit_test(works_without_an_err),
                cmocka_unit_test(cuts_between_characters), cmocka_unit_test(keeps_the_reason),
                cmocka_unit_test(wraps_at_every_length),   cmocka_unit_test(maps_errnos),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
