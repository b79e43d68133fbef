/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_DAEMON_H
#define HUTCH_HUTCHD_DAEMON_H

/*
 * The daemon: its parts, and the order in which they start and end.
 *
 *         start   data directory ─ store ─ registry, keyring ─ drivers ─ service     daemon_start.c
 *                    ─ lease (in a cluster) ─ load records ─ load keys ─ adopt ─ listen ─ ready
 *         end     drain the server ─ service ─ client, agents ─ drivers              daemon_stop.c
 *                    ─ lease ─ registry, keyring ─ store ─ data directory
 *
 * daemon_start.c explains the start, daemon_stop.c the end.
 */

#include "api/api.h"
#include "api/hutch/audit.h"
#include "base/id.h"
#include "base/log.h"
#include "base/log_file.h"
#include "hutchd/config.h"
#include "hutchd/confinement.h"
#include "hutchd/data_dir.h"
#include "hutchd/drivers.h"
#include "hutchd/options.h"
#include "net/loop.h"
#include "os/sd_notify.h"
#include "store/store.h"

#define DAEMON_SIGNALS 3

struct daemon {
        const struct options *options;
        struct api_key env; /* of the environment, if has_env */
        bool has_env;
        struct config *config; /* at the start */
        struct config
                *reloaded; /* NULL: none. Has the current keys, quotas, log level and purista */

        struct log_sink sink, access_sink;
        struct log_file *access_file; /* NULL: the access log goes to sink, or there is none */
        uint64_t log_lost;
        struct log_ctx log;
        struct net_loop loop;
        struct ids ids;
        struct sd_notify notify;
        uv_signal_t signals[DAEMON_SIGNALS];

        struct data_dir data;
        bool data_dir_open;
        struct confinement confinement;
        bool confined;
        char boot_id[ID_UUID_LEN + 2]; /* and the newline */
        struct store *store;
        char store_address[SOCK_ADDR_TEXT_MAX]; /* for messages */
        struct secret *store_password;
        struct nodes *nodes; /* NULL: no cluster */
        struct secret *cluster_key;
        struct api_cluster cluster;
        struct registry *registry;
        struct keyring *keyring;
        struct agents *agents;
        struct driver *drivers[CONFIG_DRIVERS_MAX];
        size_t n_drivers;
        struct service *service;
        struct http_client *sandbox_client;
        struct http_server *server;
        struct audit *audit;
        struct api api;

        /* --- the start --- */
        struct store_scan store_probe; /* is the store reachable? */
        bool store_unreachable;        /* it was not, and the log says so */
        struct nodes_join join;
        struct registry_load load_records;
        struct keyring_load load_keys, read_keys;
        bool reading_keys, stop_waits; /* a reload of keys runs; the end waits for it */
        struct service_start adopt;
        struct op *starting;   /* the operation that runs, or NULL */
        int bound[LISTEN_MAX]; /* sockets bound as root, not listening yet; or -EBADF */
        struct sock_addr listening[LISTEN_MAX]; /* as the kernel reports them */
        size_t n_listening;
        uv_timer_t listen_timer; /* retries: first to reach the store, later to listen */
        unsigned listen_tries;
        bool reload_due; /* SIGHUP arrived before it was ready */
        usec_t began;

        /* --- the end --- */
        bool ending;   /* nothing new starts */
        bool stopping; /* the steps of daemon_stop.c run */
        unsigned step;
        struct driver_close close_driver;
        struct store_close close_store;
        int exit_code;
};

/* Runs the daemon; returns the exit status, unless it becomes hutch-launcher (hutchd/launch.h). */
int daemon_run(const struct options *o, char **argv);

/* Starts; a failure leads to the end. */
void daemon_start(struct daemon *d);

/* An operation of the start is done; true if the start continues. */
bool daemon_start_continues(struct daemon *d, int result, const struct err *e);

/* The data directory is open: nothing else is needed of other files. A warning if the kernel has no Landlock. */
int daemon_confine(struct daemon *d, struct err *e) must_check;

/* The store, in an open data directory. A store on a server may be unreachable: see daemon_await_store. */
int daemon_open_store(struct daemon *d, struct err *e) must_check;

/* Continues with daemon_join or daemon_load from the loop when the store responds. Until then the start waits, and the log says so:
 * without the records, the sandboxes are unknown. */
void daemon_await_store(struct daemon *d);

/* In a cluster: the other nodes, and a lease of our own before daemon_load. daemon_join is only for such a node. */
int daemon_open_cluster(struct daemon *d, struct str node, struct err *e) must_check;
void daemon_join(struct daemon *d);

/* Loads the records, then takes the remaining steps of the start. */
void daemon_load(struct daemon *d);

/* --- the end --- */

/* The first call drains, the second one stops at once. */
void daemon_stop(struct daemon *d);

/* The step of the end that releases the lease. */
void daemon_stop_nodes(struct daemon *d);

/* Without draining. */
void daemon_stop_steps(struct daemon *d);

/* Prints the error to standard error and stops. */
void daemon_fail(struct daemon *d, const struct err *e);

/* --- reload --- */

/* Applies keys, quotas, the section purista and log level, and opens the log files again. An invalid file changes nothing. */
void daemon_reload(struct daemon *d);

/* Also used by the start. */
int daemon_apply(struct daemon *d, const struct config *c, struct err *e) must_check;
int daemon_open_logs(struct daemon *d, const struct config *c, struct err *e) must_check;

/* ERR_FORBIDDEN if there is no key but addresses that others can reach. */
int daemon_check_keys(struct daemon *d, const struct config *c, struct err *e) must_check;

#endif
