/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_NATIVE_IMPL_H
#define HUTCH_DRIVER_NATIVE_IMPL_H

/*
 * The inside of the driver "native". It has no privileges: every call is a request to hutch-warden
 * (plan/protocol.h).
 *
 *         native.c         calls that are one request; events; life cycle
 *         native_link.c    requests, replies and events over the warden's socket
 *         native_create.c  create: a request, then the first ping of the agent
 *         native_scan.c    all sandboxes, page by page: for scan, and after a restart of the warden
 *         native_spec.c    a record and a create request as a spec
 *         native_probe.c   what the host has and lacks
 */

#include "base/base.h"
#include "base/map.h"
#include "driver/agent.h"
#include "driver/driver_impl.h"
#include "net/worker.h"
#include "plan/protocol.h"

struct native;

/* --- requests to the warden --- */

/* Descriptors that the receiver takes are set to -EBADF; the others are closed. */
struct native_reply {
        int result; /* negative: failed, `text` says why */
        const char *text;
        const struct warden_reply *msg; /* NULL: the warden did not reply */
        int *fds;
};

struct native_request;
typedef void native_replied_fn(struct native_request *q, const struct native_reply *r);

struct native_request {
        const char *id;   /* of the sandbox; valid until the reply */
        struct str spec;  /* create; valid until the reply */
        int record;       /* create: a descriptor of the caller's */
        bool interrupted; /* result: a warden had it, and ended */

        enum warden_msg _call;
        native_replied_fn *_replied;
        struct worker_request _request;
        struct native *_native;
        usec_t _repeat_until; /* a request that ends every warden is not repeated for ever */
};

/* `replied` is called once, from the loop; the memory may be reused then. worker_request_end(&q->_request): there
 * will be no reply. All calls but create are safe to repeat: the next warden gets them if this one ends. */
void native_send(struct native *n, struct native_request *q, enum warden_msg call,
                 native_replied_fn *replied);

/* A call of the driver that is requests about one sandbox, or about those after an id (scan). */
struct native_call {
        struct native_request request;
        struct native *n;
        struct driver_req *req;
        char id[PLAN_NAME_MAX + 1];
};

#define NATIVE_CALL(q) container_of(q, struct native_call, request)

/* Drops the request if it is pending, and finishes the call. */
void native__call_end(struct native_call *x, int result);

/* Takes the socket. When it is closed, so is the driver. */
int native_link_open(struct native *n, int fd) must_check;

/* --- the driver --- */

/* A sandbox whose agent's socket is open, so that connecting to it needs no request. */
struct native_instance {
        struct map_node by_id;
        struct list node;
        int socket; /* O_PATH */
        char id[SANDBOX_ID_MAX + 1];
};

struct native {
        struct driver driver; /* first */
        const struct log_ctx *log;
        struct worker warden;
        uint64_t hello_id; /* of the last hello */
        bool had_hello;    /* a warden has replied to one before */
        struct net_task rescan_task;
        struct native_request rescan; /* see native_scan.c */
        char rescan_after[PLAN_NAME_MAX + 1];
        struct map instances;
        struct list instance_list;
        size_t instances_max;
        struct map creates; /* under way: if one of these exits, its create fails; no event */
        enum plan_network network; /* if a create request names none */
};

static inline struct native *native_of(struct driver *d)
{
        return container_of(d, struct native, driver);
}

/* Takes the socket, in the place of the one that was there before. */
void native_instance_add(struct native *n, struct str id, int socket);
void native_instance_remove(struct native *n, struct str id);

/* Connects to a socket by its descriptor; a local socket never returns -EINPROGRESS. */
int native_connect(int socket, int *ret_fd) must_check;

#define NATIVE_TEXT_MAX 160

/* The message points to `text`. */
struct driver_health native_health(const struct instance_status *s,
                                   char text[static NATIVE_TEXT_MAX]);

/* Sets req->err from a reply that failed. */
int native_fail(struct driver_req *req, const struct native_reply *r);

/* The spec points into the arena, and holds secrets. */
int native_spec(const struct driver_create *c, enum plan_network network, struct arena *a,
                struct plan_spec *ret, struct err *e) must_check;

void native__create(struct driver *driver, struct driver_req *req);
void native__cancel_create(struct driver_req *req);

/* The reply to a scan: adds a page, and requests the next one or ends the call. */
void native__scan_page(struct native_request *q, const struct native_reply *r);
void native__probe(struct driver *driver, struct driver_req *req);

/* Reports sandboxes that exited while there was no warden. */
void native__rescan(struct net_task *t);
void native__event(struct native *n, const struct warden_event *event);

#endif
