/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_REDIS_H
#define HUTCH_STORE_STORE_REDIS_H

/*
 * A store in a Redis server, which other programs and other hutchd may use at the same time. Redis 6 or later, one server
 * (with replicas if desired), no cluster.
 *
 * Values are plain strings at their keys; store/redis_scripts.h explains what is stored beside them, and how values of other
 * programs get their version. Scans see what was written through a store, what other programs had written at keys of
 * REDIS_FOREIGN_KEYS before this store connected first, and what a get or cas has seen; later writes of other programs are
 * seen by scans once one of these has read them. Keys that the store uses itself are refused with ERR_INVALID.
 *
 * Waiting, order and lost connections: store/store_remote.h.
 *
 * A write that is done was acknowledged by Redis: its `appendonly` and `appendfsync` decide how durable that is
 * (docs/internals/store.md).
 */

#include <sys/socket.h>

#include "base/log.h"
#include "base/secret.h"
#include "store/store.h"

#define STORE_REDIS_DATABASE_MAX 1023U

/* Copied, but what it points to must stay valid until the store is closed. */
struct store_redis_config {
        struct sockaddr_storage address;
        socklen_t address_len;
        const char *where;             /* the address, for messages */
        struct str user;               /* null view: the default one */
        const struct secret *password; /* NULL: none */
        unsigned database;
        usec_t wait;
        const struct log_ctx *log; /* of the connection; may be NULL */
};

/* Connects in the background: an unreachable server is no error here. */
struct store *store_redis_open(struct net_loop *loop, const struct store_redis_config *config)
        must_check;

#endif
