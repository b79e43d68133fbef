/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_RUN_DIR_H
#define HUTCH_ENGINE_RUN_DIR_H

/*
 * The run directories of sandboxes on the host: <dir>/run/<id>, mounted into the container, with the socket in it
 * on which the agent listens.
 *
 * The contents of such a directory are under the sandbox's control: its root may put a symlink to the engine's own
 * socket in the place of the agent's, and a plain connect(2) follows it. So the name is opened with O_PATH and
 * O_NOFOLLOW, its type is checked, and the connection is made to the opened file, through /proc/self/fd.
 *
 * inotify tells when the agent listens: the agent creates the socket, and changes its mode once it listens. Events
 * are only a reason to try; a sandbox that causes many of them costs a connect per iteration of the loop until
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
        const char *path; /* <dir>/run */
        int dir;
        int inotify;
        uv_poll_t poll;
        struct list watches;
        struct list removals;
        size_t open; /* the poll handle, and removals under way */
        bool closing;
        void (*closed)(struct run_dirs *b);
};

/* Creates the directory if it is missing. The path must stay valid. */
int run_dirs_open(struct run_dirs *b, struct net_loop *l, const char *path) must_check;

/* Finishes removals first, then calls `closed`, from the loop. */
void run_dirs_close(struct run_dirs *b, void (*closed)(struct run_dirs *b));

/* -EEXIST if there is one. */
int run_dir_make(struct run_dirs *b, struct str id) must_check;
bool run_dir_exists(const struct run_dirs *b, struct str id);

/* A connected, non-blocking socket. -ENOENT: no such sandbox; -ECONNREFUSED: no listener (or no socket, or
 * something else in its place); -EAGAIN: the listener's queue is full. */
int run_dir_connect(const struct run_dirs *b, struct str id, int *ret_fd) must_check;

/* `changed` is called from the loop, at most once per iteration. */
int run_dir_watch(struct run_dirs *b, struct str id, struct run_dir_watch *w,
                  run_dir_changed_fn *changed) must_check;
void run_dir_unwatch(struct run_dirs *b, struct run_dir_watch *w); /* fine if it is zeroed */

/* With its contents, in slices; 0 also if there is none. `done` (may be NULL) runs from the loop. */
void run_dir_remove(struct run_dirs *b, struct str id, void (*done)(void *data, int r), void *data);

/* Calls f for each, from inside. */
void run_dirs_each(struct run_dirs *b, void (*f)(void *data, struct str id), void *data);

#endif
