/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_REDIS_H
#define HUTCH_STORE_STORE_REDIS_H

/*
 * A store in a Redis server, which others may use at the same time: other programs, and other
 * processes of ours. Redis 6 or later, one server (with replicas, if you like), no cluster.
 *
 * Values are plain strings at their keys, as other programs write them; store/redis_scripts.h has
 * what is kept beside them, and how what others write gets its version. Scans see what was written
 * through a store, what others had written at keys of REDIS_FOREIGN_KEYS before this store connected
 * first, and what of the rest was met by a get or cas; what others write later is seen by scans once
 * it was met. Keys that the store needs itself are refused with ERR_INVALID.
 *
 * Requests on one key are sent one after the other, others together. While there is no connection
 * they wait, each at most `wait`, and then fail with ERR_UNAVAILABLE and the reason. A write whose
 * answer was lost fails with ERR_UNAVAILABLE at once and may have happened; a read is asked again.
 *
 * A write that is done was acknowledged by Redis: how durable that is, its `appendonly` and
 * `appendfsync` tell (docs/internals/store.md).
 */

#include <sys/socket.h>

#include "base/log.h"
#include "base/secret.h"
#include "store/store.h"

#define STORE_REDIS_WAIT         (5 * USEC_PER_SEC)
#define STORE_REDIS_DATABASE_MAX 1023U

/* Copied, but what it points to must stay until the store is closed. */
struct store_redis_config {
        struct sockaddr_storage address;
        socklen_t address_len;
        const char *where;             /* the address for people */
        struct str user;               /* null view: the default one */
        const struct secret *password; /* NULL: none */
        unsigned database;
        usec_t wait;
        const struct log_ctx *log; /* told when the connection goes and comes; may be NULL */
};

/* Connects later, by itself: a server that is not there is no error here. */
struct store *store_redis_open(struct net_loop *loop, const struct store_redis_config *config)
        must_check;

#endif
