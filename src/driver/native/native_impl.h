/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_NATIVE_IMPL_H
#define HUTCH_DRIVER_NATIVE_IMPL_H

/*
 * The inside of the driver "native", which makes nothing itself: it asks hutch-warden (plan/protocol.h).
 *
 *         native.c        the calls that are one question, life cycle
 *         native_link.c   the socket to the warden: questions, answers, news, a warden that comes anew
 *         native_make.c   create: a question, then the agent's first answer
 *         native_scan.c   all sandboxes, page by page; for scan, and after the warden's restart
 *         native_spec.c   what a record and a request mean as a spec, or why they can't
 *         native_probe.c  what the machine has and lacks
 */

#include "base/base.h"
#include "base/map.h"
#include "driver/agent.h"
#include "driver/driver_impl.h"
#include "net/timeout.h"
#include "plan/protocol.h"

struct native;

/* --- a question --- */

/* An answer, or its want: then result is negative and `text` says why. Descriptors that somebody takes
 * are set to -EBADF, the others are closed. */
struct native_reply {
        int result;
        const char *text;
        const struct warden_reply *wire; /* NULL if none came */
        int *fds;
};

struct native_request;
typedef void native_replied_fn(struct native_request *q, const struct native_reply *a);

struct native_request {
        /* The asker's: */
        enum warden_msg call;
        const char *id;             /* stays until it is replied */
        struct str spec;            /* create; the same */
        int record;                 /* create: a descriptor, the asker's; else -EBADF */
        bool again;                 /* may be asked twice: of the next warden, if this one ends */
        bool interrupted;           /* of a warden that has ended */
        native_replied_fn *replied; /* from the loop, once; the memory is free to use then */

        struct list _node; /* of link->waiting or link->sent */
        struct map_node _by_request_id;
        uint64_t _request_id;
        struct timeout _timeout;
        struct native *_native;
};

void native_request(struct native *n, struct native_request *q);

/* It will not be replied. Nothing happens to one that is not under way. */
void native_request_drop(struct native_request *q);

bool native_request_pending(const struct native_request *q);
bool native_request_sent(const struct native_request *q); /* a warden may be at it */

/* --- the socket --- */

struct native_link {
        int fd;
        uv_poll_t poll;
        int events; /* that are watched */
        bool ready; /* the warden has replied our hello */
        bool hello_due;
        bool again; /* there was another warden before */
        bool broken;
        uint64_t hello;      /* request_id of the last one */
        uint64_t request_id; /* the last that was given */
        struct list waiting, sent;
        struct map by_request_id;
        struct net_task flush, rescan;
        struct timeout_kind timeouts;
        char *room;     /* of WARDEN_MSG_MAX + 1 */
        struct err why; /* it can't be used, if it is broken */
};

int native_link_open(struct native *n, int fd) must_check; /* takes it */
void native_link_close(struct native *n);                  /* leads to native__handle_closed */

/* --- sandboxes whose agent's socket is at hand --- */

struct native_instance {
        struct map_node by_id;
        struct list node;
        int socket; /* O_PATH */
        char id[SANDBOX_ID_MAX + 1];
};

struct native {
        struct driver driver; /* first */
        const struct log_ctx *log;
        struct agents *agents;
        struct native_link link;
        struct map instances;
        struct list instance_list;
        struct map creates; /* creates under way: their ends are no news */
        size_t instances_max;
        enum plan_network network;  /* of who names none */
        struct native_request look; /* see native_scan.c */
        char rescan_after[PLAN_NAME_MAX + 1];
        size_t open; /* handles that must close before the memory goes */
};

static inline struct native *native_of(struct driver *d)
{
        return container_of(d, struct native, driver);
}

struct native_instance *native_instance_get(const struct native *n, struct str id);

/* Takes the socket; the box that was there before is gone. */
void native_instance_add(struct native *n, struct str id, int socket);
void native_instance_remove(struct native *n, struct str id);

/* -EINPROGRESS is none of its results: a socket of this machine is connected or not. */
int native_connect(int socket, int *ret_fd) must_check;

/* --- in words --- */

#define NATIVE_TEXT_MAX 160

/* Text of a health; the message points to it. */
struct driver_health native_health(const struct instance_status *s,
                                   char text[static NATIVE_TEXT_MAX]);

/* Sets req->err from an answer that failed. */
int native_fail(struct driver_req *req, const struct native_reply *a);

/* --- what is wished --- */

/* The spec points into the arena, and holds secrets. */
int native_spec(const struct driver_create *c, enum plan_network network, struct arena *a,
                struct plan_spec *ret, struct err *e) must_check;

/* --- for the files of the calls --- */

void native__create(struct driver *driver, struct driver_req *req);
void native__cancel_create(struct driver_req *req);

/* Whether a sandbox that has ended is still being made: then its create fails, and that is all. */
bool native__exited_in_create(struct native *n, struct str id);
void native__scan(struct driver *driver, struct driver_req *req);
void native__cancel_scan(struct driver_req *req);
void native__probe(struct driver *driver, struct driver_req *req);

/* What has ended while there was no warden is told. */
void native__rescan(struct native *n);
void native__event(struct native *n, const struct warden_event *news);
void native__handle_closed(struct native *n);

#endif
