/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/direct/direct_impl.h"

#define SLICE (2 * USEC_PER_MSEC)

/* --- removing a tree --- */

struct removal {
        struct list node;
        struct net_task task;
        struct direct *d;
        struct walk_remove walk;
        void (*done)(void *data, int r);
        void *data;
        char name[];
};

static void removal_free(struct removal *r)
{
        net_task_cancel(&r->task);
        list_remove(&r->node);
        walk_remove_done(&r->walk);
        free(r);
}

static void removal_run(struct net_task *t)
{
        struct removal *r = container_of(t, struct removal, task);
        usec_t until = clock_mono(&clock_system) + SLICE;
        void (*done)(void *, int) = r->done;
        void *data = r->data;
        int left;

        do
                left = walk_remove_step(&r->walk);
        while (left > 0 && clock_mono(&clock_system) < until);
        if (left > 0) {
                net_task_queue(r->d->driver.loop, t);
                return;
        }
        removal_free(r);
        if (done)
                done(data, left);
}

void removal_start(struct direct *d, const char *name, void (*done)(void *data, int r), void *data)
{
        size_t n = strlen(name) + 1;
        struct removal *r = xcalloc(1, sizeof(*r) + n);

        memcpy(r->name, name, n);
        r->d = d;
        r->done = done;
        r->data = data;
        net_task_init(&r->task, removal_run);
        walk_remove_init(&r->walk, d->dir, r->name);
        list_append(&d->removals, &r->node);
        net_task_queue(d->driver.loop, &r->task);
}

void removals_stop(struct direct *d)
{
        list_for_each (n, &d->removals)
                removal_free(container_of(n, struct removal, node));
}

/* --- ending a sandbox --- */

static void teardown_end(struct teardown *t, int r)
{
        t->lock = fd_close(t->lock);
        t->done(t, r);
}

static void removed(void *data, int r)
{
        teardown_end(data, r);
}

/* It loses its name at once, whatever is left to remove. */
static void remove_dir(struct teardown *t)
{
        char trash[sizeof("trash-") + ID_HEX_LEN], random[ID_HEX_LEN + 1];

        ids_hex(&t->d->ids, random);
        (void) snprintf(trash, sizeof(trash), "trash-%s", random);
        if (renameat(t->d->dir, t->id, t->d->dir, trash) < 0) {
                teardown_end(t, errno == ENOENT ? 0 : -errno);
                return;
        }
        removal_start(t->d, trash, removed, t);
}

static void supervisor_is_gone(struct instance *b)
{
        remove_dir(b->ended_data);
}

void teardown_start(struct teardown *t, struct direct *d, struct str id,
                    void (*done)(struct teardown *t, int r))
{
        struct instance *b;
        int r;

        *t = (struct teardown){ .d = d, .lock = -EBADF, .done = done };
        (void) snprintf(t->id, sizeof(t->id), "%.*s", STR_ARG(id));
        r = instance_adopt(d, id, &b, &t->lock);
        if (r == 1) {
                b->quiet = true;
                b->ended = supervisor_is_gone;
                b->ended_data = t;
                /* One that is gone already is notified of by its descriptor all the same. */
                (void) pidfd_send_signal(b->pidfd, SIGTERM, NULL, 0);
        } else if (r == 0) {
                remove_dir(t);
        } else {
                teardown_end(t, r == -ENOENT ? 0 : r);
        }
}
