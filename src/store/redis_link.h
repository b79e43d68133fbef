/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_REDIS_LINK_H
#define HUTCH_STORE_REDIS_LINK_H

/*
 * A connection to a Redis server that reconnects.
 *
 *         down ── timer ── connecting ── handshake ── ready
 *          └──────── closing ◄─────┴──────────┴─────────┘
 *
 * Handshake: AUTH, SELECT, SCRIPT LOAD of each script; and, once per struct redis_link, SCAN for keys that other programs wrote
 * before (REDIS_FOREIGN_KEYS), in batches, which are added to the index. Each step has the timeout of a request; then, as after
 * any error, the connection is closed and tried again after the delay that store/store_remote.h gives.
 *
 * Only hiredis' reader is used (store/redis_reader.h). Its event interface ends the process by assert(3) when a server sends
 * something unexpected, collects replies without bounds, and resolves names synchronously; net/stream.h does none of that.
 *
 * Commands may be sent while it is ready. Each has a struct redis_pending of the caller, whose `replied` is called exactly once:
 * with the reply, or with NULL if the connection was lost before; then it is unknown whether Redis has executed it. The process
 * must ignore SIGPIPE.
 */

#include "base/log.h"
#include "base/secret.h"
#include "net/stream.h"
#include "store/redis_reader.h"
#include "store/redis_scripts.h"
#include "store/store_remote.h"

#define REDIS_OUT_MAX      (16 * MiB)
#define REDIS_FOREIGN_KEYS "sandbox:*"
#define REDIS_FOREIGN_PAGE "500"
#define REDIS_DIGEST_LEN   40

struct redis_link;

struct redis_pending;
typedef void redis_reply_fn(struct redis_pending *a, const redisReply *reply);

struct redis_pending {
        redis_reply_fn *replied;
        struct list _node;
};

enum redis_state {
        REDIS_DOWN,
        REDIS_CONNECTING,
        REDIS_HANDSHAKE,
        REDIS_READY,
        REDIS_CLOSING,
};

struct redis_link {
        struct net_loop *loop;
        const struct store_redis_config *config; /* set by the owner, like the next two */
        struct remote *remote;
        void (*ended)(struct redis_link *l);

        enum redis_state state;
        struct str digests[REDIS_SCRIPT_MAX_];

        struct net_stream _stream;
        struct redis_reader _reader;
        struct list _expected;
        uv_timer_t _timer; /* down: the next attempt; later: the timeout of a step */
        usec_t _delay;     /* before the next attempt */
        unsigned _step;
        unsigned _n_digests;
        bool _indexed;
        bool _ending;
        char _cursor[24];
        struct redis_pending _pending;
        char _digests[REDIS_SCRIPT_MAX_][REDIS_DIGEST_LEN];
};

/* The first attempt begins at once. */
void redis_link_open(struct redis_link *l);

/* Leads to `ended`, from the loop. */
void redis_link_end(struct redis_link *l);

/* Closes the connection, passes NULL to all pending commands, and reconnects later. */
void redis_link_drop(struct redis_link *l, const char *why);

/* Ready, with room for a command of that size. */
bool redis_link_has_room(const struct redis_link *l, size_t bytes);

void redis_link_send(struct redis_link *l, struct redis_pending *a, const struct str *args,
                     size_t n);

#endif
