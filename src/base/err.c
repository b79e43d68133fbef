/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#include "base/banned.h"

#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */
#define CONTEXT_MIN (ERR_MESSAGE_MAX / 4)

static const char *const err_code_names[] = {
#define X(name, text) [ERR_##name] = text,
        ERR_CODE_MAP(X)
#undef X
};
ENUM_TABLE(err_code, err_code_names, ERR_CODE_MAX_);

/* Formats into `out`, cut with an ellipsis if it does not fit. */
static void format_cut(char *out, size_t size, const char *fmt, va_list ap) printf_like(3, 0);

static void format_cut(char *out, size_t size, const char *fmt, va_list ap)
{
        int n = vsnprintf(out, size, fmt, ap);
        size_t keep;

        if (n < 0)
                out[0] = '\0';
        if (n < 0 || (size_t) n < size)
                return;
        keep = str_utf8_cut(str_of(out, size - 1), size - sizeof(ELLIPSIS)).n;
        memcpy(out + keep, ELLIPSIS, sizeof(ELLIPSIS));
}

static void set_message(struct err *e, const char *fmt, ...) printf_like(2, 3);

static void set_message(struct err *e, const char *fmt, ...)
{
        char text[ERR_MESSAGE_MAX]; /* the arguments may point into the message itself */
        va_list ap;

        va_start(ap, fmt);
        format_cut(text, sizeof(text), fmt, ap);
        va_end(ap);
        memcpy(e->message, text, strlen(text) + 1);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
        char text[ERR_MESSAGE_MAX];
        va_list ap;

        if (!e)
                return ERR_RETURN(code);
        va_start(ap, fmt);
        format_cut(text, sizeof(text), fmt, ap);
        va_end(ap);
        e->code = code;
        e->os_errno = 0;
        memcpy(e->message, text, strlen(text) + 1);
        return ERR_RETURN(code);
}

static bool is_domain_code(int r)
{
        return r <= ERR_RETURN(0) && r > ERR_RETURN(ERR_CODE_MAX_);
}

int err_errno(struct err *e, int r, const char *fmt, ...)
{
        enum err_code code = err_code_from_errno(r);
        const char *reason = err_text(r);
        char text[ERR_MESSAGE_MAX];
        va_list ap;

        if (!e)
                return ERR_RETURN(code);
        /* The reason matters more: the context is cut so that it fits. */
        va_start(ap, fmt);
        format_cut(text, sizeof(text) - strlen(reason) - 2, fmt, ap);
        va_end(ap);
        e->code = code;
        e->os_errno = is_domain_code(r) ? 0 : -r;
        set_message(e, "%s: %s", text, reason);
        return ERR_RETURN(code);
}

int err_wrap(struct err *e, const char *fmt, ...)
{
        char text[ERR_MESSAGE_MAX];
        size_t taken, room;
        va_list ap;

        if (!e)
                return ERR_RETURN(ERR_INTERNAL);
        /* The cause is at the end, so the context is cut first, but not completely. */
        taken = strlen(e->message) + strlen(": ");
        room = taken < sizeof(text) - CONTEXT_MIN ? sizeof(text) - taken : CONTEXT_MIN;
        va_start(ap, fmt);
        format_cut(text, room, fmt, ap);
        va_end(ap);
        set_message(e, "%s: %s", text, e->message);
        return ERR_RETURN(e->code);
}

/* All others are ERR_INTERNAL. */
static const struct {
        int os_errno;
        enum err_code code;
} errno_codes[] = {
        { EINVAL, ERR_INVALID },
        { ERANGE, ERR_INVALID },
        { EDOM, ERR_INVALID },
        { ENAMETOOLONG, ERR_INVALID },
        { EILSEQ, ERR_INVALID },
        { ENOTDIR, ERR_INVALID },
        { EISDIR, ERR_INVALID },
        { ELOOP, ERR_INVALID },
        { EACCES, ERR_FORBIDDEN },
        { EPERM, ERR_FORBIDDEN },
        { EROFS, ERR_FORBIDDEN },
        { ENOENT, ERR_NOT_FOUND },
        { ESRCH, ERR_NOT_FOUND },
        { ENODEV, ERR_NOT_FOUND },
        { ENXIO, ERR_NOT_FOUND },
        { EBUSY, ERR_CONFLICT },
        { ENOTEMPTY, ERR_CONFLICT },
        { ETXTBSY, ERR_CONFLICT },
        { EALREADY, ERR_CONFLICT },
        { EISCONN, ERR_CONFLICT },
        { EINPROGRESS, ERR_CONFLICT },
        { EEXIST, ERR_EXISTS },
        { EADDRINUSE, ERR_EXISTS },
        { ENOTUNIQ, ERR_EXISTS },
        { E2BIG, ERR_TOO_LARGE },
        { EFBIG, ERR_TOO_LARGE },
        { EMSGSIZE, ERR_TOO_LARGE },
        { EOVERFLOW, ERR_TOO_LARGE },
        { ENOMEM, ERR_EXHAUSTED },
        { ENOSPC, ERR_EXHAUSTED },
        { EDQUOT, ERR_EXHAUSTED },
        { EMFILE, ERR_EXHAUSTED },
        { ENFILE, ERR_EXHAUSTED },
        { ENOBUFS, ERR_EXHAUSTED },
        { EUSERS, ERR_EXHAUSTED },
        { ENOSYS, ERR_UNSUPPORTED },
        { EOPNOTSUPP, ERR_UNSUPPORTED },
        { EPROTONOSUPPORT, ERR_UNSUPPORTED },
        { EAFNOSUPPORT, ERR_UNSUPPORTED },
        { ENOPROTOOPT, ERR_UNSUPPORTED },
        { EAGAIN, ERR_UNAVAILABLE },
        { ECONNREFUSED, ERR_UNAVAILABLE },
        { ECONNRESET, ERR_UNAVAILABLE },
        { ECONNABORTED, ERR_UNAVAILABLE },
        { EPIPE, ERR_UNAVAILABLE },
        { EHOSTUNREACH, ERR_UNAVAILABLE },
        { ENETUNREACH, ERR_UNAVAILABLE },
        { ENETDOWN, ERR_UNAVAILABLE },
        { EHOSTDOWN, ERR_UNAVAILABLE },
        { ENOTCONN, ERR_UNAVAILABLE },
        { ETIMEDOUT, ERR_TIMEOUT },
        { ETIME, ERR_TIMEOUT },
        { ECANCELED, ERR_CANCELED },
};

enum err_code err_code_from_errno(int r)
{
        if (is_domain_code(r))
                return (enum err_code)(ERR_RETURN(0) - r);
        for (size_t i = 0; i < ARRAY_SIZE(errno_codes); i++)
                if (errno_codes[i].os_errno == -r)
                        return errno_codes[i].code;
        return ERR_INTERNAL;
}

const char *err_text(int r)
{
        const char *text;

        if (is_domain_code(r))
                return err_code_to_string((int) err_code_from_errno(r));
        text = strerrordesc_np(-r);
        return text ? text : "unknown error";
}
