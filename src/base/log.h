/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_LOG_H
#define HUTCH_BASE_LOG_H

/*
 * Log lines belong to a context: request, sandbox, operation. A context inherits its parent's
 * fields and adds its own, and each line carries them all as structured pairs:
 *
 *         ts=2026-01-31T23:59:59.123Z level=info msg="sandbox created" request=6f… sandbox=a1
 *
 * in logfmt, or the same as one JSON object a line. Texts are quoted and escaped by the writer, so
 * what an outsider put into a name can't forge a line or move a terminal's cursor. The message
 * format is for our own words; foreign text goes into fields. There is no way to log a secret.
 *
 * A thing is logged once, where it is handled: base, os, net and libraries return instead.
 * log_err and friends return their first argument, so that log-and-return is one statement:
 *
 *         return log_err(r, ctx, "cannot start warden");
 *
 * A line is written with one write(2) and is at most BUF_MAX_LOG_LINE long: texts that do not fit
 * are cut with "…" or left out, and "cut=true" says so. Repetition is limited per call site
 * (LOG_BURST lines per LOG_INTERVAL_USEC); what was left out is said in the next line as
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

/* Where lines go. One per process, made by main and never changed later. */
struct log_sink {
        int fd;
        enum log_level level;
        enum log_format format;
        const struct clock *clock;
};

enum log_field_type { LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64 };

/* A null view is an absent field: nothing is written for it. */
struct log_field {
        const char *key; /* ours, never foreign: [a-z_]+ */
        enum log_field_type type;
        union {
                struct str s;
                int64_t i;
                uint64_t u;
        };
};

#define LOG_CTX_FIELDS 4

/* Lives where the thing it describes lives; holds views, so the thing must outlive it. */
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
        struct log_site *site; /* NULL: not limited */
        const struct log_field *fields;
        size_t n_fields;
};

/* Returns line->error and leaves errno alone. c may be NULL: nothing is written then. */
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
 * rate-limited: access and audit lines must all be there. */
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
