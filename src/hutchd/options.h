/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_OPTIONS_H
#define HUTCH_HUTCHD_OPTIONS_H

/* The command line of hutchd. Help is made from the same table that parses. */

#include "base/log.h"
#include "base/options.h"
#include "os/socket.h"

#define LISTEN_MAX 8

struct options {
        struct sock_addr listen[LISTEN_MAX];
        size_t n_listen;
        enum log_level log_level;
        enum log_format log_format;
        uint64_t max_connections; /* 0: the server's default */
        usec_t drain_timeout;
        bool access_log;
};

/* The text is for people, see base/options.h. */
enum options_result hutchd_options_parse(int argc, char **argv, struct options *ret,
                                         struct buf *text);

#endif
