/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_NODES_H
#define HUTCH_REGISTRY_NODES_H

/*
 * The nodes that share a store: their ids and addresses, and which of them are live.
 *
 * Each node has a record (NODE_PREFIX and its id), which it rewrites by compare-and-set every third of its lease. Other
 * nodes draw conclusions from its version alone:
 *
 *         LIVE     the version has changed while we watched, within the lease that the record names
 *         SILENT   it has not, for the length of the lease: requests for the node are refused for now
 *         LOST     nor for the grace time after that: the sandboxes of the node may be given up
 *
 * Time is counted by the observer, on its own monotonic clock, and only while it observes: between two scans no more
 * than a lease counts. So the clocks of nodes need not agree, and a node that was stopped or cut off from the store
 * does not consider all others dead when it resumes.
 *
 * The counterpart is fencing. A node that could not write its own record for the length of the lease refuses all
 * requests (nodes_may_serve) until it can. That is before any other node considers it silent, because it counts from
 * the beginning of the last write that took effect. A node that comes back after its grace time may have been
 * considered lost, and its memory may be wrong: nodes_config.ended tells it to exit, and its next start finds out what
 * has become of its sandboxes. They keep running meanwhile.
 *
 * An id belongs to one process at a time. A process that finds the record of another one under its id watches it for a
 * lease, and gives up if it changes. Only a process with the same data directory on the same boot of the same host is
 * known to be gone, by the lock of that directory, and is replaced at once.
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
        struct str address;      /* of this node, for the others */
        struct str installation; /* of the data directory, which is locked */
        struct str boot_id;      /* of the kernel */
        usec_t lease;
        usec_t grace;

        /* All called from the loop; may be NULL. `scanned`: after each renewal of the lease. `lost`: for each lost node
         * each time it is seen; the answer is a registry_sweep. `ended`: no request may be served any more. */
        void (*scanned)(void *data);
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

/* Takes the id; from then on the lease is renewed. ERR_CONFLICT: another process has it. Other codes: the store's. May
 * take as long as a lease. */
struct nodes_join {
        struct registry_req req;
};

void nodes_join(struct nodes *ns, struct nodes_join *j);

/* No more renewals; the record stays, and says that its process has ended. `stopped` is called from the loop. */
void nodes_stop(struct nodes *ns, void (*stopped)(void *data), void *data);

/* Whether our lease is valid now. */
bool nodes_may_serve(const struct nodes *ns);

/* A unique name of this process. */
struct str nodes_process(const struct nodes *ns);

/* --- the others --- */

enum node_status {
        NODE_UNKNOWN, /* there is no record of it: nothing follows from that */
        NODE_LIVE,
        NODE_SILENT,
        NODE_LOST,
};

/* As of the last scan. */
enum node_status nodes_status(const struct nodes *ns, struct str id);

/* Reads the record of one node now. */
struct nodes_find {
        struct registry_req req;
        enum node_status status; /* results; the others are "" if it is unknown */
        char id[NODE_ID_MAX + 1];
        char address[NODE_ADDRESS_MAX + 1];
        char process[NODE_PROCESS_LEN + 1];

        struct nodes *_nodes;
        char _key[NODE_ID_MAX + 32];
        struct store_get _get;
};

/* The id is copied. */
void nodes_find(struct nodes *ns, struct nodes_find *f, struct str id);

/* Removes the record of a lost node that has no sandboxes left, unless it has come back. */
void nodes_forget(struct nodes *ns, struct str id);

#endif
