/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_ENGINE_ENGINE_IMPL_H
#define HUTCH_DRIVER_ENGINE_ENGINE_IMPL_H

/*
 * The inside of the drivers `docker` and `podman`.
 *
 *         engine_driver.c   the calls of the driver interface
 *         engine_watch.c    which sandboxes are watched, and what the watcher is notified of
 *         engine_worker.c   the worker process (net/worker.h), its requests and replies
 */

#include "base/base.h"
#include "base/id.h"
#include "base/map.h"
#include "driver/agent.h"
#include "driver/driver_impl.h"
#include "driver/engine/engine.h"
#include "engine/protocol.h"
#include "net/worker.h"

struct engine {
        struct driver driver;
        const struct log_ctx *log;
        struct agents *agents;
        enum engine_kind kind;

        /* --- the worker --- */
        struct worker worker;
        char name[32]; /* "the worker of docker" */
        char **argv;
        struct sock_addr service; /* of a worker that a service manager starts */
        char installation[ID_HEX_LEN + 1];
        uint64_t hello; /* id of the last one */

        /* --- what is watched --- */
        struct map watched; /* struct watched */
        struct list all_watched;
        struct engine_pending *comparing; /* or NULL */
        bool compare_again;

        bool closing;
        size_t open; /* worker and agents, while they close */
};

static inline struct engine *engine_of(struct driver *d)
{
        return container_of(d, struct engine, driver);
}

/* --- requests to the worker --- */

struct engine_reply {
        int result; /* 0, or a code with `err` */
        struct err err;
        const struct engine_message *message; /* NULL: the worker is gone */
        int fd;                               /* taken by TAKE_FD, else closed */
};

struct engine_pending;

/* Any number of times before the end. */
typedef void engine_part_fn(struct engine_pending *p, const struct engine_message *m);
/* Once, from the loop; `p` is freed when it returns. */
typedef void engine_end_fn(struct engine_pending *p, struct engine_reply *r);

struct engine_pending {
        struct worker_request request;
        struct engine *engine;
        engine_part_fn *part; /* or NULL */
        engine_end_fn *end;
        void *data;
};

struct engine_pending *engine__send(struct engine *g, struct engine_request *q,
                                    engine_part_fn *part, engine_end_fn *end, void *data);

/* Asks the worker to end it early, which leads to `end`. What was not sent yet ends at once, from inside. */
void engine__cancel(struct engine_pending *p);

/* The same for calls that have nothing to undo: `end` is not called, a reply that still comes is dropped. */
void engine__drop(struct engine_pending *p);

/* --- the worker --- */

int engine__worker_open(struct engine *g, const struct driver_setup *setup,
                        const struct engine_config *config, struct err *e) must_check;
void engine__argv_free(struct engine *g);

/* One of the parts that `open` counts has closed. */
void engine__part_closed(struct engine *g);

/* --- watching --- */

void engine__watch(struct engine *g, struct str id);
void engine__unwatch(struct engine *g, struct str id);
void engine__unwatch_all(struct engine *g);
void engine__died(struct engine *g, struct str id, const struct engine_state *state);

/* Events may have been missed: scans, and notifies of what has ended. */
void engine__compare(struct engine *g);

struct driver_health engine__health(const struct engine_state *state);

#endif
