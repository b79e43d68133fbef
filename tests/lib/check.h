/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_CHECK_H
#define HUTCH_TESTS_CHECK_H

/*
 * cmocka with its includes in the order it wants, and checks that print both values.
 *
 * A test file is tables of cases and loops over them; begin each case with check_case("what"), so
 * that a failure names it.
 */

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
/* clang-format on */

#include "base/str.h"

/* Name of the case under test, printed with every failed check. Weak, so that the files of a test share
 * one. */
__attribute__((weak)) const char *check_case_name_ = "";

#define check_case(name) ((void) (check_case_name_ = (name)))

/* A time limit as it is on a host of usual speed. tools/run-tests -t makes it longer. */
static inline uint64_t check_timeout(uint64_t usec)
{
        const char *factor = getenv("HUTCH_TEST_TIMEOUT_FACTOR");

        return factor ? (uint64_t) (strtod(factor, NULL) * (double) usec) : usec;
}

#define CHECK_FAIL_(fmt, ...)                                                           \
        do {                                                                            \
                print_message("# case '%s': " fmt "\n", check_case_name_, __VA_ARGS__); \
                _fail(__FILE__, __LINE__);                                              \
        } while (0)

#define check_true(cond)                                   \
        do {                                               \
                if (!(cond))                               \
                        CHECK_FAIL_("%s is false", #cond); \
        } while (0)

#define check_false(cond)                                 \
        do {                                              \
                if (cond)                                 \
                        CHECK_FAIL_("%s is true", #cond); \
        } while (0)

#define check_i64_eq(is, should)                                                      \
        do {                                                                          \
                long long is_ = (long long) (is), should_ = (long long) (should);     \
                if (is_ != should_)                                                   \
                        CHECK_FAIL_("%s is %lld, should be %lld", #is, is_, should_); \
        } while (0)

#define check_u64_eq(is, should)                                                      \
        do {                                                                          \
                unsigned long long is_ = (unsigned long long) (is);                   \
                unsigned long long should_ = (unsigned long long) (should);           \
                if (is_ != should_)                                                   \
                        CHECK_FAIL_("%s is %llu, should be %llu", #is, is_, should_); \
        } while (0)

/* Of views; the null view equals no text, not even the empty one. */
#define check_view_eq(is, should)                                                           \
        do {                                                                                \
                struct str is_ = (is), should_ = (should);                                  \
                if (!is_.p != !should_.p || !str_eq(is_, should_))                          \
                        CHECK_FAIL_("%s is %s'%.*s' (%zu), should be %s'%.*s' (%zu)", #is,  \
                                    is_.p ? "" : "null ", STR_ARG(is_), is_.n,              \
                                    should_.p ? "" : "null ", STR_ARG(should_), should_.n); \
        } while (0)

/* Of a view and a C string. */
#define check_str_eq(is, should) check_view_eq((is), str_from(should))

/* Of two C strings. */
#define check_z_eq(is, should) check_view_eq(str_from(is), str_from(should))

/* Where a test may make files: TMPDIR, or /tmp if that is too long for what follows in the path of
 * a socket. */
static inline const char *check_tmp(void)
{
        const char *tmp = getenv("TMPDIR");

        return tmp && strlen(tmp) <= 40 ? tmp : "/tmp";
}

/* Leaves the test as skipped, with the reason in the output. */
#define skip_because(reason)                                          \
        do {                                                          \
                print_message("# skip %s: %s\n", __func__, (reason)); \
                skip();                                               \
        } while (0)

#endif
