/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETNS_POOL_H
#define HUTCH_WARDEN_NETNS_POOL_H

/*
 * Network namespaces, prepared ahead.
 *
 * To make one takes milliseconds, to enter one takes microseconds, and to take one away stops the making
 * of others meanwhile. So they are made when there is nothing else to do, handed out at once, and
 * collected when they come back, to be closed many at a time:
 *
 *         netns_pool_open, netns_pool_adopt … , netns_pool_start      when the warden starts
 *         netns_pool_step                                       when it is idle, until it returns 0
 *         netns_pool_take … netns_pool_return                      for a sandbox
 *
 * Two kinds. NONE has its loopback and nothing else. PRIVATE has a link to the host besides, called
 * eth0 inside, with an address and a default route of IPv4 and IPv6; what goes through is
 * decided by warden/netrules.h, where the sandbox is an element by then. In both, any user may listen
 * on ports below 1024 and send echo requests. Both belong to the host's user namespace.
 *
 * The pool keeps the descriptor of every namespace until it is closed, also of one in use:
 * otherwise the kernel would take a namespace away, alone, when its last process ends. A closed
 * one's index is used again as late as possible, and only when its link is gone: a connection
 * that still says its goodbyes holds a namespace for minutes.
 *
 * The host is the network namespace that the caller of netns_pool_open is in. Everything in it
 * carries the names of warden/addr_plan.h, and a crash leaves nothing that the next start does not find:
 * sandboxes that live on are adopted, all else of ours goes.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "warden/netrules.h"
#include "warden/addr_plan.h"

struct netns_pool;

enum netns_kind { NETNS_KIND_NONE, NETNS_KIND_PRIVATE, NETNS_KINDS };

struct netns_pool_config {
        struct addr_plan addrs;
        unsigned depth[NETNS_KINDS]; /* how many are kept ready; 0: the kind is not used */
        unsigned none_max;           /* of kind NONE, in use and ready; of PRIVATE, the addrs's
                                        * capacity */
        unsigned close_batch;        /* so many have come back: close them before making new ones;
                                        * at most NETRULES_CHANGE_MAX */
        const struct netrules_service *services; /* copied */
        size_t n_services;
};

#define NETNS_POOL_DEPTH_DEFAULT    128
#define NETNS_POOL_NONE_MAX_DEFAULT 32768
#define NETNS_POOL_BATCH_DEFAULT    32 /* the kernel is busy with them for 30 ms */

/* A namespace that was taken. The index says which; a record of the sandbox keeps kind and index. */
struct pooled_netns {
        enum netns_kind kind;
        uint32_t index;
        int fd; /* the pool's: valid until the item is returned */
};

/* --- start and end --- */

/* Changes nothing on the host. */
int netns_pool_open(const struct netns_pool_config *c, struct netns_pool **ret, struct err *e)
        must_check;

/* A sandbox that lives on, as its record says, with a descriptor of its namespace, which is the
 * pool's if this succeeds. -EEXIST if the index is in use, -EINVAL if there is no such one. Before
 * netns_pool_start. */
int netns_pool_adopt(struct netns_pool *p, const struct pooled_netns *item) must_check;

/* Removes what nobody adopted, puts the rules in place, and makes the host send packets on. If it
 * did not before, the rules let it do so for sandboxes only. Nothing of this without depth of PRIVATE.
 * ERR_CONFLICT if someone else uses the subnets. Whatever fails, there will be no new ones of PRIVATE
 * then, but of NONE. */
int netns_pool_start(struct netns_pool *p, struct err *e) must_check;

/* At the very end, when no sandbox is left: takes the rules away, and the host is a router no more
 * if we made it one. -EBUSY if one of PRIVATE is in use. */
int netns_pool_teardown(struct netns_pool *p) must_check;

/* Closes what is not in use. Sandboxes, their links and the rules stay: they live longer than we do. */
void netns_pool_close(struct netns_pool *p);
void netns_pool_closep(struct netns_pool **p);

/* --- in the background --- */

/* One thing: makes a namespace, or closes those that came back if they are many. 1 if there may be
 * more to do, 0 if not. A negative errno if it failed; if it failed to make one, that kind is not
 * tried again until netns_pool_retry. Takes some milliseconds, and much longer while the kernel takes
 * other namespaces away. */
int netns_pool_step(struct netns_pool *p) must_check;

/* Why none of the kind is made: a negative errno, or 0. */
int netns_pool_error(const struct netns_pool *p, enum netns_kind kind) must_check;
void netns_pool_retry(struct netns_pool *p);

/* Closes all that came back, few as they may be; for when nothing came or went for some seconds. */
int netns_pool_flush(struct netns_pool *p) must_check;

/* Links of ours that outlived their sandboxes; deletes them. Takes long, tens of milliseconds, if there
 * are any; for once a minute, or when netns_pool_step says -EBUSY: no index is free. Returns how many. */
int netns_pool_sweep(struct netns_pool *p) must_check;

/* --- for sandboxes --- */

/* At once; -EAGAIN if none is ready: netns_pool_make makes one. */
int netns_pool_take(struct netns_pool *p, enum netns_kind kind, struct pooled_netns *ret)
        must_check;

/* Makes one, to be ready. Milliseconds. -EBUSY if no index is free. */
int netns_pool_make(struct netns_pool *p, enum netns_kind kind) must_check;

/* When the sandbox's last process has ended. Does nothing if it is not in use. */
void netns_pool_return(struct netns_pool *p, const struct pooled_netns *item);

/* --- to look at --- */

unsigned netns_pool_n_ready(const struct netns_pool *p, enum netns_kind kind);

/* The one that will be taken after `n` others, of those that are ready. -ENOENT. */
int netns_pool_peek(const struct netns_pool *p, enum netns_kind kind, unsigned n,
                    struct pooled_netns *ret) must_check;
unsigned netns_pool_n_returned(const struct netns_pool *p);

#endif
