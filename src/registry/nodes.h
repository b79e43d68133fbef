/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_NODES_H
#define HUTCH_REGISTRY_NODES_H

/*
 * The nodes that share a store: who they are, where they are reached, and which of them live.
 *
 * Each node has a record of its own (NODE_PREFIX and its id), which it writes again by compare-and-set every
 * third of its lease. What others conclude from it they conclude from its version alone:
 *
 *         LIVE     the version has changed while we looked, within the lease that it names
 *         SILENT   it has not, for as long as the lease: requests for the node are refused for now
 *         LOST     nor for the grace time after that: what the node has may be given up
 *
 * Time is counted by who looks, on his own monotonic clock, and only as long as he looks: between two looks
 * no more than a lease counts. So the clocks of nodes need not agree, a node that was stopped or cut off from
 * the store for a while does not take everybody else for dead when it wakes up, and a write that is late is no
 * sign of life from the past.
 *
 * The other side of that is the fence. A node whose own record could not be written for as long as the
 * lease serves nobody (nodes_may_serve) until it could; that is before anybody calls it silent, because it
 * counts from the beginning of the last write that took effect. One that comes back after its grace time may
 * have been called lost, and what it remembers may be wrong: it is told to end (nodes_config.ended) and learns at
 * its next start what has become of its sandboxes. Those live on meanwhile.
 *
 * An id belongs to one process at a time. Whoever finds the record of another process under his id looks at
 * it for a lease, and gives up if it changes. Only a process of the same data folder on the same boot of the same
 * machine is known to be gone, by the lock of that folder, and is followed at once.
 */

#include "base/log.h"
#include "model/limits.h"
#include "registry/registry.h"

#define NODE_ID_MAX      NAME_MAX_TEXT
#define NODE_ADDRESS_MAX 160
#define NODE_PROCESS_LEN 32

struct nodes_config {
        const struct clock *clock; /* monotonic: of leases */
        const struct log_ctx *log; /* may be NULL */
        struct str id;
        struct str address;      /* where others reach this one */
        struct str installation; /* of the data folder, which is locked */
        struct str boot_id;      /* of the kernel */
        usec_t lease;
        usec_t grace;

        /* All from the loop; may be NULL. `looked` comes with each renewal of the lease. `lost` is told of a node each time that it is seen so: the answer is
         * a registry_sweep. After `ended` nobody may be served any more. */
        void (*looked)(void *data);
        void (*lost)(void *data, struct str id);
        void (*ended)(void *data, const struct err *why);
        void *data;
};

struct nodes;

/* The store must outlive it; all views are copied. */
struct nodes *nodes_new(struct net_loop *loop, struct store *store,
                        const struct nodes_config *config) must_check;

/* After nodes_stop, or without a join. */
void nodes_free(struct nodes *ns);

/* Takes the id; from then on the lease is renewed. ERR_CONFLICT: another process has it. Other codes: the
 * store's. May take as long as a lease. */
struct nodes_join {
        struct registry_req req;
};

void nodes_join(struct nodes *ns, struct nodes_join *j);

/* No more renewals; the record stays, and says that its process has ended. `stopped` comes from the loop. */
void nodes_stop(struct nodes *ns, void (*stopped)(void *data), void *data);

/* Whether our lease holds at this moment. */
bool nodes_may_serve(const struct nodes *ns);

/* A name of this process that no other has had. */
struct str nodes_process(const struct nodes *ns);

/* --- the others --- */

enum node_status {
        NODE_UNKNOWN, /* there is no record of it: nothing is concluded from that */
        NODE_LIVE,
        NODE_SILENT,
        NODE_LOST,
};

/* By what was seen last. */
enum node_status nodes_status(const struct nodes *ns, struct str id);

/* Looks at one now. */
struct nodes_find {
        struct registry_req req;
        enum node_status status; /* results; the rest is "" if it is unknown */
        char id[NODE_ID_MAX + 1];
        char address[NODE_ADDRESS_MAX + 1];
        char process[NODE_PROCESS_LEN + 1];

        struct nodes *_nodes;
        char _key[NODE_ID_MAX + 32];
        struct store_get _get;
};

/* The id is copied. */
void nodes_find(struct nodes *ns, struct nodes_find *f, struct str id);

/* Nothing is left of a node that was lost: its record goes, unless it has come back. */
void nodes_forget(struct nodes *ns, struct str id);

#endif
