/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_DRIVER_FAKE_IMPL_H
#define HUTCH_DRIVER_DRIVER_FAKE_IMPL_H

/* The inside of the fake driver.
 *
 * Entries of the world are named "<installation>/<id>", so that those of an installation are
 * neighbours in the tree. Each has at most one driver that watches it: the one that has made it or
 * has found it, by scan or inspect.
 */

#include "base/base.h"
#include "base/tree.h"
#include "driver/driver_fake.h"

struct driver_fake_world {
        struct tree sandboxes;
        struct tree snapshots; /* struct kept, named as sandboxes are */
        struct list drivers;   /* open ones */
        unsigned caps;
        unsigned held;
        unsigned delay;
        uint64_t calls[DRIVER_CALL_MAX_];
        uint64_t made; /* sandboxes, ever */
        const struct http_api *agent_api;
        void *agent_data;
};

struct fake {
        struct driver driver;
        struct driver_ops ops; /* with the caps of its world */
        struct driver_fake_world *world;
        bool owns_world;
        struct list node;
        char *prefix;           /* "<installation>/" */
        struct list waiting;    /* held or delayed */
        struct list events;     /* sandboxes whose end is to be reported */
        struct net_task notify; /* tells it */
        size_t servers;         /* of agents, that are not yet freed */
        bool closing;
};

struct entry {
        struct tree_node node;
        struct list events;
        struct fake *watched_by; /* or NULL */
        struct server *server;   /* of its agent, once there was a connection */
        struct str id;           /* in the name */
        struct str record;
        char snapshot_id[SANDBOX_ID_MAX + 1]; /* that it was made of; "": none */
        uint64_t number;
        int status;
        const char *reason;
        char *message; /* or NULL */
        char name[];
};

/* A snapshot: whose it is, and nothing else. */
struct kept {
        struct tree_node node;
        struct str id;     /* in the name */
        struct str tenant; /* behind it */
        char name[];
};

/* A call that has had no effect yet. */
struct waiting {
        struct list node;
        struct net_task task;
        struct fake *f;
        struct driver_req *req;
        unsigned turns;
        bool held;
};

/* Of one agent; lives until its last handler is through, longer than the sandbox it may be. */
struct server {
        struct http_server *http;
        struct fake *f;
        struct driver_fake_agent agent;
};

static inline struct fake *fake_of(struct driver *d)
{
        return container_of(d, struct fake, driver);
}

static inline struct entry *entry_of(struct tree_node *n)
{
        return n ? container_of(n, struct entry, node) : NULL;
}

/* "<installation>/<id>" */
#define FAKE_NAME_SIZE (NAME_MAX_TEXT + SANDBOX_ID_MAX + 2)

struct entry *fake__entry_get(const struct fake *f, struct str id);

/* Takes the memory of the text. */
struct entry *fake__entry_new(struct fake *f, const struct sandbox *record, struct str text);
void fake__entry_free(struct driver_fake_world *w, struct entry *entry);

void fake__agent_stop(struct entry *entry);

/* --- snapshots (driver_fake.c) --- */

void fake__kept_free_all(struct driver_fake_world *w);

/* "<installation>/<id>" */
struct str fake__name(char *storage, size_t size, const struct fake *f, struct str id);

/* The call has its effect now. */
void fake__go_on(struct waiting *x);

/* Tells what is in f->events. */
void fake__notify(struct net_task *t);

/* The close goes on, if nothing is in its way any more. */
void fake__close_go_on(struct fake *f);

#endif
