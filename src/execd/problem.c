/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/problem.h"

#include "base/base.h"
#include "execd/codes.h"

struct words {
        int status;
        const char *code;
};

static const struct words otherwise = { 500, CODE_RUNTIME_ERROR };

static const struct words *words_of_errno(int r)
{
        static const struct {
                int error;
                struct words words;
        } table[] = {
                { ENOENT, { 404, CODE_FILE_NOT_FOUND } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (-r == table[i].error)
                        return &table[i].words;
        return &otherwise;
}

static const struct words *words_of_code(enum err_code code)
{
        static const struct {
                enum err_code code;
                struct words words;
        } table[] = {
                { ERR_INVALID, { 400, CODE_INVALID_BODY } },
                { ERR_EXHAUSTED, { 400, CODE_INVALID_BODY } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (code == table[i].code)
                        return &table[i].words;
        return &otherwise;
}

void problem_reply_errno(struct http_req *req, int r, const char *fmt, ...)
{
        char room[ERR_MESSAGE_MAX];
        struct buf text;
        struct err e;
        va_list ap;

        buf_init_fixed(&text, room, sizeof(room));
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        (void) err_errno(&e, r, "%.*s", STR_ARG(buf_str(&text)));
        http_reply_error(req, words_of_errno(r)->status, words_of_errno(r)->code, "%s", e.message);
}

void problem_reply_file(struct http_req *req, int r, const char *verb, struct str path)
{
        if (r == -EINVAL)
                http_reply_error(req, otherwise.status, otherwise.code,
                                 "%s '%.*s': not a regular file", verb, PROBLEM_PATH(path));
        else
                problem_reply_errno(req, r, "%s '%.*s'", verb, PROBLEM_PATH(path));
}

void problem_reply(struct http_req *req, const struct err *e)
{
        const struct words *w = e->os_errno ? words_of_errno(-e->os_errno) : words_of_code(e->code);

        http_reply_error(req, w->status, w->code, "%s", e->message);
}
