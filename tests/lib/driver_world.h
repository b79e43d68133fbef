/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_DRIVER_WORLD_H
#define HUTCH_TESTS_LIB_DRIVER_WORLD_H

/*
 * A loop, a directory and a driver for tests, and the calls of a driver as functions that wait: they turn
 * the loop until `done` was called, return the result and leave the story in w->err.
 */

#include "driver/agent.h"
#include "driver/driver.h"

struct driver_world;

/* How a member is opened, and what can be done to its sandboxes behind its back. */
struct driver_maker {
        const char *name;

        /* A runtime of the world's own, before the first open and after the last close. NULL:
         * nothing to do. */
        void (*begin)(struct driver_world *w);
        void (*end)(struct driver_world *w);

        int (*open)(struct driver_world *w, const struct driver_setup *setup, struct driver **ret,
                    struct err *e);

        /* Ends a sandbox: RUNTIME_ENDED or RUNTIME_DEAD. */
        void (*kill)(struct driver_world *w, struct str id, int status);

        /* Makes its record unreadable. */
        void (*spoil)(struct driver_world *w, struct str id);

        const char *image; /* of its records; NULL: any will do */

        /* An entrypoint with which create fails. NULL: it never does. */
        const char *bad_entrypoint;

        unsigned many;   /* sandboxes at once that a test may ask for */
        bool real_agent; /* commands run, files are files */
};

struct driver_world {
        struct net_loop loop;
        uv_timer_t timer; /* of driver_world_turn */
        const struct driver_maker *maker;
        struct driver *driver;
        struct agents *agents;
        void *runtime; /* the maker's */
        char dir[64];
        struct err err; /* of the last call */

        struct driver_watcher watcher;
        unsigned notified; /* deaths */
        char died_id[64];
        struct driver_health died_health;
};

#define WORLD_INSTALLATION "11111111111111111111111111111111"

/* With maker NULL there is a loop and a directory only. */
void driver_world_open(struct driver_world *w, const struct driver_maker *maker);
void driver_world_close(struct driver_world *w);

struct driver *driver_world_open_as(struct driver_world *w, const char *installation);
void driver_world_close_driver(struct driver_world *w, struct driver *d);

/* As hutchd does it: closed, opened anew, watched; scan is the test's. */
void driver_world_restart(struct driver_world *w);

/* Turns the loop until it is so, and fails after too long. */
#define driver_world_until(w, condition)                 \
        do {                                             \
                usec_t until_ = driver_world_deadline(); \
                while (!(condition))                     \
                        driver_world_turn((w), until_);  \
        } while (0)

usec_t driver_world_deadline(void);
void driver_world_turn(struct driver_world *w, usec_t until);

/* --- records --- */

/* A record that is complete, with this id; its entrypoint goes on until SIGTERM and ends with 0 then, from
 * the moment on when there is a file ".ready" in its working directory: an agent answers before that. */
struct sandbox *driver_world_record(const char *id);

/* --- calls that wait --- */

int driver_world_create(struct driver_world *w, const struct sandbox *record);
int driver_world_destroy(struct driver_world *w, const struct sandbox *record);
int driver_world_pause(struct driver_world *w, const struct sandbox *record);
int driver_world_resume(struct driver_world *w, const struct sandbox *record);

int driver_world_snapshot(struct driver_world *w, const struct sandbox *record, const char *id);
int driver_world_snapshot_remove(struct driver_world *w, const char *id);

/* All that there are: "a b", in order. */
int driver_world_snapshots(struct driver_world *w, char *ret, size_t size);

/* enum runtime_status, or a negative code. */
int driver_world_status(struct driver_world *w, const struct sandbox *record);

/* *ret_fd may be NULL: it is closed. */
int driver_world_connect(struct driver_world *w, const struct sandbox *record, int *ret_fd);

/* What scan has found: "a:running b:dead" in the order of ids; `skipped` may be NULL. */
int driver_world_scan(struct driver_world *w, char *ret, size_t size, size_t *skipped);

int driver_world_ping(struct driver_world *w, const struct sandbox *record);
int driver_world_ping_within(struct driver_world *w, const struct sandbox *record, usec_t timeout);

/* How many this process has open. */
int driver_world_descriptors(void);

/* The codes, for comparing. */
#define CODE(name) ERR_RETURN(ERR_##name)

#endif
