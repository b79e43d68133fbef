/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETPOOL_H
#define HUTCH_WARDEN_NETPOOL_H

/*
 * Network namespaces, prepared ahead.
 *
 * To make one takes milliseconds, to enter one takes microseconds, and to take one away stops the making
 * of others meanwhile. So they are made when there is nothing else to do, handed out at once, and
 * collected when they come back, to be closed many at a time:
 *
 *         netpool_open, netpool_adopt … , netpool_start      when the warden starts
 *         netpool_step                                       when it is idle, until it returns 0
 *         netpool_take … netpool_return                      for a sandbox
 *
 * Two kinds. NONE has its loopback and nothing else. PRIVATE has a link to the machine besides, called
 * eth0 inside, with an address and a default route of IPv4 and IPv6; what goes through is
 * decided by warden/netrules.h, where the sandbox is an element by then. In both, any user may listen
 * on ports below 1024 and send echo requests. Both belong to the machine's user namespace.
 *
 * The pool keeps the descriptor of every namespace until it is closed, also of one in use:
 * otherwise the kernel would take a namespace away, alone, when its last process ends. A closed
 * one's index is used again as late as possible, and only when its link is gone: a connection
 * that still says its goodbyes holds a namespace for minutes.
 *
 * The machine is the network namespace that the caller of netpool_open is in. Everything in it
 * carries the names of warden/netscheme.h, and a crash leaves nothing that the next start does not find:
 * sandboxes that live on are adopted, all else of ours goes.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "warden/netrules.h"
#include "warden/netscheme.h"

struct netpool;

enum netpool_kind { NETPOOL_NONE, NETPOOL_PRIVATE, NETPOOL_KINDS };

struct netpool_config {
        struct netscheme scheme;
        unsigned depth[NETPOOL_KINDS]; /* how many are kept ready; 0: the kind is not used */
        unsigned none_max;             /* of kind NONE, in use and ready; of PRIVATE, the scheme's
                                        * capacity */
        unsigned close_batch;          /* so many have come back: close them before making new ones;
                                        * at most NETRULES_CHANGE_MAX */
        const struct netrules_service *services; /* copied */
        size_t n_services;
};

#define NETPOOL_DEPTH_DEFAULT    128
#define NETPOOL_NONE_MAX_DEFAULT 32768
#define NETPOOL_BATCH_DEFAULT    32 /* the kernel is busy with them for 30 ms */

/* A namespace that was taken. The index says which; a record of the sandbox keeps kind and index. */
struct netpool_item {
        enum netpool_kind kind;
        uint32_t index;
        int fd; /* the pool's: valid until the item is returned */
};

/* --- start and end --- */

/* Changes nothing on the machine. */
int netpool_open(const struct netpool_config *c, struct netpool **ret, struct err *e) must_check;

/* A sandbox that lives on, as its record says, with a descriptor of its namespace, which is the
 * pool's if this succeeds. -EEXIST if the index is in use, -EINVAL if there is no such one. Before
 * netpool_start. */
int netpool_adopt(struct netpool *p, const struct netpool_item *item) must_check;

/* Removes what nobody adopted, puts the rules in place, and makes the machine send packets on. If it
 * did not before, the rules let it do so for sandboxes only. Nothing of this without depth of PRIVATE.
 * ERR_CONFLICT if somebody else uses the subnets. Whatever fails, there will be no new ones of PRIVATE
 * then, but of NONE. */
int netpool_start(struct netpool *p, struct err *e) must_check;

/* At the very end, when no sandbox is left: takes the rules away, and the machine is a router no more
 * if we made it one. -EBUSY if one of PRIVATE is in use. */
int netpool_withdraw(struct netpool *p) must_check;

/* Closes what is not in use. Sandboxes, their links and the rules stay: they live longer than we do. */
void netpool_close(struct netpool *p);
void netpool_closep(struct netpool **p);

/* --- in the background --- */

/* One thing: makes a namespace, or closes those that came back if they are many. 1 if there may be
 * more to do, 0 if not. A negative errno if it failed; if it failed to make one, that kind is not
 * tried again until netpool_retry. Takes some milliseconds, and much longer while the kernel takes
 * other namespaces away. */
int netpool_step(struct netpool *p) must_check;

/* Why none of the kind is made: a negative errno, or 0. */
int netpool_trouble(const struct netpool *p, enum netpool_kind kind) must_check;
void netpool_retry(struct netpool *p);

/* Closes all that came back, few as they may be; for when nothing came or went for some seconds. */
int netpool_flush(struct netpool *p) must_check;

/* Links of ours that outlived their sandboxes; deletes them. Takes long, tens of milliseconds, if there
 * are any; for once a minute, or when netpool_step says -EBUSY: no index is free. Returns how many. */
int netpool_sweep(struct netpool *p) must_check;

/* --- for sandboxes --- */

/* At once; -EAGAIN if none is ready: netpool_make makes one. */
int netpool_take(struct netpool *p, enum netpool_kind kind, struct netpool_item *ret) must_check;

/* Makes one, to be ready. Milliseconds. -EBUSY if no index is free. */
int netpool_make(struct netpool *p, enum netpool_kind kind) must_check;

/* When the sandbox's last process has ended. Does nothing if it is not in use. */
void netpool_return(struct netpool *p, const struct netpool_item *item);

/* --- to look at --- */

unsigned netpool_ready(const struct netpool *p, enum netpool_kind kind);

/* The one that will be taken after `n` others, of those that are ready. -ENOENT. */
int netpool_look(const struct netpool *p, enum netpool_kind kind, unsigned n,
                 struct netpool_item *ret) must_check;
unsigned netpool_returned(const struct netpool *p);

#endif
