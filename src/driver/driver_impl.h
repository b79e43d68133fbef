/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_DRIVER_IMPL_H
#define HUTCH_DRIVER_DRIVER_IMPL_H

/*
 * For authors of a driver. docs/internals/driver-contract.md is the long version.
 *
 * The facade (driver.c) does what all drivers would do alike: it refuses calls whose capability is missing and calls
 * after close, keeps the list of calls under way, frees results after `done`, passes cancel on, and closes the driver
 * when nothing is under way.
 *
 * A driver leads each request to driver_finish, at once or later; that is safe from inside the starting call. It fills
 * in the results before. A failed request has its err set:
 *
 *         return driver_finish(req, err_set(&req->err, ERR_UNAVAILABLE, "connect to %s", path));
 */

#include "base/base.h"
#include "driver/driver.h"

enum driver_call {
        DRIVER_CALL_CREATE,
        DRIVER_CALL_DESTROY,
        DRIVER_CALL_PAUSE,
        DRIVER_CALL_RESUME,
        DRIVER_CALL_INSPECT,
        DRIVER_CALL_SCAN,
        DRIVER_CALL_CONNECT,
        DRIVER_CALL_USAGE,
        DRIVER_CALL_PROBE,
        DRIVER_CALL_SNAPSHOT,
        DRIVER_CALL_SNAPSHOT_REMOVE,
        DRIVER_CALL_SNAPSHOTS,
        DRIVER_CALL_MAX_,
};

typedef void driver_call_fn(struct driver *d, struct driver_req *req);

struct driver_ops {
        const char *name;
        unsigned caps;

        /* By enum driver_call. NULL only where a capability says so (pause, resume, usage, snapshots). */
        driver_call_fn *calls[DRIVER_CALL_MAX_];

        /* The request is no longer needed; it must still be finished, once what it has begun is undone. NULL: nothing
         * can be stopped. */
        driver_call_fn *cancel;

        /* Nothing is under way: frees everything but the object itself, and leads to
         * driver_closed. */
        void (*close)(struct driver *d);
};

/* A driver's object begins with this, and is one piece of malloc. */
struct driver {
        const struct driver_ops *ops;
        struct net_loop *loop;
        struct driver_watcher *_watcher;
        size_t _under_way;    /* started, and `done` has not returned */
        struct list _running; /* of these, not finished by the driver */
        struct driver_close *_close;
        bool _close_begun;
        struct net_task _close_task;
};

void driver_init(struct driver *d, const struct driver_ops *ops, struct net_loop *loop);

/* For drivers that start agents, when they are opened: whether setup->agent is a program. Otherwise a missing one
 * shows only at the first create, as an agent that does not respond. */
int driver_check_agent(const struct driver_setup *setup, struct err *e) must_check;

void driver_finish(struct driver_req *req, int result);

/* Notifies the watcher, if there is one; to be called from the loop, not from inside a call of the interface. Id and
 * message are copied first: `died` may make the driver free them. */
void driver_notify_died(struct driver *d, struct str id, const struct driver_health *how);

/* The driver's memory is freed but for its object, which is freed once the last refused call is done. */
void driver_closed(struct driver *d);

/* The operation that a request is part of: DRIVER_AS(create, req)->record. */
#define DRIVER_AS(call, r) container_of(r, struct driver_##call, req)

/* The record that a request is about, or NULL (scan, probe, those of snapshots but the first). */
const struct sandbox *driver_req_record(const struct driver_req *req);

/* --- results: they live until `done` has returned, and are dropped if the request fails --- */

/* A copy of a text; the null view if there is no memory. */
struct str driver_keep(struct driver_req *req, struct str text) must_check;

/* Takes the record. */
void driver_scan_add(struct driver_scan *s, struct sandbox *record, int status);

/* The id must be valid. */
void driver_snapshots_add(struct driver_snapshots *x, struct str id);

/* A text that does not fit is left out. */
void driver_probe_add(struct driver_probe *p, const char *name, bool ok, const char *fmt, ...)
        printf_like(4, 5);

#endif
