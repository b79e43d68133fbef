/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text to document. jansson does the grammar; nesting depth and number of values are checked first,
 * because jansson's own depth limit (2048) lets an attacker exhaust our stack, and it has no limit
 * for values, each of which costs many times its text. Its errors are translated.
 */

#include "base/json.h"

#include <stdio.h>

#include "base/limits.h"

#include "base/banned.h"

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

/* The position of the first character that exceeds a limit, or -1. Text that jansson would refuse
 * anyway may be misjudged, but never accepted for that: up to its first error both see the same
 * brackets. */
static ssize_t find_excess(struct str s, const char **ret_what)
{
        bool in_string = false;
        unsigned depth = 0, values = 1;

        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                } else if (c == '"') {
                        in_string = true;
                } else if (c == '[' || c == '{' || c == ',') {
                        depth += c != ',';
                        *ret_what = depth > JSON_DEPTH_MAX
                                            ? "nested more than " TEXT_OF(JSON_DEPTH_MAX) " deep"
                                            : "more than " TEXT_OF(JSON_VALUES_MAX) " values";
                        if (depth > JSON_DEPTH_MAX || ++values > JSON_VALUES_MAX)
                                return (ssize_t) i;
                } else if (c == ']' || c == '}') {
                        if (depth <= 1)
                                return -1;
                        depth--;
                }
        }
        return -1;
}

/* Our text where jansson's mentions its own flags, or NULL. */
static const char *words_for(enum json_error_code code)
{
        switch ((int) code) {
        case json_error_out_of_memory:
                return "needs too much memory";
        case json_error_premature_end_of_input:
                return "unexpected end";
        case json_error_end_of_input_expected:
                return "nothing may follow the document";
        case json_error_invalid_utf8:
                return "invalid UTF-8";
        case json_error_null_byte_in_key:
        case json_error_null_character:
                return "NUL is not allowed";
        case json_error_duplicate_key:
                return "duplicate key";
        case json_error_numeric_overflow:
                return "number out of range";
        default:
                return NULL;
        }
}

/* jansson quotes the text around an error unescaped; that part is cut off. */
static void fail_syntax(const json_error_t *je, struct json_error *reterr)
{
        const char *words = words_for(json_error_code(je));
        const char *near = strstr(je->text, " near '");
        size_t n = near ? (size_t) (near - je->text) : strlen(je->text);

        *reterr =
                (struct json_error){ .syntax = true, .position = (size_t) MAX_OF(je->position, 0) };
        (void) snprintf(reterr->message, sizeof(reterr->message), "line %d column %d: %.*s",
                        MAX_OF(je->line, 1), MAX_OF(je->column, 1),
                        words ? (int) strlen(words) : (int) n, words ? words : je->text);
        for (char *p = reterr->message; *p; p++)
                if (*p < 0x20 || *p > 0x7e)
                        *p = '?';
}

int json_parse(struct str text, unsigned flags, json_t **ret, struct json_error *reterr)
{
        size_t how = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
        json_error_t je = { .line = 1, .column = 1 };
        size_t line = 1, column = 1;
        const char *what;
        ssize_t at = find_excess(text, &what);
        json_t *doc;

        if (at >= 0) {
                *reterr = (struct json_error){ .syntax = true, .position = (size_t) at };
                for (ssize_t i = 0; i < at; i++) {
                        column = text.p[i] == '\n' ? 1 : column + 1;
                        line += text.p[i] == '\n';
                }
                (void) snprintf(reterr->message, sizeof(reterr->message), "line %zu column %zu: %s",
                                line, column, what);
                return -EINVAL;
        }
        if (flags & JSON_ALLOW_TRAILING)
                how |= JSON_DISABLE_EOF_CHECK;
        if (flags & JSON_ALLOW_NULS)
                how |= JSON_ALLOW_NUL;
        doc = json_loadb(text.p ? text.p : "", text.n, how, &je);
        if (!doc) {
                fail_syntax(&je, reterr);
                return json_error_code(&je) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
        }
        *ret = doc;
        return 0;
}
