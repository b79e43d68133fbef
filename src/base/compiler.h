/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_COMPILER_H
#define HUTCH_BASE_COMPILER_H

/*
 * Compiler features under one name each.
 *
 * scoped(fn) runs fn(&variable) when the variable leaves its scope; TAKE_PTR and TAKE_FD move a
 * value out of such a variable, so that the cleanup finds nothing to do:
 *
 *         scoped(secret_freep) struct secret *s = secret_new(bytes);
 *         ...
 *         *ret = TAKE_PTR(s);
 */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define must_check        __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define never_returns     __attribute__((noreturn))
#define maybe_unused      __attribute__((unused))
#define cold_path         __attribute__((cold))
#define scoped(fn)        __attribute__((cleanup(fn)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b)  ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)  ((a) > (b) ? (a) : (b))

/* The object that *ptr is a member of. clang-format takes the minus for a sign. */
/* clang-format off */
#define container_of(ptr, type, member) \
        ((type *) (void *) ((char *) (ptr) - offsetof(type, member)))
/* clang-format on */

#define TAKE_PTR(p)                           \
        ({                                    \
                typeof(p) *take_p_ = &(p);    \
                typeof(p) take_v_ = *take_p_; \
                *take_p_ = NULL;              \
                take_v_;                      \
        })

/* The null descriptor is -EBADF: 0 is a valid one, and -1 is -EPERM when it leaks into an error. */
#define TAKE_FD(fd)                      \
        ({                               \
                int *take_fd_ = &(fd);   \
                int take_v_ = *take_fd_; \
                *take_fd_ = -EBADF;      \
                take_v_;                 \
        })

/* Sizes are written 64 * KiB. */
#define KiB ((size_t) 1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* For invariants whose violation is a bug of ours. ASSERT stays on in every build, prints where, and
 * aborts. Bad input is an error code, never an ASSERT. */
#define ASSERT(cond)                                                        \
        do {                                                                \
                if (unlikely(!(cond)))                                      \
                        assert_failed(#cond, __FILE__, __LINE__, __func__); \
        } while (0)

never_returns cold_path void assert_failed(const char *cond, const char *file, int line,
                                           const char *func);

#endif
