/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_OPTIONS_H
#define HUTCH_BASE_OPTIONS_H

/*
 * Command lines by tables: what parses an option is also what --help prints.
 *
 *         static const struct option options[] = {
 *                 { "listen", "ADDRESS", "where to serve (default 127.0.0.1:8080)", set_listen },
 *                 { "access-log", NULL, "log a line for each request", set_access_log },
 *         };
 *
 * An option is "--name", "--name value" or "--name=value". --help and --version are there without
 * being asked for. Nothing is printed here: the text comes back to main, which knows where it goes.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/str.h"

/* Returns what is wrong with the value, or NULL. The value lives as long as argv. */
typedef const char *option_fn(void *target, struct str value);

struct option {
        const char *name;
        const char *value; /* NULL: takes none */
        const char *help;  /* may be several lines */
        option_fn *set;
};

struct option_table {
        const char *program;
        const char *usage;   /* what follows the program's name: "[OPTION]..." */
        const char *summary; /* one sentence */
        const char *manual;  /* "hutchd(8)" */
        const struct option *options;
        size_t n;
        bool takes_args; /* words behind "--" belong to another program */
};

enum options_result {
        OPTIONS_RUN,
        OPTIONS_EXIT_OK,    /* help or version: the text is for standard output */
        OPTIONS_EXIT_USAGE, /* a complaint: the text is for standard error */
};

/* *ret_rest is the index of the first word behind "--", or argc; it may be NULL. */
enum options_result options_parse(const struct option_table *t, int argc, char **argv, void *target,
                                  int *ret_rest, struct buf *text);

/* Values that every program takes; both return what is wrong, or NULL. */
const char *options_log_level(struct str value, enum log_level *ret);
const char *options_log_format(struct str value, enum log_format *ret);

#endif
