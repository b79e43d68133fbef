/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_OPTIONS_H
#define HUTCH_BASE_OPTIONS_H

/*
 * Command lines by tables: one table parses the options and prints --help.
 *
 *         static const struct option options[] = {
 *                 { "listen", "ADDRESS", "where to serve (default 127.0.0.1:8080)", set_listen },
 *                 { "access-log", NULL, "log a line for each request", set_access_log },
 *         };
 *
 * An option is "--name", "--name value" or "--name=value". --help and --version are built in. Nothing
 * is printed here: main gets the text and prints it.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/str.h"

/* Returns an error message, or NULL. The value lives as long as argv. */
typedef const char *option_fn(void *target, struct str value);

struct option {
        const char *name;
        const char *value; /* NULL: takes no value */
        const char *help;  /* may be several lines */
        option_fn *set;
};

struct option_table {
        const char *program;
        const char *usage;   /* after the program's name: "[OPTION]..." */
        const char *summary; /* one sentence */
        const char *manual;  /* "hutchd(8)" */
        const struct option *options;
        size_t n;
        bool takes_args; /* words after "--" are arguments for another program */
};

enum options_result {
        OPTIONS_RUN,
        OPTIONS_EXIT_OK,    /* help or version: the text is for standard output */
        OPTIONS_EXIT_USAGE, /* usage error: the text is for standard error */
};

/* *ret_args is the index of the first word after "--", or argc; it may be NULL. */
enum options_result options_parse(const struct option_table *t, int argc, char **argv, void *target,
                                  int *ret_args, struct buf *text);

/* Values that every program takes; both return an error message, or NULL. */
const char *options_log_level(struct str value, enum log_level *ret);
const char *options_log_format(struct str value, enum log_format *ret);

#endif
