/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETNS_POOL_H
#define HUTCH_WARDEN_NETNS_POOL_H

/*
 * Pre-created network namespaces.
 *
 * Making one takes milliseconds, entering one microseconds, and destroying one blocks the making of
 * others. So namespaces are made when there is nothing else to do, handed out at once, and collected when
 * they come back, to be closed many at a time:
 *
 *         netns_pool_open, netns_pool_adopt … , netns_pool_start     at the start of the warden
 *         netns_pool_step                                            when idle, until it returns 0
 *         netns_pool_take … netns_pool_return                        for a sandbox
 *
 * Two kinds. NONE has its loopback and nothing else. PRIVATE also has a link to the host, called eth0
 * inside, with an IPv4 and an IPv6 address and default routes; warden/netrules.h decides what gets
 * through. In both, any user may listen on ports below 1024 and send echo requests. Both belong to the
 * host's user namespace.
 *
 * "The host" is the network namespace of the caller of netns_pool_open. Everything in it carries the
 * names of warden/addr_plan.h, so that nothing a crash leaves behind is missed by the next start.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "warden/netrules.h"
#include "warden/addr_plan.h"

struct netns_pool;

enum netns_kind { NETNS_KIND_NONE, NETNS_KIND_PRIVATE, NETNS_KINDS };

struct netns_pool_config {
        struct addr_plan addrs;
        unsigned depth[NETNS_KINDS]; /* to keep ready; 0: the kind is not used */
        unsigned none_max;           /* of NONE, in use and ready; of PRIVATE: addrs.capacity */
        unsigned close_batch;        /* if so many were returned, close them before making new ones;
                                * at most NETRULES_CHANGE_MAX */
        const struct netrules_service *services; /* copied */
        size_t n_services;
};

#define NETNS_POOL_DEPTH_DEFAULT    128
#define NETNS_POOL_NONE_MAX_DEFAULT 32768
#define NETNS_POOL_BATCH_DEFAULT    32 /* the kernel is busy with them for 30 ms */

/* A namespace of the pool. Kind and index identify it, also in the state of a sandbox. */
struct pooled_netns {
        enum netns_kind kind;
        uint32_t index;
        int fd; /* owned by the pool; valid until the item is returned */
};

/* --- life cycle --- */

/* Does not change the host. */
int netns_pool_open(const struct netns_pool_config *c, struct netns_pool **ret, struct err *e)
        must_check;

/* The namespace of a running sandbox, as its state says; takes the descriptor if it succeeds. -EEXIST: the
 * index is in use; -EINVAL: no such index. Before netns_pool_start. */
int netns_pool_adopt(struct netns_pool *p, const struct pooled_netns *item) must_check;

/* Removes what was not adopted, installs the packet rules and turns on forwarding; if it was off, the
 * rules forward for sandboxes only. Does nothing if the depth of PRIVATE is 0. ERR_CONFLICT: the subnets are
 * in use (warden/subnet.h). After a failure the pool only makes namespaces of NONE. */
int netns_pool_start(struct netns_pool *p, struct err *e) must_check;

/* When no sandbox is left: removes the rules, and turns forwarding off if we turned it on. -EBUSY: a
 * namespace of PRIVATE is in use. */
int netns_pool_teardown(struct netns_pool *p) must_check;

/* Closes what is not in use. Sandboxes, their links and the rules stay: they outlive the pool. */
void netns_pool_close(struct netns_pool *p);
void netns_pool_closep(struct netns_pool **p);

/* --- in the background --- */

/* One step: makes a namespace, or closes returned ones if they are many. 1: there may be more to do; 0: there
 * is not. If making one fails, the kind is not tried again before netns_pool_retry. Takes milliseconds, and
 * much longer while the kernel destroys other namespaces. */
int netns_pool_step(struct netns_pool *p) must_check;

/* Why none of the kind is made: a negative errno, or 0. */
int netns_pool_error(const struct netns_pool *p, enum netns_kind kind) must_check;
void netns_pool_retry(struct netns_pool *p);

/* Closes all returned ones, however few; for when the pool was not used for some seconds. */
int netns_pool_flush(struct netns_pool *p) must_check;

/* Deletes links of ours that have outlived their sandboxes, and returns how many. Takes tens of milliseconds if
 * there are any: for once a minute, or when netns_pool_step returns -EBUSY, that is, no index is free. */
int netns_pool_sweep(struct netns_pool *p) must_check;

/* --- for sandboxes --- */

/* -EAGAIN: none is ready; netns_pool_make makes one. */
int netns_pool_take(struct netns_pool *p, enum netns_kind kind, struct pooled_netns *ret)
        must_check;

/* Makes one, which takes milliseconds. -EBUSY: no index is free. */
int netns_pool_make(struct netns_pool *p, enum netns_kind kind) must_check;

/* When the last process of the sandbox has exited. Does nothing if it is not in use. */
void netns_pool_return(struct netns_pool *p, const struct pooled_netns *item);

/* --- queries --- */

unsigned netns_pool_n_ready(const struct netns_pool *p, enum netns_kind kind);

/* The namespace that is taken after `n` others. -ENOENT. */
int netns_pool_peek(const struct netns_pool *p, enum netns_kind kind, unsigned n,
                    struct pooled_netns *ret) must_check;
unsigned netns_pool_n_returned(const struct netns_pool *p);

#endif
