/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_SETTINGS_H
#define HUTCH_BRIDGE_SETTINGS_H

/*
 * The settings of the bridge, from its configuration file and its command line: the same names in both, and
 * the command line wins. Each setting is declared once, in the table of settings.c (config/table.h).
 *
 * Secrets are given as files, so that no list of processes shows them. A file that others may read is refused.
 * Secrets are read once, at the start, and wiped at the end.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/options.h"
#include "base/secret.h"
#include "base/str.h"

struct transport_ops;

#define SETTINGS_FILE_MAX  (64 * KiB)
#define SETTINGS_ARENA_MAX (256 * KiB)

struct settings {
        /* --- the broker --- */
        const struct transport_ops *transport;
        const char *url; /* as given */
        const char *host, *path;
        int port;
        bool tls;
        const char *ca, *cert, *cert_key; /* files */
        const char *user;                 /* NULL: none */
        const char *password_file, *token_file;
        struct secret *password, *token; /* NULL: none */
        const char *credentials;         /* NATS: a .creds file */
        struct str prefix;

        /* --- hutchd --- */
        const char *hutchd_url;
        const char *hutchd_socket; /* NULL: by the URL */
        const char *hutchd_ca;
        const char *key_file;
        struct secret *key; /* NULL: none */

        /* --- limits --- */
        unsigned in_flight, in_flight_per_tenant, waiting;
        usec_t caller_timeout; /* if the message has none; USEC_INFINITY: none */
        usec_t drain_timeout;

        /* --- logs, names --- */
        enum log_level log_level;
        enum log_format log_format;
        const char *instance; /* NULL: a new one */

        const char *config; /* the file, or NULL */
        bool check_only;
        struct arena memory;
};

/* `text` gets what is to be printed if the program is not to run. */
enum options_result settings_parse(int argc, char **argv, struct settings **ret, struct buf *text);

void settings_free(struct settings *s);

/* The same from the text of a file, for tests. */
int settings_from_text(struct str text, const char *name, struct settings **ret, struct err *e)
        must_check;

#endif
