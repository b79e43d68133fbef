/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/glob.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* 1, 0, or the error of glob_new. */
static int matches(struct str pattern, struct str name)
{
        struct glob *g;
        int r = glob_new(pattern, &g);

        if (r < 0)
                return r;
        r = glob_matches(g, name);
        check_i64_eq(glob_matches(g, name), r);
        glob_free(g);
        return r;
}

static const struct {
        const char *pattern, *name;
        int want;
} patterns[] = {
        { "**", "anything", 1 },
        { "*", "", 1 },
        { "", "", 1 },
        { "", "a", 0 },
        { "*.txt", "a.txt", 1 },
        { "*.txt", ".txt", 1 },
        { "*.txt", "a.txt.bak", 0 },
        { "abc", "abc", 1 },
        { "*c", "abc", 1 },
        { "a*", "a", 1 },
        { "a*b*c*d*e*", "axbxcxdxe", 1 },
        { "a*b?c*x", "abxbbxdbxebxczzx", 1 },
        { "a*b?c*x", "abxbbxdbxebxczzy", 0 },
        { "***a**", "bac", 1 },
        { "?", "", 0 },
        { "?", "ab", 0 },
        /* classes */
        { "ab[c]", "abc", 1 },
        { "ab[b-d]", "abc", 1 },
        { "ab[e-g]", "abc", 0 },
        { "ab[^c]", "abc", 0 },
        { "ab[!e-g]", "abc", 1 },
        { "[\\]a]", "]", 1 },
        { "[\\-]", "-", 1 },
        { "[x-]", "-", 1 },
        { "[-x]", "-", 1 },
        { "[a-b-d]", "-", 1 },
        { "[a-b-d]", "c", 0 },
        { "[]a]", "]", -EINVAL },
        { "[", "a", -EINVAL },
        { "[^", "a", -EINVAL },
        { "[^bc", "a", -EINVAL },
        { "a[", "a", -EINVAL },
        { "[a-", "a", -EINVAL },
        { "[a\\", "a", -EINVAL },
        /* escapes */
        { "a\\*b", "ab", 0 },
        { "a\\*b", "a*b", 1 },
        { "\\{", "{", 1 },
        { "\\", "a", -EINVAL },
        /* characters */
        { "a?b",
          "a\xE2\x98\xBA"
          "b",
          1 },
        { "a???b",
          "a\xE2\x98\xBA"
          "b",
          0 },
        { "a[^a]b",
          "a\xE2\x98\xBA"
          "b",
          1 },
        { "[a-\xCE\xB6]*", "\xCE\xB1", 1 },
        { "a?b",
          "a\xFF"
          "b",
          1 },
        { "\xFF", "\xFF", 1 },
        { "\xFF", "\xFE", 0 },
        /* braces */
        { "ab{c,d}", "abc", 1 },
        { "ab{c,d}", "abd", 1 },
        { "ab{c,d}", "abe", 0 },
        { "ab{c,d,*}", "abcde", 1 },
        { "a{,bc}", "a", 1 },
        { "a{,bc}", "abc", 1 },
        { "*.{js,ts{,x}}", "a.tsx", 1 },
        { "*.{js,ts{,x}}", "a.ts", 1 },
        { "*.{js,ts{,x}}", "a.jsx", 0 },
        { "{}", "", 1 },
        { "{a}", "a", 1 },
        { "a,b", "a,b", 1 },
        { "{[,}],x}", ",", 1 },
        { "ab{c,d", "abc", -EINVAL },
        { "ab}", "ab}", -EINVAL },
        { "ab{c,d}[", "abcd", -EINVAL },
        /* slashes */
        { "**/*.txt", "a.txt", 1 },
        { "**/**/a", "a", 1 },
        { "{**/a,b}", "a", 1 },
        { "a/**", "a", 1 },
        { "src/*.c", "a.c", 0 },
        { "/a", "a", 0 },
        { "*/", "a", 0 },
        /* negation */
        { "!(a)", "a", 0 },
        { "!(a)", "b", 1 },
        { "!(*.{o,a})", "x.o", 0 },
        { "!(a)b", "ab", 0 },
        { "!(a)b", "a", 1 },
        { "!a", "!a", 1 },
        { "!(a", "!(a", 1 },
};

static void test_patterns(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
                check_case(patterns[i].pattern);
                check_i64_eq(matches(str_from(patterns[i].pattern), str_from(patterns[i].name)),
                             patterns[i].want);
        }
}

static void repeat(struct buf *b, const char *text, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_add_str(b, str_from(text));
}

/* Each of these takes a backtracking matcher longer than the universe. */
static void test_time_is_bounded(void **state)
{
        static const char *const pieces[] = { "a*", "*a", "{a*,*a}", "{a,a}", "{*,*}", "[a-z]*" };
        scoped(buf_done) struct buf name, pattern;

        buf_init(&name, 1024);
        buf_init(&pattern, GLOB_MAX);
        repeat(&name, "a", 255);
        for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
                check_case(pieces[i]);
                buf_reset(&pattern);
                repeat(&pattern, pieces[i], (GLOB_MAX - 1) / strlen(pieces[i]));
                buf_add_char(&pattern, 'b');
                check_i64_eq(matches(buf_str(&pattern), buf_str(&name)), 0);
        }
}

static void test_limits(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 3 * GLOB_MAX);
        repeat(&b, ",", GLOB_MAX);
        check_i64_eq(matches(buf_str(&b), STR("a")), 0);
        buf_add_char(&b, 'x');
        check_i64_eq(matches(buf_str(&b), STR("a")), -E2BIG);
        buf_reset(&b);
        buf_add_char(&b, '{');
        repeat(&b, ",", GLOB_MAX - 2);
        buf_add_char(&b, '}');
        check_i64_eq(matches(buf_str(&b), STR("")), 1);
        buf_reset(&b);
        repeat(&b, "{", GLOB_DEPTH_MAX);
        repeat(&b, "}", GLOB_DEPTH_MAX);
        check_i64_eq(matches(buf_str(&b), STR("")), 1);
        buf_reset(&b);
        repeat(&b, "{", GLOB_DEPTH_MAX + 1);
        repeat(&b, "}", GLOB_DEPTH_MAX + 1);
        check_i64_eq(matches(buf_str(&b), STR("")), -E2BIG);
}

/* --- against a matcher that is too simple to be wrong, and slow --- */

static bool simple(const char *p, const char *s);

/* p is behind a '{': tries each alternative, followed by what is behind the '}'. */
static bool simple_braces(const char *p, const char *s)
{
        const char *end = p, *start = p;
        char joined[256];
        int depth = 1;

        while (!(*end == '}' && depth == 1)) {
                depth += (*end == '{') - (*end == '}');
                end++;
        }
        depth = 1;
        for (;; p++) {
                if ((*p == ',' && depth == 1) || p == end) {
                        (void) snprintf(joined, sizeof(joined), "%.*s%s", (int) (p - start), start,
                                        end + 1);
                        if (simple(joined, s))
                                return true;
                        if (p == end)
                                return false;
                        start = p + 1;
                }
                depth += (*p == '{') - (*p == '}');
        }
}

static bool simple(const char *p, const char *s)
{
        if (*p == '\0')
                return *s == '\0';
        if (*p == '{')
                return simple_braces(p + 1, s);
        if (*p == '*')
                return simple(p + 1, s) || (*s && simple(p, s + 1));
        if (*p == '?')
                return *s && simple(p + 1, s + 1);
        if (*p == '[') { /* [ab] or [!a] */
                bool in = p[1] == '!' ? *s != p[2] : *s == p[1] || *s == p[2];

                return *s && in && simple(p + 4, s + 1);
        }
        return *s == *p && simple(p + 1, s + 1);
}

static uint32_t dice(uint32_t n)
{
        static uint64_t x = 88172645463325252ULL;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        return (uint32_t) (x >> 33) % n;
}

static void random_pattern(struct buf *b, int depth)
{
        static const char *const atoms[] = { "a", "b", "c", "*", "?", "[ab]", "[!a]", "a" };
        uint32_t n = dice(5);

        while (n-- > 0) {
                if (depth > 0 && dice(4) == 0) {
                        buf_add_char(b, '{');
                        for (uint32_t i = dice(3); i-- > 0;) {
                                random_pattern(b, depth - 1);
                                buf_add_char(b, ',');
                        }
                        random_pattern(b, depth - 1);
                        buf_add_char(b, '}');
                } else {
                        buf_add_str(b, str_from(atoms[dice(ARRAY_SIZE(atoms))]));
                }
        }
}

static void test_against_a_simple_matcher(void **state)
{
        unsigned matched = 0;

        for (int i = 0; i < 20000; i++) {
                scoped(buf_done) struct buf pattern;
                char name[8] = "";

                buf_init(&pattern, 200);
                random_pattern(&pattern, 2);
                if (buf_failed(&pattern))
                        continue;
                check_case(buf_str(&pattern).p);
                for (uint32_t k = 0, n = dice(7); k < n; k++)
                        name[k] = (char) ('a' + dice(3));
                check_i64_eq(matches(buf_str(&pattern), str_from(name)),
                             simple(buf_str(&pattern).p, name));
                matched += simple(buf_str(&pattern).p, name);
        }
        check_case("");
        check_true(matched > 1000 && matched < 19000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_patterns),
                cmocka_unit_test(test_time_is_bounded),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_against_a_simple_matcher),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
