/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ERR_H
#define HUTCH_BASE_ERR_H

/*
 * How errors are passed up.
 *
 * base/, os/ and net/ return a negative errno and never log. From registry/ and driver/ upward a
 * function returns a negative *domain code* and fills a caller-owned struct err, whose message
 * says what was being done; callers prefix their own context on the way up:
 *
 *         r = os_mkdirat(dfd, id, 0700);
 *         if (r < 0)
 *                 return err_errno(e, r, "create state directory of sandbox '%s'", id);
 *         ...
 *         if (driver_create(d, e) < 0)
 *                 return err_wrap(e, "create sandbox '%s'", id);
 *
 *         create sandbox 'a1': create state directory of sandbox 'a1': Permission denied
 *
 * On success the err is untouched. One table in api/ maps codes to HTTP statuses; nothing below it
 * knows a status. Messages have a fixed size, are cut with "…", and never contain a secret.
 */

#include <stdarg.h>

#include "base/compiler.h"
#include "base/enum.h"

/* clang-format off */
#define ERR_CODE_MAP(X)                                                                     \
        X(INTERNAL,     "internal")     /* a bug or an impossible state                    */ \
        X(INVALID,      "invalid")      /* the caller's input is wrong                     */ \
        X(UNAUTHORIZED, "unauthorized") /* no identity, or a wrong one                     */ \
        X(FORBIDDEN,    "forbidden")    /* known identity, not allowed                     */ \
        X(NOT_FOUND,    "not-found")    /* no such thing, or not visible to this caller    */ \
        X(CONFLICT,     "conflict")     /* the object's state does not allow it now        */ \
        X(EXISTS,       "exists")       /* it exists already                               */ \
        X(TOO_LARGE,    "too-large")    /* over a size limit                               */ \
        X(EXHAUSTED,    "exhausted")    /* over a quota, or the host is full               */ \
        X(UNSUPPORTED,  "unsupported")  /* this driver or build cannot do it               */ \
        X(UNAVAILABLE,  "unavailable")  /* a component does not respond; try again         */ \
        X(TIMEOUT,      "timeout")      /* not completed in time                           */ \
        X(CANCELED,     "canceled")     /* the caller gave up                              */
/* clang-format on */

enum err_code {
#define X(name, text) ERR_##name,
        ERR_CODE_MAP(X)
#undef X
                ERR_CODE_MAX_,
        ERR_CODE_INVALID_ = -EINVAL,
};

ENUM_DECLARE(err_code);

#define ERR_MESSAGE_MAX 512

struct err {
        enum err_code code;
        int os_errno; /* positive, or 0 */
        char message[ERR_MESSAGE_MAX];
};

/* A domain code as return value: always negative, never -ERR_INTERNAL == 0. */
#define ERR_RETURN(code) (-1000 - (int) (code))

/* All return ERR_RETURN(code), so that failing is one statement. e may be NULL (err_wrap then has no
 * code and returns that of ERR_INTERNAL). Arguments may point into e->message. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) printf_like(3, 4);

/* r is a negative errno; the code follows from it (ENOENT: not-found, EACCES: forbidden …) and its
 * text is appended. r may also be a domain code, which is kept. */
int err_errno(struct err *e, int r, const char *fmt, ...) printf_like(3, 4);

/* Prefixes the message with context, "context: message"; code and errno stay. If both do not fit, the
 * context is cut, but not below a quarter of the message: people need the cause. */
int err_wrap(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* The domain code of a negative errno or of an ERR_RETURN value. */
enum err_code err_code_from_errno(int r);

/* The text of such a value: "No such file or directory", "not-found". */
const char *err_text(int r);

#endif
