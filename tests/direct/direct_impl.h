/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_DIRECT_IMPL_H
#define HUTCH_TESTS_DIRECT_IMPL_H

/* The inside of the driver "direct". */

#include "base/base.h"
#include "base/id.h"
#include "base/map.h"
#include "driver/agent.h"
#include "driver/driver_impl.h"
#include "os/walk.h"

struct instance;
struct removal;

struct direct {
        struct driver driver;
        struct agents *agents;
        const struct log_ctx *log;
        char *agent; /* path of hutch-execd */
        char *path;  /* <directory>/<installation> */
        int dir;     /* the same */
        struct ids ids;
        struct map instances;
        struct list all_instances;
        struct list removals;
        size_t open; /* handles that must close before the memory goes */
        bool closing;
};

static inline struct direct *direct_of(struct driver *d)
{
        return container_of(d, struct direct, driver);
}

/* --- a supervisor that is alive --- */

struct instance {
        struct map_node by_id;
        struct list node;
        struct direct *d;
        pid_t pid;
        int pidfd;
        uv_poll_t poll;
        bool quiet;                        /* being created or destroyed: its end is no event */
        void (*ended)(struct instance *b); /* or NULL */
        void *ended_data;
        char id[SANDBOX_ID_MAX + 1];
};

/* Takes the pidfd. */
int instance_watch(struct direct *d, struct str id, pid_t pid, int pidfd, struct instance **ret)
        must_check;
void instance_forget(struct instance *b);
struct instance *instance_get(struct direct *d, struct str id);

/* The instance of a sandbox that was found in the directory: 1 if its supervisor lives, 0 if not; then *ret_lock
 * (may be NULL) keeps one from coming. */
int instance_adopt(struct direct *d, struct str id, struct instance **ret, int *ret_lock)
        must_check;

/* --- its directory; paths relative to it --- */

/* O_PATH. -ENOENT if there is no such sandbox. */
int dir_open(const struct direct *d, struct str id, int *ret) must_check;

/* Complete, with its record, and nothing running. */
int dir_make(struct direct *d, const struct sandbox *record, struct err *e) must_check;

/* Its content; -EFBIG if it is longer than the buffer's maximum. */
int dir_read(const struct direct *d, struct str id, const char *name, struct buf *b) must_check;

/* A connection to its agent. */
int dir_connect(const struct direct *d, struct str id, int *ret) must_check;

/* How a sandbox whose supervisor does not live has ended. */
struct driver_health dir_health(const struct direct *d, struct str id, char message[static 128]);

/* The pid of its agent, or 0. */
pid_t dir_agent(const struct direct *d, struct str id);

/* --- starting and ending --- */

int supervisor_start(struct direct *d, const struct sandbox *record,
                     const struct create_request *request, struct instance **ret, struct err *e)
        must_check;

/* Ends whatever runs and removes the directory. */
struct teardown {
        struct direct *d;
        char id[SANDBOX_ID_MAX + 1];
        int lock;
        void (*done)(struct teardown *t, int r); /* from the loop, or from inside the start */
};

void teardown_start(struct teardown *t, struct direct *d, struct str id,
                    void (*done)(struct teardown *t, int r));

/* Removes an entry of the driver's directory, a slice a turn. `done` may be NULL. */
void removal_start(struct direct *d, const char *name, void (*done)(void *data, int r), void *data);
void removals_stop(struct direct *d);

/* --- for the files of the calls --- */

void direct__create(struct driver *driver, struct driver_req *req);
void direct__cancel_create(struct driver_req *req);
void direct__close_go_on(struct direct *d);

#endif
