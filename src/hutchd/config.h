/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_H
#define HUTCH_HUTCHD_CONFIG_H

/*
 * The configuration of hutchd: defaults, then the file (hutchd.yaml(5)), then the command line (hutchd(8)); the
 * later one wins.
 *
 * The keys of the file are declared once, in config_table.c; src/config reads the file by that table and
 * reports errors with file, line and key. A configuration is built once and never changes: a reload builds
 * another one. Everything it points to is in its own arena. It holds digests of API keys, never the keys.
 *
 * A file that holds API keys in plain text and that others than its owner may read is refused, and so is a
 * file that everyone may write: its author can become an administrator.
 */

#include "api/access/access.h"
#include "api/purista/purista.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "driver/engine/engine.h"
#include "hutchd/options.h"
#include "hutchd/uid_claims.h"
#include "os/socket.h"
#include "plan/spec.h"
#include "registry/keyring.h"
#include "service/service.h"

#define CONFIG_FILE_MAX      (1 * MiB)
#define CONFIG_ARENA_MAX     (8 * MiB)
#define CONFIG_DRIVERS_MAX   DRIVERS_MAX
#define CONFIG_ROTATE_MAX    100 /* renamed files of one log */
#define CONFIG_KEYS_MAX      4096
#define CONFIG_TENANTS_MAX   4096
#define CONFIG_HOST_DIRS_MAX 64
#define CONFIG_BRIDGES_MAX   64
#define API_KEY_MIN          16 /* characters: a shorter one can be guessed */
#define API_KEY_MAX          512
#define API_KEY_VAR          "HUTCH_API_KEY"

enum config_landlock {
        CONFIG_LANDLOCK_AUTO, /* if the kernel has it */
        CONFIG_LANDLOCK_REQUIRED,
        CONFIG_LANDLOCK_OFF,
};

enum config_store {
        CONFIG_STORE_SQLITE, /* a file in the data directory */
        CONFIG_STORE_REDIS,
        CONFIG_STORE_NATS,
};

struct config {
        /* --- addresses and data --- */
        struct sock_addr listen[LISTEN_MAX];
        size_t n_listen;
        const char *data;
        const char *user; /* to become; NULL: not given */
        uint32_t own_uid; /* to become if there is neither this nor the user hutch */
        enum config_landlock landlock;
        struct str node;           /* null view: the id of the installation */
        struct str public_address; /* null view: that of the request */
        struct str preview_domain; /* null view: none */

        /* --- store --- */
        struct {
                enum config_store kind;
                struct sock_addr address;
                struct str user;           /* null view: the default user, or none */
                const char *password_file; /* NULL: no password */
                unsigned database;
                usec_t wait; /* of a request for an unreachable server */

                /* NATS only; NULL: not given. */
                const char *urls, *bucket;
                unsigned replicas;
                const char *token_file, *credentials_file, *ca_file, *cert_file, *key_file;
        } store;

        /* --- cluster --- */
        struct {
                const char *advertise; /* where other nodes reach this one; NULL: no cluster */
                const char *key_file;
                usec_t lease, grace;
        } cluster;

        /* --- drivers --- */
        const char *default_driver;              /* NULL: not given */
        const char *drivers[CONFIG_DRIVERS_MAX]; /* all of them, the default first */
        size_t n_drivers;
        const char *agent; /* path of hutch-execd */
        struct {
                enum plan_network network; /* of sandboxes that name none */
                bool has_private;          /* whether private networks are enabled */

                struct uid_range uids;   /* count 0: chosen at the first start */
                uint64_t memory_reserve; /* bytes; 0: the warden's default */

                /* Options of hutch-warden(8); NULL: its defaults. */
                const char *zygotes, *networks, *subnet4, *subnet6, *dns;
        } native;
        struct json_strs host_dirs;
        struct engine_config engines[ENGINE_KIND_MAX_];

        /* --- access, quotas, limits --- */
        bool insecure;
        struct api_key *keys;
        size_t n_keys;
        struct service_limits quotas;
        struct resource_policy resources; /* 0: see config_resources */
        unsigned requests_max;            /* 0: no limit */
        unsigned connections_max;         /* 0: the default of the server */
        struct http_caps caps;            /* 0: derived from these two */
        usec_t body_deadline;             /* of a body that is not a file transfer; 0: none */
        uint64_t body_rate_min;           /* bytes in a second; 0: none */
        usec_t timeout_max;               /* of a sandbox; 0: that of the model */

        /* --- PURISTA --- */
        struct purista_config purista;
        struct api_bridge *bridges;
        size_t n_bridges;

        /* --- times --- */
        usec_t create_wait, tombstone, reconcile, drain_timeout;

        /* --- logs --- */
        enum log_level log_level;
        enum log_format log_format;
        bool access_log;
        const char *access_file; /* NULL: standard error */
        bool audit;              /* whether there is an audit log */
        const char *audit_file;  /* NULL: in the data directory */
        uint64_t rotate_size;    /* of both files; 0: they are not rotated */
        unsigned rotate_count;

        struct arena memory; /* everything above points into it */
};

/* Reads o->config, if there is one, and applies the options of the command line. `env` is the key of the
 * environment (config_take_env), or NULL. */
int config_load(const struct options *o, const struct api_key *env, struct config **ret,
                struct err *e) must_check;

void config_free(struct config *c);
void config_freep(struct config **c);

/* The same from the text of a file, for tests; `name` is its name in errors. */
int config_parse(struct str text, const char *name, struct config **ret, struct err *e) must_check;

/* Removes HUTCH_API_KEY from the environment, wipes it there, and makes an admin key of it. Returns 1, 0 if it
 * is not set, or ERR_INVALID. The views of the key are constants. */
int config_take_env(struct api_key *ret, struct err *e) must_check;

/* The limits of sandboxes: those of the file, and what is not in it from the CPUs and the memory (bytes) of the host. */
struct resource_policy config_resources(const struct config *c, unsigned cpus, uint64_t memory);

/* Whether a driver of that name is enabled. */
bool config_has_driver(const struct config *c, const char *name);

/* The path of one of our helper programs: beside this program in a build directory, else where it is installed.
 * NULL: the arena is full. */
const char *config_program(struct config *c, const char *name);

/* Whether only processes of this host can connect to the address, or to all addresses. */
bool config_address_is_local(const struct sock_addr *a);
bool config_is_local(const struct config *c);

#endif
