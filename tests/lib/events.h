/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_EVENTS_H
#define HUTCH_TESTS_EVENTS_H

/*
 * The events of an answer as one short text, for comparing:
 *
 *         init ping out(hi) err(oops) error(3|exit status 3)
 *         init ping done
 *
 * Everything that every event must have is checked on the way: bare JSON, an empty line behind it, a
 * type and an integer time.
 */

#include <jansson.h>

#include "base/buf.h"
#include "tests/lib/check.h"

#define EVENTS_TEXT_MAX 8192

struct events {
        char text[EVENTS_TEXT_MAX];
        char id[64]; /* of init */
        unsigned pings, terminals;
};

static inline void events_add(struct events *e, const char *fmt, const char *a, const char *b)
{
        size_t n = strlen(e->text);

        (void) snprintf(e->text + n, sizeof(e->text) - n, "%s", n ? " " : "");
        n = strlen(e->text);
        /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
        if (b)
                (void) snprintf(e->text + n, sizeof(e->text) - n, "%s(%s|%s)", fmt, a, b);
        else if (a)
                (void) snprintf(e->text + n, sizeof(e->text) - n, "%s(%s)", fmt, a);
        else
                (void) snprintf(e->text + n, sizeof(e->text) - n, "%s", fmt);
}

static inline void events_note(struct events *e, json_t *doc)
{
        const char *type = json_string_value(json_object_get(doc, "type"));
        const char *text = json_string_value(json_object_get(doc, "text"));
        json_t *error = json_object_get(doc, "error");

        check_true(type && json_is_integer(json_object_get(doc, "timestamp")));
        if (strcmp(type, "init") == 0) {
                (void) snprintf(e->id, sizeof(e->id), "%s", text);
                events_add(e, "init", NULL, NULL);
        } else if (strcmp(type, "ping") == 0) {
                check_z_eq(text, "pong");
                if (e->pings++ == 0)
                        events_add(e, "ping", NULL, NULL);
        } else if (strcmp(type, "stdout") == 0) {
                events_add(e, "out", text, NULL);
        } else if (strcmp(type, "stderr") == 0) {
                events_add(e, "err", text, NULL);
        } else if (strcmp(type, "error") == 0) {
                e->terminals++;
                check_z_eq(json_string_value(json_object_get(error, "ename")), "CommandExecError");
                events_add(e, "error", json_string_value(json_object_get(error, "evalue")),
                           json_string_value(
                                   json_array_get(json_object_get(error, "traceback"), 0)));
        } else {
                check_z_eq(type, "execution_complete");
                e->terminals++;
                events_add(e, "done", NULL, NULL);
        }
}

static inline void events_read(struct events *e, struct str body)
{
        *e = (struct events){ 0 };
        while (body.n > 0) {
                ssize_t n = str_find(body, '\n');
                json_t *doc;

                check_true(n > 0 && (size_t) n + 1 < body.n && body.p[n + 1] == '\n');
                doc = json_loadb(body.p, (size_t) n, JSON_ALLOW_NUL, NULL);
                check_true(doc != NULL);
                events_note(e, doc);
                json_decref(doc);
                body = str_skip(body, (size_t) n + 2);
        }
        check_i64_eq(e->terminals, 1);
}

#endif
