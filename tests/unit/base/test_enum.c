/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

enum color { COLOR_RED, COLOR_GREEN, COLOR_BLUE, COLOR_MAX_, COLOR_INVALID = -EINVAL };
ENUM_DECLARE(color);

static const char *const color_names[] = { [COLOR_RED] = "red", [COLOR_BLUE] = "blue" };
ENUM_TABLE(color, color_names, COLOR_MAX_);

static void goes_both_ways(void **state)
{
        check_z_eq(color_to_string(COLOR_RED), "red");
        check_z_eq(color_to_string(COLOR_BLUE), "blue");
        check_z_eq(color_to_string(COLOR_GREEN), NULL); /* a gap in the table */
        check_z_eq(color_to_string(COLOR_MAX_), NULL);
        check_z_eq(color_to_string(COLOR_INVALID), NULL);
        check_z_eq(color_to_string(INT32_MIN), NULL);
        check_i64_eq(color_from_string(STR("blue")), COLOR_BLUE);
        check_i64_eq(color_from_string(STR("Blue")), COLOR_INVALID);
        check_i64_eq(color_from_string(STR("blue ")), COLOR_INVALID);
        check_i64_eq(color_from_string(STR("blu")), COLOR_INVALID);
        check_i64_eq(color_from_string(STR("blue\0")), COLOR_INVALID);
        check_i64_eq(color_from_string(STR("")), COLOR_INVALID);
        check_i64_eq(color_from_string(STR_NULL), COLOR_INVALID);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(goes_both_ways) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
