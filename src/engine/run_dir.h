/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_RUN_DIR_H
#define HUTCH_ENGINE_RUN_DIR_H

/*
 * The folders of sandboxes on the host: <folder>/run/<id>, mounted into the container, with one socket
 * in it, on which the agent listens.
 *
 * What is in such a folder is the sandbox's to change: its root may put a link to the engine's own socket
 * in the place of the agent's, and a plain connect(2) follows it. So the name is opened with O_PATH and
 * O_NOFOLLOW, what is there is looked at, and the connection goes to what was looked at, through
 * /proc/self/fd.
 *
 * That the agent listens is told by inotify: it makes the socket, and changes its mode when it listens.
 * Events are only a reason to try; a sandbox that makes a lot of them costs a connect each turn until
 * its create is done.
 */

#include "base/compiler.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"

struct run_dir_watch;
typedef void run_dir_changed_fn(struct run_dir_watch *w);

struct run_dir_watch {
        struct list node;
        int wd; /* of inotify */
        run_dir_changed_fn *changed;
};

struct run_dirs {
        struct net_loop *loop;
        const struct log_ctx *log;
        const char *path; /* <folder>/run */
        int dir;
        int inotify;
        uv_poll_t poll;
        struct list watches;
        struct list removals;
        size_t open; /* the poll handle, and removals under way */
        bool closing;
        void (*closed)(struct run_dirs *b);
};

/* Makes the folder if it is missing. The path must stay. */
int run_dirs_open(struct run_dirs *b, struct net_loop *l, const char *path) must_check;

/* Removals under way come to their end first; then `closed`, from the loop. */
void run_dirs_close(struct run_dirs *b, void (*closed)(struct run_dirs *b));

/* -EEXIST if there is one. */
int run_dir_make(struct run_dirs *b, struct str id) must_check;
bool run_dir_exists(const struct run_dirs *b, struct str id);

/* A connected, non-blocking socket. -ENOENT: no such sandbox; -ECONNREFUSED: nobody listens (or there is
 * no socket, or something else); -EAGAIN: it does not take connections fast enough. */
int run_dir_connect(const struct run_dirs *b, struct str id, int *ret_fd) must_check;

/* `changed` comes from the loop, at most once a turn. */
int run_dir_watch(struct run_dirs *b, struct str id, struct run_dir_watch *w,
                  run_dir_changed_fn *changed) must_check;
void run_dir_unwatch(struct run_dirs *b,
                     struct run_dir_watch *w); /* fine if it was not watched and zeroed */

/* With all that is in it, in slices; 0 also if there is none. `done` (may be NULL) from the loop. */
void run_dir_remove(struct run_dirs *b, struct str id, void (*done)(void *data, int r), void *data);

/* Calls back for each that there is; from inside. */
void run_dirs_each(struct run_dirs *b, void (*f)(void *data, struct str id), void *data);

#endif
