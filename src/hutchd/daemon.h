/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_DAEMON_H
#define HUTCH_HUTCHD_DAEMON_H

/*
 * hutchd as a whole: which parts there are, in which order they begin and end.
 *
 *         begin   data folder ─ store ─ registry, keyring ─ drivers ─ service        daemon_start.c
 *                    ─ lease (if others are on the store) ─ load records ─ load keys ─ adopt what runs ─ listen ─ ready
 *         end     drain the server ─ service ─ client, agents ─ drivers              daemon_stop.c
 *                    ─ lease ─ registry, keyring ─ store ─ data folder
 *
 * Nothing is answered before everything that runs has been adopted. A start that fails, at whatever
 * step, and a signal that comes meanwhile, go the same way to the end: it takes what is there and
 * skips what is not.
 *
 * Sandboxes live on. That is also why there is nothing to save at the end: `kill -9` does the same,
 * only quicker.
 */

#include "api/api.h"
#include "api/hutch/audit.h"
#include "api/api.h"
#include "base/id.h"
#include "base/log.h"
#include "hutchd/config.h"
#include "hutchd/data_dir.h"
#include "hutchd/drivers.h"
#include "hutchd/options.h"
#include "net/loop.h"
#include "os/sd_notify.h"
#include "store/store.h"

#define DAEMON_SIGNALS 3

struct daemon {
        const struct options *options;
        struct api_key env; /* of the environment; good if has_env */
        bool has_env;
        struct config *config; /* that of the start */
        struct config
                *reloaded; /* NULL: none. Of this one are keys, quotas, log level and purista */

        struct log_sink sink;
        struct log_ctx log;
        struct net_loop loop;
        struct ids ids;
        struct sd_notify notify;
        uv_signal_t signals[DAEMON_SIGNALS];

        struct data data;
        bool data_dir_open;
        char boot_id[ID_UUID_LEN + 2]; /* and the newline */
        struct store *store;
        char store_address[SOCK_ADDR_TEXT_MAX]; /* of a server */
        struct secret *store_password;
        struct nodes *nodes; /* NULL: nobody else is on the store */
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
        struct store_scan store_probe; /* whether the store is there */
        bool store_unreachable;        /* it was not, and it was said */
        struct nodes_join join;
        struct registry_load load_records;
        struct keyring_load load_keys, read_keys;
        bool reading_keys, stop_waits; /* once more, and the end waits for that */
        struct service_start adopt;
        void (*store_ready)(struct daemon *d);
        struct op *starting;   /* which of these is under way, or NULL */
        int bound[LISTEN_MAX]; /* what was taken as root, and is not listened on yet; or -EBADF */
        struct sock_addr listening[LISTEN_MAX]; /* as the kernel has them */
        size_t n_listening;
        uv_timer_t listen_timer; /* to try again: to listen, and before that to reach the store */
        unsigned listen_tries;
        bool reload_due; /* a SIGHUP came before it was ready */
        usec_t began;

        /* --- the end --- */
        bool ending;   /* nothing new is begun */
        bool stopping; /* the steps of daemon_stop.c are under way */
        unsigned step;
        struct driver_close close_driver;
        struct store_close close_store;
        int exit_code;
};

/* All of it; returns the status for exit(3), unless it becomes another program (hutchd/launch.h). */
int daemon_run(const struct options *o, char **argv);

/* Begins; failure leads to the end by itself. */
void daemon_start(struct daemon *d);

/* A step of the start that was under way is done; true if the start goes on. */
bool daemon_start_continues(struct daemon *d, int result, const struct err *e);

/* The data folder and the store. A store on a server may be away: see daemon_await_store. */
int daemon_open_store(struct daemon *d, struct err *e) must_check;

/* Calls `there` from the loop once the store answers. As long as it does not, the start waits and says
 * so: without the records nobody could tell which sandboxes there are. */
void daemon_await_store(struct daemon *d, void (*there)(struct daemon *d));

/* With other nodes on the store: who they are, and a lease of our own before anything is loaded. */
int daemon_open_cluster(struct daemon *d, struct str node, struct err *e) must_check;
void daemon_join(struct daemon *d, void (*then)(struct daemon *d));

/* --- the end --- */

/* The first time gently, the second time at once. */
void daemon_stop(struct daemon *d);

/* The step of the end that gives up the lease. */
void daemon_stop_nodes(struct daemon *d);

/* Without draining. */
void daemon_stop_steps(struct daemon *d);

/* Says why on standard error, and ends it all. */
void daemon_fail(struct daemon *d, const struct err *e);

/* --- what may change while it runs --- */

/* Keys, quotas, the section purista, log level, audit file. What is wrong is told, and changes nothing. */
void daemon_reload(struct daemon *d);

/* The parts of that, which the start needs, too. */
int daemon_apply(struct daemon *d, const struct config *c, struct err *e) must_check;
int daemon_open_audit(struct daemon *d, const struct config *c, struct err *e) must_check;

/* Whether so few keys may be on such addresses: ERR_FORBIDDEN. */
int daemon_check_keys(struct daemon *d, const struct config *c, struct err *e) must_check;

#endif
