/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_ENGINE_IMPL_H
#define HUTCH_DRIVER_ENGINE_IMPL_H

/*
 * The inside of the drivers `docker` and `podman`.
 *
 *         engine_driver.c   the calls of the interface, and what is made of answers
 *         engine_watch.c    which sandboxes are watched, and what is told of them
 *         engine_worker.c   the process: started, greeted, started anew
 *
 * A call is a `struct asking` with a request_id from the moment it is sent until it is answered or given
 * up. What is given up (canceled) is forgotten at once where nothing has to be undone; its answer, which
 * may bring a descriptor, is dropped when it comes.
 */

#include "base/base.h"
#include "base/id.h"
#include "base/map.h"
#include "driver/agent.h"
#include "driver/driver_impl.h"
#include "driver/engine/engine.h"
#include "net/channel.h"
#include "engine/protocol.h"
#include "os/socket.h"

struct engine {
        struct driver driver;
        const struct log_ctx *log;
        struct agents *agents;
        enum engine_kind kind;

        /* --- the worker --- */
        char **argv;
        pid_t pid; /* 0: there is none */
        int pidfd;
        uv_poll_t exit_poll;
        uv_timer_t timer; /* to the next start; to the end of our patience when closing */
        unsigned wait_ms;
        bool is_service; /* started by somebody else; we connect */
        struct sock_addr service;
        char installation[ID_HEX_LEN + 1];
        struct channel channel;
        bool channel_open; /* not closed yet */
        bool talking;      /* what is sent is received */
        struct err down;   /* why there is none, or none that talks */

        /* --- what was asked --- */
        int64_t last_request_id;
        struct list asked; /* struct asking */

        /* --- what is watched --- */
        struct map watched; /* struct watched */
        struct list all_watched;
        bool comparing, compare_again;

        bool closing;
        size_t open; /* handles */
};

static inline struct engine *engine_of(struct driver *d)
{
        return container_of(d, struct engine, driver);
}

/* --- asking the worker --- */

struct asking;

struct asking_ops {
        /* Any number of times before the end. */
        void (*part)(struct asking *a, const struct engine_message *m);
        /* Once: the answer, or NULL with e if there will be none. The descriptor is taken. The asking is
         * freed when it returns. */
        void (*end)(struct asking *a, const struct engine_message *m, int fd, const struct err *e);
};

struct asking {
        struct list node;
        struct engine *engine;
        const struct asking_ops *ops;
        int64_t request_id;
        int call;
        void *data; /* the driver's request, or what ops need */
};

/* Sends it; `end` never comes from inside, not even if there is no worker. */
struct asking *engine__ask(struct engine *g, struct engine_request *q, const struct asking_ops *ops,
                           void *data);

/* `end` does not come. */
void engine__forget(struct asking *a);

/* It is to come to its end. */
void engine__ask_cancel(struct asking *a);

/* ERR_… of an answer that is a failure, with its words; 0 of a good one. */
int engine__result(const struct engine_message *m, const struct err *none, struct err *ret);

/* --- the worker --- */

int engine__worker_open(struct engine *g, const struct driver_setup *setup,
                        const struct engine_config *config, struct err *e) must_check;
void engine__worker_close(struct engine *g);
void engine__close_go_on(struct engine *g);

/* --- watching --- */

void engine__watch(struct engine *g, struct str id);
void engine__unwatch(struct engine *g, struct str id);
void engine__unwatch_all(struct engine *g);
void engine__died(struct engine *g, struct str id, const struct engine_state *state);

/* News may have been missed: asks for all, and tells what has ended. */
void engine__compare(struct engine *g);

struct driver_health engine__health(const struct engine_state *state);

#endif
