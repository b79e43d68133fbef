/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_LOG_H
#define HUTCH_BASE_LOG_H

/*
 * A log line belongs to a context: request, sandbox, operation. A context inherits its parent's
 * fields and adds its own, and each line carries all of them as structured pairs:
 *
 *         ts=2026-01-31T23:59:59.123Z level=info msg="sandbox created" request=6f… sandbox=a1
 *
 * in logfmt, or as one JSON object per line. Texts are quoted and escaped by the writer, so a name
 * chosen by an outsider cannot forge a line or control a terminal. The message is a fixed phrase of
 * ours; text from outside goes into fields. There is no way to log a secret.
 *
 * An error is logged once, where it is handled: base, os, net and libraries return it instead. log_err
 * returns its first argument, so that log-and-return is one statement:
 *
 *         return log_err(r, ctx, "cannot start warden");
 *
 * A line is written with one write(2) and is at most BUF_MAX_LOG_LINE long: texts that do not fit
 * are cut with "…" or left out, and the line then has "cut=true". Repetition is rate-limited per call
 * site (LOG_BURST lines per LOG_INTERVAL_USEC); the next line has the number of omitted ones as
 * "suppressed=N".
 */

#include <stdarg.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/str.h"

enum log_level {
        LOG_DEBUG,
        LOG_INFO,
        LOG_WARN,
        LOG_ERROR,
        LOG_LEVEL_MAX_,
        LOG_LEVEL_INVALID = -EINVAL,
};
ENUM_DECLARE(log_level); /* debug, info, warn, error */

enum log_format { LOG_LOGFMT, LOG_JSON, LOG_FORMAT_MAX_, LOG_FORMAT_INVALID = -EINVAL };
ENUM_DECLARE(log_format); /* logfmt, json */

#define LOG_BURST         20
#define LOG_INTERVAL_USEC (10 * USEC_PER_SEC)

struct log_file;

/* Where lines go. One per process, set up by main and never changed later; an access log may have one of its own. */
struct log_sink {
        int fd;
        enum log_level level;
        enum log_format format;
        const struct clock *clock;
        struct log_file *file; /* instead of fd, or NULL */
        uint64_t *lost;        /* counts lines that could not be written to fd; may be NULL */
};

enum log_field_type { LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64 };

/* A field whose value is the null view is left out. */
struct log_field {
        const char *key; /* ours, never from outside: [a-z_]+ */
        enum log_field_type type;
        union {
                struct str s;
                int64_t i;
                uint64_t u;
        };
};

#define LOG_CTX_FIELDS 4

/* Lives in the object it describes and holds views of it. */
struct log_ctx {
        const struct log_ctx *parent;
        const struct log_sink *sink;
        size_t n_fields;
        struct log_field fields[LOG_CTX_FIELDS];
};

void log_ctx_init_root(struct log_ctx *c, const struct log_sink *sink);
void log_ctx_init(struct log_ctx *c, const struct log_ctx *parent);
void log_ctx_add_str(struct log_ctx *c, const char *key, struct str value);

static inline bool log_enabled(const struct log_ctx *c, enum log_level level)
{
        return c && c->sink && level >= c->sink->level;
}

/* --- writing --- */

#define LOG_F_STR(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_STR, .s = (v) })
#define LOG_F_I64(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_I64, .i = (v) })
#define LOG_F_U64(k, v) ((struct log_field){ .key = (k), .type = LOG_FIELD_U64, .u = (v) })

struct log_site {
        usec_t window;
        unsigned count;
        unsigned suppressed;
};

struct log_line {
        enum log_level level;
        int error;             /* negative errno or domain code, or 0: printed as error="…" */
        struct log_site *site; /* NULL: not rate-limited */
        const struct log_field *fields;
        size_t n_fields;
};

/* Returns line->error and preserves errno. With c == NULL nothing is written. */
int log_write(const struct log_ctx *c, const struct log_line *line, const char *fmt, ...)
        printf_like(3, 4);

#define LOG_WRITE_(lvl, err_, c, ...)                                                              \
        ({                                                                                         \
                static struct log_site log_site_;                                                  \
                log_enabled((c), (lvl))                                                            \
                        ? log_write((c),                                                           \
                                    &(struct log_line){                                            \
                                            .level = (lvl), .error = (err_), .site = &log_site_ }, \
                                    __VA_ARGS__)                                                   \
                        : (err_);                                                                  \
        })

#define log_debug(c, ...)  ((void) LOG_WRITE_(LOG_DEBUG, 0, c, __VA_ARGS__))
#define log_info(c, ...)   ((void) LOG_WRITE_(LOG_INFO, 0, c, __VA_ARGS__))
#define log_warn(c, ...)   ((void) LOG_WRITE_(LOG_WARN, 0, c, __VA_ARGS__))
#define log_err(r, c, ...) LOG_WRITE_(LOG_ERROR, r, c, __VA_ARGS__)

/* With fields: log_fields(ctx, LOG_INFO, "request done", LOG_F_STR("path", path), …). Not
 * rate-limited: access and audit logs must be complete. */
#define log_fields(c, lvl, msg, ...)                                                           \
        do {                                                                                   \
                if (log_enabled((c), (lvl))) {                                                 \
                        const struct log_field log_f_[] = { __VA_ARGS__ };                     \
                        (void) log_write((c),                                                  \
                                         &(struct log_line){ .level = (lvl),                   \
                                                             .fields = log_f_,                 \
                                                             .n_fields = ARRAY_SIZE(log_f_) }, \
                                         "%s", (msg));                                         \
                }                                                                              \
        } while (0)

#endif
