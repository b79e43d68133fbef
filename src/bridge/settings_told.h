/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_SETTINGS_TOLD_H
#define HUTCH_BRIDGE_SETTINGS_TOLD_H

/*
 * The settings, each once: its key in the file (the same with "-" instead of "_" is its option), what it
 * takes, and what --help says. What a value means is in settings_apply.c, as apply_<key>.
 */

#include "bridge/settings.h"

/* clang-format off */
#define SETTING_MAP(X)                                                                         \
        X(nats, "nats", "URL", "the broker: nats://HOST[:PORT] or tls://HOST[:PORT]")           \
        X(mqtt, "mqtt", "URL", "the broker: mqtt://HOST[:PORT] or mqtts://HOST[:PORT]")         \
        X(amqp, "amqp", "URL",                                                                  \
          "the broker: amqp://HOST[:PORT][/VHOST] or amqps://HOST[:PORT][/VHOST]")              \
        X(user, "user", "NAME", "who we are to the broker")                                     \
        X(password_file, "password-file", "FILE", "holds that user's password")                 \
        X(token_file, "token-file", "FILE", "NATS: holds a token instead")                      \
        X(credentials, "credentials", "FILE", "NATS: a .creds file instead")                    \
        X(ca, "ca", "FILE", "certificates that the broker's is to be signed by\n"               \
                            "(default: the system's)")                                          \
        X(cert, "cert", "FILE", "our own certificate for the broker")                           \
        X(cert_key, "cert-key", "FILE", "and its key")                                          \
        X(prefix, "prefix", "NAME", "what names on the broker begin with (default purista)")    \
        X(instance, "instance", "ID", "our instance id (default: a new one, 32 digits)")        \
        X(hutchd, "hutchd", "ADDRESS",                                                          \
          "unix:PATH or https://HOST[:PORT]\n(default unix:/run/hutch/hutchd.sock)")             \
        X(hutchd_ca, "hutchd-ca", "FILE", "certificates that hutchd's is to be signed by")      \
        X(key_file, "key-file", "FILE", "holds the bridge's API key for hutchd")                \
        X(in_flight, "in-flight", "N", "commands carried out at once (default 256)")            \
        X(waiting, "waiting", "N", "commands that may wait besides (default 4096)")             \
        X(drain_timeout, "drain-timeout", "TIME",                                               \
          "time for running commands to end on SIGTERM (default 60s)")                          \
        X(log_level, "log-level", "LEVEL", "debug, info, warn or error (default info)")         \
        X(log_format, "log-format", "FORMAT", "logfmt or json (default logfmt)")
/* clang-format on */

/* As they were told: texts. */
struct told {
#define X(id, option, value, help) char *id;
        SETTING_MAP(X)
#undef X
};

/* What a value means; returns what is wrong with it, or NULL. */
#define X(id, option, value, help) const char *apply_##id(void *settings, struct str v);
SETTING_MAP(X)
#undef X

/* Reads the file's text. Freed by told_free. */
int told_from_text(struct str text, const char *name, struct told **ret, struct err *e) must_check;
void told_free(struct told *t);

#endif
