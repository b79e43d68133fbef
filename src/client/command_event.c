/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command_event.h"

#include <signal.h>

#include "base/parse.h"

#include "base/banned.h"

static struct str text_of(const json_t *o, const char *key)
{
        const json_t *v = json_object_get(o, key);

        return json_is_string(v) ? str_of(json_string_value(v), json_string_length(v)) : STR_NULL;
}

static bool number_of(const json_t *o, const char *key, int64_t *ret)
{
        const json_t *v = json_object_get(o, key);

        if (json_is_integer(v))
                *ret = json_integer_value(v);
        else if (json_is_real(v) && json_real_value(v) > -1e15 && json_real_value(v) < 1e15)
                *ret = (int64_t) json_real_value(v);
        else
                return false;
        return true;
}

/* --- signals --- */

int signal_from_text(struct str text)
{
        if (text.n > 3 && str_caseeq(str_of(text.p, 3), STR("SIG")))
                text = str_skip(text, 3);
        for (int sig = 1; sig < NSIG; sig++) {
                const char *name = sigabbrev_np(sig), *words = sigdescr_np(sig);

                if ((name && str_caseeq(text, str_from(name)))
                    || (words && str_caseeq(text, str_from(words))))
                        return sig;
        }
        return 0;
}

static int signal_of_trace(const json_t *error)
{
        const json_t *trace = json_object_get(error, "traceback");
        static const struct str prefix = STR("signal: ");

        for (size_t i = 0; i < json_array_size(trace); i++) {
                const json_t *v = json_array_get(trace, i);
                struct str line = json_is_string(v)
                                          ? str_of(json_string_value(v), json_string_length(v))
                                          : STR_NULL;
                ssize_t paren;

                if (!str_starts_with(line, prefix))
                        continue;
                line = str_skip(line, prefix.n);
                paren = str_find(line, '('); /* "segmentation fault (core dumped)" */
                if (paren > 0)
                        line = str_trim(str_of(line.p, (size_t) paren));
                return signal_from_text(line);
        }
        return 0;
}

/* --- the end of a command --- */

static bool number_of_text(struct str s, int64_t *ret)
{
        bool minus = s.n > 0 && s.p[0] == '-';
        uint64_t n;

        s = str_trim(str_skip(s, minus));
        if (parse_u64_max(s, INT32_MAX, &n) < 0)
                return false;
        *ret = minus ? -(int64_t) n : (int64_t) n;
        return true;
}

static int fit(int64_t n)
{
        return n >= INT32_MIN && n <= INT32_MAX ? (int) n : -1;
}

static int exit_code_of_error(const json_t *event, const json_t *error)
{
        int64_t code = 0, evalue = 0;
        bool has_code = number_of(event, "exitCode", &code) || number_of(event, "exit_code", &code);
        bool has_evalue = number_of_text(text_of(error, "evalue"), &evalue)
                          || number_of(error, "evalue", &evalue);

        if (has_evalue && evalue > 0)
                return fit(evalue);
        if (has_code && code != 0)
                return fit(code);
        return has_evalue && evalue < 0 ? fit(evalue) : -1;
}

static void read_end(const json_t *event, bool failed, struct command_event *o)
{
        const json_t *error = json_object_get(event, "error");
        const json_t *first = json_array_get(json_object_get(error, "traceback"), 0);
        int64_t n = 0;

        o->kind = COMMAND_EVENT_ENDED;
        if (failed) {
                o->exit_code = exit_code_of_error(event, error);
                o->text = json_is_string(error)
                                  ? str_of(json_string_value(error), json_string_length(error))
                                  : text_of(error, "evalue");
                /* For a number, the traceback has the text: "exit status 7". */
                if ((!o->text.p || number_of_text(o->text, &n)) && json_is_string(first))
                        o->text = str_of(json_string_value(first), json_string_length(first));
        } else if (number_of(event, "exitCode", &n) || number_of(event, "exit_code", &n)) {
                o->exit_code = fit(n);
        }
        o->signal = number_of(event, "signal", &n) && n > 0 && n < NSIG ? (int) n
                                                                        : signal_of_trace(error);
        o->timed_out = json_is_true(json_object_get(event, "timedOut"));
        if (number_of(event, "durationMs", &n) || number_of(event, "execution_time", &n))
                o->duration_ms = n;
}

/* --- other events --- */

static bool is_no_text(const json_t *event, const char *key)
{
        const json_t *v = json_object_get(event, key);

        return v && !json_is_string(v) && !json_is_null(v);
}

/* Unreadable output is an error; missing output is empty. */
static int read_output(const json_t *event, enum command_event_type kind, struct command_event *o)
{
        if (is_no_text(event, "base64") || is_no_text(event, "text") || is_no_text(event, "data"))
                return -EINVAL;
        o->kind = kind;
        o->text = text_of(event, "base64");
        o->is_base64 = o->text.p != NULL;
        if (o->is_base64)
                return 0;
        o->text = text_of(event, "text");
        o->is_line = o->text.p != NULL;
        if (!o->text.p)
                o->text = text_of(event, "data");
        if (str_eq(o->text, STR("\n")))
                o->is_line = false; /* an empty line, with its end */
        return 0;
}

int command_event_read(const json_t *event, struct command_event *ret)
{
        struct str type = text_of(event, "type");
        struct command_event o = { .text = STR_NULL };
        int r = 0;

        if (!json_is_object(event))
                return -EINVAL;
        if (!type.p) {
                o.kind = COMMAND_EVENT_FAILED;
                o.code = text_of(event, "code");
                o.text = text_of(event, "message");
                r = o.code.p || o.text.p ? 0 : -EINVAL;
        } else if (str_eq(type, STR("init"))) {
                o.kind = COMMAND_EVENT_STARTED;
                o.text = text_of(event, "text");
        } else if (str_eq(type, STR("stdout"))) {
                r = read_output(event, COMMAND_EVENT_STDOUT, &o);
        } else if (str_eq(type, STR("stderr"))) {
                r = read_output(event, COMMAND_EVENT_STDERR, &o);
        } else if (str_eq(type, STR("execution_complete"))) {
                read_end(event, false, &o);
        } else if (str_eq(type, STR("error"))) {
                read_end(event, true, &o);
        }
        if (r == 0)
                *ret = o;
        return r;
}
