/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIBHUTCH_SCENARIO_H
#define HUTCH_TESTS_LIBHUTCH_SCENARIO_H

/*
 * Everything that libhutch can do, done to a real server, as a program that knows only its header.
 *
 * Each part is a table of steps, which are test points. A step ends at the first check that fails. What
 * a server may lack is said by `needs`: a step is skipped if the server does not have it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <hutch/hutch.h>

enum needs {
        NEEDS_HUTCH = 1,  /* routes that only Hutch's server has */
        NEEDS_ADMIN = 2,  /* a key that may make keys */
        NEEDS_SEVERAL = 4 /* sandboxes at a time */
};

struct world {
        struct hutch_client *client;
        const char *url, *key;
        const char *image;
        unsigned has; /* enum needs */
        struct hutch_call call;
        struct hutch_sandbox *sandbox; /* one that runs, while there is one, and its agent */
        struct hutch_endpoint *agent;
        bool failed; /* the step */
};

struct step {
        const char *name;
        void (*run)(struct world *w);
        unsigned needs;
};

#define CHECK(w, cond)                                                                       \
        do {                                                                                 \
                if (!(cond)) {                                                               \
                        printf("# %s:%d: %s is false; last error: %s\n", __FILE__, __LINE__, \
                               #cond, (w)->call.error.message);                              \
                        (w)->failed = true;                                                  \
                        return;                                                              \
                }                                                                            \
        } while (0)

#define CHECK_TEXT(w, is, should)                                                                \
        do {                                                                                     \
                const char *is_ = (is), *should_ = (should);                                     \
                if (!is_ || strcmp(is_, should_) != 0) {                                         \
                        printf("# %s:%d: %s is '%s', should be '%s'\n", __FILE__, __LINE__, #is, \
                               is_ ? is_ : "(null)", should_);                                   \
                        (w)->failed = true;                                                      \
                        return;                                                                  \
                }                                                                                \
        } while (0)

/* That a call works; what it said if not. */
#define WORKS(w, call_) CHECK(w, (call_) == 0)

/* The tables, each ended by a step without a name. */
extern const struct step sandbox_steps[];
extern const struct step command_steps[];
extern const struct step file_steps[];
extern const struct step async_steps[];
extern const struct step last_steps[];

/* Runs a command in the world's sandbox that must succeed; what it printed, which is freed with free. NULL,
 * and the step has failed, if it did not. */
char *world_output(struct world *w, const char *command);

/* A file of the sandbox, made by the command line. */
bool world_put(struct world *w, const char *path, const char *text);

#endif
