/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "base/base.h"

static void add_help_line(struct buf *b, const char *left, struct str right)
{
        buf_addf(b, "  %-24s %.*s\n", left, STR_ARG(right));
}

static void add_help(struct buf *b, const struct option_table *t)
{
        buf_addf(b, "Usage: %s %s\n\n%s\n\n", t->program, t->usage, t->summary);
        for (size_t i = 0; i < t->n; i++) {
                const struct option *o = &t->options[i];
                struct str rest = str_from(o->help), line;
                char left[40];

                (void) snprintf(left, sizeof(left), "--%s%s%s", o->name, o->value ? " " : "",
                                o->value ? o->value : "");
                for (const char *head = left; str_split(&rest, '\n', &line); head = "")
                        add_help_line(b, head, line);
        }
        add_help_line(b, "--help", STR("show this and exit"));
        add_help_line(b, "--version", STR("show the version and exit"));
        buf_addf(b, "\nSee %s.\n", t->manual);
}

static int usage_error(const struct option_table *t, struct buf *text, struct str arg,
                       const char *what)
{
        buf_addf(text, "%s: %.*s: %s\nTry '%s --help'.\n", t->program, STR_ARG(arg), what,
                 t->program);
        return -EINVAL;
}

/* One option; returns how many words it took. */
static int parse_one(const struct option_table *t, char **argv, int left, void *target,
                     struct buf *text)
{
        struct str arg = str_from(argv[0]), name = str_skip(arg, 2), value = STR_NULL;
        ssize_t eq = str_find(name, '=');
        const struct option *opt = t->options, *end = t->options + t->n;
        const char *wrong;
        int used = 1;

        if (!str_starts_with(arg, STR("--")))
                return usage_error(t, text, arg, "unexpected argument");
        if (eq >= 0) {
                value = str_skip(name, (size_t) eq + 1);
                name.n = (size_t) eq;
        }
        while (opt < end && !str_eq(name, str_from(opt->name)))
                opt++;
        if (opt == end)
                return usage_error(t, text, arg, "unknown option");
        if (!opt->value && value.p)
                return usage_error(t, text, arg, "takes no value");
        if (opt->value && !value.p) {
                if (left < 2)
                        return usage_error(t, text, arg, "needs a value");
                value = str_from(argv[1]);
                used = 2;
        }
        wrong = opt->set(target, value);
        return wrong ? usage_error(t, text, arg, wrong) : used;
}

enum options_result options_parse(const struct option_table *t, int argc, char **argv, void *target,
                                  int *ret_args, struct buf *text)
{
        int i = 1;

        for (int used; i < argc; i += used) {
                struct str arg = str_from(argv[i]);

                if (t->takes_args && str_eq(arg, STR("--"))) {
                        i++;
                        break;
                }
                if (str_eq(arg, STR("--help"))) {
                        add_help(text, t);
                        return OPTIONS_EXIT_OK;
                }
                if (str_eq(arg, STR("--version"))) {
                        buf_addf(text, "%s %s\n", t->program, HUTCH_VERSION);
                        return OPTIONS_EXIT_OK;
                }
                used = parse_one(t, argv + i, argc - i, target, text);
                if (used < 0)
                        return OPTIONS_EXIT_USAGE;
        }
        if (ret_args)
                *ret_args = i;
        return OPTIONS_RUN;
}

const char *options_log_level(struct str value, enum log_level *ret)
{
        int v = log_level_from_string(value);

        if (v < 0)
                return "not a level; try debug, info, warn or error";
        *ret = (enum log_level) v;
        return NULL;
}

const char *options_log_format(struct str value, enum log_format *ret)
{
        int v = log_format_from_string(value);

        if (v < 0)
                return "not a format; try logfmt or json";
        *ret = (enum log_format) v;
        return NULL;
}
