/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ERR_H
#define HUTCH_BASE_ERR_H

/*
 * How failure travels.
 *
 * base/, os/ and net/ return a negative errno and never log. From registry/ and driver/ upward a
 * function returns a negative *domain code* and fills a caller-owned struct err, whose message
 * says what we were doing; callers put their own context in front on the way up:
 *
 *         r = os_mkdirat(dfd, id, 0700);
 *         if (r < 0)
 *                 return err_errno(e, r, "create state folder of sandbox '%s'", id);
 *         ...
 *         if (driver_create(d, e) < 0)
 *                 return err_wrap(e, "create sandbox '%s'", id);
 *
 *         create sandbox 'a1': create state folder of sandbox 'a1': Permission denied
 *
 * On success the err is untouched. One table in api/ turns codes into HTTP statuses; nothing below
 * it knows a status. Messages are of a fixed size, cut with "…", and never hold a secret.
 */

#include <stdarg.h>

#include "base/compiler.h"
#include "base/enum.h"

/* clang-format off */
#define ERR_CODE_MAP(X)                                                                     \
        X(INTERNAL,     "internal")     /* a bug or an impossible state of ours            */ \
        X(INVALID,      "invalid")      /* the caller's input is wrong                     */ \
        X(UNAUTHORIZED, "unauthorized") /* no identity, or a wrong one                     */ \
        X(FORBIDDEN,    "forbidden")    /* known identity, not allowed                     */ \
        X(NOT_FOUND,    "not-found")    /* no such thing, or not for this caller to see    */ \
        X(CONFLICT,     "conflict")     /* the thing's state does not allow it now         */ \
        X(EXISTS,       "exists")       /* would be there twice                            */ \
        X(TOO_LARGE,    "too-large")    /* over a limit of size                            */ \
        X(EXHAUSTED,    "exhausted")    /* over a quota, or the machine is full            */ \
        X(UNSUPPORTED,  "unsupported")  /* this driver or build cannot do it               */ \
        X(UNAVAILABLE,  "unavailable")  /* a part we need does not answer; try again       */ \
        X(TIMEOUT,      "timeout")      /* not done in time                                */ \
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

/* All return ERR_RETURN(code), so that failing is one statement. e may be NULL (err_wrap then knows
 * no code and returns that of ERR_INTERNAL). Arguments may point into e->message. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) printf_like(3, 4);

/* r is a negative errno; the code follows from it (ENOENT: not-found, EACCES: forbidden …) and its
 * text is appended. A domain code is taken, too, and kept. */
int err_errno(struct err *e, int r, const char *fmt, ...) printf_like(3, 4);

/* Puts context in front of the message, "context: message"; code and errno stay. If both do not
 * fit, the context is cut, to a quarter of the room at most: the cause is what people need. */
int err_wrap(struct err *e, const char *fmt, ...) printf_like(2, 3);

/* The domain code of a negative errno, or of a value made by ERR_RETURN. */
enum err_code err_code_from_errno(int r);

/* What such a value means, in words: "No such file or directory", "not-found". */
const char *err_text(int r);

#endif
