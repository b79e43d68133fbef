/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_SETTINGS_H
#define HUTCH_BRIDGE_SETTINGS_H

/*
 * What the bridge was told, by its configuration file and its command line: the same names in both, and
 * the command line wins. Each setting exists once, in the table of settings.c.
 *
 * Secrets are told by the names of files that hold them, so that no list of processes shows them; a file
 * that others may read is refused. They are read once, at the start, and wiped at the end.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/options.h"
#include "base/secret.h"
#include "base/str.h"

struct transport_ops;

#define SETTINGS_FILE_MAX (64 * KiB)
#define SETTINGS_ROOM     (256 * KiB)
#define SECRET_FILE_MAX   (64 * KiB)

struct settings {
        /* --- the broker --- */
        const struct transport_ops *transport;
        const char *url; /* as it was given */
        const char *host, *path;
        int port;
        bool tls;
        const char *ca, *cert, *cert_key; /* files */
        const char *user;                 /* NULL: none */
        struct secret *password, *token;  /* NULL: none; their NUL is a part of them */
        const char *credentials;          /* NATS: a file of its own form */
        struct str prefix;

        /* --- hutchd --- */
        const char *hutchd_url;
        const char *hutchd_socket; /* NULL: by the URL */
        const char *hutchd_ca;
        struct secret *key; /* the same */

        /* --- how much --- */
        unsigned in_flight, waiting;
        usec_t drain_timeout;

        /* --- the rest --- */
        enum log_level log_level;
        enum log_format log_format;
        const char *instance; /* NULL: a new one */
        bool check_only;

        /* As they were told, before anything was made of them. */
        const char *config, *broker[2], *hutchd, *key_file, *password_file, *token_file;
        unsigned n_brokers;
        struct arena memory;
};

/* `text` gets what is to be printed if the program is not to run. */
enum options_result settings_parse(int argc, char **argv, struct settings **ret, struct buf *text);

void settings_free(struct settings *s);

/* The same from the text of a file and nothing else; for tests. ERR_INVALID and the like. */
int settings_from_text(struct str text, const char *name, struct settings **ret, struct err *e)
        must_check;

#endif
