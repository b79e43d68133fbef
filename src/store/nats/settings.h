/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_SETTINGS_H
#define HUTCH_STORE_NATS_SETTINGS_H

/* The command line of hutch-store-nats, which hutchd builds. All strings live as long as argv. */

#include "base/err.h"
#include "base/options.h"
#include "base/secret.h"

#define SETTINGS_SECRET_MAX 4096

struct nats_settings {
        struct str urls;
        const char *bucket;
        unsigned replicas;
        unsigned wait_ms;
        unsigned marker_ms; /* how long markers of removed keys are kept */
        const char *user, *password_file, *token_file, *credentials_file;
        const char *ca_file, *cert_file, *key_file;
};

enum options_result nats_settings_parse(int argc, char **argv, struct nats_settings *ret,
                                        struct buf *text);

/* The only line of a file that other users can't read, with its NUL. NULL for no path. */
int nats_settings_secret(const char *path, struct secret **ret, struct err *e) must_check;

#endif
