/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_SHARES_H
#define HUTCH_BRIDGE_SHARES_H

/*
 * Which commands may run: the slots of the bridge, shared by tenants.
 *
 *         joined ─► running ─► left
 *            └► waiting ─┘
 *
 * A command that runs cannot be taken back, so a tenant must leave slots free for others before they come:
 *
 * - A tenant runs at most `per_tenant` commands.
 * - The last slots, as many as one tenant may have if that leaves so many, are for tenants that run nothing yet.
 *   So a few tenants that take all they get do not keep others from running one command each.
 * - Tenants that wait take turns. The commands of a tenant start in the order in which they came.
 *
 * A command that waits can be refused. So any tenant may fill the queue, and gives up its last place when another
 * tenant needs it: whoever has most in the queue is refused, by the number of commands or by their bytes, whichever
 * limit is reached.
 *
 * A tenant is the text in the message, as hutchd takes it. Commands without one are one tenant, too. It is kept while
 * it has commands here.
 */

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct tenant;

struct shares_config {
        size_t in_flight, per_tenant;      /* commands that run: of all tenants, of one */
        size_t waiting_max, waiting_bytes; /* of all tenants */
};

struct shares {
        struct shares_config config;
        size_t n_running, n_waiting, waiting_bytes;
        struct map _tenants; /* struct tenant */
        struct list
                _waiting; /* struct tenant: those with commands that wait; the first one's turn is next */
};

enum share_state {
        SHARE_NONE,
        SHARE_JOINED, /* share_run, share_wait or share_leave leads out */
        SHARE_WAITING,
        SHARE_RUNNING,
};

/* A command's, embedded in it. Zeroed before share_join. */
struct share {
        struct list _node; /* of the tenant's commands that wait */
        struct tenant *_tenant;
        enum share_state state;
        size_t _bytes;
};

void shares_init(struct shares *s, const struct shares_config *config);

/* All have left. */
void shares_done(struct shares *s);

/* `bytes` is what the command takes while it waits. */
void share_join(struct shares *s, struct share *c, struct str tenant, size_t bytes);

/* Whether a command that has joined may run without waiting. */
bool share_may_run(const struct shares *s, const struct share *c);

/* What to refuse before this command may wait: NULL if nothing, the command itself, or one that waits. */
struct share *share_too_many(struct shares *s, struct share *c);

void share_wait(struct shares *s, struct share *c);
void share_run(struct shares *s, struct share *c);

/* Does nothing if it has not joined. */
void share_leave(struct shares *s, struct share *c);

/* The command whose turn it is to run, or NULL if none may; share_run is next. */
struct share *shares_next(struct shares *s);

/* Any that waits, or NULL. */
struct share *shares_any_waiting(const struct shares *s);

#endif
