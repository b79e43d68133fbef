/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_OPTIONS_H
#define HUTCH_HUTCHD_OPTIONS_H

/* The command line of hutchd: only what was given; hutchd/config.h has the rest. --help comes from the table that
 * parses. */

#include "base/log.h"
#include "base/options.h"
#include "os/socket.h"

#define LISTEN_MAX  8
#define DRIVERS_MAX 8

struct options {
        const char *config;   /* NULL: no file */
        bool check_config;    /* only that */
        bool print_reference; /* only that */

        struct sock_addr listen[LISTEN_MAX];
        size_t n_listen;
        const char *data;                 /* NULL: not given */
        const char *user;                 /* NULL: not given */
        int warden;                       /* socket to hutch-warden, or -EBADF */
        const char *drivers[DRIVERS_MAX]; /* the first is the default */
        size_t n_drivers;
        bool insecure;
        bool has_log_level, has_log_format, has_drain_timeout;
        enum log_level log_level;
        enum log_format log_format;
        uint64_t max_connections; /* 0: not given */
        usec_t drain_timeout;
        bool access_log;
};

/* The text is for people, see base/options.h. Strings are those of argv. */
enum options_result hutchd_options_parse(int argc, char **argv, struct options *ret,
                                         struct buf *text);

#endif
