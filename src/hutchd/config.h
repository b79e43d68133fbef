/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_H
#define HUTCH_HUTCHD_CONFIG_H

/*
 * What hutchd was told: by its configuration file, by its command line, by its environment, and by
 * nobody (defaults); a later one of these gives way to an earlier one only where it says nothing.
 *
 *         defaults  <  FILE (hutchd.yaml(5))  <  command line (hutchd(8))
 *
 * A configuration is made once and is never changed: a reload makes another one. Everything that it
 * points to is its own, and no key is in it, only digests of keys.
 *
 * The file is YAML, one document, at most CONFIG_FILE_MAX bytes; an empty one is fine. The way in:
 *
 *         text ─ libyaml ─► nodes with their lines      (config_where.h: form, and where things are)
 *              └ libcyaml ─► struct config_raw, texts   (config_schema.h: which keys there are)
 *                               └ rules ─► struct config (config_rules.h: what the values mean)
 *
 * libcyaml gives every value as text: its own idea of numbers and truth values is more generous than
 * one wants to be about a file that opens doors ("insecure: nope" would be true).
 *
 * Errors name file, line and key, and say what is expected:
 *
 *         /etc/hutch/hutchd.yaml:7: keys[1].role: "boss": expected read, user or admin
 *
 * A value of a secret is never in an error. A file that holds keys in plain text, and that others
 * than its owner may read, is refused; and so is one that everybody may write: who writes it can make
 * himself an administrator.
 */

#include "api/access/bridge.h"
#include "api/purista/purista.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "driver/engine/engine.h"
#include "hutchd/options.h"
#include "os/socket.h"
#include "registry/keyring.h"
#include "service/service.h"

#define CONFIG_FILE_MAX      (1 * MiB)
#define CONFIG_ARENA_MAX     (8 * MiB)
#define CONFIG_DRIVERS_MAX   DRIVERS_MAX
#define CONFIG_KEYS_MAX      4096
#define CONFIG_TENANTS_MAX   4096
#define CONFIG_HOST_DIRS_MAX 64
#define CONFIG_BRIDGES_MAX   64
#define API_KEY_MIN          16 /* characters: a shorter one can be guessed */
#define API_KEY_MAX          512
#define API_KEY_VAR          "HUTCH_API_KEY"

enum config_store {
        CONFIG_STORE_SQLITE, /* a file in the data folder */
        CONFIG_STORE_REDIS,
        CONFIG_STORE_NATS,
};

struct config {
        /* --- where --- */
        struct sock_addr listen[LISTEN_MAX];
        size_t n_listen;
        const char *data;
        struct str node;           /* null view: the installation's id */
        struct str public_address; /* null view: that of the request */
        struct str preview_domain; /* null view: none */

        /* --- where it is kept --- */
        struct {
                enum config_store kind;
                struct sock_addr address;
                struct str user;           /* null view: the default one, or nobody */
                const char *password_file; /* NULL: no password */
                unsigned database;
                usec_t wait; /* of a request, for a server that is away */

                /* Of NATS; files that are not named are NULL. */
                const char *urls, *bucket;
                unsigned replicas;
                const char *token_file, *credentials_file, *ca_file, *cert_file, *key_file;
        } store;

        /* --- who else is on it --- */
        struct {
                const char *advertise; /* where other nodes reach this one; NULL: there are none */
                const char *key_file;
                usec_t lease, grace;
        } cluster;

        /* --- what makes sandboxes --- */
        const char *drivers[CONFIG_DRIVERS_MAX]; /* the first is the default */
        size_t n_drivers;
        const char *agent; /* path of hutch-execd */
        const char *user;  /* to become; NULL: not said */
        struct {
                const char *network; /* of sandboxes that name none */
                bool has_private;    /* whether there is another network than none */

                /* As hutch-warden(8) takes them; NULL: its own defaults. */
                const char *uids, *seeds, *networks, *subnet4, *subnet6, *dns;
        } native;
        struct json_strs host_folders;
        struct engine_config engines[ENGINE_KIND_MAX_];

        /* --- who may, and how much --- */
        bool insecure;
        struct api_key *keys;
        size_t n_keys;
        struct service_limits quotas;
        unsigned requests_max;    /* 0: no limit */
        unsigned connections_max; /* 0: the server's default */
        usec_t timeout_max;       /* of a sandbox; 0: the model's */

        /* --- PURISTA --- */
        struct purista_config purista;
        struct api_bridge *bridges;
        size_t n_bridges;

        /* --- times --- */
        usec_t create_wait, tombstone, reconcile, drain_timeout;

        /* --- what is written about it --- */
        enum log_level log_level;
        enum log_format log_format;
        bool access_log;
        bool audit;             /* whether there is an audit log */
        const char *audit_file; /* NULL: in the data folder */

        struct arena memory; /* everything above points into it */
};

/* Reads o->config (if given), applies the rest of the options, and fills in what is left. The key
 * of the environment (config_take_env) is one more key; NULL: there is none. The error has the
 * complete story. */
int config_load(const struct options *o, const struct api_key *env, struct config **ret,
                struct err *e) must_check;

void config_free(struct config *c);
void config_freep(struct config **c);

/* The same from bytes; `name` is what errors call the file. For tests. */
int config_parse(struct str text, const char *name, struct config **ret, struct err *e) must_check;

/* Takes HUTCH_API_KEY out of the environment, wipes it there, and makes an admin's key of it: 1, or
 * 0 if there is none, or ERR_INVALID if it is none that one would want. Its views are constants. */
int config_take_env(struct api_key *ret, struct err *e) must_check;

/* Whether a driver of that name is to be opened. */
bool config_has_driver(const struct config *c, const char *name);

/* The path of a program of ours that nobody types: beside this one in a build folder, or where it is
 * installed. NULL if there is no room. */
const char *config_program(struct config *c, const char *name);

/* Whether everybody who can connect to it is on this machine. */
bool config_address_is_local(const struct sock_addr *a);
bool config_is_local(const struct config *c); /* all of its addresses */

#endif
